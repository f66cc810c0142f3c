# SPDX-License-Identifier: Apache-2.0
"""`storqual report`: write report.html again from the files of a judged run."""

from __future__ import annotations

from pathlib import Path

import click

from storqual.cli.options import as_json, print_json, run_argument

__all__ = ["report_command"]


@click.command("report")
@run_argument
@as_json
def report_command(run: Path, as_json: bool) -> None:
    """Write the report of a judged run and print its path.

    \b
    Example:
      storqual report runs/20261121T101500Z-adapter-4f2a
    """
    from storqual.report import build_report

    path = build_report(run.resolve())
    if as_json:
        print_json({"report": str(path)})
    else:
        click.echo(path)
