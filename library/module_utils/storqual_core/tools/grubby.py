# SPDX-License-Identifier: Apache-2.0
"""grubby: what it says of entries and of the default. Read as evidence only, for its indices are not those of GRUB.

Its errors come before its answer, on any stream, and some of its successes are told on standard error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..kit.errors import ToolError
from ..kit.labelled_text import first_line, line_error, numbered_lines

_ENTRY_KEYS = ("index", "kernel", "args", "root", "initrd", "title", "id", "boot")
_NOTE = re.compile(r"(?:[a-z][\w.-]*|/\S+): \S.*")
_KERNEL = re.compile(r"/[^\s:\"]*/?(?:vmlinuz|vmlinux|Image)[^\s:\"]*")
_SET = re.compile(r"The default is (/\S+\.conf) with index ([0-9]{1,4}) and kernel (/\S+)")


@dataclass(frozen=True)
class GrubbyEntry:
    """One entry; `kernel` is empty for one that boots no Linux."""

    index: int
    kernel: str = ""
    arguments: str = ""
    root: str = ""
    initrd: str = ""
    title: str = ""
    identifier: str = ""


@dataclass(frozen=True)
class GrubbyDefault:
    """What is the default: the kernel's path or an index; `notes` are the errors around the answer."""

    kernel: str = ""
    index: int | None = None
    entry: str = ""
    notes: tuple[str, ...] = ()


def parse_info(text: str) -> list[GrubbyEntry]:
    """`grubby --info=ALL` or `=DEFAULT`. Raises ToolError with the line that is none of an entry."""
    records: list[dict[str, str]] = []
    for number, line in numbered_lines(text):
        key, equals, value = line.partition("=")
        if line == "non linux entry" and records and list(records[-1]) == ["index"]:
            records[-1]["kernel"] = ""
        elif equals and key in _ENTRY_KEYS:
            if value.startswith('"') and not (len(value) > 1 and value.endswith('"')):
                raise line_error("grubby --info", number, line, "a value with both of its quotes")
            if key == "index":
                if not re.fullmatch("[0-9]{1,4}", value) or any(record["index"] == value for record in records):
                    raise line_error("grubby --info", number, line, "an index of its own")
                records.append({})
            if not records or key in records[-1]:
                raise line_error("grubby --info", number, line, "a part of one entry")
            records[-1][key] = value[1:-1] if value.startswith('"') else value
        elif not _NOTE.fullmatch(line):
            raise line_error("grubby --info", number, line, "a key and its value")
    if not records:
        raise ToolError(f"grubby --info told of no entry: {first_line(text)}")
    for record in records:
        if "kernel" not in record or (record["kernel"] and "title" not in record):
            raise ToolError(f"grubby --info: the entry with index {record['index']} ends before its kernel and title")
    return [
        GrubbyEntry(
            int(record["index"]),
            record["kernel"],
            record.get("args", ""),
            *(record.get(name, "") for name in ("root", "initrd", "title", "id")),
        )
        for record in records
    ]


def parse_default(text: str) -> GrubbyDefault:
    """`grubby --default-kernel`, `--default-index` and `--set-default`, both streams. Raises ToolError."""
    answers: list[GrubbyDefault] = []
    notes: list[str] = []
    for number, line in numbered_lines(text):
        told = _SET.fullmatch(line)
        if told:
            answers.append(GrubbyDefault(told.group(3), int(told.group(2)), told.group(1)))
        elif _KERNEL.fullmatch(line):
            answers.append(GrubbyDefault(line))
        elif re.fullmatch("[0-9]{1,4}", line):
            answers.append(GrubbyDefault(index=int(line)))
        elif _NOTE.fullmatch(line):
            notes.append(line)
        else:
            raise line_error("grubby", number, line, "a kernel, an index or an error")
    if len(answers) != 1:
        raise ToolError(f"grubby named {len(answers)} defaults and not one: {first_line(text)}")
    (answer,) = answers
    return GrubbyDefault(answer.kernel, answer.index, answer.entry, tuple(notes))
