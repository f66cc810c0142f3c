# SPDX-License-Identifier: Apache-2.0
"""`storqual waive`: a waiver file for what failed, to be filled in by whoever accepts it."""

from __future__ import annotations

from pathlib import Path

import click

from storqual.base.text import terminal_text
from storqual.cli.options import as_json, print_json, run_argument


@click.command("waive")
@run_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("waivers.yml"),
    show_default=True,
    help="The file to write; one that exists is not overwritten.",
)
@as_json
def waive_command(run: Path, output: Path, as_json: bool) -> None:
    """Write a waiver file for the required failures of a judged run, to edit.

    Owner, reason, reference and expiry are left empty: nobody accepts a failure until somebody has filled them in.

    \b
    Examples:
      storqual waive runs/20261121T101500Z-adapter-4f2a
      storqual waive runs/20261121T101500Z-adapter-4f2a --output accepted.yml --json
    """
    from storqual.judge.waiver_draft import draft_waivers, write_draft

    draft = draft_waivers(run)
    write_draft(draft, output)
    then = f"storqual judge {run} --waivers {output}"
    if as_json:
        print_json({"file": str(output), "failures": draft.failures, "next": then})
        return
    click.echo(terminal_text(f"{output}: {draft.failures} failures; fill in owner, reason, reference and expiry"))
    click.echo(terminal_text(f"next: {then}"))
