# SPDX-License-Identifier: Apache-2.0
"""The figures of one report by name, and the scope in which its expressions are computed."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from storqual.base.formulas import Interval
from storqual.inputs.expression import CONVENTION_NAMES, Expression, Reference
from storqual.inputs.published import Assertion, Figure, Page, Printed, Published, Rounding
from storqual.inputs.shape import raise_all, shaped, unknown
from storqual.inputs.yaml_file import Document, Keys, read_yaml
from storqual_core.kit.errors import BadInputError


class Figures:
    """Look-up of figures and their cells. A name that is not there raises KeyError with a sentence."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        self._figures = {figure.id: figure for figure in figures}

    def figure(self, reference: Reference) -> Figure:
        figure = self._figures.get(reference.figure)
        if figure is None:
            raise KeyError(f"no figure {reference.figure!r}")
        return figure

    def series(self, reference: Reference) -> Mapping[str | None, Printed | str]:
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
        entry = self.entry(reference, label)
        if isinstance(entry, str):
            raise KeyError(f"{reference} is the name {entry!r} and no number")
        return entry

    def numbers(self) -> Iterator[tuple[Reference, Printed, Figure]]:
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
        return self._before(self.instead.get(reference) or self.figures.number(reference, self.label))

    def cells(self, reference: Reference) -> list[Interval]:
        """See expression.Scope. Names count, and have no value."""
        entries = self.figures.series(reference).values()
        return [self._before(entry) if isinstance(entry, Printed) else Interval.exactly(0) for entry in entries]

    def convention(self, name: str) -> Fraction:
        return self.conventions[name]

    def _before(self, printed: Printed) -> Interval:
        return Interval.exactly(printed.value) if self.rounding is None else printed.before(self.rounding)


_UNITS = re.compile("[1-9][0-9]{0,8}")
_WAYS = ("computed", "same", "falling", "ranking", "linear", "course", "not_checkable")


def load_published(path: Path) -> Published:
    """Read and check one file. Raises BadInputError with every problem, as `file:line: found ..., expected ...`."""
    document = read_yaml(path)
    published, problems = shaped(Published, document)
    if published is not None:
        problems += list(_problems(published, document))
    raise_all(problems)
    if published is None:
        raise BadInputError([f"{document.name}: this file holds no figures of a report"])
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
        keys: Keys = ("assertions", number)
        ways = [way for way in _WAYS if getattr(assertion, way) is not None]
        if len(ways) != 1:
            problem = f"has {' and '.join(ways)}" if ways else "says no way to check it"
            yield document.about(keys, f"this assertion {problem}; it needs exactly one of {', '.join(_WAYS)}")
            continue
        yield from _assertion_problems(assertion, figures, keys, document)


def _doubled(part: str, names: Iterable[str], document: Document) -> Iterator[str]:
    counts = Counter(names)
    for number, name in enumerate(names):
        if counts[name] > 1:
            yield document.about(
                (part, number, "id"), f"the id {name!r} is used {counts[name]} times; it must be unique"
            )


def _figure_problems(figure: Figure, published: Published, keys: Keys, document: Document) -> Iterator[str]:
    if (figure.value is None) == (figure.values is None):
        yield document.about(keys, f"figure {figure.id!r} needs exactly one of `value` and `values`")
    if (figure.values is None) != (figure.at is None):
        yield document.about(keys, f"figure {figure.id!r} needs both `values` and `at`, or neither")
    elif figure.values is not None and figure.at is not None and len(figure.values) != len(figure.at):
        problem = f"figure {figure.id!r} has {len(figure.values)} values and {len(figure.at)} labels"
        yield document.about((*keys, "values"), f"{problem}; it needs one value for each label")
    if figure.configuration is not None and figure.configuration not in published.configurations:
        sentence = unknown("configuration", figure.configuration, published.configurations)
        yield document.about((*keys, "configuration"), sentence)


def _assertion_problems(assertion: Assertion, figures: Figures, keys: Keys, document: Document) -> Iterator[str]:
    states = assertion.computed is not None or assertion.same is not None
    if states and assertion.stated is None:
        yield document.about(keys, "this assertion needs `stated`: a number or a figure")
    labels: tuple[str, ...] = ()
    names = False
    if isinstance(assertion.stated, Reference):
        try:
            labels = figures.labels(assertion.stated)
            names = isinstance(figures.entry(assertion.stated, *labels[:1]), str)
        except KeyError as problem:
            yield document.about((*keys, "stated"), f"{problem.args[0]} in this file")
            return
    for reference in _references(assertion):
        for label in labels or (None,):
            try:
                if reference.cell is None and label is None and figures.labels(reference):
                    yield document.about(keys, f"{reference} is a whole series; name one of its cells")
                elif reference is not assertion.same:
                    figures.number(reference, label)
                elif isinstance(figures.entry(reference, label), str) is not names:
                    yield document.about((*keys, "same"), "one of the two is a name, and the other is a number")
            except KeyError as problem:
                yield document.about(keys, f"{problem.args[0]} in this file")
    yield from _linear_problems(assertion, figures, keys, document)
    yield from _too_large(assertion, figures, labels, keys, document)


def _too_large(
    assertion: Assertion, figures: Figures, labels: Sequence[str], keys: Keys, document: Document
) -> Iterator[str]:
    """Expressions whose result no figure of a report can be; what else is wrong with them is told elsewhere."""
    linear = assertion.linear
    parts: list[tuple[Keys, Expression | None]] = [(("computed",), assertion.computed)]
    if linear is not None:
        parts += [(("linear", "total"), linear.total), (("linear", "single"), linear.single)]
    for place, expression in parts:
        if expression is None:
            continue
        for label in labels or (None,):
            scope = PrintedScope(figures, label, conventions=dict.fromkeys(CONVENTION_NAMES, Fraction(1)))
            try:
                expression.evaluate(scope)
            except OverflowError as problem:
                yield document.about((*keys, *place), f"this expression is too large; it gives {problem}")
                break
            except (KeyError, ZeroDivisionError):
                continue


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


def _linear_problems(assertion: Assertion, figures: Figures, keys: Keys, document: Document) -> Iterator[str]:
    if assertion.ranking is not None and len(assertion.ranking.there) != len(assertion.ranking.here):
        yield document.about((*keys, "ranking"), "the two lists differ in length; they rank the same things")
    linear = assertion.linear
    if linear is None:
        return
    whole = (linear.total, linear.single, linear.units)
    if (linear.series is None) == any(part is None for part in whole):
        yield document.about((*keys, "linear"), "`linear` needs either series, or total, single and units")
    elif linear.series is not None:
        try:
            labels = figures.labels(linear.series)
        except KeyError as problem:
            yield document.about((*keys, "linear"), f"{problem.args[0]} in this file")
            return
        if len(labels) < 2 or not all(_UNITS.fullmatch(label) for label in labels):
            yield document.about((*keys, "linear"), f"the labels of {linear.series} are not whole numbers of units")


def on_page(page: Page) -> str:
    """`p. 13`, or the section's name in quotes."""
    return f"p. {page}" if isinstance(page, int) else f'"{page}"'


def shown_by(figures: Figures, label: str | None) -> Callable[[Reference], str]:
    def shown(reference: Reference) -> str:
        entry = figures.entry(reference, label)
        return entry.text if isinstance(entry, Printed) else entry

    return shown
