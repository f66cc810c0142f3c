# SPDX-License-Identifier: Apache-2.0
"""The one changed number that would explain an inconsistency: nearest in digits, and at odds with nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from storqual.audit.comparison import Comparison
from storqual.inputs.expression import Reference
from storqual.inputs.printed import Printed

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
    for reference in _inputs(wrong):
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
    """Whether it keeps the decimals and does not begin with a zero."""
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
