# SPDX-License-Identifier: Apache-2.0
"""storqual's own verdict as a report to be audited: its numbers as figures, its conclusions as assertions.

Whoever prints percentages must let them be recomputed: the same audit that reads the papers reads verdict.json and
run.json before they are published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.audit.expression import Reference, parse_expression
from storqual.audit.printed import Printed
from storqual.audit.published import Assertion, Figure, Published, Source
from storqual_core.errors import BadInputError

__all__ = ["read_run_directory"]

_VERDICT_SCHEMA = "storqual.verdict/1"
_EXIT_CODES = {"PASS": 0, "MARGINAL": 0, "FAIL": 1, "INCONCLUSIVE": 2, "ERROR": 2}


def read_run_directory(folder: Path) -> Published:
    """The figures and assertions of a judged run. Raises BadInputError when verdict.json or run.json is not there."""
    verdict = _read(folder / "verdict.json")
    run = _read(folder / "run.json")
    if verdict.get("schema") != _VERDICT_SCHEMA:
        found = f"found schema {verdict.get('schema')!r}, expected {_VERDICT_SCHEMA!r}"
        raise BadInputError([f"{folder / 'verdict.json'}: {found}"])
    pages = _Pages()
    _outcome(pages, verdict)
    _coverage(pages, verdict.get("coverage") or {}, run.get("coverage") or {})
    for number, criterion in enumerate(verdict.get("criteria") or ()):
        _criterion(pages, number, criterion)
    source = Source.model_construct(
        name="run",
        title=f"storqual run {verdict.get('run')}",
        publisher="storqual",
        text="verdict.json",
        pages="parts of verdict.json",
    )
    return Published.model_construct(report=source, figures=tuple(pages.figures), assertions=tuple(pages.assertions))


class _Pages:
    """Gathers figures and assertions."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        self.assertions: list[Assertion] = []

    def figure(self, name: str, value: object, *, what: str, unit: str = "-", page: str = "run") -> Reference | None:
        """Add a figure; None when there is nothing to add."""
        if value is None or isinstance(value, bool):
            return None
        entry = Printed(value.text, value.value, value.step) if isinstance(value, Printed) else value
        if isinstance(entry, int | str):
            entry = Printed.parse(str(entry), exact=True) if isinstance(entry, int) else entry
        self.figures.append(Figure.model_construct(id=name, page=page, what=what, value=entry, unit=unit))
        return Reference(name)

    def claim(self, name: str, page: str, text: str, **way: object) -> None:
        """Add an assertion."""
        self.assertions.append(Assertion.model_construct(None, id=name, page=page, text=text, **way))


def _outcome(pages: _Pages, verdict: Mapping[str, Any]) -> None:
    """Exit code, outcome and criteria must say one thing."""
    outcome = str(verdict.get("outcome"))
    code = pages.figure("exit_code", verdict.get("exit_code"), what="exit code")
    if code is None:
        return
    said = f"exit code {verdict.get('exit_code')}"
    of_outcome = pages.figure("exit_code_of_outcome", _EXIT_CODES.get(outcome), what=f"exit code of {outcome}")
    if of_outcome is not None:
        pages.claim("exit_code", "run", f"{said}, outcome {outcome}", stated=code, same=of_outcome)
    expected = _code_of_criteria(verdict)
    if outcome == "ERROR" and expected != _EXIT_CODES["ERROR"]:
        reason = "The rig or the guard made the run invalid; its criteria do not show that."
        pages.claim("exit_code_of_criteria", "run", f"{said} for these criteria", stated=code, not_checkable=reason)
        return
    of_criteria = pages.figure("exit_code_of_criteria", expected, what="exit code by criteria and coverage")
    pages.claim("exit_code_of_criteria", "run", f"{said} for these criteria", stated=code, same=of_criteria)


def _code_of_criteria(verdict: Mapping[str, Any]) -> int:
    """The first rule that applies: sectors outside the claims, an unwaived FAIL, what could not be judged, a pass."""
    required = [one for one in verdict.get("criteria") or () if one.get("required", True)]
    outcomes = {str(one.get("outcome")) for one in required if not one.get("waiver")}
    skipped = (verdict.get("coverage") or {}).get("skipped") or ()
    outside = verdict.get("sectors_written_outside_claims")
    if isinstance(outside, int) and outside > 0:
        return 2
    if "FAIL" in outcomes:
        return 1
    if outcomes & {"ERROR", "INCONCLUSIVE"} or not required or any(not one.get("reason") for one in skipped):
        return 2
    return 0


def _coverage(pages: _Pages, verdict: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    planned = pages.figure("coverage.planned", verdict.get("planned"), what="points planned", unit="points")
    measured = pages.figure("coverage.measured", verdict.get("measured"), what="points measured", unit="points")
    skipped = pages.figure(
        "coverage.skipped", len(verdict.get("skipped") or ()), what="points skipped with their reason", unit="points"
    )
    if planned is not None and measured is not None and skipped is not None:
        pages.claim(
            "coverage",
            "coverage",
            "planned = measured + skipped",
            unit="points",
            stated=planned,
            computed=parse_expression("coverage.measured + coverage.skipped"),
        )
    for name, own in (("planned", planned), ("measured", measured)):
        other = pages.figure(f"coverage_run.{name}", run.get(name), what=f"points {name} in run.json", unit="points")
        if own is not None and other is not None:
            text = f"points {name} in verdict.json and in run.json"
            pages.claim(f"coverage_{name}", "coverage", text, unit="points", stated=own, same=other)


def _criterion(pages: _Pages, number: int, criterion: Mapping[str, Any]) -> None:
    """The interval holds the shift, and the outcome does not contradict either."""
    page = f"{criterion.get('metric')}@{criterion.get('adapter')}/{criterion.get('point')}"
    name = f"criterion_{number}"
    shift = pages.figure(f"{name}.shift", criterion.get("shift_percent"), what="shift", unit="%", page=page)
    interval = criterion.get("ci95_percent")
    if shift is not None and isinstance(interval, Sequence) and len(interval) == 2:
        for end, value, relation in (("low", interval[0], "at_least"), ("high", interval[1], "at_most")):
            bound = pages.figure(f"{name}.{end}", value, what=f"{end} end of the interval", unit="%", page=page)
            if bound is not None:
                pages.claim(
                    f"{name}.{end}",
                    page,
                    f"the interval's {end} end",
                    unit="%",
                    stated=bound,
                    relation=relation,
                    computed=shift,
                )
    if shift is None or criterion.get("against") != "baseline":
        return
    outcome = criterion.get("outcome")
    margin = pages.figure(f"{name}.margin", criterion.get("margin_percent"), what="margin", unit="%", page=page)
    if outcome in ("PASS", "MARGINAL") and margin is not None:
        computed = parse_expression(f"-{name}.shift")
        pages.claim(f"{name}.loss", page, f"{outcome}: no worse than the margin", unit="%", stated=margin,
                    relation="less_than", computed=computed)  # fmt: skip
    if outcome == "FAIL":
        zero = Printed.parse("0", exact=True)
        pages.claim(f"{name}.loss", page, "FAIL: worse than the baseline", unit="%", stated=zero,
                    relation="less_than", computed=shift)  # fmt: skip


def _read(path: Path) -> dict[str, Any]:
    """A JSON file with the digits of its numbers kept."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadInputError([f"{path}: found no readable file, expected one that a judged run has"]) from None
    try:
        document = json.loads(text, parse_float=Printed.parse)
    except ValueError as problem:
        raise BadInputError([f"{path}: found no JSON ({problem})"]) from None
    if not isinstance(document, dict):
        raise BadInputError([f"{path}: found {type(document).__name__}, expected a JSON object"])
    return document
