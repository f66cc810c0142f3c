# SPDX-License-Identifier: Apache-2.0
"""The plan of trials: what is tried where, in which session, at which moment; all drawn from one recorded seed.

The n-th trial of a fault on an adapter has the same load and the same moment in both arms: the arms are compared
trial by trial. Sessions of the arms alternate (A B, B A, A B …), so that no arm is always the later one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from storqual.inputs.inventory import PSEUDO_DRIVER
from storqual.robustness.suite import EVERY, RobustnessProfile, RobustnessSuite, Trial
from storqual_core.data.faults import FAULTS, WAYS, Fault, Way
from storqual_core.kit.errors import BadInputError

_TRIAL_S = {"virtual": 8.0, "hardware": 4.0}
"""What a trial takes besides its load and the time that its fault lasts: the start of the program, the guard's look,
recovery, reading back. Measured on the virtual bench (37 trials, two cores); on hardware it is an estimate."""
_SESSION_S = {"virtual": 75.0, "hardware": 240.0}
"""What provisioning, a boot and the restore take for each session; as above."""
_FIRST, _LAST = 0.2, 0.6
"""Between which parts of the load's time a fault's moment is drawn: some load comes before it, more after."""

_NEEDS = {True: "a second path", False: "one path"}


@dataclass(frozen=True)
class Seat:
    """An adapter under test with its claimed drives by id and their sizes in bytes, and its driver.

    `shared` are those that it reaches as one of several adapters, each with its multipath device on top.
    """

    alias: str
    pci: str
    driver: str
    drives: tuple[tuple[str, int], ...]
    shared: tuple[tuple[str, int], ...] = ()

    def for_way(self, way: Way) -> tuple[tuple[str, int], ...]:
        """The drives that a fault may be aimed at: the loss of a path at one of several, any other at one of one."""
        return self.shared if way.scope == "path" else self.drives


@dataclass(frozen=True)
class PlannedTrial:
    """One trial. `id` names it everywhere; `pair` is the same for the trials of both arms that are compared."""

    id: str
    pair: str
    session: str
    arm: str
    adapter: str
    drive: str
    fault: str
    way: str
    load: str
    seed: int
    load_s: float
    at_s: float
    away_s: float
    number: int

    def to_json(self) -> dict[str, Any]:
        """The entry of `plan.trials` in run.json."""
        return asdict(self)


def usable_ways(fault: Fault, driver: str, kind: str, wanted: str | None) -> list[Way]:
    """The ways of a fault for an adapter with that driver on a bench of that kind.

    scsi_debug has neither hardware nor a drive of QEMU's to act on: its ways are those that name it.
    """
    return [
        way
        for way in fault.ways
        if (way.where == "bench" or kind == "virtual")
        and (driver in way.drivers or not (way.drivers or driver == PSEUDO_DRIVER))
        and driver not in way.not_by
        and (wanted == way.name or (wanted is None and not way.named_only))
    ]


@dataclass(frozen=True)
class TrialPlan:
    """All trials in the order in which they are made, the sessions as (id, arm), and what cannot be tried and why."""

    trials: tuple[PlannedTrial, ...]
    sessions: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]


def expected_seconds(plan: TrialPlan, kind: str) -> float:
    """Bench time of a plan's trials on a bench of that kind; how long programs of others take is not known."""
    trials = sum(trial.load_s + trial.away_s + _TRIAL_S[kind] for trial in plan.trials)
    return trials + len(plan.sessions) * _SESSION_S[kind]


def plan_trials(
    suite: RobustnessSuite,
    profile: RobustnessProfile,
    seats: Sequence[Seat],
    *,
    arms: Sequence[str],
    kind: str,
    seed: int,
    boot_lines: Sequence[Sequence[str]] = (),
) -> TrialPlan:
    """Draw the plan. Raises BadInputError when nothing can be tried.

    `boot_lines` are the words that each arm's drop adds to the kernel's command line.
    """
    chosen = seats[: profile.adapters] if profile.adapters else seats
    sessions = _sessions(arms, profile.sessions)
    left_out: list[str] = []
    trials: list[PlannedTrial] = []
    for index, trial in enumerate(suite.trials):
        if profile.faults and trial.fault not in profile.faults:
            continue
        for seat in chosen:
            if trial.adapters and seat.alias not in trial.adapters:
                continue
            if {seat.alias, EVERY} & set(profile.leave_out.get(trial.fault, ())):
                left_out.append(f"{trial.fault} on {seat.alias}: the profile leaves it out")
                continue
            ways = usable_ways(FAULTS[trial.fault], seat.driver, kind, trial.way)
            if not ways:
                left_out.append(
                    f"{trial.fault} on {seat.alias}: no way with {seat.driver or 'no driver'} on a {kind} bench"
                )
                continue
            if not _boots_with(ways[0].boot_word, boot_lines):
                left_out.append(
                    f"{trial.fault} on {seat.alias}: os.cmdline of not every drop has a word {ways[0].boot_word}…"
                )
                continue
            if not seat.for_way(ways[0]):
                left_out.append(
                    f"{trial.fault} on {seat.alias}: no claimed drive with {_NEEDS[ways[0].scope == 'path']}"
                )
                continue
            trials += _repeated(suite, trial, index, seat, ways[0], profile, sessions, seed)
    if not trials and not suite.external:
        raise BadInputError([f"suite {suite.name}: found no trial that can be made here", *left_out])
    order = random.Random(f"{seed}/order")  # noqa: S311 - a drawn plan, no secret
    listed: list[PlannedTrial] = []
    for session, _ in sessions:
        here = [trial for trial in trials if trial.session == session]
        order.shuffle(here)
        # what comes back after a removal, or after a bench went down, has lost its session's settings: those are last
        listed += sorted(here, key=lambda trial: (_way(trial).downs_bench, not FAULTS[trial.fault].settings_stay))
    return TrialPlan(tuple(listed), tuple(sessions), tuple(left_out))


def _boots_with(begin: str, lines: Sequence[Sequence[str]]) -> bool:
    """Whether every arm's kernel is given a word that begins so."""
    return not begin or (bool(lines) and all(any(word.startswith(begin) for word in line) for line in lines))


def _way(trial: PlannedTrial) -> Way:
    return WAYS[trial.way][1]


def _sessions(arms: Sequence[str], count: int) -> list[tuple[str, str]]:
    """`count` sessions of each arm, in turns: A B, B A, A B."""
    listed = []
    for turn in range(count):
        listed += list(arms) if turn % 2 == 0 else list(reversed(arms))
    return [(f"s{number + 1:02}", arm) for number, arm in enumerate(listed)]


def _repeated(
    suite: RobustnessSuite,
    trial: Trial,
    index: int,
    seat: Seat,
    way: Way,
    profile: RobustnessProfile,
    sessions: Sequence[tuple[str, str]],
    seed: int,
) -> list[PlannedTrial]:
    load, found = suite.loads[trial.load], []
    lasts = profile.time or load.time
    for number in range(1, trial.repeats * profile.repeats + 1):
        pair = f"{trial.fault}.{seat.alias}.{index + 1}.{number}"
        draw = random.Random(f"{seed}/{pair}")  # noqa: S311 - as above
        moment = round(lasts * draw.uniform(_FIRST, _LAST), 3)
        fitting = [drive for drive, size in seat.for_way(way) if size >= load.region + (4 << 20)]
        if not fitting:
            raise BadInputError([f"{seat.alias}: found no claimed drive with room for load {trial.load}"])
        drive, load_seed = draw.choice(fitting), draw.randrange(1 << 31)
        for arm in dict.fromkeys(arm for _, arm in sessions):
            own = [session for session, of in sessions if of == arm]
            found.append(
                PlannedTrial(
                    id=f"{pair}.{arm}",
                    pair=pair,
                    session=own[(number - 1) % len(own)],
                    arm=arm,
                    adapter=seat.alias,
                    drive=drive,
                    fault=trial.fault,
                    way=way.name,
                    load=trial.load,
                    seed=load_seed,
                    load_s=lasts,
                    at_s=moment,
                    away_s=trial.away,
                    number=index,
                )
            )
    return found
