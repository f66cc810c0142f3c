# SPDX-License-Identifier: Apache-2.0
"""The criteria of a verdict: read, shown and compared in one way by every part of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from markupsafe import Markup

from storqual.report.figures import DASH, NONE, Figure, Scale, count, percent

AS_IT_IS = Scale("")
NO_PICTURE = Markup("")


@dataclass(frozen=True)
class Criterion:
    """One entry of `verdict.criteria` with its index there; percentages as they stand in the file.

    In a table it has the table's `scale` for its values, the place of its point's evidence (`href`) and a `picture`.
    """

    index: int
    fields: Mapping[str, Any]
    scale: Scale = AS_IT_IS
    href: str = ""
    picture: Markup = NO_PICTURE

    def shown(self, scale: Scale, href: str, picture: Markup = NO_PICTURE) -> Criterion:
        """The same in a table."""
        return replace(self, scale=scale, href=href, picture=picture)

    @property
    def ident(self) -> str:
        """The anchor of its row in the page."""
        return f"c{self.index}"

    @property
    def badge(self) -> Outcome:
        """The outcome as it is shown."""
        return outcome(self.outcome)

    @property
    def name(self) -> str:
        """Its point; of a check that is about no point, its id and the adapter that it is about."""
        return self.text("point") or " on ".join(filter(None, [self.text("id"), self.text("adapter")]))

    def check_name(self, benches: Sequence[str], *, alone: bool = True) -> str:
        """A check with its point (if it stands `alone`), behind its bench where there are several."""
        at = f" at {self.text('adapter')}/{self.text('point')}" if alone and self.text("point") else ""
        named = f"{self.text('id')}{at}" if at or not alone else self.name
        return f"{self.text('bench')}: {named}" if len(benches) > 1 and self.text("bench") else named

    @property
    def own_id(self) -> str:
        """The id that the suite gave it, without the point that some verdicts add; empty where it is its metric."""
        named = self.text("id").partition("@")[0]
        return "" if named == self.text("metric") else named

    @property
    def candidate(self) -> Figure:
        """The candidate's value."""
        return self.scale.figure(self.number("candidate"), self.source("candidate"))

    @property
    def reference(self) -> Figure:
        """What it is compared with."""
        return self.scale.figure(self.number("reference"), self.source("reference"))

    def percent(self, name: str, *, signed: bool = True) -> Figure:
        """The field `<name>_percent`; a margin has no sign."""
        return percent(self.number(f"{name}_percent"), self.source(f"{name}_percent"), signed=signed)

    @property
    def shift(self) -> Figure:
        """The candidate's change against its reference; negative is worse."""
        return self.percent("shift")

    @property
    def ends(self) -> tuple[Figure, Figure]:
        """The ends of the shift's 95 % interval."""
        low, high = self.interval()
        return percent(low, self.source("ci95_percent/0")), percent(high, self.source("ci95_percent/1"))

    def counts(self, name: str) -> tuple[Figure, Figure]:
        """`samples` or `sessions` of the baseline and of the candidate."""
        numbers = self.fields.get(name)
        known = numbers if isinstance(numbers, dict) else {}
        first, second = (
            count(known[arm], self.source(f"{name}/{arm}")) if isinstance(known.get(arm), int) else NONE
            for arm in ("baseline", "candidate")
        )
        return first, second

    @property
    def waiver(self) -> str:
        """Who accepted the failure; empty for one that nobody accepted."""
        return waived_by(self.fields.get("waiver") or {}) if self.waived else ""

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


def read_criteria(verdict: Mapping[str, Any]) -> tuple[Criterion, ...]:
    """All criteria of the verdict, in its order."""
    return tuple(Criterion(index, fields) for index, fields in enumerate(verdict.get("criteria") or ()))


def place_name(benches: Sequence[str], bench: str, adapter: str) -> str:
    """An adapter's alias, with its bench in front where the campaign has several benches."""
    if not adapter:
        return bench
    return f"{bench}/{adapter}" if len(benches) > 1 else adapter


@dataclass(frozen=True)
class Outcome:
    """An outcome as it is shown: the word, a symbol beside it, and the class that colours it."""

    word: str
    symbol: str
    tone: str


# symbol: its own shape for each, so that print without colour and colour-blind readers tell them apart
OUTCOMES: dict[str, Outcome] = {
    "PASS": Outcome("PASS", "\u2713", "pass"),
    "MARGINAL": Outcome("MARGINAL", "\u2248", "marginal"),
    "FAIL": Outcome("FAIL", "\u2715", "fail"),
    "INCONCLUSIVE": Outcome("INCONCLUSIVE", "?", "inconclusive"),
    "ERROR": Outcome("ERROR", "!", "error"),
    "SKIPPED": Outcome("SKIPPED", "\u2013", "skipped"),
}


def waived_by(waiver: Mapping[str, object]) -> str:
    """Who accepted a failure, and for how long."""
    return f"waived by {waiver.get('owner') or DASH} until {waiver.get('expiry') or DASH}"


def outcome(word: str) -> Outcome:
    """The outcome called `word`; a word that is none is shown as it is, coloured as an error or as a waiver."""
    return OUTCOMES.get(word) or Outcome(word, "!", "marginal" if word == "WAIVED" else "error")
