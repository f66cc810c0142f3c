# SPDX-License-Identifier: Apache-2.0
"""The shapes of what a run's files hold, as data, and how far a value is of its shape.

A shape is the name of a type, a list with the shape of its items, or a mapping: `{"*": shape}` has any keys, `{"+":
shape}` at least one, another one only those that it names. A key with `?` behind it may be missing or null; `"..."`
means that others write more into a mapping than anybody reads.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

Shape = str | Sequence["Shape"] | Mapping[str, "Shape"]
_MOST = 1 << 63


def _is_number(value: object) -> bool:
    # NaN is in no range, and a whole number may be too long for a float
    return isinstance(value, int | float) and not isinstance(value, bool) and -_MOST < value < _MOST


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


_TYPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "any": (lambda _: True, "anything"),
    "text": (lambda value: isinstance(value, str), "text"),
    "name": (lambda value: isinstance(value, str) and value != "", "text that is not empty"),
    "flag": (lambda value: isinstance(value, bool), "true or false"),
    "number": (_is_number, "a number"),
    "number?": (lambda value: value is None or _is_number(value), "a number or null"),
    "scalar": (lambda value: isinstance(value, str | bool | None) or _is_number(value), "text, a number or null"),
    "count": (lambda value: type(value) is int and 0 <= value < _MOST, "a whole number from 0"),
    "positive": (lambda value: type(value) is int and 0 < value < _MOST, "a whole number from 1"),
    "sha256": (
        lambda value: isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef"),
        "64 hexadecimal digits",
    ),
    "time": (_is_time, "a time with its zone (ISO 8601)"),
}


@cache
def file_shapes() -> Mapping[str, Shape]:
    """The shape of each kind of file that has one; `run` is that of run.json, once its schema is known."""
    shapes: Mapping[str, Shape] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return shapes


def shape_problem(value: object, *kinds: str) -> str:
    """The first thing that no file has, of the first of these kinds whose shape is known; empty for none."""
    shape = next((file_shapes()[kind] for kind in kinds if kind in file_shapes()), None)
    return "" if shape is None else next(wrong_values(shape, value), "")


def wrong_values(shape: Shape, value: object, where: str = "") -> Iterator[str]:
    """What in a value is not of its shape, a sentence each, that begins with where it is."""
    name = f"{where}: " if where else ""
    if isinstance(shape, str):
        yield from (f"{name}{problem}" for problem in _type_problems(shape, value))
    elif isinstance(shape, Mapping):
        if not isinstance(value, Mapping):
            yield f"{name}found {short_value(value)}, expected a mapping"
        else:
            yield from _keys(shape, value, f"{where}." if where else "")
    elif not isinstance(value, list):
        yield f"{name}found {short_value(value)}, expected a list"
    else:
        for number, item in enumerate(value):
            yield from wrong_values(shape[0], item, f"{where}[{number}]")


def _type_problems(shape: str, value: object) -> Iterator[str]:
    if shape in _TYPES:
        fits, expected = _TYPES[shape]
        if not fits(value):
            yield f"found {short_value(value)}, expected {expected}"
    elif value not in shape.split("|"):
        yield f"found {short_value(value)}, expected one of {', '.join(shape.split('|'))}"


def _keys(shape: Mapping[str, Shape], value: Mapping[str, Any], where: str) -> Iterator[str]:
    if "*" in shape or "+" in shape:
        (inner,) = shape.values()
        if "+" in shape and not value:
            yield f"{where.removesuffix('.')}: found nothing, expected at least one entry"
        for key, item in value.items():
            yield from wrong_values(inner, item, f"{where}{_key(key)}")
        return
    fields = {key.removesuffix("?"): key for key in shape}
    for name, key in fields.items():
        if name == "...":
            continue
        item = value.get(name)
        if item is None:
            if not key.endswith("?"):
                yield f"{where}{name}: is missing"
        else:
            yield from wrong_values(shape[key], item, f"{where}{name}")
    if "..." not in shape:
        expected = ", ".join(fields) or "no field"
        yield from (f"{where}{_key(key)}: is not known, expected {expected}" for key in value if key not in fields)


def _key(key: object) -> str:
    return str(key)[:60]


def short_value(value: object) -> str:
    """A value in a sentence, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
