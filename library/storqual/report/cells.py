# SPDX-License-Identifier: Apache-2.0
"""The small things that every part of a page is made of: outcomes, names with values, tables, charts."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from storqual.report.figures import Figure

__all__ = ["Cell", "Chart", "ChartTable", "Digest", "KeyValue", "Outcome", "Phrase", "TimelineEvent"]

Cell = Figure | str
Phrase = tuple[Cell, ...]
"""A sentence with figures in it."""


@dataclass(frozen=True)
class Outcome:
    """An outcome as it is shown: the word, a symbol beside it, and the class that colours it."""

    word: str
    symbol: str
    tone: str


@dataclass(frozen=True)
class KeyValue:
    """A name and what it has; `differs` marks what is not the same in both arms."""

    name: str
    values: tuple[Cell, ...]
    differs: bool = False


@dataclass(frozen=True)
class ChartTable:
    """The numbers of a chart: column heads, and rows whose first cell names the row."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns hold figures: those are set to the right."""
        return tuple(isinstance(cell, Figure) for cell in self.rows[0]) if self.rows else ()


@dataclass(frozen=True)
class Chart:
    """A picture with its title and its numbers; where `table` is None they stand in the table below it."""

    title: str
    picture: Markup
    table: ChartTable | None
    wide: bool = False
    beside: ChartTable | None = None


@dataclass(frozen=True)
class Digest:
    """A file and the SHA-256 of its bytes."""

    name: str
    sha256: str


@dataclass(frozen=True)
class TimelineEvent:
    """Something that happened; `badge` names it in charts, `gist` is the line of `text` that says most.

    `mended` says how the campaign got over it; empty where it did not, or where there was nothing to get over.
    """

    badge: str
    time: str
    bench: str
    kind: str
    gist: str
    text: str
    serious: bool
    mended: str
