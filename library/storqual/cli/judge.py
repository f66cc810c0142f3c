# SPDX-License-Identifier: Apache-2.0
"""`storqual judge` and `storqual waive`: a verdict from files, and a waiver file for what failed in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from storqual.base.text import terminal_text
from storqual.cli.options import NEW_FILE, RUN_FOLDER, Moment, as_json, print_json, print_rows, run_argument

if TYPE_CHECKING:
    from storqual.judge.rejudge import Rejudged


@click.command("judge")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=RUN_FOLDER)
@click.option("--suite", type=click.Path(path_type=Path, exists=True), help="Judge by this suite's criteria instead.")
@click.option("--gate", type=click.Path(path_type=Path, exists=True), help="Judge by this gate policy instead.")
@click.option(
    "--waivers", type=click.Path(path_type=Path, exists=True), help="Waiver file: failures that are accepted."
)
@click.option("--as-of", type=Moment(), help="Judge as if it were this time (UTC): waivers expire.")
@as_json
def judge_command(
    runs: tuple[Path, ...],
    suite: Path | None,
    gate: Path | None,
    waivers: Path | None,
    as_of: datetime | None,
    as_json: bool,
) -> int:
    """Judge a run and exit with the gate's exit code. A finished verdict is never overwritten.

    With another suite or gate the result is written to judgements/ in the run. Given several runs, or a folder of
    runs, the command reports what newly fails or newly passes compared with their earlier verdicts, and the exit code
    is 1 if something newly fails, 2 if a run can no longer be judged, 0 otherwise.

    \b
    Examples:
      storqual judge runs/20261121T101500Z-adapter-4f2a
      storqual judge runs/20261121T101500Z-adapter-4f2a --suite stricter.suite.yml --json
      storqual judge runs --suite stricter.suite.yml
    """
    from storqual.judge.rejudge import Rules, rejudge
    from storqual.judge.verdict import judge_run
    from storqual.report.summary import print_summary
    from storqual.run.layout import run_folders, runs_below

    if len(runs) > 1 or run_folders(runs[0]) not in ([], [runs[0]]):
        done = rejudge(runs_below(runs), Rules(suite, gate, waivers, as_of))
        if as_json:
            print_json([result.to_json() for result in done])
        else:
            _print_many(done)
        codes = {result.exit_code for result in done}
        return next((code for code in (1, 2) if code in codes), max(codes))
    verdict = judge_run(runs[0], suite=suite, gate=gate, waivers=waivers, as_of=as_of)
    if as_json:
        print_json(verdict)
    else:
        print_summary(verdict, None, None)
    return int(verdict["exit_code"])


def _print_many(done: Sequence[Rejudged]) -> None:
    """A row for each run; below them what newly fails or passes, and what cannot be judged."""
    print_rows(
        ("Before", "", "Now", "Run", "Candidate"),
        [(row.before or "not judged", "->", row.now or "cannot be judged", row.run, row.candidate) for row in done],
    )
    for result in done:
        lines = [
            *(f"newly fails: {line}" for line in result.fails),
            *(f"no longer fails: {line}" for line in result.passes),
            *(result.problem.splitlines()),
        ]
        for line in lines:
            click.echo(terminal_text(f"{result.run}: {line}"))
    failing = sorted({run.candidate for run in done if run.fails})
    passing = sorted({run.candidate for run in done if run.passes and not run.fails})
    click.echo(terminal_text(f"newly failing drops: {', '.join(failing) or 'none'}"))
    click.echo(terminal_text(f"drops with fewer failures: {', '.join(passing) or 'none'}"))


@click.command("waive")
@run_argument
@click.option(
    "-o",
    "--output",
    type=NEW_FILE,
    default=Path("waivers.yml"),
    show_default=True,
    help="The file to write; an existing file is not overwritten.",
)
@as_json
def waive_command(run: Path, output: Path, as_json: bool) -> None:
    """Draft a waiver file for the required failures of a judged run.

    Owner, reason, reference and expiry are left empty; a waiver counts only when all four are filled in.

    \b
    Examples:
      storqual waive runs/20261121T101500Z-adapter-4f2a
      storqual waive runs/20261121T101500Z-adapter-4f2a --output accepted.yml --json
    """
    from storqual.judge.waiver_draft import draft_waivers, write_draft
    from storqual.run.layout import refuse_inside_run

    refuse_inside_run(output)
    draft = draft_waivers(run)
    write_draft(draft, output)
    then = f"storqual judge {run} --waivers {output}"
    if as_json:
        print_json({"file": str(output), "failures": draft.failures, "next": then})
        return
    click.echo(terminal_text(f"{output}: {draft.failures} failures; fill in owner, reason, reference and expiry"))
    click.echo(terminal_text(f"next: {then}"))
