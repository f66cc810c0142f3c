# SPDX-License-Identifier: Apache-2.0
"""The Microwire serial EEPROM 93C46: 64 words of 16 bits, read and written bit by bit over four lines.

An instruction is a start bit, two bits of operation and six of address, most significant first; each is taken with a
rising clock while chip select is high. A word is erased before it is written: newer chips do that by themselves, the
NMC9306 and the emulators that follow it do not. Source: the data sheets of NM93C46 and AT93C46.
"""

from __future__ import annotations

import time
from typing import Mapping, Protocol

from .errors import ToolError

__all__ = ["WORDS", "Lines", "read_words", "write_words"]

WORDS = 64
_ADDRESS_BITS = 6
_WORD_BITS = 16
_EXTENDED, _WRITE, _READ, _ERASE = 0b00, 0b01, 0b10, 0b11
# of the extended operation, the two highest bits of the address say which one
_WRITE_ENABLE, _WRITE_DISABLE = 0b11 << 4, 0b00 << 4
# the data sheets say 10 ms at most for erasing or writing a word
_PROGRAM_LIMIT_S = 0.1


class Lines(Protocol):
    """The wires to the chip: chip select, clock and data in go out, data out comes in."""

    def deselect(self) -> None:
        """Chip select low: ends an instruction, and begins the programming of a word."""

    def drive(self, clock: int, data: int) -> None:
        """Chip select high, with these levels."""

    def data_out(self) -> int:
        """The level of the chip's data output."""


def read_words(lines: Lines) -> tuple[int, ...]:
    """All words in order of address."""
    return tuple(_read(lines, address) for address in range(WORDS))


def write_words(lines: Lines, words: Mapping[int, int]) -> None:
    """Erase and write words by address, in the order given; writing is disabled again whatever happens.

    Raises ToolError when the chip does not get ready. The caller reads back.
    """
    _instruct(lines, _EXTENDED, _WRITE_ENABLE)
    lines.deselect()
    try:
        for address, word in words.items():
            _instruct(lines, _ERASE, address)
            _program(lines, address)
            _instruct(lines, _WRITE, address)
            _send(lines, word, _WORD_BITS)
            _program(lines, address)
    finally:
        _instruct(lines, _EXTENDED, _WRITE_DISABLE)
        lines.deselect()


def _instruct(lines: Lines, operation: int, address: int) -> None:
    lines.deselect()
    # chip select rises with the clock low, so that the first rising clock is the start bit's
    lines.drive(0, 1)
    _send(lines, 1 << 2 | operation, 3)
    _send(lines, address, _ADDRESS_BITS)


def _send(lines: Lines, value: int, bits: int) -> None:
    for place in reversed(range(bits)):
        bit = value >> place & 1
        lines.drive(0, bit)
        lines.drive(1, bit)
        lines.drive(0, 0)


def _read(lines: Lines, address: int) -> int:
    _instruct(lines, _READ, address)
    word = 0
    for _ in range(_WORD_BITS):
        lines.drive(1, 0)
        # the level is taken while the clock is low: it changes with the rising clock only
        lines.drive(0, 1)
        word = word << 1 | lines.data_out()
    lines.deselect()
    return word


def _program(lines: Lines, address: int) -> None:
    """Let the chip program a word: it holds its output low while it is busy, once it is selected again."""
    lines.deselect()
    lines.drive(0, 0)
    deadline = time.monotonic() + _PROGRAM_LIMIT_S
    while not lines.data_out():
        if time.monotonic() >= deadline:
            lines.deselect()
            raise ToolError(f"the EEPROM did not finish word {address} within {_PROGRAM_LIMIT_S:g} s")
    lines.deselect()
