# SPDX-License-Identifier: Apache-2.0
"""`storqual report`: write report.html again, the same as PDF, or the trend of many runs, from files alone."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from storqual.cli.options import as_json, print_json
from storqual_core.kit.errors import BadInputError

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--pdf", type=_FILE, help="Write the report to this file as PDF too.")
@click.option("--trend", type=_FILE, help="Write the trend of many runs to this page instead.")
@click.option("--as-of", type=click.DateTime(), help="Trend: the day from which waivers' ends are counted (today).")
@as_json
def report_command(
    runs: tuple[Path, ...], pdf: Path | None, trend: Path | None, as_of: datetime | None, as_json: bool
) -> None:
    """Write the report of a judged run and print its path; or one page of many runs, or folders of runs.

    The report of a signed run stays as it was signed. A PDF carries on each sheet the digest of the evidence (of the
    run's manifest, which signatures name); it lies outside the run directory, which it would change.

    \b
    Examples:
      storqual report runs/20261121T101500Z-adapter-4f2a
      storqual report runs/20261121T101500Z-adapter-4f2a --pdf driver-4.2.pdf
      storqual report runs --trend quarter.html
    """
    if trend is not None:
        if pdf is not None:
            raise BadInputError(["storqual report: found --trend and --pdf, expected one of them"])
        from storqual.report.trend import build_trend

        written = {"trend": build_trend(runs, trend, as_of=as_of)}
    elif len(runs) != 1:
        raise BadInputError([f"storqual report: found {len(runs)} runs, expected one, or --trend for all of them"])
    else:
        run = runs[0].resolve()
        if pdf is not None and pdf.resolve().is_relative_to(run):
            raise BadInputError(
                [f"{pdf}: found a place inside the run, expected one outside: its files are evidence"]
            )
        written = {"report": _page(run)}
        if pdf is not None:
            written["pdf"] = _pdf(run, written["report"], pdf.resolve())
    if as_json:
        print_json({name: str(path) for name, path in written.items()})
    else:
        for path in written.values():
            click.echo(path)


def _page(run: Path) -> Path:
    """report.html, made again unless somebody has signed it."""
    from storqual.report import build_report
    from storqual.run import is_signed
    from storqual.run.closing import is_closed
    from storqual.run.published import record_published

    signed = run / "report.html"
    if is_signed(run) and signed.is_file():
        return signed
    report = build_report(run)
    if is_closed(run) and not is_signed(run):
        record_published(run)
    return report


def _pdf(run: Path, report: Path, target: Path) -> Path:
    from storqual.report.render import write_pdf
    from storqual.run import is_signed, read_run, sha256_of
    from storqual.signoff.manifest import MANIFEST, dump_manifest, list_files
    from storqual.signoff.signature import signatures_told

    if is_signed(run) and (run / MANIFEST).is_file():
        digest = sha256_of((run / MANIFEST).read_bytes())
        return write_pdf(report, digest, target, signatures=signatures_told(run))
    return write_pdf(report, sha256_of(dump_manifest(read_run(run).name, list_files(run))), target)
