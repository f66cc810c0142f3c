# SPDX-License-Identifier: Apache-2.0
"""The drive of a trial or a program: who may be reached from it, the guard's hold on it, its state, its open node.

A reset of a bus or an adapter is felt by every drive behind it, whatever drive it was aimed at. So each scope is
first turned into the drives it touches (`host/reach.py`, as for any step that erases or takes away), and all of them
must be claimed, unused by others, and none of the system's.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from contextlib import contextmanager, suppress
from typing import Callable, Collection, ContextManager, Iterator, Mapping, Sequence

from ..guard.claims import Claim, read_claims
from ..guard.hold import STATE_DIR, Hold, check, hold
from ..host.fabric import read_drive_paths
from ..host.in_use import system_disks
from ..host.reach import functions_of, functions_reached, reached
from ..host.sysfs import SysfsDrive, read_drives
from ..kit import command
from ..kit.command import Runner
from ..kit.errors import GuardRefusalError, StorqualError
from ..kit.machine import Machine
from .batch_file import Batch
from .spool import Stream
from .state import read_state

_BRIDGE, _STORAGE = "0x0604", ("0x01", "0x0c04")
"""What the class of a PCI function begins with."""


def aimed_at(drives: Sequence[SysfsDrive], drive: str, adapter: str) -> SysfsDrive | None:
    """The drive of that id; of several paths to it the one through the PCI function `adapter`."""
    paths = [path for path in drives if path.id == drive]
    return min(paths, key=lambda path: path.adapter != adapter) if paths else None


def _other_functions(machine: Machine, drives: Sequence[SysfsDrive], pci: str, scope: str) -> list[str]:
    """What else is reached: no bridge, no adapter with drives and no storage function of the same card."""
    with_drives = {name for drive in drives for name in functions_of(machine, drive)}
    card, others = pci.rpartition(".")[0], []
    for name in functions_reached(machine, pci, scope):
        known = (_BRIDGE, *_STORAGE) if name.rpartition(".")[0] == card else (_BRIDGE,)
        if name not in with_drives and not machine.text(f"/sys/bus/pci/devices/{name}/class").startswith(known):
            others.append(name)
    return others


def refuse_beyond(
    machine: Machine,
    claims: Sequence[Claim],
    *,
    drive: str,
    adapter: str,
    scope: str,
    state_dir: str = STATE_DIR,
    runner: Runner | None = None,
) -> list[str]:
    """The ids of the drives that the fault may touch. Raises GuardRefusalError with every reason against it.

    `drive` is aimed at, `adapter` is the PCI function under test, `claims` are all claims of the bench.
    """
    drives = read_drives(machine)
    aimed = aimed_at(drives, drive, adapter)
    if aimed is None:
        raise GuardRefusalError([f"drive {drive}: it is not on the bench; no fault is aimed at it"])
    refusals = []
    if aimed.adapter != adapter:
        refusals.append(f"drive {drive}: it is behind {aimed.adapter or 'no PCI function'}, {adapter} is under test")
    touched = [each.drive for each in reached(machine, drives, aimed, scope)]
    # the controllers of an NVMe namespace are its paths, and one disk for the kernel
    paths = sum(len(read_drive_paths(machine, disk.name)) or 1 for disk in drives if disk.id == drive)
    if scope == "path" and paths < 2:
        refusals.append(f"drive {drive}: it has no path beside the one through {adapter}, which would be all of it")
    if scope in ("link", "slot"):
        refusals += [
            f"PCI function {name}: it is no adapter under test, and a fault of the {scope} would reach it"
            for name in _other_functions(machine, drives, adapter, scope)
        ]
    system = system_disks(machine, state_dir)
    claimed = {claim.id: claim for claim in claims}
    for disk in touched:
        if disk.name in system:
            refusals.append(f"drive {disk.id}: it {system[disk.name]}, and a fault of the {scope} would reach it")
        if disk.id not in claimed:
            refusals.append(f"drive {disk.id}: it is not claimed, and a fault of the {scope} would reach it")
    ids = list(dict.fromkeys(disk.id for disk in touched))
    touched_claims = [claimed[name] for name in ids if name in claimed]
    refusals += [
        str(refusal)
        for refusal in check(touched_claims, purpose="settings", state_dir=state_dir, machine=machine, runner=runner)
    ]
    if refusals:
        raise GuardRefusalError(list(dict.fromkeys(refusals)))
    return ids


class TurnSubject:
    """The drive that a turn is about, behind its adapter: who may be reached, its hold, its state; and the stream."""

    def __init__(self, batch: Batch, stream: Stream, machine: Machine) -> None:
        attempt = batch.attempt
        assert attempt is not None  # noqa: S101 - the reader of a streamed batch has refused one without
        self.turn = next(turn for turn in batch.on_drives if turn.id == attempt.turn)
        self.part, self.tag = attempt.part, attempt.tag
        self.batch, self.stream, self.machine = batch, stream, machine
        self.state_dir = str(batch.state_dir)

    @property
    def id(self) -> str:
        return self.turn.drive

    @property
    def pci(self) -> str:
        return self.turn.request.pci

    def drive(self) -> SysfsDrive | None:
        """The drive as the kernel has it now."""
        return aimed_at(read_drives(self.machine), self.id, self.pci)

    def refuse_beyond(self, scope: str) -> list[str]:
        """The drives that a fault of that scope touches. Raises GuardRefusalError with every reason against it."""
        # how far it reaches is found here, and may be behind other adapters
        claims = self._claims(self.batch.targets)
        return refuse_beyond(
            self.machine, claims, drive=self.id, adapter=self.pci, scope=scope, state_dir=self.state_dir
        )

    @contextmanager
    def hold(self, drive: str = "") -> Iterator[Hold]:
        """The guard's hold on its drive, or on another one of the batch. Raises GuardRefusalError."""
        claims = self._claims((drive or self.id,))
        with hold(
            claims, purpose="write", state_dir=self.state_dir, run=self.batch.run, machine=self.machine
        ) as held:
            yield held

    def _claims(self, names: Collection[str]) -> tuple[Claim, ...]:
        return read_claims({name: self.batch.targets[name] for name in names})

    def tell_state(self, when: str, *, hung: bool = False) -> None:
        """Tell the state of the adapter's drives, `before` or `after`; a drive that hung is sent no command."""
        aimed = "" if hung else self.id
        self.stream.line("state", when=when, state=read_state(self.machine, self.pci, command.run, aimed))

    def report(self, what: str, text: str) -> None:
        self.stream.line("seen", seen=what, text=text)


_GONE = (errno.ENXIO, errno.ENODEV, errno.EBADF, errno.ENOENT)
_AGAIN_S = 0.3

Holder = Callable[[], ContextManager[Mapping[str, str]]]
"""Takes the guard's hold on the trial's drive; raises GuardRefusalError while the drive is not there."""


class OpenPath:
    """A device or a file on a held drive, open past the cache, that several workers use; it does not go away."""

    lost = False

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)

    def use(self) -> int:
        return self._descriptor

    def done(self, problem: int) -> None:
        pass

    def close(self) -> None:
        os.close(self._descriptor)


class HeldDevice:
    """One drive that several workers use. When it has gone all wait until it is held again, or until they give up.

    Nobody writes without a hold: it is taken again, with all decisions of the guard, before the drive is opened,
    because what comes back under a name may be another drive.
    """

    def __init__(self, drive: str, holder: Holder, listener: Callable[[str], None] = lambda _text: None) -> None:
        self._drive, self._holder, self._told = drive, holder, listener
        self._turn = threading.Condition()
        self._users = 0
        self._lost = False
        self._gave_up = threading.Event()
        self._hold: ContextManager[Mapping[str, str]] | None = None
        self._descriptor = -1
        self._number = ""
        self.node = ""
        self._open()

    def _open(self) -> None:
        """Take the hold and open the drive. Raises GuardRefusalError, OSError."""
        hold = self._holder()
        node = hold.__enter__()[self._drive]
        try:
            self._descriptor = os.open(node, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
        except OSError:
            hold.__exit__(None, None, None)
            raise
        status = os.fstat(self._descriptor)
        self._number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}" if status.st_rdev else ""
        self._hold, self.node = hold, node

    def use(self) -> int:
        with self._turn:
            while self._lost and not self._gave_up.is_set():
                if self._users == 0:
                    self._reopen()
                else:
                    self._turn.wait(_AGAIN_S)
            self._users += 1
            return self._descriptor

    def done(self, problem: int) -> None:
        """Give it back; `problem` is the errno of the I/O."""
        with self._turn:
            self._users -= 1
            if problem and not self._lost and self._is_gone(problem):
                self._lost = True
                self._told("gone")
            self._turn.notify_all()

    def _is_gone(self, problem: int) -> bool:
        if problem in _GONE:
            return True
        return bool(self._number) and not os.path.exists(f"/sys/dev/block/{self._number}")  # noqa: PTH110

    def _reopen(self) -> None:
        """Let go and try to take it again; the caller holds the turn and nobody uses the drive."""
        self._let_go()
        try:
            self._open()
        except (StorqualError, OSError):
            self._turn.wait(_AGAIN_S)
            return
        self._lost = False
        self._told("opened again")

    def _let_go(self) -> None:
        if self._descriptor >= 0:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1
        if self._hold is not None:
            self._hold.__exit__(None, None, None)
            self._hold = None

    @contextmanager
    def away(self) -> Iterator[None]:
        """Let go of it for what must hold it itself, and take it again. Raises GuardRefusalError, OSError."""
        with self._turn:
            self._let_go()
            try:
                yield
            finally:
                self._open()

    @property
    def lost(self) -> bool:
        return self._lost

    def give_up(self) -> None:
        """Wait for the drive no longer: I/Os fail from now on while it is away."""
        self._gave_up.set()

    def close(self, limit_s: float) -> bool:
        """Let go of everything; False when an I/O under way did not end within `limit_s` seconds."""
        self.give_up()
        end = time.monotonic() + limit_s
        with self._turn:
            while self._users and time.monotonic() < end:
                self._turn.wait(_AGAIN_S)
            if self._users:
                return False
            self._let_go()
            return True
