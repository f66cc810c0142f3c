# SPDX-License-Identifier: Apache-2.0
"""The shape of what people write; every problem is told with its line and in the user's words."""

import difflib
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from storqual.inputs.yaml_file import Document, as_written
from storqual_core.kit.errors import BadInputError

M = TypeVar("M", bound="Shape")

_WHERE = re.compile(r"(.*?):([0-9]{1,9}): ", re.DOTALL)
_PARTS = re.compile("[_.-]")
_LONGEST_NAME = 200
"""Characters; to compare costs the square of them."""


class Shape(BaseModel):
    """A mapping with known keys only; nothing is converted that the user did not mean (`true` is no number)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


def shaped(shape: type[M], document: Document) -> tuple[M | None, list[str]]:
    """`document` as `shape`, and every problem with it; None when there is one. An empty file is an empty mapping."""
    problems = list(document.problems)
    needed = [f"`{field.alias or name}`" for name, field in shape.model_fields.items() if field.is_required()]
    if document.data is None and needed:
        return None, [*problems, document.about((), f"this file is empty; it needs {', '.join(needed)}")]
    data = {} if document.data is None else document.data
    try:
        value = shape.model_validate(data)
    except ValidationError as wrong:
        errors = wrong.errors(include_url=False, include_context=True, include_input=True)
        problems += [_sentence(shape, document, data, error) for error in errors]
        return None, problems
    except RecursionError:
        return None, [*problems, document.about((), "this file has too many levels")]
    return (value if not problems else None), problems


def sound(shape: type[M], value: object) -> M | None:
    """`value` as `shape`, or None: for looking further at what is sound in a file that is not."""
    try:
        return shape.model_validate(value)
    except (ValidationError, RecursionError):
        return None


def raise_all(problems: Iterable[str]) -> None:
    """Raise BadInputError with every problem, each once, file by file and by line; do nothing without one."""
    listed = list(dict.fromkeys(problems))
    if listed:
        files = {name: number for number, name in reversed(list(enumerate(_where(problem)[0] for problem in listed)))}
        raise BadInputError(sorted(listed, key=lambda problem: (files[_where(problem)[0]], _where(problem)[1])))


def _where(problem: str) -> tuple[str, int]:
    """File and line of a problem; line 0 when it names none."""
    match = _WHERE.match(problem)
    return (match.group(1), int(match.group(2))) if match is not None else (problem.split(": ", 1)[0], 0)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    names = list(known) if len(word) <= _LONGEST_NAME else []
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    near = near or [name for name in names if name.lower() == word.lower()]
    # the name may be known in part: `p99` of `latency_p99_us`; the shortest is the plainest
    near = near or sorted((name for name in names if word.lower() in _PARTS.split(name.lower())), key=len)
    return f" (did you mean {near[0]!r}?)" if near else ""


def one_of(names: Iterable[str], most: int = 12) -> str:
    """`one of a, b, c`: what there is, cut where nobody reads on."""
    listed = list(dict.fromkeys(names))
    more = f", … ({len(listed)} in all)" if len(listed) > most else ""
    return f"one of {', '.join(listed[:most])}{more}"


def unknown(what: str, word: str, known: Iterable[str], *, most: int = 12) -> str:
    """A sentence about a name that nothing has: `unknown key 'drvie' (did you mean 'drive'?); expected ...`."""
    names = list(dict.fromkeys(known))
    there = (
        f"expected {one_of(names, most)}"
        if len(names) > 1
        else f"the only one is {names[0]}"
        if names
        else "there is none"
    )
    return f"unknown {what} {shown(word)}{did_you_mean(word, names)}; {there}"


def shown(value: object, limit: int = 60) -> str:
    """A value as it appears in a message: short, on one line, and never as anything but text."""
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    written = as_written(value)
    text = repr(written) if isinstance(value, str) else str(written)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _sentence(shape: type[Shape], document: Document, data: object, error: ErrorDetails) -> str:
    keys, owner = _keys_of_location(shape, data, error["loc"])
    kind = error["type"]
    if kind == "extra_forbidden":
        names = sorted(_keys(owner))
        word = str(keys[-1])
        return document.about(keys, unknown("key", word, names, most=len(names)))
    if kind == "missing":
        missing = owner.model_fields.get(str(keys[-1])) if owner else None
        text = f" ({missing.description})" if missing is not None and missing.description else ""
        return document.about(keys[:-1], f"key {str(keys[-1])!r}{text} is missing{_inside(keys[:-1])}")
    of_key = error["loc"][-1:] == (_OF_KEY,) != tuple(keys[-1:])
    value = shown(keys[-1]) if of_key else shown(_at(data, keys))
    if _is_secret(owner, keys):
        value = "a value that is not shown"
    if kind == "value_error" and value == shown({"": ""}):
        # the mapping is one; what is wrong is inside it
        return document.about(keys, f"{_path(keys)}: expected {_expected(error)}")
    return document.problem(keys, f"{value}{_inside(keys)}", _expected(error))


def _is_secret(owner: type[Shape] | None, keys: Sequence[str | int]) -> bool:
    """Whether a value may be shown to nobody, also where it is no password: what is in no dump of a shape."""
    field = owner.model_fields.get(str(keys[-1])) if owner is not None and keys else None
    return field is not None and (bool(field.exclude) or _plain(field.annotation) is SecretStr)


def _inside(keys: Sequence[str | int]) -> str:
    """` in drive.on`: where, in words, for a value whose line holds more than it."""
    return f" in {_path(keys)}" if keys else ""


def _path(keys: Sequence[str | int]) -> str:
    """`drive.on`, `criteria[0]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in keys).lstrip(".")


def _entries(number: int) -> str:
    return "one entry" if number == 1 else f"{number} entries"


_PHRASES: dict[str, Callable[[dict[str, Any]], str]] = {
    "value_error": lambda context: str(context["error"]),
    **dict.fromkeys(("int_type", "int_from_float"), lambda _: "a whole number"),
    "float_type": lambda _: "a number",
    "finite_number": lambda _: "a finite number",
    "bool_type": lambda _: "true or false",
    "string_type": lambda _: "text (in quotes)",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), lambda _: "a mapping"),
    **dict.fromkeys(("tuple_type", "list_type"), lambda _: "a list"),
    "literal_error": lambda context: f"one of {str(context['expected']).replace(chr(39), '')}",
    "too_short": lambda context: f"at least {_entries(context['min_length'])}",
    "too_long": lambda context: f"at most {_entries(context['max_length'])}",
    "greater_than": lambda context: f"more than {context['gt']}",
    "greater_than_equal": lambda context: f"at least {context['ge']}",
    "less_than": lambda context: f"less than {context['lt']}",
    "less_than_equal": lambda context: f"at most {context['le']}",
    "multiple_of": lambda context: f"a multiple of {context['multiple_of']}",
}


def _expected(error: ErrorDetails) -> str:
    phrase = _PHRASES.get(error["type"])
    return phrase(error.get("ctx") or {}) if phrase is not None else error["msg"]


_OF_KEY = "[key]"
"""What pydantic ends a location with when it is the key of a mapping that is wrong; a file may have such a key."""


def _mapping(value: object) -> Mapping[object, object]:
    return value if isinstance(value, Mapping) else {}


def _keys_of_location(
    shape: type[Shape], data: object, location: Sequence[str | int]
) -> tuple[tuple[str | int, ...], type[Shape] | None]:
    """The keys in the file that a pydantic location means, and the shape that owns its last key."""
    keys: list[str | int] = []
    owner: type[Shape] | None = shape
    annotation: object = shape
    for step in location:
        if step == _OF_KEY and step not in _mapping(_at(data, keys)):
            break
        members = _members(annotation)
        if len(members) > 1 and isinstance(step, str) and step not in _items(_at(data, keys)):
            # pydantic's name for one of several forms of a value
            annotation = next((form for form in members if getattr(_plain(form), "__name__", "") == step), members[0])
            continue
        if isinstance(step, int) and not isinstance(_at(data, keys), list):
            # one value that stood for a list of one
            annotation = _inner(annotation, step)
            continue
        plain = _plain(annotation)
        owner = plain if isinstance(plain, type) and issubclass(plain, Shape) else None
        keys.append(step)
        annotation = _inner(annotation, step)
    return tuple(keys), owner


def _members(annotation: object) -> list[object]:
    """The forms that a value may have, without None."""
    if typing.get_origin(annotation) is Annotated:
        return _members(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return [annotation]
    return [form for form in typing.get_args(annotation) if form is not type(None)]


def _plain(annotation: object) -> object:
    """An annotation without `Annotated` and `| None`."""
    while True:
        arguments = typing.get_args(annotation)
        origin = typing.get_origin(annotation)
        if origin is Annotated:
            annotation = arguments[0]
        elif origin in (typing.Union, types.UnionType):
            annotation = next((argument for argument in arguments if argument is not type(None)), None)
        else:
            return annotation


def _inner(annotation: object, step: str | int) -> object:
    """The annotation of what `step` leads to; None when that is not known."""
    plain = _plain(annotation)
    if isinstance(plain, type) and issubclass(plain, Shape):
        for name, field in plain.model_fields.items():
            if step == (field.alias or name):
                return field.annotation
        return None
    origin, arguments = typing.get_origin(plain), typing.get_args(plain)
    if origin is dict:
        return arguments[1]
    if origin in (tuple, list) and arguments:
        return arguments[0]
    return None


def _keys(owner: type[Shape] | None) -> list[str]:
    return [] if owner is None else [field.alias or name for name, field in owner.model_fields.items()]


def _at(data: object, keys: Sequence[str | int]) -> object:
    """The value at `keys`, as written; the nearest value around it when there is none."""
    for step in keys:
        inside = _items(data)
        if step not in inside:
            break
        data = inside[step]
    return data


def _items(data: object) -> dict[str | int, object]:
    """What a mapping or a list holds, by key or position."""
    if isinstance(data, dict):
        return data
    return dict(enumerate(data)) if isinstance(data, list) else {}
