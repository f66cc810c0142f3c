# SPDX-License-Identifier: Apache-2.0
"""A stated figure beside what its report's own figures give: whether rounding can lie between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from storqual.base.formulas import Interval
from storqual.inputs.expression import Convention, Expression, Reference
from storqual.inputs.figures import Figures, PrintedScope
from storqual.inputs.printed import Printed, Rounding, prints_as
from storqual.inputs.published import Assertion

_BOUNDS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {
    "more_than": lambda computed, stated: computed > stated,
    "less_than": lambda computed, stated: computed < stated,
    "at_least": lambda computed, stated: computed >= stated,
    "at_most": lambda computed, stated: computed <= stated,
}


@dataclass(frozen=True)
class Comparison:
    """One stated number and the expression that it should follow from.

    A *copy* repeats a figure that is printed elsewhere: nothing is computed, so its digits must be the other's,
    at most with fewer of them. `manners` are the ways of rounding that the report shows or the sentence allows.
    """

    assertion: Assertion
    label: str | None
    stated: Printed
    expression: Expression
    figures: Figures
    copy: bool = False
    conventions: Mapping[str, Fraction] = field(default_factory=dict)
    manners: tuple[Rounding, ...] = (Rounding.NEAREST,)

    @property
    def bound(self) -> bool:
        """Whether the report states a limit and no value."""
        return self.assertion.relation in _BOUNDS

    def point(self, instead: Mapping[Reference, Printed] | None = None) -> Fraction:
        """The result from the figures exactly as printed."""
        return self._values(None, instead or {}).low

    def values(self, manner: Rounding, instead: Mapping[Reference, Printed] | None = None) -> Interval:
        """All results that the printed digits leave open."""
        return self._values(None if self.copy else manner, instead or {})

    def computable(self) -> bool:
        """Whether there is a result: no figure that it is divided by may be zero."""
        try:
            self.point()
            self.values(Rounding.NEAREST)
        except ZeroDivisionError:
            return False
        return True

    def agrees(self, stated: Printed | None = None, instead: Mapping[Reference, Printed] | None = None) -> bool:
        """Whether rounding in an admitted manner can lie between stated and computed; False without a result."""
        try:
            return self._agrees(stated or self.stated, instead)
        except ZeroDivisionError:
            return False

    def _agrees(self, stated: Printed, instead: Mapping[Reference, Printed] | None) -> bool:
        if self.bound:
            values = self.values(Rounding.NEAREST, instead)
            holds = _BOUNDS[self.assertion.relation]
            return holds(values.low, stated.value) or holds(values.high, stated.value)
        if self.assertion.relation == "just_over":
            return self._just_over(self.values(Rounding.NEAREST, instead), stated)
        return any(self._prints(self.values(manner, instead), stated, manner, instead) for manner in self.manners)

    def agrees_exactly(self, manner: Rounding = Rounding.NEAREST) -> bool:
        """Whether the figures exactly as printed give what is stated; False without a result."""
        if not self.computable():
            return False
        if self.bound:
            values = self.values(Rounding.NEAREST)
            holds = _BOUNDS[self.assertion.relation]
            return holds(values.low, self.stated.value) and holds(values.high, self.stated.value)
        point = Interval.exactly(self.point())
        if self.assertion.relation == "just_over":
            return self._just_over(point, self.stated)
        return self._prints(point, self.stated, manner, None)

    @staticmethod
    def _just_over(values: Interval, stated: Printed) -> bool:
        """Whether `stated` is a round number below: "more than forty" for 40 to 50, "over 1000" for 1000 to 2000."""
        unit = stated.step
        while stated.value and stated.value % (unit * 10) == 0:
            unit *= 10
        return values.high > stated.value and values.low < stated.value + unit

    def leaves(self) -> list[Reference | Convention]:
        """What the expression reads, each once."""
        return list(dict.fromkeys(self.expression.leaves()))

    def using(self, conventions: Mapping[str, Fraction]) -> Comparison:
        """The same with units in these senses."""
        return replace(self, conventions=conventions)

    def admitting(self, manners: Sequence[Rounding]) -> Comparison:
        """The same with these manners of rounding."""
        return replace(self, manners=tuple(dict.fromkeys((Rounding.NEAREST, *manners))))

    def _values(self, manner: Rounding | None, instead: Mapping[Reference, Printed]) -> Interval:
        scope = PrintedScope(self.figures, self.label, manner, self.conventions, instead)
        return self.expression.evaluate(scope)

    def _prints(
        self, values: Interval, stated: Printed, manner: Rounding, instead: Mapping[Reference, Printed] | None
    ) -> bool:
        if not self.copy:
            return prints_as(values, stated, manner)
        # of two prints of one figure the one with fewer digits is the rounded one
        other = self._original(instead or {})
        if other.step > stated.step:
            return prints_as(Interval.exactly(stated.value), other, manner)
        return prints_as(values, stated, manner)

    def _original(self, instead: Mapping[Reference, Printed]) -> Printed:
        reference = next(leaf for leaf in self.expression.leaves() if isinstance(leaf, Reference))
        return instead.get(reference) or self.figures.number(reference, self.label)


def comparisons(assertion: Assertion, figures: Figures) -> Iterator[Comparison]:
    """The comparisons of an assertion that states a number: one, or one per cell of the series it states."""
    expression = assertion.computed or assertion.same
    if expression is None or assertion.stated is None:
        return
    copy = assertion.same is not None
    if isinstance(assertion.stated, Printed):
        yield Comparison(assertion, None, assertion.stated, expression, figures, copy)
        return
    for label in figures.labels(assertion.stated) or (None,):
        stated = figures.entry(assertion.stated, label)
        if isinstance(stated, Printed):
            yield Comparison(assertion, label, stated, expression, figures, copy)
