# SPDX-License-Identifier: Apache-2.0
"""What the rig can carry at most, part by part, and whether the rig or the adapter was the limit.

The ceiling is the least of its parts: the slot, the links of all ports, the drives together. A result near the limit
of a part that is not under test says nothing about the adapter: the rig was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storqual.analysis.estimates import Estimate
from storqual.formulas import percent_of

__all__ = ["NEAR", "Ceiling", "Part", "Share", "ceiling", "drives_part", "link_part", "share_of", "slot_part"]

NEAR = 0.95
"""From 95 % of a part on, that part is called the limit: no link reaches its line rate, headers take their share."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the path and what it carries at most. `rig` parts are not under test; `told` is the evidence."""

    name: str
    limit: float
    rig: bool
    told: str = ""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """All parts, and the least of them."""

    parts: tuple[Part, ...]

    @property
    def lowest(self) -> Part:
        """The part that limits; of equal parts the first named."""
        return min(self.parts, key=lambda part: part.limit)

    @property
    def limit(self) -> float:
        """What the path carries at most."""
        return self.lowest.limit


@dataclass(frozen=True, slots=True)
class Share:
    """A result as percent of the ceiling. `limited_by` is a rig part that it may have reached; None when none."""

    percent: Estimate
    lowest: Part
    limited_by: Part | None

    def sentence(self) -> str:
        """What a reader may be told."""
        shown = f"{self.percent.value:.1f} % of the ceiling ({self.lowest.name})"
        if self.limited_by is None:
            return f"{shown}."
        return f"{shown}; the limit here is {self.limited_by.name}, which is not what was tested."


def ceiling(parts: Sequence[Part]) -> Ceiling:
    """The ceiling of a path. Raises ValueError without parts, or for a limit that is not above zero."""
    if not parts or any(not part.limit > 0 for part in parts):
        raise ValueError("a ceiling needs parts with limits above zero")
    return Ceiling(tuple(parts))


def slot_part(limit: float, told: str = "") -> Part:
    """The slot: one limit for all ports and both directions of a shared bus (PCI, PCI-X), or one way of PCIe."""
    return Part("slot", limit, rig=True, told=told)


def link_part(port: float, ports: int, *, both_ways: bool = False, told: str = "") -> Part:
    """The links of `ports` ports. `both_ways` counts both directions of a full-duplex link (reads and writes mixed).

    Raises ValueError without a port. Source: HP A6826A paper, p. 2: 87.7 % of 2 x 200 MB/s, one port both ways.
    """
    if ports < 1:
        raise ValueError(f"{ports} ports, expected one or more")
    ways = 2 if both_ways else 1
    words = f"{ports} port{'s' if ports > 1 else ''}{', both ways' if both_ways else ''}"
    return Part(f"link ({words})", port * ports * ways, rig=False, told=told)


def drives_part(each: Mapping[str, float], told: str = "") -> Part:
    """All drives together; `each` is what one drive gives by itself, in the unit of the result. Raises ValueError."""
    if not each:
        raise ValueError("no drives")
    return Part(f"{len(each)} drive{'s' if len(each) > 1 else ''}", sum(each.values()), rig=True, told=told)


def share_of(measured: Estimate, path: Ceiling, *, near: float = NEAR) -> Share:
    """`measured` in percent of the ceiling, and whether the rig was the limit.

    A rig part is the limit unless the result is shown to be below `near` of it: what may be the rig's doing is not
    held for or against an adapter. Of several the lowest is named.
    """
    percent = Estimate(
        percent_of(measured.value, path.limit),
        None if measured.low is None else percent_of(measured.low, path.limit),
        None if measured.high is None else percent_of(measured.high, path.limit),
    )
    reached = [part for part in path.parts if part.rig and measured.at_least(near * part.limit) is not False]
    return Share(percent, path.lowest, min(reached, key=lambda part: part.limit, default=None))
