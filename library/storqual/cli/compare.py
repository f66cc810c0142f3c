# SPDX-License-Identifier: Apache-2.0
"""`storqual compare`: A against B against C, as far as the launches show it."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import click

from storqual.cli.options import as_json, on_terminal, print_json, print_rows, runs_argument

if TYPE_CHECKING:
    from storqual.study.comparisons import Contest


@click.command("compare")
@runs_argument
@click.option(
    "--arm",
    type=click.Choice(["candidate", "baseline", "both"]),
    default="candidate",
    show_default=True,
    help="Which arm of each run to use; `both` compares the arms with each other too.",
)
@as_json
def compare_command(runs: tuple[Path, ...], arm: str, as_json: bool) -> None:
    """Compare the adapters of one or several runs: which adapter leads at which points, and by how much.

    Every pair of adapters is compared at each level that both have, with simultaneous confidence intervals. Where
    the load was raised by queue depth, jobs, drives or ports, CPU at equal IOPS and IOPS at equal CPU are shown too.

    \b
    Examples:
      storqual compare runs/20261121T101500Z-qla1040-adapters-4f2a
      storqual compare --json runs/20261120T*-adapter-* runs/20261121T*-adapter-*
    """
    from storqual.base.text import terminal_text, with_minus
    from storqual.metrics import METRICS
    from storqual.study.comparisons import compare_runs

    comparison = compare_runs(runs, arms=("baseline", "candidate") if arm == "both" else (arm,))
    if as_json:
        print_json(comparison.to_json())
        return
    click.echo(f"compared: {terminal_text(', '.join(comparison.subjects))}")
    suspect, launches = comparison.suspect
    if suspect:
        click.echo(f"suspect: {suspect} of {launches} launches; what disturbed them may be all that differs")
    contests = [contest for contest in comparison.contests if contest.sentences]
    if not contests:
        click.echo("nothing is compared: no point was measured with usable launches of two of them")
    for contest in contests:
        metric = METRICS[contest.metric]
        title = f"{contest.title}: " + ", ".join(dict.fromkeys((metric.label, metric.unit)))
        click.echo("" if on_terminal() else f"\n{terminal_text(title)}")
        if on_terminal():
            _show_levels(contest, title)
        for sentence in contest.sentences:
            click.echo(f"  {with_minus(terminal_text(sentence))}")
    for load in comparison.equal_loads:
        click.echo(f"\n{terminal_text(load.title)}\n  {with_minus(terminal_text(load.sentence))}")


def _show_levels(contest: Contest, title: str) -> None:
    """A table: the mean of each subject at each level, and who is shown to lead there."""
    from storqual.base.figures import level_text, plain

    values = {line.subject: line.values(contest.metric) for line in contest.lines}
    print_rows(
        (contest.along, *values, "Leads"),
        [
            (
                level_text(contest.along, int(level) if level.is_integer() else level),
                *(plain(fmean(launches[level])) if level in launches else "" for launches in values.values()),
                leader or "no clear leader",
            )
            for level, leader in contest.leaders.items()
        ],
        title=title,
        numbers=tuple(values),
    )
