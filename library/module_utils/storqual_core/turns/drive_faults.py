# SPDX-License-Identifier: Apache-2.0
"""Faults of a drive that the bench makes: bad sectors, failing writes, aborted commands, rules of scsi_debug.

They lie beside the load's region, within the guard's window: what was acknowledged to the load stays readable, so
none of its I/Os may fail. They are written before they are marked, which also puts right what was left by a bench
that went down in the middle of an earlier trial.

What fails lies above the driver. The load and the oracle meet the error, the driver and the adapter do not, so no
plan takes this way by itself: a suite names it.

The kernel ends timeouts once a second, so each second all reads under way are aborted at once. I/Os of the load have
their own timeout and none of them is aborted; what a driver does to them meanwhile is what is tried. Each read goes
through the drive's sg node, which takes a timeout for one command and tells how it ended as the SCSI midlayer says.

The driver counts a rule down each time that it acts, so a rule at 0 acted as often as it was told to. What the kernel
does next its error handler logs, which is told to while a fault lasts. What is changed meanwhile is noted in /run,
where the note is as lasting as the change: until the next boot.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
import time
from collections import Counter
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, Mapping, Protocol, Sequence

from ..guard.hold import STATE_DIR
from ..host.kernel_log import KernelLog
from ..host.sysfs import SysfsDrive
from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.machine import Machine, write_attribute
from ..kit.waiting import await_seen
from ..tools import dmsetup, nvme, sg3
from .scsi_command import TIMED_OUT, read_blocks

Tell = Callable[[str, str], None]
"""Takes what was seen (`drive_gone`, `drive_back`, `read_back` …) and a sentence."""


@dataclass(frozen=True)
class Aim:
    """What a fault is aimed at, as it is now; `away_s` is how long a thing stays away or changed.

    `spare` is the first byte and the length of what the guard lets be written and the load leaves alone: from there,
    and from nowhere else, a fault takes sectors that it writes to. `tag` is of this trial alone.
    """

    machine: Machine
    runner: Runner
    drive: SysfsDrive
    away_s: float
    limit_s: float
    spare: tuple[int, int] = (0, 0)
    tag: str = ""
    state_dir: str = STATE_DIR


_LEAST_BYTES = 4096
_AGAIN_S = 0.05
_UNREADABLE = (errno.EIO, errno.ENODATA)
"""What a read of a sector ends with that the drive does not give out: ENODATA where the kernel knows that it is the
medium, EIO where the driver does not tell it."""


class Sectors:
    """A device node, opened past the page cache. Raises ToolError when it is another device than that of `number`.

    The guard holds the drive meanwhile: the load of the same trial does.
    """

    def __init__(self, machine: Machine, node: str, number: str = "") -> None:
        try:
            self._descriptor = os.open(machine.path(node), os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
        except OSError as problem:
            raise ToolError(f"{node} cannot be opened: {problem.strerror}") from problem
        device = machine.opened(self._descriptor) if number else ""
        if device != number:
            self.close()
            raise ToolError(f"{node} is device {device} now, {number} was aimed at")

    @property
    def path(self) -> str:
        """Leads to the very device that is open, whatever its node leads to by now."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def read(self, first: int, size: int) -> int:
        """Read `size` bytes at byte `first`; the errno, 0 for none."""
        buffer = mmap.mmap(-1, size)
        try:
            return 0 if os.preadv(self._descriptor, [buffer], first) == size else errno.EIO
        except OSError as problem:
            return problem.errno or errno.EIO

    def write(self, first: int, size: int) -> int:
        """Write zeros; the errno, 0 for none."""
        try:
            return 0 if os.pwritev(self._descriptor, [mmap.mmap(-1, size)], first) == size else errno.EIO
        except OSError as problem:
            return problem.errno or errno.EIO

    def close(self) -> None:
        os.close(self._descriptor)


@dataclass(frozen=True)
class Spot:
    """What is marked: first byte, length, and bytes of a logical block. As much behind it is read beside it."""

    first: int
    size: int
    block: int


Mark = Callable[[Aim, Sectors, Spot], None]


def mark_by_scsi(aim: Aim, sectors: Sectors, spot: Spot) -> None:
    """WRITE LONG with WR_UNCOR, block by block. Raises ToolError."""
    for at in range(spot.first, spot.first + spot.size, spot.block):
        sg3.mark_uncorrectable(aim.runner, sectors.path, at // spot.block)


def mark_by_nvme(aim: Aim, _sectors: Sectors, spot: Spot) -> None:
    """Write Uncorrectable of all blocks at once. Raises ToolError."""
    nvme.write_uncorrectable(aim.runner, aim.drive.node, spot.first // spot.block, spot.size // spot.block)


def find_spot(aim: Aim) -> Spot:
    """Whole physical blocks beside the load's region. Raises ToolError when the guard's window ends before them."""
    queue = f"/sys/block/{aim.drive.name}/queue"
    block = aim.machine.number(f"{queue}/logical_block_size") or 0
    physical = aim.machine.number(f"{queue}/physical_block_size") or 0
    if block < 512:
        raise ToolError(f"{queue}/logical_block_size does not say how long a block of {aim.drive.id} is")
    # a drive with longer physical blocks may mark a whole one
    size = max(_LEAST_BYTES, block, physical)
    begin, length = aim.spare
    first = -(-begin // size) * size
    if first + 2 * size > begin + length:
        raise ToolError(
            f"drive {aim.drive.id} has {length} bytes beside the load that may be written, too few to mark"
        )
    return Spot(first, size, block)


def reads_fail(mark: Mark) -> Callable[[Aim, Tell], None]:
    """The way that marks a spot by `mark`: reads of it fail while it lasts, and no read beside it."""

    def way(aim: Aim, tell: Tell) -> None:
        spot = find_spot(aim)
        sectors = Sectors(aim.machine, aim.drive.node, aim.drive.number)
        try:
            _write(aim, sectors, spot.first, 2 * spot.size)
            _expect_readable(aim, sectors, spot.first, 2 * spot.size, "before anything was marked")
            try:
                mark(aim, sectors, spot)
                tell("marked", f"the drive took {spot.size} bytes at byte {spot.first} for unreadable")
                _read_on(aim, sectors, spot, tell)
            finally:
                _write(aim, sectors, spot.first, spot.size)
            _expect_readable(aim, sectors, spot.first, spot.size, "after they were written anew")
            tell("mended", f"{spot.size} bytes at byte {spot.first} were written anew and can be read")
        finally:
            sectors.close()

    return way


def _read_on(aim: Aim, sectors: Sectors, spot: Spot, tell: Tell) -> None:
    """Read what is marked and what lies beside it, in turns. Raises ToolError when either ends as it must not."""
    end, failed = time.monotonic() + aim.away_s, 0
    while not failed or time.monotonic() < end:
        problem = sectors.read(spot.first, spot.size)
        if problem not in _UNREADABLE:
            how = f"failed with {errno.errorcode.get(problem, problem)}" if problem else "gave data"
            raise ToolError(f"read {failed + 1} of the marked bytes at byte {spot.first} {how}, no medium error")
        if not failed:
            tell("unreadable", f"a read at byte {spot.first} failed with {errno.errorcode[problem]}")
        failed += 1
        _expect_readable(aim, sectors, spot.first + spot.size, spot.size, "beside the marked ones")
        time.sleep(_AGAIN_S)


def _expect_readable(aim: Aim, sectors: Sectors, first: int, size: int, which: str) -> None:
    problem = sectors.read(first, size)
    if problem:
        name = errno.errorcode.get(problem, problem)
        raise ToolError(f"drive {aim.drive.id}: {size} bytes at byte {first}, {which}, cannot be read: {name}")


def _write(aim: Aim, sectors: Sectors, first: int, size: int) -> None:
    problem = sectors.write(first, size)
    if problem:
        name = errno.errorcode.get(problem, problem)
        raise ToolError(
            f"drive {aim.drive.id}: {size} bytes at byte {first} cannot be written: {name}; they may be unreadable"
        )


LAYER = "storqual-layer-"
"""What the name of every layer begins with; one that was left behind is known by it."""
_HOURS_S = 360000


class Held(Protocol):
    """What the guard gives out: a drive can be let go for what must open it exclusively, and taken again."""

    def release(self, drive: str) -> str:
        """Let go of a drive."""

    def retake(self, drive: str) -> str:
        """Take it again; raises GuardRefusalError."""


def layer_node(drive: SysfsDrive) -> str:
    return f"/dev/mapper/{LAYER}{drive.name}"


def _passing(drive: SysfsDrive) -> str:
    return f"0 {drive.identity.size // 512} linear {drive.number} 0"


def _failing(drive: SysfsDrive) -> str:
    # never up, always down; reads go through
    return f"0 {drive.identity.size // 512} flakey {drive.number} 0 0 {_HOURS_S} 1 error_writes"


@contextmanager
def layered(
    held: Held, drive: SysfsDrive, machine: Machine, runner: Runner, table: str = "", *, exclusive: bool = True
) -> Iterator[Mapping[str, str]]:
    """The node of a layer over a drive that is held, by the drive's id, until the block ends.

    The kernel gives the drive to the layer alone, and the layer is opened exclusively here, so that nobody else gets
    hold of either; a layer that is mounted is the mount's instead. Raises ToolError, and GuardRefusalError when the
    drive cannot be taken again.
    """
    node, name = layer_node(drive), f"{LAYER}{drive.name}"
    held.release(drive.id)
    try:
        dmsetup.create_device(runner, name, table or _passing(drive))
        try:
            with _exclusive(machine.path(node)) if exclusive else nullcontext():
                yield {drive.id: node}
        finally:
            dmsetup.remove_device(runner, name)
    finally:
        held.retake(drive.id)


@contextmanager
def _exclusive(path: str) -> Iterator[None]:
    try:
        descriptor = os.open(path, os.O_EXCL | os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        raise ToolError(f"{path} cannot be opened: {problem.strerror}") from problem
    try:
        yield
    finally:
        os.close(descriptor)


def fail_writes(aim: Aim, tell: Tell) -> None:
    """Every write and flush through the layer fails while it lasts, reads do not."""
    name, spot = f"{LAYER}{aim.drive.name}", find_spot(aim)
    sectors = Sectors(aim.machine, layer_node(aim.drive))
    try:
        try:
            dmsetup.load_table(aim.runner, name, _failing(aim.drive))
            if " flakey " in dmsetup.read_table(aim.runner, name):
                tell("inserted", f"writes through {name} fail from now on")
            problem = sectors.write(spot.first, spot.size)
            if problem:
                tell("refused", f"a write at byte {spot.first} failed with {errno.errorcode.get(problem, problem)}")
            time.sleep(aim.away_s)
        finally:
            dmsetup.load_table(aim.runner, name, _passing(aim.drive))
        problem = sectors.write(spot.first, spot.size)
        if problem:
            raise ToolError(f"writes through {name} still fail: {errno.errorcode.get(problem, problem)}")
        tell("taken_again", f"a write at byte {spot.first} was taken")
    finally:
        sectors.close()


_READERS = 16
_READ_BYTES = 128 << 10
_TIMEOUT_MS = 1
_SPREAD = 64
_LEAST = 8
"""So many commands must have been aborted."""


class _Readers:
    """Reads from several threads until their end; `ended` counts them by host status."""

    def __init__(self, descriptor: int, first: int, blocks: int, size: int) -> None:
        self._asked = (descriptor, first, blocks, size)
        self._turn = threading.Lock()
        self.ended: Counter[int] = Counter()
        self.problem = ""

    def read(self, index: int, end: float) -> None:
        """Read one place after the other until `end` of the monotonic clock, or until reads cannot be sent."""
        descriptor, first, blocks, size = self._asked
        turn = index
        while time.monotonic() < end:
            try:
                done = read_blocks(descriptor, first + turn % _SPREAD * blocks, blocks, size, _TIMEOUT_MS)
            except OSError as problem:
                self.problem = problem.strerror or str(problem)
                return
            with self._turn:
                self.ended[done.host] += 1
            turn += _READERS


def abort_many(aim: Aim, tell: Tell) -> None:
    """Raises ToolError when fewer were aborted than make a storm, or a read does not come back."""
    machine, drive = aim.machine, aim.drive
    size = machine.number(f"/sys/block/{drive.name}/queue/logical_block_size") or 512
    place = f"/sys/block/{drive.name}/device/iotmo_cnt"
    descriptor = _open(aim)
    before, end = int(machine.text(place) or "0", 0), time.monotonic() + aim.away_s
    readers = _Readers(descriptor, aim.spare[0] // size, _READ_BYTES // size, size)
    threads = [threading.Thread(target=readers.read, args=(index, end), daemon=True) for index in range(_READERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end + aim.limit_s - time.monotonic()))
    left = sum(thread.is_alive() for thread in threads)
    if left:
        # the descriptor stays open: a read under way still has it
        raise ToolError(f"{left} of {_READERS} reads had not come back {aim.limit_s:g} s after the last was sent")
    os.close(descriptor)
    timed_out, counted = readers.ended[TIMED_OUT], int(machine.text(place) or "0", 0) - before
    sentence = f"{timed_out} of {sum(readers.ended.values())} reads with a timeout of {_TIMEOUT_MS} ms were aborted"
    if min(timed_out, counted) < _LEAST:
        why = f"; {readers.problem}" if readers.problem else ""
        raise ToolError(f"{sentence}, the kernel counted {counted} timeouts, {_LEAST} make a storm{why}")
    tell("aborted", f"{sentence}, the kernel counted {counted} timeouts of drive {drive.id}")


def _open(aim: Aim) -> int:
    """The drive's sg node. Raises ToolError when it is another device by now."""
    path = aim.drive.sg
    if not path:
        raise ToolError(f"drive {aim.drive.id} has no sg node: modprobe sg")
    try:
        descriptor = os.open(aim.machine.path(path), os.O_RDWR | os.O_CLOEXEC)
    except OSError as problem:
        raise ToolError(f"{path} cannot be opened: {problem.strerror}") from problem
    device, known = (
        aim.machine.opened(descriptor),
        aim.machine.text(f"/sys/block/{aim.drive.name}/device/scsi_generic/{path[5:]}/dev"),
    )
    if device != known:
        os.close(descriptor)
        raise ToolError(f"{path} is device {device} now, {known or 'none'} was aimed at")
    return descriptor


RULES = "/sys/kernel/debug/scsi_debug/{hctl}/error"
"""The rules of a drive; kernels before 6.7 have no such file."""
RULES_MEMORY = "/run/storqual-rules"
"""What puts everything back: a line each, the attribute and what is written to it."""
_LOOK_S = 0.05
_SHORT_TIMEOUT = "2"
"""How many seconds a command, or one of the error handler's, may take meanwhile; a bench has 30 and 10."""
_LOGGING, _ERROR_HANDLER = "/proc/sys/dev/scsi/logging_level", "4"
"""The lowest three bits are for the error handler: above 3 it logs each step that it takes."""
_LOST, _ANSWERED, _FAILED_ABORT, _FAILED_LUN_RESET = 0, 2, 3, 4
"""Kinds of rules, as drivers/scsi/scsi_debug.c numbers them."""
_READ, _WRITE, _FLUSH, _READY, _ANY = 0x28, 0x2A, 0x35, 0x00, 0xFF
"""Commands: what a load of the block layer sends to a small drive, TEST UNIT READY, and all."""


@dataclass(frozen=True)
class DebugRule:
    """Something that scsi_debug does with a command, `times` times; `answer` is status and sense (key, ASC, ASCQ)."""

    kind: int
    command: int
    times: int
    answer: tuple[int, ...] = ()

    @property
    def line(self) -> str:
        """What adds it: a count below 0 is counted up by the driver, one above 0 would never end."""
        # host and driver byte of an answer stay 0: it is the drive's
        words = ["0x0", "0x0", *(f"{byte:#x}" for byte in self.answer)] if self.answer else []
        return " ".join([str(self.kind), str(-self.times), f"{self.command:#x}", *words])

    @property
    def removal(self) -> str:
        return f"- {self.kind} {self.command:#x}"


def read_rules(text: str) -> Mapping[tuple[int, int], int]:
    """How often each rule is still to act, by kind and command. Raises ToolError for a line that is no rule."""
    rules = {}
    for line in text.splitlines():
        words = line.split()
        if not words or words[0] == "Type":
            continue
        try:
            rules[int(words[0]), int(words[2], 16)] = -int(words[1])
        except (ValueError, IndexError):
            raise ToolError(f"scsi_debug has a rule that cannot be read: {line!r}") from None
    return rules


@dataclass(frozen=True)
class _Drive:
    """The drive aimed at, as scsi_debug and sysfs show it."""

    aim: Aim
    rules: str
    target: str
    device: str

    @classmethod
    def of(cls, aim: Aim) -> _Drive:
        """Raises ToolError for a drive that is not scsi_debug's, or of a kernel whose scsi_debug takes no rules."""
        drive = aim.drive
        if not drive.adapter.startswith("pseudo/adapter"):
            raise ToolError(f"drive {drive.id} is on the adapter at {drive.adapter}, which is not scsi_debug")
        rules = RULES.format(hctl=drive.hctl)
        if not aim.machine.exists(rules):
            raise ToolError(f"{rules} is not there: this kernel's scsi_debug takes no rules")
        target = f"/sys/kernel/debug/scsi_debug/target{drive.hctl.rpartition(':')[0]}/fail_reset"
        return cls(aim, rules, target, f"/sys/block/{drive.name}/device")

    def left(self) -> Mapping[tuple[int, int], int]:
        return read_rules(self.aim.machine.text(self.rules))

    @property
    def state(self) -> str:
        """`running`, or `offline` when the kernel gave it up."""
        return self.aim.machine.text(f"{self.device}/state")

    @property
    def host_state(self) -> str:
        """`recovery` while the kernel's error handler works, else `running`."""
        return self.aim.machine.text(f"/sys/class/scsi_host/{self.aim.drive.host}/state")

    def write(self, path: str, value: object) -> None:
        write_attribute(self.aim.machine.path(path), value)


def by_rules(
    *rules: DebugRule, then: str = "", target_fails: bool = False, offline: bool = False
) -> Callable[[Aim, Tell], None]:
    """The way that has these rules act until each has acted as often as it says.

    `then` is the step of the kernel's recovery that must follow, as its log has it; `target_fails` has every
    reset of the target fail; `offline` is where the kernel is to give the drive up. It is brought back here.
    """

    def way(aim: Aim, tell: Tell) -> None:
        drive = _Drive.of(aim)
        for kind, command in drive.left():
            # of a trial that was cut short: they would act in this one
            drive.write(drive.rules, DebugRule(kind, command, 0).removal)
        changed = {drive.target: "Y"} if target_fails else {}
        if then:
            changed.update({f"{drive.device}/{name}": _SHORT_TIMEOUT for name in ("timeout", "eh_timeout")})
            changed[_LOGGING] = _ERROR_HANDLER
        with closing(KernelLog()) as log, _put_right(drive, rules, changed):
            for rule in rules:
                drive.write(drive.rules, rule.line)
            names = [(rule.kind, rule.command) for rule in rules]
            if set(names) <= set(drive.left()):
                tell("injected", f"scsi_debug has the rules {'; '.join(rule.line for rule in rules)}")
            await_seen(
                lambda: all(drive.left().get(name) == 0 for name in names), aim.limit_s, "the rules did not all act"
            )
            tell("counted", ", ".join(f"{rule.times} of {rule.times}" for rule in rules) + " times the rules acted")
            if then:
                await_seen(lambda: _logged(log, then), aim.limit_s, f"the kernel did not tell of {then!r}")
                tell("escalated", f"the kernel's log has {then!r}")
            await_seen(lambda: drive.host_state == "running", aim.limit_s, "the kernel's recovery did not end")
            given_up = drive.state == "offline"
            if given_up:
                tell("offline", f"the kernel took {aim.drive.name} offline")
                time.sleep(aim.away_s)
        left = "; ".join(_rules_left(drive)) or "no rules"
        if drive.left() or drive.state != "running":
            raise ToolError(f"{aim.drive.name} is {drive.state}, scsi_debug has {left}")
        if given_up and not offline:
            raise ToolError(f"the kernel took {aim.drive.name} offline; it was set running again")
        tell("running", f"{aim.drive.name} is running, scsi_debug has {left}")

    return way


def _rules_left(drive: _Drive) -> list[str]:
    return [f"rule {kind} {command:#x} to act {times} times" for (kind, command), times in drive.left().items()]


def _logged(log: KernelLog, text: str) -> bool:
    """Whether the kernel has logged that since the last look. Raises ToolError when its log cannot be read."""
    if log.reason:
        raise ToolError(log.reason)
    return any(text in record.text for record in log.read() if record.from_kernel)


@contextmanager
def _put_right(drive: _Drive, rules: Sequence[DebugRule], changed: Mapping[str, str]) -> Iterator[None]:
    """Change attributes for a while; then no rule is left, attributes are as they were, and the drive is running."""
    machine = drive.aim.machine
    former = {path: machine.text(path) for path in changed}
    back = [(drive.rules, rule.removal) for rule in rules] + [*former.items(), (f"{drive.device}/state", "running")]
    memory = Path(machine.path(RULES_MEMORY))
    # it is needed no longer than the kernel runs
    memory.write_text("".join(f"{path} {value}\n" for path, value in back), encoding="ascii")
    try:
        for path, value in changed.items():
            drive.write(path, value)
        yield
    finally:
        for kind, command in drive.left():
            drive.write(drive.rules, DebugRule(kind, command, 0).removal)
        for path, value in former.items():
            drive.write(path, value)
        if drive.state != "running":
            drive.write(f"{drive.device}/state", "running")
        memory.unlink()


_BUSY, _TASK_SET_FULL, _CHECK_CONDITION = (0x08, 0, 0, 0), (0x28, 0, 0, 0), 0x02
_LOST_WRITE = DebugRule(_LOST, _WRITE, 1)
_NO_ABORT, _NO_LUN_RESET = DebugRule(_FAILED_ABORT, _ANY, 1), DebugRule(_FAILED_LUN_RESET, _ANY, 1)


def _silent(times: int) -> DebugRule:
    """The drive does not answer when the kernel looks whether a reset has helped."""
    return DebugRule(_LOST, _READY, times)


RULE_ACTS: Mapping[str, Callable[[Aim, Tell], None]] = {
    "rule_busy": by_rules(DebugRule(_ANSWERED, _WRITE, 16, _BUSY)),
    "rule_task_set_full": by_rules(DebugRule(_ANSWERED, _WRITE, 16, _TASK_SET_FULL)),
    # unrecovered read error; peripheral device write fault; internal target failure: none is tried again
    "rule_read_error": by_rules(DebugRule(_ANSWERED, _READ, 4, (_CHECK_CONDITION, 0x3, 0x11, 0x00))),
    "rule_write_error": by_rules(DebugRule(_ANSWERED, _WRITE, 4, (_CHECK_CONDITION, 0x4, 0x03, 0x00))),
    "rule_flush_error": by_rules(DebugRule(_ANSWERED, _FLUSH, 2, (_CHECK_CONDITION, 0x4, 0x44, 0x00))),
    "rule_lost_write": by_rules(_LOST_WRITE, then="retry aborted command"),
    "rule_failed_abort": by_rules(_LOST_WRITE, _NO_ABORT, then="Sending BDR"),
    "rule_failed_lun_reset": by_rules(_LOST_WRITE, _NO_ABORT, _NO_LUN_RESET, then="Sending target reset"),
    "rule_failed_target_reset": by_rules(
        _LOST_WRITE, _NO_ABORT, _NO_LUN_RESET, then="Sending BRST", target_fails=True
    ),
    # no rule has the reset of a bus fail: it succeeds, as those before it, and the drive is silent all the same
    "rule_failed_bus_reset": by_rules(_LOST_WRITE, _NO_ABORT, _silent(3), then="Sending HRST"),
    "rule_drive_offline": by_rules(_LOST_WRITE, _NO_ABORT, _silent(4), then="Sending HRST", offline=True),
}
"""Where an abort fails, the kernel resets all behind the adapter."""
