# SPDX-License-Identifier: Apache-2.0
"""Points that differ in one factor only are a curve: throughput against drives, ports, queue depth, processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from storqual.judge.extract import Key, Place
from storqual.judge.question import units_of
from storqual.metrics import Metric
from storqual.store import PlannedPoint
from storqual.study.scale import SCALED

__all__ = ["Curve", "curves_of", "values_at"]


@dataclass(frozen=True)
class Curve:
    """The points of one adapter that differ in the factor `over`, by its level."""

    bench: str
    adapter: str
    name: str
    over: str
    points: Mapping[float, PlannedPoint]


def curves_of(points: Iterable[PlannedPoint]) -> list[Curve]:
    """Every curve with two levels at least; its name is a point's with `*` for the level."""
    groups: defaultdict[tuple[str, str, str, str], dict[float, PlannedPoint]] = defaultdict(dict)
    for point in points:
        for factor in SCALED:
            level = point.factors.get(factor)
            if isinstance(level, int) and not isinstance(level, bool):
                name = _starred(point.point, factor)
                groups[point.bench, point.adapter, name, factor][float(level)] = point
    return [
        Curve(*key[:3], over=key[3], points=dict(sorted(found.items())))
        for key, found in groups.items()
        if len(found) > 1
    ]


def values_at(curve: Curve, places: Mapping[Key, Place], metric: Metric, arm: str) -> dict[float, Sequence[float]]:
    """Values of an arm by level: one for each session where there are several, else one for each launch.

    A level whose launches cannot answer is left out: a curve is about what was measured.
    """
    found: dict[float, Sequence[float]] = {}
    for level, point in curve.points.items():
        launches = places.get(point.key, Place()).of(arm)
        units = units_of(launches, metric) if all(one.status == "ok" for one in launches) else "not all ran"
        if isinstance(units, str) or not units or min(unit.value for unit in units) <= 0:
            continue
        sessions: defaultdict[str, list[float]] = defaultdict(list)
        for unit in units:
            sessions[unit.session].append(unit.value)
        means = [sum(values) / len(values) for values in sessions.values()]
        found[level] = means if len(means) > 1 else [unit.value for unit in units]
    return found


def _starred(point: str, factor: str) -> str:
    """`seq_read[bs=64k,drives=4]` with drives as `*`."""
    head, _, inside = point.rstrip("]").partition("[")
    parts = [f"{factor}=*" if part.partition("=")[0] == factor else part for part in inside.split(",")]
    return f"{head}[{','.join(parts)}]"
