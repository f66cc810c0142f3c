# SPDX-License-Identifier: Apache-2.0
"""The Microwire serial EEPROM 93C46: 64 words of 16 bits, read and written bit by bit over four lines.

An instruction is a start bit, two bits of operation and six of address, most significant first; each is taken with a
rising clock while chip select is high. A word is erased before it is written: newer chips do that by themselves, the
NMC9306 and the emulators that follow it do not. Source: the data sheets of NM93C46 and AT93C46.
"""

from __future__ import annotations

import errno
import os
import struct
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Iterator, Mapping, Protocol, Sequence

from ..kit.command import Runner
from ..kit.errors import BadInputError, ToolError
from ..kit.machine import read_attribute
from .capabilities import Spelling, Value

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


SIZE = 128
_SUM = 0x1234
_CHECKSUM = 126
_HOST_ID, _MODE2, _TAGS = 64, 65, 67
_TARGETS, _TARGET_BYTES = 8, 4
_PARITY = 0x01
_RESET_BUS = 0x04
_MOST_TAG_SHIFT = 4
# the driver computes 2 << n whatever n is; past this it is no number of tags
_READABLE_TAG_SHIFT = 6

NAMES = ("host_scsi_id", "max_tags", "scsi_parity", "scsi_bus_reset")
"""The canonical settings that the image holds."""


def unfit(name: str, value: int) -> str:
    """Why the image cannot hold a value, as part of a sentence; empty when it can."""
    if name == "host_scsi_id" and not 0 <= value <= 7:
        return f"{value} is not a SCSI id of an 8-bit bus (0 to 7)"
    if name == "max_tags" and value not in _tag_choices():
        return f"{value} is not one of {', '.join(map(str, _tag_choices()))}: the EEPROM holds a power of two"
    return ""


def _tag_choices() -> list[int]:
    return [2 << shift for shift in range(_MOST_TAG_SHIFT + 1)]


@dataclass(frozen=True)
class EepromImage:
    """All bytes of the EEPROM, whether they make sense or not."""

    data: bytes

    def __post_init__(self) -> None:
        if len(self.data) != SIZE:
            raise ValueError(f"an image has {SIZE} bytes, not {len(self.data)}")

    @classmethod
    def of_words(cls, words: Sequence[int]) -> EepromImage:
        """From words by address; the low byte of a word comes first."""
        return cls(struct.pack(f"<{SIZE // 2}H", *words))

    @classmethod
    def of_hex(cls, text: str) -> EepromImage:
        """From `hex`. Raises ToolError for a text that is no image."""
        try:
            return cls(bytes.fromhex(text))
        except ValueError as problem:
            raise ToolError(f"the saved EEPROM image cannot be used: {problem}") from problem

    @property
    def words(self) -> tuple[int, ...]:
        return struct.unpack(f"<{SIZE // 2}H", self.data)

    @property
    def hex(self) -> str:
        return self.data.hex()

    @property
    def valid(self) -> bool:
        """Whether the checksum fits; the drivers use their own defaults when it does not."""
        return sum(self.words) & 0xFFFF == _SUM

    def values(self) -> dict[str, int]:
        """The settings by canonical name. Raises ToolError for an image that no DC-390 wrote."""
        if not self.valid:
            raise ToolError(
                f"the EEPROM's words sum up to 0x{sum(self.words) & 0xFFFF:04x} instead of 0x{_SUM:04x}: it is no "
                "DC-390, or a write was cut short; playbooks/restore.yml writes the saved image back"
            )
        shift = self.data[_TAGS]
        if shift > _READABLE_TAG_SHIFT:
            raise ToolError(f"byte {_TAGS} of the EEPROM holds {shift} where a power of two below 8 was expected")
        parity = {self.data[target * _TARGET_BYTES] & _PARITY for target in range(_TARGETS)}
        if len(parity) != 1:
            raise ToolError("the EEPROM has parity checking on for some targets and off for others")
        return {
            "host_scsi_id": self.data[_HOST_ID],
            "max_tags": 2 << shift,
            "scsi_parity": parity.pop(),
            "scsi_bus_reset": int(bool(self.data[_MODE2] & _RESET_BUS)),
        }

    def with_values(self, values: Mapping[str, int]) -> EepromImage:
        """The image with other settings and the checksum that fits; all other bytes stay. Raises BadInputError."""
        problems = [f"nvram.{name}: {reason}" for name, value in values.items() if (reason := unfit(name, value))]
        problems += [f"nvram.{name} is not in the EEPROM of a DC-390" for name in values if name not in NAMES]
        if problems:
            raise BadInputError(problems)
        data = bytearray(self.data)
        for name, value in values.items():
            if name == "host_scsi_id":
                data[_HOST_ID] = value
            elif name == "max_tags":
                data[_TAGS] = value.bit_length() - 2
            elif name == "scsi_parity":
                for target in range(_TARGETS):
                    data[target * _TARGET_BYTES] = _bit(data[target * _TARGET_BYTES], _PARITY, value)
            else:
                data[_MODE2] = _bit(data[_MODE2], _RESET_BUS, value)
        words = struct.unpack(f"<{_CHECKSUM // 2}H", data[:_CHECKSUM])
        data[_CHECKSUM:] = struct.pack("<H", (_SUM - sum(words)) & 0xFFFF)
        return EepromImage(bytes(data))

    def changes(self, other: EepromImage) -> dict[int, int]:
        """The words of `other` that differ, by address; the checksum last, so that half a write shows itself."""
        return {address: word for address, (mine, word) in enumerate(zip(self.words, other.words)) if mine != word}


def _bit(byte: int, mask: int, value: int) -> int:
    return byte | mask if value else byte & ~mask


_CHIP = ("0x1022", "0x2020")
_LINES, _DESELECT, _OUTPUT = 0x80, 0xC0, 0x00
_CLOCK, _DATA = 0x80, 0x40
# the driver waits so long after each change of a line
_SETTLE_S = 160e-6

SETTINGS: Mapping[str, Spelling] = {
    name: Spelling("EEPROM, bit by bit", "EEPROM, bit by bit, checksum made anew", "live") for name in NAMES
}
"""What the EEPROM holds by canonical name."""


class _ConfigLines:
    """The chip's lines as bytes of an open `config` file; sysfs makes one access of one byte of each."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def deselect(self) -> None:
        self._put(_DESELECT, 0)

    def drive(self, clock: int, data: int) -> None:
        self._put(_LINES, (_CLOCK if clock else 0) | (_DATA if data else 0))

    def data_out(self) -> int:
        return int(os.pread(self._handle, 1, _OUTPUT) != b"\0")

    def _put(self, register: int, value: int) -> None:
        os.pwrite(self._handle, bytes((value,)), register)
        time.sleep(_SETTLE_S)


def is_dc390(pci: str, sysfs: str = "/sys") -> bool:
    """Whether a PCI function is the chip of a DC-390; whether it has the EEPROM, only reading it can tell."""
    device = f"{sysfs}/bus/pci/devices/{pci}"
    return (read_attribute(f"{device}/vendor"), read_attribute(f"{device}/device")) == _CHIP


@contextmanager
def _lines(pci: str, sysfs: str) -> Iterator[_ConfigLines]:
    if not is_dc390(pci, sysfs):
        raise ToolError(f"the adapter at {pci} is not a Tekram DC-390 (PCI id 1022:2020)")
    path = f"{sysfs}/bus/pci/devices/{pci}/config"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as problem:
        raise ToolError(f"{path} cannot be opened for writing: {problem.strerror}{_why(problem)}") from problem
    try:
        yield _ConfigLines(handle)
    except OSError as problem:
        raise ToolError(f"{path} cannot be used: {problem.strerror}{_why(problem)}") from problem
    finally:
        os.close(handle)


def _why(problem: OSError) -> str:
    if problem.errno in (errno.EPERM, errno.EACCES):
        return " (it takes root, and a kernel that is not locked down by secure boot)"
    return ""


def read_image(pci: str, sysfs: str = "/sys") -> EepromImage:
    """All 128 bytes. Raises ToolError; an image without a valid checksum is no error here."""
    with _lines(pci, sysfs) as lines:
        return EepromImage.of_words(read_words(lines))


def write_image(pci: str, image: EepromImage, sysfs: str = "/sys") -> int:
    """Write the words that differ and read all back; the number of words written.

    Raises ToolError when the EEPROM then holds something else.
    """
    with _lines(pci, sysfs) as lines:
        changes = EepromImage.of_words(read_words(lines)).changes(image)
        if changes:
            write_words(lines, changes)
            now = EepromImage.of_words(read_words(lines))
            if now != image:
                wrong = ", ".join(f"{address}" for address in now.changes(image))
                raise ToolError(
                    f"the EEPROM of the adapter at {pci} does not hold what was written (words {wrong}); "
                    "playbooks/restore.yml writes the saved image back"
                )
    return len(changes)


def read_settings(runner: Runner, index: str, sysfs: str = "/sys") -> Mapping[str, Value]:  # noqa: ARG001 - no tool runs
    """The settings in the EEPROM. Raises ToolError."""
    return read_image(index, sysfs).values()


def objection(runner: Runner, index: str, name: str, value: Value) -> str:  # noqa: ARG001 - as the protocol says
    """Why the EEPROM cannot hold a value; empty when it can."""
    return unfit(name, int(value))


def write_setting(
    runner: Runner,  # noqa: ARG001 - no tool runs
    index: str,
    name: str,
    value: Value,
    sysfs: str = "/sys",
) -> None:
    """Write one setting and the checksum. Raises BadInputError for a value that the EEPROM cannot hold, ToolError."""
    write_image(index, read_image(index, sysfs).with_values({name: int(value)}), sysfs)
