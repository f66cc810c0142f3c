# SPDX-License-Identifier: Apache-2.0
"""Where SSH would knock, and whether anybody is at home: cheap to ask while a bench boots, unlike a whole login."""

import socket
from collections.abc import Callable
from dataclasses import dataclass

from storqual.bench.follow import UnreachableError
from storqual_core.kit.errors import StorqualError

_BANNER = b"SSH-"
_PROXIES = frozenset({"proxyjump", "proxycommand"})


@dataclass(frozen=True)
class SshAddress:
    """The address that a TCP connection of this machine reaches a bench's SSH server at."""

    host: str
    port: int


def parse_ssh_address(text: str) -> SshAddress | None:
    """The address in what `ssh -G HOST` prints; None when the way leads through another host or is not told."""
    options: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        options[name] = value
    if any(options.get(name, "none") != "none" for name in _PROXIES):
        return None
    host, port = options.get("hostname", ""), options.get("port", "")
    return SshAddress(host, int(port)) if host and port.isdecimal() and port.isascii() else None


def ssh_answers(address: SshAddress, limit_s: float, *, greets: bool = True) -> bool:
    """Whether an SSH server says its name there within `limit_s` seconds; else, whether a connection is taken.

    A listening port is not enough: QEMU's user network and some firewalls accept a connection for a host that is
    still booting.
    """
    try:
        with socket.create_connection((address.host, address.port), timeout=limit_s) as connection:
            connection.settimeout(limit_s)
            return not greets or connection.recv(len(_BANNER)) == _BANNER
    except OSError:
        return False


QUESTION = "cat /proc/sys/kernel/random/boot_id && uname -r"
"""Two lines that no boot shares with another; a shell built-in and two small programs, no interpreter."""


@dataclass(frozen=True)
class Boot:
    """One boot of a bench: its id and the release of its kernel."""

    boot_id: str
    kernel: str


def parse_boot(text: str) -> Boot:
    """The answer to QUESTION. Raises StorqualError when it is something else."""
    lines = text.split()
    if len(lines) != 2 or len(lines[0]) != 36:
        raise StorqualError(f"the bench answered {text[:80]!r} when it was asked for its boot id")
    return Boot(*lines)


def wait_for_boot(
    ask: Callable[[], Boot],
    before: Boot,
    *,
    limit_s: float,
    poll_s: float = 1.0,
    show: Callable[[float, bool], None] = lambda _seconds, _answering: None,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> tuple[Boot, float]:
    """The boot after `before` and the seconds until it answered. Raises StorqualError after `limit_s` seconds.

    `ask` raises UnreachableError while the bench does not answer; `show` is told the seconds so far and whether the
    old boot still answers.
    """
    began = clock()
    answering = True
    while True:
        try:
            boot = ask()
        except UnreachableError:
            answering = False
        else:
            answering = True
            if boot.boot_id != before.boot_id:
                return boot, clock() - began
        if clock() - began >= limit_s:
            break
        show(clock() - began, answering)
        sleep(poll_s)
    if answering:
        raise StorqualError(f"the bench did not go down within {limit_s:g} s after it was told to reboot")
    raise StorqualError(
        f"the bench did not answer within {limit_s:g} s after a reboot: look at its console log "
        "(serial port, BMC, or the virtual bench's console.log); after power-on its last words are in /sys/fs/pstore "
        "or /var/lib/systemd/pstore, where the bench has one"
    )
