# SPDX-License-Identifier: Apache-2.0
"""The criteria of a verdict: read, shown, compared and put into words in one way by every part of the report.

A criterion is a test case of junit.xml too: which criteria each case stands for, how it is called, how it ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from markupsafe import Markup

from storqual.base.figures import DASH, NONE, Scale, ShownNumber, count, percent
from storqual.base.text import MINUS
from storqual.report.material import measure

MOST_ITEMS = 10_000
"""Above it a case stands for a workload: pytest keeps every one in memory, and a reader reads none of them."""
WORST_FIRST = ("ERROR", "FAIL", "INCONCLUSIVE", "MARGINAL", "PASS", "SKIPPED")


def named_cases(criteria: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    groups = _by_point(criteria) if len(criteria) <= MOST_ITEMS else _by_workload(criteria)
    seen: defaultdict[str, int] = defaultdict(int)
    for name, members in groups:
        seen[name] += 1
        what, at, point = name.partition("@")
        yield name if seen[name] == 1 else f"{what}#{seen[name]}{at}{point}", members


def worst_of(criteria: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return min(criteria, key=lambda entry: WORST_FIRST.index(entry["outcome"]))


def is_accepted(criteria: Sequence[Mapping[str, Any]]) -> bool:
    failed = [entry for entry in criteria if entry["outcome"] == "FAIL"]
    return worst_of(criteria)["outcome"] == "FAIL" and all(entry.get("waiver") for entry in failed)


def _by_point(criteria: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Each criterion by itself, called `metric@adapter/point`; the bench in front where there are several."""
    several = len({entry.get("bench") for entry in criteria}) > 1
    for entry in criteria:
        # a check is known by its id: several of them may have no metric, no adapter and no point
        what = entry.get("metric") or entry["id"]
        point = "/".join(str(entry[part]) for part in ("adapter", "point") if entry.get(part))
        bench = f"{entry['bench']}:" if several and entry.get("bench") else ""
        yield _neutral(f"{what}@{bench}{point}" if point or bench else str(what)), [entry]


def _by_workload(criteria: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    groups: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for entry in criteria:
        workload = str(entry.get("point") or "").partition("[")[0]
        what = entry.get("metric") or entry["id"]
        groups[_neutral(f"{what}@{entry.get('adapter') or ''}/{workload}")].append(entry)
    yield from groups.items()


def _neutral(name: str) -> str:
    """A name that is text everywhere: pytest-html writes ids into the page as they are."""
    return "".join(letter if letter.isalnum() or letter in "@/[]=,._-:%# " else "_" for letter in name)


AS_IT_IS = Scale("")
NO_PICTURE = Markup("")


@dataclass(frozen=True)
class JudgedCriterion:
    """One entry of `verdict.criteria` with its index there; percentages as they stand in the file.

    In a table it has the table's `scale` for its values, the place of its point's evidence (`href`) and a `picture`.
    """

    index: int
    fields: Mapping[str, Any]
    scale: Scale = AS_IT_IS
    href: str = ""
    picture: Markup = NO_PICTURE

    def shown(self, scale: Scale, href: str, picture: Markup = NO_PICTURE) -> JudgedCriterion:
        return replace(self, scale=scale, href=href, picture=picture)

    @property
    def ident(self) -> str:
        return f"c{self.index}"

    @property
    def badge(self) -> OutcomeBadge:
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
    def candidate(self) -> ShownNumber:
        return self.scale.figure(self.number("candidate"), self.source("candidate"))

    @property
    def reference(self) -> ShownNumber:
        return self.scale.figure(self.number("reference"), self.source("reference"))

    def percent(self, name: str, *, signed: bool = True) -> ShownNumber:
        """The field `<name>_percent`; a margin has no sign."""
        return percent(self.number(f"{name}_percent"), self.source(f"{name}_percent"), signed=signed)

    @property
    def shift(self) -> ShownNumber:
        """The candidate's change against its reference; negative is worse."""
        return self.percent("shift")

    @property
    def ends(self) -> tuple[ShownNumber, ShownNumber]:
        low, high = self.interval()
        return percent(low, self.source("ci95_percent/0")), percent(high, self.source("ci95_percent/1"))

    @property
    def change(self) -> ShownNumber:
        """The shift as "more" or "less" of the metric."""
        return amount(self, self.shift)

    @property
    def bounds(self) -> tuple[ShownNumber, ShownNumber]:
        """The ends of the interval in the same words; dashes for one that says nothing."""
        return ends_in_words(self)

    @property
    def detectable(self) -> ShownNumber:
        """The smallest loss that would have been found; a dash where not even the loss of all would."""
        number = self.number("detectable_percent")
        return (
            ShownNumber(DASH) if number is None or number > MOST_PERCENT else self.percent("detectable", signed=False)
        )

    @property
    def confirmation(self) -> tuple[ShownNumber | str, ...]:
        """What launches made to confirm a fail say by themselves; empty where there are none."""
        return confirmation(self)

    def counts(self, name: str) -> tuple[ShownNumber, ShownNumber]:
        """`samples` or `sessions` of the baseline and of the candidate."""
        numbers = self.fields.get(name)
        counts = numbers if isinstance(numbers, dict) else {}
        first, second = (
            count(counts[arm], self.source(f"{name}/{arm}")) if isinstance(counts.get(arm), int) else NONE
            for arm in ("baseline", "candidate")
        )
        return first, second

    @property
    def waiver(self) -> str:
        return waived_by(self.fields.get("waiver") or {}) if self.waived else ""

    @cached_property
    def outcome(self) -> str:
        return str(self.fields.get("outcome") or "ERROR")

    @property
    def required(self) -> bool:
        """Whether the run's outcome depends on it; an informative criterion is shown and decides nothing."""
        return bool(self.fields.get("required", True))

    @property
    def waived(self) -> bool:
        return self.outcome == "FAIL" and bool(self.fields.get("waiver"))

    @cached_property
    def key(self) -> tuple[str, str, str]:
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
        ends = self.fields.get("ci95_percent")
        if not isinstance(ends, (list, tuple)) or len(ends) != 2:
            return None, None
        low, high = ends
        return (None if low is None else float(low)), (None if high is None else float(high))

    def source(self, name: str) -> str:
        """Where the field `name` stands, as a Figure says it."""
        return f"verdict:/criteria/{self.index}/{name}"


def read_criteria(verdict: Mapping[str, Any]) -> tuple[JudgedCriterion, ...]:
    return tuple(JudgedCriterion(index, fields) for index, fields in enumerate(verdict.get("criteria") or ()))


def adapter_name(benches: Sequence[str], bench: str, adapter: str) -> str:
    """An adapter's alias, with its bench in front where the campaign has several benches."""
    if not adapter:
        return bench
    return f"{bench}/{adapter}" if len(benches) > 1 else adapter


@dataclass(frozen=True)
class OutcomeBadge:
    """An outcome as it is shown: the word, a symbol beside it, and the class that colours it."""

    word: str
    symbol: str
    tone: str


# symbol: its own shape for each, so that print without colour and colour-blind readers tell them apart
OUTCOMES: dict[str, OutcomeBadge] = {
    "PASS": OutcomeBadge("PASS", "\u2713", "pass"),
    "MARGINAL": OutcomeBadge("MARGINAL", "\u2248", "marginal"),
    "FAIL": OutcomeBadge("FAIL", "\u2715", "fail"),
    "INCONCLUSIVE": OutcomeBadge("INCONCLUSIVE", "?", "inconclusive"),
    "ERROR": OutcomeBadge("ERROR", "!", "error"),
    "SKIPPED": OutcomeBadge("SKIPPED", "\u2013", "skipped"),
}


def waived_by(waiver: Mapping[str, object]) -> str:
    return f"waived by {waiver.get('owner') or DASH} until {waiver.get('expiry') or DASH}"


def outcome(word: str) -> OutcomeBadge:
    return OUTCOMES.get(word) or OutcomeBadge(word, "!", "marginal" if word == "WAIVED" else "error")


_FEWER = ("IOPS", "1/TB", "1/min", "1/s")
_HIGHER = ("ns", "us", "s", "%")
MOST_PERCENT = 100.0
"""An interval or a detectable loss that reaches further says that nothing is known; its ends are not printed."""


def grew(row: JudgedCriterion, shift: float) -> bool:
    """Whether the metric itself grew where the candidate changed by `shift` (negative is worse)."""
    return (shift > 0) == (row.text("better") != "lower")


def amount(row: JudgedCriterion, shown: ShownNumber) -> ShownNumber:
    """A shift, or an end of its interval, as a size with "more" or "less" behind it; a zero has neither."""
    if shown.value is None:
        return NONE
    size = shown.text.lstrip(f"+{MINUS}")
    if not any(digit in size for digit in "123456789"):
        return ShownNumber(size, shown.value, shown.source)
    word = "more" if grew(row, shown.value) else "less"
    return ShownNumber(f"{size} {word}", shown.value, shown.source)


def in_words(row: JudgedCriterion) -> ShownNumber:
    """The whole change of a criterion: `61.9 % more CPU time per I/O`, `9.9 % fewer IOPS`, `no change in IOPS`."""
    shown = row.change
    if shown.value is None:
        return NONE
    label = measure(row.text("metric")).label
    name = in_sentence(label)
    size, _, word = shown.text.rpartition(" ")
    if word not in ("more", "less"):
        return ShownNumber(f"{shown.text} change in {name}", shown.value, shown.source)
    unit = row.text("unit")
    if unit in _HIGHER:
        word = "higher" if word == "more" else "lower"
    elif word == "less" and unit in _FEWER:
        word = "fewer"
    return ShownNumber(f"{size} {word} {name}", shown.value, shown.source)


def in_sentence(label: str) -> str:
    """A metric's label within a sentence: what is no abbreviation begins small."""
    return label[:1].lower() + label[1:] if label[1:2].islower() or label[1:2] == " " else label


def says_nothing(row: JudgedCriterion) -> bool:
    """Whether a shift has an interval so wide that its ends, and the shift in it, are no news."""
    low, high = row.interval()
    return low is not None and high is not None and (low < -MOST_PERCENT or high - low > MOST_PERCENT)


def ends_in_words(row: JudgedCriterion) -> tuple[ShownNumber, ShownNumber]:
    """The ends of the 95 % interval, what is worse first; dashes for one that says nothing."""
    if says_nothing(row):
        return NONE, NONE
    low, high = row.ends
    return amount(row, low), amount(row, high)


def confirmation(row: JudgedCriterion) -> tuple[ShownNumber | str, ...]:
    again = row.fields.get("confirmation")
    if not isinstance(again, dict):
        return ()
    counts = again.get("samples") or {}
    launches = [
        count(counts.get(arm) or 0, row.source(f"confirmation/samples/{arm}")) for arm in ("baseline", "candidate")
    ]
    shift = amount(row, percent(again.get("shift_percent"), row.source("confirmation/shift_percent")))
    parts: tuple[ShownNumber | str, ...] = (*launches[:1], " + ", *launches[1:], " fresh launches: ", shift)
    ends = again.get("ci95_percent")
    if isinstance(ends, (list, tuple)) and len(ends) == 2:
        low, high = (
            amount(row, percent(end, row.source(f"confirmation/ci95_percent/{at}"))) for at, end in enumerate(ends)
        )
        parts = (*parts, ", ", low, " to ", high)
    return parts


def is_shown(row: JudgedCriterion) -> bool:
    """Whether a change is shown: the whole 95 % interval lies on one side of no change."""
    low, high = row.interval()
    return low is not None and high is not None and (low > 0 or high < 0)


def measurement(row: JudgedCriterion) -> tuple[str, ...]:
    """What a criterion measures: IOPS and throughput of one point and block size are one number, twice told."""
    metric = row.text("metric")
    way = metric.partition("_")[0]
    if metric.endswith("iops") or "throughput" in metric:
        metric = f"{way}_rate" if way in ("read", "write", "trim") else "rate"
    return (*row.key, metric, row.against)


def once_each(rows: Sequence[JudgedCriterion]) -> list[JudgedCriterion]:
    """One criterion of each measurement, the first one asked, or the worse one where they disagree; every check."""
    chosen: dict[tuple[str, ...], JudgedCriterion] = {}
    for row in rows:
        key = ("check", row.text("id"), *row.key) if row.against == "check" else measurement(row)
        former = chosen.get(key)
        if former is None or _severity(row) > _severity(former):
            chosen[key] = row
    return list(chosen.values())


_SEVERITY = ("PASS", "SKIPPED", "MARGINAL", "INCONCLUSIVE", "ERROR", "FAIL")


def _severity(row: JudgedCriterion) -> tuple[int, bool]:
    rank = _SEVERITY.index(row.outcome) if row.outcome in _SEVERITY else len(_SEVERITY)
    return rank, not row.waived
