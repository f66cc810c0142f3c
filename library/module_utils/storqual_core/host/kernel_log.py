# SPDX-License-Identifier: Apache-2.0
"""The kernel's log around a launch: markers, the records between them, and where neither is permitted, why."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Iterable

_HEAD = re.compile(r"([0-9]{1,9}),([0-9]{1,20}),(-?[0-9]{1,20}),[^;]*;(.*)\Z", re.DOTALL)
_DEVICE = "/dev/kmsg"
_MOST_RECORDS = 20000


@dataclass(frozen=True)
class Record:
    """One record: whether the kernel itself wrote it, syslog level (0 is worst), sequence number, time, text.

    The time is in microseconds since boot. Programs can write to this log too; what they say is no finding.
    """

    from_kernel: bool
    level: int
    sequence: int
    time_us: int
    text: str

    def line(self) -> str:
        """As dmesg shows it."""
        return f"[{self.time_us // 1_000_000:5d}.{self.time_us % 1_000_000:06d}] {self.text}"


def parse_record(data: str) -> Record | None:
    r"""One record of /dev/kmsg (kernel Documentation/ABI/testing/dev-kmsg); None for something else.

    Lines after the first, which begin with a blank, are the record's dictionary (SUBSYSTEM=, DEVICE=) and are left
    out; bytes that the kernel wrote as `\xhh` stay written so.
    """
    match = _HEAD.match(data)
    if match is None:
        return None
    text = "\n".join(line for line in match.group(4).splitlines() if not line.startswith(" ")).rstrip()
    priority = int(match.group(1))
    return Record(priority >> 3 == 0, priority & 7, int(match.group(2)), int(match.group(3)), text)


class KernelLog:
    """Follows the kernel's log from the moment it is made; with `whole` from the oldest record it still holds.

    `reason` is empty when records can be read, else it says why not; `marker_reason` the same for writing markers.
    `overflowed` counts how often records were overwritten before they could be read: then the evidence has a hole.
    """

    def __init__(self, device: str = _DEVICE, *, whole: bool = False) -> None:
        self.reason = ""
        self.marker_reason = ""
        self.overflowed = 0
        self._handle = -1
        self._markers = -1
        try:
            self._handle = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._handle, 0, os.SEEK_SET if whole else os.SEEK_END)
        except OSError as problem:
            self._close_reader()
            self.reason = f"the kernel's log cannot be read: {device}: {problem.strerror}"
        try:
            self._markers = os.open(device, os.O_WRONLY | os.O_CLOEXEC)
        except OSError as problem:
            self.marker_reason = f"no markers in the kernel's log: {device}: {problem.strerror}"

    def mark(self, text: str) -> None:
        """Write a marker for people who read the log; what belongs to a launch is known without it, by order."""
        if self._markers < 0:
            return
        try:
            os.write(self._markers, f"<5>storqual: {text}\n".encode("ascii", "replace")[:900])
        except OSError as problem:
            self.marker_reason = f"no markers in the kernel's log: {problem.strerror}"

    def read(self) -> list[Record]:
        """The records since the last call. Raises nothing; a log that cannot be read any more sets `reason`."""
        records: list[Record] = []
        while self._handle >= 0 and len(records) < _MOST_RECORDS:
            try:
                data = os.read(self._handle, 8192)
            except OSError as problem:
                if problem.errno == errno.EAGAIN:
                    break
                if problem.errno == errno.EPIPE:
                    self.overflowed += 1
                    continue
                if problem.errno == errno.EINTR:
                    continue
                self._close_reader()
                self.reason = f"the kernel's log cannot be read any more: {problem.strerror}"
                break
            if not data:
                break
            record = parse_record(data.decode("utf-8", "replace"))
            if record is not None:
                records.append(record)
        return records

    def close(self) -> None:
        """Close both ends."""
        self._close_reader()
        if self._markers >= 0:
            with suppress(OSError):
                os.close(self._markers)
            self._markers = -1

    def _close_reader(self) -> None:
        if self._handle >= 0:
            with suppress(OSError):
                os.close(self._handle)
            self._handle = -1


def texts(records: Iterable[Record]) -> list[str]:
    """The records as lines for a file."""
    return [record.line() for record in records]
