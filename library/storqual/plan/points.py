# SPDX-License-Identifier: Apache-2.0
"""Points: every point of a suite with its name, and which drives an adapter gives to it."""

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from storqual.inputs.inventory import Adapter, Bench, Drive
from storqual.inputs.suite import FACTORS, Load, Profile, Suite, point_name
from storqual.plan.volumes import NO_VOLUMES, ON_VOLUME, VOLUME, Layout
from storqual_core.turns.batch_file import LatencyCap

LOAD_STEPS = 10
"""Launches that a search for a latency cap usually takes."""

TOGETHER = "measured together with"
"""Why a point of several adapters is skipped on all but the first of them: nothing is lacking."""

IN_VOLUMES = "in volumes that the drops declare"
"""Why a drive that is claimed is no target of its own."""

DEFAULTS: Mapping[str, Any] = {
    "adapters": 1,
    "bs": 4096,
    "direct": True,
    "drives": 1,
    "drives_per_port": None,
    "engine": "libaio",
    "iodepth": 1,
    "numjobs": 1,
    "ports": None,
    "rate_iops": None,
    "rw": None,
    "rwmixread": None,
    "target": "raw",
    "zones": False,
}
"""Of a parameter that neither a workload nor `defaults` sets."""


READBACK_SHARE = 0.07
"""How long the data of a launch is looked at after it, as a share of the launch."""
READS_LOOKED_AT = 3
"""Of the launches that only read, every how many-th is followed by such a look."""
THINK_TIME = "thinktime"
"""The fio option by which a job waits between its I/Os."""


@dataclass(frozen=True)
class Pattern:
    """What fio does at a point: every factor and fixed parameter decided. Sizes in bytes.

    With a `load` a launch is a search for its cap, which takes some fio processes instead of one.
    """

    values: Mapping[str, Any]
    options: Mapping[str, Any]
    load: Load | None = None

    def __getitem__(self, name: str) -> object:
        return self.values[name]

    def launch_seconds(self, profile: Profile, launch_cost: float = 0.0) -> float:
        """Expected seconds of a launch: one fio process, or as many as a search for a cap usually takes."""
        runtime, steps = profile.runtime, 1
        if self.load is not None:
            cap = LatencyCap(**self.load.to_batch(1))
            steps = LOAD_STEPS
            if cap.by == "iodepth" or self.values["iodepth"] > 1:
                # half of them are near the cap, where a launch has to be long
                runtime = (runtime + max(runtime, cap.runtime_s(cap.cap_ns))) / 2
        looked_s = self.readback_s(profile) / (READS_LOOKED_AT if self.reads_only else 1)
        return steps * (self.ramp(profile) + runtime + launch_cost) + looked_s

    @property
    def reads_only(self) -> bool:
        return self.values["rw"] in ("read", "randread")

    def readback_s(self, profile: Profile) -> float:
        """How long the data of a launch is looked at; of some of those that only read."""
        return round(READBACK_SHARE * (self.ramp(profile) + profile.runtime), 3)

    def ramp(self, profile: Profile) -> float:
        """Seconds before what is measured; none with a think time, where fio (seen with 3.33) counts its I/Os."""
        return 0.0 if THINK_TIME in self.options else profile.ramp

    @property
    def adapters(self) -> int:
        """The drives of how many adapters it works on at once."""
        return int(self.values.get("adapters", 1))

    @property
    def drives(self) -> int:
        """How many drives of the adapter it works on at once."""
        return int(self.values["drives"])

    @property
    def on_volumes(self) -> bool:
        """Whether its targets are volumes; `drives` then counts them."""
        return str(self.values["target"]) == VOLUME or self.on_file_system_of_volume

    @property
    def on_file_system_of_volume(self) -> bool:
        return str(self.values["target"]).endswith(ON_VOLUME)

    @property
    def drives_per_port(self) -> int | None:
        """How many drives of every port in use; None: `drives` in all."""
        each = self.values.get("drives_per_port")
        return None if each is None else int(each)

    @property
    def ports(self) -> int | None:
        """To how many ports of the adapter it keeps; None: all."""
        ports = self.values["ports"]
        return None if ports is None else int(ports)


@dataclass(frozen=True)
class Point:
    """Workload x factors x varied settings, before it is given to an adapter.

    `hardware_only` is why an emulation cannot stand for it; empty when it can.
    """

    workload: str
    factors: tuple[tuple[str, Any], ...]
    varied: tuple[tuple[str, Any], ...] = ()
    pattern: Pattern = field(compare=False, repr=False, default=Pattern({}, {}))
    hardware_only: str = field(compare=False, repr=False, default="")

    @property
    def name(self) -> str:
        """`seq_read[bs=4k,drives=4,iodepth=4]`."""
        return point_name(self.workload, {**dict(self.factors), **dict(self.varied)})

    @property
    def levels(self) -> tuple[tuple[str, Any], ...]:
        """What a balanced fraction must show: factor levels, varied settings, and the workload itself."""
        return (("workload", self.workload), *self.factors, *self.varied)


def points_of(suite: Suite, varied: Sequence[Mapping[str, Any]] = ({},)) -> list[Point]:
    """The whole matrix in the order of the file; `varied` are the combinations of varied settings."""
    listed = []
    for name, workload in suite.workloads.items():
        fixed = {key: DEFAULTS[key] for key in FACTORS}
        for parameters in (suite.defaults, workload):
            for key in FACTORS:
                value = getattr(parameters, key, None)
                if value is not None:
                    fixed[key] = value
        options = {**suite.defaults.options, **workload.options}
        if workload.arrivals == "poisson":
            options["rate_process"] = "poisson"
        factor_names = sorted(workload.factors)
        for levels in itertools.product(*(workload.factors[factor] for factor in factor_names)):
            factors = tuple(zip(factor_names, levels, strict=True))
            pattern = Pattern({**fixed, **dict(factors)}, options, workload.load)
            listed += [
                Point(name, factors, tuple(sorted(combination.items())), pattern, workload.hardware_only or "")
                for combination in varied
            ]
    return listed


def team(bench: Bench, alias: str, pattern: Pattern) -> Adapter | str:
    """The adapter as a pattern sees it, or why it cannot be used.

    With `adapters: n` it stands for the first n adapters under test that have its driver, their ports numbered card
    by card; such a point belongs to the first of them.
    """
    adapter = bench.adapters[alias]
    if pattern.adapters == 1:
        return adapter
    under_test = bench.under_test if bench.under_test is not None else tuple(bench.adapters)
    alike = [name for name in bench.adapters if name in under_test and bench.adapters[name].driver == adapter.driver]
    if alias not in alike[:1]:
        return f"{TOGETHER} {alike[0]}" if alike else "it is not under test"
    if len(alike) < pattern.adapters:
        return f"needs {pattern.adapters} adapters with driver {adapter.driver}, {len(alike)} are under test"
    members = [bench.adapters[name] for name in alike[: pattern.adapters]]
    width = 1 + max((member.port_of(drive) for member in members for drive in member.claimed), default=0)
    drives = tuple(
        drive.model_copy(update={"port": number * width + member.port_of(drive)})
        for number, member in enumerate(members)
        for drive in sorted(member.claimed, key=member.port_of)
    )
    return adapter.model_copy(update={"drives": drives})


def drives_for(adapter: Adapter | str, pattern: Pattern, layout: Layout = NO_VOLUMES) -> tuple[Drive, ...]:
    """The first n claimed drives in inventory order, round-robin over ports; fewer when there are not enough.

    Drives that a volume of the drops takes are no targets of their own.
    """
    if isinstance(adapter, str):
        return ()
    by_port: defaultdict[int, list[Drive]] = defaultdict(list)
    for drive in adapter.claimed:
        if drive.id not in layout.drives:
            by_port[adapter.port_of(drive)].append(drive)
    ports = [drives[: pattern.drives_per_port] for drives in by_port.values()][: pattern.ports]
    dealt = [drive for round_ in itertools.zip_longest(*ports) for drive in round_ if drive is not None]
    return tuple(dealt if pattern.drives_per_port is not None else dealt[: pattern.drives])


def shortage(adapter: Adapter | str, pattern: Pattern, layout: Layout = NO_VOLUMES) -> str:
    """Why an adapter (or a team of them) cannot serve a pattern; empty when it can."""
    if isinstance(adapter, str):
        return adapter
    if pattern.on_volumes:
        lacks = layout.volumes < pattern.drives
        many = "s" * (pattern.drives != 1)
        return f"needs {pattern.drives} volume{many}, the drops declare {layout.volumes}" if lacks else ""
    ports = len({adapter.port_of(drive) for drive in adapter.claimed})
    if pattern.ports is not None and ports < pattern.ports:
        return f"needs drives on {pattern.ports} ports, the claimed drives are on {ports}"
    have = len(drives_for(adapter, pattern, layout))
    each = pattern.drives_per_port
    if each is not None:
        wanted = each * (ports if pattern.ports is None else pattern.ports)
        return "" if have == wanted else f"needs {each} drives on each of its ports, {have} of {wanted} are claimed"
    if have >= pattern.drives:
        return ""
    needs = f"needs {pattern.drives} drive{'s' * (pattern.drives != 1)}"
    return f"{needs}, {_have(len(adapter.claimed), layout, have)}"


def _have(claimed: int, layout: Layout, free: int) -> str:
    if not layout.drives:
        return f"{claimed} {'is' if claimed == 1 else 'are'} claimed"
    if not free:
        every = "all" if claimed != 1 else "the"
        return f"{every} {claimed} claimed drive{'s are' * (claimed != 1) or ' is'} {IN_VOLUMES}"
    return f"{claimed} are claimed, of which {claimed - free} {'is' if claimed - free == 1 else 'are'} {IN_VOLUMES}"


@dataclass(frozen=True)
class Placed:
    """A point on an adapter. `answers` are the criteria that are judged there."""

    adapter: str
    point: Point
    answers: tuple[int, ...] = ()

    @property
    def levels(self) -> tuple[tuple[str, Any], ...]:
        return (("adapter", self.adapter), *self.point.levels)


_TRIES = 8
_SMALL = 4000


def balanced_fraction(candidates: Sequence[Placed], count: int, seed: str) -> list[Placed]:
    """At most `count` of the candidates; equal arguments give an equal choice, whatever the order of the candidates.

    Greedy from several starts (one where the matrix is large): the choice that covers most pairs of levels, then the
    one that uses the levels most evenly.
    """
    pool = sorted(candidates, key=lambda placed: (placed.adapter, placed.point.name))
    tries = _TRIES if len(pool) * count <= _SMALL else 1
    return max((_greedy(pool, count, f"{seed}/{number}") for number in range(tries)), key=_merit)


def _merit(chosen: Sequence[Placed]) -> tuple[int, int, int]:
    """How good a choice is: levels on adapters, pairs of levels, evenness."""
    on_adapters = {item for placed in chosen for item in _on_adapter(placed)}
    pairs = {item for placed in chosen for item in _pairs(placed)}
    used = Counter(item for placed in chosen for item in _singles(placed))
    return (len(on_adapters), len(pairs), -sum(uses * uses for uses in used.values()))


def _greedy(candidates: Sequence[Placed], count: int, seed: str) -> list[Placed]:
    """One choice: the next point is the one that shows most levels, workloads and criteria not seen yet.

    Then most levels new to their adapter; then most pairs of levels new anywhere; then the levels used least.
    """
    pool = list(candidates)
    random.Random(seed).shuffle(pool)  # noqa: S311 - an order, not a secret
    features = [(tuple(_singles(placed)), tuple(_on_adapter(placed)), tuple(_pairs(placed))) for placed in pool]
    seen: set[Hashable] = set()
    used: Counter[Hashable] = Counter()
    chosen: list[int] = []
    left = set(range(len(pool)))

    def gain(index: int) -> tuple[int, ...]:
        singles, own, pairs = features[index]
        return (
            sum(item not in seen for item in singles),
            sum(item not in seen for item in own),
            sum(item not in seen for item in pairs),
            -sum(used[item] for item in (*singles, *own)),
            -index,
        )

    while left and len(chosen) < count:
        best = max(left, key=gain)
        left.discard(best)
        chosen.append(best)
        for items in features[best]:
            seen.update(items)
            used.update(items)
    return [pool[index] for index in chosen]


def unseen_levels(candidates: Sequence[Placed], chosen: Sequence[Placed]) -> list[tuple[str, Any]]:
    """Levels (workloads, adapters and criteria included) that the candidates have and the choice does not."""
    have = {item for placed in chosen for item in _singles(placed)}
    missing = {item for placed in candidates for item in _singles(placed)} - have
    return sorted(missing, key=str)


def _singles(placed: Placed) -> Iterator[tuple[str, Any]]:
    yield from placed.levels
    for criterion in placed.answers:
        yield ("criterion", criterion)


def _on_adapter(placed: Placed) -> Iterator[Hashable]:
    for level in placed.point.levels:
        yield (placed.adapter, level)


def _pairs(placed: Placed) -> Iterator[Hashable]:
    return itertools.combinations(placed.point.levels, 2)
