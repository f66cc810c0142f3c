# SPDX-License-Identifier: Apache-2.0
"""fio's log of I/Os per second, and what it leaves out of it."""

from __future__ import annotations

from typing import Sequence

_LEAST_REST_MS = 500.0
_MOST = 1_000_000


def parse_log(text: str) -> list[tuple[int, int, int]]:
    """Time (ms since the ramp's end), value, direction of each entry; a line that is no entry is left out."""
    entries = []
    for line in text.splitlines():
        words = line.split(",")
        try:
            time_ms, value, way = int(words[0]), int(words[1]), int(words[2])
        except (ValueError, IndexError):
            continue
        if time_ms >= 0 and value >= 0:
            entries.append((time_ms, value, way))
    return entries


def per_second(
    logs: Sequence[str], *, jobs_ios: Sequence[int], runtime_ns: int, interval_ms: int = 1000
) -> list[float]:
    """I/Os per second of every interval, in order; a stalled interval, which fio leaves out, is 0.

    fio never logs the interval that is open when it ends. What the log does not hold is known exactly: the I/Os of
    the whole run (`jobs_ios`, one number per log) less those logged, over the time that is left, when that is half a
    second or more. Empty when the logs cannot tell: another number of logs than jobs, or nothing in them.
    """
    if len(logs) != len(jobs_ios) or interval_ms <= 0:
        return []
    sums: dict[int, float] = {}
    logged_ios = 0.0
    last_ms = 0
    for text in logs:
        before: dict[int, int] = {}
        for time_ms, value, way in parse_log(text):
            number = max(round(time_ms / interval_ms), 1)
            if number > _MOST:
                continue
            sums[number] = sums.get(number, 0.0) + value
            # an entry covers the time since the one before it, or one interval when those between were left out
            spent = time_ms - before.get(way, 0)
            logged_ios += value * (spent if spent < 1.5 * interval_ms else interval_ms) / 1000.0
            before[way] = time_ms
            last_ms = max(last_ms, time_ms)
    series = [sums.get(number, 0.0) for number in range(1, max(sums, default=0) + 1)]
    left_ms = runtime_ns / 1e6 - last_ms
    if left_ms < _LEAST_REST_MS or (not sums and left_ms >= 1.5 * interval_ms):
        return series
    rest = max(sum(jobs_ios) - logged_ios, 0.0) / (left_ms / 1000.0)
    return series + [round(rest, 3)] * max(int(left_ms // interval_ms), 1)
