# SPDX-License-Identifier: Apache-2.0
"""Boot Loader Specification entries: one file a kernel, and the two orders that GRUB's two readers put them in.

Red Hat's reader (`blscfg` of EL 8 to 10 and Fedora) and upstream's (GRUB 2.14, module `blsuki`) stop reading a file
at its first empty line or line without a value, take the first of several `options`, and show the newest entry first.
Neither knows of boot counting: a counter is a part of the name to them, as it is to systemd-boot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import zip_longest
from pathlib import Path
from typing import Callable, Mapping, Sequence, TypeVar

from ..kit.errors import ToolError
from ..kit.labelled_text import line_error

SUFFIX = ".conf"
_LARGEST = 1 << 20
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_VARIABLE = re.compile(r"\$(?:([A-Za-z0-9_]+)|\{([A-Za-z0-9_]+)\})")
_COUNTER = re.compile(r"\+([0-9]{1,6})(?:-([0-9]{1,6}))?$")


@dataclass(frozen=True)
class EntryKey:
    """One line of an entry."""

    name: str
    value: str
    line: int


@dataclass(frozen=True)
class BootEntry:
    """One entry; `identifier` is the file's name without `.conf`, and not the key `id`.

    `ignored` is the number of the first line that GRUB does not read, 0 when it reads all.
    """

    identifier: str
    file: str
    keys: tuple[EntryKey, ...]
    ignored: int = 0

    def values(self, name: str) -> list[str]:
        """The values of a key, in order."""
        return [key.value for key in self.keys if key.name == name]

    def value(self, name: str) -> str:
        """The value of a key as GRUB takes it, the first one; empty without one."""
        return next(iter(self.values(name)), "")

    @property
    def base(self) -> str:
        """The identifier without the counter of the tries, as `bootctl list` says it."""
        return _COUNTER.sub("", self.identifier)

    @property
    def counted(self) -> bool:
        """Whether a loader renames it at each boot: an entry of that name is gone afterwards."""
        return self.base != self.identifier

    def problems(self) -> list[str]:
        """Why it cannot be a template: what its readers take differently."""
        several = [key.line for key in self.keys if key.name in ("options", "linux")][:3]
        doubled = [name for name in ("options", "linux") if len(self.values(name)) > 1]
        flaws = [] if self.value("linux") else [f"{self.file}: it has no line `linux`, so it is not in the menu"]
        if self.ignored:
            flaws.append(f"{self.file}, line {self.ignored}: GRUB stops reading here, and more lines follow")
        if doubled:
            flaws.append(f"{self.file}, line {several[-1]}: `{doubled[0]}` is there twice, and readers differ in it")
        return flaws


def parse_entry(text: str, file: str = f"entry{SUFFIX}") -> BootEntry:
    """One entry's file, as GRUB reads it. Raises ToolError, with file and line, for a line that is no key."""
    keys: list[EntryKey] = []
    ignored = 0
    # GRUB takes every carriage return out, and ends a line at a newline only
    for number, line in enumerate(text.replace("\r", "").split("\n"), start=1):
        words = line.lstrip(" \t")
        if words.startswith("#"):
            continue
        name, _, value = re.sub("[ \t]", "\n", words, count=1).partition("\n")
        if "\t" in words.partition(" ")[0] and " " in words:
            # Red Hat's reader looks for a blank first, and takes the tab for a part of the key
            raise line_error(f"{file}: this entry", number, line, "a key, a blank and its value")
        if not words or not value.strip(" \t"):
            ignored = ignored or number
            continue
        if ignored:
            return BootEntry(_identifier(file), file, tuple(keys), ignored)
        if not _KEY.fullmatch(name) or any(ord(char) < 32 and char != "\t" for char in words) or "\ufffd" in words:
            raise line_error(f"{file}: this entry", number, line, "a key and its value")
        keys.append(EntryKey(name, value.lstrip(" \t"), number))
    if not keys:
        raise ToolError(f"{file}: line 1 is no key with a value, so there is no entry in it")
    return BootEntry(_identifier(file), file, tuple(keys))


def _identifier(file: str) -> str:
    name = file.rpartition("/")[2]
    return name[: -len(SUFFIX)] if name.endswith(SUFFIX) else name


def read_folder(folder: str) -> list[BootEntry]:
    """The entries in a folder, in no order. Raises ToolError for one that cannot be read.

    A file that is empty, or all NULs, is what a power cut leaves of a new one: an entry without a kernel.
    """
    entries = []
    try:
        files = [path for path in sorted(Path(folder).iterdir()) if path.name.endswith(SUFFIX)]
        for path in files:
            if path.name.startswith(".") or path.stat().st_size > _LARGEST:
                continue
            text, file = path.read_bytes(), str(path)
            blank = not text.strip(b"\0 \t\r\n")
            entries.append(
                BootEntry(_identifier(file), file, ())
                if blank
                else parse_entry(text.decode("utf-8", "replace"), file)
            )
    except OSError as problem:
        raise ToolError(f"{problem.filename}: {problem.strerror}, so the boot entries are not known") from problem
    return entries


def expand(value: str, variables: Mapping[str, str], where: str) -> str:
    """A value with its `$variables` in place. Raises ToolError for one that is not known, or is within a word.

    GRUB takes a variable that nobody set for nothing: what the kernel would get is then not known here.
    """
    words = []
    for word in value.split():
        names = [plain or braced for plain, braced in _VARIABLE.findall(word)]
        if names and not _VARIABLE.fullmatch(word):
            raise ToolError(f"{where}: `{word}` is not a variable alone, and GRUB's readers expand it differently")
        if names and names[0] not in variables:
            raise ToolError(f"{where}: `{word}` is set neither in grubenv nor in grub.cfg, so its value is not known")
        if "$" in word and not names:
            raise ToolError(f"{where}: `{word}` is no variable that is understood")
        words += variables[names[0]].split() if names else [word]
    return " ".join(words)


Compare = Callable[[str, str], int]
_SEGMENT = re.compile(r"[0-9]+|[A-Za-z]+|~")


_Word = TypeVar("_Word", int, str)


def _three(left: _Word, right: _Word) -> int:
    return (left > right) - (left < right)


def rpm_compare(first: str, second: str) -> int:
    """Which of two versions rpm takes for the newer one (1: the first), as Red Hat's blscfg has it."""
    if first == second:
        return 0
    for left, right in zip_longest(_SEGMENT.findall(first), _SEGMENT.findall(second)):
        if "~" in (left, right):
            if left != right:
                return 1 if left != "~" else -1
            continue
        if left is None or right is None:
            return 1 if right is None else -1
        if left[0].isdigit() != right[0].isdigit():
            return 1 if left[0].isdigit() else -1
        if left != right:
            order = _three(int(left), int(right)) if left[0].isdigit() else _three(left, right)
            if order:
                return order
    return 0


def _name_version_release(identifier: str) -> tuple[str, str, str]:
    """What Red Hat's reader takes a file's name apart into: at its last two dashes, what is missing at the end."""
    head, dash, release = identifier.rpartition("-")
    if not dash:
        return identifier, "", ""
    name, dash, version = head.rpartition("-")
    return (name, version, release) if dash else (head, release, "")


def red_hat(first: str, second: str) -> int:
    for left, right in zip(_name_version_release(first), _name_version_release(second)):
        order = rpm_compare(left, right)
        if order:
            return order
    return 0


_FILE_SUFFIX = re.compile(r"(?:\.[A-Za-z~][A-Za-z0-9~]*)*$")


def _weight(char: str) -> int:
    if char.isdigit() or not char:
        return 0 if char else -1
    return -2 if char == "~" else ord(char) + (0 if char.isalpha() else 256)


def _revision_compare(first: str, second: str) -> int:
    """`verrevcmp` of gnulib's filevercmp: runs of other characters by weight, then runs of digits by value."""
    while first or second:
        left, right = (re.match(r"[^0-9]*", text).group() for text in (first, second))  # type: ignore[union-attr]
        for at in range(max(len(left), len(right))):
            # where the run of one ends, its first digit, or its end, weighs against a character of the other
            order = _three(_weight(first[at : at + 1]), _weight(second[at : at + 1]))
            if order:
                return order
        first, second = first[len(left) :], second[len(right) :]
        left, right = (re.match(r"[0-9]*", text).group() for text in (first, second))  # type: ignore[union-attr]
        order = _three(int(left or "0"), int(right or "0"))
        if order:
            return order
        first, second = first[len(left) :], second[len(right) :]
    return 0


def upstream(first: str, second: str) -> int:
    """Upstream's order of two identifiers: gnulib's `filevercmp` of the files' names."""
    names = [identifier + SUFFIX for identifier in (first, second)]
    bare = [name[: _FILE_SUFFIX.search(name[1:]).start() + 1] for name in names]  # type: ignore[union-attr]
    if names[0].startswith(".") != names[1].startswith("."):
        return -1 if names[0].startswith(".") else 1
    return _revision_compare(*bare) or _revision_compare(*names)


def in_order(entries: Sequence[BootEntry], compare: Compare) -> list[BootEntry]:
    """The entries of a menu, newest first; those without a kernel are in none.

    Raises ToolError for two names that are one to the reader: it shows only the one that it met first.
    """
    key = cmp_to_key(compare)
    ordered = sorted(entries, key=lambda entry: key(entry.identifier), reverse=True)
    for newer, older in zip(ordered, ordered[1:]):
        if compare(newer.identifier, older.identifier) == 0:
            raise ToolError(f"{newer.file} and {older.file} have one name to GRUB, which shows one of them")
    return [entry for entry in ordered if entry.value("linux")]
