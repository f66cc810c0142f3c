# SPDX-License-Identifier: Apache-2.0
"""What pages show, piece by piece: the templates print these; they compute, decide and format nothing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from storqual.base.figures import ShownNumber, minute
from storqual.base.table import LinkedCell, Table
from storqual.report.criterion import JudgedCriterion
from storqual.report.material import Material
from storqual.run.notes import Note

Cell = ShownNumber | str
Phrase = tuple[Cell, ...]
"""A sentence with figures in it."""


@dataclass(frozen=True)
class KeyValue:
    """A name and what it has; `differs` marks what is not the same in both arms."""

    name: str
    values: tuple[Cell, ...]
    differs: bool = False


@dataclass(frozen=True)
class DrawnChart:
    """A picture with its title and its numbers; where `table` is None they stand in the table below it."""

    title: str
    picture: Markup
    table: Table | None
    wide: bool = False
    beside: Table | None = None


MOST_POINTS = 300
"""Up to so many points everything stands on one page; above, points are told on detail pages."""
_PER_PAGE = 120
_FOLDER = "report"
_UNSAFE = re.compile(r"[^a-z0-9_-]+")

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Detail:
    """A detail page: its file beside the report, its title, its points."""

    file: str
    title: str
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Sites:
    """Which page tells what: the detail page and the anchor of every point; the criteria that report.html lists."""

    pages: Mapping[Key, Detail]
    anchors: Mapping[Key, str]
    shown: frozenset[int]


@dataclass(frozen=True)
class PageLinks:
    """References that are right on one page; `page` of None is report.html."""

    sites: Sites
    page: Detail | None

    def criterion(self, row: JudgedCriterion) -> str:
        here = self.page is None and row.index in self.sites.shown
        return f"{'' if here else self._to(row.key)}#{row.ident}"

    def point(self, key: Key) -> str:
        """Where a point's evidence is; empty for what is no planned point."""
        anchor = self.sites.anchors.get(key)
        return f"{self._to(key)}#{anchor}" if anchor else ""

    def _to(self, key: Key) -> str:
        target = self.sites.pages.get(key)
        if target is self.page:
            return ""
        file = target.file if target is not None else "report.html"
        return f"../{file}" if self.page is not None else file


def sites_of(material: Material, details: Sequence[Detail], shown: Iterable[int]) -> Sites:
    pages = {key: detail for detail in details for key in detail.keys}
    anchors = {key: f"p{number}" for number, key in enumerate(material.points)}
    return Sites(pages, anchors, frozenset(shown))


def details_of(material: Material) -> tuple[Detail, ...]:
    """The detail pages of a large campaign, by bench, adapter and workload; none for a small one."""
    if len(material.points) <= MOST_POINTS:
        return ()
    groups: dict[Key, list[Key]] = {}
    for key, data in material.points.items():
        groups.setdefault((key[0], key[1], data.planned.workload), []).append(key)
    pages: list[Detail] = []
    for (bench, adapter, workload), keys in groups.items():
        parts = [keys[at : at + _PER_PAGE] for at in range(0, len(keys), _PER_PAGE)]
        for number, part in enumerate(parts, start=1):
            names = [adapter, workload] if len(material.run.benches) == 1 else [bench, adapter, workload]
            title = " ".join(names) + (f", part {number} of {len(parts)}" if len(parts) > 1 else "")
            # names come from inventories and suites: only their tame characters reach the file system
            slug = _UNSAFE.sub("-", " ".join(names).lower()).strip("-")[:60]
            pages.append(Detail(f"{_FOLDER}/{len(pages) + 1:03d}-{slug}.html", title, tuple(part)))
    return tuple(pages)


def note_table(caption: str, notes: Iterable[Note], *, below: str = "") -> Table:
    """Notes with their links and attachments; `below` is the folder of the run that the page lies in."""
    rows = []
    for note in notes:
        beside: list[object] = [LinkedCell(link, link) for link in note.links]
        for file in note.files:
            beside += [LinkedCell(file.name, file.path.removeprefix(below)), f"SHA-256 {file.sha256}"]
        rows.append((minute(note.at), note.by, LinkedCell(note.text, notes=tuple(beside))))
    return Table(caption, ("When", "Who", "Note"), tuple(rows))
