# SPDX-License-Identifier: Apache-2.0
"""Figures and assertions of a published report, as `suites/published/*.yml` holds them; read strictly.

A figure stands as it is on paper: its digits say how far from the truth it may be.
"""

import enum
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainValidator

from storqual.base.formulas import Interval
from storqual.inputs.expression import Expression, Reference, parse_decimal, parse_expression, parse_reference
from storqual.inputs.fields import ManyOf, Percent, Text
from storqual.inputs.shape import Shape
from storqual.inputs.yaml_file import WrittenFloat, WrittenInt


class Rounding(enum.Enum):
    """How an author came from a value to its printed digits."""

    NEAREST = "rounded to nearest"
    DOWN = "cut off"
    UP = "rounded up"


@dataclass(frozen=True)
class Printed:
    """A number as printed. `step` is one unit of its last digit; `exact` numbers are counts and definitions."""

    text: str
    value: Fraction
    step: Fraction
    exact: bool = False

    @classmethod
    def parse(cls, text: str, *, exact: bool = False) -> "Printed":
        """Read `69104`, `0.466`, `3.20e8`. Raises ValueError for anything that is no number of a report."""
        number = parse_decimal(text)
        exponent = number.as_tuple().exponent
        return cls(text, Fraction(number), Fraction(10) ** int(exponent), exact)

    def before(self, rounding: Rounding) -> Interval:
        if self.exact:
            return Interval.exactly(self.value)
        if rounding is Rounding.NEAREST:
            return Interval.around(self.value, self.step / 2)
        towards_zero = rounding is Rounding.DOWN
        outward = self.step if self.value >= 0 else -self.step
        other = self.value + outward if towards_zero else self.value - outward
        return Interval(min(self.value, other), max(self.value, other))


def prints_as(values: Interval, printed: Printed, rounding: Rounding) -> bool:
    """Whether one of `values` is printed as `printed`. A tie goes either way; a cut never reaches the next digit."""
    cell = printed.before(rounding)
    if not values.meets(cell):
        return False
    if printed.exact or rounding is Rounding.NEAREST:
        return True
    # the far end of a cut-off (or rounded-up) number prints as its neighbour
    open_end = cell.high if cell.low == printed.value else cell.low
    return not (values.low == open_end if open_end == cell.high else values.high == open_end)


def decimal_text(value: Fraction, step: Fraction) -> str:
    """`value` rounded to nearest in units of `step` (a power of ten, or coarser), halves away from zero."""
    steps = value / step
    whole = math.floor(abs(steps) + Fraction(1, 2))
    number = Decimal(whole if steps >= 0 else -whole) * _decimal(step)
    return f"{number:f}"


def _decimal(step: Fraction) -> Decimal:
    return Decimal(step.numerator) / Decimal(step.denominator)


def finer(value: Fraction, step: Fraction) -> str:
    """`value` with one digit more than `step` gives, without zeros that say nothing."""
    text = decimal_text(value, step / 10)
    return text.rstrip("0").rstrip(".") if "." in text else text


def range_text(values: Interval, step: Fraction) -> str:
    return f"{finer(values.low, step / 10)} to {finer(values.high, step / 10)}"


def as_number(value: Fraction, step: Fraction | None = None) -> float:
    """`value` for JSON: whole numbers whole, others with two digits more than `step`, or as many as they have."""
    rounded = value if step is None else Fraction(decimal_text(value, step / 100))
    return int(rounded) if rounded.denominator == 1 else float(rounded)


_FIGURE_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


def _figure_name(value: object) -> object:
    if not isinstance(value, str) or _FIGURE_NAME.fullmatch(value) is None:
        raise ValueError("a name such as read.superdome: small letters, digits, `_`, parts joined by dots")
    return value


def _printed(value: object) -> Printed:
    if not isinstance(value, WrittenInt | WrittenFloat):
        raise ValueError("a number, with the digits that are printed")  # noqa: TRY004 - pydantic gathers ValueError
    return Printed.parse(value.written)


def _entry(value: object) -> Printed | str:
    """A number with its digits, or a word (a model's name)."""
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("a number or a name")
        return value
    return _printed(value)


def _stated(value: object) -> Printed | Reference:
    if isinstance(value, str):
        return parse_reference(value)
    return _printed(value)


def _page(value: object) -> int | str:
    if isinstance(value, WrittenInt):
        return int(value)
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError("a page number, or the name of a section")


def _labels(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError("a list of labels")
    labels = [item.written if isinstance(item, WrittenInt | WrittenFloat) else item for item in value]
    if not all(isinstance(label, str) and label for label in labels) or len(set(labels)) != len(labels):
        raise ValueError("labels, each once")
    return tuple(str(label) for label in labels)


def _parsed(value: object) -> Expression:
    if not isinstance(value, str):
        raise ValueError("an expression")  # noqa: TRY004 - pydantic gathers ValueError
    return parse_expression(value)


def _referenced(value: object) -> Reference:
    if not isinstance(value, str):
        raise ValueError("the name of a figure")  # noqa: TRY004 - pydantic gathers ValueError
    return parse_reference(value)


FigureName = Annotated[str, BeforeValidator(_figure_name)]
Entry = Annotated[Printed | str, PlainValidator(_entry)]
Stated = Annotated[Printed | Reference, PlainValidator(_stated)]
Page = Annotated[int | str, PlainValidator(_page)]
Labels = Annotated[tuple[str, ...], PlainValidator(_labels)]
Computed = Annotated[Expression, PlainValidator(_parsed)]
FigureReference = Annotated[Reference, PlainValidator(_referenced)]


class Source(Shape):
    """Which report."""

    name: FigureName
    title: Text
    publisher: Text
    document: Text = "without number"
    date: Text = "not given"
    text: Text = ""
    """Name of the file that the report's text was read from."""
    text_sha256: Text = ""
    """Digest of that file, so that the text itself can be given to the audit."""
    pages: Text
    """How pages are known."""


class UnitMeaning(Shape):
    """What the name of a unit means in this report."""

    bytes: int = Field(gt=0)
    known_by: Text


class Setup(Shape):
    """What was measured, as far as the report says it."""

    adapter: Text | None = None
    adapters: int | None = None
    channels: Text | None = None
    drives: Text | None = None
    system: Text | None = None
    processors: Text | None = None
    memory: Text | None = None
    os: Text | None = None
    driver: Text | None = None
    firmware: Text | None = None
    slot: Text | None = None
    raid: Text | None = None
    cache: Text | None = None
    tool: Text | None = None
    pattern: Text | None = None
    block: Text | None = None
    outstanding: Text | None = None
    note: Text | None = None


class Figure(Shape):
    """A number or name as printed, or a series of them: the same thing at several labels."""

    id: FigureName
    page: Page
    what: Text
    value: Entry | None = None
    values: ManyOf[Entry] | None = None
    along: Text = ""
    at: Labels | None = None
    unit: Text = "-"
    exact: bool = False
    configuration: FigureName | None = None
    metric: Text | None = None
    """The metric of storqual that it is comparable with."""
    point: dict[str, Text] = Field(default_factory=dict)
    """The factors of the point, where the report gives them."""

    def cells(self) -> dict[str | None, Printed | str]:
        """Label -> what is printed there; the label of a single figure is None."""
        if self.values is not None and self.at is not None:
            return {label: self._counted(value) for label, value in zip(self.at, self.values, strict=False)}
        return {} if self.value is None else {None: self._counted(self.value)}

    def _counted(self, entry: Printed | str) -> Printed | str:
        if self.exact and isinstance(entry, Printed):
            return Printed(entry.text, entry.value, entry.step, exact=True)
        return entry


class Chart(Shape):
    """A chart whose data the text does not give."""

    id: FigureName
    page: Page
    title: Text
    missing: Text
    """What of it cannot be read."""


class Linear(Shape):
    """Linear scaling: of a series up to a label, or of a total over some units of one."""

    series: FigureReference | None = None
    up_to: int | None = Field(default=None, gt=1)
    total: Computed | None = None
    single: Computed | None = None
    units: int | None = Field(default=None, gt=1)
    tolerance: Percent | None = None


class Course(Shape):
    """What a series does from one label to another."""

    series: FigureReference
    over: Labels
    direction: Literal["rises", "falls", "flat"] = Field(alias="is")
    tolerance: Percent | None = None


class Ranking(Shape):
    """The same things ranked at two places: each list from the highest down."""

    there: ManyOf[FigureReference]
    here: ManyOf[FigureReference]


class Assertion(Shape):
    """A figure or statement of the report that follows, or should follow, from its figures. One way to check it."""

    id: FigureName
    page: Page
    text: Text
    unit: Text = "-"
    stated: Stated | None = None
    relation: Literal["is", "about", "just_over", "more_than", "less_than", "at_least", "at_most"] = "is"
    computed: Computed | None = None
    same: FigureReference | None = None
    falling: ManyOf[FigureReference] | None = None
    """Figures that the report puts in this order, highest first."""
    ranking: Ranking | None = None
    linear: Linear | None = None
    course: Course | None = None
    not_checkable: Text | None = None
    rounding: FigureName | None = None
    """Assertions of one such group were rounded in one manner; the group shows which."""
    conventions: FigureName | None = None
    """Assertions of one such group use units in one sense."""
    cpus: int | None = Field(default=None, gt=0)
    note: Text = ""
    """What a reader should know beside the arithmetic."""


class Published(Shape):
    """One report."""

    schema_name: Literal["storqual.published/1"] = Field(alias="schema")
    report: Source
    units: dict[Text, UnitMeaning] = Field(default_factory=dict)
    configurations: dict[FigureName, Setup] = Field(default_factory=dict)
    figures: ManyOf[Figure]
    charts: ManyOf[Chart] = ()
    assertions: ManyOf[Assertion]
