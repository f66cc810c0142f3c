# SPDX-License-Identifier: Apache-2.0
"""Numbers of the audit in words: as many digits as carry meaning."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from storqual.audit.expression import Reference
from storqual.audit.figures import Figures
from storqual.audit.printed import Printed, decimal_text
from storqual.audit.published import Page
from storqual.interval import Interval

__all__ = ["as_number", "finer", "on_page", "range_text", "shown_by"]


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


def on_page(page: Page) -> str:
    """`p. 13`, or the section's name in quotes."""
    return f"p. {page}" if isinstance(page, int) else f'"{page}"'


def shown_by(figures: Figures, label: str | None) -> Callable[[Reference], str]:
    """A function that shows a reference as what is printed of it."""

    def shown(reference: Reference) -> str:
        entry = figures.entry(reference, label)
        return entry.text if isinstance(entry, Printed) else entry

    return shown
