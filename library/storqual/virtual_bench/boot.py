# SPDX-License-Identifier: Apache-2.0
"""Wait for a guest that was powered on: its SSH answer first, then all its drives."""

import selectors
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from storqual.base import child
from storqual.base.console_log import panic_text, plain_console
from storqual.bench.reboot import QUESTION, SshAddress, ssh_answers
from storqual_core.kit.errors import ToolError


def mark(log: Path) -> int:
    """Where the log ends now, in bytes; 0 when there is none yet."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def written_since(log: Path, start: int) -> str:
    """What the console said since `start`, without escape sequences, one clean line each."""
    try:
        with log.open("rb") as handle:
            handle.seek(start)
            text = handle.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return plain_console(text)


_BANNER_WAIT_S = 10.0  # one of many guests never says its name to who hangs up sooner: it starts another server
_RETRY_S = 0.2
_DRIVES_LIMIT_S = 40
# said by the guest over one connection: `up` when the login worked, `ready` when its drives are there
_QUESTION = """
echo up
limit=$(($(date +%s) + {limit}))
seen() {{ ls /sys/block | grep -cE '^(sd[a-z]+|nvme[0-9]+n[0-9]+)$'; }}
while [ $(seen) -lt {drives} ] && [ $(date +%s) -lt $limit ]; do
    sleep 0.5
done
udevadm settle --timeout={limit}
echo ready $(cat /proc/sys/kernel/random/boot_id) $(uname -r) $(seen)
"""


class BootFailedError(ToolError):
    """A guest did not come up; the message ends with what its console said."""


@dataclass(frozen=True)
class Booted:
    """A guest that is up: seconds from power-on to the SSH answer and to its drives, and who it is."""

    ssh_s: float
    ready_s: float
    boot_id: str
    kernel: str
    drives_seen: int


def _ask(name: str, ssh_config: Path, drives: int, limit_s: float) -> tuple[float, list[str]] | None:
    """The monotonic time of the login to a guest that may die meanwhile, and the words of `ready`."""
    question = _QUESTION.format(drives=drives, limit=_DRIVES_LIMIT_S)
    argv = ["ssh", "-F", str(ssh_config), "-o", "ConnectTimeout=60", "-o", "ServerAliveInterval=15", name, question]
    up = 0.0
    words: list[str] = []
    deadline = time.monotonic() + limit_s
    with child.start(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as session:
        assert session.stdout is not None  # noqa: S101 - it is a pipe, for mypy
        selector = selectors.DefaultSelector()
        selector.register(session.stdout, selectors.EVENT_READ)
        while not words and (left := deadline - time.monotonic()) > 0 and selector.select(left):
            line = session.stdout.readline().decode("utf-8", "replace").strip()
            if not line:
                break
            if line == "up":
                up = time.monotonic()
            elif line.startswith("ready "):
                words = line.split()[1:]
        session.kill()
    return (up, words) if len(words) == 3 else None


def logs_in(name: str, ssh_config: Path, limit_s: float) -> bool:
    """Whether a guest lets somebody log in and run a command: one that hangs may still accept a connection."""
    argv = ["ssh", "-F", str(ssh_config), "-o", f"ConnectTimeout={limit_s:.0f}", name, QUESTION]
    try:
        done = child.run(argv, stdout=child.DEVNULL, stderr=child.DEVNULL, timeout=limit_s)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def wait_for_boot(
    name: str,
    *,
    ssh_config: Path,
    port: int,
    log: Path,
    since: int,
    began: float,
    drives: int,
    limit_s: float,
    running: Callable[[], bool],
) -> Booted:
    """Wait until bench `name` answers SSH on `port` and shows `drives` drives. Raises BootFailedError.

    `began` is the monotonic time of power-on and `since` where the console log was then. Fewer drives after 40 s are
    told later: the bench is up. While the console speaks, the limit may get three times as long: a host may be busy.
    """
    deadline, written = began + limit_s, mark(log)
    while (left := deadline - time.monotonic()) > 0:
        if ssh_answers(SshAddress("127.0.0.1", port), min(left, _BANNER_WAIT_S)):
            answer = _ask(name, ssh_config, drives, deadline + _DRIVES_LIMIT_S - time.monotonic())
            if answer:
                (up, (boot_id, kernel, seen)), ready_s = answer, time.monotonic() - began
                return Booted(round(up - began, 1), round(ready_s, 1), boot_id, kernel, int(seen))
        if not running():
            raise BootFailedError(f"QEMU ended while {name} was starting{_last_words(log, since)}")
        if panic := panic_text(written_since(log, since)):
            raise BootFailedError(f"the kernel of {name} panicked while starting:\n{panic}")
        if (now := mark(log)) != written:
            written, deadline = now, max(deadline, min(time.monotonic() + limit_s / 3, began + 3 * limit_s))
        time.sleep(_RETRY_S)  # a guest that is not up yet refuses at once; nothing tells us when it will not
    raise BootFailedError(f"{name} did not answer SSH in {time.monotonic() - began:.0f} s{_last_words(log, since)}")


def _last_words(log: Path, since: int) -> str:
    """The end of the console, for the message of a failure."""
    lines = [line for line in written_since(log, since).split("\n") if line.strip()]
    return "; its console ends with:\n" + "\n".join(lines[-15:]) if lines else "; its console said nothing"
