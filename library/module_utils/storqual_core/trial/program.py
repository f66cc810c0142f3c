# SPDX-License-Identifier: Apache-2.0
"""One trial on the bench: `python3 -c '…program.main' TRIAL.json`, from the fill to what was read back.

Everything it knows goes to the trial's stream as it happens. Exit status: 0 the trial ran to its end, 2 it could not,
3 the trial file is wrong, 4 the guard refused.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

from ..data.faults import WAYS
from ..guard.claims import Claim, read_claims
from ..guard.hold import hold
from ..guard.writes import end_line, read_disks
from ..host.kernel_log import KernelLog
from ..host.reach import SCOPES
from ..host.sysfs import Drive, read_drives
from ..kit import command
from ..kit.errors import BadInputError, StorqualError
from ..kit.lock import hold_lock
from ..kit.machine import Machine
from .aim import Aim
from .bench_faults import ACTS, AFTER, missing
from .device import HeldDevice
from .layer import layered
from .load import Load, LoadAsk, read_load
from .reach import aimed_at, refuse_beyond
from .sectors import MOST_SECTORS, TAG_BYTES, read_region
from .state import read_state
from .stream import Stream, run_file

_LOG_S = 0.2
_END_S = 60.0
_EARLIER_S = 30.0
_OTHER_SECTORS = 48
_LOOKS = 4
_MOST_AGAIN = 4096
_MOST_FOUND = 500
ENDED = ".ended"
"""What the name of a stream is followed by in that of the file which says that the control node's fault has ended."""


@dataclass(frozen=True)
class TrialFile:
    """A trial as the control node sends it. `parts` is `all`, or `verify` after the bench itself was down.

    `way` is one of ACTS, or empty when the control node brings the fault about or there is none; `scope` is how
    far the fault reaches. `claims` are all of the bench, `claimed` their ids.
    Times in seconds from the start of the load.
    """

    run: str
    state_dir: str
    drive: str
    adapter: str
    claims: tuple[Claim, ...]
    claimed: tuple[str, ...]
    tag: bytes
    load: LoadAsk
    way: str
    scope: str
    at_s: float
    away_s: float
    load_s: float
    recover_s: float
    parts: str
    stream: Path


def read_trial(path: Path) -> TrialFile:
    """Read a trial file. Raises BadInputError with every problem."""
    try:
        body: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        tag = bytes.fromhex(body["tag"])
        trial = TrialFile(
            run=str(body["run"]),
            state_dir=str(body["state_dir"]),
            drive=str(body["drive"]),
            adapter=str(body["adapter"]),
            claims=read_claims(body["claims"]),
            claimed=tuple(map(str, body["claimed"])),
            tag=tag,
            load=read_load(body["load"]),
            way=str(body["way"]),
            scope=str(body["scope"]),
            at_s=float(body["at_s"]),
            away_s=float(body["away_s"]),
            load_s=float(body["load_s"]),
            recover_s=float(body["recover_s"]),
            parts=str(body["parts"]),
            stream=Path(body["stream"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise BadInputError([f"{path}: is no trial file: {problem!r}"]) from None
    problems = []
    if len(tag) != TAG_BYTES:
        problems.append(f"{path}: tag: found {len(tag)} bytes, expected {TAG_BYTES}")
    if trial.way and trial.way not in ACTS:
        problems.append(f"{path}: way: found {trial.way!r}, expected one of {', '.join(ACTS)}")
    elif trial.way and WAYS[trial.way][1].scope != trial.scope:
        problems.append(f"{path}: scope: found {trial.scope!r}, expected {WAYS[trial.way][1].scope!r}")
    if trial.scope not in SCOPES:
        problems.append(f"{path}: scope: found {trial.scope!r}, expected one of {', '.join(SCOPES)}")
    if trial.parts not in ("all", "verify"):
        problems.append(f"{path}: parts: found {trial.parts!r}, expected all or verify")
    if trial.drive not in {claim.id for claim in trial.claims}:
        problems.append(f"{path}: drive: found {trial.drive!r}, expected one that is claimed")
    if problems:
        raise BadInputError(problems)
    return trial


class TrialRun:
    """One trial under way."""

    def __init__(self, trial: TrialFile, stream: Stream, machine: Machine | None = None) -> None:
        self._trial, self._stream = trial, stream
        self._machine = machine or Machine()
        self._ended = threading.Event()
        self._spare = (0, 0)
        self._loaded: Load | None = None

    def run(self) -> None:
        """Refuse what may not be, then load, fault, recovery, state, and what is read back. Raises StorqualError."""
        trial = self._trial
        if trial.parts == "verify" and not self._is_back():
            self._stream.line(
                "lost", text=f"the drive was not found within {trial.recover_s:g} s of the bench's start"
            )
            return
        # who may be reached is decided before anything is held or written
        touched = refuse_beyond(
            self._machine,
            trial.claims,
            drive=trial.drive,
            adapter=trial.adapter,
            scope=trial.scope,
            state_dir=trial.state_dir,
        )
        if trial.way:
            drive = aimed_at(read_drives(self._machine), trial.drive, trial.adapter)
            lacking = missing(WAYS[trial.way][1], self._machine, drive) if drive else "the drive is not there"
            if lacking:
                self._stream.line("cannot", reason=f"{trial.way}: {lacking}")
                return
        before = read_disks(self._machine, state_dir=trial.state_dir)
        device = HeldDevice(trial.drive, self._holder, lambda text: self._stream.line("drive", text=text))
        self._stream.line("begin", node=device.node, touched=touched, wall=time.time())
        try:
            if trial.parts == "verify":
                self._look_for_proof()
            if trial.parts == "verify" or self._load(device):
                self._verify(device)
        finally:
            if not device.close(_END_S):
                self._stream.line("hung", text=f"an I/O had not ended {_END_S:g} s after the load was told to")
        after = read_disks(self._machine, state_dir=trial.state_dir)
        counted = end_line(before, after, trial.claimed)
        self._stream.line("disks", disks=counted, boot_id=after.boot_id)

    def _is_back(self) -> bool:
        """Wait for the drive after the bench was down: adapters find their drives one after the other."""
        deadline = time.monotonic() + self._trial.recover_s
        while not any(one.id == self._trial.drive for one in read_drives(self._machine)):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOG_S)
        return True

    @contextmanager
    def _holder(self) -> Iterator[Mapping[str, str]]:
        trial = self._trial
        claims = [claim for claim in trial.claims if claim.id == trial.drive]
        with hold(claims, purpose="write", state_dir=trial.state_dir, run=trial.run) as held:
            window, load = held.window(trial.drive), trial.load
            first, last = load.first * 512, (load.first + load.sectors) * 512
            if first < window.offset or last > window.offset + window.size:
                raise BadInputError([f"load: found bytes {first} to {last}, expected them in the guard's window"])
            self._spare = (last, window.offset + window.size - last)
            drive = aimed_at(read_drives(self._machine), trial.drive, trial.adapter)
            if drive is None or not (trial.way and WAYS[trial.way][1].layered):
                yield held
                return
            with layered(held, drive, self._machine, command.run) as nodes:
                yield nodes

    def _load(self, device: HeldDevice) -> bool:
        """Fill, load and fault; whether there is anything to read back."""
        trial, stream = self._trial, self._stream
        stream.line("state", when="before", state=self._state())
        load = Load(trial.load, trial.tag, device, stream.tell)
        self._loaded = load
        problem = load.fill()
        stream.send()
        if problem:
            stream.line("cannot", reason=f"the region could not be filled: errno {problem}")
            return False
        log = threading.Thread(target=self._follow_log, daemon=True, name="kernel-log")
        log.start()
        stream.line("loading")
        load.start()
        began = time.monotonic()
        if trial.way:
            time.sleep(trial.at_s)
            self._bring_about()
        time.sleep(max(0.0, began + trial.load_s - time.monotonic()))
        late_s = 0.0 if trial.way else self._await_end(began + trial.load_s)
        # counted from the fault, of which the wait for its own return may have used up all
        deadline = began + trial.at_s + trial.away_s + late_s + trial.recover_s
        while device.lost and time.monotonic() < deadline:
            time.sleep(_LOG_S)
        if device.lost:
            stream.line("lost", text=f"the drive was not usable again {trial.recover_s:g} s after the fault")
            device.give_up()
        hung = not load.stop(_END_S)
        if hung:
            stream.line("hung", text=f"an I/O had not ended {_END_S:g} s after the load was told to")
        stream.send()
        self._ended.set()
        log.join()
        stream.line("state", when="after", state=self._state())
        return not hung

    def _await_end(self, planned: float) -> float:
        """Keep the load up until the control node has told that its fault ended; by how many seconds that was late.

        A control node with other work may bring its fault about only when the planned time of the load is over.
        """
        trial = self._trial
        told = trial.stream.with_name(f"{trial.stream.name}{ENDED}")
        if told.exists():
            return 0.0
        while not told.exists() and time.monotonic() < planned + trial.recover_s:
            time.sleep(_LOG_S)
        late_s = time.monotonic() - planned
        # some load comes after the fault as well
        time.sleep(max(0.0, trial.load_s - trial.at_s - trial.away_s))
        return late_s

    def _state(self) -> dict[str, Any]:
        return read_state(self._machine, self._trial.adapter, command.run, self._trial.drive)

    def _bring_about(self) -> None:
        trial, stream = self._trial, self._stream
        drive = aimed_at(read_drives(self._machine), trial.drive, trial.adapter)
        if drive is None:
            stream.line("fault", phase="failed", text=f"drive {trial.drive} was not there to aim at")
            return
        stream.line("fault", phase="begin", text=trial.way)
        try:
            ACTS[trial.way](self._aim(drive), self._seen)
        except (StorqualError, OSError) as problem:
            stream.line("fault", phase="failed", text=str(problem))
        else:
            stream.line("fault", phase="end", text=trial.way)

    def _look_for_proof(self) -> None:
        """Of a fault that took the bench down: what it left is looked for on the boot that follows."""
        trial, stream = self._trial, self._stream
        after = AFTER.get(trial.way)
        drive = aimed_at(read_drives(self._machine), trial.drive, trial.adapter)
        if after is None or drive is None:
            return
        try:
            after(self._aim(drive), self._seen)
        except (StorqualError, OSError) as problem:
            stream.line("fault", phase="failed", text=str(problem))

    def _seen(self, seen: str, text: str) -> None:
        self._stream.line("seen", seen=seen, text=text)

    def _aim(self, drive: Drive) -> Aim:
        trial = self._trial
        return Aim(
            self._machine,
            command.run,
            drive,
            trial.away_s,
            trial.recover_s,
            self._spare,
            trial.tag.hex(),
            trial.state_dir,
        )

    def _follow_log(self) -> None:
        """Tell the kernel's lines as they come."""
        log = KernelLog()
        if log.reason:
            self._stream.line("note", text=log.reason)
        ended = False
        while not ended:
            ended = self._ended.wait(_LOG_S)
            lines = [record.line() for record in log.read() if record.from_kernel]
            if lines:
                self._stream.line("kernel", lines=lines)
        if log.overflowed:
            self._stream.line("note", text=f"the kernel's log overflowed {log.overflowed} times")
        log.close()

    def _verify(self, device: HeldDevice) -> None:
        """Read all back, twice: a second reading that is right where the first was not tells a stale read.

        The second is made of other commands than the first, or what is wrong at every n-th would be so twice. What is
        wrong in both all the same is read again sector by sector, as long as that brings something else.
        """
        trial, _stream = self._trial, self._stream
        if device.lost:
            return
        descriptor = device.use()
        try:
            wrong = self._read_back(descriptor, 1, MOST_SECTORS, [(trial.load.first, trial.load.sectors)])
            wrong &= self._read_back(descriptor, 2, _OTHER_SECTORS, [(trial.load.first, trial.load.sectors)])
            for turn in range(3, 3 + _LOOKS):
                if wrong:
                    wrong &= self._read_back(descriptor, turn, 1, [(one, 1) for one in sorted(wrong)[:_MOST_AGAIN]])
        finally:
            device.done(0)

    def _read_back(self, descriptor: int, turn: int, chunk: int, parts: Sequence[tuple[int, int]]) -> set[int]:
        """Read parts (first sector, how many) and tell them; the sectors that are not what was written last."""
        trial, stream = self._trial, self._stream
        found: list[list[Any]] = []
        wrong: set[int] = set()
        for first, sectors in parts:
            for one in read_region(descriptor, trial.tag, first, sectors, chunk):
                found.append(list(one))
                if self._loaded is not None:
                    wrong.update(self._loaded.doubtful(*one))
                if len(found) >= _MOST_FOUND:
                    stream.line("found", turn=turn, runs=found)
                    found = []
        stream.line("found", turn=turn, runs=found, whole=True)
        return wrong


def main(argv: list[str] | None = None) -> int:
    """Run the trial in the file that is named."""
    return run_file(argv, read_trial, _run)


def _run(trial: TrialFile, stream: Stream) -> None:
    with hold_lock(Path(trial.state_dir), trial.run, "trial", wait_s=_EARLIER_S):
        TrialRun(trial, stream).run()
