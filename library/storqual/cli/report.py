# SPDX-License-Identifier: Apache-2.0
"""`storqual report`: write report.html again, or the trend of many runs, from files alone."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from storqual.cli.options import as_json, print_json
from storqual_core.errors import BadInputError

__all__ = ["report_command"]


@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--trend",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the trend of many runs to this page instead.",
)
@click.option("--as-of", type=click.DateTime(), help="Trend: the day from which waivers' ends are counted (today).")
@as_json
def report_command(runs: tuple[Path, ...], trend: Path | None, as_of: datetime | None, as_json: bool) -> None:
    """Write the report of a judged run and print its path; or one page of many runs, or folders of runs.

    \b
    Examples:
      storqual report runs/20261121T101500Z-adapter-4f2a
      storqual report runs --trend quarter.html
    """
    if trend is not None:
        from storqual.report.trend import build_trend

        written = {"trend": build_trend(runs, trend, as_of=as_of)}
    else:
        if len(runs) != 1:
            raise BadInputError(
                [f"storqual report: found {len(runs)} runs, expected one, or --trend for all of them"]
            )
        from storqual.report import build_report

        written = {"report": build_report(runs[0].resolve())}
    if as_json:
        print_json({name: str(path) for name, path in written.items()})
    else:
        for path in written.values():
            click.echo(path)
