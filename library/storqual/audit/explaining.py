# SPDX-License-Identifier: Apache-2.0
"""Why a stated figure is consistent, rounded or inconsistent, and the one misprint that would explain it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from storqual.audit.claim import Status
from storqual.audit.comparison import Comparison, Sense
from storqual.audit.statements import Answer
from storqual.base.formulas import Interval
from storqual.inputs.expression import Reference, parse_decimal
from storqual.inputs.figures import on_page, shown_by
from storqual.inputs.published import Printed, Rounding, as_number, decimal_text, finer, prints_as, range_text

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
    comparison: Comparison,
    sense: Sense,
    status: Status,
    misprint: Misprint | None = None,
    mixed_up: Sequence[tuple[Reference, Reference]] = (),
) -> Answer:
    """The answer for `status`, with everything that a reader needs to check it by hand."""
    point, step = comparison.point(), comparison.stated.step
    sentences = [_copied(comparison) if comparison.copy else _arithmetic(comparison)]
    sentences.append(sense.sentence())
    if status is Status.ROUNDING:
        sentences.append(_rounded(comparison))
    if status is Status.INCONSISTENT:
        sentences.append(_refuted(comparison))
        sentences += _causes(comparison, misprint, mixed_up)
    return Answer(
        status,
        as_number(comparison.stated.value),
        as_number(point, step),
        " ".join(sentence for sentence in sentences if sentence),
    )


def _arithmetic(comparison: Comparison) -> str:
    shown = comparison.expression.show(shown_by(comparison.figures, comparison.label))
    result = finer(comparison.point(), comparison.stated.step / 10)
    return f"{shown} = {result}." if shown != result else f"It is {result}."


def _copied(comparison: Comparison) -> str:
    reference = _source(comparison)
    entry = comparison.figures.number(reference, comparison.label)
    figure = comparison.figures.figure(reference)
    return f"{on_page(figure.page)[0].upper()}{on_page(figure.page)[1:]} prints {entry.text} ({figure.what})."


def _source(comparison: Comparison) -> Reference:
    return next(leaf for leaf in comparison.leaves() if isinstance(leaf, Reference))


def _rounded(comparison: Comparison) -> str:
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


def _refuted(comparison: Comparison) -> str:
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
    comparison: Comparison, misprint: Misprint | None, mixed_up: Sequence[tuple[Reference, Reference]]
) -> list[str]:
    sentences = []
    figures = comparison.figures
    if misprint is not None and misprint.reference is None:
        sentences.append(f"Most likely a misprint: {misprint.printed.text} should read {misprint.meant.text}.")
    elif misprint is not None and misprint.reference is not None:
        what = figures.figure(misprint.reference).what
        sentences.append(
            f"Most likely a misprint: {misprint.printed.text} should read {misprint.meant.text} ({what})."
        )
    if 0 < len(mixed_up) <= _MOST_MIXED_UP:
        for reference, other in mixed_up:
            here, there = (figures.number(one, comparison.label).text for one in (reference, other))
            figure = figures.figure(other)
            sentences.append(
                f"{comparison.stated.text} is what {there} ({figure.what}, {on_page(figure.page)}) gives"
                f" instead of {here}."
            )
    if comparison.copy:
        sentences += _same_digits_elsewhere(comparison)
    return sentences


def _same_digits_elsewhere(comparison: Comparison) -> list[str]:
    """Where else the report prints the digits that do not belong here."""
    unit = comparison.figures.figure(_source(comparison)).unit
    own = comparison.assertion.stated
    found = [
        (reference, figure)
        for reference, number, figure in comparison.figures.numbers()
        if number.value == comparison.stated.value
        and figure.unit == unit
        and not (isinstance(own, Reference) and own.figure == reference.figure)
    ]
    if len(found) != 1:
        return []
    reference, figure = found[0]
    place = f" at {reference.cell}" if reference.cell else ""
    return [f"{comparison.stated.text} is printed for {figure.what}{place} ({on_page(figure.page)})."]


_MOST_EDITS = 2
_LONGEST_FOR_TWO = 4
_MOST_PERCENT = 100


@dataclass(frozen=True)
class Misprint:
    """`printed` should read `meant`. `reference` is the input that holds it; None is the stated figure itself."""

    reference: Reference | None
    printed: Printed
    meant: Printed
    edits: int
    harm: int
    """How many other assertions the change would break, less how many it would mend."""


def most_likely_misprint(wrong: Comparison, others: Sequence[Comparison]) -> Misprint | None:
    """The best single change of at most two digits that makes `wrong` consistent; None when there is none.

    Preferred are changes that break nothing else, then fewer digits, then the derived figure before its inputs.
    """
    if wrong.copy or wrong.bound or wrong.assertion.relation == "just_over":
        return None
    for edits in range(1, _MOST_EDITS + 1):
        found = [misprint for misprint in _with_edits(wrong, edits, others) if misprint.harm <= 0]
        if found:
            return min(found, key=lambda one: (one.harm, one.reference is not None, _miss(wrong, one)))
    return None


def mixed_up_with(wrong: Comparison) -> list[tuple[Reference, Reference]]:
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


def _with_edits(wrong: Comparison, edits: int, others: Sequence[Comparison]) -> Iterator[Misprint]:
    for text in _variants(wrong.stated.text, edits):
        meant = Printed.parse(text, exact=wrong.stated.exact)
        if wrong.agrees(meant):
            yield Misprint(None, wrong.stated, meant, edits, _harm_of_statement(wrong, meant, others))
    for reference in _inputs(wrong):
        printed = wrong.figures.number(reference, wrong.label)
        for text in _variants(printed.text, edits):
            misprint = _input(wrong, reference, printed, text, edits, others)
            if misprint is not None:
                yield misprint


def _inputs(comparison: Comparison) -> list[Reference]:
    return [leaf for leaf in comparison.leaves() if isinstance(leaf, Reference)]


def _input(
    wrong: Comparison, reference: Reference, printed: Printed, text: str, edits: int, others: Sequence[Comparison]
) -> Misprint | None:
    meant = Printed.parse(text, exact=printed.exact)
    percentage = wrong.figures.figure(reference).unit.startswith("%")
    if (percentage and meant.value > _MOST_PERCENT) or not wrong.agrees(instead={reference: meant}):
        return None
    place = _place(wrong, reference)
    harm = sum(_harm(other, place, meant) for other in others if other is not wrong)
    return Misprint(reference, printed, meant, edits, harm)


def _place(comparison: Comparison, reference: Reference) -> Reference:
    """The cell that a reference means in this comparison."""
    labelled = comparison.label is not None and comparison.figures.labels(reference)
    return Reference(reference.figure, comparison.label) if labelled else reference


def _harm_of_statement(wrong: Comparison, meant: Printed, others: Sequence[Comparison]) -> int:
    """The same for a change of the stated figure, where the report uses that figure elsewhere."""
    stated = wrong.assertion.stated
    if not isinstance(stated, Reference):
        return 0
    place = _place(wrong, stated)
    return sum(_harm(other, place, meant) for other in others if other is not wrong)


def _harm(other: Comparison, place: Reference, meant: Printed) -> int:
    """1 when the change breaks `other`, -1 when it mends it, else 0."""
    same = [reference for reference in _inputs(other) if _place(other, reference) == place]
    own = other.assertion.stated
    states = isinstance(own, Reference) and _place(other, own) == place
    if not same and not states:
        return 0
    after = other.agrees(meant if states else other.stated, dict.fromkeys(same, meant))
    return int(other.agrees()) - int(after)


def _miss(wrong: Comparison, misprint: Misprint) -> Fraction:
    """How far stated and computed still are apart when the misprint is mended."""
    if misprint.reference is None:
        return abs(misprint.meant.value - wrong.point())
    return abs(wrong.point({misprint.reference: misprint.meant}) - wrong.stated.value)


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
    places = [place for place, character in enumerate(text) if character.isdigit()]
    for place in places:
        for digit in "0123456789":
            yield text[:place] + digit + text[place + 1 :]
            yield text[:place] + digit + text[place:]
        yield text[:place] + text[place + 1 :]
        if place + 1 in places:
            yield text[:place] + text[place + 1] + text[place] + text[place + 2 :]
    for digit in "0123456789":
        yield text + digit
