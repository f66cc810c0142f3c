# SPDX-License-Identifier: Apache-2.0
"""Subjects against each other along a factor, of one run or several: who leads where, by how much, and at equal load.

Each pair of adapters is compared at each level by the ratio of means, with intervals that hold for all pairs and
levels together. A level is *equal* when its whole interval lies within the margin, else *ahead* or *behind* when the
whole interval is, else *open*. Neighbouring levels of one relation make a range, and a range makes a sentence.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from storqual.base.figures import level_text, percent_range, together
from storqual.base.formulas import Better
from storqual.metrics import METRICS
from storqual.run.layout import SAMPLES
from storqual.statistics.estimates import (
    Estimate,
    LogLevels,
    common_loads,
    curve,
    log_levels,
    response_at,
    shift_at_equal_load,
)
from storqual.study.points import Levels, PointLine, StudyPoint, first_axis, lines_of, number, points_of_runs
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.quantities import format_percent

MARGIN = 0.03
"""Two adapters are called equal where they differ by less than 3 %, shown by the whole interval."""

Relation = Literal["ahead", "behind", "equal", "open"]
Curves = Mapping[str, Mapping[float, Sequence[float]]]


@dataclass(frozen=True, slots=True)
class LevelShift:
    """One level: `shift` is by what fraction the first is better: a ratio of values, less one."""

    at: float
    shift: Estimate
    relation: Relation


@dataclass(frozen=True, slots=True)
class Range:
    """Neighbouring levels of one relation. `least` and `most` are the ends of all their intervals together."""

    start: float
    end: float
    relation: Relation
    shifts: tuple[LevelShift, ...]

    @property
    def least(self) -> float | None:
        """The smallest shift that any interval of the range allows, as a fraction."""
        lows = [level.shift.low for level in self.shifts]
        return None if None in lows else min(low for low in lows if low is not None)

    @property
    def most(self) -> float | None:
        highs = [level.shift.high for level in self.shifts]
        return None if None in highs else max(high for high in highs if high is not None)


@dataclass(frozen=True)
class SubjectComparison:
    """The first adapter against the second over all levels that both have."""

    first: str
    second: str
    levels: tuple[LevelShift, ...]
    better: Better = "higher"

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Neighbouring levels with one relation, in order."""
        groups = (list(group) for _, group in itertools.groupby(self.levels, key=lambda level: level.relation))
        return tuple(Range(group[0].at, group[-1].at, group[0].relation, tuple(group)) for group in groups)


def compare(curves: Curves, *, better: Better = "higher") -> tuple[SubjectComparison, ...]:
    """Every pair of adapters in `curves` (adapter -> level -> one value per launch), in the order given.

    Intervals are simultaneous over all pairs and levels (Bonferroni). Without repeated launches there are none, and
    every level is open: a single difference shows nothing. Raises ValueError for fewer than two adapters, adapters
    without a common level, and what `log_levels` refuses.
    """
    if len(curves) < 2:
        raise ValueError("a comparison needs two adapters")
    data = {name: log_levels(launches) for name, launches in curves.items()}
    pairs = list(itertools.combinations(curves, 2))
    common = {pair: sorted(set(data[pair[0]].at) & set(data[pair[1]].at)) for pair in pairs}
    for (first, second), levels in common.items():
        if not levels:
            raise ValueError(f"{first} and {second} have no level in common")
    tests = sum(map(len, common.values()))
    sign = 1.0 if better == "higher" else -1.0
    return tuple(
        SubjectComparison(first, second, tuple(_levels(data[first], data[second], levels, sign, tests)), better)
        for (first, second), levels in common.items()
    )


def _levels(
    first: LogLevels, second: LogLevels, levels: Sequence[float], sign: float, tests: int
) -> Iterator[LevelShift]:
    noise = _together(first, second)
    for level in levels:
        here, there = first.at.index(level), second.at.index(level)
        difference = sign * (first.mean[here] - second.mean[there])
        share = 1 / first.count[here] + 1 / second.count[there]
        log_shift = noise.estimate(difference, share, tests)
        ratio = log_shift.exp()
        low, high = (None if end is None else end - 1 for end in (ratio.low, ratio.high))
        yield LevelShift(level, Estimate(ratio.value - 1, low, high), relation_of(log_shift, MARGIN))


def _together(first: LogLevels, second: LogLevels) -> LogLevels:
    """One noise for both adapters, weighted by what each knows of it."""
    df = first.df + second.df
    if not df:
        return LogLevels((), (), (), None, 0)
    squares = (first.variance or 0.0) * first.df + (second.variance or 0.0) * second.df
    return LogLevels((), (), (), squares / df, df)


def relation_of(log_shift: Estimate, margin: float) -> Relation:
    """What the interval of a logarithmic shift shows; nothing (`open`) without one."""
    if log_shift.low is None or log_shift.high is None:
        return "open"
    if -math.log1p(margin) < log_shift.low and log_shift.high < math.log1p(margin):
        return "equal"
    if log_shift.low > 0:
        return "ahead"
    return "behind" if log_shift.high < 0 else "open"


def leaders(comparisons: Sequence[SubjectComparison]) -> dict[float, str | None]:
    """At each level the adapter that is ahead of every other there; None where nobody is shown to be."""
    names = list(dict.fromkeys(name for pair in comparisons for name in (pair.first, pair.second)))
    levels = sorted({level.at for pair in comparisons for level in pair.levels})
    beaten: dict[tuple[str, float], set[str]] = {}
    for pair in comparisons:
        for level in pair.levels:
            if level.relation in ("ahead", "behind"):
                winner, loser = (pair.first, pair.second) if level.relation == "ahead" else (pair.second, pair.first)
                beaten.setdefault((winner, level.at), set()).add(loser)
    return {
        level: next((name for name in names if len(beaten.get((name, level), ())) == len(names) - 1), None)
        for level in levels
    }


Shown = Callable[[float], str]
_TENFOLD = 10.0


def comparison_sentences(
    comparison: SubjectComparison, measure: str, *, at: Shown = lambda level: f"{level:g}"
) -> list[str]:
    """One sentence per range, such as "sym gives 12.1 to 14.8 % more IOPS than mpt from 512 to 4k (interval ...)".

    `measure` is what is compared (`IOPS`, `CPU per I/O`), `at` writes a level (a block size as `4k`).
    """
    return [_sentence(comparison, part, measure, at) for part in comparison.ranges]


def _sentence(comparison: SubjectComparison, part: Range, measure: str, at: Shown) -> str:
    first, second, where = comparison.first, comparison.second, span(part.start, part.end, at)
    if part.relation == "equal":
        return f"{first} and {second} are equal in {measure} within {format_percent(MARGIN)} {where}."
    low, high = part.least, part.most
    if low is None or high is None or (part.relation == "open" and reaches_tenfold(low, high)):
        lacking = "have too few launches, or launches that vary too much,"
        return f"{first} and {second} {lacking} {where}: nothing can be said about the difference in {measure}."
    if part.relation == "open":
        ends = f"{_signed(low)} to {_signed(high)}"
        return (
            f"No difference between {first} and {second} in {measure} is shown {where}: {first} may be {ends} better."
        )
    shifts = [level.shift.value for level in part.shifts]
    winner, loser = first, second
    if part.relation == "behind":
        winner, loser = second, first
        shifts, low, high = [_turned(shift) for shift in shifts], _turned(high), _turned(low)
    smallest, largest = (f"{100 * value:.1f}" for value in (min(shifts), max(shifts)))
    size = f"{smallest} %" if smallest == largest else f"{smallest} to {largest} %"
    sure = f"(interval {percent_range(low, high)})"
    if comparison.better == "higher":
        return f"{winner} gives {size} more {measure} than {loser} {where} {sure}."
    return f"{loser} takes {size} more {measure} than {winner} {where} {sure}."


def reaches_tenfold(least: float, most: float) -> bool:
    """Whether an interval reaches tenfold to one side: its ends would be read as if they said something."""
    return max(1 + most, 1 / max(1 + least, 1e-9)) > _TENFOLD


def _turned(shift: float) -> float:
    """By what the second is better, from by what the first is."""
    return 1 / (1 + shift) - 1


def _signed(fraction: float) -> str:
    return f"{format_percent(fraction, signed=True)}"


def span(start: float, end: float, at: Shown) -> str:
    """`at 4k`, or `from 512 to 4k`."""
    return f"at {at(start)}" if start == end else f"from {at(start)} to {at(end)}"


def leader_sentence(
    comparisons: Sequence[SubjectComparison], measure: str, *, at: Shown = lambda level: f"{level:g}"
) -> str:
    """Who leads where, such as "In IOPS sym leads from 512 to 2k; none is shown to lead from 4k to 64k."."""
    leader_at = leaders(comparisons)
    parts = []
    for name, group in itertools.groupby(leader_at, key=lambda level: leader_at[level]):
        levels = list(group)
        where = span(levels[0], levels[-1], at)
        parts.append(f"{name} leads {where}" if name else f"none is shown to lead {where}")
    return f"In {measure} {'; '.join(parts)}."


COMPARED = ("iops", "throughput_mb_s", "cpu_percent", "cpu_us_per_io")
_LOADED = ("iodepth", "numjobs", "drives", "ports")
"""Factors by which a load is raised: block size is none, another size is another request."""


@dataclass(frozen=True)
class Contest:
    """One metric of one workload over one factor, all subjects; `leaders` is who is ahead of all others, by level."""

    title: str
    metric: str
    along: str
    lines: tuple[PointLine, ...]
    comparisons: tuple[SubjectComparison, ...]
    leaders: dict[float, str | None]
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class EqualLoad:
    """Two subjects at one load: `response` of the first at `load`, and by what fraction it is above the second's."""

    title: str
    first: str
    second: str
    of: str
    at: str
    load: float
    response: Estimate
    shift: Estimate
    sentence: str


def contests(points: Sequence[StudyPoint], *, single: bool = False) -> list[Contest]:
    """Every metric of every workload in which at least two subjects have a level in common.

    `single`: of workloads with one level: nothing that a figure could show, and all that a small suite has.
    """
    return [
        contest
        for title, along, lines in (_alone if single else _rivals)(points)
        for metric in COMPARED
        for contest in _contest(title, along, lines, metric)
    ]


def generator_contests(points: Sequence[StudyPoint]) -> list[Contest]:
    """The same where the subjects are the ways of the load program to a drive (factor `engine`), on each adapter."""
    adapters: defaultdict[str, list[StudyPoint]] = defaultdict(list)
    for point in points:
        if "engine" in point.levels:
            levels = {name: level for name, level in point.levels.items() if name != "engine"}
            adapters[point.subject].append(replace(point, subject=str(point.levels["engine"]), levels=levels))
    return [
        replace(contest, title=f"{adapter}, {contest.title}")
        for adapter, subject_points in adapters.items()
        for contest in contests(subject_points)
    ]


def _rivals(points: Sequence[StudyPoint]) -> Iterator[tuple[str, str, list[PointLine]]]:
    """Lines of different subjects that are alike in everything else."""
    workloads: defaultdict[str, list[StudyPoint]] = defaultdict(list)
    for point in points:
        workloads[point.workload].append(point)
    for workload, members in workloads.items():
        along = first_axis(members)
        if along is None:
            continue
        groups: defaultdict[Levels, list[PointLine]] = defaultdict(list)
        for line in lines_of(members, along):
            groups[line.rest].append(line)
        for rest, lines in groups.items():
            if len(lines) > 1:
                yield together(workload, rest), along, lines


def _alone(points: Sequence[StudyPoint]) -> Iterator[tuple[str, str, list[PointLine]]]:
    """The same of workloads without a factor to look along: one level, named by its block size."""
    workloads: defaultdict[str, list[StudyPoint]] = defaultdict(list)
    for point in points:
        workloads[point.workload].append(point)
    for workload, members in workloads.items():
        groups: defaultdict[Levels, list[PointLine]] = defaultdict(list)
        for point in members if first_axis(members) is None else ():
            size = point.pattern.get("bs")
            if number(size) and point.launches:
                rest = tuple(sorted((name, level) for name, level in point.levels.items() if name != "bs"))
                here = replace(point, levels={**point.levels, "bs": size})
                groups[rest].append(PointLine(point.subject, workload, "bs", rest, (here,)))
        for rest, lines in groups.items():
            if len(lines) > 1:
                yield together(workload, rest), "bs", lines


def _contest(title: str, along: str, lines: Sequence[PointLine], metric: str) -> Iterator[Contest]:
    curves = {line.subject: line.values(metric) for line in lines}
    curves = {subject: values for subject, values in curves.items() if values}
    common = set.intersection(*(set(values) for values in curves.values())) if len(curves) > 1 else set()
    if not common:
        return
    facts = METRICS[metric]
    shared = {name: {at: values[at] for at in common} for name, values in curves.items()}
    pairs = compare(shared, better=facts.better)

    def at(level: float) -> str:
        return level_text(along, int(level) if level.is_integer() else level)

    # at one block size throughput says what IOPS say; CPU in percent is of different loads, CPU per I/O of equal ones
    sentences = [] if metric in ("throughput_mb_s", "cpu_percent") else [leader_sentence(pairs, facts.label, at=at)]
    if sentences and all(level.shift.low is None for pair in pairs for level in pair.levels):
        # one sentence for all pairs and levels
        sentences = [f"In {facts.label} nothing can be compared: there are too few launches, or they vary too much."]
    else:
        sentences += [
            sentence for pair in pairs if sentences for sentence in comparison_sentences(pair, facts.label, at=at)
        ]
    yield Contest(
        title=title,
        metric=metric,
        along=along,
        lines=tuple(lines),
        comparisons=pairs,
        leaders=leaders(pairs),
        sentences=tuple(sentences),
    )


def equal_loads(points: Sequence[StudyPoint]) -> list[EqualLoad]:
    """CPU at equal IOPS and IOPS at equal CPU, at the middle of the loads that both subjects reached."""
    loads: list[EqualLoad] = []
    for along in _LOADED:
        groups: defaultdict[tuple[str, Levels], list[PointLine]] = defaultdict(list)
        for line in lines_of(points, along):
            groups[(line.workload, line.rest)].append(line)
        for (workload, rest), lines in groups.items():
            for first, second in combinations(lines, 2):
                for load, response in (("iops", "cpu_percent"), ("cpu_percent", "iops")):
                    loads += _equal(together(workload, rest), first, second, load, response)
    return loads


def _equal(title: str, first: PointLine, second: PointLine, load: str, response: str) -> Iterator[EqualLoad]:
    data = [line.pairs(load, response) for line in (first, second)]
    if min(map(len, data)) < 2:
        return
    first_curve, second_curve = (curve(pairs) for pairs in data)
    shared = common_loads(first_curve, second_curve)
    if shared is None:
        return
    middle = (shared[0] * shared[1]) ** 0.5
    shift = shift_at_equal_load(first_curve, second_curve, middle)
    names = METRICS[response].label, METRICS[load].label, METRICS[load].unit
    yield EqualLoad(
        title=title,
        first=first.subject,
        second=second.subject,
        of=response,
        at=load,
        load=middle,
        response=response_at(first_curve, middle),
        shift=shift,
        sentence=_equal_words(first.subject, second.subject, names, middle, shift),
    )


def _equal_words(first: str, second: str, names: tuple[str, str, str], load: float, shift: Estimate) -> str:
    """What two subjects show at one load: a difference only where the whole interval is on one side."""
    response, loaded, unit = names
    where = f"At equal {loaded} ({load:.4g} {unit})"
    if shift.low is None or shift.high is None:
        lacking = "have too few launches, or launches that vary too much"
        return f"{where} {first} and {second} {lacking}: nothing can be said about the difference in {response}."
    sure = f"(interval {percent_range(shift.low, shift.high, signed=True)})"
    if shift.low <= 0 <= shift.high:
        return f"{where} no difference between {first} and {second} in {response} is shown {sure}."
    more = "more" if shift.value > 0 else "less"
    return f"{where} {first} has {format_percent(abs(shift.value))} {more} {response} than {second} {sure}."


@dataclass(frozen=True)
class Comparisons:
    """All contests of the runs' subjects, and what they need at equal load."""

    subjects: tuple[str, ...]
    contests: tuple[Contest, ...]
    equal_loads: tuple[EqualLoad, ...]
    suspect: tuple[int, int] = (0, 0)
    """How many launches were suspect, and of how many."""

    def to_json(self) -> dict[str, Any]:
        """For `--json`: fractions; None where there is no interval."""
        return {
            "schema": "storqual.compare/1",
            "subjects": list(self.subjects),
            "contests": [_contest_json(contest) for contest in self.contests],
            "equal_load": [_equal_json(load) for load in self.equal_loads],
            "launches": {"suspect": self.suspect[0], "all": self.suspect[1]},
        }


def compare_runs(paths: Sequence[Path], *, arms: Sequence[str] = ("candidate",)) -> Comparisons:
    """Every pair of subjects at every level that they share. Raises BadInputError with nothing to compare."""
    points = points_of_runs(paths, arms=arms)
    subjects = list(dict.fromkeys(point.subject for point in points))
    if len(subjects) < 2:
        count = f"found {len(subjects)} measured adapter{'s' if len(subjects) != 1 else ''}"
        read = ", ".join(str(path / SAMPLES) for path in paths)
        raise BadInputError([f"{read}: {count}, expected at least two (or two arms, or two runs)"])
    doubts = sum(point.suspect for point in points), sum(len(point.launches) for point in points)
    all_contests = *contests(points), *contests(points, single=True)
    return Comparisons(tuple(subjects), all_contests, tuple(equal_loads(points)), doubts)


def _contest_json(contest: Contest) -> dict[str, Any]:
    return {
        "title": contest.title,
        "metric": contest.metric,
        "along": contest.along,
        "leaders": [{"at": level, "leader": name} for level, name in contest.leaders.items()],
        "pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                "levels": [
                    {"at": level.at, "relation": level.relation, **_shift_json(level.shift)} for level in pair.levels
                ],
                "ranges": [{"from": part.start, "to": part.end, "relation": part.relation} for part in pair.ranges],
            }
            for pair in contest.comparisons
        ],
        "sentences": list(contest.sentences),
    }


def _equal_json(load: EqualLoad) -> dict[str, Any]:
    names = {"title": load.title, "first": load.first, "second": load.second, "metric": load.of, "at_equal": load.at}
    return {**names, "load": load.load, **_shift_json(load.shift), "sentence": load.sentence}


def _shift_json(shift: Estimate) -> dict[str, Any]:
    interval = None if shift.low is None or shift.high is None else [shift.low, shift.high]
    return {"shift": shift.value, "ci95": interval}
