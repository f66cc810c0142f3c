# SPDX-License-Identifier: Apache-2.0
"""Names of drives and adapters in one form, so that the same thing written twice is seen to be the same."""

from __future__ import annotations

import re

from storqual_core.identity import normalise_wwn

__all__ = ["normal_pci", "normal_wwn"]

_PCI = re.compile(r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])\Z")


def normal_wwn(text: str) -> str:
    """A WWN as benches report it: `0x5000c500…`, `eui.…`, `uuid.…`. Raises ValueError that says what was expected."""
    try:
        wwn = normalise_wwn(text)
    except ValueError:
        wwn = ""
    if not wwn:
        raise ValueError("a WWN such as 0x5000c50015ea71a0 (16 or 32 hexadecimal digits), eui.… or uuid.…")
    return wwn


def normal_pci(text: str) -> str:
    """`0000:05:00.0` with its domain, in small letters. Raises ValueError."""
    match = _PCI.match(text.strip().lower())
    if match is None:
        raise ValueError("a PCI address such as 0000:05:00.0")
    domain, bus, device, function = match.groups()
    return f"{domain or '0000'}:{bus}:{device}.{function}"
