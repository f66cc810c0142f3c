# SPDX-License-Identifier: Apache-2.0
"""Figures and assertions that a program writes down, instead of a person in YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from storqual.audit.expression import Reference
from storqual.audit.printed import Printed
from storqual.audit.published import Assertion, Figure

__all__ = ["Notebook"]


class Notebook:
    """Gathers the figures and assertions of a report; they are not checked again, their writer is the program."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        self.assertions: list[Assertion] = []
        self._names: set[str] = set()

    def has(self, name: str) -> bool:
        """Whether there is a figure of that name."""
        return name in self._names

    def figure(self, name: str, value: object, *, what: str, unit: str = "-", page: str = "run") -> Reference | None:
        """Add a figure: a number with its digits, a whole number (exact), or a word. None when it is none of them."""
        if isinstance(value, int) and not isinstance(value, bool):
            value = Printed.parse(str(value), exact=True)
        if not isinstance(value, Printed | str):
            return None
        self._names.add(name)
        self.figures.append(Figure.model_construct(None, id=name, page=page, what=what, value=value, unit=unit))
        return Reference(name)

    def series(self, name: str, values: Sequence[Printed], *, what: str, unit: str) -> None:
        """Add numbers of one kind, labelled by their place."""
        labels = tuple(str(place) for place in range(len(values)))
        self._names.add(name)
        self.figures.append(
            Figure.model_construct(
                None, id=name, page="run", what=what, values=tuple(values), at=labels, along="place", unit=unit
            )
        )

    def count(self, name: str, value: object, what: str) -> Reference | None:
        """Add a number of points."""
        return self.figure(name, value, what=what, unit="points", page="coverage")

    def claim(self, name: str, page: str, text: str, **way: object) -> None:
        """Add an assertion; `way` is its way of checking, as in a published file."""
        self.assertions.append(Assertion.model_construct(None, id=name, page=page, text=text, **way))

    @staticmethod
    def page_of(criterion: Mapping[str, Any]) -> str:
        """The place of a criterion, by the name that its test has."""
        return f"{criterion.get('metric') or criterion.get('id')}@{criterion.get('adapter')}/{criterion.get('point')}"
