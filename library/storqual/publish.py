# SPDX-License-Identifier: Apache-2.0
"""From a measured run to what people read: close it, judge it, write its log and its report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storqual.judge.verdict import judge_run
from storqual.model import WAIVERS, beside_inventory
from storqual.pytest_plugin import publish_log, run_checks
from storqual.report import build_report
from storqual.report.export import write_ocp
from storqual.store import append_event, finish_run, read_run_json

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Published", "publish"]


@dataclass(frozen=True)
class Published:
    """What was written, and the verdict."""

    run: Path
    verdict: Mapping[str, Any]
    report: Path
    log: Path
    ocp: Path

    def to_json(self) -> dict[str, Any]:
        """For `--json`: paths, outcome and exit code."""
        return {
            "run": str(self.run),
            "verdict": str(self.run / "verdict.json"),
            "outcome": self.verdict["outcome"],
            "exit_code": self.verdict["exit_code"],
            "report": str(self.report),
            "log": str(self.log),
            "ocp": str(self.ocp),
        }


def publish(run: Path, *, waivers: Path | None = None) -> Published:
    """Write run.json's end, checks.jsonl, verdict.json, pytest.html, junit.xml, report.html and ocp.jsonl of `run`.

    Hand-written checks run before the judge, because their outcomes are criteria; their own exit codes count for
    nothing. The run is closed first, so that the verdict can rest on coverage and on the guard's count. Failures are
    accepted by `waivers`, without it by `waivers.yml` beside the inventory that the run was planned from.
    Raises BadInputError for a run that is signed: it is not published again.
    """
    append_event(run, "run_finished", {})
    finish_run(run)
    run_checks(run)
    inventories = [Path(source) for source in read_run_json(run).get("inventories") or ()]
    verdict = judge_run(run, waivers=waivers or beside_inventory(WAIVERS, inventories))
    append_event(run, "judged", {"outcome": verdict["outcome"], "exit_code": verdict["exit_code"]})
    log = publish_log(run)
    return Published(run=run, verdict=verdict, report=build_report(run), log=log, ocp=write_ocp(run))
