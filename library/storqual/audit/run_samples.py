# SPDX-License-Identifier: Apache-2.0
"""A verdict's means and counts against the samples it was judged from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from storqual.audit.expression import Reference
from storqual.audit.notebook import Notebook
from storqual.audit.printed import Printed
from storqual.judge.confirmation import confirming_sessions
from storqual.metrics import METRICS, Value
from storqual.store import Sample, iter_samples, read_run

__all__ = ["sample_claims"]

_ARMS = (("candidate", "candidate"), ("baseline", "reference"))
_FLOAT = Fraction(1, 10**9)
"""Sums of floats differ in their last bits with the order of adding; nothing in a verdict is finer than this."""

Place = tuple[str, str, str, str]
"""Bench, adapter, point, arm."""


@dataclass
class _Counted:
    """What is counted of the samples at a place; `sums` is metric -> (sum, how many have it)."""

    samples: int = 0
    sessions: set[str] = field(default_factory=set)
    sums: dict[str, tuple[Fraction, int]] = field(default_factory=dict)

    def add(self, sample: Sample, metrics: Collection[str]) -> None:
        """One more sample."""
        self.samples += 1
        self.sessions.add(sample.session)
        for name in metrics:
            value = METRICS[name].value(sample)
            if isinstance(value, Value):
                total, count = self.sums.get(name, (Fraction(0), 0))
                self.sums[name] = (total + Fraction(value.value), count + 1)


def sample_claims(book: Notebook, folder: Path, criteria: Sequence[Mapping[str, Any]]) -> None:
    """For each criterion the samples, the sessions and the mean of each arm, counted and added up again."""
    places = _by_place(folder, criteria)
    for number, criterion in enumerate(criteria):
        if criterion.get("against") == "check":
            continue
        for arm, shown in _ARMS:
            counted = places.get(_place(criterion, arm)) or _Counted()
            _counts(book, number, criterion, arm, counted)
            if shown == "candidate" or criterion.get("against") == "baseline":
                _mean(book, number, criterion, shown, counted)


def _by_place(folder: Path, criteria: Sequence[Mapping[str, Any]]) -> Mapping[Place, _Counted]:
    """Samples are read one by one and let go; those that confirm a fail are no part of what it is judged by."""
    wanted: defaultdict[Place, set[str]] = defaultdict(set)
    for criterion in criteria:
        if criterion.get("metric") in METRICS:
            for arm, _ in _ARMS:
                wanted[_place(criterion, arm)].add(str(criterion["metric"]))
    fresh = confirming_sessions(read_run(folder))
    places: defaultdict[Place, _Counted] = defaultdict(_Counted)
    for sample in iter_samples(folder):
        place = (sample.bench, sample.adapter, sample.point, sample.arm)
        if place in wanted and (sample.bench, sample.session) not in fresh:
            places[place].add(sample, wanted[place])
    return places


def _place(criterion: Mapping[str, Any], arm: str) -> Place:
    return (str(criterion.get("bench")), str(criterion.get("adapter")), str(criterion.get("point")), arm)


def _counts(book: Notebook, number: int, criterion: Mapping[str, Any], arm: str, counted: _Counted) -> None:
    for kind, value in (("samples", counted.samples), ("sessions", len(counted.sessions))):
        name, page = f"criterion_{number}.{kind}.{arm}", book.page_of(criterion)
        stated = book.figure(name, (criterion.get(kind) or {}).get(arm), what=f"{arm} {kind}", unit=kind, page=page)
        again = book.figure(f"{name}_again", value, what=f"{arm} {kind} in samples.jsonl", unit=kind, page=page)
        if stated is not None:
            book.claim(name, page, f"{kind} of the {arm}", unit=kind, stated=stated, same=again)


def _mean(book: Notebook, number: int, criterion: Mapping[str, Any], shown: str, counted: _Counted) -> None:
    stated = criterion.get(shown)
    total, count = counted.sums.get(str(criterion.get("metric")), (Fraction(0), 0))
    if stated is None or not count or count != counted.samples:
        return
    mean = total / count
    name, page, unit = f"criterion_{number}.{shown}", book.page_of(criterion), str(criterion.get("unit") or "-")
    what = f"mean of the {shown} launches"
    told = book.figure(name, _to_float(stated), what=what, unit=unit, page=page)
    again = book.figure(f"{name}_again", _to_float(mean), what=f"{what} in samples.jsonl", unit=unit, page=page)
    if told is not None and again is not None:
        # computed and not copied: both are sums of floats
        book.claim(name, page, what, unit=unit, stated=told, computed=Reference(again.figure))


def _to_float(value: object) -> Printed | None:
    """A number known to the precision of sums of floats."""
    exact = value.value if isinstance(value, Printed) else value
    if not isinstance(exact, int | Fraction):
        return None
    number = Fraction(exact)
    return Printed(f"{float(number):.12g}", number, max(abs(number) * _FLOAT, Fraction(1, 10**15)))
