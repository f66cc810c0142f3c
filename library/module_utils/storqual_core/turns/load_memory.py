# SPDX-License-Identifier: Apache-2.0
"""Memory of a data load: pieces of every shape that a driver must transfer, with guard bytes around them."""

from __future__ import annotations

import ctypes
import mmap
import random
from contextlib import suppress
from dataclasses import dataclass
from typing import Sequence

from .load_levels import widths

PAGE = 4096
_HUGE = 2 << 20
_GUARD = 64
_MOST_PIECES = 900
"""The kernel takes 1024 pieces in one call."""
_SENTINEL = bytes(range(1, 256)) * (_HUGE // 255 + 1)
_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"


@dataclass(frozen=True)
class Shaped:
    """The pieces of one transfer in their order, and the guards beside them."""

    pieces: Sequence[memoryview]
    guards: Sequence[memoryview]
    repeats: bool = False

    def put(self, data: bytes | bytearray) -> None:
        """Spread data over the pieces."""
        at = 0
        for piece in self.pieces:
            piece[:] = data[at : at + len(piece)]
            at += len(piece)

    def clear(self) -> None:
        """Fill pieces and guards with what no sector is made of: whatever is not transferred stays seen."""
        for part in (*self.pieces, *self.guards):
            for at in range(0, len(part), _HUGE):
                part[at : at + _HUGE] = _SENTINEL[: len(part[at : at + _HUGE])]

    def data(self) -> bytes:
        return b"".join(self.pieces)

    def overrun(self) -> bool:
        """Whether something outside of the pieces changed since they were cleared."""
        return any(bytes(guard) != _SENTINEL[: len(guard)] for guard in self.guards)


class Arena:
    """Pages and huge pages for transfers of at most `most` bytes. One transfer at a time uses it.

    With a `request` (its bytes, and as many pages in a row or alone as it may have) no more pieces are made than the
    kernel can send whatever pages they lie in.
    """

    request: tuple[int, int] | None = None

    def __init__(self, most: int, alignment: int, block: int, seed: int) -> None:
        self._alignment, self._block = max(1, alignment), block
        self._random = random.Random(f"{seed}/memory")  # noqa: S311 - a drawn load, no secret
        self._small = mmap.mmap(-1, 2 * most + (1 << 20))
        self._pages = memoryview(self._small)
        self._large = mmap.mmap(-1, most + 3 * _HUGE)
        self.has_huge = self._advise()
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._large)) % _HUGE
        self._huge = memoryview(self._large)[-start % _HUGE :]
        # each page is there before the first transfer, and before memory is measured
        for view in (self._pages, self._huge):
            for at in range(0, len(view), PAGE):
                view[at] = 1

    def _advise(self) -> bool:
        with suppress(OSError, AttributeError, ValueError):
            self._small.madvise(getattr(mmap, "MADV_NOHUGEPAGE", 15))
            self._large.madvise(getattr(mmap, "MADV_HUGEPAGE", 14))
            with open(_HUGE_PAGES, encoding="ascii") as file:  # noqa: PTH123 - one line of sysfs
                return "[never]" not in file.read()
        return False

    def whole(self) -> Sequence[memoryview]:
        """All of it, as it is registered with the kernel."""
        return (self._pages, self._huge)

    def shape(self, name: str, size: int) -> Shaped:
        """Pieces of that shape that hold `size` bytes."""
        draw = self._random
        if name == "offset":
            steps = max(1, PAGE // self._alignment)
            return self._one(self._pages, PAGE + draw.randrange(1, max(2, steps)) * self._alignment % PAGE, size)
        if name == "huge" and self.has_huge:
            return self._one(self._huge, _HUGE if size > PAGE else _HUGE + draw.randrange(64) * PAGE, size)
        if name == "straddle" and self.has_huge:
            before = min(size // 2, 65536 - PAGE) // self._alignment * self._alignment
            return self._one(self._huge, _HUGE + 65536 - before, size)
        if name == "segments":
            return self._many(size)
        if name == "one_page":
            page = self._pages[PAGE : 2 * PAGE]
            full, rest = divmod(size, PAGE)
            pieces = [page] * full + ([page[:rest]] if rest else [])
            if 1 < len(pieces) <= _MOST_PIECES:
                guards = (self._pages[PAGE - _GUARD : PAGE], self._pages[2 * PAGE : 2 * PAGE + _GUARD])
                return Shaped(pieces, guards, repeats=True)
        return self._one(self._pages, PAGE, size)

    @staticmethod
    def _one(memory: memoryview, at: int, size: int) -> Shaped:
        guards = (memory[at - PAGE : at], memory[at + size : at + size + PAGE])
        return Shaped((memory[at : at + size],), guards)

    def _many(self, size: int) -> Shaped:
        """Pieces of odd numbers of blocks, each at an offset of its own in its page, with guards between them."""
        draw, pieces, guards, at = self._random, [], [], PAGE
        lengths = list(widths(size, self._block, self._most_pieces(size), draw))
        spare = (len(self._pages) - size - 2 * PAGE) // max(1, len(lengths))
        for length in lengths:
            gap = max(self._alignment, min(spare, PAGE) // self._alignment * self._alignment)
            step = gap if gap < 2 * self._alignment else draw.randrange(1, gap // self._alignment) * self._alignment
            guards.append(self._pages[at : at + min(step, _GUARD)])
            at += step
            pieces.append(self._pages[at : at + length])
            at += length
        guards.append(self._pages[at : at + _GUARD])
        return Shaped(pieces, guards)

    def _most_pieces(self, size: int) -> int:
        if self.request is None:
            return _MOST_PIECES
        length, segments = self.request
        # a piece begins and ends within a page, and one of the pieces of a request may be cut
        each = max(1, (segments - -(-min(size, length) // PAGE)) // 2 - 1)
        return min(_MOST_PIECES, each * max(1, size // length))
