# SPDX-License-Identifier: Apache-2.0
"""Fields in the field's units: text, names, sizes, times, percentages; each says what it expected."""

from __future__ import annotations

import re
import typing
from datetime import date
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field

from storqual.model.yaml_file import as_written
from storqual_core.quantities import parse_duration, parse_percent, parse_size

__all__ = ["Day", "Duration", "ManyOf", "Name", "Percent", "Role", "Size", "Text"]

T = TypeVar("T")


def _text(value: object) -> object:
    value = as_written(value)
    if not isinstance(value, str):
        raise ValueError("text (in quotes)")  # noqa: TRY004 - pydantic gathers ValueError only
    if not value.strip():
        raise ValueError("text that is not empty")
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise ValueError("text on one line, without control characters")
    return value


_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")


def _name(value: object) -> object:
    value = _text(value)
    if not _NAME_CHARACTERS.issuperset(str(value)) or not str(value)[0].isalnum() or len(str(value)) > 64:
        raise ValueError("a name of letters, digits, `_`, `-` and `.`")
    return value


def _role(value: object) -> object:
    value = _text(value)
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,31}", str(value)) or value == "manifest":
        raise ValueError("a role such as technician or release-manager")
    return value


def _size(value: object) -> object:
    try:
        size = parse_size(typing.cast("str | int", value)) if not isinstance(value, bool | float) else 0
    except (ValueError, TypeError):
        raise ValueError("a size such as 512, 4k or 1GiB") from None
    if size <= 0:
        raise ValueError("a size above zero")
    return int(size)


def _duration(value: object) -> object:
    try:
        seconds = parse_duration(typing.cast("str | float", value))
    except (ValueError, TypeError):
        raise ValueError("a time such as 2s, 500ms, 5m or 2h") from None
    if not 0 <= seconds < 1e8:
        raise ValueError("a time from 0 to three years")
    return float(seconds)


def _percent(value: object) -> object:
    try:
        fraction = parse_percent(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError("a percentage such as 3% (the sign is needed)") from None
    if not 0 <= fraction < 1:
        raise ValueError("a percentage from 0% to below 100%")
    return fraction


def _date(value: object) -> object:
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise ValueError("a date such as 2027-03-31") from None


def _many(value: object) -> object:
    """A list as a tuple; a single value is a list of one."""
    if isinstance(value, list | tuple):
        return tuple(value)
    return value if value is None else (value,)


Text = Annotated[str, BeforeValidator(_text)]
Name = Annotated[str, BeforeValidator(_name)]
Role = Annotated[str, BeforeValidator(_role)]
"""In what capacity somebody signs; part of a file name."""
Size = Annotated[int, BeforeValidator(_size)]
"""Bytes; written `4k`, `1GiB` or as a number."""
Duration = Annotated[float, BeforeValidator(_duration)]
"""Seconds; written `2s`, `500ms`, `5m` or as a number."""
Percent = Annotated[float, BeforeValidator(_percent)]
"""A fraction; written with the sign: `3%`."""
Day = Annotated[date, BeforeValidator(_date)]
"""A day of the calendar; written `2027-03-31`."""
ManyOf = Annotated[tuple[T, ...], BeforeValidator(_many), Field(min_length=1)]
"""A list, or one value that stands for a list of one."""
