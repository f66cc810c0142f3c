# SPDX-License-Identifier: Apache-2.0
"""A stated figure beside what its report's figures give, in the sense of MB, KB and CPU that makes a table fit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from storqual.base.formulas import Interval
from storqual.inputs.expression import Convention, Expression, Reference
from storqual.inputs.figures import Figures, PrintedScope
from storqual.inputs.published import Assertion, Printed, Rounding, prints_as

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
        """Whether there is a result: no figure that it is divided by may be zero, and it is not too large."""
        try:
            self.point()
            self.values(Rounding.NEAREST)
        except ArithmeticError:
            return False
        return True

    def agrees(self, stated: Printed | None = None, instead: Mapping[Reference, Printed] | None = None) -> bool:
        """Whether rounding in an admitted manner can lie between stated and computed; False without a result."""
        try:
            return self._agrees(stated or self.stated, instead)
        except ArithmeticError:
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


_SENSES: Mapping[str, tuple[tuple[str, Fraction], ...]] = {
    "MB": (("MB = 10^6 bytes", Fraction(10**6)), ("MB = 2^20 bytes", Fraction(2**20))),
    "KB": (("KB = 1000 bytes", Fraction(1000)), ("KB = 1024 bytes", Fraction(1024))),
    "TIME": (
        ("seconds", Fraction(1, 10**6)),
        ("milliseconds", Fraction(1, 1000)),
        ("microseconds", Fraction(1)),
    ),
}


@dataclass(frozen=True)
class Sense:
    """The senses that fit best. `fits` of `members` agree; `others` are senses that fit as well, in words."""

    values: Mapping[str, Fraction]
    words: str
    fits: int
    members: int
    next_best: int
    others: tuple[str, ...] = ()

    def sentence(self) -> str:
        """What was inferred and how surely."""
        if not self.words:
            return ""
        if not self.fits:
            return f"No sense of its units makes it agree (here with {self.words})."
        if self.others:
            return (
                f"With {self.words} {self.fits} of {self.members} agree; so they do with {', or '.join(self.others)}."
            )
        return (
            f"With {self.words} {self.fits} of {self.members} agree, with any other reading at most {self.next_best}."
        )


def infer_conventions(members: Sequence[Comparison]) -> Sense:
    """The senses in which most members agree; of equals the one with more exact hits, then the first listed."""
    names = [name for name in [*_SENSES, "CPUS"] if any(Convention(name) in member.leaves() for member in members)]
    if not names:
        return Sense({}, "", 0, len(members), 0)
    cpus = max((member.assertion.cpus or 1 for member in members), default=1)
    tried: list[tuple[int, int, Mapping[str, Fraction], str]] = []
    for combination in itertools.product(*(_senses(name, cpus) for name in names)):
        values = {name: value for name, (_, value) in zip(names, combination, strict=True)}
        judged = [member.using(values) for member in members]
        fits = sum(member.agrees() for member in judged)
        exact = sum(any(member.agrees_exactly(manner) for manner in Rounding) for member in judged)
        tried.append((fits, exact, values, _words([words for words, _ in combination])))
    best = max(tried, key=lambda one: one[:2])
    equal = tuple(words for *score, _, words in tried if tuple(score) == best[:2] and words != best[3])
    next_best = max((fits for fits, _, values, _ in tried if values != best[2]), default=0)
    return Sense(best[2], best[3], best[0], len(members), next_best, equal)


def _senses(name: str, cpus: int) -> tuple[tuple[str, Fraction], ...]:
    if name != "CPUS":
        return _SENSES[name]
    return (
        (f"CPU % as printed (of all {cpus} CPUs together)", Fraction(1)),
        (f"CPU % summed over {cpus} CPUs", Fraction(1, cpus)),
        (f"CPU % of one of {cpus} CPUs", Fraction(cpus)),
    )


def _words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


_EVIDENCE = 2
"""How many figures must speak for a manner other than rounding to nearest: one could be a misprint."""


def infer_manner(members: Sequence[Comparison]) -> Rounding:
    """The manner in which most members, computed from the figures exactly as printed, give what is printed."""
    values = [member for member in members if not member.bound]
    if len(values) < _EVIDENCE:
        return Rounding.NEAREST
    hits = {manner: [member for member in values if member.agrees_exactly(manner)] for manner in Rounding}
    nearest = hits[Rounding.NEAREST]
    best = max((Rounding.DOWN, Rounding.UP), key=lambda manner: len(hits[manner]))
    evidence = [member for member in hits[best] if member not in nearest]
    return best if len(hits[best]) > len(nearest) and len(evidence) >= _EVIDENCE else Rounding.NEAREST


def hedged_manners(member: Comparison) -> tuple[Rounding, ...]:
    """What "about" lets an author do: round either way, by less than a unit of the last digit."""
    return (Rounding.DOWN, Rounding.UP) if member.assertion.relation == "about" else ()
