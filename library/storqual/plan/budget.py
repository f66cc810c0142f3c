# SPDX-License-Identifier: Apache-2.0
"""What a plan costs in bench time and where each figure comes from, and the smallest loss that it can see.

Said before a bench is touched.
"""

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from storqual.inputs.inventory import Bench
from storqual.inputs.suite import Profile
from storqual.plan.arms import change_cost, differences
from storqual.plan.resolve import Resolved, find_drive

FIRST_PAIRS = 3
"""Pairs before the first look of a campaign that measures until decided: points that lend each other their noise are
decided by as few on a quiet bench, and hardly ever by fewer."""
FIRST_SESSIONS = 4
"""The same in sessions of both arms: two of each is the least that shows what a boot does."""
LAUNCH_PER_COST = 1.5
SHORTEST_LAUNCH_S, LONGEST_LAUNCH_S = 2, 60
MOST_PAIRS, MOST_SESSIONS = 48, 12
"""The horizons of `storqual.statistics.comparison`: beyond them a look is hardly ever the one that decides."""

_KINDS: Mapping[str, Mapping[str, float]] = {
    # seconds of each change, of one launch beyond ramp and runtime, and of provisioning and collecting a session
    "virtual": {"reboot": 45.0, "reload": 8.0, "rebuild": 20.0, "instant": 2.0, "launch": 0.9, "session": 8.0},
    "hardware": {"reboot": 240.0, "reload": 20.0, "rebuild": 120.0, "instant": 2.0, "launch": 0.45, "session": 10.0},
    "local": {"reboot": 0.0, "reload": 0.0, "rebuild": 5.0, "instant": 1.0, "launch": 0.45, "session": 3.0},
}

WRITTEN_BYTES_S: Mapping[str, float] = {"hardware": 200e6, "virtual": 20e6, "local": 100e6}
"""What a drive is expected to take in sequential writes."""

_LAUNCH_NOISE = {"virtual": 0.02, "hardware": 0.01, "local": 0.05}
_SESSION_NOISE = {"virtual": 0.01, "hardware": 0.01, "local": 0.02}


@dataclass(frozen=True)
class KnownNoise:
    """Spread of one launch, and of a session's mean, in earlier campaigns on a bench; None: not known."""

    launch: float | None = None
    session: float | None = None


NOTHING_KNOWN = KnownNoise()


@dataclass(frozen=True)
class Costs:
    """Seconds on one kind of bench; the profile's `costs` take the place of what is expected of the kind."""

    change: Mapping[str, float]
    launch: float
    session: float


def usual_change_s(kind: str, change: str) -> float:
    """Seconds that a change usually takes on a kind of bench."""
    return _KINDS[kind][change]


def costs_of(kind: str, profile: Profile) -> Costs:
    table: dict[str, float] = dict(_KINDS[kind])
    table.update({str(name): seconds for name, seconds in profile.costs.items()})
    return Costs(
        {name: table[name] for name in ("reboot", "reload", "rebuild", "instant")}, table["launch"], table["session"]
    )


def within(budget_s: float | None, profile: Profile, *, compared: bool = True) -> Profile:
    """The profile of a campaign with a budget: it measures until decided, and the budget is the limit.

    A point may then get as many pairs or sessions as the levels of the looks are made for, at least. Where nothing is
    `compared` (one arm) there is nothing to decide: the budget only says how many points there are.
    """
    if budget_s is None:
        return profile
    if not compared:
        return profile.model_copy(update={"until": "planned", "budget": budget_s})
    most = {"pairs": max(profile.pairs, MOST_PAIRS), "sessions": max(profile.sessions, MOST_SESSIONS)}
    return profile.model_copy(update={**most, "until": "decided", "budget": budget_s})


def sized(profile: Profile, kinds: Iterable[str]) -> Profile:
    """The profile with launches as long as their cost makes worth, where it measures until decided and names none.

    Seconds of one launch are alike, so a second launch says more than a longer one, unless starting it costs more
    than it says: at 1.35 s of ramp, start and stop 2 s are best, at 5 s 5 to 20 s, at 30 s 30 to 60 s (trials on
    simulated benches of calm to rough noise).
    """
    if profile.until == "planned" or "runtime" in profile.model_fields_set:
        return profile
    cost = profile.ramp + max(costs_of(kind, profile).launch for kind in kinds)
    seconds = min(max(round(LAUNCH_PER_COST * cost), SHORTEST_LAUNCH_S), LONGEST_LAUNCH_S)
    return profile.model_copy(update={"runtime": float(seconds)})


def first_part(profile: Profile) -> Profile:
    """The profile of what is planned beforehand: all of it, or what comes before the first look."""
    if profile.until == "planned":
        return profile
    first = {"pairs": min(profile.pairs, FIRST_PAIRS), "sessions": min(profile.sessions, FIRST_SESSIONS)}
    return profile.model_copy(update=first)


def detectable_loss(kind: str, profile: Profile, *, interleaved: bool, noise: float | None = None) -> float:
    """The loss (a fraction) that is found with power 0.8 at the profile's alpha, at the noise that is expected.

    The unit is the session where each arm has its own, else the pair. One unit can show nothing: infinity. `noise` is
    the spread of one launch (of a session's mean) where history knows it.
    """
    units = profile.pairs if interleaved else profile.sessions // 2
    spread, freedom = _spread(kind, profile, units, interleaved=interleaved, noise=noise)
    if freedom < 1:
        return math.inf
    from scipy.special import stdtrit  # noqa: PLC0415 - slow to import, and only a plan needs it

    level = _level(profile, units, interleaved=interleaved, side="fail")
    width = -float(stdtrit(freedom, level)) + float(stdtrit(freedom, 0.8))
    return 1.0 - math.exp(-width * spread)


def expected_units(kind: str, profile: Profile, *, interleaved: bool, noise: float | None = None) -> int:
    """Pairs (sessions per arm) after which an unchanged point passes at the noise expected; at most the profile's."""
    most = profile.pairs if interleaved else profile.sessions // 2
    if profile.until == "planned":
        return most
    from scipy.special import stdtrit  # noqa: PLC0415 - as above

    for units in range(2, most):
        spread, freedom = _spread(kind, profile, units, interleaved=interleaved, noise=noise)
        level = _level(profile, units, interleaved=interleaved, side="pass")
        if -float(stdtrit(freedom, level)) * spread < -math.log1p(-profile.margin):
            return units
    return most


def _spread(kind: str, profile: Profile, units: int, *, interleaved: bool, noise: float | None) -> tuple[float, int]:
    """Standard error of the log-ratio after so many units, and the degrees of freedom of its noise."""
    if noise is None:
        noise = profile.noise if profile.noise is not None else _LAUNCH_NOISE[kind]
        if not interleaved:
            noise = math.sqrt(_SESSION_NOISE[kind] ** 2 + noise**2 / profile.launches)
    freedom = units - 1 if interleaved else 2 * (units - 1)
    return noise * math.sqrt(2.0 / units), freedom


def _level(profile: Profile, units: int, *, interleaved: bool, side: Literal["pass", "fail"]) -> float:
    """The one-sided level of the look after so many units: alpha where there is one look only."""
    if profile.until == "planned":
        return profile.alpha
    import numpy as np  # noqa: PLC0415 - as above

    from storqual.statistics.comparison import Rule, nominal_levels  # noqa: PLC0415 - as above

    rules: Mapping[str, Rule] = {"pass": "pass" if interleaved else "session_pass"}
    rules = {**rules, "fail": "fail" if interleaved else "session_fail"}
    return float(nominal_levels(rules[side], profile.alpha, np.array([float(units)]))[0])


_METRIC = "iops"
"""Rates are what plans are sized by; each point's own noise of each metric is the judge's to use."""


def known_noise(extract: bytes) -> dict[str, KnownNoise]:
    """The middle of the points of each bench, from an extract that was found to be sound."""
    launches: defaultdict[str, list[float]] = defaultdict(list)
    sessions: defaultdict[str, list[float]] = defaultdict(list)
    for entry in json.loads(extract)["noise"]:
        if entry["metric"] == _METRIC:
            if entry.get("sd_pair"):
                launches[entry["bench"]].append(entry["sd_pair"] / math.sqrt(2.0))
            if entry.get("sd_session"):
                sessions[entry["bench"]].append(entry["sd_session"])
    return {
        bench: KnownNoise(
            *(statistics.median(spreads[bench]) if spreads[bench] else None for spreads in (launches, sessions))
        )
        for bench in {*launches, *sessions}
    }


_TRIAL_S: Mapping[str, float] = {"virtual": 8.0, "hardware": 4.0}
"""What a trial takes besides its load and the time that its fault lasts: the start of the program, the guard's look,
recovery, reading back. Measured on the virtual bench (37 trials, two cores); on hardware it is an estimate."""


def trial_seconds(kind: str, lasting: Sequence[float]) -> float:
    """Bench time of trials with loads and faults of these seconds; how long foreign programs take is not known."""
    return sum(lasting) + len(lasting) * _TRIAL_S.get(kind, 0.0)


_CHANGES = {
    "reboot": "boots",
    "reload": "reloading drivers",
    "rebuild": "recreating volumes",
    "instant": "writing settings",
}
_PACKAGE_S: Mapping[str, float] = {"virtual": 40.0, "hardware": 60.0, "local": 0.0}
_BUILD_S: Mapping[str, float] = {"virtual": 120.0, "hardware": 90.0, "local": 0.0}
"""Seconds of installing one package, and of DKMS building a driver for one kernel."""


@dataclass(frozen=True)
class TimeLine:
    """One line of the estimate: `what` takes `seconds` of a bench, and `source` says where the figure comes from."""

    what: str
    seconds: float
    source: str

    def to_json(self) -> dict[str, Any]:
        """The entry of `plan.bench_time`."""
        return {"what": self.what, "seconds": round(self.seconds, 1), "source": self.source}


class BenchTime:
    """Adds up what a bench's campaign takes; lines of no seconds are left out."""

    def __init__(self, bench: Bench, profile: Profile, costs: Costs) -> None:
        self._bench = bench
        self._profile = profile
        self.costs = costs
        self._usual = f"typical of {bench.kind} benches"
        self._seconds: dict[tuple[str, str], float] = {}

    def add(self, what: str, seconds: float, source: str) -> None:
        """So many more seconds of `what`."""
        if seconds:
            key = (what, source)
            self._seconds[key] = self._seconds.get(key, 0.0) + seconds

    def add_lines(self, lines: Iterable[TimeLine]) -> None:
        for line in lines:
            self.add(line.what, line.seconds, line.source)

    def add_change(self, change: str, times: int = 1, what: str = "") -> None:
        source = f"`costs` of the profile: {change}" if change in self._profile.costs else self._usual
        self.add(what or _CHANGES.get(change, change), times * self.costs.change.get(change, 0.0), source)

    def add_session(self, change: str, batches: Sequence[float]) -> None:
        """A session: getting there, being provisioned and collected, and its launches, in seconds of each batch."""
        self.add_change(change)
        self.add("provisioning and collecting sessions", self.costs.session, self._usual)
        self.add("launches", sum(batches), "the planned launches, including their start")

    def lines(self, factor: float, more: Collection[TimeLine]) -> tuple[TimeLine, ...]:
        """All lines; what was added is the first part of a campaign that is expected to take `factor` of it."""
        totals = {key: factor * seconds for key, seconds in self._seconds.items()}
        for line in more:
            key = (line.what, line.source)
            totals[key] = totals.get(key, 0.0) + line.seconds
        return tuple(TimeLine(what, seconds, source) for (what, source), seconds in totals.items() if seconds)


def once(bench: Bench, arms: Sequence[Resolved], costs: Costs) -> tuple[TimeLine, ...]:
    """What comes once in a campaign: packages, the way to the first configuration, and restore as the last.

    Each arm's packages are installed once; the bench is put back as it was found at the end.
    """
    usual = f"typical of {bench.kind} benches"
    first = change_cost(differences(Resolved(), arms[0]))
    back = max(
        (change_cost(differences(Resolved(), arm)) for arm in arms), key=lambda name: costs.change.get(name, 0)
    )
    names = ("kernel", "dkms", "kmod")
    packages = {str(arm.driver.get(name)) for arm in arms for name in names if arm.driver.get(name)}
    return (
        TimeLine("installing packages", len(packages) * _PACKAGE_S[bench.kind], f"{len(packages)} of them, {usual}"),
        TimeLine("the first configuration", costs.change.get(first, 0.0), _by(first, usual)),
        TimeLine("restore", costs.change.get(back, 0.0) + costs.session, _by(back, usual)),
    )


def _by(change: str, usual: str) -> str:
    """Where the time of the way to a configuration comes from."""
    ways = {"none": "", "instant": "settings written in place, "}
    return f"{ways.get(change, f'a {change}, ')}{usual}"


def provisioning(
    bench: Bench, resolved: Resolved, change: str, costs: Costs, *, kept: bool = False
) -> tuple[TimeLine, ...]:
    """What a configuration takes each time the bench comes to it, beside the change itself.

    A DKMS package is taken off for the other arm, so each session of its arm builds it. Volumes are made again where
    a change of them is the reason for the session, and a full initialisation writes all members at once. `kept`: the
    volumes are those of the session before.
    """
    usual = f"typical of {bench.kind} benches"
    made = [TimeLine("DKMS builds", _BUILD_S[bench.kind] if resolved.driver.get("dkms") else 0.0, usual)]
    if resolved.raid and not kept:
        # a `rebuild` is what making volumes takes; where a boot is the costlier change, they are made beside it
        making = 0.0 if change == "rebuild" else costs.change["rebuild"]
        made.append(TimeLine("creating RAID volumes", making, usual))
        sizes = [
            drive.size or 0
            for volume in resolved.raid
            if volume.get("initialisation") == "full"
            for member in volume["members"]
            if (drive := find_drive(bench, member)) is not None
        ]
        rate = WRITTEN_BYTES_S[bench.kind]
        source = f"the largest member at {rate / 1e6:g} MB/s, {usual}"
        made.append(TimeLine("volumes initialised", max(sizes, default=0) / rate, source))
    return tuple(made)


def seconds_per_session(bench: Bench, arms: Sequence[Resolved], change: str, costs: Costs, *, kept: bool) -> float:
    """What provisioning adds to a further session in the mean of the arms, beside the change."""
    lines = [line for arm in arms for line in provisioning(bench, arm, change, costs, kept=kept)]
    return sum(line.seconds for line in lines) / len(arms)
