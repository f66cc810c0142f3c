# SPDX-License-Identifier: Apache-2.0
"""The end of a campaign: the run is closed, judged by what its lab accepts, and published."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from storqual.base.text import terminal_text
from storqual.checks.own import to_run_again
from storqual.checks.plan_record import own_labs, own_witnesses
from storqual.inputs import WAIVERS, beside_inventory, load_suite
from storqual.inputs.policy import Gate
from storqual.inputs.shape import raise_all
from storqual.judge.question import metrics_of, planned_criteria
from storqual.judge.verdict import is_recorded, judge_run, kept_waivers
from storqual.pytest_plugin import publish_log, run_checks
from storqual.report import build_report
from storqual.report.export import write_ocp
from storqual.report.material import metrics_to_read, read_material
from storqual.robot_library import publish_suites
from storqual.run import append_event, finish_run, is_signed, read_run
from storqual.run.closing import close_run, is_closed
from storqual.run.evidence import record_published
from storqual.run.measurements import Measurements, measurements
from storqual.run.turns import turns_of
from storqual.witness import notify_witness
from storqual_core.kit.errors import BadInputError


@dataclass(frozen=True)
class PublishedRun:
    """What was written, and the verdict."""

    run: Path
    verdict: Mapping[str, Any]
    report: Path
    log: Path
    ocp: Path

    def to_json(self) -> dict[str, Any]:
        paths = {name: str(getattr(self, name)) for name in ("run", "report", "log", "ocp")}
        judged = {name: self.verdict[name] for name in ("outcome", "exit_code")}
        return {**paths, "verdict": str(self.run / "verdict.json"), **judged}


def look(run: Path, waivers: Path | None) -> tuple[Path | None, Measurements]:
    """The waivers that count, and all that was measured, read once.

    Raises BadInputError for a signed run, and for what cannot be read: nothing is written then.
    """
    if is_signed(run):
        raise BadInputError([f"{run}: this run is signed and cannot be published again"])
    accepted, opened = waivers_for(run, waivers), read_run(run)
    raise_all(turns_of(opened).problems)
    suite = load_suite(opened.input_file("suite"))
    judged = metrics_of(planned_criteria(opened, suite, Gate()))
    names = (name for names in judged.values() for name in names)
    shown = metrics_to_read(suite, names)
    return accepted, measurements(opened, judged, shown, histograms=True, evidence=True)


def close(run: Path, measured: Measurements) -> None:
    """Execute hand-written checks, whose outcomes are criteria, and end the run's chain over all that there is.

    Nothing is done for a run that is closed; one that was opened again for corrected checks runs these alone. Checks
    take the run's own lock for each outcome; their exit codes count for nothing.
    """
    if not is_closed(run):
        only = to_run_again(read_run(run))
        if only is None:
            append_event(run, "run_finished", {})
            finish_run(run, measured=measured)
        run_checks(run, only=only)
        publish_suites(run, only=only)
        close_run(run)
    _notify(run)


def judge(run: Path, waivers: Path | None, measured: Measurements) -> dict[str, Any]:
    return judge_run(run, waivers=waivers, measured=measured, publish=True)


def report(run: Path, verdict: Mapping[str, Any], measured: Measurements) -> PublishedRun:
    """Write log, report.html and ocp.jsonl, and record which they are."""
    log = publish_log(run)
    material = read_material(run, measured)
    page = build_report(run, material)
    ocp = write_ocp(run, material)
    record_published(run)
    _notify(run)
    return PublishedRun(run=run, verdict=verdict, report=page, log=log, ocp=ocp)


def _notify(run: Path) -> None:
    """Tell the witness what it was not told yet; one that cannot be reached stops nothing, and the run says so."""
    for wrong in notify_witness(run, own_witnesses(read_run(run))):
        click.echo(terminal_text(f"storqual: warning: {wrong}"), err=True)


def waivers_for(run: Path, file: Path | None) -> Path | None:
    """The waivers to publish `run` with: `file`, else those of its verdict when it has one, else the lab's own.

    The lab's own are `waivers.yml` beside the inventory that this user planned the run from; a run that somebody
    else planned names no lab. What the lab changes later changes no verdict by itself.
    """
    if file is not None:
        return file
    if is_recorded(run):
        return kept_waivers(run)
    return beside_inventory(WAIVERS, own_labs(read_run(run)))
