# SPDX-License-Identifier: Apache-2.0
"""An event of each kind that fits its table, with every field that it may have; and what is wrong at one place."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from storqual.run.event_kinds import EVENT_KINDS, STORED, Shape

_VALUES: Mapping[str, Any] = {
    "any": {"x": 1},
    "text": "text",
    "name": "name",
    "flag": True,
    "number": 1.5,
    "number?": 1.5,
    "scalar": "text",
    "count": 0,
    "positive": 1,
    "sha256": "a" * 64,
    "time": "2026-11-21T10:00:00.000Z",
}
_WRONG: Mapping[str, tuple[Any, ...]] = {
    "text": (1, ["text"], {"x": "text"}, True),
    "name": ("", 1, ["name"], False),
    "flag": (0, 1, "true", []),
    "number": ("1.5", True, [1], 10**400),
    "number?": ("1.5", True, [1], 10**400),
    "scalar": (["text"], {}, 10**400),
    "count": (-1, 1.0, "0", True, 1 << 63, [0]),
    "positive": (0, -1, "1", True),
    "sha256": ("A" * 64, "a" * 63, 1, "", ["a" * 64]),
    "time": ("yesterday", "2026-11-21T10:00:00", 1, ""),
}
"""Of each type, what is none of it; `any` has no such value."""


def example(kind: str, **fields: Any) -> dict[str, Any]:
    """The fields of an event of this kind, all that it may have; `fields` take the place of some."""
    return {**made(EVENT_KINDS[kind].fields), **fields}


def made(shape: Shape) -> Any:
    if isinstance(shape, str):
        return copy.deepcopy(_VALUES[shape]) if shape in _VALUES else shape.split("|")[0]
    if isinstance(shape, Mapping):
        return {_name(key): made(inner) for key, inner in shape.items() if key != "..."}
    return [made(shape[0])]


def _name(key: str) -> str:
    return "key" if key in ("*", "+") else key.removesuffix("?")


def mistakes(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every event of this kind that is wrong at one place, and what was done to it."""
    return mistakes_of(EVENT_KINDS[kind].fields)


def mistakes_of(whole: Shape) -> Iterator[tuple[str, dict[str, Any]]]:
    for where, shape, required in _places(whole, ()):
        for value in _values(shape):
            yield f"{'.'.join(map(str, where))} = {value!r:.40}", _put(made(whole), where, value)
        if required:
            yield f"without {'.'.join(map(str, where))}", _put(made(whole), where, ...)
    for where in _closed(whole, ()):
        yield f"more in {'.'.join(map(str, where))}", _put(made(whole), (*where, "more"), 1)


def _values(shape: Shape) -> tuple[Any, ...]:
    if not isinstance(shape, str):
        return ("text", 1, True, {} if isinstance(shape, list) else [])
    return _WRONG.get(shape, () if shape == "any" else ("another", 1, ""))


def _places(shape: Shape, where: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Shape, bool]]:
    """Where something stands in an event, its shape, and whether it must."""
    if isinstance(shape, Mapping):
        for key, inner in shape.items():
            if key != "...":
                place = (*where, _name(key))
                yield place, inner, key == "+" or not (key == "*" or key.endswith("?"))
                yield from _places(inner, place)
    elif not isinstance(shape, str):
        yield (*where, 0), shape[0], False
        yield from _places(shape[0], (*where, 0))


def _closed(shape: Shape, where: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Mappings that take no other keys."""
    if isinstance(shape, Mapping):
        if not {"*", "+", "..."} & set(shape):
            yield where
        for key, inner in shape.items():
            yield from _closed(inner, (*where, _name(key)))
    elif not isinstance(shape, str):
        yield from _closed(shape[0], (*where, 0))


def _put(event: dict[str, Any], where: tuple[Any, ...], value: Any) -> dict[str, Any]:
    *path, last = where
    inner: Any = event
    for step in path:
        inner = inner[step]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return event


def stored(kind: str) -> dict[str, Any]:
    """What the store writes into an event of this kind."""
    return {name: kind if name == "kind" else _VALUES[str(shape)] for name, shape in STORED.items()}
