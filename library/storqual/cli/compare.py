# SPDX-License-Identifier: Apache-2.0
"""`storqual compare`: A against B against C, as far as the launches show it."""

from __future__ import annotations

from pathlib import Path

import click

from storqual.cli.options import as_json, print_json

__all__ = ["compare_command"]


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--arm",
    type=click.Choice(["candidate", "baseline", "both"]),
    default="candidate",
    show_default=True,
    help="Which arm of each run; `both` compares the arms too.",
)
@as_json
def compare_command(runs: tuple[Path, ...], arm: str, as_json: bool) -> None:
    """Compare adapters of one run or of several: who leads where, by how much, and where nobody is shown to lead.

    Each pair at each level they share, with intervals that hold for all of them together; CPU at equal IOPS and IOPS
    at equal CPU where the load was raised by queue depth, jobs, drives or ports.

    \b
    Examples:
      storqual compare runs/20261121T101500Z-qla1040-adapters-4f2a
      storqual compare --json runs/20261120T*-adapter-* runs/20261121T*-adapter-*
    """
    from storqual.commands.compare import compare_runs
    from storqual.metrics import METRICS
    from storqual.text_safety import terminal_text

    found = compare_runs(runs, arms=("baseline", "candidate") if arm == "both" else (arm,))
    if as_json:
        print_json(found.to_json())
        return
    click.echo(f"compared: {terminal_text(', '.join(found.subjects))}")
    for contest in (contest for contest in found.contests if contest.sentences):
        click.echo(f"\n{terminal_text(contest.title)}: {METRICS[contest.metric].label}")
        for sentence in contest.sentences:
            click.echo(f"  {terminal_text(sentence)}")
    for load in found.equal_loads:
        click.echo(f"\n{terminal_text(load.title)}\n  {terminal_text(load.sentence)}")
