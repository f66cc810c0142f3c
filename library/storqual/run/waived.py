# SPDX-License-Identifier: Apache-2.0
"""The waivers that a verdict rests on, in the words that every page, export and command says them in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def used_waivers(criteria: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The waivers in entries of a verdict, each once, in their order."""
    found = (entry.get("waiver") for entry in criteria)
    return each_waiver(waiver for waiver in found if isinstance(waiver, Mapping))


def each_waiver(waivers: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Waivers, each once: one that accepts several failures is one."""
    return list({_named(waiver): waiver for waiver in waivers}.values())


def with_waivers(waivers: Iterable[Mapping[str, Any]]) -> str:
    """`with 2 waivers: LAB-12 of Pat through 2026-12-31; LAB-13 of Kim through 2027-01-31`; empty without any."""
    named = [_named(waiver) for waiver in each_waiver(waivers)]
    return f"with {len(named)} {'waiver' if len(named) == 1 else 'waivers'}: {'; '.join(named)}" if named else ""


def listed(waivers: Iterable[Mapping[str, Any]]) -> str:
    """The same without the number, for a page that states it by itself."""
    return "; ".join(_named(waiver) for waiver in each_waiver(waivers))


def _named(waiver: Mapping[str, Any]) -> str:
    return " ".join(f"{waiver.get(name) or 'unknown'}{word}" for name, word in _PARTS)


_PARTS = (("reference", " of"), ("owner", " through"), ("expiry", ""))
