# SPDX-License-Identifier: Apache-2.0
"""From a judged run directory to report.html, and to detail pages beside it where there are many points."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from storqual.report.figures import NONE, Figure, Scale, count, percent
from storqual.report.links import Detail, Links, details_of, sites_of
from storqual.report.material import Material, read_material
from storqual.report.moments import Moment, moments_of
from storqual.report.parts.appendix import appendix_of
from storqual.report.parts.arms import environment_of, settings_of
from storqual.report.parts.counters import error_counters_of
from storqual.report.parts.criteria import criteria_tables, criterion_row
from storqual.report.parts.curves import curve_groups
from storqual.report.parts.decision import decision_for
from storqual.report.parts.evidence import point_evidence
from storqual.report.parts.ledger import coverage_of, guard_of, waivers_of
from storqual.report.parts.studies import studies_of
from storqual.report.parts.timeline import findings_of, timeline_of
from storqual.report.parts.trials import trials_of
from storqual.report.render import render, style_sheet
from storqual.report.rows import Row, place_name, read_rows
from storqual.report.view import CurveGroup, Page, PointEvidence, Rollup
from storqual.report.words import OUTCOMES
from storqual.run import is_signed, write_bytes
from storqual_core.kit.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from storqual.report.links import Key


_MOST_ROWS = 200
_FEW = 100
_QUIET = ("PASS", "SKIPPED")
REPORT = "report.html"


def build_report(run_dir: Path) -> Path:
    """Write `report.html` (and `report/*.html` above the limit of one page) of a judged run; returns its path.

    Raises BadInputError when the run was not judged, is signed or is no run, StorqualError when it is damaged.
    """
    run_dir = Path(run_dir)
    if is_signed(run_dir):
        raise BadInputError([f"{run_dir}: found a signed run; its report was signed with it and stays as it is"])
    material = read_material(run_dir)
    folder = run_dir / "report"
    if folder.is_dir():
        shutil.rmtree(folder)
    for file, page in pages_of(material):
        write_bytes(run_dir / file, render(page).encode())
    return run_dir / REPORT


def pages_of(material: Material) -> Iterator[tuple[str, Page]]:
    """The pages of a report with their file names; `report.html` is the last, when all that it leads to is there."""
    rows = read_rows(material.verdict)
    moments = moments_of(material)
    details = details_of(material)
    by_point: defaultdict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        by_point[row.key].append(row)
    # a large campaign's first page lists what did not pass, and of that only so much
    shown = [row for row in rows if row.outcome not in _QUIET][:_MOST_ROWS] if details else rows
    sites = sites_of(material, details, (row.index for row in shown))
    for detail in details:
        yield detail.file, _detail_page(material, detail, by_point, Links(sites, detail), moments)
    yield REPORT, _main_page(material, rows, shown, by_point, details, Links(sites, None), moments)


def _main_page(
    material: Material,
    rows: Sequence[Row],
    shown: Sequence[Row],
    by_point: Mapping[Key, Sequence[Row]],
    details: Sequence[Detail],
    links: Links,
    moments: Sequence[Moment],
) -> Page:
    benches = list(material.run.benches)
    keys = () if details else tuple(material.points)
    checks = [row for row in rows if row.against == "check"]
    left_out = sum(row.outcome not in _QUIET for row in rows) - len(shown) if details else 0
    studies, advice = studies_of(material)
    return Page(
        title=_title(material),
        style=style_sheet(),
        run=material.run.name,
        home="",
        decision=decision_for(material, rows, links, [m.event() for m in moments if m.serious and not m.finding]),
        criteria=criteria_tables(shown, benches, links),
        left_out=count(left_out, f"count:left-out:{left_out}") if left_out else None,
        rollups=tuple(_rollup(detail, by_point) for detail in details),
        checks=tuple(
            criterion_row(row, Scale(""), links) for row in sorted(checks, key=lambda row: row.outcome in _QUIET)
        ),
        studies=studies,
        advice=advice,
        curves=_curves(material, keys, benches),
        arms=tuple((arm, drop.drop) for arm, drop in material.run.arms.items()),
        timelines=tuple(timeline_of(material, name, moments, f"b{at}") for at, name in enumerate(benches)),
        findings=findings_of(moments),
        settings=settings_of(material),
        environment=environment_of(material),
        coverage=coverage_of(material),
        guard=guard_of(material),
        errors=error_counters_of(material),
        waivers=waivers_of(rows),
        points=_evidence(material, keys, by_point, links, moments),
        appendix=appendix_of(material),
        trials=trials_of(material.run),
    )


def _detail_page(
    material: Material,
    detail: Detail,
    by_point: Mapping[Key, Sequence[Row]],
    links: Links,
    moments: Sequence[Moment],
) -> Page:
    benches = list(material.run.benches)
    rows = [row for key in detail.keys for row in by_point.get(key, ())]
    return Page(
        title=detail.title,
        style=style_sheet(),
        run=material.run.name,
        home="../report.html",
        decision=None,
        criteria=criteria_tables(rows, benches, links),
        left_out=None,
        rollups=(),
        checks=(),
        studies=(),
        advice=(),
        curves=_curves(material, detail.keys, benches),
        arms=tuple((arm, drop.drop) for arm, drop in material.run.arms.items()),
        timelines=(),
        findings=(),
        settings=(),
        environment=None,
        coverage=None,
        guard=None,
        errors=None,
        waivers=(),
        points=_evidence(material, detail.keys, by_point, links, moments),
        appendix=None,
    )


def _title(material: Material) -> str:
    """For the window and the printed header."""
    drops = [material.run.arms[arm].drop if arm in material.run.arms else arm for arm in material.arms]
    return f"{material.verdict.get('outcome')}: {' against '.join(reversed(drops))}"


def _curves(material: Material, keys: Iterable[Key], benches: Sequence[str]) -> tuple[CurveGroup, ...]:
    adapters: dict[tuple[str, str], list[Key]] = {}
    for key in keys:
        adapters.setdefault(key[:2], []).append(key)
    return tuple(
        group
        for at, (adapter, members) in enumerate(adapters.items())
        for group in curve_groups(place_name(benches, *adapter), [material.points[key] for key in members], f"v{at}")
    )


def _evidence(
    material: Material,
    keys: Iterable[Key],
    by_point: Mapping[Key, Sequence[Row]],
    links: Links,
    moments: Sequence[Moment],
) -> tuple[PointEvidence, ...]:
    listed, benches = list(keys), list(material.run.benches)
    here = {bench: [moment for moment in moments if moment.bench in ("", bench)] for bench in benches}
    few = len(listed) <= _FEW
    return tuple(
        point_evidence(material.points[key], by_point.get(key, ()), links, benches, here.get(key[0], ()), few=few)
        for key in listed
    )


def _rollup(detail: Detail, by_point: Mapping[Key, Sequence[Row]]) -> Rollup:
    """A detail page's outcomes in one row."""
    rows = [row for key in detail.keys for row in by_point.get(key, ())]
    counted = Counter(row.outcome for row in rows)
    worst = min(
        (row for row in rows if row.required and row.number("shift_percent") is not None),
        key=lambda row: row.number("shift_percent") or 0.0,
        default=None,
    )
    shift: Figure = NONE
    if worst is not None:
        shift = percent(worst.number("shift_percent"), worst.source("shift_percent"))
    return Rollup(
        title=detail.title,
        href=detail.file,
        points=count(len(detail.keys), f"count:page:{detail.file}"),
        counts=tuple(
            (word, count(counted[name], f"count:page:{detail.file}:{name}")) for name, word in OUTCOMES.items()
        ),
        worst=shift,
    )
