# SPDX-License-Identifier: Apache-2.0
"""`storqual collect`: take the samples of a spool into the run."""

import sys
from pathlib import Path

import click

from storqual.cli.options import as_json, print_json, run_argument
from storqual.run import collect


@click.command("collect")
@run_argument
@click.option("--batch", "--block", "batch", required=True, help="The batch whose spool is read from standard input.")
@click.option("--lost", help="Why the spool will stay incomplete, such as a reset of the bench.")
@as_json
def collect_command(run: Path, batch: str, lost: str | None, as_json: bool) -> None:
    """Store the samples of a batch, read from standard input as a spool; repeating it changes nothing.

    \b
    Example:
      ssh bench cat /var/lib/storqual/spool/<run-id>/s01-b01.jsonl | storqual collect runs/<run-id> --batch s01-b01
    """
    got = collect(run, batch, sys.stdin.read(), lost=lost)
    if as_json:
        print_json(got.to_json())
    else:
        click.echo(f"{got.new} new samples, {got.known} known, {got.of} planned in {got.batch}")
