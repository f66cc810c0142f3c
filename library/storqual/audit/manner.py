# SPDX-License-Identifier: Apache-2.0
"""In which manner an author rounded: learned from the figures that only one manner can explain."""

from __future__ import annotations

from collections.abc import Sequence

from storqual.audit.comparison import Comparison
from storqual.audit.printed import Rounding

__all__ = ["hedged_manners", "infer_manner"]

_EVIDENCE = 2
"""How many figures must speak for a manner other than rounding to nearest: one could be a misprint."""


def infer_manner(members: Sequence[Comparison]) -> Rounding:
    """The manner in which most members, computed from the figures exactly as printed, give what is printed."""
    values = [member for member in members if not member.bound]
    if len(values) < _EVIDENCE:
        return Rounding.NEAREST
    hits = {manner: [member for member in values if member.agrees_exactly(manner)] for manner in Rounding}
    nearest = hits[Rounding.NEAREST]
    best = max((Rounding.DOWN, Rounding.UP), key=lambda manner: len(hits[manner]))
    evidence = [member for member in hits[best] if member not in nearest]
    return best if len(hits[best]) > len(nearest) and len(evidence) >= _EVIDENCE else Rounding.NEAREST


def hedged_manners(member: Comparison) -> tuple[Rounding, ...]:
    """What "about" lets an author do: round either way, by less than a unit of the last digit."""
    return (Rounding.DOWN, Rounding.UP) if member.assertion.relation == "about" else ()
