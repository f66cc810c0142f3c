# SPDX-License-Identifier: Apache-2.0
"""`storqual publish`: close a measured run, judge it, write its log and its report, and audit the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storqual.base.text import terminal_text
from storqual.cli.options import as_json, print_json, run_argument
from storqual.run.layout import INPUTS, locked
from storqual_core.kit.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storqual.run import Run
    from storqual.run.measurements import Measurements


@click.command("publish")
@run_argument
@click.option(
    "--waivers",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Waiver file (default: the waivers of its verdict, else waivers.yml beside the inventory).",
)
@click.option(
    "--checks",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Your copies of checks that another user planned, to execute them now. Can be repeated.",
)
@as_json
def publish_command(run: Path, waivers: Path | None, checks: tuple[Path, ...], as_json: bool) -> int:
    """Close a run: judge it, write report.html, pytest.html, junit.xml and ocp.jsonl, exit with the gate's exit code.

    A run can be published again, also with other waivers, until it is signed. Verdict, report and exports are then
    written again, and the run's events record what was published before.

    Hand-written checks are executed once, before the run is closed: those of yours that you planned it with, and
    those that you name. Nothing of the run itself is executed.

    \b
    Examples:
      storqual publish runs/20261121T101500Z-adapter-4f2a
      storqual publish runs/20261121T101500Z-adapter-4f2a --waivers waivers.yml
    """
    from storqual.checks.own import allow_checks, find_checks
    from storqual.report.summary import print_summary
    from storqual.run import read_run, read_run_json

    if checks:
        allow_checks(read_run(run), find_checks(checks, None))
    done = publish(run.resolve(), waivers=waivers)
    if as_json:
        print_json(done.to_json())
    else:
        print_summary(dict(done.verdict), read_run_json(run), done.report)
    return int(done.verdict["exit_code"])


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
    """Write the end of run.json, checks and their logs, verdict, log, report.html and ocp.jsonl of `run`.

    Hand-written checks run before the judge, because their outcomes are criteria; their own exit codes count for
    nothing. The run is closed first, so that the verdict can rest on coverage and on the guard's count. Failures are
    accepted by `waivers_for(run, waivers)`. Raises BadInputError for a run that is signed: it stays as it is.

    One process publishes a run at a time. Its checks take the run's own lock for each outcome; from the verdict to
    the end that lock is held, so that nobody signs half of what is published.
    """
    with locked(run / INPUTS):
        return _publish(run, waivers)


def _publish(run: Path, waivers: Path | None) -> Published:
    from storqual.judge.verdict import judge_run
    from storqual.pytest_plugin import publish_log, run_checks
    from storqual.report import build_report
    from storqual.report.export import write_ocp
    from storqual.report.material import read_material
    from storqual.robot_library import publish_suites
    from storqual.robustness.follows import append_turn_checks
    from storqual.robustness.store import has_trials, read_trials
    from storqual.run import append_event, finish_run, is_signed, read_run
    from storqual.run.closing import close_run, is_closed
    from storqual.run.published import record_published

    if is_signed(run):
        raise BadInputError([f"{run}: this run is signed and cannot be published again"])
    accepted = waivers_for(run, waivers)
    opened = read_run(run)
    if has_trials(opened.document):
        # what cannot be read is told before anything is written
        read_trials(opened)
    measured = _measured(opened)
    if not is_closed(run):
        append_event(run, "run_finished", {})
        finish_run(run, measured=measured)
        append_turn_checks(run)
        if not has_trials(opened.document):
            # they look at measured batches and at facts that a campaign of trials has none of
            run_checks(run)
            publish_suites(run)
        close_run(run)
    _notify(run)
    with locked(run):
        verdict = judge_run(run, waivers=accepted, measured=measured, publish=True)
        log = publish_log(run)
        material = read_material(run, measured)
        report = build_report(run, material)
        ocp = write_ocp(run, material)
        record_published(run)
        _notify(run)
    return Published(run=run, verdict=verdict, report=report, log=log, ocp=ocp)


def _notify(run: Path) -> None:
    """Tell the witness what it was not told yet; one that cannot be reached stops nothing, and the run says so."""
    from storqual.witness import notify_witness

    for wrong in notify_witness(run):
        click.echo(terminal_text(f"storqual: warning: {wrong}"), err=True)


def _measured(run: Run) -> Measurements:
    """What all that is published needs of the samples, read once."""
    from storqual.inputs import load_suite
    from storqual.inputs.policy import Gate
    from storqual.judge.asked import asked_of, metrics_of
    from storqual.report.material import metrics_to_read
    from storqual.run.measurements import measurements

    suite = load_suite(run.input_file("suite"))
    judged = metrics_of(asked_of(run, suite, Gate()))
    names = (name for names in judged.values() for name in names)
    return measurements(run, judged, metrics_to_read(suite, names), histograms=True, evidence=True)


def waivers_for(run: Path, asked: Path | None) -> Path | None:
    """The waivers to publish `run` with: `asked`, else those of its verdict when it has one, else the lab's own.

    The lab's own are `waivers.yml` beside the inventory that the run was planned from, in the folder that the plan
    recorded; a file in a run directory is nobody's. What the lab changes later changes no verdict by itself.
    """
    from storqual.inputs import WAIVERS, beside_inventory
    from storqual.judge.verdict import is_recorded, kept_waivers
    from storqual.run import read_run_json
    from storqual.run.layout import is_inside_run

    if asked is not None:
        return asked
    if is_recorded(run):
        return kept_waivers(run)
    folders = map(Path, read_run_json(run).get("lab") or ())
    return beside_inventory(
        WAIVERS, [one for one in folders if one.is_absolute() and not is_inside_run(one / WAIVERS)]
    )
