# SPDX-License-Identifier: Apache-2.0
"""sg_dd (sg3_utils): sequential reads by SCSI commands that pass the block layer by, and what it says of them.

As dd it tells its counts on SIGUSR1 and on SIGINT. Its records are blocks of the drive, not reads; bytes are told as
a rate only, in two decimals, and stand for an interval.
"""

from __future__ import annotations

import re

from ..kit.errors import ToolError
from .dd import WAYS, CopyReport, CopySummary, read_records

RECORD_BYTES: int | None = 512
"""A record is a block of the drive; drives of other blocks refuse."""

_TIME = re.compile(
    r"(?:Interrupted by signal,)?\s*time to transfer data(?: so far)?: ([0-9]{1,9})\.([0-9]{6}) secs"
    r"(?: at ([0-9]{1,9})\.([0-9]{2}) MB/sec)?\Z"
)
_SAID = re.compile(r"Progress report, continuing \.\.\.|Interrupted by signal,|\s*remaining block count=[0-9]{1,19}")
_HALF_RATE = 5000
"""Bytes a second; a rate is printed in hundredths of 10^6."""
_NO_RATE = 511
"""Bytes at most where no rate is told."""


def argv(node: str, *, bs: int, offset: int, size: int) -> list[str]:
    """Read `size` bytes (0: to the end) of `node` from `offset` on, `bs` bytes a command; keep nothing of them."""
    block = RECORD_BYTES or bs
    words = ["sg_dd", f"if={node}", "of=/dev/null", f"bs={block}", f"bpt={bs // block}", "blk_sgio=1", "time=1"]
    words += [f"skip={offset // block}"] if offset else []
    return words + ([f"count={size // bs * (bs // block)}"] if size else [])


def parse_report(text: str) -> CopyReport:
    """Standard error of sg_dd. Raises ToolError for a summary that is cut."""
    summaries: list[CopySummary] = []
    notes: list[str] = []
    time: tuple[int, int] | None = None
    moved = (0, 0)
    counts: list[tuple[int, int]] = []
    for line in text.splitlines():
        timed, records = _TIME.match(line), read_records(line, len(counts))
        if timed and time is None:
            least = int(timed.group(1)) * 10**9 + int(timed.group(2)) * 1000
            time = least, least + 1000
            moved = _moved(timed.group(3), timed.group(4), time)
        elif records is not None and time is not None:
            counts.append(records)
            if len(counts) == len(WAYS):
                (full_in, part_in), (full_out, part_out) = counts
                summaries.append(CopySummary(full_in, full_out, part_in + part_out, moved, time))
                time, counts = None, []
        elif _SAID.fullmatch(line):
            continue
        elif timed or records is not None or counts:
            raise ToolError(f"sg_dd told a summary that is cut at: {line.strip()[:120] or 'an empty line'}")
        elif line.strip():
            notes.append(line.strip()[:300])
    if time is not None:
        raise ToolError("sg_dd told a summary that is cut at its end")
    return CopyReport(tuple(summaries), tuple(notes))


def _moved(whole: str | None, hundredths: str | None, time: tuple[int, int]) -> tuple[int, int]:
    """The bytes that a rate over a time can stand for."""
    if whole is None or hundredths is None:
        return 0, _NO_RATE
    rate = int(whole) * 10**6 + int(hundredths) * 10**4
    return max(rate - _HALF_RATE, 0) * time[0] // 10**9, (rate + _HALF_RATE) * time[1] // 10**9 + 1
