# SPDX-License-Identifier: Apache-2.0
"""One trial on the bench, from the fill to what was read back. All that it knows goes to its stream as it happens."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count, cycle
from typing import Any, Collection, Iterator, Mapping, Sequence

from ..data.faults import WAYS
from ..host.kernel_log import KernelLog
from ..host.sysfs import SysfsDrive, read_drives
from ..kit import command
from ..kit.errors import BadInputError, StorqualError, ToolError
from .bench_faults import ACTS, AFTER, missing
from .drive_faults import Aim, layered
from .enquiries import ORDER, Enquirer
from .integrity_load import DRIVE_SHIFT, READ, IntegrityRequest, KnownSectors, LoadWorkers, problem_of
from .load_layers import layer_on
from .load_levels import FIRST_LAYER, LAYERS, QueueLimits, read_limits
from .load_sweep import Sweep
from .requests import TrialRequest
from .scsi_command import LackingError
from .sectors import MOST_SECTORS, SECTOR, read_region
from .subject import HeldDevice, OpenPath, TurnSubject

_LOG_S = 0.2
_END_S = 60.0
_HUNG_S = 120.0
"""So long an I/O of a sweep may take: the kernel's timeout of 30 s, and what error handling goes through after it."""
_OTHER_SECTORS = 48
_LONG_SECTORS = 1024
_LAYER_BLOCK = 8
_ENQUIRY_S = 0.002
"""Between two enquiries while a drive is busy."""
_LOOKS = 4
_MOST_AGAIN = 4096
_MOST_FOUND = 500
ENDED = ".ended"
"""What the name of a stream is followed by in that of the file which says that the control node's fault has ended."""


@dataclass(frozen=True)
class _Written:
    """What is read back in the end: the drive, what is known of it, its parts, the tag and number of its sectors."""

    device: HeldDevice | OpenPath
    ledger: KnownSectors
    parts: Sequence[tuple[int, int]]
    tag: bytes
    shift: int = 0


class TrialRun:
    """One trial under way."""

    def __init__(self, subject: TurnSubject, trial: TrialRequest) -> None:
        self._subject, self._trial = subject, trial
        self._stream, self._machine = subject.stream, subject.machine
        self._ended = threading.Event()
        self._spare = (0, 0)
        self._window = (0, 0)
        self._limits = QueueLimits()
        self._ledger: KnownSectors | None = None

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
            if trial.load.sweep is not None:
                self._sweep(device)
            elif verify_only or self._load(device):
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
            self._window = (window.offset // SECTOR, (window.offset + window.size) // SECTOR)
            drive = subject.drive()
            if drive is not None:
                self._limits = read_limits(self._machine, drive)
            if drive is None or not (trial.way and WAYS[trial.way][1].layered):
                yield held
                return
            with layered(held, drive, self._machine, command.run) as nodes:
                yield nodes

    def _load(self, device: HeldDevice) -> bool:
        """Fill, load and fault; whether there is anything to read back."""
        trial, stream = self._trial, self._stream
        self._subject.tell_state("before")
        # a command that the fault ends the kernel would not send again
        limits = self._limits
        sends_fua = limits.scsi and limits.fua and trial.cuts_power
        load = LoadWorkers(trial.load, self._subject.tag, device, stream.tell, limits.block, sends_fua=sends_fua)
        self._ledger = load.ledger
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
        self._subject.tell_state("after", hung=hung)
        return not hung

    def _await_end(self, planned: float) -> float:
        """Keep the load up until the control node has told that its fault ended; by how many seconds that was late.

        A control node with other work may bring its fault about only when the planned time of the load is over.
        """
        trial = self._trial
        spool = self._subject.batch.spool
        marker = spool.with_name(f"{spool.name}{ENDED}")
        if marker.exists():
            return 0.0
        while not marker.exists() and time.monotonic() < planned + trial.recover_s:
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
            ACTS[trial.way](self._aim(drive), self._subject.report)
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
            after(self._aim(drive), self._subject.report)
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

    def _sweep(self, device: HeldDevice) -> None:
        """The load is the test: it is gone through, drives beside this one are busy for a while, all is read back."""
        trial, stream, subject = self._trial, self._stream, self._subject
        request = trial.load.sweep
        assert request is not None  # noqa: S101 - the caller asks only where there is one
        self._subject.tell_state("before")
        numbers = count(1)
        sweep = Sweep(
            *(trial.load, request, self._limits, self._window, subject.tag, stream.tell, stream.line, numbers)
        )
        log = threading.Thread(target=self._follow_log, daemon=True, name="kernel-log")
        log.start()
        stream.line("loading")
        stream.line("fault", phase="begin", text=trial.way)
        for name in request.layers:
            self._layer(name, device, numbers)
        if self._is_hung(sweep, device):
            stream.send()
            return
        if device.lost:
            stream.line("lost", text="the drive went away during the load")
            device.give_up()
        stream.send()
        with ExitStack() as stack:
            written = [_Written(device, sweep.ledger, sweep.parts, subject.tag)]
            # a drive that fails has nothing to keep others busy with
            hung = not device.lost and self._crowd(device, stack, written, numbers)
            subject.report("swept", f"{len(request.rows)} rows, {len(request.commands)} commands")
            stream.line("fault", phase="end", text=trial.way)
            self._ended.set()
            log.join()
            subject.tell_state("after")
            if not hung:
                self._read_all(written)

    def _layer(self, name: str, device: HeldDevice, numbers: Iterator[int]) -> None:
        """Load something of the kernel's own on top of the drive, and read it back. Raises GuardRefusalError."""
        stream, subject, load = self._stream, self._subject, replace(self._trial.load, first=0)
        drive, number = subject.drive(), FIRST_LAYER + LAYERS.index(name)
        shift, size = number << DRIVE_SHIFT, load.sectors * SECTOR
        tag = subject.tag[:-1] + bytes((subject.tag[-1] ^ number,))

        def tell(kind: str, sequence: int, sector: int, *rest: int) -> None:
            stream.tell(kind, sequence, sector + shift, *rest)

        if drive is None:
            return
        try:
            with device.away(), subject.hold() as held, ExitStack() as stack:
                path = stack.enter_context(layer_on(name, held, drive, self._machine, command.run, size))
                opened = OpenPath(path)
                stack.callback(opened.close)
                # blocks of 4096 bytes are what every layer takes past the cache
                workers = LoadWorkers(load, tag, opened, tell, _LAYER_BLOCK, numbers)
                hung = bool(workers.fill()) or self._busy([workers])
                if not hung:
                    self._read_all([_Written(opened, workers.ledger, workers.ledger.extents, tag, shift)])
            stream.line("rows", rows=[[0, ["layer", name, "read back"], 0, 1]])
        except LackingError as lacking:
            stream.line("lacks", what=f"layer {name}", why=str(lacking))
        except (ToolError, OSError) as problem:
            stream.line("fault", phase="failed", text=f"{name} on top of the drive: {problem}")

    def _busy(self, crowd: Sequence[LoadWorkers]) -> bool:
        """Let loads go on at the same time for the time of the trial; whether one of them hung."""
        for workers in crowd:
            workers.start()
        time.sleep(self._trial.load_s)
        ended = [workers.stop(_END_S) for workers in crowd]
        hung = not all(ended)
        if hung:
            self._stream.line("hung", text=f"an I/O had not ended {_END_S:g} s after the load was told to")
        self._stream.send()
        return hung

    def _is_hung(self, sweep: Sweep, device: HeldDevice) -> bool:
        """Run the sweep; whether one of its I/Os never ended, which is told and leaves the drive in use."""
        raised: list[Exception] = []
        descriptor = device.use()

        def run() -> None:
            try:
                sweep.run(descriptor, self._machine, self._trial.load.seed)
            except Exception as problem:  # noqa: BLE001 - raised by the thread that waits for this one
                raised.append(problem)

        thread = threading.Thread(target=run, daemon=True, name="sweep")
        thread.start()
        while thread.is_alive():
            thread.join(_LOG_S)
            if sweep.waits_s() > _HUNG_S:
                self._stream.line("hung", text=f"an I/O of the load had not ended after {_HUNG_S:g} s")
                return True
        device.done(sweep.failed_with)
        if raised:
            raise raised[0]
        return False

    def _crowd(self, device: HeldDevice, stack: ExitStack, written: list[_Written], numbers: Iterator[int]) -> bool:
        """Workers on this drive and on those beside it at once; whether one of them hung."""
        trial, stream, subject = self._trial, self._stream, self._subject
        load = trial.load
        sweep = load.sweep
        drives: list[str] = []
        crowd = [LoadWorkers(load, subject.tag, device, stream.tell, self._limits.block, numbers)]
        written.append(_Written(device, crowd[0].ledger, crowd[0].ledger.extents, subject.tag))
        for number, drive in enumerate(sweep.beside if sweep else (), start=1):
            try:
                beside, block, drive_load = self._beside(drive, load)
            except (StorqualError, OSError) as refusal:
                stream.line("lacks", what=f"drive {drive} at the same time", why=str(refusal))
                continue
            stack.callback(beside.close, _END_S)
            drives.append(drive)
            tag, shift = subject.tag[:-1] + bytes((subject.tag[-1] ^ number,)), number << DRIVE_SHIFT

            def tell(kind: str, sequence: int, sector: int, *rest: int, shift: int = shift) -> None:
                stream.tell(kind, sequence, sector + shift, *rest)

            crowd.append(LoadWorkers(replace(drive_load, seed=load.seed + number), tag, beside, tell, block, numbers))
            written.append(_Written(beside, crowd[-1].ledger, crowd[-1].ledger.extents, tag, shift))
        with self._enquiring(device):
            hung = not any(workers.fill() for workers in crowd) and self._busy(crowd)
        busy = {subject.id, *drives}
        adapters = {disk.adapter for disk in read_drives(self._machine) if disk.id in busy}
        words = ["together", f"{len(busy)} drives", f"adapters: {len(adapters)}"]
        stream.line("rows", rows=[[0, words, 0, 1]])
        if len(adapters) < 2:
            stream.line("lacks", what="drives of two adapters at the same time", why="no other adapter is under test")
        return hung

    @contextmanager
    def _enquiring(self, device: HeldDevice) -> Iterator[None]:
        """Meanwhile the drive is asked what monitoring asks, in turn; what it lacks the sweep has told."""
        if not self._limits.scsi:
            yield
            return
        sweep = self._trial.load.sweep
        refused = sweep is None or sweep.enquiries == "all"
        enquirer = Enquirer(device.use(), lambda _what, _why: None, refused=refused)
        over = threading.Event()

        def ask() -> None:
            for number, name in cycle([(ORDER.index(name), name) for name in enquirer.names]):
                if over.wait(_ENQUIRY_S):
                    return
                begin, problem = time.monotonic_ns(), 0
                try:
                    enquirer.ask(name)
                except OSError as failure:
                    problem = problem_of(READ, failure)
                self._stream.tell(READ, 0, number, 0, begin, time.monotonic_ns(), problem)

        thread = threading.Thread(target=ask, daemon=True, name="enquiries")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(_END_S)
            device.done(0)

    def _beside(self, drive: str, load: IntegrityRequest) -> tuple[HeldDevice, int, IntegrityRequest]:
        """A further drive, held and open, its block, and the load in its window. Raises StorqualError, OSError."""
        subject = self._subject
        extents: list[tuple[int, int]] = []

        @contextmanager
        def holder() -> Iterator[Mapping[str, str]]:
            with subject.hold(drive) as held:
                window = held.window(drive)
                extents[:] = [(window.offset // SECTOR, (window.offset + window.size) // SECTOR)]
                yield held

        device = HeldDevice(drive, holder)
        seen = next((disk for disk in read_drives(self._machine) if disk.id == drive), None)
        block = read_limits(self._machine, seen).block if seen else 1
        ((first, end),) = extents
        if first + load.sectors > end:
            device.close(_END_S)
            raise StorqualError(f"drive {drive} has no room for the load")
        middle = load.first if first <= load.first <= end - load.sectors else (first + 7) // 8 * 8
        return device, block, replace(load, first=middle)

    def _verify(self, device: HeldDevice) -> None:
        """Read all back, twice: a second reading that is right where the first was not tells a stale read.

        The second is made of other commands than the first, or what is wrong at every n-th would be so twice. What is
        wrong in both all the same is read again sector by sector, as long as that brings something else.
        """
        load = self._trial.load
        ledger = self._ledger or KnownSectors(())
        self._read_all([_Written(device, ledger, [(load.first, load.sectors)], self._subject.tag)])

    def _read_all(self, written: Sequence[_Written]) -> None:
        wrong = self._read_back(written, 1, MOST_SECTORS if self._trial.load.sweep is None else _LONG_SECTORS)
        if self._trial.load.sweep is None:
            wrong &= self._read_back(written, 2, _OTHER_SECTORS)
        # the rows of a sweep were read back by all ways as they were written: only what is wrong now is read again
        wrong = set(sorted(wrong)[:_MOST_AGAIN])
        for turn in range(2 if self._trial.load.sweep else 3, 3 + _LOOKS):
            left = wrong & self._read_back(written, turn, self._limits.block, wrong) if wrong else wrong
            if left == wrong:
                break
            wrong = left

    def _read_back(self, written: Sequence[_Written], turn: int, chunk: int, only: Collection[int] = ()) -> set[int]:
        """Read all parts, or some sectors, and tell them; the sectors that are not what was written last."""
        runs: list[list[Any]] = []
        wrong: set[int] = set()
        whole = True
        for area in written:
            if area.device.lost:
                whole = False
                continue
            descriptor = area.device.use()
            try:
                for first, count_of in self._parts(area, only):
                    for run in read_region(descriptor, area.tag, first, count_of, chunk, self._limits.block):
                        runs.append([run[0] + area.shift, *run[1:]])
                        wrong.update(sector + area.shift for sector in area.ledger.doubtful(*run))
                        if len(runs) >= _MOST_FOUND:
                            self._stream.line("found", turn=turn, runs=runs)
                            runs = []
            finally:
                area.device.done(0)
        self._stream.line("found", turn=turn, runs=runs, **({"whole": True} if whole else {}))
        return wrong

    def _parts(self, written: _Written, only: Collection[int]) -> Iterator[tuple[int, int]]:
        """Its parts, or the blocks of some sectors of it."""
        if not only:
            yield from written.parts
            return
        block = self._limits.block
        sectors = {sector - written.shift for sector in only if sector >> DRIVE_SHIFT == written.shift >> DRIVE_SHIFT}
        yield from ((first, block) for first in sorted({sector // block * block for sector in sectors}))
