# SPDX-License-Identifier: Apache-2.0
"""The figures of one report by name, and the scope in which its expressions are computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from storqual.audit.expression import Reference
from storqual.audit.printed import Printed, Rounding
from storqual.audit.published import Figure
from storqual.interval import Interval

__all__ = ["Figures", "PrintedScope"]


class Figures:
    """Look-up of figures and their cells. A name that is not there raises KeyError with a sentence."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        self._figures = {figure.id: figure for figure in figures}

    def figure(self, reference: Reference) -> Figure:
        """The figure that `reference` names."""
        figure = self._figures.get(reference.figure)
        if figure is None:
            raise KeyError(f"no figure {reference.figure!r}")
        return figure

    def series(self, reference: Reference) -> Mapping[str | None, Printed | str]:
        """All cells of a figure by label."""
        return self.figure(reference).cells()

    def labels(self, reference: Reference) -> tuple[str, ...]:
        """The labels over which `reference` stands for many cells; none when it is one."""
        figure = self.figure(reference)
        return figure.at if reference.cell is None and figure.at is not None else ()

    def entry(self, reference: Reference, label: str | None = None) -> Printed | str:
        """What is printed: the cell that is named, else the cell at `label`, else the single figure."""
        cells = self.series(reference)
        for wanted in (reference.cell, label, None) if reference.cell is None else (reference.cell,):
            if wanted in cells:
                return cells[wanted]
        raise KeyError(f"no {reference.cell or label or 'single value'!r} in {reference.figure!r}")

    def number(self, reference: Reference, label: str | None = None) -> Printed:
        """The same, of a number."""
        entry = self.entry(reference, label)
        if isinstance(entry, str):
            raise KeyError(f"{reference} is the name {entry!r} and no number")
        return entry

    def numbers(self) -> Iterator[tuple[Reference, Printed, Figure]]:
        """Every number of the report with its place."""
        for figure in self._figures.values():
            for label, entry in figure.cells().items():
                if isinstance(entry, Printed):
                    yield Reference(figure.id, label), entry, figure


@dataclass(frozen=True)
class PrintedScope:
    """Figures as they may have been before they were printed in one manner; or, without one, exactly as printed."""

    figures: Figures
    label: str | None = None
    rounding: Rounding | None = None
    conventions: Mapping[str, Fraction] = field(default_factory=dict)
    instead: Mapping[Reference, Printed] = field(default_factory=dict)
    """Numbers to be tried in place of what is printed; keyed by the reference as the expression writes it."""

    def value(self, reference: Reference) -> Interval:
        """See expression.Scope."""
        return self._before(self.instead.get(reference) or self.figures.number(reference, self.label))

    def cells(self, reference: Reference) -> list[Interval]:
        """See expression.Scope. Names count, and have no value."""
        entries = self.figures.series(reference).values()
        return [self._before(entry) if isinstance(entry, Printed) else Interval.exactly(0) for entry in entries]

    def convention(self, name: str) -> Fraction:
        """See expression.Scope."""
        return self.conventions[name]

    def _before(self, printed: Printed) -> Interval:
        return Interval.exactly(printed.value) if self.rounding is None else printed.before(self.rounding)
