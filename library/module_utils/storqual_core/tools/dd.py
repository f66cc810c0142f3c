# SPDX-License-Identifier: Apache-2.0
"""dd (coreutils): sequential reads by plain system calls, and what it says of them when it is asked or ends.

It tells its counts on SIGUSR1 and goes on; on SIGINT it tells them once more and ends by that signal. Records are
exact; the time has six significant digits, so a time that was printed stands for an interval.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from ..kit.errors import ToolError

RECORD_BYTES: int | None = None
"""A record is what one read asks for."""

_RECORDS = re.compile(r"\s*([0-9]{1,19})\+([0-9]{1,9}) records (in|out)\Z")
_BYTES = re.compile(
    r"([0-9]{1,19}) bytes? (?:\([^()]*\) )?copied, ([0-9]{1,12}(?:\.[0-9]{1,9})?(?:e[-+][0-9]{2})?) s, .+\Z"
)
_DIGITS = 6
_NS = 10**9


@dataclass(frozen=True)
class CopySummary:
    """What a copy had done at one moment: records, bytes written and nanoseconds; the last two as intervals.

    `partial` are records of less than a whole block, in and out together.
    """

    records_in: int
    records_out: int
    partial: int
    bytes: tuple[int, int]
    time_ns: tuple[int, int]


@dataclass(frozen=True)
class CopyReport:
    """All summaries of one copy in their order, and every line that is no part of one."""

    summaries: tuple[CopySummary, ...]
    notes: tuple[str, ...]


def argv(node: str, *, bs: int, offset: int, size: int) -> list[str]:
    """Read `size` bytes (0: to the end) of `node` from `offset` on, past the page cache, and keep nothing of them."""
    flags = "direct,skip_bytes" if offset else "direct"
    words = ["dd", f"if={node}", "of=/dev/null", f"bs={bs}", f"iflag={flags}"]
    return words + ([f"skip={offset}"] if offset else []) + ([f"count={size // bs}"] if size else [])


def parse_report(text: str) -> CopyReport:
    """Standard error of dd. Raises ToolError for a summary that is cut."""
    summaries: list[CopySummary] = []
    notes: list[str] = []
    counts: list[tuple[int, int]] = []
    for line in text.splitlines():
        records, moved = read_records(line, len(counts)), _BYTES.match(line)
        if records is not None:
            counts.append(records)
        elif moved and len(counts) == len(WAYS):
            size = int(moved.group(1))
            (full_in, part_in), (full_out, part_out) = counts
            summaries.append(CopySummary(full_in, full_out, part_in + part_out, (size, size), _time(moved.group(2))))
            counts = []
        elif counts or moved or _RECORDS.match(line):
            raise ToolError(f"dd told a summary that is cut at: {line.strip()[:120] or 'an empty line'}")
        elif line.strip():
            notes.append(line.strip()[:300])
    if counts:
        raise ToolError("dd told a summary that is cut at its end")
    return CopyReport(tuple(summaries), tuple(notes))


WAYS = ("in", "out")
"""The two lines of records in a summary, in their order."""


def read_records(line: str, seen: int) -> tuple[int, int] | None:
    """Whole and partial records of the next such line of a summary, after so many of it; None for any other line."""
    found = _RECORDS.match(line)
    if found is None or seen >= len(WAYS) or found.group(3) != WAYS[seen]:
        return None
    return int(found.group(1)), int(found.group(2))


def _time(text: str) -> tuple[int, int]:
    """What a time with six significant digits can stand for (nanoseconds); zeros at its end are not printed."""
    seconds = Decimal(text)
    half = Decimal(5).scaleb(seconds.adjusted() - _DIGITS) if seconds else Decimal(5).scaleb(-_DIGITS - 4)
    return max(int((seconds - half) * _NS), 0), int((seconds + half) * _NS) + 1
