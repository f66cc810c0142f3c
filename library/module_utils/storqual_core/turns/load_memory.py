# SPDX-License-Identifier: Apache-2.0
"""Memory of a data load: pieces of every shape that a driver must transfer, with guard bytes around them."""

from __future__ import annotations

import ctypes
import mmap
import random
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Sequence

from .load_levels import widths

PAGE = 4096
_HUGE = 2 << 20
_GUARD = 64
_MOST_PIECES = 900
"""The kernel takes 1024 pieces in one call."""
_SENTINEL = bytes(range(1, 256)) * (_HUGE // 255 + 1)
_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
_PAGE_MAP = "/proc/self/pagemap"
_BOUNDARY = 1 << 32
_AROUND = 80 << 20
"""So many bytes to both sides of an address of 4 GiB: the longest transfer and its guards."""
_FIXED = 0x2 | 0x20 | 0x4000 | 0x100000
"""MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE, MAP_FIXED_NOREPLACE of Linux."""


@lru_cache(maxsize=1)
def _around_boundary() -> memoryview | None:
    """Memory on both sides of the address of 4 GiB, for as long as the process lives; None where it is not free."""
    first, size = _BOUNDARY - _AROUND, 2 * _AROUND
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    address = library.mmap(
        *(
            ctypes.c_void_p(first),
            ctypes.c_size_t(size),
            mmap.PROT_READ | mmap.PROT_WRITE,
            _FIXED,
            -1,
            ctypes.c_long(0),
        )
    )
    if address != first:
        # a kernel before 4.17 takes the address for a wish
        if address != ctypes.c_void_p(-1).value:
            library.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
        return None
    view = ctypes.pythonapi.PyMemoryView_FromMemory
    view.argtypes, view.restype = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int), ctypes.py_object
    return memoryview(view(first, size, 0x200))


def frames_of(memory: memoryview, page_map: str = _PAGE_MAP) -> list[int]:
    """The physical address of each page of memory that begins at one; 0 where the kernel does not tell it."""
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory)) // PAGE
    with suppress(OSError), open(page_map, "rb") as file:  # noqa: PTH123 - eight bytes a page
        file.seek(first * 8)
        words = memoryview(file.read(len(memory) // PAGE * 8)).cast("Q")
        return [(word & ((1 << 55) - 1)) * PAGE if word >> 63 else 0 for word in words]
    return []


@dataclass(frozen=True)
class Shaped:
    """The pieces of one transfer in their order, and the guards beside them."""

    pieces: Sequence[memoryview]
    guards: Sequence[memoryview]
    repeats: bool = False

    def put(self, data: bytes | bytearray) -> None:
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

    `lacks` are the shapes that there are not, each with the reason.

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
        self._around = _around_boundary()
        # each page is there before the first transfer, and before memory is measured
        for view in (self._pages, self._huge):
            for at in range(0, len(view), PAGE):
                view[at] = 1
        frames = frames_of(self._pages)
        self._sides = [
            [at * PAGE for at, frame in enumerate(frames) if frame and (frame >= _BOUNDARY) == high]
            for high in (False, True)
        ]
        self.lacks: dict[str, str] = {}
        if not self.has_huge:
            self.lacks.update(dict.fromkeys(("huge", "straddle"), "the kernel gives no transparent huge pages"))
        if self._around is None:
            self.lacks["across4g"] = "the addresses around 4 GiB are not free in this process"
        if not all(self._sides):
            self.lacks["mixed4g"] = (
                "all pages lie on one side of 4 GiB in memory; where they lie is not for a program to choose"
                if any(self._sides)
                else "the kernel does not tell where pages lie in memory"
            )

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
            return self._piece(self._pages, PAGE + draw.randrange(1, max(2, steps)) * self._alignment % PAGE, size)
        if name == "huge" and self.has_huge:
            return self._piece(self._huge, _HUGE if size > PAGE else _HUGE + draw.randrange(64) * PAGE, size)
        if name == "straddle" and self.has_huge:
            before = min(size // 2, 65536 - PAGE) // self._alignment * self._alignment
            return self._piece(self._huge, _HUGE + 65536 - before, size)
        if name == "across4g" and self._around is not None:
            before = min(size // 2, size - 1) // self._alignment * self._alignment
            return self._piece(self._around, _AROUND - before, size)
        if name == "mixed4g" and all(self._sides) and size <= _MOST_PIECES * PAGE:
            return self._mixed(size)
        if name == "segments":
            return self._many(size)
        if name == "one_page":
            page = self._pages[PAGE : 2 * PAGE]
            full, rest = divmod(size, PAGE)
            pieces = [page] * full + ([page[:rest]] if rest else [])
            if 1 < len(pieces) <= _MOST_PIECES:
                guards = (self._pages[PAGE - _GUARD : PAGE], self._pages[2 * PAGE : 2 * PAGE + _GUARD])
                return Shaped(pieces, guards, repeats=True)
        return self._piece(self._pages, PAGE, size)

    @staticmethod
    def _piece(memory: memoryview, at: int, size: int) -> Shaped:
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

    def _mixed(self, size: int) -> Shaped:
        """Pages from below and above 4 GiB in memory by turns, as long as there are both."""
        low, high = self._sides
        both = min(len(low), len(high))
        turns = [at for pair in zip(low[:both], high[:both]) for at in pair]
        places = [*turns, *(low[both:] or high[both:])][: -(-size // PAGE)]
        pieces = [self._pages[at : at + PAGE] for at in places]
        pieces[-1] = pieces[-1][: (size - 1) % PAGE + 1]
        return Shaped(pieces, ())

    def _most_pieces(self, size: int) -> int:
        if self.request is None:
            return _MOST_PIECES
        length, segments = self.request
        # a piece begins and ends within a page, and one of the pieces of a request may be cut
        pieces = max(1, (segments - -(-min(size, length) // PAGE)) // 2 - 1)
        return min(_MOST_PIECES, pieces * max(1, size // length))
