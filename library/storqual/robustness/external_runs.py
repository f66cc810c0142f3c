# SPDX-License-Identifier: Apache-2.0
"""Runs of foreign programs as they are planned in run.json; a drive is the same in both arms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from storqual.robustness.plan import Seat
from storqual.robustness.suite import RobustnessProfile, RobustnessSuite


@dataclass(frozen=True)
class PlannedExternal:
    """One run of a program. `id` names it everywhere; `number` is the same for the runs of both arms."""

    id: str
    session: str
    arm: str
    adapter: str
    drive: str
    program: str
    number: int

    def to_json(self) -> dict[str, Any]:
        """The entry of `plan.external` in run.json."""
        return asdict(self)


def plan_external(
    suite: RobustnessSuite,
    profile: RobustnessProfile,
    seats: Sequence[Seat],
    sessions: Sequence[tuple[str, str]],
) -> tuple[PlannedExternal, ...]:
    """Every run in the order in which they are made: sessions, then programs, adapters and repeats."""
    chosen = seats[: profile.adapters] if profile.adapters else seats
    planned = []
    for name, program in suite.external.items():
        if profile.external and name not in profile.external:
            continue
        for seat in chosen:
            if (program.adapters and seat.alias not in program.adapters) or not seat.drives:
                continue
            for number in range(1, program.repeats * profile.repeats + 1):
                for arm in dict.fromkeys(arm for _, arm in sessions):
                    own = [session for session, of in sessions if of == arm]
                    ident = f"{name}.{seat.alias}.{number}.{arm}"
                    session = own[(number - 1) % len(own)]
                    drive = seat.drives[0][0]
                    planned.append(PlannedExternal(ident, session, arm, seat.alias, drive, name, number))
    order = [session for session, _ in sessions]
    return tuple(sorted(planned, key=lambda one: order.index(one.session)))
