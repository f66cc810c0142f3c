# SPDX-License-Identifier: Apache-2.0
"""Sizes and times as people write them: `4k`, `1GiB`, `500ms`; binary prefixes as fio reads them (kb_base=1024)."""

from __future__ import annotations

import math
import re
from typing import SupportsFloat

_SIZE = re.compile(r"^\s*([0-9]{1,30})\s*(?:([kmgtp])?(i?b)?)?\s*$", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_DURATION = re.compile(r"^\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*(ms|s|min|m|h)?\s*$", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_MOST = 1e30
"""Beyond it a whole number may be no float."""
_PERCENT = re.compile(r"^\s*(-?[0-9]{1,30}(?:\.[0-9]{1,30})?)\s*%\s*$")


_WHOLE = re.compile("[0-9]{1,20}")


def is_whole(text: str) -> bool:
    """Whether a text of the kernel's or of a tool's is a whole number that 64 bits hold; else `int` may refuse it.

    `isdigit` takes superscripts for digits, and Python reads no number of more than 4300.
    """
    return _WHOLE.fullmatch(text) is not None


def parse_size(text: str | int) -> int:
    """Bytes of `512`, `4k`, `64KiB`, `1G`; prefixes are powers of 1024. Raises ValueError for anything else."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    match = _SIZE.match(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 512, 4k or 1GiB")
    unit: int = 1024 ** _POWERS[(match.group(2) or "").lower()]
    return int(match.group(1)) * unit


def format_size(size: int) -> str:
    """The largest exact binary unit: 4096 -> `4k`, 1536 -> `1536`, 1048576 -> `1m`."""
    for prefix in "ptgmk":
        unit = 1024 ** _POWERS[prefix]
        if size and size % unit == 0:
            return f"{size // unit}{prefix}"
    return str(size)


def parse_duration(text: str | float) -> float:
    """Seconds of `2s`, `500ms`, `1.5m`, `2h` or a plain number. Raises ValueError for anything else."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text) if abs(text) < _MOST else float("inf")
    match = _DURATION.match(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a time such as 2s, 500ms, 5m or 2h")
    return float(match.group(1)) * _SECONDS[(match.group(2) or "").lower()]


def format_duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3.5 h`: as exactly as a plan or an estimate is."""
    if seconds < 90:
        return f"{max(seconds, 0.0):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    hours = f"{seconds / 3600:.1f}"
    return f"{hours[:-2] if hours.endswith('.0') else hours} h"


_FAR = 10000.0
"""An interval of next to no data may reach to any power of ten, in percent."""


def format_percent(fraction: SupportsFloat, *, signed: bool = False) -> str:
    """`3 %`, `2.35 %`, `-12.3 %`: a fraction in the one form that messages and sentences have, with three digits.

    `more than 10,000 %` where digits say nothing. What is written into files has no space.
    """
    value = 100.0 * float(fraction)
    if not math.isfinite(value):
        return "any %"
    plus = "+" if signed and value > 0 else ""
    if abs(value) > _FAR:
        return f"{'less than -' if value < 0 else 'more than ' + plus}{_FAR:,.0f} %"
    size = abs(value)
    whole = math.floor(math.log10(size)) if size else 0
    text = f"{size:,.{min(max(2 - whole, 0), 6)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    if float(text.replace(",", "")) == 0:
        return "0 %"
    return f"{'-' if value < 0 else plus}{text} %"


def parse_percent(text: str) -> float:
    """The fraction of `3%`. A bare number is refused: nobody can tell 3 from 0.03. Raises ValueError."""
    match = _PERCENT.match(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a percentage such as 3% (the sign is needed)")
    return float(match.group(1)) / 100.0
