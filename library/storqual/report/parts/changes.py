# SPDX-License-Identifier: Apache-2.0
"""What got better and what got worse, sorted by effect; changes that are shown though they decide nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storqual.report.change import ends_in_words, in_words, is_shown, once_each
from storqual.report.criterion import Criterion, Outcome, place_name
from storqual.report.figures import Figure, count
from storqual.report.links import Links
from storqual.report.material import measure
from storqual.report.view import Phrase


@dataclass(frozen=True)
class Change:
    """One measurement whose change is told in words, with its place and how sure it is."""

    words: Figure
    low: Figure
    high: Figure
    where: str
    href: str
    outcome: Outcome
    required: bool


@dataclass(frozen=True)
class Changes:
    """Measurements sorted by effect: what got worse, the worst first; what got better, the best first; the rest."""

    worse: tuple[Change, ...]
    better: tuple[Change, ...]
    more_worse: Figure | None
    more_better: Figure | None
    unchanged: Figure
    unknown: Figure


_MOST = 25
_MOST_LINES = 6
_JUDGED = ("PASS", "MARGINAL", "FAIL", "INCONCLUSIVE")


def compared_of(rows: Sequence[Criterion]) -> list[Criterion]:
    """Criteria against the baseline that have a shift and were judged, the worst first."""
    found = [
        row
        for row in rows
        if row.against == "baseline" and row.outcome in _JUDGED and row.number("shift_percent") is not None
    ]
    return sorted(found, key=_shift)


def _shift(row: Criterion) -> float:
    return row.number("shift_percent") or 0.0


def change_of(row: Criterion, benches: Sequence[str], links: Links) -> Change:
    """A criterion's change as it is told."""
    low, high = ends_in_words(row)
    place = place_name(benches, row.text("bench"), row.text("adapter"))
    return Change(
        in_words(row), low, high, f"{place} {row.text('point')}", links.criterion(row), row.badge, row.required
    )


def changes_of(rows: Sequence[Criterion], benches: Sequence[str], links: Links) -> Changes:
    """All measurements against the baseline, each once, parted by whether their interval excludes no change."""
    found = once_each(compared_of(rows))
    shown = sorted((row for row in found if is_shown(row)), key=_shift)
    worse = [row for row in shown if _shift(row) < 0]
    better = [row for row in reversed(shown) if _shift(row) > 0]
    bounded = [row for row in found if row.interval()[0] is not None]
    rest = len(worse) - _MOST, len(better) - _MOST
    return Changes(
        worse=tuple(change_of(row, benches, links) for row in worse[:_MOST]),
        better=tuple(change_of(row, benches, links) for row in better[:_MOST]),
        more_worse=count(rest[0], "count:changes:more-worse") if rest[0] > 0 else None,
        more_better=count(rest[1], "count:changes:more-better") if rest[1] > 0 else None,
        unchanged=count(len(bounded) - len(shown), "count:changes:unchanged"),
        unknown=count(len(found) - len(bounded), "count:changes:unknown"),
    )


def shown_beside(rows: Sequence[Criterion], benches: Sequence[str]) -> tuple[Phrase, ...]:
    """A line for each metric that decides nothing and whose change is shown all the same."""
    groups: dict[str, list[Criterion]] = {}
    for row in compared_of(rows):
        if not row.required:
            groups.setdefault(row.text("metric"), []).append(row)
    lines: list[Phrase] = []
    for metric, listed in groups.items():
        changed = [row for row in listed if is_shown(row)]
        if not changed:
            continue
        first = max(changed, key=lambda row: (_shift(row) < 0, abs(_shift(row))))
        place = place_name(benches, first.text("bench"), first.text("adapter"))
        of = (count(len(changed), f"count:shown:{metric}"), " of ", count(len(listed), f"count:shown-of:{metric}"))
        lines.append(
            (
                f"{measure(metric).label} does not affect the outcome, but at ",
                *of,
                " points its interval excludes zero: ",
                in_words(first),
                f" at {place} {first.text('point')}",
            )
        )
    return tuple(lines[:_MOST_LINES])


def odd_launches(rows: Sequence[Criterion], benches: Sequence[str]) -> tuple[Phrase, ...]:
    """Launches that were left out as odd, each beside the verdict it was about."""
    lines: dict[object, Phrase] = {}
    for row in rows:
        odd = row.fields.get("odd_launch")
        if isinstance(odd, dict):
            place = place_name(benches, row.text("bench"), row.text("adapter"))
            told = f"{place} {row.text('point')} ({row.outcome}): one launch left out, {odd.get('text')}"
            lines.setdefault((*row.key, odd.get("sample")), (told,))
    return tuple(list(lines.values())[:_MOST_LINES])
