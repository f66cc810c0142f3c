# SPDX-License-Identifier: Apache-2.0
"""Subjects against each other, at points, over ranges and at equal load, of one run or several: who leads where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from storqual.base.factor_names import level_text, together
from storqual.metrics import METRICS
from storqual.run.layout import SAMPLES
from storqual.statistics.estimates import Estimate
from storqual.study.compare import (
    SubjectComparison,
    common_loads,
    compare,
    comparison_sentences,
    curve,
    leader_sentence,
    leaders,
    response_at,
    shift_at_equal_load,
)
from storqual.study.points import Levels, Line, Point, first_axis, lines_of, points_of_runs
from storqual_core.kit.errors import BadInputError

COMPARED = ("iops", "throughput_mb_s", "cpu_percent", "cpu_us_per_io")
_LOADED = ("iodepth", "numjobs", "drives", "ports")
"""Factors by which a load is raised: block size is none, another size is another request."""


@dataclass(frozen=True)
class Contest:
    """One metric of one workload over one factor, all subjects; `leaders` is who is ahead of all others, by level."""

    title: str
    metric: str
    along: str
    lines: tuple[Line, ...]
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


def contests(points: Sequence[Point]) -> list[Contest]:
    """Every metric of every workload in which at least two subjects have a level in common."""
    found: list[Contest] = []
    for title, along, lines in _rivals(points):
        for metric in COMPARED:
            found += _contest(title, along, lines, metric)
    return found


def generator_contests(points: Sequence[Point]) -> list[Contest]:
    """The same where the subjects are the ways of the load program to a drive (factor `engine`), on each adapter."""
    adapters: defaultdict[str, list[Point]] = defaultdict(list)
    for point in points:
        if "engine" in point.levels:
            levels = {name: level for name, level in point.levels.items() if name != "engine"}
            adapters[point.subject].append(replace(point, subject=str(point.levels["engine"]), levels=levels))
    return [
        replace(one, title=f"{adapter}, {one.title}")
        for adapter, found in adapters.items()
        for one in contests(found)
    ]


def _rivals(points: Sequence[Point]) -> Iterator[tuple[str, str, list[Line]]]:
    """Lines of different subjects that are alike in everything else."""
    workloads: defaultdict[str, list[Point]] = defaultdict(list)
    for point in points:
        workloads[point.workload].append(point)
    for workload, members in workloads.items():
        along = first_axis(members)
        if along is None:
            continue
        groups: defaultdict[Levels, list[Line]] = defaultdict(list)
        for line in lines_of(members, along):
            groups[line.rest].append(line)
        for rest, lines in groups.items():
            if len(lines) > 1:
                yield together(workload, rest), along, lines


def _contest(title: str, along: str, lines: Sequence[Line], metric: str) -> Iterator[Contest]:
    curves = {line.subject: line.values(metric) for line in lines}
    curves = {subject: values for subject, values in curves.items() if values}
    common = set.intersection(*(set(values) for values in curves.values())) if len(curves) > 1 else set()
    if not common:
        return
    facts = METRICS[metric]
    found = compare({name: {at: values[at] for at in common} for name, values in curves.items()}, better=facts.better)

    def at(level: float) -> str:
        return level_text(along, int(level) if level.is_integer() else level)

    # at one block size throughput says what IOPS say; CPU in percent is of different loads, CPU per I/O of equal ones
    sentences = [] if metric in ("throughput_mb_s", "cpu_percent") else [leader_sentence(found, facts.label, at=at)]
    if sentences and all(level.shift.low is None for one in found for level in one.levels):
        # one sentence for all pairs and levels
        sentences = [f"In {facts.label} nothing can be compared: there are too few launches, or they vary too much."]
    else:
        sentences += [
            sentence for one in found if sentences for sentence in comparison_sentences(one, facts.label, at=at)
        ]
    yield Contest(
        title=title,
        metric=metric,
        along=along,
        lines=tuple(lines),
        comparisons=found,
        leaders=leaders(found),
        sentences=tuple(sentences),
    )


def equal_loads(points: Sequence[Point]) -> list[EqualLoad]:
    """CPU at equal IOPS and IOPS at equal CPU, at the middle of the loads that both subjects reached."""
    found: list[EqualLoad] = []
    for along in _LOADED:
        groups: defaultdict[tuple[str, Levels], list[Line]] = defaultdict(list)
        for line in lines_of(points, along):
            groups[(line.workload, line.rest)].append(line)
        for (workload, rest), lines in groups.items():
            for first, second in combinations(lines, 2):
                for load, response in (("iops", "cpu_percent"), ("cpu_percent", "iops")):
                    found += _equal(together(workload, rest), first, second, load, response)
    return found


def _equal(title: str, first: Line, second: Line, load: str, response: str) -> Iterator[EqualLoad]:
    data = [line.pairs(load, response) for line in (first, second)]
    if min(map(len, data)) < 2:
        return
    one, other = (curve(pairs) for pairs in data)
    shared = common_loads(one, other)
    if shared is None:
        return
    middle = (shared[0] * shared[1]) ** 0.5
    shift = shift_at_equal_load(one, other, middle)
    names = METRICS[response].label, METRICS[load].label, METRICS[load].unit
    yield EqualLoad(
        title=title,
        first=first.subject,
        second=second.subject,
        of=response,
        at=load,
        load=middle,
        response=response_at(one, middle),
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
    sure = f"(interval {100 * shift.low:+.1f} to {100 * shift.high:+.1f} %)"
    if shift.low <= 0 <= shift.high:
        return f"{where} no difference between {first} and {second} in {response} is shown {sure}."
    more = "more" if shift.value > 0 else "less"
    return f"{where} {first} has {abs(100 * shift.value):.1f} % {more} {response} than {second} {sure}."


@dataclass(frozen=True)
class Comparisons:
    """All contests of the runs' subjects, and what they need at equal load."""

    subjects: tuple[str, ...]
    contests: tuple[Contest, ...]
    equal_loads: tuple[EqualLoad, ...]

    def to_json(self) -> dict[str, Any]:
        """For `--json`: fractions; None where there is no interval."""
        return {
            "schema": "storqual.compare/1",
            "subjects": list(self.subjects),
            "contests": [_contest_json(one) for one in self.contests],
            "equal_load": [_equal_json(one) for one in self.equal_loads],
        }


def compare_runs(paths: Sequence[Path], *, arms: Sequence[str] = ("candidate",)) -> Comparisons:
    """Every pair of subjects at every level that they share. Raises BadInputError with nothing to compare."""
    points = points_of_runs(paths, arms=arms)
    subjects = list(dict.fromkeys(point.subject for point in points))
    if len(subjects) < 2:
        told = f"found {len(subjects)} measured adapter{'s' if len(subjects) != 1 else ''}"
        read = ", ".join(str(path / SAMPLES) for path in paths)
        raise BadInputError([f"{read}: {told}, expected at least two (or two arms, or two runs)"])
    return Comparisons(tuple(subjects), tuple(contests(points)), tuple(equal_loads(points)))


def _contest_json(one: Contest) -> dict[str, Any]:
    return {
        "title": one.title,
        "metric": one.metric,
        "along": one.along,
        "leaders": [{"at": level, "leader": name} for level, name in one.leaders.items()],
        "pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                "levels": [
                    {"at": level.at, "relation": level.relation, **_shift_json(level.shift)} for level in pair.levels
                ],
                "ranges": [{"from": one.start, "to": one.end, "relation": one.relation} for one in pair.ranges],
            }
            for pair in one.comparisons
        ],
        "sentences": list(one.sentences),
    }


def _equal_json(one: EqualLoad) -> dict[str, Any]:
    names = {"title": one.title, "first": one.first, "second": one.second, "metric": one.of, "at_equal": one.at}
    return {**names, "load": one.load, **_shift_json(one.shift), "sentence": one.sentence}


def _shift_json(shift: Estimate) -> dict[str, Any]:
    interval = None if shift.low is None or shift.high is None else [shift.low, shift.high]
    return {"shift": shift.value, "ci95": interval}
