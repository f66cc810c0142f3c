# SPDX-License-Identifier: Apache-2.0
"""Read a published file: its shape, then whether every name, label and cell that it uses is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from storqual.audit.expression import Reference
from storqual.audit.figures import Figures
from storqual.audit.published import Assertion, Figure, Published
from storqual.model.shape import did_you_mean, raise_all, shaped
from storqual.model.yaml_file import Document, Place, parse_yaml, read_yaml
from storqual_core.errors import BadInputError

__all__ = ["load_published", "read_published"]

_WAYS = ("computed", "same", "falling", "ranking", "linear", "course", "not_checkable")


def load_published(path: Path) -> Published:
    """Read and check one file. Raises BadInputError with every problem, as `file:line: found ..., expected ...`."""
    return _checked(read_yaml(path))


def read_published(text: str, *, name: str) -> Published:
    """The same from text; `name` is how messages call it."""
    return _checked(parse_yaml(text, name=name))


def _checked(document: Document) -> Published:
    published, problems = shaped(Published, document)
    if published is not None:
        problems += list(_problems(published, document))
    raise_all(problems)
    if published is None:
        raise BadInputError([f"{document.name}: found nothing, expected the figures of a report"])
    return published


def _problems(published: Published, document: Document) -> Iterator[str]:
    for part, named in (
        ("figures", published.figures),
        ("charts", published.charts),
        ("assertions", published.assertions),
    ):
        yield from _doubled(part, [item.id for item in named], document)
    figures = Figures(published.figures)
    for number, figure in enumerate(published.figures):
        yield from _figure_problems(figure, published, ("figures", number), document)
    for number, assertion in enumerate(published.assertions):
        place: Place = ("assertions", number)
        ways = [way for way in _WAYS if getattr(assertion, way) is not None]
        if len(ways) != 1:
            found = " and ".join(ways) or "no way to check it"
            yield document.problem(place, found, f"one of {', '.join(_WAYS)}")
            continue
        yield from _assertion_problems(assertion, figures, place, document)


def _doubled(part: str, names: Iterable[str], document: Document) -> Iterator[str]:
    counts = Counter(names)
    for number, name in enumerate(names):
        if counts[name] > 1:
            yield document.problem((part, number, "id"), f"the id {name!r} {counts[name]} times", "each id once")


def _figure_problems(figure: Figure, published: Published, place: Place, document: Document) -> Iterator[str]:
    if (figure.value is None) == (figure.values is None):
        yield document.problem(place, f"figure {figure.id!r} without one of value and values", "one of them")
    if (figure.values is None) != (figure.at is None):
        yield document.problem(place, f"figure {figure.id!r} with half of values and at", "both, or neither")
    elif figure.values is not None and figure.at is not None and len(figure.values) != len(figure.at):
        found = f"{len(figure.values)} values at {len(figure.at)} labels"
        yield document.problem((*place, "values"), found, "one value per label")
    if figure.configuration is not None and figure.configuration not in published.configurations:
        known = list(published.configurations)
        found = f"the configuration {figure.configuration!r}"
        near = did_you_mean(figure.configuration, known)
        yield document.problem((*place, "configuration"), found, f"one of {', '.join(known)}{near}")


def _assertion_problems(assertion: Assertion, figures: Figures, place: Place, document: Document) -> Iterator[str]:
    states = assertion.computed is not None or assertion.same is not None
    if states and assertion.stated is None:
        yield document.problem(place, "nothing stated", "`stated`, a number or a figure")
    labels: tuple[str, ...] = ()
    if isinstance(assertion.stated, Reference):
        try:
            labels = figures.labels(assertion.stated)
            if not labels:
                figures.entry(assertion.stated)
        except KeyError as problem:
            yield document.problem((*place, "stated"), str(problem.args[0]), "a figure of this file")
            return
    for reference in _references(assertion):
        for label in labels or (None,):
            try:
                if reference.cell is None and label is None and figures.labels(reference):
                    yield document.problem(place, f"the whole series {reference}", "one of its cells")
                else:
                    figures.entry(reference, label)
            except KeyError as problem:
                yield document.problem(place, str(problem.args[0]), "a figure of this file")
    yield from _linear_problems(assertion, figures, place, document)


def _references(assertion: Assertion) -> Iterator[Reference]:
    """Every figure that the assertion reads as one value (or one per label)."""
    expressions = [assertion.computed, assertion.same, *(assertion.falling or ())]
    if assertion.ranking is not None:
        expressions += [*assertion.ranking.there, *assertion.ranking.here]
    if assertion.linear is not None:
        expressions += [assertion.linear.total, assertion.linear.single]
    if assertion.course is not None:
        expressions += [Reference(assertion.course.series.figure, label) for label in assertion.course.over]
    for expression in expressions:
        if expression is not None:
            yield from (leaf for leaf in expression.leaves() if isinstance(leaf, Reference))


def _linear_problems(assertion: Assertion, figures: Figures, place: Place, document: Document) -> Iterator[str]:
    if assertion.ranking is not None and len(assertion.ranking.there) != len(assertion.ranking.here):
        yield document.problem((*place, "ranking"), "two lists of different length", "the same things in both")
    linear = assertion.linear
    if linear is None:
        return
    whole = (linear.total, linear.single, linear.units)
    if (linear.series is None) == any(part is None for part in whole):
        yield document.problem((*place, "linear"), "half of a scaling", "series, or total, single and units")
    elif linear.series is not None:
        try:
            labels = figures.labels(linear.series)
        except KeyError as problem:
            yield document.problem((*place, "linear"), str(problem.args[0]), "a figure of this file")
            return
        if len(labels) < 2 or not all(label.isdigit() and int(label) for label in labels):
            yield document.problem((*place, "linear"), f"{linear.series}", "a series at whole numbers of units")
