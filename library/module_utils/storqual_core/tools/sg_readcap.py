# SPDX-License-Identifier: Apache-2.0
"""sg_readcap (sg3_utils): what a drive itself says of its size, its blocks and their protection.

The text tells the same thing three times (last block, number of blocks, bytes), in every release the same way but for
the first label; where the three do not agree the text is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Mapping

from ..kit.command import Runner
from ..kit.errors import ToolError
from .sg3 import status_sentence

_TIMEOUT = 60.0
_UNIT_ATTENTION = 6
_LAST = re.compile(
    r"Last (?:LBA|(?:logical )?block address)\s*=\s*([0-9]{1,20})\b(?: \(0x([0-9a-f]{1,16})\))?", re.IGNORECASE
)
_BLOCKS = re.compile(r"Number of (?:logical )?blocks\s*=\s*([0-9]{1,20})\b", re.IGNORECASE)
_LENGTH = re.compile(r"(?:Logical block length|\bBlock size)\s*=\s*([0-9]{1,20}) bytes", re.IGNORECASE)
_BYTES = re.compile(r"Device size\s*:\s*([0-9]{1,20}) bytes", re.IGNORECASE)
_EXPONENT = re.compile(r"Logical blocks per physical block exponent\s*=\s*([0-9]{1,2})\b", re.IGNORECASE)
_PHYSICAL = re.compile(r"physical block length\s*=\s*([0-9]{1,20}) bytes", re.IGNORECASE)
_ALIGNED = re.compile(r"Lowest aligned (?:LBA|logical block address)\s*=\s*([0-9]{1,20})\b", re.IGNORECASE)
_FLAG = re.compile(
    r"\b(prot_en|p_type|p_i_exponent|lbpme|lbprz|tpe|tprz|rc_basis)\s*=\s*([0-9]{1,20})\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Capacity:
    """Bytes of a drive and of its logical and physical blocks (None: not told), alignment, flags by acronym."""

    size: int
    block: int
    physical_block: int | None = None
    lowest_aligned: int | None = None
    flags: Mapping[str, int] = field(default_factory=dict)


def parse_capacity(text: str) -> Capacity:
    """`sg_readcap` or `sg_readcap --long`. Raises ToolError when it tells no size, or two."""
    last, length = _LAST.search(text), _LENGTH.search(text)
    if last is None or length is None:
        said = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise ToolError(f"sg_readcap tells no size: {said[:200]}")
    blocks, block = int(last.group(1)) + 1, int(length.group(1))
    hexadecimal, counted, told = last.group(2), _BLOCKS.search(text), _BYTES.search(text)
    if (
        (hexadecimal and int(hexadecimal, 16) + 1 != blocks)
        or (counted and int(counted.group(1)) != blocks)
        or (told and int(told.group(1)) != blocks * block)
    ):
        raise ToolError(f"sg_readcap tells sizes that are not one: {blocks} blocks of {block} bytes and another")
    exponent, physical, aligned = (pattern.search(text) for pattern in (_EXPONENT, _PHYSICAL, _ALIGNED))
    if exponent and physical and block << int(exponent.group(1)) != int(physical.group(1)):
        raise ToolError(f"sg_readcap reports two physical block lengths: {exponent.group(0)}, {physical.group(0)}")
    return Capacity(
        size=blocks * block,
        block=block,
        physical_block=block << int(exponent.group(1)) if exponent else None,
        lowest_aligned=int(aligned.group(1)) if aligned else None,
        flags={name.lower(): int(value) for name, value in _FLAG.findall(text)},
    )


def read_capacity(runner: Runner, device: str) -> Capacity:
    """What a drive says of its size. Raises ToolError."""
    argv = ["sg_readcap", "--long", device]
    ended = runner(argv, timeout=_TIMEOUT)
    if ended.rc == _UNIT_ATTENTION:
        # the first command after a reset only delivers the news
        ended = runner(argv, timeout=_TIMEOUT)
    if ended.rc != 0:
        raise ToolError(f"the size of {device}: {status_sentence(ended.rc)}; command: {ended.line}")
    return parse_capacity(ended.stdout)
