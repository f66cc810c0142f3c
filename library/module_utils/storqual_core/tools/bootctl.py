# SPDX-License-Identifier: Apache-2.0
"""systemd-boot, and GRUB with its interface (grub2-bls): entries, and the EFI variables that choose among them.

`bootctl set-oneshot` takes any name. The loader matches it, as a pattern, against whole file names: of a counted
entry with its counter, where `bootctl list` leaves that out. A name that matches none is dropped without a word.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

from ..kit.errors import ToolError
from ..kit.labelled_text import first_line

_VENDOR = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
ENTRIES, DEFAULT, ONE_SHOT = "LoaderEntries", "LoaderEntryDefault", "LoaderEntryOneShot"


@dataclass(frozen=True)
class ListedEntry:
    """One entry as `bootctl list` tells of it; `file` is empty for one that only the loader knows of."""

    identifier: str
    file: str
    title: str
    version: str
    linux: str
    initrd: tuple[str, ...]
    options: str
    reported: bool
    default: bool


def parse_list(text: str) -> list[ListedEntry]:
    """`bootctl list --json`: an array, or an object on each line (systemd 252). Raises ToolError."""
    rows: list[Any] = []
    try:
        if text.lstrip().startswith("["):
            body = json.loads(text)
            rows = body if isinstance(body, list) else [body]
        else:
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as problem:
        raise ToolError(f"bootctl list: {problem}, which is not the JSON of entries: {first_line(text)}") from None
    if not rows:
        raise ToolError(f"bootctl list told of no entry: {first_line(text)}")
    return [_listed(row, number) for number, row in enumerate(rows, start=1)]


def _listed(row: object, number: int) -> ListedEntry:
    if not isinstance(row, dict):
        raise ToolError(f"bootctl list, entry {number}: found {row!r:.80}, expected an entry with its id")

    def text(name: str) -> str:
        value = row.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        raise ToolError(f"bootctl list, entry {number}: found {name} {value!r:.80}, expected a text")

    if not text("id"):
        raise ToolError(f"bootctl list, entry {number}: found {row!r:.80}, expected an entry with its id")
    initrd = row.get("initrd") or []
    flags = [row.get(name) or False for name in ("isReported", "isDefault")]
    if not isinstance(initrd, list) or not all(isinstance(each, str) for each in initrd):
        raise ToolError(f"bootctl list, entry {number}: found initrd {initrd!r:.80}, expected paths")
    if not all(isinstance(flag, bool) for flag in flags):
        raise ToolError(f"bootctl list, entry {number}: found {flags!r:.80} for isReported and isDefault")
    names = ("id", "path", "title", "version", "linux")
    return ListedEntry(*(text(name) for name in names), tuple(initrd), text("options"), *flags)


def decode_strings(data: bytes, name: str) -> list[str]:
    """The texts in an EFI variable's data: UTF-16, each with a NUL behind it. Raises ToolError."""
    if len(data) % 2:
        raise ToolError(f"EFI variable {name}: {len(data)} bytes are no UTF-16 text")
    try:
        return [word for word in data.decode("utf-16-le").split("\0") if word]
    except UnicodeDecodeError as problem:
        raise ToolError(f"EFI variable {name}: {problem.reason} at byte {problem.start}") from None


def read_variable(efivars: str, name: str) -> list[str] | None:
    """The texts in a variable of the loader, None where it is not set. Raises ToolError.

    It is read whole: the file answers no read from an offset. The first four bytes are attributes.
    """
    file = Path(efivars) / f"{name}-{_VENDOR}"
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise ToolError(f"{file}: {problem.strerror}") from problem
    if len(data) < 4:
        raise ToolError(f"{file}: {len(data)} bytes, expected four of attributes and a text")
    return decode_strings(data[4:], name)


def match_identifier(wanted: str, files: Sequence[str], loaded: Sequence[str]) -> str:
    """The one name by which the loader knows an entry, for the name of its file as it is now. Raises ToolError.

    `loaded` is LoaderEntries: what the loader found when it started; an entry of ours is newer than that.
    """
    if any(char in wanted for char in "*?[]\\"):
        raise ToolError(f"{wanted}: the loader would take this name for a pattern")
    if wanted not in files:
        beside = [name for name in files if name.partition("+")[0] == wanted.rpartition(".conf")[0]]
        known = f"; there is {', '.join(beside)}" if beside else ""
        raise ToolError(f"no boot entry has the file {wanted}{known}: the loader would drop the name without a word")
    if loaded and not set(files) & set(loaded):
        raise ToolError(
            f"the loader found {', '.join(loaded[:3])} when it started, and none of them is among the entry files "
            "here: this is not the partition that it reads"
        )
    return wanted
