# SPDX-License-Identifier: Apache-2.0
"""Power of a named bench, with each step as an event of a run, and how it is told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.bench.reboot import Boot
from storqual.plan.budget import usual_change_s
from storqual.power.switch import (
    REAL_CLOCK,
    BenchEvidence,
    Clock,
    PowerBackend,
    PowerOutcome,
    PowerStep,
    cycle,
    read_power,
    switch_off,
    switch_on,
)
from storqual.run import append_event
from storqual.virtual_bench.power import BOOT_LIMIT_S

Say = Callable[[str], None]
_PATIENCE = 1.5
"""Times the usual time of a boot, after which the next backend is tried."""


def silent(line: str) -> None:
    del line


def usual_boot_limit_s(kind: str, usual_s: float | None = None) -> float:
    """How long a boot may take: one and a half times what is usual of the bench, or of its kind.

    A virtual bench shares the processors of the control node, so its boots vary more than that.
    """
    if usual_s is not None:
        return _PATIENCE * usual_s
    return BOOT_LIMIT_S if kind == "virtual" else _PATIENCE * usual_change_s(kind, "reboot")


@dataclass(frozen=True)
class BenchPower:
    """The power of one bench: its backends in their order, what it shows, and how long a boot of it may take.

    `nmi` sends it an NMI, where a management controller can.
    """

    name: str
    backends: Sequence[PowerBackend]
    evidence: BenchEvidence
    boot_limit_s: float
    clock: Clock = REAL_CLOCK
    nmi: Callable[[], None] | None = None

    def switch(self, action: str, reason: str, *, run: Path | None = None, say: Say = silent) -> PowerOutcome:
        """Read the power (`state`), switch it `on` or `off`, or `cycle` it; told as `cycle_bench` tells."""
        if action == "cycle":
            return cycle_bench(self, reason, run=run, say=say)
        tell = _teller(self.name, run, say)
        if action == "on":
            outcome = switch_on(
                self.backends, self.evidence, boot_limit_s=self.boot_limit_s, tell=tell, clock=self.clock
            )
        else:
            operation = {"off": switch_off, "state": read_power}[action]
            outcome = operation(self.backends, self.evidence, tell=tell, clock=self.clock)
        return _concluded(self.name, action, reason, outcome, run)


def cycle_bench(
    power: BenchPower,
    reason: str,
    *,
    run: Path | None = None,
    off_for_s: float | None = None,
    before: Boot | None = None,
    say: Say = silent,
) -> PowerOutcome:
    """Power-cycle a bench until a new boot answers; `before` is the last boot that is known of it.

    Each step is an event `power_step` of `run`, and `power_switched` says what came of it; steps are also told to
    `say`. `off_for_s` takes the place of what each backend has.
    """
    outcome = cycle(
        power.backends,
        power.evidence,
        off_for_s=off_for_s,
        boot_limit_s=power.boot_limit_s,
        tell=_teller(power.name, run, say),
        before=before,
        clock=power.clock,
    )
    return _concluded(power.name, "cycle", reason, outcome, run)


def _teller(name: str, run: Path | None, say: Say) -> Callable[[PowerStep], None]:
    def tell(step: PowerStep) -> None:
        if run is not None:
            append_event(run, "power_step", {"bench": name, **step_fields(step)})
        say(step_line(name, step))

    return tell


def _concluded(name: str, action: str, reason: str, outcome: PowerOutcome, run: Path | None) -> PowerOutcome:
    if run is not None:
        append_event(run, "power_switched", {"bench": name, **outcome_fields(action, reason, outcome)})
    return outcome


def reached(action: str, outcome: PowerOutcome) -> bool:
    """Whether what was asked for is so, by evidence."""
    if action == "cycle":
        return outcome.boot is not None
    return outcome.proven and action in ("state", str(outcome.state))


def step_fields(step: PowerStep) -> dict[str, Any]:
    backend = {"backend": step.backend} if step.backend else {}
    return {**backend, "action": step.action, "answer": step.answer, "evidence": step.evidence}


def outcome_fields(action: str, reason: str, outcome: PowerOutcome) -> Mapping[str, Any]:
    boot = {"boot_id": outcome.boot.boot_id} if outcome.boot is not None else {}
    given = {"reason": reason} if reason else {}
    fields = {"state": str(outcome.state), "proven": outcome.proven, "conclusion": outcome.conclusion}
    return {"action": action, **given, **fields, **boot}


def step_line(name: str, step: PowerStep) -> str:
    """A step as a person reads it: what was answered, and beside it what the bench shows."""
    request = f"{step.backend}, {step.action}" if step.backend else step.action
    return f"{name}: {request}: {step.answer} ({step.evidence})"
