# SPDX-License-Identifier: Apache-2.0
"""The numbers that report.html shows against those of verdict.json: rounded, and otherwise the same."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from storqual.inputs.expression import Reference, parse_expression
from storqual.inputs.published import Assertion, Figure, Printed
from storqual.judge.question import confirming_sessions
from storqual.metrics import METRICS, Value
from storqual.run import Sample, read_launches, read_run, read_samples
from storqual.run.files import read_text


class Notebook:
    """Gathers the figures and assertions of a report; they are not checked again, their writer is the program."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        self.assertions: list[Assertion] = []
        self._names: set[str] = set()

    def has(self, name: str) -> bool:
        """Whether there is a figure of that name."""
        return name in self._names

    def figure(self, name: str, value: object, *, what: str, unit: str = "-", page: str = "run") -> Reference | None:
        """Add a figure: a number with its digits, a whole number (exact), or a word. None when it is none of them."""
        if isinstance(value, int) and not isinstance(value, bool):
            value = Printed.parse(str(value), exact=True)
        if not isinstance(value, Printed | str):
            return None
        self._names.add(name)
        self.figures.append(Figure.model_construct(None, id=name, page=page, what=what, value=value, unit=unit))
        return Reference(name)

    def series(self, name: str, values: Sequence[Printed], *, what: str, unit: str) -> None:
        """Add numbers of one kind, labelled by their place."""
        labels = tuple(str(place) for place in range(len(values)))
        self._names.add(name)
        self.figures.append(
            Figure.model_construct(
                None, id=name, page="run", what=what, values=tuple(values), at=labels, along="place", unit=unit
            )
        )

    def count(self, name: str, value: object, what: str) -> Reference | None:
        """Add a number of points."""
        return self.figure(name, value, what=what, unit="points", page="coverage")

    def claim(self, name: str, page: str, text: str, **way: object) -> None:
        """Add an assertion; `way` is its way of checking, as in a published file."""
        self.assertions.append(Assertion.model_construct(None, id=name, page=page, text=text, **way))

    @staticmethod
    def page_of(criterion: Mapping[str, Any]) -> str:
        """The place of a criterion, by the name that its test has."""
        return f"{criterion.get('metric') or criterion.get('id')}@{criterion.get('adapter')}/{criterion.get('point')}"


_ROW = re.compile(r"c(\d+)")
_NUMBER = re.compile(r"[+\-]?\d[\d,]*(?:\.\d+)?(?:e[+\-]?\d+)?")
_EXIT_CODE = re.compile(r"Exit code (\d+)")
_COUNTS = ("samples", "sessions")
_DRAWN = 5
"""Cells with numbers in a row that has a shift: reference, candidate, shift and interval, margin, counts."""


@dataclass
class _Row:
    outcome: str = ""
    cells: list[str] = field(default_factory=list)


class _Page(HTMLParser):
    """Reads the outcome, the exit code and the rows of criteria; everything else of the page passes by."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: dict[int, _Row] = {}
        self.outcome = ""
        self.text: list[str] = []
        self.facts: dict[str, str] = {}
        self._row: _Row | None = None
        self._into: str = ""
        self._term: str = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Follow where the next text belongs."""
        named = {name: value or "" for name, value in attrs}
        if tag == "h2":
            self._into = "outcome" if named.get("id") == "outcome" else ""
        elif tag in ("dt", "b"):
            self._into = tag if self._row is None else self._into
        elif tag == "tr":
            found = _ROW.fullmatch(named.get("id", ""))
            self._row = self.rows.setdefault(int(found[1]), _Row()) if found else None
        elif tag == "td" and self._row is not None:
            self._into = {"n": "cell", "why": "why"}.get(named.get("class", ""), "")
            if self._into == "cell":
                self._row.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        """Leave the cell, the row or the heading."""
        if tag in ("td", "h2", "dt") or (tag == "b" and self._row is None):
            self._into = ""
        elif tag == "tr":
            self._row = None

    def handle_data(self, data: str) -> None:
        """Keep the text that is looked for."""
        self.text.append(data)
        if self._into == "outcome":
            self.outcome += data
        elif self._into == "dt":
            self._term = data.strip()
        elif self._into == "b" and self._term:
            self.facts.setdefault(self._term, data.strip())
        elif self._into == "cell" and self._row is not None:
            self._row.cells[-1] += f" {data}"
        elif self._into == "why" and self._row is not None and not self._row.outcome:
            words = [word for word in data.split() if word.isupper() and word.isalpha()]
            self._row.outcome = words[0] if words else ""


def page_claims(
    book: Notebook, path: Path, verdict: Mapping[str, Any], criteria: Sequence[Mapping[str, Any]]
) -> None:
    """Outcome, exit code, and each row's outcome, shift, interval, margin, detectable loss and counts."""
    page = _Page()
    page.feed(read_text(path.parent, path.name))
    page.close()
    word = page.outcome.split()[-1] if page.outcome.split() else ""
    shown = book.figure("page.outcome", word or None, what="outcome on the page", page="report.html")
    if shown is not None:
        book.claim("page.outcome", "report.html", f"Outcome: {word}", stated=shown, same=Reference("outcome"))
    code = _EXIT_CODE.search(" ".join(page.text))
    if code is not None and verdict.get("exit_code") is not None:
        shown = book.figure("page.exit_code", int(code[1]), what="exit code on the page", page="report.html")
        book.claim("page.exit_code", "report.html", code[0], stated=shown, same=Reference("exit_code"))
    _fact_claims(book, page.facts, criteria)
    for number, row in sorted(page.rows.items()):
        if number < len(criteria):
            _row_claims(book, number, row, criteria[number])


def _fact_claims(book: Notebook, facts: Mapping[str, str], criteria: Sequence[Mapping[str, Any]]) -> None:
    """The first screen's figures: the worst and the best shift, and the coverage."""
    shifts = [
        value
        for criterion in criteria
        if criterion.get("required", True) and criterion.get("against") == "baseline"
        if isinstance(value := criterion.get("shift_percent"), Printed)
    ]
    book.series("shifts", shifts, what="shifts of the required criteria", unit="%")
    for term, end, name in (("Worst", "lowest", "worst"), ("Best", "highest", "best")):
        told = facts.get(term, "")
        stated_shifts = _changes(told, lower_is_better=_lower_is_better(told))
        if stated_shifts and shifts:
            stated, computed = stated_shifts[0], parse_expression(f"{end}(shifts)")
            text = f"{term}: {told}"
            book.claim(f"page.{name}", "report.html", text, unit="%", stated=stated, computed=computed)
    covered = _NUMBER.findall(facts.get("Coverage", ""))
    for count, name in zip(covered, ("measured", "planned"), strict=False):
        if book.has(f"coverage.{name}"):
            shown = book.count(f"page.{name}", int(count.replace(",", "")), f"points {name} on the page")
            same = Reference(f"coverage.{name}")
            text = f"{count} points {name}"
            book.claim(f"page.{name}", "report.html", text, unit="points", stated=shown, same=same)


def _row_claims(book: Notebook, number: int, row: _Row, criterion: Mapping[str, Any]) -> None:
    place, name = book.page_of(criterion), f"page.criterion_{number}"
    shown = book.figure(f"{name}.outcome", row.outcome or None, what="outcome on the page", page=place)
    judged = book.figure(f"{name}.judged", str(criterion.get("outcome")), what="outcome in verdict.json", page=place)
    if shown is not None:
        book.claim(f"{name}.outcome", place, f"the page's outcome {row.outcome}", stated=shown, same=judged)
    if len(row.cells) != _DRAWN:
        return
    # what was measured afresh to confirm a fail has an interval of its own behind it
    shift = _changes(row.cells[2].partition("confirmation:")[0], lower_is_better=criterion.get("better") == "lower")
    margin, counts = ([*map(_printed, _NUMBER.findall(_plain(cell)))] for cell in row.cells[3:])
    wanted = [
        *zip(("shift", "low", "high"), shift, strict=False),
        *zip(("margin", "detectable"), margin, strict=False),
    ]
    for short, value in wanted:
        if book.has(f"criterion_{number}.{short}"):
            stated = book.figure(f"{name}.{short}", value, what=f"{short} on the page", unit="%", page=place)
            text = f"the page's {short}, {value.text} %"
            same = Reference(f"criterion_{number}.{short}")
            book.claim(f"{name}.{short}", place, text, unit="%", stated=stated, same=same)
    # the page of a run with one arm prints no zeros for the other
    arms = ("baseline", "candidate") if len(counts) > len(_COUNTS) else ("candidate",)
    kinds = [f"{kind}.{arm}" for kind in _COUNTS for arm in arms]
    for kind, value in zip(kinds, counts, strict=False):
        if book.has(f"criterion_{number}.{kind}"):
            stated = book.figure(f"{name}.{kind}", value, what=f"{kind} on the page", page=place)
            same = Reference(f"criterion_{number}.{kind}")
            book.claim(f"{name}.{kind}", place, f"the page's {kind}, {value.text}", stated=stated, same=same)


_CHANGE = re.compile(r"(\d[\d,]*(?:\.\d+)?(?:e[+\-]?\d+)?)\s%(?:\s(more|less|fewer|higher|lower)\b)?")


def _changes(text: str, *, lower_is_better: bool) -> list[Printed]:
    """Changes told in words, as shifts: what grew is better unless less of it is; one without a word is no change."""
    return [
        _printed(f"{'' if (word in ('more', 'higher')) != lower_is_better or not word else '-'}{number}")
        for number, word in _CHANGE.findall(text)
    ]


def _lower_is_better(told: str) -> bool:
    """Whether the metric that a sentence ends with is one of which less is better."""
    return any(
        metric.better == "lower" for metric in METRICS.values() if told.casefold().endswith(metric.label.casefold())
    )


def _plain(text: str) -> str:
    """With an ordinary minus sign."""
    return text.replace("\u2212", "-")


def _printed(text: str) -> Printed:
    return Printed.parse(text.replace(",", "").lstrip("+"))


_ARMS = (("candidate", "candidate"), ("baseline", "reference"))
_FLOAT = Fraction(1, 10**9)
"""Sums of floats differ in their last bits with the order of adding; nothing in a verdict is finer than this."""

ArmAtPoint = tuple[str, str, str, str, str]
"""Bench, adapter, point, arm, and which launches there: `all`, `clean` ones, or clean `pairs`."""


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
    """For each criterion the samples, the sessions and the mean of each arm, counted and added up again.

    The audit is the second opinion: it reads the samples again and keeps sums of its own, exact fractions, instead of
    those that the judge and the report were made from.
    """
    alone = _unpaired(folder)
    places = _by_place(folder, criteria, alone)
    for number, criterion in enumerate(criteria):
        if criterion.get("against") == "check":
            continue
        for arm, shown in _ARMS:
            counted = places.get(_place(criterion, arm, alone)) or _Counted()
            _counts(book, number, criterion, arm, counted)
            if shown == "candidate" or criterion.get("against") == "baseline":
                _mean(book, number, criterion, shown, counted)


def _unpaired(folder: Path) -> frozenset[str]:
    """Benches whose arms have sessions of their own: their launches have no partners."""
    run = read_run(folder)
    designs = run.document["plan"].get("designs") or {}
    kinds = {bench: (designs.get(bench) or {}).get("kind", run.plan.design) for bench in run.benches}
    return frozenset(bench for bench, kind in kinds.items() if kind == "sessions")


def _by_place(
    folder: Path, criteria: Sequence[Mapping[str, Any]], alone: Collection[str]
) -> Mapping[ArmAtPoint, _Counted]:
    """Samples are read one by one and let go; those that confirm a fail are no part of what it is judged by."""
    wanted: defaultdict[ArmAtPoint, set[str]] = defaultdict(set)
    for criterion in criteria:
        if criterion.get("metric") in METRICS:
            for arm, _ in _ARMS:
                wanted[_place(criterion, arm, alone)].add(str(criterion["metric"]))
    fresh = confirming_sessions(read_run(folder))
    doubtful = {
        (*one.key, one.n)
        for one in read_launches(folder)
        if one.suspect and one.status == "ok" and (one.bench, one.session) not in fresh
    }
    places: defaultdict[ArmAtPoint, _Counted] = defaultdict(_Counted)
    for sample in read_samples(folder):
        if (sample.bench, sample.session) in fresh:
            continue
        suspect = bool(sample.suspect) and sample.status == "ok"
        partner = (*sample.key, sample.n) in doubtful and sample.status == "ok"
        for which, left_out in (("all", False), ("clean", suspect), ("pairs", suspect or partner)):
            place = (sample.bench, sample.adapter, sample.point, sample.arm, which)
            if place in wanted and not left_out:
                places[place].add(sample, wanted[place])
    return places


def _place(criterion: Mapping[str, Any], arm: str, alone: Collection[str]) -> ArmAtPoint:
    """Where the launches of an arm are. Verdicts that say nothing of suspect launches took them for evidence."""
    bench = str(criterion.get("bench"))
    which = "pairs" if criterion.get("against") == "baseline" and bench not in alone else "clean"
    if "suspect" not in criterion:
        which = "all"
    return (bench, str(criterion.get("adapter")), str(criterion.get("point")), arm, which)


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
