# SPDX-License-Identifier: Apache-2.0
"""Varied settings ranked by their effect on a metric: what matters first, and what is shown not to matter.

The effect of a level is that of the setting alone: at each combination of everything else the level is compared with
the setting's first level, and the logarithms of the ratios are averaged. A setting is *neutral* only when its whole
interval lies within the margin; one whose interval holds both nothing and more than the margin is *open*.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from storqual.base.figures import percent_range
from storqual.base.formulas import Better
from storqual.metrics import METRICS
from storqual.statistics.estimates import Estimate, LogLevels, log_levels
from storqual.study.comparisons import MARGIN, Relation, reaches_tenfold, relation_of
from storqual.study.points import StudyPoint
from storqual_core.kit.quantities import format_percent

Influence = Literal["better", "worse", "neutral", "open"]
Combination = tuple[tuple[str, Any], ...]

_INFLUENCES: Mapping[Relation, Influence] = {"ahead": "better", "behind": "worse", "equal": "neutral", "open": "open"}
_ORDER: Mapping[Influence, int] = {"better": 0, "worse": 0, "open": 1, "neutral": 2}


@dataclass(frozen=True, slots=True)
class Effect:
    """What changing `setting` from `base` to `level` does: `shift` is the fraction by which it is better.

    `points` is at how many combinations of everything else both were measured; `least` and `most` are the smallest
    and the largest shift among them. `along`: settings whose level changes with this one wherever it does (setting,
    base, level), so that the shift is that of both.
    """

    setting: str
    base: Any
    level: Any
    shift: Estimate
    influence: Influence
    points: int
    least: float
    most: float
    along: tuple[tuple[str, Any, Any], ...] = ()

    @property
    def change(self) -> str:
        """What is compared: `drive.WCE from 1 to 0`, with all that changes along."""
        return " with ".join(f"{name} from {base} to {level}" for name, base, level in self._changed)

    @property
    def short(self) -> str:
        """The same for a table: `drive.WCE: 1 to 0`."""
        return ", ".join(f"{name}: {base} to {level}" for name, base, level in self._changed)

    @property
    def _changed(self) -> tuple[tuple[str, Any, Any], ...]:
        return ((self.setting, self.base, self.level), *self.along)

    def levels(self, *, base: bool) -> tuple[str, str]:
        """One side of it without the setting's own name: `5`, and ` (raid.members 3)` for what comes along."""
        setting, *rest = ((name, level if base else other) for name, level, other in self._changed)
        return str(setting[1]), f" ({', '.join(f'{name} {level}' for name, level in rest)})" if rest else ""


def ranking(
    launches: Mapping[tuple[Hashable, Combination], Sequence[float]],
    *,
    better: Better = "higher",
    margin: float = MARGIN,
    rankings: int = 1,
) -> tuple[Effect, ...]:
    """The effect of every level of every setting, the largest that is shown first, neutral ones last.

    `launches`: (context, combination of settings) -> one value per launch; a context is whatever else tells points
    apart. Intervals hold for all effects together (Bonferroni), and for those of as many like `rankings` as are told
    side by side. Raises ValueError for a margin outside 0 to 1 and for what `log_levels` refuses.
    """
    if not 0 < margin < 1:
        raise ValueError(f"margin {margin!r}, expected a fraction between 0 and 1")
    points = list(launches)
    data = log_levels({float(number): launches[measured_at] for number, measured_at in enumerate(points)})
    at = {measured_at: number for number, measured_at in enumerate(points)}
    compared = list(_pairs(points))
    effects = [_effect(pair, data, at, better, margin, len(compared) * rankings) for pair in compared]
    return tuple(sorted(effects, key=lambda effect: (_ORDER[effect.influence], -abs(math.log1p(effect.shift.value)))))


_Measured = tuple[Hashable, Combination]


@dataclass(frozen=True)
class _Pair:
    """A level beside its setting's first one, and the points at which both were measured."""

    setting: str
    base: Any
    level: Any
    matched: Sequence[tuple[_Measured, _Measured]]

    @property
    def along(self) -> tuple[tuple[str, Any, Any], ...]:
        """Other settings that differ between the two, the same everywhere."""
        (_, here), (_, there) = self.matched[0]
        both = zip(here, there, strict=True)
        return tuple((name, was, now) for (name, was), (_, now) in both if name != self.setting and was != now)


def _pairs(points: Sequence[_Measured]) -> Iterator[_Pair]:
    """Each other level beside a setting's base: the first one, of those that were measured at most points."""
    groups: defaultdict[str, defaultdict[Hashable, dict[Any, _Measured]]] = defaultdict(lambda: defaultdict(dict))
    levels: defaultdict[str, Counter[Any]] = defaultdict(Counter)
    bound = _bound([dict(combination) for _, combination in points])
    for context, combination in points:
        for name, level in combination:
            rest = tuple(item for item in combination if item[0] not in (name, *bound[name]))
            groups[name][(context, rest)][level] = (context, combination)
            levels[name][level] += 1
    earlier: set[str] = set()
    for name, counts in levels.items():
        earlier.add(name)
        if any(other in earlier and name in bound[other] for other in bound[name]):
            continue
        base = max(counts, key=counts.__getitem__)
        for level in (level for level in counts if level != base):
            matched = [
                (by_level[base], by_level[level])
                for by_level in groups[name].values()
                if base in by_level and level in by_level
            ]
            if matched:
                yield _Pair(name, base, level, matched)


def _bound(combinations: Sequence[Mapping[str, Any]]) -> Mapping[str, frozenset[str]]:
    """By setting, those that it decides: each of its levels was measured with one of theirs, not all with the same.

    A suite may say how many members a RAID level has; then nothing tells the two apart.
    """
    decided: dict[str, frozenset[str]] = {}
    for name in dict.fromkeys(name for combination in combinations for name in combination):
        with_it: defaultdict[str, set[tuple[Any, Any]]] = defaultdict(set)
        for combination in combinations:
            for other, level in combination.items() if name in combination else ():
                with_it[other].add((combination[name], level))
        count = len(with_it[name])
        decided[name] = frozenset(
            other
            for other, pairs in with_it.items()
            if other != name and len(pairs) == count and len({level for _, level in pairs}) > 1
        )
    return decided


def _effect(
    pair: _Pair, data: LogLevels, at: Mapping[_Measured, int], better: Better, margin: float, tests: int
) -> Effect:
    matched, sign = pair.matched, 1.0 if better == "higher" else -1.0
    shifts = [sign * (data.mean[at[there]] - data.mean[at[here]]) for here, there in matched]
    share = sum(1 / data.count[at[measured_at]] for both in matched for measured_at in both) / len(matched) ** 2
    log_shift = data.estimate(sum(shifts) / len(shifts), share, tests)
    ends = (None if end is None else math.expm1(end) for end in (log_shift.low, log_shift.high))
    return Effect(
        setting=pair.setting,
        base=pair.base,
        level=pair.level,
        shift=Estimate(math.expm1(log_shift.value), *ends),
        influence=_INFLUENCES[relation_of(log_shift, margin)],
        points=len(matched),
        least=math.expm1(min(shifts)),
        most=math.expm1(max(shifts)),
        along=pair.along,
    )


RANKED = ("iops", "cpu_us_per_io")


@dataclass(frozen=True)
class SettingStudy:
    """The effects of all varied settings on one metric of one workload on one subject, ranked."""

    subject: str
    workload: str
    metric: str
    effects: tuple[Effect, ...]
    sentences: tuple[str, ...]


def setting_studies(points: Sequence[StudyPoint], *, margin: float = 0.03) -> list[SettingStudy]:
    """A ranking per subject, workload and metric, where any setting was varied; intervals hold for all together."""
    groups: defaultdict[tuple[str, str], list[StudyPoint]] = defaultdict(list)
    for point in points:
        if point.varied:
            groups[(point.subject, point.workload)].append(point)
    measured = {(*key, metric): _launches(members, metric) for key, members in groups.items() for metric in RANKED}
    ranked = {key: launches for key, launches in measured.items() if len(launches) > 1}
    studies = []
    for (subject, workload, metric), launches in ranked.items():
        effects = ranking(launches, better=METRICS[metric].better, margin=margin, rankings=len(ranked))
        sentences = tuple(
            effect_sentence(effect, subject, workload, METRICS[metric].label, margin) for effect in effects
        )
        studies.append(SettingStudy(subject, workload, metric, effects, sentences))
    return studies


def _launches(
    points: Sequence[StudyPoint], metric: str
) -> dict[tuple[Hashable, tuple[tuple[str, Any], ...]], tuple[float, ...]]:
    """(factors, settings) -> values above zero."""
    values_by_context: dict[tuple[Hashable, tuple[tuple[str, Any], ...]], tuple[float, ...]] = {}
    for point in points:
        factors = tuple(sorted((name, level) for name, level in point.levels.items() if name not in point.varied))
        settings = tuple(sorted((name, point.levels[name]) for name in point.varied))
        values = point.values(metric)
        if values and min(values) > 0:
            values_by_context[(factors, settings)] = values
    return values_by_context


def effect_sentence(effect: Effect, subject: str, workload: str, measure: str, margin: float) -> str:
    """One effect in words, no stronger than its interval."""
    change = effect.change
    where = f"{subject}, {workload}, {measure}"
    shift = effect.shift
    if (
        shift.low is None
        or shift.high is None
        or (effect.influence == "open" and reaches_tenfold(shift.low, shift.high))
    ):
        lacking = "has too few launches, or launches that vary too much"
        return (
            f"{where}: {change} {lacking}: a change of {format_percent(shift.value, signed=True)} is not conclusive."
        )
    points = "1 point" if effect.points == 1 else f"{effect.points} points"
    sure = f"(interval {percent_range(shift.low, shift.high, signed=True)}, {points})"
    if effect.influence == "neutral":
        return f"{where}: {change} is neutral: within {format_percent(margin)} {sure}."
    if effect.influence == "open":
        return f"{where}: no effect of {change} is shown {sure}."
    return f"{where}: {change} is {format_percent(abs(shift.value))} {effect.influence} {sure}."
