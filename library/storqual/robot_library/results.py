# SPDX-License-Identifier: Apache-2.0
"""What Robot Framework found, as checks: output.xml in, outcomes in storqual's words out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot.api import ExecutionResult, ResultVisitor
from robot.errors import DataError

from storqual_core.errors import StorqualError

__all__ = ["RobotCheck", "read_checks"]

_BROKEN = re.compile(
    r"(?:[A-Za-z_]\w*(?:Error|Exception|Expired)|Several failures occurred:\n\n1\) \w+Error): "
    r"|(?:Parent )?[Ss]uite setup failed|Setup failed|No keyword with name|Variable '|Test timeout"
    r"|Keyword '.*' expected"
)
"""How a message begins that is no assertion: Robot names every exception class but AssertionError in front."""
_UNDECIDED = "UndecidedError: "

_MOST = 3
"""Lines of a message that a check's reason keeps; the log keeps all."""


@dataclass(frozen=True)
class RobotCheck:
    """One test: `<suite file>::<test>`, its outcome and why."""

    id: str
    outcome: str
    reason: str
    adapter: str | None
    point: str | None

    def to_json(self, bench: str) -> dict[str, Any]:
        """The line of checks.jsonl."""
        place = {"bench": bench, "adapter": self.adapter, "point": self.point}
        line: dict[str, Any] = {"id": self.id, "outcome": self.outcome, "reason": self.reason, "source": "robot"}
        if self.outcome == "SKIPPED":
            # what does not apply to this bench is no requirement of this run
            line["required"] = False
        return {**line, **{name: value for name, value in place.items() if value}}


def read_checks(output: Path) -> tuple[RobotCheck, ...]:
    """The tests of an output.xml in order. Raises StorqualError when it is none."""
    try:
        result = ExecutionResult(str(output))
    except DataError as problem:
        raise StorqualError(f"{output}: found no output of Robot Framework ({problem})") from None
    return tuple(check_of(test) for test in _tests(result))


def _tests(result: Any) -> Iterator[Any]:  # noqa: ANN401 - Robot Framework's result model
    found: list[Any] = []

    class Gather(ResultVisitor):  # type: ignore[misc] # untyped base
        def visit_test(self, test: Any) -> None:  # noqa: ANN401 - as above
            found.append(test)

    result.visit(Gather())
    return iter(found)


def check_of(test: Any) -> RobotCheck:  # noqa: ANN401 - Robot Framework's result model
    """One test's check; tags `adapter:<alias>` and `point:<name>` say what it is about."""
    message = str(test.message).strip()
    outcome = {"PASS": "PASS", "SKIP": "SKIPPED"}.get(test.status, "FAIL")
    if outcome == "FAIL" and message.startswith(_UNDECIDED):
        outcome = "INCONCLUSIVE"
    elif outcome == "FAIL" and _BROKEN.match(message):
        outcome = "ERROR"
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    more = [f"and {len(lines) - _MOST} more in Robot's log"] if len(lines) > _MOST else []
    told = "; ".join([*lines[:_MOST], *more])
    return RobotCheck(
        id=f"{Path(str(test.source)).name}::{test.name}",
        outcome=outcome,
        reason=told.removeprefix("NotJudgedError: ").removeprefix(_UNDECIDED)
        or str(test.doc).strip().partition("\n")[0],
        adapter=_tagged(test, "adapter:"),
        point=_tagged(test, "point:"),
    )


def _tagged(test: Any, prefix: str) -> str | None:  # noqa: ANN401 - as above
    return next((str(tag)[len(prefix) :] for tag in test.tags if str(tag).lower().startswith(prefix)), None)
