# SPDX-License-Identifier: Apache-2.0
"""`storqual plan` with a suite of trials."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storqual.base.text import terminal_text
from storqual.cli.options import print_json, print_pairs, print_rows
from storqual.run.files import read_object
from storqual_core.kit.errors import BadInputError, StorqualError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storqual.trials.campaign import TrialRequest


def of_trials(suite: str | None, trial: str | None) -> bool:
    """Whether the suite that was named is one of trials.

    Raises BadInputError when a single `trial` is asked of a suite that has none.
    """
    from storqual.inputs import find_suite
    from storqual.robustness.suite import is_robustness

    try:
        found = suite is not None and is_robustness(find_suite(suite))
    except BadInputError:
        # the plan tells it, together with whatever else is wrong
        found = False
    if trial is not None and not found:
        raise BadInputError(["--trial needs a suite of trials (kind: robustness)"])
    return found


def planned_benches(run: Path) -> dict[str, Any]:
    """The benches as the plan read them: their device strings are what devices say, never templates."""
    try:
        return read_object(run, "inputs/inventory.json")
    except FileNotFoundError:
        raise StorqualError(f"{run / 'inputs/inventory.json'}: is missing; the run directory is damaged") from None


def plan_trials(request: TrialRequest, runs: Path | None, *, as_json: bool) -> None:
    """Tell the trials that would be made; with `runs` write the run directory. Raises BadInputError."""
    from storqual.run import read_run_json
    from storqual.trials.campaign import draft_campaign, plan_campaign

    if runs is None:
        path, document = None, draft_campaign(request).document
    else:
        path = plan_campaign(request, runs)
        document = read_run_json(path)
    warn_unsigned(request, document)
    plan = document["plan"]
    if as_json:
        told = {
            name: plan[name] for name in ("seed", "sessions", "trials", "external", "left_out", "expected_seconds")
        }
        benches = document["benches"] if path is None else planned_benches(path)
        named = {"run": document.get("run"), "path": None if path is None else str(path)}
        print_json({**named, "suite": document["suite"], "benches": benches, **told})
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


def warn_unsigned(request: TrialRequest, document: Mapping[str, Any]) -> None:
    """Tell on standard error when nobody could sign the run that was planned."""
    from storqual.inputs import GATE, beside_inventory
    from storqual.inputs.signatures import signature_warnings

    inventories = [Path(inventory) for inventory in request.inventories]
    gate = request.gate or beside_inventory(GATE, inventories)
    named = (str(document["arms"]["candidate"]["drop"]), str(document["suite"]["name"]), list(document["benches"]))
    for told in signature_warnings(inventories, gate, *named):
        click.echo(terminal_text(f"storqual: warning: {told}"), err=True)
