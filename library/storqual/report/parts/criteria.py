# SPDX-License-Identifier: Apache-2.0
"""The table of criteria: per adapter and metric, each shift with its interval drawn against its margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storqual.report.charts.interval import Shift, interval_axis, interval_bar, reach
from storqual.report.criterion import NO_PICTURE, Criterion, place_name
from storqual.report.figures import MINUS, scale_for
from storqual.report.material import measure
from storqual.report.view import CriteriaTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from storqual.report.links import Links


REFERENCE_NAMES = {
    "baseline": "Baseline",
    "absolute": "Limit",
    "peers": "Peers",
    "published": "Published",
    "check": "Reference",
}


def criteria_tables(rows: Iterable[Criterion], benches: Sequence[str], links: Links) -> tuple[CriteriaTable, ...]:
    """Tables in the verdict's order of adapters; required criteria stand before informative ones."""
    groups: dict[tuple[str, str, str, str, bool], list[Criterion]] = {}
    for row in rows:
        if row.against != "check":
            key = (row.text("bench"), row.text("adapter"), row.text("metric"), row.against, row.required)
            groups.setdefault(key, []).append(row)
    adapters = list(dict.fromkeys(key[:2] for key in groups))
    ordered = sorted(groups, key=lambda key: (adapters.index(key[:2]), not key[4]))
    return tuple(
        _table(number, groups[key], place_name(benches, key[0], key[1]), links) for number, key in enumerate(ordered)
    )


def _table(number: int, rows: Sequence[Criterion], adapter: str, links: Links) -> CriteriaTable:
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
        axis=interval_axis(end, _axis_label) if drawn else NO_PICTURE,
        rows=tuple(
            row.shown(scale, links.point(row.key), interval_bar(shift, end, _described(row)) if drawn else NO_PICTURE)
            for row, shift in zip(rows, shifts, strict=True)
        ),
    )


def _shift(row: Criterion) -> Shift:
    low, high = row.interval()
    margin, same = row.number("margin_percent"), row.number("indifference_percent")
    return Shift(row.number("shift_percent"), low, high, margin, row.outcome, same)


def _axis_label(value: float) -> str:
    sign = MINUS if value < 0 else "+" if value > 0 else ""
    return f"{sign}{abs(value):g}\u2009%"


def _described(row: Criterion) -> str:
    """What a row's picture shows, for those who cannot see it."""
    if row.shift.value is None:
        return "no shift"
    low, high = row.ends
    return f"shift {row.shift}, 95 % interval {low} to {high}, margin {row.percent('margin', signed=False)}"
