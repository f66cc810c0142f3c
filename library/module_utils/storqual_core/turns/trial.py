# SPDX-License-Identifier: Apache-2.0
"""One trial on the bench, from the fill to what was read back. All that it knows goes to its stream as it happens."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import Any, Iterator, Mapping, Sequence

from ..data.faults import WAYS
from ..host.kernel_log import KernelLog
from ..host.sysfs import SysfsDrive
from ..kit import command
from ..kit.errors import BadInputError, StorqualError
from .bench_faults import ACTS, AFTER, missing
from .drive_faults import Aim, layered
from .integrity_load import MOST_SECTORS, SECTOR, LoadWorkers, read_region
from .requests import TrialRequest
from .subject import HeldDevice, TurnSubject

_LOG_S = 0.2
_END_S = 60.0
_OTHER_SECTORS = 48
_LOOKS = 4
_MOST_AGAIN = 4096
_MOST_FOUND = 500
ENDED = ".ended"
"""What the name of a stream is followed by in that of the file which says that the control node's fault has ended."""


class TrialRun:
    """One trial under way."""

    def __init__(self, subject: TurnSubject, trial: TrialRequest) -> None:
        self._subject, self._trial = subject, trial
        self._stream, self._machine = subject.stream, subject.machine
        self._ended = threading.Event()
        self._spare = (0, 0)
        self._loaded: LoadWorkers | None = None

    def run(self) -> None:
        """Refuse what may not be, then load, fault, recovery, state, and what is read back. Raises StorqualError."""
        trial, subject, stream = self._trial, self._subject, self._stream
        verify_only = subject.part == "verify"
        if verify_only and not self._is_back():
            stream.line("lost", text=f"the drive was not found within {trial.recover_s:g} s of the bench's start")
            return
        # who may be reached is decided before anything is held or written
        touched = subject.refuse_beyond(trial.scope)
        if trial.way:
            drive = subject.drive()
            lacking = missing(WAYS[trial.way][1], self._machine, drive) if drive else "the drive is not there"
            if lacking:
                stream.line("cannot", reason=f"{trial.way}: {lacking}")
                return
        device = HeldDevice(subject.id, self._holder, lambda text: stream.line("drive", text=text))
        stream.line("begin", node=device.node, touched=touched, wall=time.time())
        try:
            if verify_only:
                self._look_for_proof()
            if verify_only or self._load(device):
                self._verify(device)
        finally:
            if not device.close(_END_S):
                stream.line("hung", text=f"an I/O had not ended {_END_S:g} s after the load was told to")

    def _is_back(self) -> bool:
        """Wait for the drive after the bench was down: adapters find their drives one after the other."""
        deadline = time.monotonic() + self._trial.recover_s
        while self._subject.drive() is None:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOG_S)
        return True

    @contextmanager
    def _holder(self) -> Iterator[Mapping[str, str]]:
        trial, subject = self._trial, self._subject
        with subject.hold() as held:
            window, load = held.window(subject.id), trial.load
            first, last = load.first * SECTOR, (load.first + load.sectors) * SECTOR
            if first < window.offset or last > window.offset + window.size:
                raise BadInputError([f"load: found bytes {first} to {last}, expected them in the guard's window"])
            self._spare = (last, window.offset + window.size - last)
            drive = subject.drive()
            if drive is None or not (trial.way and WAYS[trial.way][1].layered):
                yield held
                return
            with layered(held, drive, self._machine, command.run) as nodes:
                yield nodes

    def _load(self, device: HeldDevice) -> bool:
        """Fill, load and fault; whether there is anything to read back."""
        trial, stream = self._trial, self._stream
        self._subject.tell_state("before")
        load = LoadWorkers(trial.load, self._subject.tag, device, stream.tell)
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
        self._subject.tell_state("after")
        return not hung

    def _await_end(self, planned: float) -> float:
        """Keep the load up until the control node has told that its fault ended; by how many seconds that was late.

        A control node with other work may bring its fault about only when the planned time of the load is over.
        """
        trial = self._trial
        spool = self._subject.batch.spool
        told = spool.with_name(f"{spool.name}{ENDED}")
        if told.exists():
            return 0.0
        while not told.exists() and time.monotonic() < planned + trial.recover_s:
            time.sleep(_LOG_S)
        late_s = time.monotonic() - planned
        # some load comes after the fault as well
        time.sleep(max(0.0, trial.load_s - trial.at_s - trial.away_s))
        return late_s

    def _bring_about(self) -> None:
        trial, stream = self._trial, self._stream
        drive = self._subject.drive()
        if drive is None:
            stream.line("fault", phase="failed", text=f"drive {self._subject.id} was not there to aim at")
            return
        stream.line("fault", phase="begin", text=trial.way)
        try:
            ACTS[trial.way](self._aim(drive), self._subject.seen)
        except (StorqualError, OSError) as problem:
            stream.line("fault", phase="failed", text=str(problem))
        else:
            stream.line("fault", phase="end", text=trial.way)

    def _look_for_proof(self) -> None:
        """Of a fault that took the bench down: what it left is looked for on the boot that follows."""
        trial, stream = self._trial, self._stream
        after = AFTER.get(trial.way)
        drive = self._subject.drive()
        if after is None or drive is None:
            return
        try:
            after(self._aim(drive), self._subject.seen)
        except (StorqualError, OSError) as problem:
            stream.line("fault", phase="failed", text=str(problem))

    def _aim(self, drive: SysfsDrive) -> Aim:
        trial, subject = self._trial, self._subject
        return Aim(
            self._machine,
            command.run,
            drive,
            trial.away_s,
            trial.recover_s,
            self._spare,
            subject.tag.hex(),
            subject.state_dir,
        )

    def _follow_log(self) -> None:
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
        trial = self._trial
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
        found: list[list[Any]] = []
        wrong: set[int] = set()
        for first, sectors in parts:
            for one in read_region(descriptor, self._subject.tag, first, sectors, chunk):
                found.append(list(one))
                if self._loaded is not None:
                    wrong.update(self._loaded.doubtful(*one))
                if len(found) >= _MOST_FOUND:
                    self._stream.line("found", turn=turn, runs=found)
                    found = []
        self._stream.line("found", turn=turn, runs=found, whole=True)
        return wrong
