# SPDX-License-Identifier: Apache-2.0
"""What an I/O costs the host, what the rig can carry at most, and how throughput grows: knees, and what is enough.

The ceiling is the least of its parts: the slot, the links of all ports, the drives together. A result near the limit
of a part that is not under test says nothing about the adapter: the rig was measured.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.base.figures import AXIS_NAMES, level_text
from storqual.base.formulas import MB, MIB, percent_of, service_demand_percent_thousandths
from storqual.base.text import plural
from storqual.statistics.estimates import Estimate, log_levels, mean_reach
from storqual.statistics.scaling import SCALED, Scaling, ScalingLevel, scaling, scaling_sentences
from storqual.study.points import PointLine, StudyPoint, lines_of
from storqual_core.host.fabric import fc_bytes_per_second
from storqual_core.kit.quantities import format_percent

NEAR = 0.95
"""From 95 % of a part on, that part is called the limit: no link reaches its line rate, headers take their share."""


@dataclass(frozen=True, slots=True)
class PathPart:
    """One part of the path and what it carries at most. `rig` parts are not under test; `evidence`: who says so."""

    name: str
    limit: float
    rig: bool
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class PathCeiling:
    """All parts, and the least of them."""

    parts: tuple[PathPart, ...]

    @property
    def lowest(self) -> PathPart:
        return min(self.parts, key=lambda part: part.limit)

    @property
    def limit(self) -> float:
        return self.lowest.limit


@dataclass(frozen=True, slots=True)
class Share:
    """A result as percent of the ceiling. `limited_by` is a rig part that it may have reached; None when none."""

    percent: Estimate
    lowest: PathPart
    limited_by: PathPart | None

    def sentence(self) -> str:
        shown = f"{format_percent(self.percent.value / 100)} of the ceiling ({self.lowest.name})"
        if self.limited_by is None:
            return f"{shown}."
        return f"{shown}; the limit here is {self.limited_by.name}, which is not what was tested."


def ceiling(parts: Sequence[PathPart]) -> PathCeiling:
    """The ceiling of a path. Raises ValueError without parts, or for a limit that is not above zero."""
    if not parts or any(not part.limit > 0 for part in parts):
        raise ValueError("a ceiling needs parts with limits above zero")
    return PathCeiling(tuple(parts))


def slot_part(limit: float, evidence: str = "") -> PathPart:
    """The slot: one limit for all ports and both directions of a shared bus (PCI, PCI-X), or one way of PCIe."""
    return PathPart("slot", limit, rig=True, evidence=evidence)


def link_part(port: float, ports: int, *, both_ways: bool = False, evidence: str = "") -> PathPart:
    """The links of `ports` ports. `both_ways` counts both directions of a full-duplex link (reads and writes mixed).

    Raises ValueError without a port. Source: HP A6826A paper, p. 2: 87.7 % of 2 x 200 MB/s, one port both ways.
    """
    if ports < 1:
        raise ValueError(f"{ports} ports, expected one or more")
    ways = 2 if both_ways else 1
    words = f"{ports} port{'s' if ports > 1 else ''}{', both ways' if both_ways else ''}"
    return PathPart(f"link ({words})", port * ports * ways, rig=False, evidence=evidence)


def drives_part(rates: Mapping[str, float], evidence: str = "") -> PathPart:
    """All drives together; `rates` is what each gives by itself, in the unit of the result. Raises ValueError."""
    if not rates:
        raise ValueError("no drives")
    return PathPart(plural(len(rates), "drive"), sum(rates.values()), rig=True, evidence=evidence)


def share_of(measured: Estimate, path: PathCeiling) -> Share:
    """`measured` in percent of the ceiling, and whether the rig was the limit.

    A rig part is the limit unless the result is shown to be below `NEAR` of it: what may be the rig's doing is not
    held for or against an adapter. Of several the lowest is named.
    """
    percent = Estimate(
        percent_of(measured.value, path.limit),
        None if measured.low is None else percent_of(measured.low, path.limit),
        None if measured.high is None else percent_of(measured.high, path.limit),
    )
    reached = [part for part in path.parts if part.rig and measured.at_least(NEAR * part.limit) is not False]
    return Share(percent, path.lowest, min(reached, key=lambda part: part.limit, default=None))


Ceilings = Mapping[tuple[str, str], Mapping[str, Any]]
"""(bench, adapter) -> what `known_ceiling` knows: bytes per second of `slot` and of one port's `link`."""


def read_adapter(bench: Mapping[str, Any], alias: str) -> Mapping[str, Any]:
    """What a bench of run.json read of one of its adapters before the first batch; nothing where it read none."""
    before = (bench.get("environment") or {}).get("before") or {}
    adapter: Mapping[str, Any] = (before.get("adapters") or {}).get(alias) or {}
    return adapter


def known_ceiling(declared: Mapping[str, Any], read: Mapping[str, Any]) -> dict[str, float]:
    """Bytes per second of an adapter's `slot` and of one port's `link`, by its inventory entry and by the bench.

    An FC port carries no more than its negotiated speed after the line code, whatever the inventory says.
    """
    written, ports = declared.get("ceiling") or {}, read.get("fc_ports") or ()
    known = {name: float(written[name]) for name in ("slot", "link") if written.get(name)}
    online = [fc_bytes_per_second(str(port.get("speed"))) for port in ports if port.get("state") == "Online"]
    speeds = [float(each) for each in online if each is not None]
    if speeds:
        known["link"] = min([*speeds, *([known["link"]] if "link" in known else [])])
    return known


@dataclass(frozen=True)
class Demand:
    """Means of one point: MB/s (10^6 bytes), CPU in percent of all processors, and what a KiB and an I/O cost.

    `cpu_reach` is half of the 95 % interval of the CPU's mean, in its unit; None for one launch. `us_per_kib` counts
    processor time of all CPUs; `percent_thousandths` is CPU percent per thousand KiB/s, the unit of the A7173A paper.
    """

    point: StudyPoint
    throughput_mb_s: float
    cpu_percent: float
    cpu_reach: float | None
    us_per_kib: float
    us_per_io: float
    percent_thousandths: float


@dataclass(frozen=True)
class CeilingShare:
    """A point's throughput as share of what its path carries at most."""

    point: StudyPoint
    throughput_mb_s: float
    ceiling_mb_s: float
    share: Share


def demands(points: Sequence[StudyPoint]) -> list[Demand]:
    results = []
    for point in points:
        means = [point.mean(name) for name in ("throughput_mb_s", "cpu_percent", "cpu_us_per_kib", "cpu_us_per_io")]
        measured = [mean for mean in means if mean is not None]
        if len(measured) == len(means) and measured[0] > 0:
            thousandths = service_demand_percent_thousandths(measured[1], measured[0] * MB / MIB)
            # not of logarithms: CPU above the idle bench's may be next to nothing
            reach = mean_reach(point.values("cpu_percent"))
            results.append(Demand(point, measured[0], measured[1], reach, measured[2], measured[3], thousandths))
    return results


def reached(points: Sequence[StudyPoint], ceilings: Ceilings) -> list[CeilingShare]:
    """Percent of the ceiling, where the inventory or a port's negotiated speed tells a part of the path.

    The drives are a part as soon as one drive alone was measured with the same workload and block size.
    """
    alone = {
        (point.subject, point.workload, point.pattern.get("bs"), point.drives[0]): point.mean("throughput_mb_s")
        for point in points
        if len(point.drives) == 1
    }
    shares = []
    for point in points:
        values = point.values("throughput_mb_s")
        limits = ceilings.get((point.bench, point.adapter)) or {}
        parts = _parts(point, limits)
        rates = {
            drive: alone.get((point.subject, point.workload, point.pattern.get("bs"), drive))
            for drive in point.drives
        }
        first = next((value for value in rates.values() if value), None)
        if parts and first and len(point.drives) > 1:
            evidence = "one drive alone, times their number"
            parts.append(drives_part({drive: value or first for drive, value in rates.items()}, evidence))
        if not parts or not values or min(values) <= 0:
            continue
        path = ceiling(parts)
        data = log_levels({1.0: values})
        measured: Estimate = data.estimate(data.mean[0], 1 / data.count[0]).exp()
        shares.append(CeilingShare(point, measured.value, path.limit, share_of(measured, path)))
    return shares


def _parts(point: StudyPoint, limits: Mapping[str, Any]) -> list[PathPart]:
    both_ways = str(point.pattern.get("rw")) in ("rw", "randrw")
    parts = []
    if limits.get("slot"):
        parts.append(slot_part(float(limits["slot"]) / MB, "inventory"))
    if limits.get("link"):
        evidence = "inventory or negotiated speed"
        parts.append(link_part(float(limits["link"]) / MB, point.ports, both_ways=both_ways, evidence=evidence))
    return parts


@dataclass(frozen=True)
class Growth:
    """One line of one subject with what its shape says; `metric` is a rate.

    `enough` is the level from which on more is shown to give nothing.
    """

    line: PointLine
    metric: str
    scaling: Scaling
    sentences: tuple[str, ...]
    enough: ScalingLevel | None


def growths(points: Sequence[StudyPoint], metric: str = "throughput_mb_s") -> list[Growth]:
    curves = []
    for along in SCALED:
        for line in lines_of(points, along):
            values = line.values(metric)
            if len(values) < 2 or min(values) <= 0:
                continue
            result = scaling(values)
            sentences = tuple(scaling_sentences(result, _unit(along), "MB/s"))
            curves.append(Growth(line, metric, result, sentences, _enough(result)))
    return curves


def _unit(along: str) -> str:
    return {"numjobs": "jobs", "iodepth": "commands in the queue"}.get(along, AXIS_NAMES[along])


def _enough(result: Scaling) -> ScalingLevel | None:
    """The level from which on more gives nothing: said only where a level beyond it was measured and gave no more."""
    if result.shape != "knee" or result.knee is None:
        return None
    # the first level that is not shown to lie below the knee
    start = result.knee.value if result.knee.low is None else result.knee.low
    level = next((level for level in result.levels if level.at >= start), None)
    return level if level is not None and level.at < result.levels[-1].at else None


def saturation_advice(curves: Sequence[Growth]) -> Iterator[str]:
    """How much of what is enough: one sentence for all lines of a subject that one level saturates."""
    groups: defaultdict[tuple[str, str, float], list[Growth]] = defaultdict(list)
    for growth in curves:
        if growth.enough is not None:
            groups[(growth.line.subject, growth.line.along, growth.enough.at)].append(growth)
    for (subject, along, at), members in groups.items():
        gains = [
            100 * (growth.enough.value.value / growth.scaling.levels[0].value.value - 1)
            for growth in members
            if growth.enough
        ]
        low, high = f"{min(gains):.0f}", f"{max(gains):.0f}"
        first, last = (level_text(along, int(members[0].scaling.levels[end].at)) for end in (0, -1))
        more = f" and {len(members) - 1} more" if len(members) > 1 else ""
        yield (
            f"{subject}: {level_text(along, int(at))} {'is' if at == 1 or along == 'iodepth' else 'are'} enough at "
            f"{members[0].line.title}{more}: {low if low == high else f'{low} to {high}'} % over {first}, "
            f"and no more with up to {last}."
        )
