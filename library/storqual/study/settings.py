# SPDX-License-Identifier: Apache-2.0
"""Varied settings by workload: which matter, in which direction, and which are shown to be neutral."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.analysis.compare_words import reaches_tenfold
from storqual.analysis.ranking import Effect, ranking
from storqual.metrics import METRICS
from storqual.study.cells import Cell

__all__ = ["RANKED", "SettingStudy", "effect_sentence", "setting_studies"]

RANKED = ("iops", "cpu_us_per_io")


@dataclass(frozen=True)
class SettingStudy:
    """The effects of all varied settings on one metric of one workload on one subject, ranked."""

    subject: str
    workload: str
    metric: str
    effects: tuple[Effect, ...]
    sentences: tuple[str, ...]


def setting_studies(cells: Sequence[Cell], *, margin: float = 0.03) -> list[SettingStudy]:
    """A ranking per subject, workload and metric, where any setting was varied; intervals hold for all together."""
    groups: defaultdict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.varied:
            groups[(cell.subject, cell.workload)].append(cell)
    measured = {(*key, metric): _launches(members, metric) for key, members in groups.items() for metric in RANKED}
    ranked = {key: launches for key, launches in measured.items() if len(launches) > 1}
    found = []
    for (subject, workload, metric), launches in ranked.items():
        effects = ranking(launches, better=METRICS[metric].better, margin=margin, rankings=len(ranked))
        told = tuple(effect_sentence(one, subject, workload, METRICS[metric].label, margin) for one in effects)
        found.append(SettingStudy(subject, workload, metric, effects, told))
    return found


def _launches(
    cells: Sequence[Cell], metric: str
) -> dict[tuple[Hashable, tuple[tuple[str, Any], ...]], tuple[float, ...]]:
    """(factors, settings) -> values above zero."""
    found: dict[tuple[Hashable, tuple[tuple[str, Any], ...]], tuple[float, ...]] = {}
    for cell in cells:
        factors = tuple(sorted((name, level) for name, level in cell.levels.items() if name not in cell.varied))
        settings = tuple(sorted((name, cell.levels[name]) for name in cell.varied))
        values = cell.values(metric)
        if values and min(values) > 0:
            found[(factors, settings)] = values
    return found


def effect_sentence(effect: Effect, subject: str, workload: str, measure: str, margin: float) -> str:
    """One effect in words, no stronger than its interval."""
    change = f"{effect.setting} from {effect.base} to {effect.level}"
    where = f"{subject}, {workload}, {measure}"
    shift = effect.shift
    if (
        shift.low is None
        or shift.high is None
        or (effect.influence == "open" and reaches_tenfold(shift.low, shift.high))
    ):
        lacking = "has too few launches, or too unlike ones"
        return f"{where}: {change} {lacking}: {100 * shift.value:+.1f} % shows nothing."
    places = "1 place" if effect.places == 1 else f"{effect.places} places"
    sure = f"(interval {100 * shift.low:+.1f} to {100 * shift.high:+.1f} %, {places})"
    if effect.influence == "neutral":
        return f"{where}: {change} is neutral: within {100 * margin:g} % {sure}."
    if effect.influence == "open":
        return f"{where}: nothing is shown of {change} {sure}."
    return f"{where}: {change} is {abs(100 * shift.value):.1f} % {effect.influence} {sure}."
