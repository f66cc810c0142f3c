# SPDX-License-Identifier: Apache-2.0
"""Reserve a bench from a control node: wait in order, keep what was reserved, give no command without its number."""

import base64
import getpass
import io
import json
import os
import shlex
import signal
import socket
import subprocess
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual.base.files import parse_json, state_home
from storqual.base.text import terminal_text
from storqual.bench.program import old_python
from storqual_core.kit.durable import replace_file
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lease import LAPSE_S, VARIABLE, LeaseBook, LeaseLostError, Out, OutOfServiceError, Owner
from storqual_core.turns.lease_command import lease_command

LOST = 79
"""Exit status of a command whose reservation counts no longer."""
RENEW_S = 60.0
_LOOK_S = 10.0
_ASK_S = 240.0
_SPARE = 1.25
"""A campaign has its bench for its expected time and a quarter of it."""
_MOST_VALUES = 1000


def fence(token: str) -> str:
    """What stands before a shell command so that it is given under the reservation `<number>@<state folder>` only.

    Empty without one. A reservation that counts no longer ends it with LOST, and says who has the bench.
    """
    number, _, folder = token.partition("@")
    if not folder:
        return ""
    file, known = shlex.quote(f"{folder}/lease.{number}"), shlex.quote(f"{folder}/lease.json")
    carried = shlex.quote(f"{number}@{folder}")
    return f"test -e {file} || {{ cat {known} >&2; exit {LOST}; }}; export {VARIABLE}={carried}; "


def lost(token: str, answer: str) -> LeaseLostError:
    """The error of a command that ended with LOST; `answer` is what the bench knows of its reservation."""
    try:
        body = json.loads(answer)
        has = f"{Owner.of(body['owner']).describe()} has it" if body.get("owner") else "nobody has it"
    except (ValueError, KeyError, TypeError, AttributeError):
        has = "nobody knows who has it"
    return LeaseLostError(f"reservation {token.partition('@')[0]} of this bench counts no longer: {has}")


def renewing(token: str) -> str:
    """The shell command that renews a reservation."""
    number, _, folder = token.partition("@")
    file = shlex.quote(f"{folder}/lease.{number}")
    # touched only where it is: one that was taken does not come back
    return f"test -e {file} || exit {LOST}; touch -c {file}"


def new_owner(why: str, seconds: float, *, run: str = "", kept: bool = True) -> Owner:
    """This user on this machine, for so many seconds; `kept` where a keeper renews it."""
    lapse_s = LAPSE_S if kept else max(seconds, LAPSE_S)
    return Owner(getpass.getuser(), socket.gethostname(), why, stamp(seconds), run, lapse_s=lapse_s)


def campaign_seconds(expected_s: float) -> float:
    return _SPARE * expected_s


def kept_here(bench: str, folder: str = "") -> Path:
    """Where this control node keeps what concerns a bench's reservation besides the bench, `folder` if one is named.

    A bench that does not answer can be put out of service there.
    """
    return Path(folder) if folder else state_home() / "storqual" / "benches" / bench


def queue_folder(bench: str, variables: Mapping[str, Any]) -> str:
    """The folder where reservations of a bench are kept besides, by its variables with templates filled; "" for none.

    A place of labgrid is acquired under a reservation that this control node keeps.
    """
    state, queue = variables.get("virtual_bench_state"), variables.get("storqual_queue") or {}
    if variables.get("storqual_kind") == "virtual" and state:
        return f"{state}/lease"
    if queue.get("labgrid") is not None:
        return str(kept_here(bench))
    return f"{queue['folder']}/{bench}" if queue.get("folder") else ""


def refuse_out_of_service(bench: str, folder: str = "") -> None:
    """Raise OutOfServiceError for a bench that this control node, or one that shares the folder, has put out."""
    out = LeaseBook(kept_here(bench, folder), name=bench).read().out
    if out is not None:
        raise OutOfServiceError(f"{bench} is {out.describe()}")


def put_out(bench: str, why: str, folder: str = "", *, until: str = "") -> Out:
    """Have this control node, and those that share the folder, leave a bench alone."""
    out = Out(why, f"{getpass.getuser()} on {socket.gethostname()}", stamp(), until)
    LeaseBook(kept_here(bench, folder), name=bench).take_out(out)
    return out


def stamp(seconds: float = 0.0) -> str:
    """So many seconds from now, as ISO, UTC."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds")


Ask = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Hands one request to the place where reservations are kept; the answer as JSON. See `lease_command`."""


def folder_book(folder: Path) -> Ask:
    """Reservations in a folder that control nodes share."""
    return lambda request: dict(json.loads(lease_command(folder, json.dumps(request))))


def bench_book(shell: Callable[[str], tuple[int, str, str]], program: Sequence[str], state_dir: str) -> Ask:
    """Reservations on the bench, asked by the words `program`. Raises StorqualError, and what `shell` raises."""

    def ask(request: Mapping[str, Any]) -> dict[str, Any]:
        rc, out, err = shell(shlex.join([*program, "lease", state_dir, json.dumps(request)]))
        if rc:
            complaint = (err or out).strip()
            raise StorqualError(f"the bench's reservation cannot be asked: {old_python(complaint) or complaint}")
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            answer = parse_json(out.encode(), _MOST_VALUES)
            # files are called by it
            if type(answer.get("number", 0) if "refused" in answer else answer["lease"]["number"]) is int:
                return dict(answer)
        raise StorqualError(f"the bench's reservation cannot be read: it answered {terminal_text(out[:200])!r}")

    return ask


_MARK = "--storqual--"

# one command, answered by a shell: a Python on the bench would disturb what is measured
_QUESTION = f"""\
cd {{folder}} 2>/dev/null && files=$(ls -d lease.json lease.[0-9]* queue saved.json 2>/dev/null)
test -z "$files" || tar -cf - $files | base64 | head -c 1000000
echo {_MARK}; cat {{folder}}/lock 2>/dev/null
test ! -e {{folder}}/lock || flock -n {{folder}}/lock true 2>/dev/null || echo held
echo {_MARK}; date +%s; sed -n 's/^btime //p' /proc/stat"""


def lease_question(state_dir: str) -> str:
    """The shell command that prints what a bench knows of its reservation, for `unpack_lease`."""
    return _QUESTION.format(folder=shlex.quote(state_dir))


def unpack_lease(answer: str, folder: Path) -> tuple[float, float, list[str]]:
    """Put the files of a bench's reservation into `folder`, to be read with the bench's clock.

    Its time, the time of its boot, and the lines of its lock, the last of which is `held` where somebody holds it.
    Raises StorqualError for what is no answer.
    """
    try:
        packed, lock, times = answer.split(f"{_MARK}\n")
        now, boot = (float(word) for word in times.split())
        data = base64.b64decode(packed)
        if data:
            with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
                # a bench may pack what it likes: a link leads out of the folder, a sparse file has any size
                if not all(member.type in (tarfile.REGTYPE, tarfile.DIRTYPE) for member in archive):
                    raise ValueError("it holds more than plain files and folders")  # noqa: TRY301 - told as any damage
                archive.extractall(folder, filter="data")
    except (ValueError, OSError, tarfile.TarError) as problem:
        raise StorqualError(f"the bench's reservation cannot be read: {problem}") from None
    return now, boot, lock.splitlines()


class RefusedError(StorqualError):
    """What the place of reservations refused, with its exit code: 0 and 1 are verdicts, and not its own."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.exit_code = code if (code := answer.get("exit_code")) in (3, 4, 5) else 2
        super().__init__(str(answer["refused"]))


def answered(answer: dict[str, Any]) -> dict[str, Any]:
    """Raises RefusedError."""
    if "refused" in answer:
        raise RefusedError(answer)
    return answer


@dataclass(frozen=True)
class Waiting:
    """For how long a bench is waited for, how it is asked cheaply whether anything changed, and who hears of it.

    `look` gets the ticket and the number of the reservation that is in the way, and says whether asking again makes
    sense; it also shows that this one still waits. It may raise StorqualError: a bench may be down for its owner.
    """

    seconds: float
    say: Callable[[str], None]
    look: Callable[[str, int], bool] = lambda _ticket, _number: True
    look_s: float = _LOOK_S
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def look_command(state_dir: str, ticket: str, number: int) -> str:
    """A shell command that shows that a ticket still waits; it prints `same` while nothing has changed."""
    file, own = shlex.quote(f"{state_dir}/lease.{number}"), shlex.quote(f"{state_dir}/queue/{ticket}.json")
    fresh = f'-z "$(find {file} -mmin +{LAPSE_S / 60:.0f} 2>/dev/null)"'
    return f"touch -c {own}; test -e {file} && test -e {own} && test {fresh} && echo same || true"


def reserve(ask: Ask, bench: str, owner: Owner, waiting: Waiting, *, take: bool = False) -> dict[str, Any]:
    """The answer with the new reservation (`lease`) and what was ended for it (`ended`).

    Waits in order where somebody else has the bench and there is time to wait. Raises RefusedError.
    """
    request = {"act": "reserve", "bench": bench, "owner": asdict(owner), "take": take}
    answer = ask(request)
    if "refused" not in answer or not answer.get("waits") or waiting.seconds <= 0:
        return answered(answer)
    end = waiting.clock() + waiting.seconds
    ticket = str(answered(ask({"act": "ticket"}))["ticket"])
    refusal, last_ask = "", 0.0
    try:
        while True:
            with suppress(StorqualError):
                if (
                    not refusal
                    or waiting.clock() - last_ask >= _ASK_S
                    or waiting.look(ticket, int(answer.get("number", 0)))
                ):
                    answer, last_ask = ask({**request, "ticket": ticket}), waiting.clock()
            if "refused" not in answer or not answer.get("waits"):
                return answered(answer)
            if answer["refused"] != refusal:
                refusal = str(answer["refused"])
                waiting.say(terminal_text(f"waiting: {refusal}"))
            if waiting.clock() >= end:
                raise RefusedError(answer)
            waiting.sleep(min(waiting.look_s, max(end - waiting.clock(), 0.0)))
    finally:
        with suppress(StorqualError):
            ask({"act": "leave", "ticket": ticket})


class Keeper:
    """A process that renews one reservation of a bench while its owner lives, and knows whether it still counts.

    It is a process of its own because a task of Ansible may take an hour. It ends with its owner, and does nothing
    while its owner is stopped.
    """

    def __init__(self, token: str, bench: str) -> None:
        self.record = state_home() / "storqual" / "leases" / f"{bench}-{token.partition('@')[0]}.json"

    def start(self, renewals: Sequence[Sequence[str]], owner: int) -> None:
        """Have it renewed by each of these command lines, while the process `owner` lives."""
        order = {
            "renewals": [list(argv) for argv in renewals],
            "owner": owner,
            "ticks": child.ticks_of_start(owner),
            "record": str(self.record),
        }
        self.record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        argv = child.python("-m", "storqual.bench.keeper")
        process = child.start(
            argv,
            start_new_session=True,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None  # noqa: S101 - it was started with a pipe
        known = {"pid": process.pid, "ticks": child.ticks_of_start(process.pid), "tried": boot_clock()}
        replace_file(self.record, json.dumps(known), durable=False)
        # by a pipe: command lines of SSH name hosts and keys
        process.stdin.write(json.dumps(order).encode())
        process.stdin.close()
        # it is not waited for: it ends when its owner does
        process.returncode = 0

    def stop(self) -> None:
        known = self._state()
        if known.get("pid") and child.is_running(int(known["pid"]), int(known["ticks"] or 0)):
            with suppress(ProcessLookupError):
                os.kill(int(known["pid"]), signal.SIGTERM)
        self.record.unlink(missing_ok=True)

    def ensure(self) -> None:
        """Raise LeaseLostError where the reservation was lost, or was not renewed for so long that it may be.

        For what no bench can refuse: to cut the power of one that does not answer. Without a keeper nothing is known.
        """
        known = self._state()
        if known.get("lost"):
            raise LeaseLostError(f"the reservation of this bench is lost: {known['lost']}")
        if known and boot_clock() - float(known["tried"]) > LAPSE_S:
            raise LeaseLostError(
                f"this control node was stopped for more than {LAPSE_S / 60:.0f} min: others may have it"
            )

    def _state(self) -> dict[str, Any]:
        try:
            return dict(parse_json(self.record.read_bytes(), _MOST_VALUES))
        except (OSError, ValueError, TypeError):
            return {}


def boot_clock() -> float:
    """Seconds that also pass while this machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
