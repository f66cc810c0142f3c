# SPDX-License-Identifier: Apache-2.0
"""What the page shows, piece by piece: the templates print these; they compute, decide and format nothing."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from storqual.report.figures import Figure

Cell = Figure | str
Phrase = tuple[Cell, ...]
"""A sentence with figures in it."""


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
