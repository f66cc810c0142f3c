# SPDX-License-Identifier: Apache-2.0
"""The criteria of a verdict as records that every part of the report reads the same way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Row:
    """One entry of `verdict.criteria` with its index there; percentages as they stand in the file."""

    index: int
    fields: Mapping[str, Any]

    @property
    def ident(self) -> str:
        """The anchor of this row in the page."""
        return f"c{self.index}"

    @cached_property
    def outcome(self) -> str:
        """PASS, MARGINAL, FAIL, INCONCLUSIVE, ERROR or SKIPPED."""
        return str(self.fields.get("outcome") or "ERROR")

    @property
    def required(self) -> bool:
        """Whether the run's outcome depends on it; an informative criterion is shown and decides nothing."""
        return bool(self.fields.get("required", True))

    @property
    def waived(self) -> bool:
        """Whether somebody accepted this failure."""
        return self.outcome == "FAIL" and bool(self.fields.get("waiver"))

    @cached_property
    def key(self) -> tuple[str, str, str]:
        """The cell (bench, adapter, point) that it was judged at."""
        return (self.text("bench"), self.text("adapter"), self.text("point"))

    @property
    def against(self) -> str:
        """What it was judged against: baseline, absolute, peers, published, check."""
        return self.text("against") or "baseline"

    def text(self, name: str) -> str:
        """The field `name` as text; empty when it is missing or null."""
        value = self.fields.get(name)
        return "" if value is None else str(value)

    def number(self, name: str) -> float | None:
        """The field `name` as a number; None when it is missing, null or no number."""
        value = self.fields.get(name)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def interval(self) -> tuple[float | None, float | None]:
        """The ends of the 95 % interval of the shift."""
        ends = self.fields.get("ci95_percent")
        if not isinstance(ends, (list, tuple)) or len(ends) != 2:
            return None, None
        low, high = ends
        return (None if low is None else float(low)), (None if high is None else float(high))

    def source(self, name: str) -> str:
        """Where the field `name` stands, as a Figure says it."""
        return f"verdict:/criteria/{self.index}/{name}"


def read_rows(verdict: Mapping[str, Any]) -> tuple[Row, ...]:
    """All criteria of the verdict, in its order."""
    return tuple(Row(index, fields) for index, fields in enumerate(verdict.get("criteria") or ()))


def place_name(benches: Sequence[str], bench: str, adapter: str) -> str:
    """An adapter's alias, with its bench in front where the campaign has several benches."""
    if not adapter:
        return bench
    return f"{bench}/{adapter}" if len(benches) > 1 else adapter
