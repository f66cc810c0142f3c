# SPDX-License-Identifier: Apache-2.0
"""`storqual audit`: recompute what reports state, from their own figures."""

from __future__ import annotations

from pathlib import Path

import click

from storqual.audit import audit_document, exit_code
from storqual.audit.output import audit_files, print_claims
from storqual.cli.options import as_json, print_json


@click.command("audit")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Show every assertion, not only the inconsistent ones.")
@as_json
def audit_command(files: tuple[Path, ...], everything: bool, as_json: bool) -> int:
    """Recompute every derived figure and assertion of a report; exit with 1 if any is inconsistent.

    FILES are figures of published reports (suites/published/*.yml), the texts they were taken from, or run
    directories.

    \b
    Examples:
      storqual audit suites/published/*.yml
      storqual audit --all suites/published/a6826a.yml
      storqual audit --json runs/20261121T101500Z-adapter-4f2a
    """
    claims = audit_files(files)
    if as_json:
        print_json(audit_document(claims))
    else:
        print_claims(claims, everything=everything)
    return exit_code(claims)
