# SPDX-License-Identifier: Apache-2.0
"""The table of criteria: per adapter and metric, each shift with its interval drawn against its margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from storqual.report.charts.interval import Shift, interval_axis, interval_bar, reach
from storqual.report.figures import MINUS, NONE, Figure, Scale, count, percent, scale_for
from storqual.report.material import measure
from storqual.report.rows import Row, place_name
from storqual.report.view import CriteriaTable, CriterionRow
from storqual.report.words import outcome, waived_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from storqual.report.links import Links


_NO_PICTURE = Markup("")
REFERENCE_NAMES = {
    "baseline": "Baseline",
    "absolute": "Limit",
    "peers": "Peers",
    "published": "Published",
    "check": "Reference",
}


def criteria_tables(rows: Iterable[Row], benches: Sequence[str], links: Links) -> tuple[CriteriaTable, ...]:
    """Tables in the verdict's order of adapters; required criteria stand before informative ones."""
    groups: dict[tuple[str, str, str, str, bool], list[Row]] = {}
    for row in rows:
        if row.against != "check":
            key = (row.text("bench"), row.text("adapter"), row.text("metric"), row.against, row.required)
            groups.setdefault(key, []).append(row)
    adapters = list(dict.fromkeys(key[:2] for key in groups))
    ordered = sorted(groups, key=lambda key: (adapters.index(key[:2]), not key[4]))
    return tuple(
        _table(number, groups[key], place_name(benches, key[0], key[1]), links) for number, key in enumerate(ordered)
    )


def _table(number: int, rows: Sequence[Row], adapter: str, links: Links) -> CriteriaTable:
    first = rows[0]
    metric = measure(first.text("metric"), first.text("unit"), first.text("better"))
    values = [value for row in rows for value in (row.number("candidate"), row.number("reference"))]
    scale = scale_for(first.text("unit"), values)
    shifts = [_shift(row) for row in rows]
    drawn = any(shift.value is not None for shift in shifts)
    end = reach(shifts)
    return CriteriaTable(
        ident=f"t{number}",
        adapter=adapter,
        metric=metric.label,
        # a label that says the unit already, `IOPS` or `I/O errors per TB`, does not say it twice
        unit="" if scale.unit.startswith("1/") or scale.unit.lower() == metric.label.lower() else scale.unit,
        better=f"{first.text('better') or 'higher'} is better",
        reference_name=REFERENCE_NAMES.get(first.against, "Reference"),
        required=first.required,
        drawn=drawn,
        axis=interval_axis(end, _axis_label) if drawn else _NO_PICTURE,
        rows=tuple(
            criterion_row(
                row, scale, links, picture=interval_bar(shift, end, _in_words(row)) if drawn else _NO_PICTURE
            )
            for row, shift in zip(rows, shifts, strict=True)
        ),
    )


def criterion_row(row: Row, scale: Scale, links: Links, *, picture: Markup = _NO_PICTURE) -> CriterionRow:
    """One row; numbers in the column's unit."""
    low, high = row.interval()
    waiver = row.fields.get("waiver") or {}
    return CriterionRow(
        ident=row.ident,
        outcome=outcome(row.outcome),
        point=row.text("point") or row.text("id"),
        href=links.point(row.key),
        candidate=scale.figure(row.number("candidate"), row.source("candidate")),
        reference=scale.figure(row.number("reference"), row.source("reference")),
        shift=percent(row.number("shift_percent"), row.source("shift_percent")),
        low=percent(low, row.source("ci95_percent/0")),
        high=percent(high, row.source("ci95_percent/1")),
        margin=percent(row.number("margin_percent"), row.source("margin_percent"), signed=False),
        detectable=percent(row.number("detectable_percent"), row.source("detectable_percent"), signed=False),
        launches=_pair(row, "samples"),
        sessions=_pair(row, "sessions"),
        reason=row.text("reason"),
        waiver=waived_by(waiver) if row.waived else "",
        picture=picture,
    )


def _pair(row: Row, name: str) -> tuple[Figure, Figure]:
    """Counts of the baseline and the candidate."""
    numbers = row.fields.get(name) or {}
    found = [numbers.get(arm) if isinstance(numbers, dict) else None for arm in ("baseline", "candidate")]
    first, second = (
        count(number, row.source(f"{name}/{arm}")) if isinstance(number, int) else NONE
        for number, arm in zip(found, ("baseline", "candidate"), strict=True)
    )
    return first, second


def _shift(row: Row) -> Shift:
    low, high = row.interval()
    margin, same = row.number("margin_percent"), row.number("indifference_percent")
    return Shift(row.number("shift_percent"), low, high, margin, row.outcome, same)


def _axis_label(value: float) -> str:
    sign = MINUS if value < 0 else "+" if value > 0 else ""
    return f"{sign}{abs(value):g}\u2009%"


def _in_words(row: Row) -> str:
    """What a row's picture shows, for those who cannot see it."""
    shift = percent(row.number("shift_percent"), "")
    if shift is NONE:
        return "no shift"
    low, high = (percent(end, "") for end in row.interval())
    margin = percent(row.number("margin_percent"), "", signed=False)
    return f"shift {shift}, 95 % interval {low} to {high}, margin {margin}"
