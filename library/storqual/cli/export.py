# SPDX-License-Identifier: Apache-2.0
"""`storqual export`: a judged run in the formats of other people's programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from storqual.cli.options import NEW_FILE, as_json, print_json, run_argument
from storqual_core.kit.errors import BadInputError

if TYPE_CHECKING:
    from storqual.report.material import Material


_FORMATS = ("ocp", "openmetrics", "criteria-csv", "samples-csv", "github", "gitlab")


@click.command("export")
@run_argument
@click.option("--format", "form", type=click.Choice(_FORMATS), required=True, help="Format of the export.")
@click.option("-o", "--output", type=NEW_FILE, help="File to write (default: standard output).")
@as_json
def export_command(run: Path, form: str, output: Path | None, as_json: bool) -> None:
    """Export a judged run as OCP lines, OpenMetrics, tables, or annotations of a merge request.

    openmetrics is for dashboards; criteria-csv and samples-csv for spreadsheets; github prints workflow commands;
    gitlab is a code quality report.

    \b
    Examples:
      storqual export runs/20261121T101500Z-adapter-4f2a --format criteria-csv -o criteria.csv
      storqual export runs/20261121T101500Z-adapter-4f2a --format github
      storqual export runs/20261121T101500Z-adapter-4f2a --format openmetrics -o metrics.prom --json
    """
    from storqual.report.material import read_material
    from storqual.run import write_bytes
    from storqual.run.layout import refuse_inside_run

    if output is None and as_json:
        raise BadInputError(["--output is needed with --json: name the file to write"])
    if output is not None:
        refuse_inside_run(output)
    material = read_material(run)
    if output is None:
        click.echo(_text(form, material), nl=False)
        return
    write_bytes(output, _text(form, material).encode())
    if as_json:
        print_json({"format": form, "output": str(output)})


def _text(form: str, material: Material) -> str:
    from storqual.report import export

    writers: dict[str, Callable[[Material], str]] = {
        "ocp": lambda read: "".join(f"{line}\n" for line in export.ocp_lines(read)),
        "openmetrics": export.open_metrics,
        "criteria-csv": export.criteria_csv,
        "samples-csv": export.samples_csv,
        "github": lambda read: export.github_annotations(read, Path.cwd()),
        "gitlab": lambda read: export.gitlab_code_quality(read, Path.cwd()),
    }
    return writers[form](material)
