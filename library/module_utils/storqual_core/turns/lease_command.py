# SPDX-License-Identifier: Apache-2.0
"""`core.pyz lease STATE_DIR REQUEST`: the reservation of this bench, for control nodes that ask by a shell.

A new owner first ends what an earlier reservation left running, and waits until the drives that it had are idle. What
that is, its environment says: every command under a reservation carries its number, and gives it to its children.
"""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Collection, Iterator

from ..kit.errors import BadInputError, StorqualError
from ..kit.lease import VARIABLE, Lease, LeaseBook, Out, Owner, ReservedError
from ..kit.lock import LockedError, lock_holder, lock_path

_TERM_S = 90.0
"""A batch that is told to stop ends its launch, lets go of its drives and says how it ended."""
_KILL_S = 60.0
"""Then a process is gone but for what the kernel still waits for."""
_IDLE_S = 120.0
_LOOK_S = 0.1


def lease_command(state_dir: Path, request: str) -> str:
    """The answer to one request, as JSON: `lease`, or `refused` with the sentence and the exit code for it."""
    try:
        body = json.loads(request)
        answer = _answer(LeaseBook(state_dir, name=str(body.get("bench") or "the bench")), state_dir, body)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise BadInputError([f"lease: is no request: {problem!r}"]) from None
    except BadInputError:
        raise
    except StorqualError as problem:
        answer = {"refused": str(problem), "exit_code": problem.exit_code}
        answer["waits"] = isinstance(problem, (ReservedError, LockedError))
        if isinstance(problem, ReservedError):
            answer.update({"place": problem.place, "number": problem.number})
    return json.dumps(answer)


def _answer(book: LeaseBook, state_dir: Path, body: dict[str, Any]) -> dict[str, Any]:
    act = body["act"]
    answer: dict[str, Any] = {}
    if act == "ticket":
        answer["ticket"] = book.ticket()
    elif act == "reserve":
        owner = Owner.of(body["owner"])
        lease = book.reserve(owner, ticket=str(body.get("ticket") or ""), take=bool(body.get("take")))
        answer["ended"] = _make_sure(book, state_dir, lease, owner)
        answer["lease"] = lease.to_json()
        return answer
    elif act == "renew":
        book.renew(int(body["number"]), str(body.get("until") or ""))
    elif act == "release":
        book.release(int(body["number"]))
    elif act == "leave":
        book.leave(str(body["ticket"]))
    elif act == "out":
        book.take_out(Out(**{key: str(value) for key, value in body["out"].items()}))
    elif act == "back":
        out = book.put_back()
        answer["was"] = out.describe() if out else ""
    elif act != "read":
        raise BadInputError([f"lease: {act!r} is no act"])
    answer["lease"] = book.read().to_json()
    return answer


def _make_sure(book: LeaseBook, state_dir: Path, lease: Lease, owner: Owner) -> list[str]:
    """What an earlier reservation left running is ended; where it does not end, the bench is given back."""
    try:
        return end_left(state_dir, lease.number, owner.run)
    except StorqualError:
        book.release(lease.number)
        raise


def end_left(
    state_dir: Path, number: int, run: str, *, term_s: float = _TERM_S, clock: Callable[[], float] = time.monotonic
) -> list[str]:
    """End what runs under another reservation of this bench than `number`, and wait until its drives are idle.

    One sentence for each process that was ended. A batch of the same `run` goes on: its campaign was resumed. Raises
    LockedError for a holder of the lock that runs under no reservation (a playbook of its own: nobody's to end),
    StorqualError when a process does not end or a drive does not become idle.
    """
    holder = lock_holder(state_dir)
    if holder is not None and run and holder.run == run:
        return []
    if holder is not None and not holder.lease:
        raise LockedError(lock_path(state_dir), holder)
    first = [holder.pid] if holder is not None and holder.lease != number else []
    left = [pid for pid in _marked(state_dir, number) if pid not in first]
    names = {pid: _name(pid) for pid in (*first, *left)}
    devices = {device for pid in names for device in _open_devices(pid)}
    # what holds the bench ends its own children, and writes how far it came
    _end(first, term_s, clock)
    _end([pid for pid in left if _alive(pid)], min(term_s, 10.0), clock)
    # of what a killed one started meanwhile
    _end([*_marked(state_dir, number)], 0.0, clock)
    end = clock() + _IDLE_S
    while busy := [device for device in devices if _in_flight(device)]:
        if clock() >= end:
            raise StorqualError(f"block device {busy[0]} is not idle {_IDLE_S:g} s after its last user was ended")
        time.sleep(_LOOK_S)
    return [f"process {pid} ({name}) of an earlier reservation was ended" for pid, name in names.items()]


def _end(pids: Collection[int], term_s: float, clock: Callable[[], float]) -> None:
    # one that is stopped takes no other signal than SIGKILL before it goes on
    for numbers, limit_s in (((signal.SIGTERM, signal.SIGCONT), term_s), ((signal.SIGKILL,), _KILL_S)):
        for pid in filter(_alive, pids):
            for number in numbers:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        end = clock() + limit_s
        while any(map(_alive, pids)) and clock() < end:
            time.sleep(_LOOK_S)
    stuck = [pid for pid in pids if _alive(pid)]
    if stuck:
        raise StorqualError(f"process {stuck[0]} ({_name(stuck[0])}) of an earlier reservation does not end")


def _marked(state_dir: Path, number: int) -> Iterator[int]:
    """Processes that were started under another reservation of this bench."""
    pattern = re.compile(re.escape(VARIABLE) + "=([0-9]+)@" + re.escape(str(state_dir)))
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            entries = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        pid = int(folder.name)
        matches = [pattern.fullmatch(entry.decode("utf-8", "replace")) for entry in entries]
        if pid != os.getpid() and any(match and int(match.group(1)) != number for match in matches) and _alive(pid):
            yield pid


def _alive(pid: int) -> bool:
    """Whether a process is there and not only waits for its parent to hear of its end."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2][1] not in "ZX"
        )
    except OSError:
        return False


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    return "gone"


def _open_devices(pid: int) -> Iterator[str]:
    for entry in Path(f"/proc/{pid}/fd").glob("*"):
        with suppress(OSError):
            opened = entry.stat()
            if stat.S_ISBLK(opened.st_mode):
                yield f"{os.major(opened.st_rdev)}:{os.minor(opened.st_rdev)}"


def _in_flight(device: str) -> bool:
    with suppress(OSError):
        return any(
            int(word) for word in Path(f"/sys/dev/block/{device}/inflight").read_text(encoding="ascii").split()
        )
    return False
