# SPDX-License-Identifier: Apache-2.0
"""Read and plan fields of one SCSI mode page, on bytes alone: no tool, no drive.

A page is the bytes from its page-code byte on (no header, no block descriptors), as `sg_modes -R` prints them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping

from .errors import ToolError
from .settings import ModeField

__all__ = ["PagePlan", "check_page", "get_field", "plan_page", "put_field"]

_SUBPAGE_FORMAT = 0x40
_PROTOCOL_PAGES = (0x18, 0x19)


@dataclass(frozen=True)
class PagePlan:
    """One MODE SELECT: the page with the wanted values, the mask of the bits that change, and what cannot be."""

    contents: bytes
    mask: bytes
    unchangeable: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Nothing to write."""
        return not any(self.mask)


def check_page(data: bytes, page: int, subpage: int) -> bytes:
    """`data` cut to the length the page states. Raises ToolError when it is another page or incomplete."""
    name = f"mode page 0x{page:02x}" + (f"/0x{subpage:02x}" if subpage else "")
    if len(data) < 2:
        raise ToolError(f"{name}: only {len(data)} bytes came back")
    if data[0] & 0x3F != page:
        raise ToolError(f"{name}: the drive answered with page 0x{data[0] & 0x3F:02x}")
    if data[0] & _SUBPAGE_FORMAT:
        if len(data) < 4 or data[1] != subpage:
            raise ToolError(f"{name}: the drive answered with subpage 0x{data[1]:02x}")
        length = 4 + int.from_bytes(data[2:4], "big")
    else:
        if subpage:
            raise ToolError(f"{name}: the drive answered with the page itself, not its subpage")
        length = 2 + data[1]
    if len(data) < length:
        raise ToolError(f"{name}: {len(data)} of {length} bytes came back")
    return data[:length]


def _span(data: bytes, field: ModeField) -> tuple[int, int, int]:
    """First byte, byte count and right shift of a field. Raises ToolError when the page ends before it."""
    last_bit = 7 - field.bit + field.length
    count = (last_bit + 7) // 8
    if field.byte + count > len(data):
        raise ToolError(
            f"mode page 0x{field.page:02x} of this drive has {len(data)} bytes, the field needs {field.byte + count}"
        )
    if field.protocol is not None and field.page in _PROTOCOL_PAGES:
        place = 5 if data[0] & _SUBPAGE_FORMAT else 2
        found = data[place] & 0x0F if place < len(data) else -1
        if found != field.protocol:
            raise ToolError(
                f"mode page 0x{field.page:02x} of this drive is SCSI protocol {found}'s, the field {field.protocol}'s"
            )
    return field.byte, count, count * 8 - last_bit


def get_field(data: bytes, field: ModeField) -> int:
    """The field's value. Raises ToolError when the page is too short or of another transport."""
    first, count, shift = _span(data, field)
    return (int.from_bytes(data[first : first + count], "big") >> shift) & ((1 << field.length) - 1)


def put_field(data: bytes, field: ModeField, value: int) -> bytes:
    """The page with the field set to `value`, every other bit as it was. Raises ToolError, ValueError (too large)."""
    first, count, shift = _span(data, field)
    ones = (1 << field.length) - 1
    if not 0 <= value <= ones:
        raise ValueError(f"{value} does not fit into {field.length} bits")
    word = int.from_bytes(data[first : first + count], "big")
    word = (word & ~(ones << shift)) | (value << shift)
    return data[:first] + word.to_bytes(count, "big") + data[first + count :]


def plan_page(current: bytes, changeable: bytes, wanted: Mapping[str, tuple[ModeField, int]]) -> PagePlan:
    """What one MODE SELECT must carry so that every field in `wanted` (name to place and value) is as wanted.

    A field that already has its value is left out. A field that must change, of which the drive lets not every
    bit that must change be changed, is listed as unchangeable; then nothing should be written.
    """
    contents, mask = current, bytes(len(current))
    unchangeable = []
    for name, (field, value) in wanted.items():
        different = get_field(current, field) ^ value
        if not different:
            continue
        if different & ~_changeable_bits(changeable, field):
            unchangeable.append(name)
            continue
        contents = put_field(contents, field, value)
        mask = put_field(mask, _anywhere(field), (1 << field.length) - 1)
    return PagePlan(contents, mask, tuple(unchangeable))


def _anywhere(field: ModeField) -> ModeField:
    """The same place without the transport check: a mask has no protocol identifier."""
    return ModeField(field.page, field.subpage, field.byte, field.bit, field.length)


def _changeable_bits(changeable: bytes, field: ModeField) -> int:
    return get_field(changeable, _anywhere(field)) if len(changeable) > field.byte else 0
