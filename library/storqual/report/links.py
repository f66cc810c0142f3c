# SPDX-License-Identifier: Apache-2.0
"""Where things stand: on the one page of a small report, or on the detail pages of a large one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storqual.report.material import Material
from storqual.report.rows import Row

__all__ = ["MOST_POINTS", "Detail", "Links", "details_of", "links_on"]

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
class Links:
    """References that are right on one page: of a criterion by its index, of a point by its key."""

    criteria: Mapping[int, str]
    points: Mapping[Key, str]


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


def links_on(
    page: Detail | None, material: Material, rows: Sequence[Row], details: Sequence[Detail], shown: frozenset[int]
) -> Links:
    """The references of `page` (None is report.html); `shown` are the indexes of the criteria on report.html."""
    home = {key: detail for detail in details for key in detail.keys}

    def prefix(detail: Detail | None) -> str:
        if detail is page:
            return ""
        up = "../" if page is not None else ""
        return up + (detail.file if detail is not None else "report.html")

    anchors = {key: f"p{number}" for number, key in enumerate(material.points)}
    points = {key: f"{prefix(home.get(key))}#{anchor}" for key, anchor in anchors.items()}
    criteria: dict[int, str] = {}
    for row in rows:
        where = home.get(row.key)
        if page is None and row.index in shown:
            where = None
        criteria[row.index] = f"{prefix(where)}#{row.ident}"
    return Links(criteria, points)
