# SPDX-License-Identifier: Apache-2.0
"""Values out of the JSON of a batch file: what does not fit becomes a problem with its key, never an exception."""

from __future__ import annotations

import re
from typing import Any, Collection, Mapping, Sequence

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")


class EntryReader:
    """Values out of parsed JSON; what does not fit becomes a problem and a harmless stand-in."""

    def __init__(self, where: str, problems: list[str]) -> None:
        self.where = where
        self.problems = problems
        self._before = len(problems)

    @property
    def sound(self) -> bool:
        return len(self.problems) == self._before

    def inside(self, name: str) -> EntryReader:
        return EntryReader(f"{self.where}: {name}", self.problems)

    def complain(self, key: str, value: object, expected: str) -> None:
        self.problems.append(f"{self.where}: {key}: found {str(value)[:120]!r}, expected {expected}")

    def unknown(self, entry: Mapping[str, Any], known: set[str] | frozenset[str], place: str) -> None:
        for key in sorted(set(entry) - known):
            self.complain(place or key, key, "one of " + ", ".join(sorted(known)))

    def keys(self, entry: object, needed: Collection[str], optional: Collection[str] = ()) -> Mapping[str, Any]:
        """A mapping with these keys; empty, and complained of, for anything else."""
        if isinstance(entry, dict) and set(needed) <= set(entry) <= {*needed, *optional}:
            return entry
        expected = f"a mapping of {', '.join(sorted({*needed, *optional}))}"
        self.problems.append(f"{self.where}: found {str(entry)[:120]!r}, expected {expected}")
        return {}

    def whole(self, entry: Mapping[str, Any], key: str, least: int, most: int) -> int:
        value = entry.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.complain(key, value, f"a whole number from {least} to {most}")
        return least

    def text(self, entry: Mapping[str, Any], key: str) -> str:
        """A text that is not empty."""
        value = entry.get(key)
        if isinstance(value, str) and value:
            return value
        self.complain(key, value, "a text")
        return ""

    def name(self, entry: Mapping[str, Any], key: str) -> str:
        value = self.text(entry, key)
        if value and not _NAME.match(value):
            self.complain(key, value, "letters, digits, dot, dash and underscore")
        return value

    def choice(self, entry: Mapping[str, Any], key: str, known: Sequence[str]) -> str:
        """One of the known words; the first of them for what is none."""
        value = entry.get(key)
        if isinstance(value, str) and value in known:
            return value
        self.complain(key, value, f"one of {', '.join(known)}")
        return known[0] if known else ""

    def number(
        self, entry: Mapping[str, Any], key: str, *, least: float, default: float | None = None, whole: bool = False
    ) -> float:
        """A finite number not below `least`."""
        value = entry.get(key, default)
        fits = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if fits and isinstance(value, (int, float)) and least <= value < float("inf"):
            return value
        self.complain(key, value, f"a {'whole ' if whole else ''}number from {least:g}")
        return least

    def words(self, entry: Mapping[str, Any], key: str, *, least: int) -> tuple[str, ...]:
        value: Sequence[Any] = entry.get(key) or []
        if isinstance(value, list) and len(value) >= least and all(isinstance(word, str) and word for word in value):
            return tuple(value)
        self.complain(key, value, f"a list of at least {least} texts")
        return ()

    def mapping(self, entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """A mapping, empty for what is none."""
        value = entry.get(key)
        if isinstance(value, dict):
            return value
        self.complain(key, value, "a mapping")
        return {}
