# SPDX-License-Identifier: Apache-2.0
"""Why a stated figure is consistent, rounded or inconsistent: plain sentences with the arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from storqual.audit.claim import Status
from storqual.audit.comparison import Comparison
from storqual.audit.conventions import Sense
from storqual.audit.misprint import Misprint
from storqual.audit.statements import Answer
from storqual.base.formulas import Interval
from storqual.inputs.expression import Reference
from storqual.inputs.figures import on_page, shown_by
from storqual.inputs.printed import Rounding, as_number, decimal_text, finer, prints_as, range_text

_MOST_MIXED_UP = 2

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
