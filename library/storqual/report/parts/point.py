# SPDX-License-Identifier: Apache-2.0
"""Everything about one point: outcomes, seconds over time, latencies and load, what limits it, how to repeat it.

A part is the limit from 95 % of it on (no link reaches its line rate), processors from 90 %. Where nothing that is on
record is reached, the limit is not known, and the shares are told.
"""

import bisect
import math
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from markupsafe import Markup

from storqual.base.figures import DASH, NONE, TIED, Scale, ShownNumber, count, percent, quantity, scale_for
from storqual.base.formulas import MB
from storqual.base.table import NUMBER, Folded, Table
from storqual.metrics.latency import quantile
from storqual.metrics.metric import UnavailableError
from storqual.plan.points import points_of
from storqual.report.charts import (
    Bin,
    Distribution,
    EventMark,
    Mark,
    PlottedCurve,
    Span,
    Trace,
    curve_panel,
    histogram,
    latency_axis,
    latency_text,
    share_axis,
    short,
    size_axis,
    tail_panel,
    time_chart,
    value_axis,
)
from storqual.report.criterion import JudgedCriterion, OutcomeBadge, adapter_name
from storqual.report.material import ARMS, CURVES, Material, but_rates, measure
from storqual.report.parts.appendix import measure_again
from storqual.report.parts.curves import launch_strip
from storqual.report.parts.timeline import TimelineEvent
from storqual.report.svg import Axis, nice_ticks
from storqual.report.view import Cell, DrawnChart, PageLinks, Phrase
from storqual.run import Launch
from storqual.run.files import read_object
from storqual.run.layout import BATCHES, INPUTS
from storqual.run.measurements import PointData, PointKey
from storqual.statistics.estimates import Estimate, difference
from storqual.study.demand import NEAR, known_ceiling, read_adapter
from storqual_core.host.fabric import port_key
from storqual_core.kit.errors import BadInputError
from storqual_core.turns.fio_job import FioTarget, build_argv, launch_seed, read_ask
from storqual_core.turns.launch import LoadStep

_BINS = 14
_QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("largest", 1.0))


def latency_charts(point: PointData, ident: str) -> tuple[DrawnChart, ...]:
    """The distribution and its tail for reads and for writes, as far as there were any."""
    charts: list[DrawnChart] = []
    for side in ("read", "write"):
        arms = {arm: point.bins[arm, side] for arm in ARMS if point.bins.get((arm, side))}
        if arms:
            tail = _tail(f"{ident}-{side}-t", side, arms)
            charts += [*([tail] if tail else []), _chart(point, f"{ident}-{side}", side, arms)]
    return tuple(charts)


def _chart(point: PointData, ident: str, side: str, arms: Mapping[str, Mapping[int, int]]) -> DrawnChart:
    edges = _edges(*_reach(arms))
    shares = {arm: _shares(bins, edges) for arm, bins in arms.items()}
    distributions = [
        Distribution(arm, tuple(Bin(*ends, share) for ends, share in zip(pairwise(edges), shares[arm], strict=True)))
        for arm in arms
    ]
    top = max(max(values) for values in shares.values())
    title = f"Latency of {side}s"
    described = f"Share of {side}s by latency, both arms; numbers in the table below."
    picture = histogram(ident, title, described, distributions, latency_axis(edges[0], edges[-1]), share_axis(top))
    return DrawnChart(title, picture, _table(point, title, side, edges, shares), beside=_quantiles(point, side, arms))


def _reach(arms: Mapping[str, Mapping[int, int]]) -> tuple[int, int]:
    low, high = min(min(bins) for bins in arms.values()), max(max(bins) for bins in arms.values())
    return max(low, 1), max(high, 1)


def _edges(low: int, high: int) -> tuple[float, ...]:
    bottom, top = low / 1.1, high * 1.1
    if top / bottom < 2:
        bottom, top = bottom / 1.3, top * 1.3
    return tuple(bottom * (top / bottom) ** (step / _BINS) for step in range(_BINS + 1))


def _shares(bins: Mapping[int, int], edges: Sequence[float]) -> list[float]:
    counts = [0] * (len(edges) - 1)
    for value, number in bins.items():
        at = bisect.bisect_right(edges, value) - 1
        counts[min(max(at, 0), len(counts) - 1)] += number
    total = sum(counts)
    return [number / total for number in counts]


def _quantiles(point: PointData, side: str, arms: Mapping[str, Mapping[int, int]]) -> Table:
    """Each quantile of both arms and how far the candidate's is from the baseline's, as far as counts support it."""
    sizes = {arm: sum(bins.values()) for arm, bins in arms.items()}
    rows: list[tuple[ShownNumber | str, ...]] = []
    for name, at in _QUANTILES:
        shown = [_quantile(point, side, arm, arms.get(arm), name, at) for arm in ARMS]
        rows.append((name, *shown, *_difference(point, side, arms, name, at)))
    where = f"{side}:{'/'.join(point.planned.key)}"
    numbers = [count(sizes.get(arm), f"samples:ios:{where}:{arm}") for arm in ARMS]
    rows.append(("I/Os", *numbers, NONE, NONE, NONE))
    heads = ("Quantile", "Baseline", "Candidate", "Difference", "95 % from", "to")
    return Table(f"Latency of {side}s, quantiles; intervals of counts alone", heads, tuple(rows))


def _difference(
    point: PointData, side: str, arms: Mapping[str, Mapping[int, int]], name: str, at: float
) -> tuple[ShownNumber, ShownNumber, ShownNumber]:
    """The candidate's quantile minus the baseline's, with an interval from order statistics of both arms.

    The I/Os of a launch are not independent, so that the interval is the narrowest that can be true.
    """
    if len(arms) < 2 or at == 1.0:
        return NONE, NONE, NONE
    before, after = (_estimate(arms[arm], at) for arm in ARMS)
    if before is None or after is None:
        return NONE, NONE, NONE
    change = difference(before, after)
    source = f"samples:difference:{name}:{side}:{'/'.join(point.planned.key)}"
    middle, low, high = (
        NONE if end is None else _signed(end, source) for end in (change.value, change.low, change.high)
    )
    return middle, low, high


def _signed(nanoseconds: float, source: str) -> ShownNumber:
    shown = quantity(nanoseconds, "ns", source)
    return shown if nanoseconds <= 0 else ShownNumber(f"+{shown.text}", shown.value, source, shown.divisor)


def _estimate(bins: Mapping[int, int], at: float) -> Estimate | None:
    """A quantile in ns with its interval; None where too few I/Os lie beyond it. The largest has a value always."""
    if at == 1.0:
        return Estimate(max(bins), None, None)
    try:
        estimate = quantile(bins, at)
    except UnavailableError:
        return None
    return Estimate(estimate.value, estimate.low, estimate.high)


def _tail(ident: str, side: str, arms: Mapping[str, Mapping[int, int]]) -> DrawnChart | None:
    """The share of I/Os that took longer, both arms, on two logarithmic axes: the tail that a histogram hides."""
    curves = [(arm, _slower(bins)) for arm, bins in arms.items()]
    if any(len(marks) < 2 for _, marks in curves):
        return None
    edges = _edges(*_reach(arms))
    least = min(share for _, marks in curves for _, share in marks)
    powers = range(0, math.floor(math.log10(least)) - 1, -1)
    ticks = tuple((10.0**power, f"{100 * 10.0**power:g} %") for power in powers)
    title = f"{side.capitalize()}s that took longer"
    drawn = [PlottedCurve(arm, "", tuple(Mark(x, y) for x, y in marks)) for arm, marks in curves]
    picture = tail_panel(
        ident, title, f"Share of {side}s that took longer than a latency, both arms; quantiles in the table.",
        drawn, latency_axis(edges[0], edges[-1]),
        Axis("of I/O", 10.0 ** powers[-1], 1.0, ticks, logarithmic=True),
    )  # fmt: skip
    return DrawnChart(title, picture, None)


_MOST_STEPS = 60


def _slower(bins: Mapping[int, int]) -> list[tuple[float, float]]:
    """(latency, share of I/Os above it) in rising order, thinned where there are more than can be seen apart."""
    total, left = sum(bins.values()), sum(bins.values())
    marks: list[tuple[float, float]] = []
    for value in sorted(bins):
        left -= bins[value]
        if left > 0:
            marks.append((float(max(value, 1)), left / total))
    if len(marks) <= _MOST_STEPS:
        return marks
    levels = [math.log(marks[-1][1]) * step / _MOST_STEPS for step in range(_MOST_STEPS + 1)]
    thinned: list[tuple[float, float]] = []
    for mark in marks:
        if len(thinned) < len(levels) and math.log(mark[1]) <= levels[len(thinned)]:
            thinned.append(mark)
    return [*thinned, marks[-1]] if thinned[-1] != marks[-1] else thinned


def _table(
    point: PointData, title: str, side: str, edges: Sequence[float], shares: Mapping[str, Sequence[float]]
) -> Table:
    rows: list[tuple[ShownNumber | str, ...]] = []
    for number, (low, high) in enumerate(pairwise(edges)):
        values = [shares[arm][number] if arm in shares else None for arm in ARMS]
        if any(values):
            label = f"{latency_text(low)} to {latency_text(high)}"
            rows.append(
                (
                    ShownNumber(label, None, "samples:edges"),
                    *(_share(point, side, arm, value) for arm, value in zip(ARMS, values, strict=True)),
                )
            )
    return Table(title, ("Latency", "Baseline", "Candidate"), tuple(rows))


def _quantile(
    point: PointData, side: str, arm: str, bins: Mapping[int, int] | None, name: str, at: float
) -> ShownNumber:
    estimate = _estimate(bins, at) if bins else None
    where = f"{name}:{side}:{'/'.join(point.planned.key)}:{arm}"
    return NONE if estimate is None else quantity(estimate.value, "ns", f"samples:quantile:{where}")


def _share(point: PointData, side: str, arm: str, value: float | None) -> ShownNumber:
    source = f"samples:share:{side}:{'/'.join(point.planned.key)}:{arm}"
    return percent(None if value is None else 100 * value, source, signed=False, digits=2)


_BUSY = 0.90
_KEPT = 0.99
"""A fixed rate is the limit when this much of it was served."""


@dataclass(frozen=True)
class PointLimit:
    """What limits a point in a word or two, and how that is known; `what` is empty where nothing was measured."""

    what: str
    why: Phrase


@dataclass(frozen=True)
class _Part:
    """A part of the path: its name, the share of it that was used, and how that is said."""

    name: str
    share: float
    phrase: Phrase
    from_share: float = NEAR

    @property
    def reached(self) -> bool:
        return self.share >= self.from_share


@dataclass(frozen=True)
class _Means:
    """Means of an arm at a point: I/Os per second, MB/s, percent of all processors, latency in us."""

    iops: float | None
    mb_s: float | None
    cpu: float | None
    latency_us: float | None


NOTHING = PointLimit("", ())


def limits_of_points(material: Material) -> Mapping[PointKey, PointLimit]:
    patterns = {}
    if material.suite is not None and material.suite.workloads:
        patterns = {
            (point.workload, frozenset(point.factors)): point.pattern.values for point in points_of(material.suite)
        }
    paces = _paces(material)
    alone = {
        (key[:2], _line(data), data.planned.drives[0]): single.iops
        for key, data in material.points.items()
        if len(data.planned.drives) == 1 and (single := _means(data)).iops
    }
    limits = {}
    for key, data in material.points.items():
        planned = data.planned
        pattern = {**patterns.get((planned.workload, frozenset(planned.factors.items())), {}), **planned.factors}
        single_rates = [alone.get((key[:2], _line(data), drive)) for drive in planned.drives]
        limits[key] = _limit(material, data, pattern, paces.get(key[0], {}), single_rates)
    return limits


def _line(data: PointData) -> tuple[str, tuple[tuple[str, object], ...]]:
    """What a point has in common with the one that uses a single drive."""
    rest = sorted((name, level) for name, level in data.planned.factors.items() if name not in ("drives", "ports"))
    return data.planned.workload, (*rest, *sorted(data.planned.varied.items()))


def _means(data: PointData) -> _Means:
    arm = "candidate" if data.good("candidate") else "baseline"

    def mean(name: str) -> float | None:
        values = data.values(arm, name)
        return fmean(values) if values else None

    return _Means(mean("iops"), mean("throughput_mb_s"), mean("cpu_percent"), mean("latency_mean_us"))


def _limit(
    material: Material,
    data: PointData,
    pattern: Mapping[str, Any],
    paces: Mapping[str, Mapping[str, Any]],
    alone: Sequence[float | None],
) -> PointLimit:
    means = _means(data)
    if means.iops is None:
        return NOTHING
    parts = list(_parts(material, data, means, pattern, paces))
    reached = next((part for part in parts if part.reached), None)
    if reached is not None:
        return PointLimit(reached.name, reached.phrase)
    outstanding = int(pattern.get("iodepth") or 0) * int(pattern.get("numjobs") or 1)
    if outstanding == 1:
        time: Phrase = ()
        if means.latency_us is not None:
            time = (" of ", quantity(means.latency_us, "us", f"samples:limit:{data.planned.point}"))
        start: Phrase = (
            "one I/O is outstanding per drive: its mean time",
            *time,
            " sets the rate; where that time is spent ",
        )
        return PointLimit("latency", (*start, "is not known"))
    rates = [rate for rate in alone if rate]
    if len(alone) > 1 and rates:
        most = fmean(rates) * len(alone)
        if means.iops >= NEAR * most:
            times = count(len(alone), "count:drives")
            share = _percent(means.iops / most, data)
            return PointLimit("drives", (share, " of ", times, " times what one drive gives alone"))
    kind = material.run.benches[data.planned.bench].get("kind")
    cells: list[Cell] = [cell for part in parts for cell in ("; ", *part.phrase)][1:]
    if not cells:
        cells = ["nothing about drives, link or processors was recorded"]
    if kind == "virtual":
        cells.append("; otherwise an emulated bench is limited by the emulator")
    return PointLimit("not known", tuple(cells))


def _parts(
    material: Material,
    data: PointData,
    means: _Means,
    pattern: Mapping[str, Any],
    paces: Mapping[str, Mapping[str, Any]],
) -> Iterator[_Part]:
    """The parts of the path that the run knows, those that are certain first."""
    planned = data.planned
    bench = material.run.benches[planned.bench]
    drives = planned.drives
    if pattern.get("rate_iops") and means.iops:
        requested = float(pattern["rate_iops"]) * len(drives)
        share = means.iops / requested
        yield _Part("load", share, (_percent(share, data), " of the fixed rate that was asked for"), _KEPT)
    emulated = "emulated drives" if bench.get("kind") == "virtual" else "pace of files"
    for name, unit, used in (("iops", "IOPS", means.iops), ("bandwidth", "bandwidth", _bytes(means.mb_s))):
        granted = [float(paces.get(drive, {}).get(name) or 0) for drive in drives]
        if used and granted and all(granted):
            share = used / sum(granted)
            of_grant = f" of the {unit} that the {emulated} {'are' if emulated.endswith('drives') else 'is'} granted"
            yield _Part(emulated, share, (_percent(share, data), of_grant))
    adapter = (bench.get("adapters") or {}).get(planned.adapter) or {}
    ceiling = known_ceiling(adapter, read_adapter(bench, planned.adapter))
    ports = {port_key(drive.get("port")) for drive in adapter.get("drives") or () if drive.get("id") in drives}
    ways = 2 if pattern.get("rw") in ("rw", "randrw") else 1
    for name, carried in (("slot", 1), ("link", max(1, len(ports)) * ways)):
        if ceiling.get(name) and means.mb_s is not None:
            share = means.mb_s * MB / (ceiling[name] * carried)
            yield _Part(name, share, (_percent(share, data), f" of what the {name} carries"))
    if means.cpu is not None:
        busy = means.cpu / 100
        yield _Part("processors", busy, ("the processors are ", _percent(busy, data), " busy"), _BUSY)


def _percent(share: float, data: PointData) -> ShownNumber:
    return percent(round(100 * share, 1), f"samples:limit:{data.planned.point}", signed=False)


def _bytes(mb_s: float | None) -> float | None:
    return None if mb_s is None else mb_s * MB


def _paces(material: Material) -> dict[str, dict[str, Mapping[str, Any]]]:
    """What drives are granted that are emulated, or files with a pace: by bench and drive, as the inventory says it.

    A candidate that changes a limit has its own.
    """
    try:
        inventory = read_object(material.run.path, f"{INPUTS}/{material.run.input_file('inventory').name}")
    except (BadInputError, OSError, ValueError):
        return {}
    paces: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name in material.run.benches:
        adapters = (inventory.get(name) or {}).get("adapters") or {}
        granted_by_drive = {
            str(drive.get("file") or drive.get("wwn") or drive.get("serial")): drive.get("virtual")
            or drive.get("paced")
            for adapter in adapters.values()
            for drive in adapter.get("drives") or ()
        }
        spec = ((material.document.get("provision") or {}).get(name) or {}).get("candidate") or {}
        changed = (spec.get("virtual") or {}).get("iops_limit") or {}
        paces[name] = {
            drive: {**granted, **({"iops": changed[drive]} if drive in changed else {})}
            for drive, granted in granted_by_drive.items()
            if granted
        }
    return paces


_MEASURING = {"output-format", "eta", "disk_util", "group_reporting", "lat_percentiles", "clat_percentiles"}
_MEASURING |= {"percentile_list", "per_job_logs", "log_avg_msec", "log_hist_msec"}
"""What says how fio measures and not what it does."""


@dataclass(frozen=True)
class Repeat:
    """The command that measures one point alone, and the job file of its first launch (empty without a batch)."""

    command: str
    job: str


def repeats_of(material: Material) -> dict[PointKey, Repeat]:
    """By point; the job is that of the point's first launch in the first batch file that has one."""
    jobs: dict[PointKey, str] = {}
    for file in sorted((material.run.path / BATCHES).glob("*.json")):
        batch = read_object(material.run.path, f"{BATCHES}/{file.name}")
        targets = batch.get("targets") or {}
        for launch in batch.get("turns") or ():
            key = (str(batch.get("bench")), str(launch.get("adapter")), str(launch.get("point")))
            if key in material.points and key not in jobs:
                jobs[key] = _job(material.run.name, launch, targets)
    again = measure_again(material)
    return {
        key: Repeat(shlex.join([*again, "--adapters", key[1], "--point", key[2]]), jobs.get(key, ""))
        for key in material.points
    }


def _job(run: str, launch: Mapping[str, Any], targets: Mapping[str, Any]) -> str:
    """A launch as a job file; empty for one that cannot be read."""
    ask = read_ask((launch.get("request") or {}).get("fio"), "fio", [])
    if ask is None:
        return ""
    seed = ask.seed or launch_seed(run, str(launch.get("point")), int(launch.get("n") or 1))
    drives = [_target(str(drive), targets.get(drive) or {}) for drive in launch.get("drives") or ()]
    words = build_argv(ask, drives, seed=seed, log_prefix="")[1:]
    head = "fio --readonly point.fio" if ask.reads_only else "fio point.fio WRITES to its targets"
    lines = [f"# {head}; check that each target is the drive it names"]
    for word in words:
        name, _, value = word.removeprefix("--").partition("=")
        if name == "name":
            lines += [f"[{value}]"]
        elif name != "readonly" and name not in _MEASURING and not name.startswith("write_"):
            lines.append(f"{name}={value}")
    return "\n".join(lines) + "\n"


def _target(drive: str, entry: Mapping[str, Any]) -> FioTarget:
    """A drive by its WWN on whatever bench it hangs, a file by its path; a volume has no name that would be right."""
    claim = entry.get("claim") or {}
    if claim.get("file"):
        return FioTarget(drive, str(claim["file"]), size=int(claim.get("size") or 0), is_file=True)
    if "volume" in entry:
        return FioTarget(drive, f"VOLUME {drive}")
    return FioTarget(drive, f"/dev/disk/by-id/{'wwn-' if drive.startswith('0x') else ''}{drive}")


@dataclass(frozen=True)
class PointEvidence:
    """Everything about one point; `outcomes` are (metric, outcome, reference) of its criteria."""

    ident: str
    bench: str
    adapter: str
    point: str
    outcomes: tuple[tuple[str, OutcomeBadge, str], ...]
    open: bool
    sentences: tuple[str, ...]
    skipped: str
    charts: tuple[DrawnChart, ...]
    launches: Table
    repeat: Repeat | None = None
    limit: PointLimit = NOTHING


_SECONDS = 3
_GAP = 0.6
_LONG = 12
_FEW_FILES = 3


def point_evidence(
    point: PointData,
    rows: Sequence[JudgedCriterion],
    links: PageLinks,
    benches: Sequence[str],
    moments: Sequence[TimelineEvent],
    *,
    few: bool,
    repeat: Repeat | None = None,
    limit: PointLimit = NOTHING,
) -> PointEvidence:
    """The evidence of one point; `moments` are what happened on its bench.

    Where the page tells many points (not `few`), seconds are drawn only for a point that did not pass or that saw
    something happen; as numbers they stand with every launch.
    """
    ident = links.point(point.planned.key).partition("#")[2]
    adapter = adapter_name(benches, point.planned.bench, point.planned.adapter)
    launches = sorted(point.every(), key=lambda launch: launch.began)
    metrics = [metric.name for metric in CURVES]
    metrics += [name for name in dict.fromkeys(row.text("metric") for row in rows) if name and name not in metrics]
    metrics = [name for name in metrics if any(launch.number(name) is not None for launch in launches)]
    scales = {name: _scale(name, launches) for name in metrics}
    bad = any(row.required and row.outcome not in ("PASS", "SKIPPED") for row in rows)
    disturbed = any(launch.began <= moment.at <= _end(launch) for launch in launches for moment in moments)
    series = _series(launches, f"{ident}-s", moments) if few or bad or disturbed else None
    strip = launch_strip(point, rows, f"{ident}-r") if few or bad else None
    return PointEvidence(
        ident=ident,
        bench=point.planned.bench,
        adapter=adapter,
        point=point.planned.point,
        outcomes=tuple((measure(row.text("metric")).label, row.badge, links.criterion(row)) for row in rows),
        open=few and bad,
        sentences=tuple(str(text) for row in rows for text in row.fields.get("evidence") or ()),
        skipped=point.planned.skipped,
        charts=(
            *([series] if series else []),
            *([strip] if strip else []),
            *load_charts(point, f"{ident}-c"),
            *latency_charts(point, f"{ident}-l"),
        ),
        launches=_launch_table(adapter, point, launches, scales),
        repeat=repeat,
        limit=limit,
    )


def _scale(name: str, launches: Sequence[Launch]) -> Scale:
    return scale_for(measure(name).unit, [launch.number(name) for launch in launches])


def _head(name: str, scale: Scale) -> str:
    label = measure(name).label
    return f"{label}, {scale.unit}" if scale.unit and scale.unit.lower() != label.lower() else label


def _launch_table(adapter: str, point: PointData, launches: Sequence[Launch], scales: Mapping[str, Scale]) -> Table:
    """Each launch with its values and its evidence; seconds in a column of their own where there are several."""
    seconds = any(len(launch.seconds) >= _SECONDS for launch in launches)
    rows = []
    for launch in launches:
        values = (
            scale.figure(launch.number(name), f"samples:launch:{name}:{launch.id}") for name, scale in scales.items()
        )
        raw = tuple(file.sha256 for file in launch.raw)
        cells = (
            *(launch.id, launch.arm, launch.start[11:19] if len(launch.start) > 19 else launch.start),
            *((launch.status, *launch.suspect, *but_rates(launch)), *values, *([_rates(launch)] if seconds else [])),
            Folded("raw files", raw) if len(raw) > _FEW_FILES else raw,
        )
        rows.append(cells)
    styles = {_head(name, scale): NUMBER for name, scale in scales.items()} | {"IOPS in each second": "secs"}
    heads = ("Launch", "Arm", "Start, UTC", "Status", *map(_head, scales, scales.values()))
    heads = (*heads, *(["IOPS in each second"] if seconds else []), "Raw files by digest")
    tones = {at: "error" for at, launch in enumerate(launches) if launch.status != "ok"}
    caption = f"Launches on {' '.join(point.planned.drives)}" if point.planned.drives else "Launches"
    label = f"Launches of {adapter} {point.planned.point}"
    return Table(caption, heads, tuple(rows), styles, tones, label=label)


def _end(launch: Launch) -> float:
    return launch.began + max(launch.runtime_s, len(launch.seconds))


def _series(launches: Sequence[Launch], ident: str, moments: Sequence[TimelineEvent]) -> DrawnChart | None:
    """Seconds of all launches side by side in the order they were run, with what happened meanwhile."""
    shown = [launch for launch in launches if len(launch.seconds) >= _SECONDS]
    if not shown:
        return None
    steps: dict[str, list[tuple[float, float, float]]] = {arm: [] for arm in ARMS}
    spans: list[Span] = []
    events: list[EventMark] = []
    at = 0.0
    for launch in shown:
        gap = max(_GAP, len(launch.seconds) * 0.08)
        begin = at
        steps.setdefault(launch.arm, []).extend(
            (at + second, at + second + 1, rate) for second, rate in enumerate(launch.seconds)
        )
        at += len(launch.seconds)
        spans.append(Span(begin, at, launch.session, launch.arm))
        end = _end(launch)
        events += [
            EventMark(
                begin + (moment.at - launch.began) / (end - launch.began) * len(launch.seconds),
                moment.badge,
                moment.serious,
            )
            for moment in moments
            if launch.began <= moment.at <= end
        ]
        at += gap
    end = at - gap
    ticks = [0.0] if len(shown) > 1 else list(nice_ticks(0, end, 6))
    across = Axis(
        "launches in the order they ran, one step per second",
        0.0,
        end,
        tuple((t, short(t)) for t in ticks[: 0 if len(shown) > 1 else None]),
    )
    top = max(max(launch.seconds) for launch in shown)
    title = "IOPS over time"
    described = "Launches second by second in the order they ran, candidate tinted; numbers in the table of launches."
    picture = time_chart(
        ident, title, described, [Trace(arm, tuple(trace)) for arm, trace in steps.items() if trace], across,
        value_axis("", top), spans=spans, events=events, size=(960, 170),
    )  # fmt: skip
    return DrawnChart(title, picture, None, wide=True)


def _rates(launch: Launch) -> ShownNumber | Folded:
    shown = " ".join(str(Scale("").figure(rate, "")) for rate in launch.seconds)
    rates = ShownNumber(shown or DASH, None, f"samples:series:{launch.id}")
    length = ShownNumber(f"{len(launch.seconds)}{TIED}s", len(launch.seconds), f"samples:length:{launch.id}")
    return Folded(length, (rates,)) if len(launch.seconds) > _LONG else rates


_LoadMeans = dict[int, tuple[float, float]]
"""Load -> mean rate (1/s) and mean response time (ns) over launches."""


def load_charts(point: PointData, ident: str) -> tuple[DrawnChart, ...]:
    """The two pictures of a point whose launches go to a latency cap; none for any other."""
    means = {arm: _load_means(point.loads[arm]) for arm in ARMS if point.loads.get(arm)}
    if not means:
        return ()
    scale = scale_for("ns", [response for arm in means.values() for _, response in arm.values()])
    table = _load_table(means, scale, point)
    rate = _panel(
        f"{ident}-r",
        "IOPS against load",
        {arm: [(load, iops) for load, (iops, _) in by_load.items()] for arm, by_load in means.items()},
        lambda loads: size_axis("outstanding per drive", loads, sizes=False),
        "IOPS",
    )
    response = _panel(
        f"{ident}-t",
        "Response time against IOPS",
        {arm: [(iops, ns / scale.divisor) for iops, ns in by_load.values()] for arm, by_load in means.items()},
        lambda rates: value_axis("IOPS", max(rates)),
        scale.unit,
    )
    return (DrawnChart("IOPS against load", rate, table), DrawnChart("Response time against IOPS", response, table))


def _load_means(steps: Sequence[LoadStep]) -> _LoadMeans:
    by_load: defaultdict[int, list[LoadStep]] = defaultdict(list)
    for step in steps:
        by_load[step.load].append(step)
    return {
        load: (
            sum(step.rate for step in members) / len(members),
            sum(step.response_ns for step in members) / len(members),
        )
        for load, members in sorted(by_load.items())
    }


def _panel(
    ident: str,
    title: str,
    curves: Mapping[str, Sequence[tuple[float, float]]],
    across: Callable[[Sequence[float]], Axis],
    up: str,
) -> Markup:
    axis = across([x for marks in curves.values() for x, _ in marks])
    highest = max(y for marks in curves.values() for _, y in marks)
    drawn = [PlottedCurve(arm, arm, tuple(Mark(x, y) for x, y in marks)) for arm, marks in curves.items()]
    described = f"{title}, one mark for each load that was tried; the numbers are in the table."
    return curve_panel(ident, title, described, drawn, axis, value_axis(up, highest))


def _load_table(means: Mapping[str, _LoadMeans], scale: Scale, point: PointData) -> Table:
    heads = ["Load"]
    for arm in means:
        heads += [f"IOPS, {arm}", f"Response time, {arm}, {scale.unit}"]
    rows: list[tuple[ShownNumber | str, ...]] = []
    for load in sorted({load for by_load in means.values() for load in by_load}):
        row: list[ShownNumber | str] = [ShownNumber(str(load), load, f"samples:load:{point.planned.point}:{load}")]
        for arm, by_load in means.items():
            rate, response = by_load.get(load, (None, None))
            source = f"samples:load:{point.planned.point}:{load}:{arm}"
            measured = load in by_load
            row += [Scale("").figure(rate, source), scale.figure(response, source)] if measured else [NONE, NONE]
        rows.append(tuple(row))
    return Table("Load curve", tuple(heads), tuple(rows))
