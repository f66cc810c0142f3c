# SPDX-License-Identifier: Apache-2.0
"""Faults by rules of scsi_debug: commands that never come back, answers of its drive, aborts and resets that fail.

The driver counts a rule down each time that it acts, so a rule at 0 acted as often as it was told to. What the kernel
does next its error handler logs, which is told to while a fault lasts. What is changed meanwhile is noted in /run,
where the note is as lasting as the change: until the next boot.
"""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, Mapping, Sequence

from ..host.kernel_log import KernelLog
from ..kit.errors import ToolError
from ..kit.machine import write_attribute
from .aim import Aim, Tell

RULES = "/sys/kernel/debug/scsi_debug/{hctl}/error"
"""The rules of a drive; kernels before 6.7 have no such file."""
MEMORY = "/run/storqual-rules"
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
class Rule:
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
        """What takes it away."""
        return f"- {self.kind} {self.command:#x}"


def read_rules(text: str) -> Mapping[tuple[int, int], int]:
    """How often each rule is still to act, by kind and command. Raises ToolError for a line that is no rule."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if not words or words[0] == "Type":
            continue
        try:
            found[int(words[0]), int(words[2], 16)] = -int(words[1])
        except (ValueError, IndexError):
            raise ToolError(f"scsi_debug has a rule that cannot be read: {line!r}") from None
    return found


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
        if not drive.adapter.startswith("pseudo/"):
            raise ToolError(f"drive {drive.id} is on the adapter at {drive.adapter}, which is not scsi_debug")
        rules = RULES.format(hctl=drive.hctl)
        if not aim.machine.exists(rules):
            raise ToolError(f"{rules} is not there: this kernel's scsi_debug takes no rules")
        target = f"/sys/kernel/debug/scsi_debug/target{drive.hctl.rpartition(':')[0]}/fail_reset"
        return cls(aim, rules, target, f"/sys/block/{drive.name}/device")

    def left(self) -> Mapping[tuple[int, int], int]:
        """The rules as they are."""
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
        """One attribute."""
        write_attribute(self.aim.machine.path(path), value)


def by_rules(
    *rules: Rule, then: str = "", target_fails: bool = False, offline: bool = False
) -> Callable[[Aim, Tell], None]:
    """The way that has these rules act until each has acted as often as it says.

    `then` is the step of the kernel's recovery that must follow, as its log has it; `target_fails` has every
    reset of the target fail; `offline` is where the kernel is to give the drive up. It is brought back here.
    """

    def way(aim: Aim, tell: Tell) -> None:
        drive = _Drive.of(aim)
        for kind, command in drive.left():
            # of a trial that was cut short: they would act in this one
            drive.write(drive.rules, Rule(kind, command, 0).removal)
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
            _await(aim, lambda: all(drive.left().get(name) == 0 for name in names), "the rules did not all act")
            tell("counted", ", ".join(f"{rule.times} of {rule.times}" for rule in rules) + " times the rules acted")
            if then:
                _await(aim, lambda: _logged(log, then), f"the kernel did not tell of {then!r}")
                tell("escalated", f"the kernel's log has {then!r}")
            _await(aim, lambda: drive.host_state == "running", "the kernel's recovery did not end")
            given_up = drive.state == "offline"
            if given_up:
                tell("offline", f"the kernel took {aim.drive.name} offline")
                time.sleep(aim.away_s)
        left = "; ".join(_told(drive)) or "no rules"
        if drive.left() or drive.state != "running":
            raise ToolError(f"{aim.drive.name} is {drive.state}, scsi_debug has {left}")
        if given_up and not offline:
            raise ToolError(f"the kernel took {aim.drive.name} offline; it was set running again")
        tell("running", f"{aim.drive.name} is running, scsi_debug has {left}")

    return way


def _told(drive: _Drive) -> list[str]:
    """The rules that there are, as sentences."""
    return [f"rule {kind} {command:#x} to act {times} times" for (kind, command), times in drive.left().items()]


def _logged(log: KernelLog, text: str) -> bool:
    """Whether the kernel has logged that since the last look. Raises ToolError when its log cannot be read."""
    if log.reason:
        raise ToolError(log.reason)
    return any(text in record.text for record in log.read() if record.from_kernel)


@contextmanager
def _put_right(drive: _Drive, rules: Sequence[Rule], changed: Mapping[str, str]) -> Iterator[None]:
    """Change attributes for a while; then no rule is left, attributes are as they were, and the drive is running."""
    machine = drive.aim.machine
    former = {path: machine.text(path) for path in changed}
    back = [(drive.rules, rule.removal) for rule in rules] + [*former.items(), (f"{drive.device}/state", "running")]
    memory = Path(machine.path(MEMORY))
    # it is needed no longer than the kernel runs
    memory.write_text("".join(f"{path} {value}\n" for path, value in back), encoding="ascii")
    try:
        for path, value in changed.items():
            drive.write(path, value)
        yield
    finally:
        for kind, command in drive.left():
            drive.write(drive.rules, Rule(kind, command, 0).removal)
        for path, value in former.items():
            drive.write(path, value)
        if drive.state != "running":
            drive.write(f"{drive.device}/state", "running")
        memory.unlink()


def _await(aim: Aim, seen: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + aim.limit_s
    while not seen():
        if time.monotonic() > end:
            raise ToolError(f"{what} within {aim.limit_s:g} s")
        time.sleep(_LOOK_S)


_BUSY, _TASK_SET_FULL, _CHECK_CONDITION = (0x08, 0, 0, 0), (0x28, 0, 0, 0), 0x02
_LOST_WRITE = Rule(_LOST, _WRITE, 1)
_NO_ABORT, _NO_LUN_RESET = Rule(_FAILED_ABORT, _ANY, 1), Rule(_FAILED_LUN_RESET, _ANY, 1)


def _silent(times: int) -> Rule:
    """The drive does not answer when the kernel looks whether a reset has helped."""
    return Rule(_LOST, _READY, times)


RULE_ACTS: Mapping[str, Callable[[Aim, Tell], None]] = {
    "rule_busy": by_rules(Rule(_ANSWERED, _WRITE, 16, _BUSY)),
    "rule_task_set_full": by_rules(Rule(_ANSWERED, _WRITE, 16, _TASK_SET_FULL)),
    # unrecovered read error; peripheral device write fault; internal target failure: none is tried again
    "rule_read_error": by_rules(Rule(_ANSWERED, _READ, 4, (_CHECK_CONDITION, 0x3, 0x11, 0x00))),
    "rule_write_error": by_rules(Rule(_ANSWERED, _WRITE, 4, (_CHECK_CONDITION, 0x4, 0x03, 0x00))),
    "rule_flush_error": by_rules(Rule(_ANSWERED, _FLUSH, 2, (_CHECK_CONDITION, 0x4, 0x44, 0x00))),
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
