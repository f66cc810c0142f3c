# SPDX-License-Identifier: Apache-2.0
"""Throughput over drives, ports, adapters, jobs and queue depth: linear ranges, knees, and what is enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storqual.analysis.scaling import Scaling, scaling
from storqual.analysis.scaling_words import scaling_sentences
from storqual.factor_words import AXIS_NAMES, level_text
from storqual.study.cells import Cell, Line, lines_of

__all__ = ["SCALED", "Growth", "growths"]

SCALED = ("adapters", "ports", "drives", "numjobs", "iodepth")


@dataclass(frozen=True)
class Growth:
    """One line of one subject with what its shape says; `metric` is a rate. `enough` is the advice, or empty."""

    line: Line
    metric: str
    found: Scaling
    sentences: tuple[str, ...]
    enough: str


def growths(cells: Sequence[Cell], metric: str = "throughput_mb_s") -> list[Growth]:
    """Every line along a factor that scales, of every subject."""
    listed = []
    for along in SCALED:
        for line in lines_of(cells, along):
            values = line.values(metric)
            if len(values) < 2 or min(values) <= 0:
                continue
            found = scaling(values)
            told = tuple(scaling_sentences(found, _unit(along), "MB/s"))
            listed.append(Growth(line, metric, found, told, _enough(line, found)))
    return listed


def _unit(along: str) -> str:
    return {"numjobs": "jobs", "iodepth": "commands in the queue"}.get(along, AXIS_NAMES[along])


def _enough(line: Line, found: Scaling) -> str:
    """From which level on more gives nothing: said only where the plateau is shown, with the gain up to there."""
    if found.shape != "knee" or found.knee is None or found.plateau is None:
        return ""
    level = next((level for level in found.levels if level.at >= found.knee.value), found.levels[-1])
    first = found.levels[0]
    gain = 100 * (level.value.value / first.value.value - 1)
    here, there = (level_text(line.along, int(one.at)) for one in (level, first))
    interval = ""
    if found.knee.low is not None and found.knee.high is not None:
        interval = f" (interval {found.knee.low:.3g} to {found.knee.high:.3g})"
    return (
        f"{line.subject}, {line.title}: {here} saturate{'s' if level.at == 1 or line.along == 'iodepth' else ''} it, "
        f"{gain:.0f} % over {there}; the knee is at {found.knee.value:.3g}{interval}, more gives nothing."
    )
