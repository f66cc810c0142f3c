# SPDX-License-Identifier: Apache-2.0
"""`storqual qualify` with a suite of trials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from storqual.cli.options import print_json
from storqual_core.kit.errors import BadInputError, StorqualError

if TYPE_CHECKING:
    from storqual.trials.campaign import TrialRequest


def of_trials(suite: str | None, resume: Path | None, trial: str | None) -> bool:
    """Whether the suite that was named, or that of the run to go on with, is one of trials.

    Raises BadInputError when a single `trial` is asked of a suite that has none.
    """
    from storqual.inputs import find_suite
    from storqual.robustness.store import has_trials
    from storqual.robustness.suite import is_robustness
    from storqual.run import read_run_json

    if resume is not None:
        return has_trials(read_run_json(resume))
    try:
        found = suite is not None and is_robustness(find_suite(suite))
    except BadInputError:
        # the plan tells it, together with whatever else is wrong
        found = False
    if trial is not None and not found:
        raise BadInputError(["--trial: found no suite of trials, expected one of kind robustness"])
    return found


def qualify_trials(
    request: TrialRequest, runs: Path, resume: Path | None, waivers: Path | None, *, as_json: bool
) -> int:
    """Plan or resume, make the trials, publish, and return the gate's exit code.

    Raises BadInputError for a new campaign without an inventory or a candidate.
    """
    from storqual.cli.playbook.publish import publish
    from storqual.inputs.shape import raise_all
    from storqual.report.parts.summary import print_summary
    from storqual.run import append_event, read_run_json
    from storqual.run.closing import is_closed
    from storqual.trials.campaign import plan_campaign, run_campaign

    if resume is None:
        needed = {"inventory": request.inventories, "candidate": request.candidate}
        raise_all(f"--{name} is needed" for name, value in needed.items() if not value)
        run = plan_campaign(request, runs)
        click.echo(f"storqual: run {run}", err=True)
    else:
        run = resume
        if not is_closed(run):
            append_event(run, "resumed", {})
    # of a run that is closed all was made: what is missing is at most the verdict
    if not is_closed(run):
        try:
            run_campaign(run, say=lambda text: click.echo(text, err=True))
        except StorqualError:
            click.echo(f"storqual: go on with: storqual qualify --resume {run.name} --runs {run.parent}", err=True)
            raise
    published = publish(run, waivers=waivers)
    if as_json:
        print_json(published.to_json())
    else:
        print_summary(dict(published.verdict), read_run_json(run), published.report)
    return int(published.verdict["exit_code"])
