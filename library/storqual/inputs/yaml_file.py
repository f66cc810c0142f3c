# SPDX-License-Identifier: Apache-2.0
"""Read YAML 1.2 with the line of every value; nothing in a file can make this run code, expand or not end."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from storqual_core.kit.durable import read_regular
from storqual_core.kit.errors import BadInputError

Keys = tuple[str | int, ...]
"""Keys and list positions from the top to a value."""

_TAG = "tag:yaml.org,2002:"
_SYNTAX = {
    "mapping values are not allowed here": (
        "a key is not allowed here; indent it like the keys beside it, and put quotes around text that contains `: `"
    ),
    "found character '\\t' that cannot start any token": "a tab is not allowed here; YAML is indented with spaces",
}
"""What the reader of YAML says of the usual slips, and how that is said here."""
_UNCLOSED = {
    "found unexpected end of stream": "a quote is opened here and never closed",
    "expected ',' or '}', but got": "a `{` is opened here and not closed; put `,` between entries and `}` at the end",
    "expected ',' or ']', but got": "a `[` is opened here and not closed; put `,` between entries and `]` at the end",
}
"""The same of what was begun and not ended: the line where it begins is told, because the end may be anywhere."""
_NO_ALIASES = "write each value out where it is used, without anchors (`&`), aliases (`*`) and merge keys (`<<`)"
_WIDE = "\u00a0\u2000-\u200b\u202f\u205f\u3000\ufeff"
_WIDE_SPACE = re.compile(rf"[ -]*[{_WIDE}]|[ {{-]*[\w.]+[{_WIDE}]*:[{_WIDE}]")
"""A line whose structure has a space that is none to YAML: in its indentation, or behind the colon of its key."""
_NO_SPACE = "this line has a no-break space (or another wide one) where YAML needs a plain space; type it anew"
_LARGEST_FILE = 256 << 10
"""Bytes. What people write is a tenth of it; to read so much takes seconds."""
_MOST_VALUES = 200_000
_DEEPEST = 60
_LONGEST_NUMBER = 100
"""Characters; 64 bits in base 2 with their separators are fewer."""


class TooLargeError(BadInputError):
    """A file that has, or whose aliases make, more than anybody writes."""


class WrittenInt(int):
    """A whole number that remembers its text: `serial: 0012` is a name, and only its field knows."""

    written: str

    def __new__(cls, value: int, written: str) -> "WrittenInt":
        number = super().__new__(cls, value)
        number.written = written
        return number


class WrittenFloat(float):
    """A number with a fraction or an exponent that remembers its text (a revision `1e10` is a word)."""

    written: str

    def __new__(cls, value: float, written: str) -> "WrittenFloat":
        number = super().__new__(cls, value)
        number.written = written
        return number


def as_written(value: object) -> object:
    """The text of a number that stood in a YAML file; any other value as it is."""
    return value.written if isinstance(value, WrittenInt | WrittenFloat) else value


@dataclass(frozen=True)
class Document:
    """Plain data and the line of each of its keys and items. `name` is how messages call the file."""

    name: str
    data: Any
    lines: Mapping[Keys, int]
    problems: tuple[str, ...] = ()

    def line(self, keys: Sequence[str | int]) -> int:
        """The line of `keys`, or of the nearest thing around it."""
        for length in range(len(keys), -1, -1):
            number = self.lines.get(tuple(keys[:length]))
            if number is not None:
                return number
        return 1

    def about(self, keys: Sequence[str | int], sentence: str) -> str:
        return f"{self.name}:{self.line(keys)}: {sentence}"

    def problem(self, keys: Sequence[str | int], value: str, expected: str) -> str:
        """The same about a value that is not what it should be."""
        return self.about(keys, f"found {value}, expected {expected}")


class _Builder:
    """Turns the composed nodes into plain data; remembers lines and what is wrong."""

    def __init__(self, name: str, foreign_tags: bool) -> None:
        self.name = name
        self.foreign_tags = foreign_tags
        self.lines: dict[Keys, int] = {}
        self.problems: list[str] = []
        self.values = 0

    def build(self, node: Node, keys: Keys) -> object:
        """The value of `node`. Raises BadInputError when there is no end to it."""
        self.values += 1
        if self.values > _MOST_VALUES or len(keys) > _DEEPEST:
            raise _too_large(self.name, _line(node))
        self.lines.setdefault(keys, _line(node))
        if node.anchor and not self.foreign_tags:
            self._say(node, f"the anchor `&{node.anchor}` is not allowed; {_NO_ALIASES}")
        if isinstance(node, MappingNode):
            return self._mapping(node, keys)
        if isinstance(node, SequenceNode):
            self._check_tag(node, "seq")
            return [self.build(item, (*keys, number)) for number, item in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: MappingNode, keys: Keys) -> dict[str, object]:
        self._check_tag(node, "map")
        values: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._say(key_node, "a list or a mapping cannot be a key; a key is text")
                continue
            key = _characters(key_node)
            self._check_spaces(key_node)
            if key == "<<" and not self.foreign_tags:
                self._say(key_node, f"the merge key `<<` is not allowed; {_NO_ALIASES}")
                continue
            if key in values:
                first = self.lines[(*keys, key)]
                self._say(key_node, f"key {key!r} is already set in line {first}; remove one of the two")
                continue
            self.lines[(*keys, key)] = _line(key_node)
            values[key] = self.build(value_node, (*keys, key))
        return values

    def _scalar(self, node: Node) -> object:
        text, kind = _characters(node), str(node.tag).removeprefix(_TAG)
        if isinstance(node, ScalarNode) and node.style in ("'", '"', "|", ">"):
            self._check_tag(node, "str")
            return text
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind in ("int", "float"):
            if len(text) > _LONGEST_NUMBER and not self.foreign_tags:
                self._say(node, f"a number of {len(text)} characters; at most {_LONGEST_NUMBER} are read")
            return _whole(text) if kind == "int" else _fraction(text)
        self._check_spaces(node)
        # dates stay words (their fields read them), and so does a lone `=`
        self._check_tag(node, "str", "timestamp", "value", "merge")
        return text

    def _check_spaces(self, node: Node) -> None:
        """Raise BadInputError for `key:` and its value in one word, held together by a space that is none."""
        if (
            isinstance(node, ScalarNode)
            and node.style is None
            and _WIDE_SPACE.match(str(node.value))
            and not self.foreign_tags
        ):
            raise BadInputError([f"{self.name}:{_line(node)}: {_NO_SPACE}"])

    def _check_tag(self, node: Node, *known: str) -> None:
        if not self.foreign_tags and str(node.tag).removeprefix(_TAG) not in known:
            self._say(node, f"the tag {str(node.tag)!r} is not allowed; write plain YAML without tags")

    def _say(self, node: Node, sentence: str) -> None:
        self.problems.append(f"{self.name}:{_line(node)}: {sentence}")


def read_yaml(path: Path, *, foreign_tags: bool = False) -> Document:
    """Read the one document of a file. Raises BadInputError: no file, no UTF-8, no YAML; syntax ends the reading.

    Doubled keys and tags do not end it: they are in `problems`, to be told together with problems of shape.
    `foreign_tags` lets tags such as `!vault` pass as text.
    """
    shown = str(path)
    try:
        data = read_regular(path, _LARGEST_FILE, "remove what is not needed, or split it")
    except BadInputError as refused:
        raise TooLargeError(refused.problems) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data[: problem.start].count(b"\n") + 1
        raise BadInputError([f"{shown}:{line}: this is not UTF-8 text; save the file as UTF-8"]) from None
    return parse_yaml(text, name=shown, foreign_tags=foreign_tags)


def parse_yaml(text: str, *, name: str, foreign_tags: bool = False) -> Document:
    try:
        nodes = _nodes(text)
    except MaxDepthExceededError as problem:
        raise _too_large(name, problem.problem_mark.line + 1) from None
    except MarkedYAMLError as problem:
        reason = " ".join(str(problem.problem or problem.context or "no YAML").split())
        unclosed = next((message for start, message in _UNCLOSED.items() if reason.startswith(start)), None)
        marks = (problem.problem_mark, problem.context_mark)
        mark = next((mark for mark in (reversed(marks) if unclosed else marks) if mark is not None), None)
        where = f"{name}:{mark.line + 1}" if mark is not None else name
        lines = text.splitlines()[: (mark.line + 1) if mark is not None else None]
        for number, line in enumerate(lines, start=1):
            if _WIDE_SPACE.match(line):
                raise BadInputError([f"{name}:{number}: {_NO_SPACE}"]) from None
        raise BadInputError([f"{where}: {unclosed or _SYNTAX.get(reason) or _in_order(reason)}"]) from None
    except (YAMLError, ValueError, RecursionError) as problem:
        reason = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise BadInputError([f"{name}: not valid YAML 1.2: {reason}"]) from None
    if len(nodes) > 1:
        raise BadInputError([f"{name}:{_line(nodes[1])}: a second document (`---`) begins here; a file has one"])
    if not nodes or nodes[0] is None:
        return Document(name, None, {})
    builder = _Builder(name, foreign_tags)
    data = builder.build(nodes[0], ())
    return Document(name, data, builder.lines, tuple(builder.problems))


def _in_order(reason: str) -> str:
    """A sentence from words of the reader such as `expected X, but found Y`."""
    alias = re.fullmatch(r"found undefined alias '(.+)'", reason)
    if alias:
        return f"YAML reads `*{alias[1]}` as an alias; put quotes around text that begins with `*`"
    match = re.fullmatch(r"expected (.+), but found (.+)", reason)
    if match:
        end = match[2].replace("'<stream end>'", "the end of the file")
        return f"found {end}, expected {match[1]}"
    return f"not valid YAML 1.2: {reason}"


def _too_large(name: str, line: int) -> TooLargeError:
    most = f"at most {_MOST_VALUES} values in at most {_DEEPEST} levels are read"
    return TooLargeError([f"{name}:{line}: this file is too large or too deep; {most}"])


@lru_cache(maxsize=64)
def _nodes(text: str) -> tuple[Node, ...]:
    """The composed documents, which nobody changes: a plan asks for places in the same files, suites among them."""
    yaml = YAML(typ="safe", pure=True)
    # each level costs it more than the one before
    yaml.max_depth = _DEEPEST + 1
    return tuple(yaml.compose_all(text))


def _characters(node: Node) -> str:
    """The text of a scalar; JSON escapes a character beyond U+FFFF as a pair, and half a pair is no character."""
    return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _whole(text: str) -> Hashable:
    """A whole number of YAML 1.2, or the text when it is too long to be one."""
    plain = text.replace("_", "")
    if len(text) > _LONGEST_NUMBER:
        return text
    base = {"0x": 16, "0o": 8, "0b": 2}.get(plain.lstrip("+-")[:2], 10)
    try:
        return WrittenInt(int(plain, base), text)
    except ValueError:
        return text


def _fraction(text: str) -> Hashable:
    """A number of YAML 1.2 with fraction, exponent, infinity or NaN; the text when it is too long to be one."""
    if len(text) > _LONGEST_NUMBER:
        return text
    plain = text.lower().replace("_", "").replace(".inf", "inf").replace(".nan", "nan")
    try:
        return WrittenFloat(float(plain), text)
    except ValueError:
        return text
