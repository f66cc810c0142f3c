# SPDX-License-Identifier: Apache-2.0
"""The layer of `tests/planted` between a load and a file: what it does to commands, without a kernel or a bench.

It knows the conditions that follow from a command's kind, length, address and time, and nothing of buffers, of what
is under way at once, of command codes, resets or power. Commands are the calls of `os` cut at the longest request.
"""

import errno
import os
from collections.abc import Sequence

from storqual_core.turns.sectors import SECTOR
from tests.support.planted_driver import Kind

CONDITIONS = frozenset(
    [
        *("from", "to", "multiple", "odd", "every", "idle_ms", "nth", "beyond", "before_end", "misaligned"),
        *("stripe", "sequential", "bits", "capacity", "by", "alike"),
    ]
)
_TO_DATA = ("zero_tail", "zero_head", "half", "flip", "neighbour", "former", "less")
ACTS = frozenset((*_TO_DATA, "lose", "untouched", "further", "cut_address", "wrap_address", "error"))


def is_known(kind: Kind) -> bool:
    """Whether the model does what the layer does with a kind."""
    own = {*kind.draw, *(kind.fixed or {})}
    return kind.on in ("any", "write", "read") and kind.act in ACTS and own <= CONDITIONS and not kind.faults


class PlantedModel:
    """The calls of `os` with a drawn defect in them; `limit` are the sectors of the longest request."""

    def __init__(self, kind: Kind, seed: int, end: int, limit: int) -> None:
        self._kind, self._end, self._limit = kind, end, limit
        self._asked = {"from": 0, "to": 1 << 40, "nth": 1, "by": 8, **kind.parameters(seed)}
        self._pwritev, self._preadv = os.pwritev, os.preadv
        self._reached = {"write": -1, "read": -1}
        self._former: dict[int, bytes] = {}
        self._neighbour = b""
        self._chosen = self._since = 0
        self._is_idle = False
        self.acted = 0

    def sleep(self, seconds: float) -> None:
        """The load pauses; no time passes."""
        self._is_idle |= seconds * 1000 >= self._asked.get("idle_ms", 0)

    def _is_drawn(self, way: str, sector: int, length: int, data: bytes = b"") -> bool:
        asked = self._asked
        follows, idle = self._reached[way] == sector, self._is_idle
        self._reached[way], self._is_idle = sector + length, False
        if self._kind.on not in ("any", way):
            return False
        self._since = 1 if idle else self._since + 1
        fits = (
            ("idle_ms" not in asked or self._since == asked["nth"])
            and asked["from"] <= length <= asked["to"]
            and ("multiple" not in asked or length % asked["multiple"] == bool(asked.get("odd")))
            and sector >= asked.get("beyond", 0)
            and ("before_end" not in asked or sector + length + asked["before_end"] >= self._end)
            and ("misaligned" not in asked or sector % asked["misaligned"] != 0)
            and ("stripe" not in asked or sector // asked["stripe"] != (sector + length - 1) // asked["stripe"])
            and (not asked.get("sequential") or follows)
            and ("alike" not in asked or data[asked["alike"] : 64] == data[: 64 - asked["alike"]] != b"")
        )
        self._chosen += fits
        return fits and self._chosen % asked["every"] == 0

    def _address(self, sector: int) -> int:
        act, asked = self._kind.act, self._asked
        if act == "cut_address":
            return sector & ((1 << asked["bits"]) - 1)
        if act == "wrap_address":
            return sector - asked["capacity"] if sector >= asked["capacity"] else sector
        return sector + asked["by"] if act == "further" else sector

    def _changed(self, data: bytes, older: bytes) -> bytes:
        act, half = self._kind.act, len(data) // SECTOR // 2 * SECTOR
        if act == "neighbour":
            return data[:-SECTOR] + (self._neighbour or data[-SECTOR:])
        return {
            "zero_tail": data[:-SECTOR] + bytes(SECTOR),
            "zero_head": bytes(SECTOR) + data[SECTOR:],
            "half": data[:half] + bytes(len(data) - half) if half else data,
            "flip": data[: SECTOR - 3] + bytes((data[SECTOR - 3] ^ 0x10,)) + data[SECTOR - 2 :],
            "former": older + data[len(older) :],
            "less": data[:-SECTOR],
        }[act]

    def _write(self, descriptor: int, sector: int, data: bytes, flags: int) -> None:
        drawn = self._is_drawn("write", sector, len(data) // SECTOR, data)
        older = self._former.get(sector, b"")
        held = bytearray(len(data))
        self._preadv(descriptor, [held], sector * SECTOR)
        for at in range(0, len(data), SECTOR):
            self._former[sector + at // SECTOR] = bytes(held[at : at + SECTOR])
        act, sent = self._kind.act, data
        if drawn and act in _TO_DATA:
            sent = self._changed(data, older)
        self._neighbour = data[:SECTOR]
        place = self._address(sector) if drawn else sector
        self.acted += drawn and (sent != data or place != sector or act in ("lose", "error"))
        if not (drawn and act == "lose"):
            self._pwritev(descriptor, [sent], place * SECTOR, flags)
        if drawn and act == "error":
            raise OSError(errno.EIO, "a medium error")

    def _read(self, descriptor: int, sector: int, into: memoryview) -> None:
        drawn, act = self._is_drawn("read", sector, len(into) // SECTOR), self._kind.act
        place = self._address(sector) if drawn else sector
        if drawn and act == "untouched":
            self.acted += 1
            return
        untouched = bytes(into[-SECTOR:])
        self._preadv(descriptor, [into], place * SECTOR)
        self.acted += drawn and place != sector
        if not drawn or act not in _TO_DATA:
            return
        data = bytes(into)
        older = b"".join(
            self._former.get(sector + at // SECTOR, data[at : at + SECTOR]) for at in range(0, len(data), SECTOR)
        )
        changed = data[:-SECTOR] + untouched if act == "less" else self._changed(data, older)
        self.acted += changed != data
        into[:] = changed

    def pwritev(self, descriptor: int, pieces: Sequence[memoryview], offset: int, flags: int = 0) -> int:
        data = b"".join(pieces)
        for at in range(0, len(data), self._limit * SECTOR):
            self._write(descriptor, (offset + at) // SECTOR, data[at : at + self._limit * SECTOR], flags)
        return len(data)

    def preadv(self, descriptor: int, pieces: Sequence[memoryview], offset: int) -> int:
        whole = memoryview(bytearray(b"".join(pieces)))
        for at in range(0, len(whole), self._limit * SECTOR):
            self._read(descriptor, (offset + at) // SECTOR, whole[at : at + self._limit * SECTOR])
        at = 0
        for piece in pieces:
            piece[:] = whole[at : at + len(piece)]
            at += len(piece)
        return len(whole)

    def transfer(
        self, descriptor: int, asked: Sequence[tuple[Sequence[memoryview], int]], *, reads: bool
    ) -> list[int]:
        """What is sent at once, one after the other."""
        results = []
        for pieces, offset in asked:
            try:
                call = self.preadv if reads else self.pwritev
                results.append(call(descriptor, pieces, offset))
            except OSError as problem:
                results.append(-(problem.errno or errno.EIO))
        return results
