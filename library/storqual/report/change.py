# SPDX-License-Identifier: Apache-2.0
"""A change in the words of the field: "61.9 % more CPU time per I/O" instead of a shift whose sign must be looked up.

A shift of a verdict is negative where the candidate is worse, whichever way its metric counts; a reader thinks of the
metric itself, which grew or shrank.
"""

from __future__ import annotations

from collections.abc import Sequence

from storqual.base.text import MINUS
from storqual.report.criterion import Criterion
from storqual.report.figures import DASH, NONE, Figure
from storqual.report.material import measure

_FEWER = ("IOPS", "1/TB", "1/min", "1/s")
_HIGHER = ("ns", "us", "s", "%")
MOST_PERCENT = 100.0
"""An interval or a detectable loss that reaches further says that nothing is known; its ends are not printed."""


def grew(row: Criterion, shift: float) -> bool:
    """Whether the metric itself grew where the candidate changed by `shift` (negative is worse)."""
    return (shift > 0) == (row.text("better") != "lower")


def amount(row: Criterion, shown: Figure) -> Figure:
    """A shift, or an end of its interval, as a size with "more" or "less" behind it; a zero has neither."""
    if shown.value is None:
        return NONE
    size = shown.text.lstrip(f"+{MINUS}")
    if not any(digit in size for digit in "123456789"):
        return Figure(size, shown.value, shown.source)
    word = "more" if grew(row, shown.value) else "less"
    return Figure(f"{size} {word}", shown.value, shown.source)


def in_words(row: Criterion) -> Figure:
    """The whole change of a criterion: `61.9 % more CPU time per I/O`, `9.9 % fewer IOPS`, `no change in IOPS`."""
    shown = amount(row, row.shift)
    if shown.value is None:
        return NONE
    label = measure(row.text("metric")).label
    name = in_sentence(label)
    size, _, word = shown.text.rpartition(" ")
    if word not in ("more", "less"):
        return Figure(f"{shown.text} change in {name}", shown.value, shown.source)
    unit = row.text("unit")
    if unit in _HIGHER:
        word = "higher" if word == "more" else "lower"
    elif word == "less" and unit in _FEWER:
        word = "fewer"
    return Figure(f"{size} {word} {name}", shown.value, shown.source)


def in_sentence(label: str) -> str:
    """A metric's label within a sentence: what is no abbreviation begins small."""
    return label[:1].lower() + label[1:] if label[1:2].islower() or label[1:2] == " " else label


def says_nothing(row: Criterion) -> bool:
    """Whether a shift has an interval so wide that its ends, and the shift in it, are no news."""
    low, high = row.interval()
    return low is not None and high is not None and (low < -MOST_PERCENT or high - low > MOST_PERCENT)


def ends_in_words(row: Criterion) -> tuple[Figure, Figure]:
    """The ends of the 95 % interval, what is worse first; dashes for one that says nothing."""
    if says_nothing(row):
        return NONE, NONE
    low, high = row.ends
    return amount(row, low), amount(row, high)


def detectable(row: Criterion) -> Figure:
    """The smallest loss that would have been found; a dash where not even the loss of all would."""
    number = row.number("detectable_percent")
    return Figure(DASH) if number is None or number > MOST_PERCENT else row.percent("detectable", signed=False)


def is_shown(row: Criterion) -> bool:
    """Whether a change is shown: the whole 95 % interval lies on one side of no change."""
    low, high = row.interval()
    return low is not None and high is not None and (low > 0 or high < 0)


def measurement(row: Criterion) -> tuple[str, ...]:
    """What a criterion measures: IOPS and throughput of one point and block size are one number, twice told."""
    metric = row.text("metric")
    way = metric.partition("_")[0]
    if metric.endswith("iops") or "throughput" in metric:
        metric = f"{way}_rate" if way in ("read", "write", "trim") else "rate"
    return (*row.key, metric, row.against)


def once_each(rows: Sequence[Criterion]) -> list[Criterion]:
    """One criterion of each measurement, the first one asked, or the worse one where they disagree; every check."""
    found: dict[tuple[str, ...], Criterion] = {}
    for row in rows:
        key = ("check", row.text("id"), *row.key) if row.against == "check" else measurement(row)
        known = found.get(key)
        if known is None or _severity(row) > _severity(known):
            found[key] = row
    return list(found.values())


_SEVERITY = ("PASS", "SKIPPED", "MARGINAL", "INCONCLUSIVE", "ERROR", "FAIL")


def _severity(row: Criterion) -> tuple[int, bool]:
    rank = _SEVERITY.index(row.outcome) if row.outcome in _SEVERITY else len(_SEVERITY)
    return rank, not row.waived
