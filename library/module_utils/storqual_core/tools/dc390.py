# SPDX-License-Identifier: Apache-2.0
"""Tekram DC-390: its serial EEPROM, through two registers of PCI configuration space; no vendor tool is needed.

Writing 0x80 selects the chip and sets clock (bit 7) and data (bit 6); writing 0xc0 deselects it; while the chip's
output is low the first byte of configuration space, the low byte of the vendor id, reads as zero. Source: the
kernel's am53c974 driver, which reads the EEPROM so at load and never writes it. The adapter's index is its PCI
address.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager
from typing import Iterator, Mapping

from ..attributes import read_attribute
from ..capabilities import Spelling, Value
from ..command import Runner
from ..dc390_image import NAMES, Image, unfit
from ..eeprom_93c46 import read_words, write_words
from ..errors import ToolError

__all__ = ["SETTINGS", "is_dc390", "objection", "read_image", "read_settings", "write_image", "write_setting"]

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
        """Chip select low."""
        self._put(_DESELECT, 0)

    def drive(self, clock: int, data: int) -> None:
        """Chip select high, with these levels."""
        self._put(_LINES, (_CLOCK if clock else 0) | (_DATA if data else 0))

    def data_out(self) -> int:
        """The chip's output, which masks the vendor id."""
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


def read_image(pci: str, sysfs: str = "/sys") -> Image:
    """All 128 bytes. Raises ToolError; an image without a valid checksum is no error here."""
    with _lines(pci, sysfs) as lines:
        return Image.of_words(read_words(lines))


def write_image(pci: str, image: Image, sysfs: str = "/sys") -> int:
    """Write the words that differ and read all back; the number of words written.

    Raises ToolError when the EEPROM then holds something else.
    """
    with _lines(pci, sysfs) as lines:
        changes = Image.of_words(read_words(lines)).changes(image)
        if changes:
            write_words(lines, changes)
            now = Image.of_words(read_words(lines))
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
