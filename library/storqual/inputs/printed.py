# SPDX-License-Identifier: Apache-2.0
"""A figure as it stands on paper: its digits say how far from the truth it may be."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from storqual.base.formulas import Interval


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
    def parse(cls, text: str, *, step: Fraction | None = None, exact: bool = False) -> Printed:
        """Read `69104`, `0.466`, `3.20e8`. Raises ValueError for anything that is not a finite decimal number."""
        try:
            number = Decimal(text)
        except InvalidOperation:
            raise ValueError(f"{text!r} is not a number") from None
        if not number.is_finite():
            raise ValueError(f"{text!r} is not a finite number")
        exponent = number.as_tuple().exponent
        return cls(text, Fraction(number), step or Fraction(10) ** int(exponent), exact)

    def before(self, rounding: Rounding) -> Interval:
        """The values that print like this."""
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
    """`45.95 to 46.06`."""
    return f"{finer(values.low, step / 10)} to {finer(values.high, step / 10)}"


def as_number(value: Fraction, step: Fraction | None = None) -> float:
    """`value` for JSON: whole numbers whole, others with two digits more than `step`, or as many as they have."""
    rounded = value if step is None else Fraction(decimal_text(value, step / 100))
    return int(rounded) if rounded.denominator == 1 else float(rounded)
