# SPDX-License-Identifier: Apache-2.0
"""A verdict's means and counts against the samples it was judged from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from storqual.audit.expression import Reference
from storqual.audit.notebook import Notebook
from storqual.audit.printed import Printed
from storqual.metrics import METRICS, Value
from storqual.store import Sample, iter_samples

__all__ = ["sample_claims"]

_ARMS = (("candidate", "candidate"), ("baseline", "reference"))
_FLOAT = Fraction(1, 10**9)
"""Sums of floats differ in their last bits with the order of adding; nothing in a verdict is finer than this."""

Places = Mapping[tuple[str, str, str, str], Sequence[Sample]]


def sample_claims(book: Notebook, folder: Path, criteria: Sequence[Mapping[str, Any]]) -> None:
    """For each criterion the samples, the sessions and the mean of each arm, counted and added up again."""
    places = _by_place(folder)
    for number, criterion in enumerate(criteria):
        if criterion.get("against") == "check":
            continue
        for arm, field in _ARMS:
            samples = places.get(_place(criterion, arm), ())
            _counts(book, number, criterion, arm, samples)
            if field == "candidate" or criterion.get("against") == "baseline":
                _mean(book, number, criterion, field, samples)


def _by_place(folder: Path) -> Places:
    places: defaultdict[tuple[str, str, str, str], list[Sample]] = defaultdict(list)
    for sample in iter_samples(folder):
        places[(sample.bench, sample.adapter, sample.point, sample.arm)].append(sample)
    return places


def _place(criterion: Mapping[str, Any], arm: str) -> tuple[str, str, str, str]:
    return (str(criterion.get("bench")), str(criterion.get("adapter")), str(criterion.get("point")), arm)


def _counts(book: Notebook, number: int, criterion: Mapping[str, Any], arm: str, samples: Sequence[Sample]) -> None:
    counted = {"samples": len(samples), "sessions": len({sample.session for sample in samples})}
    for kind, value in counted.items():
        name, page = f"criterion_{number}.{kind}.{arm}", book.page_of(criterion)
        stated = book.figure(name, (criterion.get(kind) or {}).get(arm), what=f"{arm} {kind}", unit=kind, page=page)
        again = book.figure(f"{name}_again", value, what=f"{arm} {kind} in samples.jsonl", unit=kind, page=page)
        if stated is not None:
            book.claim(name, page, f"{kind} of the {arm}", unit=kind, stated=stated, same=again)


def _mean(book: Notebook, number: int, criterion: Mapping[str, Any], field: str, samples: Sequence[Sample]) -> None:
    metric = METRICS.get(str(criterion.get("metric")))
    stated = criterion.get(field)
    if metric is None or stated is None or not samples:
        return
    values = [value.value for value in (metric.value(sample) for sample in samples) if isinstance(value, Value)]
    if len(values) != len(samples):
        return
    mean = sum(map(Fraction, values)) / len(values)
    name, page, unit = f"criterion_{number}.{field}", book.page_of(criterion), str(criterion.get("unit") or "-")
    what = f"mean of the {field} launches"
    shown = book.figure(name, _to_float(stated), what=what, unit=unit, page=page)
    again = book.figure(f"{name}_again", _to_float(mean), what=f"{what} in samples.jsonl", unit=unit, page=page)
    if shown is not None and again is not None:
        # computed and not copied: both are sums of floats
        book.claim(name, page, what, unit=unit, stated=shown, computed=Reference(again.figure))


def _to_float(value: object) -> Printed | None:
    """A number known to the precision of sums of floats."""
    exact = value.value if isinstance(value, Printed) else value
    if not isinstance(exact, int | Fraction):
        return None
    number = Fraction(exact)
    return Printed(f"{float(number):.12g}", number, max(abs(number) * _FLOAT, Fraction(1, 10**15)))
