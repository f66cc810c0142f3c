# SPDX-License-Identifier: Apache-2.0
"""OCP Test and Validation output, version 2: each step is a test; diagnoses, errors and its status are its result."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from storqual.robustness.output.reading import OneTest, Outcome, Reading, one, with_own_names

_RUN, _STEP = "testRunArtifact", "testStepArtifact"
_KNOWN_RUN = ("testRunStart", "log")
_KNOWN_STEP = (
    "log",
    "measurement",
    "measurementSeriesStart",
    "measurementSeriesElement",
    "measurementSeriesEnd",
    "file",
    "extension",
)


@dataclass
class _Step:
    """A step that has begun."""

    name: str
    failed: bool = False
    status: str = ""
    told: list[str] = field(default_factory=list)

    def result(self) -> OneTest:
        """The test that it is."""
        outcome: Outcome = "failed" if self.failed or self.status not in ("COMPLETE", "SKIP") else "passed"
        if outcome == "passed" and self.status == "SKIP":
            outcome = "skipped"
        return one(self.name, outcome, "\n".join(self.told))


class _Reader:
    def __init__(self) -> None:
        self.steps: dict[str, _Step] = {}
        self.unread: list[str] = []
        self.problems: list[str] = []
        self.ended: dict[str, Any] | None = None
        self._next = 0

    def take(self, line: str) -> None:
        """One line."""
        try:
            body = json.loads(line)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            self.unread.append(line)
            return
        number = body.get("sequenceNumber")
        if isinstance(number, int) and not isinstance(number, bool):
            if number != self._next:
                self.problems.append(f"line {self._next} has the sequence number {number}")
            self._next = number + 1
        run, step = body.get(_RUN), body.get(_STEP)
        if isinstance(step, dict) and self._of_step(step):
            return
        if isinstance(run, dict) and self._of_run(run):
            return
        if "schemaVersion" not in body:
            self.unread.append(line)

    def _of_run(self, run: dict[str, Any]) -> bool:
        ended, error = run.get("testRunEnd"), run.get("error")
        if isinstance(ended, dict):
            self.ended = ended
        elif isinstance(error, dict):
            self.problems.append(f"error: {error.get('symptom')} {error.get('message') or ''}".strip())
        return bool(ended or error) or any(name in run for name in _KNOWN_RUN)

    def _of_step(self, artifact: dict[str, Any]) -> bool:
        ident = str(artifact.get("testStepId"))
        start, ended = artifact.get("testStepStart"), artifact.get("testStepEnd")
        if isinstance(start, dict):
            if ident in self.steps:
                self.problems.append(f"step {ident} began a second time")
            self.steps[ident] = _Step(str(start.get("name") or f"step {ident}"))
            return True
        step = self.steps.get(ident)
        if step is None:
            self.problems.append(f"step {ident} never began")
            return False
        if isinstance(ended, dict):
            step.status = str(ended.get("status"))
            return True
        for kind in ("diagnosis", "error"):
            told = artifact.get(kind)
            if isinstance(told, dict):
                step.failed |= kind == "error" or told.get("type") == "FAIL"
                words = (kind, told.get("type"), told.get("verdict"), told.get("symptom"), told.get("message"))
                step.told.append(" ".join(str(word) for word in words if word))
                return True
        return any(name in artifact for name in _KNOWN_STEP)

    def read(self) -> Reading:
        """What there is at the end."""
        tests = [step.result() for step in self.steps.values() if step.status]
        open_steps = [step.name for step in self.steps.values() if not step.status]
        if self.ended is not None:
            self.problems += [f"{name} has no end" for name in open_steps]
            tests += [one(name, "missing") for name in open_steps]
            failed = any(test.outcome == "failed" for test in tests)
            result = self.ended.get("result")
            if (result == "PASS" and failed) or (result == "FAIL" and not failed):
                self.problems.append(f"the run's result is {result}, {'a' if failed else 'no'} step failed")
        current = open_steps[-1] if open_steps and self.ended is None else ""
        return Reading(
            with_own_names(tests), tuple(self.unread), tuple(self.problems), current, self.ended is not None
        )


def parse_ocptv(text: str) -> Reading:
    """Read all of it; never raises."""
    reader = _Reader()
    for line in text.splitlines():
        if line.strip():
            reader.take(line)
    return reader.read()
