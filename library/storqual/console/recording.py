# SPDX-License-Identifier: Apache-2.0
"""The files that a console is recorded in: of bounded size, with the beginning and the end kept."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from storqual.base.console_log import NOTE, utc_stamp

SEGMENT = 4 << 20
FIRST, LAST = 2, 4
"""How many segments are kept of the beginning and of the end: 24 MiB with those of a size."""
_NAME = re.compile(r"([0-9]{20})\.console")


@dataclass(frozen=True)
class Recording:
    """A folder with segments, each named by the place of its first byte among all that was ever written."""

    folder: Path
    segment: int = SEGMENT

    def append(self, lines: bytes) -> None:
        """Add whole lines; in the middle of what was recorded, the oldest are given up for them."""
        for part in self._parts(lines):
            starts = self._starts()
            last = starts[-1] if starts else 0
            end = self._end(starts)
            if end - last >= self.segment:
                last = end
                for given_up in starts[FIRST : len(starts) + 1 - LAST]:
                    self._path(given_up).unlink(missing_ok=True)
            with self._path(last).open("ab") as file:
                file.write(part)

    def _parts(self, lines: bytes) -> Iterator[bytes]:
        """Of much that came at once, pieces that end at a line's end."""
        while len(lines) > self.segment:
            cut = lines.rfind(b"\n", 0, self.segment) + 1 or len(lines)
            yield lines[:cut]
            lines = lines[cut:]
        if lines:
            yield lines

    def mark(self) -> int:
        """The place behind the last byte; places stay what they are when something is given up."""
        return self._end(self._starts())

    def read(self, since: int = 0, until: int | None = None) -> bytes:
        """What is kept from one place to another; a note says how many bytes were given up between."""
        content, at = b"", since
        for start in self._starts():
            try:
                data = self._path(start).read_bytes()
            except FileNotFoundError:
                # given up meanwhile: the next one tells it
                continue
            end = start + len(data) if until is None else min(until, start + len(data))
            if end <= at:
                continue
            if start > at:
                note = f"{start - at} bytes are not kept here: more was said than is recorded"
                content += f"{utc_stamp(self._path(start).stat().st_mtime)} {NOTE} {note}\n".encode()
                at = start
            content += data[at - start : end - start]
            at = end
        return content

    def _starts(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        names = map(_NAME.fullmatch, os.listdir(self.folder))  # noqa: PTH208 - names alone are wanted
        return sorted(int(name[1]) for name in names if name)

    def _end(self, starts: list[int]) -> int:
        return starts[-1] + self._path(starts[-1]).stat().st_size if starts else 0

    def _path(self, start: int) -> Path:
        return self.folder / f"{start:020d}.console"
