# SPDX-License-Identifier: Apache-2.0
"""storqual's own run as a report to be audited: its numbers as figures, its conclusions as assertions.

Whoever publishes percentages must let them be recomputed: the audit that reads the papers reads verdict.json, what it
was judged from, and the page made of it, before any of them is published.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storqual.audit.run_figures import Notebook, page_claims, sample_claims
from storqual.base.files import OddFileError
from storqual.inputs.expression import parse_decimal, parse_expression
from storqual.inputs.published import Printed, Published, Source
from storqual.run.files import parse_line, read_text
from storqual_core.kit.errors import BadInputError

_LARGEST_FILE = 512 << 20
"""Bytes; a criterion takes a kilobyte, and a large campaign has a hundred thousand."""
_VERDICT_SCHEMA = "storqual.verdict/1"
_EXIT_CODES = {"PASS": 0, "MARGINAL": 0, "FAIL": 1, "INCONCLUSIVE": 2, "ERROR": 2}


def read_run_directory(folder: Path) -> Published:
    """The figures and assertions of a judged run: verdict.json against itself, run.json, the samples and the page.

    Samples and page are used where they are. Raises BadInputError when verdict.json or run.json is not there.
    """
    verdict = _read(folder / "verdict.json")
    run = _read(folder / "run.json")
    if verdict.get("schema") != _VERDICT_SCHEMA:
        found = f"found schema {verdict.get('schema')!r}, expected {_VERDICT_SCHEMA!r}"
        raise BadInputError([f"{folder / 'verdict.json'}: {found}"])
    book = Notebook()
    criteria = [one for one in verdict.get("criteria") or () if isinstance(one, dict)]
    _outcome(book, verdict, criteria)
    _coverage(book, verdict.get("coverage") or {}, run.get("coverage") or {})
    for number, criterion in enumerate(criteria):
        _criterion(book, number, criterion)
    if (folder / "samples.jsonl").is_file():
        with _numbers_of(folder / "samples.jsonl"):
            sample_claims(book, folder, criteria)
    if (folder / "report.html").is_file():
        with _numbers_of(folder / "report.html"):
            page_claims(book, folder / "report.html", verdict, criteria)
    source = Source.model_construct(
        name="run",
        title=f"storqual run {verdict.get('run')}",
        publisher="storqual",
        text="verdict.json",
        pages="parts of verdict.json",
    )
    return Published.model_construct(report=source, figures=tuple(book.figures), assertions=tuple(book.assertions))


@contextmanager
def _numbers_of(path: Path) -> Iterator[None]:
    """Raise BadInputError for a number in `path` that no run measures and no page prints."""
    try:
        yield
    except (ValueError, ArithmeticError) as problem:
        raise BadInputError([f"{path}: found a number that cannot be right ({problem})"]) from None


def _outcome(book: Notebook, verdict: Mapping[str, Any], criteria: Sequence[Mapping[str, Any]]) -> None:
    """Exit code, outcome and criteria must say one thing."""
    outcome = str(verdict.get("outcome"))
    code = book.figure("exit_code", verdict.get("exit_code"), what="exit code")
    book.figure("outcome", outcome, what="outcome of the run")
    if code is None:
        return
    said = f"exit code {verdict.get('exit_code')}"
    of_outcome = book.figure("exit_code_of_outcome", _EXIT_CODES.get(outcome), what=f"exit code of {outcome}")
    if of_outcome is not None:
        book.claim("exit_code", "run", f"{said}, outcome {outcome}", stated=code, same=of_outcome)
    expected = _code_of_criteria(verdict, criteria)
    reason = _other_reason(outcome, expected, criteria)
    if reason:
        book.claim("exit_code_of_criteria", "run", f"{said} for these criteria", stated=code, not_checkable=reason)
        return
    of_criteria = book.figure("exit_code_of_criteria", expected, what="exit code by criteria and coverage")
    book.claim("exit_code_of_criteria", "run", f"{said} for these criteria", stated=code, same=of_criteria)


def _other_reason(outcome: str, expected: int, criteria: Sequence[Mapping[str, Any]]) -> str:
    """Why an outcome worse than the criteria's can be right; empty when it cannot."""
    if expected in (_EXIT_CODES["PASS"], _EXIT_CODES["FAIL"]) and outcome == "ERROR":
        return "The rig or the guard made the run invalid; its criteria do not show that."
    marginal = any(one.get("outcome") == "MARGINAL" and one.get("required", True) for one in criteria)
    if expected == _EXIT_CODES["PASS"] and outcome == "FAIL" and marginal:
        return "A gate may refuse a marginal pass; whether this one does is not in verdict.json."
    return ""


def _code_of_criteria(verdict: Mapping[str, Any], criteria: Sequence[Mapping[str, Any]]) -> int:
    """The first rule that applies: sectors outside the claims, an unwaived FAIL, what could not be judged, a pass."""
    required = [one for one in criteria if one.get("required", True)]
    outcomes = {
        str(one.get("outcome")) for one in required if not (one.get("outcome") == "FAIL" and one.get("waiver"))
    }
    outside = verdict.get("sectors_written_outside_claims")
    if isinstance(outside, int) and outside > 0:
        return 2
    if "FAIL" in outcomes:
        return 1
    # a campaign of trials is judged by the checks that it tells of itself
    judged = any(one.get("against") != "check" or one.get("source") == "trials" for one in required)
    undecided = bool(outcomes & {"ERROR", "INCONCLUSIVE"})
    return 2 if undecided or not judged or _unexplained(verdict.get("coverage") or {}) else 0


def _unexplained(coverage: Mapping[str, Any]) -> bool:
    """Whether a planned point is neither measured nor skipped for a reason."""
    skipped = coverage.get("skipped") or ()
    planned, measured = coverage.get("planned"), coverage.get("measured")
    hole = isinstance(planned, int) and isinstance(measured, int) and planned > measured + len(skipped)
    return hole or any(not one.get("reason") for one in skipped)


def _coverage(book: Notebook, verdict: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    counts = {"planned": verdict.get("planned"), "measured": verdict.get("measured")}
    counts["skipped"] = len(verdict.get("skipped") or ())
    found = {name: book.count(f"coverage.{name}", value, f"points {name}") for name, value in counts.items()}
    if all(found.values()):
        book.claim(
            "coverage",
            "coverage",
            "no more points measured and skipped than planned",
            unit="points",
            stated=found["planned"],
            relation="at_most",
            computed=parse_expression("coverage.measured + coverage.skipped"),
        )
    for name in ("planned", "measured"):
        other = book.count(f"coverage_run.{name}", run.get(name), f"points {name} in run.json")
        if found[name] is not None and other is not None:
            text = f"points {name} in verdict.json and in run.json"
            book.claim(f"coverage_{name}", "coverage", text, unit="points", stated=found[name], same=other)


def _criterion(book: Notebook, number: int, criterion: Mapping[str, Any]) -> None:
    """The interval holds the shift, the outcome contradicts neither, and its sentence gives the same shift."""
    page, name = book.page_of(criterion), f"criterion_{number}"
    percents = {
        short: book.figure(f"{name}.{short}", criterion.get(key), what=short, unit="%", page=page)
        for short, key in (
            ("shift", "shift_percent"),
            ("margin", "margin_percent"),
            ("detectable", "detectable_percent"),
        )
    }
    shift, margin = percents["shift"], percents["margin"]
    interval = criterion.get("ci95_percent")
    if isinstance(interval, Sequence) and len(interval) == 2:
        for end, value, relation in (("low", interval[0], "at_least"), ("high", interval[1], "at_most")):
            bound = book.figure(f"{name}.{end}", value, what=f"{end} end of the interval", unit="%", page=page)
            if bound is not None and shift is not None:
                text = f"the interval's {end} end"
                book.claim(f"{name}.{end}", page, text, unit="%", stated=bound, relation=relation, computed=shift)
    if shift is None or criterion.get("against") != "baseline":
        return
    outcome = criterion.get("outcome")
    if outcome in ("PASS", "MARGINAL") and margin is not None:
        loss = parse_expression(f"-{name}.shift")
        text = f"{outcome}: no worse than the margin"
        book.claim(f"{name}.loss", page, text, unit="%", stated=margin, relation="less_than", computed=loss)
    if outcome == "FAIL":
        zero = Printed.parse("0", exact=True)
        text = "FAIL: worse than the baseline"
        book.claim(f"{name}.loss", page, text, unit="%", stated=zero, relation="less_than", computed=shift)


def _whole(text: str) -> int:
    """Raises ValueError for a number that no count of a run can be."""
    return int(parse_decimal(text))


def _read(path: Path) -> dict[str, Any]:
    """A JSON file with the digits of its numbers kept."""
    try:
        text = read_text(path.parent, path.name)
    except OSError:
        raise BadInputError([f"{path}: found no readable file, expected one that a judged run has"]) from None
    except OddFileError as problem:
        raise BadInputError([str(problem)]) from None
    try:
        # first by the rules of all files of a run, then with the digits of numbers kept
        parse_line(text.encode(), path.name)
        document = json.loads(text, parse_float=Printed.parse, parse_int=_whole)
    except (ValueError, RecursionError) as problem:
        raise BadInputError([f"{path}: found no JSON ({problem})"]) from None
    if not isinstance(document, dict):
        raise BadInputError([f"{path}: found {type(document).__name__}, expected a JSON object"])
    return document
