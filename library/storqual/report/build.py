# SPDX-License-Identifier: Apache-2.0
"""From a judged run directory to report.html, and to detail pages beside it where there are many points."""

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from storqual.base.figures import NONE, ShownNumber, count
from storqual.base.table import LinkedCell, Table
from storqual.report.criterion import AS_IT_IS, OUTCOMES, JudgedCriterion, adapter_name, in_words, read_criteria
from storqual.report.material import Material, read_material
from storqual.report.parts.appendix import Appendix, appendix_of
from storqual.report.parts.arms import (
    Environment,
    SettingRow,
    ShownSettings,
    environment_of,
    settings_of,
    shown_settings_of,
)
from storqual.report.parts.console import ConsoleSection, consoles_of
from storqual.report.parts.criteria import Changes, CriteriaTable, changes_of, criteria_tables
from storqual.report.parts.curves import CurveGroup, curve_groups, overview
from storqual.report.parts.first_screen import FirstScreen, first_screen
from storqual.report.parts.ledger import (
    CoverageLedger,
    ErrorCounters,
    Guard,
    coverage_of,
    error_counters_of,
    guard_of,
    paths_of,
    unclassified_of,
    waivers_of,
)
from storqual.report.parts.point import NOTHING, PointEvidence, limits_of_points, point_evidence, repeats_of
from storqual.report.parts.studies import Study, studies_of
from storqual.report.parts.timeline import Timeline, TimelineEvent, moments_of, timeline_of
from storqual.report.render import render_template
from storqual.report.view import Detail, DrawnChart, Key, PageLinks, details_of, note_table, sites_of
from storqual.run import is_signed, write_bytes
from storqual.run.layout import locked
from storqual.run.notes import read_notes
from storqual.run.turns import COUNTED, Section, turns_of
from storqual_core.kit.errors import BadInputError


@dataclass(frozen=True)
class Page:
    """report.html, or without a `first_screen` a detail page of it."""

    title: str
    run: str
    home: str
    criteria: tuple[CriteriaTable, ...]
    curves: tuple[CurveGroup, ...]
    arms: tuple[tuple[str, str], ...]
    points: tuple[PointEvidence, ...]
    benches: tuple[str, ...] = ()
    first_screen: FirstScreen | None = None
    changes: Changes | None = None
    overview: DrawnChart | None = None
    left_out: ShownNumber | None = None
    rollup: Table | None = None
    checks: tuple[JudgedCriterion, ...] = ()
    studies: tuple[Study, ...] = ()
    advice: tuple[tuple[str, str], ...] = ()
    timelines: tuple[Timeline, ...] = ()
    findings: tuple[TimelineEvent, ...] = ()
    unclassified: Table | None = None
    consoles: tuple[ConsoleSection, ...] = ()
    settings: tuple[SettingRow, ...] = ()
    settings_shown: ShownSettings | None = None
    environment: Environment | None = None
    coverage: CoverageLedger | None = None
    guard: Guard | None = None
    errors: ErrorCounters | None = None
    paths: tuple[Table, ...] = ()
    waivers: Table | None = None
    appendix: Appendix | None = None
    turns: tuple[Section, ...] = ()
    measured: bool = True
    notes: Table | None = None


_MOST_ROWS = 200
_FEW = 100
_QUIET = ("PASS", "SKIPPED")
REPORT = "report.html"


def build_report(run_dir: Path, material: Material | None = None) -> Path:
    """Write `report.html` (and `report/*.html` above the limit of one page) of a judged run; returns its path.

    `material` is what was read of it already. Raises BadInputError when the run was not judged, is signed or is no
    run, StorqualError when it is damaged.
    """
    run_dir = Path(run_dir)
    if is_signed(run_dir):
        raise BadInputError([f"{run_dir}: this run is signed, and its report with it; it is not written again"])
    with locked(run_dir):
        material = material or read_material(run_dir)
        folder = run_dir / "report"
        if folder.is_dir():
            shutil.rmtree(folder)
        for file, page in pages_of(material):
            write_bytes(run_dir / file, render(page).encode())
    return run_dir / REPORT


def render(page: Page) -> str:
    return render_template("report.html.j2", "report.css", page=page)


def pages_of(material: Material) -> Iterator[tuple[str, Page]]:
    """The pages of a report with their file names; `report.html` is the last, when all that it leads to is there."""
    yield from _Pages(material).pages()


class _Pages:
    """What all pages of a report are made from."""

    def __init__(self, material: Material) -> None:
        self._material = material
        self._benches = list(material.run.benches)
        self._criteria = read_criteria(material.verdict)
        self._moments = moments_of(material)
        self._repeats = repeats_of(material)
        self._limits = limits_of_points(material)
        self._by_point: defaultdict[Key, list[JudgedCriterion]] = defaultdict(list)
        for row in self._criteria:
            self._by_point[row.key].append(row)

    def pages(self) -> Iterator[tuple[str, Page]]:
        details = details_of(self._material)
        shown: Sequence[JudgedCriterion] = self._criteria
        if details:
            # a large campaign's first page lists what did not pass, and of that only so much
            shown = [row for row in self._criteria if row.outcome not in _QUIET][:_MOST_ROWS]
        sites = sites_of(self._material, details, (row.index for row in shown))
        for detail in details:
            criteria = [row for key in detail.keys for row in self._by_point.get(key, ())]
            yield (
                detail.file,
                self._page(detail.title, "../report.html", criteria, detail.keys, PageLinks(sites, detail)),
            )
        yield REPORT, self._report(shown, details, PageLinks(sites, None))

    def _page(
        self, title: str, home: str, criteria: Sequence[JudgedCriterion], keys: Sequence[Key], links: PageLinks
    ) -> Page:
        material = self._material
        adapters: dict[tuple[str, str], list[Key]] = {}
        for key in keys:
            adapters.setdefault(key[:2], []).append(key)
        curves = tuple(
            group
            for at, (adapter, members) in enumerate(adapters.items())
            for group in curve_groups(
                adapter_name(self._benches, *adapter), [material.points[key] for key in members], f"v{at}"
            )
        )
        here = {name: [moment for moment in self._moments if moment.bench in ("", name)] for name in self._benches}
        points = tuple(
            point_evidence(
                material.points[key],
                self._by_point.get(key, ()),
                links,
                self._benches,
                here.get(key[0], ()),
                few=len(keys) <= _FEW,
                repeat=self._repeats.get(key),
                limit=self._limits.get(key, NOTHING),
            )
            for key in keys
        )
        arms = tuple((name, arm.drop) for name, arm in material.run.arms.items())
        tables = criteria_tables(criteria, self._benches, links)
        return Page(title, material.run.name, home, tables, curves, arms, points, tuple(self._benches))

    def _report(self, shown: Sequence[JudgedCriterion], details: Sequence[Detail], links: PageLinks) -> Page:
        material = self._material
        drops = [material.run.arms[arm].drop if arm in material.run.arms else arm for arm in material.arms]
        title = f"{material.verdict.get('outcome')}: {' against '.join(reversed(drops))}"
        sections = turns_of(material.run).sections()
        # of a program hundreds of tests need no look, and its section has them
        in_sections = frozenset[str]().union(*(section.criterion_ids for section in sections))
        checks = sorted(
            (
                row
                for row in self._criteria
                if row.against == "check" and not (row.outcome in _QUIET and row.text("id") in in_sections)
            ),
            key=lambda row: (row.outcome in _QUIET, row.name if row.text("source") == COUNTED else ""),
        )
        left_out = sum(row.outcome not in _QUIET for row in self._criteria) - len(shown) if details else 0
        incidents = [moment for moment in self._moments if moment.serious and not moment.finding]
        studies, advice = studies_of(material)
        return replace(
            self._page(title, "", shown, () if details else tuple(material.points), links),
            first_screen=first_screen(material, self._criteria, links, incidents),
            overview=overview(material, self._criteria, "overview"),
            changes=changes_of(self._criteria, self._benches, links),
            left_out=count(left_out, f"count:left-out:{left_out}") if left_out else None,
            rollup=self._rollup(details) if details else None,
            checks=tuple(row.shown(AS_IT_IS, links.point(row.key)) for row in checks),
            studies=studies,
            advice=advice,
            timelines=tuple(
                timeline_of(material, name, self._moments, f"b{at}") for at, name in enumerate(self._benches)
            ),
            findings=tuple(moment for moment in self._moments if moment.finding),
            unclassified=unclassified_of(material),
            consoles=consoles_of(material),
            settings=settings_of(material),
            settings_shown=shown_settings_of(material),
            environment=environment_of(material),
            coverage=coverage_of(material),
            guard=guard_of(material),
            errors=error_counters_of(material),
            paths=paths_of(material),
            waivers=waivers_of(self._criteria),
            appendix=appendix_of(material),
            turns=tuple(sections),
            measured=bool(material.points),
            notes=note_table("Notes that people added before the run was signed", read_notes(material.run.path)),
        )

    def _rollup(self, details: Sequence[Detail]) -> Table:
        """Outcomes of many criteria in one row for each detail page."""
        rows, tones = [], {}
        for number, detail in enumerate(details):
            criteria = [row for key in detail.keys for row in self._by_point.get(key, ())]
            counted = Counter(row.outcome for row in criteria)
            shifted = (row for row in criteria if row.required and row.number("shift_percent") is not None)
            worst = min(shifted, key=lambda row: row.number("shift_percent") or 0.0, default=None)
            at = f"count:page:{detail.file}"
            bad = next((word for name, word in OUTCOMES.items() if counted[name] and name in ("FAIL", "ERROR")), None)
            if bad is not None:
                tones[number] = bad.tone
            numbers = (count(counted[name], f"{at}:{name}") for name in OUTCOMES)
            shift = NONE if worst is None else in_words(worst)
            rows.append((LinkedCell(detail.title, detail.file), count(len(detail.keys), at), *numbers, shift))
        return Table("Criteria by page", ("Page", "Points", *OUTCOMES, "Worst shift"), tuple(rows), tones=tones)
