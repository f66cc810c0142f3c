# SPDX-License-Identifier: Apache-2.0
"""How launches lie: those of one point as ratios to the baseline's mean, and all points, arm against arm."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from storqual.report.axes import short
from storqual.report.charts.strip import Limit, StripRow, scatter, strip
from storqual.report.charts.svg import Axis, decade_ticks, nice_ticks
from storqual.report.criterion import Criterion, place_name
from storqual.report.figures import Figure, scale_for
from storqual.report.material import ARMS, CURVES, Material, measure
from storqual.report.view import Chart, ChartTable
from storqual.run.measurements import PointData

_FEWEST = 12
_MOST_TICKS = 5
_TONES = {"PASS": "pass", "MARGINAL": "marginal", "FAIL": "fail", "INCONCLUSIVE": "inconclusive"}


def launch_strip(point: PointData, rows: Sequence[Criterion], ident: str) -> Chart | None:
    """The launches of a point by its first required criterion against the baseline; None without two arms."""
    row = next((row for row in rows if row.against == "baseline" and row.required), None)
    if row is None:
        return None
    name = row.text("metric")
    values = {
        arm: [value for launch in point.good(arm) if (value := launch.number(name)) is not None] for arm in ARMS
    }
    mean = fmean(values["baseline"]) if values["baseline"] else 0.0
    if mean <= 0 or not values["candidate"]:
        return None
    ratios = [StripRow(arm, tuple(value / mean for value in found)) for arm, found in values.items()]
    limits = _limits(row)
    inside = [1.0, *(ratio for one in ratios for ratio in one.ratios), *(limit.ratio for limit in limits)]
    low, high = min(inside), max(inside)
    room = max(high - low, 0.01) * 0.06
    ticks = nice_ticks(low - room, high + room, _MOST_TICKS)
    label = measure(name).label
    along = Axis("mean of the baseline is 1", low - room, high + room, tuple((tick, f"{tick:g}") for tick in ticks))
    title = f"{label} of each launch"
    described = "A mark for each launch, a ratio to the baseline's mean, with both limits; numbers with the launches."
    return Chart(title, strip(ident, title, described, ratios, limits, along), None)


def _limits(row: Criterion) -> list[Limit]:
    """Where the limits of a loss lie as ratios: below one where more is better, above it where less is."""
    found: list[Limit] = []
    for field, name, hard in (("margin", "unacceptable", True), ("indifference", "acceptable", False)):
        size = row.number(f"{field}_percent")
        if size is not None and 0 < size < 100:
            found.append(Limit(1 + (1 if row.text("better") == "lower" else -1) * size / 100, name, hard))
    return found


def overview(material: Material, rows: Sequence[Criterion], ident: str) -> Chart | None:
    """All points of a large matrix, baseline against candidate in IOPS; None for few points or one arm."""
    name = CURVES[0].name
    outcomes: dict[tuple[str, str, str], str] = {}
    for row in rows:
        if row.text("metric") == name and row.against == "baseline":
            outcomes[row.key] = row.outcome
    found: dict[str, list[tuple[tuple[str, str, str], float, float]]] = {}
    for key, point in material.points.items():
        means = [_mean(point, arm, name) for arm in ARMS]
        if None not in means and min(means[0] or 0.0, means[1] or 0.0) > 0:
            found.setdefault(outcomes.get(key, ""), []).append((key, means[0] or 0.0, means[1] or 0.0))
    every = [value for listed in found.values() for _, *pair in listed for value in pair]
    if len(every) < 2 * _FEWEST:
        return None
    low, high = min(every) / 1.2, max(every) * 1.2
    ticks = tuple((tick, short(tick)) for tick in decade_ticks(low, high, 6))
    groups = [
        (_TONES.get(outcome, "skipped"), [(one, other) for _, one, other in listed])
        for outcome, listed in found.items()
    ]
    title = f"{measure(name).label} of every point, candidate against baseline"
    picture = scatter(
        ident, title, "A mark for each point; on the line both arms are the same, below it the candidate is worse.",
        groups, Axis("baseline", low, high, ticks, logarithmic=True),
        Axis("candidate", low, high, ticks, logarithmic=True),
    )  # fmt: skip
    return Chart(title, picture, _table(material, found))


_MOST_ROWS = 200


def _table(material: Material, found: dict[str, list[tuple[tuple[str, str, str], float, float]]]) -> ChartTable:
    """The points that lie farthest from the line: of a large matrix no more than are read."""
    benches = list(material.run.benches)
    listed = sorted((one for group in found.values() for one in group), key=lambda one: one[2] / one[1])
    half = _MOST_ROWS // 2
    shown = listed if len(listed) <= _MOST_ROWS else [*listed[:half], *listed[-half:]]
    scale = scale_for("IOPS", [])
    rows: list[tuple[Figure | str, ...]] = [
        (
            f"{place_name(benches, *key[:2])} {key[2]}",
            scale.figure(one, f"samples:mean:iops:{'/'.join(key)}:baseline"),
            scale.figure(other, f"samples:mean:iops:{'/'.join(key)}:candidate"),
        )
        for key, one, other in shown
    ]
    more = "" if len(shown) == len(listed) else ", those that changed most"
    return ChartTable(f"Mean IOPS of points{more}", ("Point", "Baseline", "Candidate"), tuple(rows))


def _mean(point: PointData, arm: str, name: str) -> float | None:
    values = [value for launch in point.good(arm) if (value := launch.number(name)) is not None]
    return fmean(values) if values else None
