# SPDX-License-Identifier: Apache-2.0
"""A comparison of adapters in sentences: what the intervals show, over ranges, and nothing beyond them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from storqual.analysis.compare import MARGIN, Comparison, Range, leaders

__all__ = ["comparison_sentences", "leader_sentence", "reaches_tenfold", "span"]

Shown = Callable[[float], str]
_TENFOLD = 10.0


def comparison_sentences(
    comparison: Comparison, measure: str, *, at: Shown = lambda level: f"{level:g}", margin: float = MARGIN
) -> list[str]:
    """One sentence per range, such as "sym gives 12.1 to 14.8 % more IOPS than mpt from 512 to 4k (interval ...)".

    `measure` is what is compared (`IOPS`, `CPU per I/O`), `at` writes a level (a block size as `4k`).
    """
    return [_sentence(comparison, one, measure, at, margin) for one in comparison.ranges]


def _sentence(comparison: Comparison, one: Range, measure: str, at: Shown, margin: float) -> str:
    first, second, where = comparison.first, comparison.second, span(one.start, one.end, at)
    if one.relation == "equal":
        return f"{first} and {second} are equal in {measure} within {100 * margin:g} % {where}."
    if one.least is None or one.most is None or (one.relation == "open" and reaches_tenfold(one.least, one.most)):
        lacking = "have too few launches, or too unlike ones,"
        return f"{first} and {second} {lacking} {where}: the difference in {measure} shows nothing."
    if one.relation == "open":
        ends = f"{_signed(one.least)} to {_signed(one.most)}"
        return f"Nothing is shown between {first} and {second} in {measure} {where}: {first} may be {ends} better."
    shifts = [level.shift.value for level in one.shifts]
    low, high = one.least, one.most
    winner, loser = first, second
    if one.relation == "behind":
        winner, loser = second, first
        shifts, low, high = [_turned(shift) for shift in shifts], _turned(one.most), _turned(one.least)
    smallest, largest = (f"{100 * value:.1f}" for value in (min(shifts), max(shifts)))
    size = f"{smallest} %" if smallest == largest else f"{smallest} to {largest} %"
    sure = f"(interval {100 * low:.1f} to {100 * high:.1f} %)"
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
    return f"{100 * fraction:+.1f} %"


def span(start: float, end: float, at: Shown) -> str:
    """`at 4k`, or `from 512 to 4k`."""
    return f"at {at(start)}" if start == end else f"from {at(start)} to {at(end)}"


def leader_sentence(
    comparisons: Sequence[Comparison], measure: str, *, at: Shown = lambda level: f"{level:g}"
) -> str:
    """Who leads where, such as "In IOPS sym leads from 512 to 2k; nobody is shown to lead from 4k to 64k."."""
    found = leaders(comparisons)
    parts = []
    for name, group in itertools.groupby(found, key=lambda level: found[level]):
        levels = list(group)
        where = span(levels[0], levels[-1], at)
        parts.append(f"{name} leads {where}" if name else f"nobody is shown to lead {where}")
    return f"In {measure} {'; '.join(parts)}."
