# SPDX-License-Identifier: Apache-2.0
"""A stated number beside what its report's figures give: agreement, senses of MB, KB and CPU, the likely misprint."""

import enum
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any

from storqual.base.formulas import Interval
from storqual.inputs.expression import Convention, Expression, Reference, parse_decimal
from storqual.inputs.figures import Figures, PrintedScope, on_page, shown_by
from storqual.inputs.published import (
    Assertion,
    Printed,
    Rounding,
    as_number,
    decimal_text,
    finer,
    prints_as,
    range_text,
)


class Status(enum.StrEnum):
    """How an assertion stands to the figures of its own report."""

    CONSISTENT = "consistent"
    ROUNDING = "rounding"
    INCONSISTENT = "inconsistent"
    NOT_CHECKABLE = "not_checkable"


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check, before it is told of an assertion."""

    status: Status
    stated: float | str | None
    computed: float | str | None
    explanation: str


@dataclass(frozen=True)
class AuditedAssertion:
    """`stated` and `computed` are numbers, texts, or None where nothing can be compared.

    The fields are the keys of `storqual audit --json`, which are other people's and do not change.
    """

    id: str
    source: str
    page: int | str | None
    text: str
    stated: float | str | None
    computed: float | str | None
    unit: str
    status: Status
    explanation: str


def audit_document(assertions: Iterable[AuditedAssertion]) -> dict[str, Any]:
    return {"claims": [asdict(assertion) for assertion in assertions]}


_BOUNDS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {
    "more_than": lambda computed, stated: computed > stated,
    "less_than": lambda computed, stated: computed < stated,
    "at_least": lambda computed, stated: computed >= stated,
    "at_most": lambda computed, stated: computed <= stated,
}


@dataclass(frozen=True)
class StatedNumber:
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
        return self._values(None, instead or {}).low

    def values(self, manner: Rounding, instead: Mapping[Reference, Printed] | None = None) -> Interval:
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
        return list(dict.fromkeys(self.expression.leaves()))

    def using(self, conventions: Mapping[str, Fraction]) -> "StatedNumber":
        return replace(self, conventions=conventions)

    def admitting(self, manners: Sequence[Rounding]) -> "StatedNumber":
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


def comparisons(assertion: Assertion, figures: Figures) -> Iterator[StatedNumber]:
    expression = assertion.computed or assertion.same
    if expression is None or assertion.stated is None:
        return
    copy = assertion.same is not None
    if isinstance(assertion.stated, Printed):
        yield StatedNumber(assertion, None, assertion.stated, expression, figures, copy)
        return
    for label in figures.labels(assertion.stated) or (None,):
        stated = figures.entry(assertion.stated, label)
        if isinstance(stated, Printed):
            yield StatedNumber(assertion, label, stated, expression, figures, copy)


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
    """The senses that fit best. `fits` of `members` agree; `alternatives` are senses that fit as well, in words."""

    values: Mapping[str, Fraction]
    words: str
    fits: int
    members: int
    next_best: int
    alternatives: tuple[str, ...] = ()

    def sentence(self) -> str:
        if not self.words:
            return ""
        if not self.fits:
            return f"No sense of its units makes it agree (here with {self.words})."
        if self.alternatives:
            also = ", or ".join(self.alternatives)
            return f"With {self.words} {self.fits} of {self.members} agree; so they do with {also}."
        return (
            f"With {self.words} {self.fits} of {self.members} agree, with any other reading at most {self.next_best}."
        )


def infer_conventions(members: Sequence[StatedNumber]) -> Sense:
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
    best = max(tried, key=lambda reading: reading[:2])
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


def infer_manner(members: Sequence[StatedNumber]) -> Rounding:
    """The manner in which most members, computed from the figures exactly as printed, give what is printed."""
    values = [member for member in members if not member.bound]
    if len(values) < _EVIDENCE:
        return Rounding.NEAREST
    hits = {manner: [member for member in values if member.agrees_exactly(manner)] for manner in Rounding}
    nearest = hits[Rounding.NEAREST]
    best = max((Rounding.DOWN, Rounding.UP), key=lambda manner: len(hits[manner]))
    evidence = [member for member in hits[best] if member not in nearest]
    return best if len(hits[best]) > len(nearest) and len(evidence) >= _EVIDENCE else Rounding.NEAREST


def hedged_manners(member: StatedNumber) -> tuple[Rounding, ...]:
    """What "about" lets an author do: round either way, by less than a unit of the last digit."""
    return (Rounding.DOWN, Rounding.UP) if member.assertion.relation == "about" else ()


_MOST_MIXED_UP = 2
_MOST_INPUTS = 12
"""Each is tried with every other figure; among more, some pair would fit by chance."""

_RELATIONS = {
    "more_than": "more than",
    "less_than": "less than",
    "at_least": "at least",
    "at_most": "at most",
    "just_over": "just over",
}


def explain(
    comparison: StatedNumber,
    sense: Sense,
    status: Status,
    misprint: "Misprint | None" = None,
    mixed_up: Sequence[tuple[Reference, Reference]] = (),
) -> CheckResult:
    """The answer for `status`, with everything that a reader needs to check it by hand."""
    point, step = comparison.point(), comparison.stated.step
    sentences = [_copied(comparison) if comparison.copy else _arithmetic(comparison)]
    sentences.append(sense.sentence())
    if status is Status.ROUNDING:
        sentences.append(_rounded(comparison))
    if status is Status.INCONSISTENT:
        sentences.append(_refuted(comparison))
        sentences += _causes(comparison, misprint, mixed_up)
    return CheckResult(
        status,
        as_number(comparison.stated.value),
        as_number(point, step),
        " ".join(sentence for sentence in sentences if sentence),
    )


def _arithmetic(comparison: StatedNumber) -> str:
    shown = comparison.expression.show(shown_by(comparison.figures, comparison.label))
    result = finer(comparison.point(), comparison.stated.step / 10)
    return f"{shown} = {result}." if shown != result else f"It is {result}."


def _copied(comparison: StatedNumber) -> str:
    reference = _source(comparison)
    entry = comparison.figures.number(reference, comparison.label)
    figure = comparison.figures.figure(reference)
    return f"{on_page(figure.page)[0].upper()}{on_page(figure.page)[1:]} prints {entry.text} ({figure.what})."


def _source(comparison: StatedNumber) -> Reference:
    return next(leaf for leaf in comparison.leaves() if isinstance(leaf, Reference))


def _rounded(comparison: StatedNumber) -> str:
    stated = comparison.stated.text
    if comparison.bound:
        return f"Within the printed digits {_RELATIONS[comparison.assertion.relation]} {stated} is possible."
    point = Interval.exactly(comparison.point())
    manners = [manner for manner in comparison.manners if comparison.agrees_exactly(manner)]
    if manners and manners[0] is not Rounding.NEAREST:
        return f"{stated} is that {manners[0].value}."
    values = comparison.values(Rounding.NEAREST)
    if prints_as(values, comparison.stated, Rounding.NEAREST) and values != point:
        return f"The printed digits leave {range_text(values, comparison.stated.step)}, so {stated} is rounding."
    return f"{stated} is within the rounding that the report shows."


def _refuted(comparison: StatedNumber) -> str:
    stated, step = comparison.stated, comparison.stated.step
    if comparison.bound:
        return f"That is not {_RELATIONS[comparison.assertion.relation]} {stated.text}."
    if comparison.copy:
        return f"Here it is {stated.text}: no rounding makes one of the other."
    if comparison.assertion.relation == "just_over":
        return f"That is not just over {stated.text}; consistent would be {decimal_text(comparison.point(), step)}."
    values = comparison.values(Rounding.NEAREST)
    ends = range_text(values, step)
    spread = f" (the printed digits leave {ends})" if len(set(ends.split(" to "))) > 1 else ""
    return f"Not {stated.text}{spread}; consistent would be {decimal_text(comparison.point(), step)}."


def _causes(
    comparison: StatedNumber, misprint: "Misprint | None", mixed_up: Sequence[tuple[Reference, Reference]]
) -> list[str]:
    sentences = []
    figures = comparison.figures
    if misprint is not None and misprint.reference is None:
        sentences.append(f"Most likely a misprint: {misprint.printed.text} should read {misprint.intended.text}.")
    elif misprint is not None and misprint.reference is not None:
        what = figures.figure(misprint.reference).what
        sentences.append(
            f"Most likely a misprint: {misprint.printed.text} should read {misprint.intended.text} ({what})."
        )
    if 0 < len(mixed_up) <= _MOST_MIXED_UP:
        for reference, other in mixed_up:
            here, there = (figures.number(side, comparison.label).text for side in (reference, other))
            figure = figures.figure(other)
            sentences.append(
                f"{comparison.stated.text} is what {there} ({figure.what}, {on_page(figure.page)}) gives"
                f" instead of {here}."
            )
    if comparison.copy:
        sentences += _same_digits_elsewhere(comparison)
    return sentences


def _same_digits_elsewhere(comparison: StatedNumber) -> list[str]:
    """Where else the report prints the digits that do not belong here."""
    unit = comparison.figures.figure(_source(comparison)).unit
    stated = comparison.assertion.stated
    matches = [
        (reference, figure)
        for reference, number, figure in comparison.figures.numbers()
        if number.value == comparison.stated.value
        and figure.unit == unit
        and not (isinstance(stated, Reference) and stated.figure == reference.figure)
    ]
    if len(matches) != 1:
        return []
    reference, figure = matches[0]
    at_cell = f" at {reference.cell}" if reference.cell else ""
    return [f"{comparison.stated.text} is printed for {figure.what}{at_cell} ({on_page(figure.page)})."]


_MOST_EDITS = 2
_LONGEST_FOR_TWO = 4
_MOST_PERCENT = 100


@dataclass(frozen=True)
class Misprint:
    """`printed` should read `intended`. `reference` is the input that holds it; None is the stated figure itself."""

    reference: Reference | None
    printed: Printed
    intended: Printed
    harm: int
    """How many other assertions the change would break, less how many it would mend."""


def most_likely_misprint(wrong: StatedNumber, numbers: Sequence[StatedNumber]) -> Misprint | None:
    """The best single change of at most two digits that makes `wrong` consistent; None when there is none.

    Preferred are changes that break nothing else, then fewer digits, then the derived figure before its inputs.
    """
    if wrong.copy or wrong.bound or wrong.assertion.relation == "just_over":
        return None
    for edits in range(1, _MOST_EDITS + 1):
        misprints = [misprint for misprint in _with_edits(wrong, edits, numbers) if misprint.harm <= 0]
        if misprints:
            return min(misprints, key=lambda best: (best.harm, best.reference is not None, _miss(wrong, best)))
    return None


def mixed_up_with(wrong: StatedNumber) -> list[tuple[Reference, Reference]]:
    """Pairs (input, other figure of the report): with the other in its place, the stated figure comes out."""
    pairs: list[tuple[Reference, Reference]] = []
    if wrong.copy or wrong.bound or wrong.assertion.relation == "just_over":
        return pairs
    inputs = _inputs(wrong)
    for reference in inputs if len(inputs) <= _MOST_INPUTS else ():
        printed, unit = wrong.figures.number(reference, wrong.label), wrong.figures.figure(reference).unit
        for other, number, figure in wrong.figures.numbers():
            alike = figure.unit == unit and number.value != printed.value and not number.exact
            if alike and wrong.agrees(instead={reference: number}):
                pairs.append((reference, other))
    return pairs


def _with_edits(wrong: StatedNumber, edits: int, numbers: Sequence[StatedNumber]) -> Iterator[Misprint]:
    for text in _variants(wrong.stated.text, edits):
        intended = Printed.parse(text, exact=wrong.stated.exact)
        if wrong.agrees(intended):
            yield Misprint(None, wrong.stated, intended, _harm_of_statement(wrong, intended, numbers))
    for reference in _inputs(wrong):
        printed = wrong.figures.number(reference, wrong.label)
        for text in _variants(printed.text, edits):
            misprint = _input(wrong, reference, printed, text, numbers)
            if misprint is not None:
                yield misprint


def _inputs(comparison: StatedNumber) -> list[Reference]:
    return [leaf for leaf in comparison.leaves() if isinstance(leaf, Reference)]


def _input(
    wrong: StatedNumber, reference: Reference, printed: Printed, text: str, numbers: Sequence[StatedNumber]
) -> Misprint | None:
    intended = Printed.parse(text, exact=printed.exact)
    percentage = wrong.figures.figure(reference).unit.startswith("%")
    if (percentage and intended.value > _MOST_PERCENT) or not wrong.agrees(instead={reference: intended}):
        return None
    position = _place(wrong, reference)
    harm = sum(_harm(other, position, intended) for other in numbers if other is not wrong)
    return Misprint(reference, printed, intended, harm)


def _place(comparison: StatedNumber, reference: Reference) -> Reference:
    labelled = comparison.label is not None and comparison.figures.labels(reference)
    return Reference(reference.figure, comparison.label) if labelled else reference


def _harm_of_statement(wrong: StatedNumber, intended: Printed, numbers: Sequence[StatedNumber]) -> int:
    """The same for a change of the stated figure, where the report uses that figure elsewhere."""
    stated = wrong.assertion.stated
    if not isinstance(stated, Reference):
        return 0
    position = _place(wrong, stated)
    return sum(_harm(other, position, intended) for other in numbers if other is not wrong)


def _harm(other: StatedNumber, position: Reference, intended: Printed) -> int:
    """1 when the change breaks `other`, -1 when it mends it, else 0."""
    same = [reference for reference in _inputs(other) if _place(other, reference) == position]
    stated = other.assertion.stated
    states = isinstance(stated, Reference) and _place(other, stated) == position
    if not same and not states:
        return 0
    after = other.agrees(intended if states else other.stated, dict.fromkeys(same, intended))
    return int(other.agrees()) - int(after)


def _miss(wrong: StatedNumber, misprint: Misprint) -> Fraction:
    """How far stated and computed still are apart when the misprint is mended."""
    if misprint.reference is None:
        return abs(misprint.intended.value - wrong.point())
    return abs(wrong.point({misprint.reference: misprint.intended}) - wrong.stated.value)


def _variants(text: str, edits: int) -> list[str]:
    """The numbers that are exactly so many wrong, missing, added or swapped digits away from `text`.

    None when that would leave no digit of it: another number is no misprint.
    """
    digits = sum(character.isdigit() for character in text)
    if edits > 1 and (len(text) > _LONGEST_FOR_TWO or edits >= digits):
        return []
    seen, ring = {text}, [text]
    for _ in range(edits):
        ring = list(dict.fromkeys(variant for word in ring for variant in _one_edit(word) if variant not in seen))
        seen.update(ring)
    return [variant for variant in ring if _plausible(variant, text)]


def _plausible(variant: str, text: str) -> bool:
    """Whether it is a number of a report, keeps the decimals and does not begin with a zero."""
    try:
        parse_decimal(variant)
    except ValueError:
        return False
    whole, _, decimals = variant.partition(".")
    same_decimals = len(decimals) == len(text.partition(".")[2])
    return same_decimals and bool(whole) and (len(whole) == 1 or whole[0] != "0")


def _one_edit(text: str) -> Iterator[str]:
    digits = [index for index, character in enumerate(text) if character.isdigit()]
    for index in digits:
        for digit in "0123456789":
            yield text[:index] + digit + text[index + 1 :]
            yield text[:index] + digit + text[index:]
        yield text[:index] + text[index + 1 :]
        if index + 1 in digits:
            yield text[:index] + text[index + 1] + text[index] + text[index + 2 :]
    for digit in "0123456789":
        yield text + digit
