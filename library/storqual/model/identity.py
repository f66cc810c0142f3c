# SPDX-License-Identifier: Apache-2.0
"""Names of drives and adapters as one form, so that the same thing written twice is seen to be the same."""

from __future__ import annotations

import re

__all__ = ["normal_pci", "normal_wwn"]

_HEX = re.compile(r"(?:0x|naa\.|wwn-0x)?([0-9a-f]{16}|[0-9a-f]{32})\Z")
_NVME = re.compile(
    r"(?:eui\.[0-9a-f]{16}|eui\.[0-9a-f]{32}|nguid\.[0-9a-f]{32}|uuid\.[0-9a-f-]{36}|nvme\.[\x21-\x7e]+)\Z"
)
_T10 = re.compile(r"(?:t10\.|scsi-)[\x21-\x7e ]+\Z")
_PCI = re.compile(r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])\Z")


def normal_wwn(text: str) -> str:
    """`0x5000c50015ea71a0` for any way a WWN is written; `eui.…`, `uuid.…` in small letters. Raises ValueError."""
    word = text.strip().lower()
    plain = _HEX.match(word.replace(":", "") if re.fullmatch(r"(?:[0-9a-f]{2}:){7,15}[0-9a-f]{2}", word) else word)
    if plain is not None:
        return "0x" + plain.group(1)
    if _NVME.match(word) or _T10.match(word):
        return word
    raise ValueError("a WWN such as 0x5000c50015ea71a0 (16 or 32 hexadecimal digits), eui.… or uuid.…")


def normal_pci(text: str) -> str:
    """`0000:05:00.0` with its domain, in small letters. Raises ValueError."""
    match = _PCI.match(text.strip().lower())
    if match is None:
        raise ValueError("a PCI address such as 0000:05:00.0")
    domain, bus, device, function = match.groups()
    return f"{domain or '0000'}:{bus}:{device}.{function}"
