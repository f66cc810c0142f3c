# SPDX-License-Identifier: Apache-2.0
"""One change of the product that tests must notice, named by the code it changes and not by the file it is in."""

from __future__ import annotations

import io
import textwrap
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

HERE = Path(__file__).resolve().parent
PACKAGES = ("library/storqual", "library/module_utils/storqual_core")
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


class NotApplicableError(Exception):
    """The code that a mutant changes is not there, or there more than once, or the change is no Python."""


@dataclass(frozen=True)
class Mutant:
    """`was` is code of the product and `now` what replaces it; layout and comments do not count.

    `area` says which tests must notice, `dies` whether they do. `says` is the fault in a sentence.
    """

    name: str
    says: str
    area: str
    was: str
    now: str
    dies: bool
    chosen: str = ""
    """Which of the area's tests are run, as pytest's -k takes it; empty for all."""


@dataclass(frozen=True)
class Change:
    """A file of the tree and its text with the mutant in it."""

    path: Path
    text: str


def read_areas() -> dict[str, list[str]]:
    """Tests by area: the only place that knows where tests lie."""
    areas: dict[str, list[str]] = _read("areas")
    return areas


def read_mutants() -> list[Mutant]:
    """All mutants, by the name of their file and their own (`judge/pass-by-the-estimate`)."""
    return [
        _mutant(f"{path.stem}/{name}", fields)
        for path in sorted(HERE.glob("*.yml"))
        if path.stem != "areas"
        for name, fields in _read(path.stem).items()
    ]


def _read(name: str) -> Any:
    return YAML(typ="safe").load((HERE / f"{name}.yml").read_text(encoding="utf-8"))


def _mutant(name: str, fields: Mapping[str, Any]) -> Mutant:
    unknown = sorted(fields.keys() - Mutant.__dataclass_fields__.keys())
    if unknown:
        raise ValueError(f"{name}: found {', '.join(unknown)}, which is nothing of a mutant")
    return Mutant(name=name, **fields)


class Sources:
    """The product's files, each taken apart into words of Python when it is asked for."""

    def __init__(self, tree: Path) -> None:
        self.texts = {
            path: path.read_text(encoding="utf-8")
            for package in PACKAGES
            for path in sorted((tree / package).rglob("*.py"))
        }
        self._words: dict[Path, list[Word]] = {}

    def change(self, mutant: Mutant) -> Change:
        """The one file that `mutant` changes, changed. Raises NotApplicableError."""
        wanted = [word for word, _, _ in _words(textwrap.dedent(mutant.was))]
        found = [
            (path, start, end)
            for path, text in self.texts.items()
            # most files lack some word: they need not be taken apart
            if all(word in text for word in wanted)
            for start, end in _occurrences(self._of(path), wanted)
        ]
        if len(found) != 1:
            places = ", ".join(f"{path.name}:{start[0]}" for path, start, _ in found) or "nowhere"
            raise NotApplicableError(f"its code must be in one place, and is found {places}")
        path, start, end = found[0]
        text = _replaced(self.texts[path], start, end, mutant.now)
        try:
            compile(text, str(path), "exec")
        except SyntaxError as problem:
            raise NotApplicableError(f"what it makes of {path.name} is no Python: {problem}") from None
        return Change(path, text)

    def _of(self, path: Path) -> list[Word]:
        if path not in self._words:
            self._words[path] = _words(self.texts[path])
        return self._words[path]


Place = tuple[int, int]
Word = tuple[str, Place, Place]


def _words(text: str) -> list[Word]:
    """Words of Python with where they begin and end; a part of a file ends where it ends, brackets open or not."""
    words: list[Word] = []
    try:
        words.extend(
            (token.string, token.start, token.end)
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type not in _LAYOUT
        )
    except tokenize.TokenError:
        return words
    return words


def _occurrences(words: list[Word], wanted: list[str]) -> Iterable[tuple[Place, Place]]:
    count = len(wanted)
    for first in range(len(words) - count + 1):
        if words[first][0] == wanted[0] and [word for word, _, _ in words[first : first + count]] == wanted:
            yield words[first][1], words[first + count - 1][2]


def _replaced(text: str, start: Place, end: Place, now: str) -> str:
    """The text with `now` between two places, its further lines indented like the line it begins in."""
    lines = text.splitlines(keepends=True)
    head, tail = lines[start[0] - 1][: start[1]], lines[end[0] - 1][end[1] :]
    indent = head[: len(head) - len(head.lstrip())]
    middle = textwrap.dedent(now).strip("\n").replace("\n", f"\n{indent}")
    return "".join([*lines[: start[0] - 1], head, middle, tail, *lines[end[0] :]])
