# SPDX-License-Identifier: Apache-2.0
"""JSON that a tool printed: notes may stand before and after it, there may be none, and its shape is the tool's.

The readers of a value (`as_mapping` and its kin) are total, because a tool's next release may print something else.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any, Dict, Iterator, Mapping, Sequence

from .errors import ToolError

_OPENING = re.compile(r"^\{", re.MULTILINE)
_TRIES = 64
_MOST = 10**40
_WHOLE = re.compile(r"\s*[-+]?[0-9]{1,40}(?:\.0*)?\s*\Z")


class Repeated(Dict[str, Any]):
    """An object in which the same key stands more than once: which value is meant is not known. The last is kept."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    return body if len(body) == len(pairs) else Repeated(body)


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def find_spans(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Every complete JSON object that begins at the start of a line, with its first place and the one behind it.

    An object with a key twice is a `Repeated`.
    A few dozen beginnings are tried, or a text of braces would take for ever.
    """
    end = 0
    for match in islice(_OPENING.finditer(text), _TRIES):
        if match.start() < end:
            continue
        try:
            body, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        yield body, match.start(), end


def find_objects(text: str) -> tuple[list[dict[str, Any]], str]:
    """Every complete JSON object that begins at the start of a line, and all the text that is no part of one."""
    spans = list(find_spans(text))
    ends = [0, *(end for _, _, end in spans)]
    starts = [*(start for _, start, _ in spans), len(text)]
    return [body for body, _, _ in spans], "\n".join(text[end:start] for end, start in zip(ends, starts))


def the_object(text: str, tool: str, key: str = "") -> dict[str, Any]:
    """The first object in `text` (with `key` the first that has it). Raises ToolError with what was said instead."""
    found, rest = find_objects(text)
    for body in found:
        if not key or key in body:
            return body
    if found:
        raise ToolError(f"{tool} printed no JSON object with {key!r}, but one with {', '.join(found[0])[:200]}")
    said = next((line.strip() for line in rest.splitlines() if line.strip()), "nothing")
    raise ToolError(f"{tool} printed no JSON object: {said[:200]}")


def as_mapping(value: object) -> Mapping[str, Any]:
    """The value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[Any]:
    """The value when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """The value as text without blanks and NULs at its end; `` for null, lists and objects."""
    if value is None or isinstance(value, (dict, list)):
        return ""
    return str(value).rstrip("\0 ")


def as_int(value: object) -> int | None:
    """A whole number, printed as a number or in a text; None for anything else, a localised number included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        # NaN and what is larger than any size or count are none
        return int(value) if abs(value) < _MOST and value == int(value) else None
    if isinstance(value, str) and _WHOLE.match(value):
        return int(value.strip().partition(".")[0])
    return None
