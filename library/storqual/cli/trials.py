# SPDX-License-Identifier: Apache-2.0
"""`storqual plan` and `storqual qualify` with a suite of trials."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storqual.base.text import terminal_text
from storqual.cli.options import print_json, print_pairs, print_rows
from storqual_core.kit.errors import BadInputError, StorqualError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        raise BadInputError(["--trial needs a suite of trials (kind: robustness)"])
    return found


def plan_trials(request: TrialRequest, runs: Path | None, *, as_json: bool) -> None:
    """Tell the trials that would be made; with `runs` write the run directory. Raises BadInputError."""
    from storqual.run import read_run_json
    from storqual.trials.campaign import draft_campaign, plan_campaign

    _refuse_incomplete(request)
    if runs is None:
        path, document = None, draft_campaign(request).document
    else:
        path = plan_campaign(request, runs)
        document = read_run_json(path)
    _warn_unsigned(request, document)
    plan = document["plan"]
    if as_json:
        told = {
            name: plan[name] for name in ("seed", "sessions", "trials", "external", "left_out", "expected_seconds")
        }
        print_json({"path": None if path is None else str(path), "suite": document["suite"], **told})
        return
    counts = Counter((trial["fault"], trial["adapter"], trial["arm"]) for trial in plan["trials"])
    heads = ("fault", "adapter", "trials in each arm")
    cells = {(fault, adapter): count for (fault, adapter, _), count in counts.items()}
    print_rows(heads, [[*names, str(count)] for names, count in sorted(cells.items())], numbers=heads[2:])
    pairs: list[tuple[str, object]] = [
        ("trials", f"{len(plan['trials'])} in {len(plan['sessions'])} sessions"),
        ("programs", len(plan["external"])),
        ("bench time", f"{plan['expected_seconds'] / 60:.0f} min{' and the programs' if plan['external'] else ''}"),
    ]
    pairs += [("left out", sentence) for sentence in plan["left_out"]]
    if path is not None:
        pairs.append(("directory", path))
    print_pairs(pairs)


def _warn_unsigned(request: TrialRequest, document: Mapping[str, Any]) -> None:
    """Tell on standard error when nobody could sign the run that was planned."""
    from storqual.inputs import GATE, beside_inventory
    from storqual.inputs.signatures import signature_warnings

    inventories = [Path(inventory) for inventory in request.inventories]
    gate = request.gate or beside_inventory(GATE, inventories)
    named = (str(document["arms"]["candidate"]["drop"]), str(document["suite"]["name"]), list(document["benches"]))
    for told in signature_warnings(inventories, gate, *named):
        click.echo(terminal_text(f"storqual: warning: {told}"), err=True)


def _refuse_incomplete(request: TrialRequest) -> None:
    from storqual.inputs.shape import raise_all

    needed = {"inventory": request.inventories, "candidate": request.candidate}
    raise_all(f"--{name} is needed" for name, value in needed.items() if not value)


def qualify_trials(
    request: TrialRequest, runs: Path, resume: Path | None, waivers: Path | None, *, as_json: bool
) -> int:
    """Plan or resume, make the trials, publish, and return the gate's exit code.

    Raises BadInputError for a new campaign without an inventory or a candidate.
    """
    from storqual.cli.playbook.publish import publish
    from storqual.report.parts.summary import print_summary
    from storqual.run import append_event, read_run_json
    from storqual.run.closing import is_closed
    from storqual.trials.campaign import plan_campaign, run_campaign

    if resume is None:
        _refuse_incomplete(request)
        run = plan_campaign(request, runs)
        click.echo(f"storqual: run {run}", err=True)
        _warn_unsigned(request, read_run_json(run))
    else:
        run = resume
        if not is_closed(run):
            append_event(run, "resumed", {})
    # of a run that is closed all was made: what is missing is at most the verdict
    if not is_closed(run):
        try:
            run_campaign(run, say=_say)
        except StorqualError:
            click.echo(f"storqual: to resume: storqual qualify --resume {run.name} --runs {run.parent}", err=True)
            raise
    published = publish(run, waivers=waivers)
    if as_json:
        print_json(published.to_json())
    else:
        print_summary(dict(published.verdict), read_run_json(run), published.report)
    return int(published.verdict["exit_code"])


def _say(text: str) -> None:
    """Progress for whoever watches; a campaign goes on when nobody does any more."""
    with suppress(BrokenPipeError):
        click.echo(text, err=True)
