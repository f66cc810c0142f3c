# SPDX-License-Identifier: Apache-2.0
"""`storqual sheet`: one page per bench, for printing and hanging on the rack."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storqual.base.text import terminal_text
from storqual.cli.options import as_json, complete_drop, lab_option, limit_option, print_json, runs_option
from storqual_core.kit.durable import checked_name
from storqual_core.kit.errors import BadInputError, StorqualError

if TYPE_CHECKING:
    from storqual.bench.drift import Drift


@click.command("sheet")
@lab_option
@limit_option
@click.option("--drop", shell_complete=complete_drop, help="Compare each bench with this drop and show what differs.")
@click.option(
    "--facts",
    "facts_file",
    type=click.Path(path_type=Path),
    help="Use this output of `storqual facts --json` instead of asking the benches.",
)
@runs_option
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("sheets"), help="Folder for the sheets."
)
@as_json
def sheet_command(
    inventories: tuple[str, ...],
    limit: str | None,
    drop: str | None,
    facts_file: Path | None,
    runs: Path,
    output: Path,
    as_json: bool,
) -> None:
    """Write a page for each bench: identity, slots, drives, settings, drift, last result, claimed drives.

    Benches are read, not changed. The sheet of a bench that does not answer is made from its inventory, and says so.

    \b
    Examples:
      storqual sheet -i inventories/virtual
      storqual sheet -i inventories/example_lab --limit bench01 --drop driver_in_field -o sheets
      storqual sheet -i inventories/example_lab --facts facts.json
    """
    from storqual.history.past_runs import last_results
    from storqual.inputs import load_drop, load_inventory
    from storqual.inputs.find import find_drop
    from storqual.report.sheet import make_sheet, render_sheet
    from storqual.run.layout import refuse_inside_run

    refuse_inside_run(output / "sheet.html")
    sources = [Path(source) for source in inventories]
    benches = load_inventory(sources, limit=limit).benches
    if drop:
        # read now: a mistake in it must not wait until the benches have answered
        load_drop(find_drop(drop, sources))
    fact_sets = _saved(facts_file) if facts_file else _live_facts(inventories, limit)
    drift = _drift(inventories, drop, limit) if drop else None
    results = last_results(runs)
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    output.mkdir(parents=True, exist_ok=True)
    written = {}
    for name, bench in benches.items():
        sheet = make_sheet(
            bench,
            fact_sets.get(name),
            made=made,
            drop=drop or "",
            drift=drift.differences.get(name) if drift else None,
            last=results.get(name),
        )
        path = output / f"{checked_name(name, 'bench')}.html"
        path.write_text(render_sheet(sheet), encoding="utf-8")
        written[name] = str(path)
    if as_json:
        print_json({"sheets": written, "not looked at": sorted(benches.keys() - fact_sets.keys())})
        return
    for path_text in written.values():
        click.echo(path_text)


def _saved(path: Path) -> dict[str, Any]:
    """Fact sets that were written down before. Raises BadInputError when the file is something else."""
    from storqual.inputs.find import read_json
    from storqual_core.facts.bench_facts import SCHEMA

    wanted = "--facts takes the output of `storqual facts --json`"
    fact_sets: dict[str, Any] = read_json(path, wanted)[0]

    if not isinstance(fact_sets, dict) or not all(
        isinstance(v, dict) and v.get("schema") == SCHEMA for v in fact_sets.values()
    ):
        raise BadInputError([f"{path}: holds no facts of benches; {wanted}"])
    return fact_sets


def _live_facts(inventories: tuple[str, ...], limit: str | None) -> dict[str, Any]:
    """Fact sets of the benches that answer; that one does not is told, and no reason to have no sheet of it."""
    from storqual.bench.ansible_run import ask_every_bench

    _begin("reading the facts of the benches")
    try:
        answers = ask_every_bench("facts.yml", inventories, limit=limit, variables={"facts_deep": True})
    except StorqualError as problem:
        _tell(problem)
        return {}
    for name, why in answers.silent.items():
        click.echo(f"storqual: {terminal_text(name)} did not answer: {terminal_text(why)}", err=True)
    return dict(answers.by_bench)


def _drift(inventories: tuple[str, ...], drop: str, limit: str | None) -> Drift | None:
    """What differs from the drop; that it could not be told is told."""
    from storqual.bench.drift import look_for_drift

    _begin(f"comparing the benches with {drop}")
    try:
        return look_for_drift(inventories, drop, limit=limit)
    except StorqualError as problem:
        _tell(problem)
        return None


def _begin(step: str) -> None:
    """What takes tens of seconds, and minutes where vendor tools are slow or the control node is busy."""
    click.echo(terminal_text(f"storqual: {step} ..."), err=True)


def _tell(problem: StorqualError) -> None:
    """One line for each bench that a problem is about."""
    for line in str(problem).splitlines():
        click.echo(terminal_text(f"storqual: {line}"), err=True)
