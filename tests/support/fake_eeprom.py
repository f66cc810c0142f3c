# SPDX-License-Identifier: Apache-2.0
"""A 93C46 made of software, and the PCI configuration space of a DC-390 around it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from storqual_core.tools import dc390
from storqual_core.tools.dc390 import SIZE, EepromImage

_BUSY_LOOKS = 2


def factory_image() -> EepromImage:
    """What a card holds as it is shipped: id 7, 32 tags, parity on, and the checksum that fits."""
    data = bytearray(SIZE)
    for target in range(8):
        data[target * 4] = 0x57
    data[64:69] = bytes((7, 0x0F, 0, 4, 7))
    return EepromImage(bytes(data)).with_values({})


@dataclass
class Chip:
    """The chip behind its four lines: it answers to levels and edges only, as the data sheet says.

    `stuck` words ignore writing; `dies_after` makes the lines fail after so many instructions that program a word.
    """

    words: list[int] = field(default_factory=lambda: list(factory_image().words))
    stuck: tuple[int, ...] = ()
    dies_after: int | None = None
    programmed: list[int] = field(default_factory=list)
    enabled: bool = False
    _selected: bool = False
    _clock: int = 0
    _bits: list[int] = field(default_factory=list)
    _out: int = 1
    _busy: int = 0

    def deselect(self) -> None:
        """Chip select falls: what was shifted in is done."""
        selected, bits = self._selected, self._bits
        self._selected, self._bits, self._clock, self._out = False, [], 0, 1
        if selected and len(bits) >= 9:
            self._finish(bits)

    def drive(self, clock: int, data: int) -> None:
        """Chip select is high; a rising clock shifts a bit in, or out."""
        self._selected = True
        if clock and not self._clock and (self._bits or data):
            self._bits.append(data)
            if self._is_read() and len(self._bits) >= 9:
                shifted = len(self._bits) - 9
                self._out = 0 if shifted == 0 else self.words[_address(self._bits)] >> (16 - shifted) & 1
        self._clock = clock

    def data_out(self) -> int:
        """The output; low while a word is being programmed."""
        if self._busy:
            self._busy -= 1
            return 0
        return self._out

    def _is_read(self) -> bool:
        return self._bits[1:3] == [1, 0]

    def _finish(self, bits: list[int]) -> None:
        operation, address = tuple(bits[1:3]), _address(bits)
        if operation == (0, 0):
            self.enabled = {0b11: True, 0b00: False}.get(address >> 4, self.enabled)
        elif operation in ((1, 1), (0, 1)) and self.enabled:
            self._program(operation, address, bits[9:])

    def _program(self, operation: tuple[int, ...], address: int, data: list[int]) -> None:
        if self.dies_after is not None and len(self.programmed) >= self.dies_after:
            raise OSError(5, "Input/output error")
        if operation == (0, 1) and len(data) != 16:
            return
        self.programmed.append(address)
        self._busy = _BUSY_LOOKS
        if address in self.stuck:
            return
        if operation == (1, 1):
            self.words[address] = 0xFFFF
        else:
            # a word that was not erased keeps its zeros, as in the oldest chips
            self.words[address] &= int("".join(map(str, data)), 2)


def _address(bits: list[int]) -> int:
    return int("".join(map(str, bits[3:9])), 2)


def fit(monkeypatch: pytest.MonkeyPatch, chip: Chip) -> Chip:
    """Put the chip behind the registers of every adapter that the tool opens."""

    @contextmanager
    def lines(_pci: str, _sysfs: str) -> Iterator[Chip]:
        try:
            yield chip
        except OSError as problem:
            raise dc390.ToolError(f"config cannot be used: {problem.strerror}") from problem

    monkeypatch.setattr(dc390, "_lines", lines)
    return chip
