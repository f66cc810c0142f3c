# SPDX-License-Identifier: Apache-2.0
"""Throughput over drives, ports, adapters, jobs and queue depth: linear ranges, knees, and what is enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from storqual.base.factor_names import AXIS_NAMES, level_text
from storqual.statistics.scaling import SCALED, Level, Scaling, scaling, scaling_sentences
from storqual.study.points import Line, Point, lines_of


@dataclass(frozen=True)
class Growth:
    """One line of one subject with what its shape says; `metric` is a rate.

    `enough` is the level from which on more is shown to give nothing.
    """

    line: Line
    metric: str
    found: Scaling
    sentences: tuple[str, ...]
    enough: Level | None


def growths(points: Sequence[Point], metric: str = "throughput_mb_s") -> list[Growth]:
    """Every line along a factor that scales, of every subject."""
    listed = []
    for along in SCALED:
        for line in lines_of(points, along):
            values = line.values(metric)
            if len(values) < 2 or min(values) <= 0:
                continue
            found = scaling(values)
            told = tuple(scaling_sentences(found, _unit(along), "MB/s"))
            listed.append(Growth(line, metric, found, told, _enough(found)))
    return listed


def _unit(along: str) -> str:
    return {"numjobs": "jobs", "iodepth": "commands in the queue"}.get(along, AXIS_NAMES[along])


def _enough(found: Scaling) -> Level | None:
    """The level from which on more gives nothing: said only where a level beyond it was measured and gave no more."""
    if found.shape != "knee" or found.knee is None:
        return None
    # the first level that is not shown to lie below the knee
    start = found.knee.value if found.knee.low is None else found.knee.low
    level = next((level for level in found.levels if level.at >= start), None)
    return level if level is not None and level.at < found.levels[-1].at else None


def saturation_advice(found: Sequence[Growth]) -> Iterator[str]:
    """How much of what is enough: one sentence for all lines of a subject that one level saturates."""
    groups: defaultdict[tuple[str, str, float], list[Growth]] = defaultdict(list)
    for one in found:
        if one.enough is not None:
            groups[(one.line.subject, one.line.along, one.enough.at)].append(one)
    for (subject, along, at), members in groups.items():
        gains = [
            100 * (one.enough.value.value / one.found.levels[0].value.value - 1) for one in members if one.enough
        ]
        low, high = f"{min(gains):.0f}", f"{max(gains):.0f}"
        first, last = (level_text(along, int(members[0].found.levels[end].at)) for end in (0, -1))
        more = f" and {len(members) - 1} more" if len(members) > 1 else ""
        yield (
            f"{subject}: {level_text(along, int(at))} {'is' if at == 1 or along == 'iodepth' else 'are'} enough at "
            f"{members[0].line.title}{more}: {low if low == high else f'{low} to {high}'} % over {first}, "
            f"and no more with up to {last}."
        )
