# SPDX-License-Identifier: Apache-2.0
"""From a measured run to what people read: close it, judge it, write its log and its report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storqual.judge.verdict import judge_run
from storqual.pytest_plugin import publish_log, run_checks
from storqual.report import build_report
from storqual.store import append_event, finish_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Published", "publish"]


@dataclass(frozen=True)
class Published:
    """What was written, and the verdict."""

    run: Path
    verdict: Mapping[str, Any]
    report: Path
    log: Path

    def to_json(self) -> dict[str, Any]:
        """For `--json`: paths, outcome and exit code."""
        return {
            "run": str(self.run),
            "verdict": str(self.run / "verdict.json"),
            "outcome": self.verdict["outcome"],
            "exit_code": self.verdict["exit_code"],
            "report": str(self.report),
            "log": str(self.log),
        }


def publish(run: Path) -> Published:
    """Write run.json's end, checks.jsonl, verdict.json, pytest.html, junit.xml and report.html of `run`.

    Hand-written checks run before the judge, because their outcomes are criteria; their own exit codes count for
    nothing. The run is closed first, so that the verdict can rest on coverage and on the guard's count.
    """
    append_event(run, "run_finished", {})
    finish_run(run)
    run_checks(run)
    verdict = judge_run(run)
    append_event(run, "judged", {"outcome": verdict["outcome"], "exit_code": verdict["exit_code"]})
    log = publish_log(run)
    return Published(run=run, verdict=verdict, report=build_report(run), log=log)
