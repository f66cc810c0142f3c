# SPDX-License-Identifier: Apache-2.0
"""The EEPROM of the Tekram DC-390: 128 bytes, their checksum, and the settings in them.

Eight records of four bytes for the targets, then the adapter's own settings from byte 64, then two bytes that make
the sum of all 64 words 0x1234. Source of the places: the kernel's drivers am53c974 (drivers/scsi/am53c974.c) and
tmscsim (drivers/scsi/tmscsim.h, before 3.19).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Mapping, Sequence

from .errors import BadInputError, ToolError

__all__ = ["NAMES", "SIZE", "Image", "unfit"]

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
        return f"{value} is no SCSI id of an 8-bit bus (0 to 7)"
    if name == "max_tags" and value not in _tag_choices():
        return f"{value} is not one of {', '.join(map(str, _tag_choices()))}: the EEPROM holds a power of two"
    return ""


def _tag_choices() -> list[int]:
    return [2 << shift for shift in range(_MOST_TAG_SHIFT + 1)]


@dataclass(frozen=True)
class Image:
    """All bytes of the EEPROM, whether they make sense or not."""

    data: bytes

    def __post_init__(self) -> None:
        if len(self.data) != SIZE:
            raise ValueError(f"an image has {SIZE} bytes, not {len(self.data)}")

    @classmethod
    def of_words(cls, words: Sequence[int]) -> Image:
        """From words by address; the low byte of a word comes first."""
        return cls(struct.pack(f"<{SIZE // 2}H", *words))

    @classmethod
    def of_hex(cls, text: str) -> Image:
        """From `hex`. Raises ToolError for a text that is no image."""
        try:
            return cls(bytes.fromhex(text))
        except ValueError as problem:
            raise ToolError(f"the saved EEPROM image cannot be used: {problem}") from problem

    @property
    def words(self) -> tuple[int, ...]:
        """The words by address."""
        return struct.unpack(f"<{SIZE // 2}H", self.data)

    @property
    def hex(self) -> str:
        """As it is saved."""
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

    def with_values(self, values: Mapping[str, int]) -> Image:
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
        return Image(bytes(data))

    def changes(self, other: Image) -> dict[int, int]:
        """The words of `other` that differ, by address; the checksum last, so that half a write shows itself."""
        return {address: word for address, (mine, word) in enumerate(zip(self.words, other.words)) if mine != word}


def _bit(byte: int, mask: int, value: int) -> int:
    return byte | mask if value else byte & ~mask
