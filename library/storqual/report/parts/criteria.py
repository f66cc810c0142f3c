# SPDX-License-Identifier: Apache-2.0
"""Each criterion with its interval drawn against its margin, what did not pass, what got better and what worse."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from storqual.base.figures import NONE, ShownNumber, count, scale_for
from storqual.base.text import MINUS
from storqual.report.charts import Shift, interval_axis, interval_bar, reach
from storqual.report.criterion import (
    NO_PICTURE,
    JudgedCriterion,
    OutcomeBadge,
    adapter_name,
    in_words,
    is_shown,
    once_each,
    says_nothing,
)
from storqual.report.material import measure
from storqual.report.view import PageLinks, Phrase


@dataclass(frozen=True)
class MetricChange:
    """One measurement whose change is told in words, with its place and how sure it is."""

    words: ShownNumber
    low: ShownNumber
    high: ShownNumber
    where: str
    href: str
    outcome: OutcomeBadge
    required: bool


@dataclass(frozen=True)
class Changes:
    """Measurements sorted by effect: what got worse, the worst first; what got better, the best first; the rest."""

    worse: tuple[MetricChange, ...]
    better: tuple[MetricChange, ...]
    more_worse: ShownNumber | None
    more_better: ShownNumber | None
    unchanged: ShownNumber
    unknown: ShownNumber


_MOST = 25
_MOST_LINES = 6
_JUDGED = ("PASS", "MARGINAL", "FAIL", "INCONCLUSIVE")


def compared_of(rows: Sequence[JudgedCriterion]) -> list[JudgedCriterion]:
    """Criteria against the baseline that have a shift and were judged, the worst first."""
    compared = [
        row
        for row in rows
        if row.against == "baseline" and row.outcome in _JUDGED and row.number("shift_percent") is not None
    ]
    return sorted(compared, key=_shift)


def _shift(row: JudgedCriterion) -> float:
    return row.number("shift_percent") or 0.0


def change_of(row: JudgedCriterion, benches: Sequence[str], links: PageLinks) -> MetricChange:
    low, high = row.bounds
    adapter = adapter_name(benches, row.text("bench"), row.text("adapter"))
    return MetricChange(
        in_words(row), low, high, f"{adapter} {row.text('point')}", links.criterion(row), row.badge, row.required
    )


def changes_of(rows: Sequence[JudgedCriterion], benches: Sequence[str], links: PageLinks) -> Changes:
    """All measurements against the baseline, each once, parted by whether their interval excludes no change."""
    compared = once_each(compared_of(rows))
    shown = sorted((row for row in compared if is_shown(row)), key=_shift)
    worse = [row for row in shown if _shift(row) < 0]
    better = [row for row in reversed(shown) if _shift(row) > 0]
    bounded = [row for row in compared if row.interval()[0] is not None]
    rest = len(worse) - _MOST, len(better) - _MOST
    return Changes(
        worse=tuple(change_of(row, benches, links) for row in worse[:_MOST]),
        better=tuple(change_of(row, benches, links) for row in better[:_MOST]),
        more_worse=count(rest[0], "count:changes:more-worse") if rest[0] > 0 else None,
        more_better=count(rest[1], "count:changes:more-better") if rest[1] > 0 else None,
        unchanged=count(len(bounded) - len(shown), "count:changes:unchanged"),
        unknown=count(len(compared) - len(bounded), "count:changes:unknown"),
    )


def shown_beside(rows: Sequence[JudgedCriterion], benches: Sequence[str]) -> tuple[Phrase, ...]:
    """A line for each metric that decides nothing and whose change is shown all the same."""
    groups: dict[str, list[JudgedCriterion]] = {}
    for row in compared_of(rows):
        if not row.required:
            groups.setdefault(row.text("metric"), []).append(row)
    lines: list[Phrase] = []
    for metric, members in groups.items():
        changed = [row for row in members if is_shown(row)]
        if not changed:
            continue
        first = max(changed, key=lambda row: (_shift(row) < 0, abs(_shift(row))))
        adapter = adapter_name(benches, first.text("bench"), first.text("adapter"))
        of = (count(len(changed), f"count:shown:{metric}"), " of ", count(len(members), f"count:shown-of:{metric}"))
        lines.append(
            (
                f"{measure(metric).label} does not affect the outcome, but at ",
                *of,
                " points its interval excludes zero: ",
                in_words(first),
                f" at {adapter} {first.text('point')}",
            )
        )
    return tuple(lines[:_MOST_LINES])


def odd_launches(rows: Sequence[JudgedCriterion], benches: Sequence[str]) -> tuple[Phrase, ...]:
    """Launches that were left out as odd, each beside the verdict it was about."""
    lines: dict[object, Phrase] = {}
    for row in rows:
        odd = row.fields.get("odd_launch")
        if isinstance(odd, dict):
            adapter = adapter_name(benches, row.text("bench"), row.text("adapter"))
            sentence = f"{adapter} {row.text('point')} ({row.outcome}): one launch left out, {odd.get('text')}"
            lines.setdefault((*row.key, odd.get("sample")), (sentence,))
    return tuple(list(lines.values())[:_MOST_LINES])


@dataclass(frozen=True)
class CriteriaTable:
    """One criterion of a suite on one adapter, by the documents that state its limits.

    `name` is the criterion's id, empty where it is that of its metric.
    """

    ident: str
    adapter: str
    metric: str
    name: str
    unit: str
    better: str
    reference_name: str
    reference_source: str
    required: bool
    drawn: bool
    axis: Markup
    rows: tuple[JudgedCriterion, ...]


@dataclass(frozen=True)
class ProblemPoint:
    """One criterion of a problem; the reason is empty where all of the problem share it."""

    name: str
    href: str
    shift: ShownNumber
    reason: str


@dataclass(frozen=True)
class Problem:
    """Criteria of one adapter and metric that did not pass alike; a check stands alone, with its own `href`."""

    outcome: OutcomeBadge
    where: str
    href: str
    metric: str
    number: ShownNumber
    total: ShownNumber
    worst: ShownNumber
    best: ShownNumber
    reason: str
    waiver: str
    points: tuple[ProblemPoint, ...]
    more: ShownNumber | None


REFERENCE_NAMES = {
    "baseline": "Baseline",
    "absolute": "Limit",
    "peers": "Peers",
    "published": "Published",
    "product": "Spec sheet",
    "check": "Reference",
}


def criteria_tables(
    rows: Iterable[JudgedCriterion], benches: Sequence[str], links: PageLinks
) -> tuple[CriteriaTable, ...]:
    """Tables in the verdict's order of adapters; required criteria stand before informative ones."""
    groups: dict[tuple[str, str, str, str, bool, str], list[JudgedCriterion]] = {}
    for row in rows:
        if row.against != "check":
            what = (row.text("metric"), row.against, row.required, row.own_id)
            groups.setdefault((row.text("bench"), row.text("adapter"), *what), []).append(row)
    adapters = list(dict.fromkeys(key[:2] for key in groups))
    ordered = sorted(groups, key=lambda key: (adapters.index(key[:2]), not key[4]))
    return tuple(
        _table(number, groups[key], adapter_name(benches, key[0], key[1]), links)
        for number, key in enumerate(ordered)
    )


def _table(number: int, rows: Sequence[JudgedCriterion], adapter: str, links: PageLinks) -> CriteriaTable:
    first = rows[0]
    metric = measure(first.text("metric"), first.text("unit"), first.text("better"))
    values = [value for row in rows for value in (row.number("candidate"), row.number("reference"))]
    scale = scale_for(first.text("unit"), values)
    shifts = [_criteria_shift(row) for row in rows]
    drawn = any(shift.value is not None for shift in shifts)
    end = reach(shifts)
    return CriteriaTable(
        ident=f"t{number}",
        adapter=adapter,
        metric=metric.label,
        name=first.own_id,
        # a label that says the unit already, `IOPS` or `I/O errors per TB`, does not say it twice
        unit="" if scale.unit.startswith("1/") or scale.unit.lower() == metric.label.lower() else scale.unit,
        better=f"{first.text('better') or 'higher'} is better",
        reference_name=REFERENCE_NAMES.get(first.against, "Reference"),
        reference_source="; ".join(dict.fromkeys(filter(None, (row.text("reference_source") for row in rows)))),
        required=first.required,
        drawn=drawn,
        axis=interval_axis(end, _axis_label) if drawn else NO_PICTURE,
        rows=tuple(
            row.shown(scale, links.point(row.key), interval_bar(shift, end, _described(row)) if drawn else NO_PICTURE)
            for row, shift in zip(rows, shifts, strict=True)
        ),
    )


def _criteria_shift(row: JudgedCriterion) -> Shift:
    low, high = row.interval()
    margin, same = row.number("margin_percent"), row.number("indifference_percent")
    return Shift(row.number("shift_percent"), low, high, margin, row.outcome, same)


def _axis_label(value: float) -> str:
    sign = MINUS if value < 0 else "+" if value > 0 else ""
    return f"{sign}{abs(value):g}\u2009%"


def _described(row: JudgedCriterion) -> str:
    """What a row's picture shows, for those who cannot see it."""
    if row.shift.value is None:
        return "no shift"
    low, high = row.bounds
    reach = "interval too wide" if says_nothing(row) else f"{low} to {high}"
    limit = row.percent("margin", signed=False)
    return f"{row.change}, 95 % interval {reach}, unacceptable loss {limit}"


_BAD = ("FAIL", "ERROR", "INCONCLUSIVE")
_MOST_GROUPS = 6
_MOST_POINTS = 8
_FEW = 3


def problems_of(
    required: Sequence[JudgedCriterion], benches: Sequence[str], links: PageLinks
) -> tuple[tuple[Problem, ...], int]:
    totals: Counter[tuple[str, ...]] = Counter(_point_key(row) for row in required)
    groups: dict[tuple[object, ...], list[JudgedCriterion]] = {}
    for row in required:
        if row.outcome in _BAD:
            groups.setdefault((row.waived, row.outcome, *_point_key(row)), []).append(row)
    ordered = _merged(sorted(groups.values(), key=_weight))
    shown = ordered[:_MOST_GROUPS]
    left = sum(len(group) for groups in ordered[_MOST_GROUPS:] for group in groups)
    return tuple(_problem(same, totals[_point_key(same[0][0])], benches, links) for same in shown), left


def _merged(groups: Sequence[Sequence[JudgedCriterion]]) -> list[list[Sequence[JudgedCriterion]]]:
    """Groups that say the same of one adapter's points for several metrics, put together: a crash is told once."""
    merged: dict[tuple[object, ...], list[Sequence[JudgedCriterion]]] = {}
    for number, group in enumerate(groups):
        first = group[0]
        alike = first.outcome == "ERROR" and first.against != "check"
        reasons = frozenset((row.key, row.text("reason")) for row in group) if alike else number
        merged.setdefault((first.waived, first.outcome, reasons), []).append(group)
    return list(merged.values())


def _point_key(row: JudgedCriterion) -> tuple[str, ...]:
    """What criteria of one group share; a hand-written check stands alone."""
    if row.against == "check":
        # one that is counted at points says another thing at each of them
        at = (row.text("adapter"), row.text("point")) if row.text("point") else ()
        return ("check", row.text("bench"), row.text("id"), *at)
    return (row.text("bench"), row.text("adapter"), row.text("metric"), row.against, row.own_id)


def _weight(group: Sequence[JudgedCriterion]) -> tuple[bool, int, float, int]:
    first = group[0]
    worst = min((shift for row in group if (shift := row.number("shift_percent")) is not None), default=0.0)
    return first.waived, _BAD.index(first.outcome), worst, first.index


def _metric_label(row: JudgedCriterion) -> str:
    """`IOPS`, and `IOPS (floor)` of a criterion with an id of its own."""
    return measure(row.text("metric")).label + (f" ({row.own_id})" if row.own_id else "")


def _problem(
    same: Sequence[Sequence[JudgedCriterion]], total: int, benches: Sequence[str], links: PageLinks
) -> Problem:
    group, first = same[0], same[0][0]
    by_shift = sorted(group, key=lambda row: (row.number("shift_percent") or 0.0, row.index))
    reasons = {row.text("reason") for row in group}
    common = reasons.pop() if len(reasons) == 1 else ""
    # the shift says what the reason would say again, and an ERROR's shift says nothing
    judged = first.outcome != "ERROR"
    shared = common or (judged and len(group) > _FEW)
    points = tuple(
        ProblemPoint(
            name=row.name,
            href=links.criterion(row),
            shift=row.change if judged else NONE,
            reason="" if shared else row.text("reason"),
        )
        for row in by_shift[:_MOST_POINTS]
    )
    left = len(group) - len(points)
    # a check is named by its own head, which leads to it
    check = first.against == "check"
    return Problem(
        outcome=first.badge,
        where=first.check_name(benches, alone=False).replace("::", ": ")
        if check
        else adapter_name(benches, first.text("bench"), first.text("adapter")),
        metric="" if check else " and ".join(map(_metric_label, (members[0] for members in same))),
        number=count(len(group), f"count:problem:{first.index}"),
        total=count(total, f"count:problem-of:{first.index}"),
        worst=by_shift[0].change if judged else NONE,
        best=by_shift[-1].change if judged else NONE,
        reason=common,
        waiver=first.waiver,
        href=links.criterion(first) if check else "",
        points=() if check else points,
        more=count(left, f"count:problem-more:{first.index}") if left else None,
    )
