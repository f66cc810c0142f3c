# SPDX-License-Identifier: Apache-2.0
"""Numbers as a reader meets them: rounded, with unit and sign, and each with the place it came from.

Every number of the report that is not part of a quoted text is a Figure, so that a test can follow it back to
verdict.json, run.json or the samples.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from storqual.base.text import MINUS
from storqual_core.kit.quantities import format_percent, format_size

DASH = "\u2013"
TIED = "\u00a0"
"""Between a number and its unit: no line breaks there."""
_DIGITS = 4
_FEW = 10.0
_MANY = 1000.0
_HUGE = 1e6
_LARGEST = 1e15

# unit of a metric -> (smallest value, shown unit, divisor), the largest first
_SCALES: dict[str, tuple[tuple[float, str, float], ...]] = {
    "B/s": ((1e9, "GB/s", 1e9), (1e6, "MB/s", 1e6), (1e3, "kB/s", 1e3), (0, "B/s", 1)),
    "ns": ((1e9, "s", 1e9), (1e6, "ms", 1e6), (1e3, "µs", 1e3), (0, "ns", 1)),
    "us": ((1e6, "s", 1e6), (1e3, "ms", 1e3), (0, "µs", 1)),
    "s": ((0, "s", 1),),
    "us/IO": ((1e3, "ms/IO", 1e3), (0, "µs/IO", 1)),
    "us/KiB": ((1e3, "ms/KiB", 1e3), (0, "µs/KiB", 1)),
    "B": ((2**40, "TiB", 2**40), (2**30, "GiB", 2**30), (2**20, "MiB", 2**20), (2**10, "KiB", 2**10), (0, "B", 1)),
}


@dataclass(frozen=True)
class ShownNumber:
    """A number as shown; `value` is the number before rounding, `divisor` what it was divided by, `source` its place.

    `source` is `verdict:/criteria/3/candidate` (a JSON pointer into that file) or `samples:<what was computed>`.
    """

    text: str
    value: float | None = None
    source: str = ""
    divisor: float = 1.0

    def __str__(self) -> str:
        return self.text


NONE = ShownNumber(DASH)
"""Where there is no number; a dash is never a zero."""


@dataclass(frozen=True)
class Scale:
    """One unit for a whole column: its name, and what values of the metric's unit are divided by."""

    unit: str
    divisor: float = 1.0

    def figure(self, value: float | None, source: str) -> ShownNumber:
        """`value` in this unit, without the unit's name: the column's head carries it."""
        if value is None or not math.isfinite(value):
            return NONE
        return ShownNumber(plain(value / self.divisor), value, source, self.divisor)


def scale_for(unit: str, values: Iterable[float | None]) -> Scale:
    """The unit in which the middle one of `values` reads well; a unit without larger relatives stays."""
    steps = _SCALES.get(unit)
    present = sorted(abs(value) for value in values if value is not None and math.isfinite(value))
    if steps is None:
        return Scale(unit)
    middle = present[len(present) // 2] if present else 0.0
    _, name, divisor = next(step for step in steps if middle >= step[0])
    return Scale(name, divisor)


def plain(value: float) -> str:
    """Four significant digits, never fewer than the whole part: 12,345 · 301.2 · 0.01234; a true minus sign."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= _LARGEST or size < 10**-_DIGITS:
        shown = f"{size:.{_DIGITS - 1}e}"
    else:
        # what is rounded may gain a digit: 9.9996 has one digit before the point and 10.00 two
        whole = math.floor(math.log10(float(f"{size:.{_DIGITS - 1}e}"))) + 1
        shown = f"{size:,.{max(0, _DIGITS - max(whole, 1) if whole > 0 else _DIGITS - whole)}f}"
        if float(size).is_integer():
            shown = f"{size:,.0f}"
    return (MINUS if value < 0 else "") + shown


def _far(size: float) -> str:
    """A percentage that nobody reads digit by digit."""
    return f"{size:,.0f}" if size < _HUGE else f"{size:.2e}"


def quantity(value: float | None, unit: str, source: str) -> ShownNumber:
    """One number with its own unit: `1.23 MB/s`, `450 µs`."""
    if value is None or not math.isfinite(value):
        return NONE
    scale = scale_for(unit, [value])
    return ShownNumber(f"{plain(value / scale.divisor)}{TIED}{scale.unit}".rstrip(TIED), value, source, scale.divisor)


def percent(value: float | None, source: str, *, signed: bool = True, digits: int | None = None) -> ShownNumber:
    """A percentage: two decimals below ten, one above; with its sign unless it is a size such as a margin.

    `digits` are the decimals of all cells of a column of sizes.
    """
    if value is None or not math.isfinite(value):
        return NONE
    size = abs(value)
    # an interval of next to no data may reach to any power of ten
    shown = _far(size) if size >= _MANY else f"{size:.{digits or (2 if size < _FEW else 1)}f}"
    zero = size < _MANY and float(shown) == 0
    sign = "" if zero or (not signed and value > 0) else (MINUS if value < 0 else "+")
    if not signed and digits is None:
        shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return ShownNumber(f"{sign}{shown}{TIED}%", value, source)


def percent_range(low: float, high: float, *, signed: bool = False) -> str:
    """Two fractions in a sentence: `9.8 to 12.3 %`."""
    return f"{format_percent(low, signed=signed).removesuffix(' %')} to {format_percent(high, signed=signed)}"


def count(value: int | None, source: str) -> ShownNumber:
    return NONE if value is None else ShownNumber(f"{value:,}".replace("-", MINUS), value, source)


def seconds(value: float | None, source: str) -> ShownNumber:
    """A stretch of time as people say it: `3 min 20 s`, `1 h 5 min`, `0.12 s`."""
    if value is None or not math.isfinite(value):
        return NONE
    whole = round(value)
    if whole < 60:
        shown = plain(value)
        text = f"{shown.rstrip('0').rstrip('.') if '.' in shown and 'e' not in shown else shown} s"
    elif whole < 3600:
        text = f"{whole // 60} min {whole % 60} s"
    else:
        text = f"{whole // 3600} h {whole % 3600 // 60} min"
    return ShownNumber(text, value, source)


def minute(value: object) -> str:
    """An ISO time as a person reads it, to the minute, in UTC; what is none stays as it is."""
    return _clock(value, 16)


def second(value: object) -> str:
    return _clock(value, 19)


def _clock(value: object, end: int) -> str:
    text = str(value or "\u2013")
    return f"{text[:10]} {text[11:end]} UTC" if len(text) >= 19 and text[10] == "T" else text


AXIS_NAMES = {
    "bs": "block size",
    "iodepth": "queue depth per drive",
    "drives": "drives",
    "ports": "ports",
    "adapters": "adapters",
    "numjobs": "jobs",
    "raid.members": "members of a volume",
    "rwmixread": "reads, %",
}
_COUNTED = {
    "drives": "drives",
    "ports": "ports",
    "adapters": "adapters",
    "numjobs": "jobs",
    "raid.members": "members",
}
_BINARY = {"k": " KiB", "m": " MiB", "g": " GiB", "t": " TiB", "p": " PiB"}


def size_text(size: int) -> str:
    """A size in the largest exact binary unit: 4096 -> `4 KiB`, 512 -> `512 B`."""
    short = format_size(size)
    return short[:-1] + _BINARY[short[-1]] if short[-1] in _BINARY else f"{short} B"


def level_text(name: str, value: object) -> str:
    """One level as people say it: `4 KiB`, `QD 16`, `4 drives`, `drive.WCE=0`."""
    if name == "bs" and isinstance(value, int):
        return size_text(value)
    if name == "iodepth":
        return f"QD {value}"
    if name in _COUNTED:
        word = _COUNTED[name]
        return f"{value} {word if value != 1 else word[:-1]}"
    if name == "rwmixread":
        return f"{value} % reads"
    if name == "target":
        return {"raw": "drive"}.get(str(value), str(value).replace("xfs", "XFS").replace("_", " "))
    if name == "direct":
        return "direct" if value else "buffered"
    return f"{name}={value}"


def together(workload: str, levels: Iterable[tuple[str, object]]) -> str:
    """A workload with what is fixed of it: `rand_read, 4 KiB, QD 16`."""
    return ", ".join([workload, *(level_text(name, value) for name, value in levels)])
