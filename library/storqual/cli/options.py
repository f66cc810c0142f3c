# SPDX-License-Identifier: Apache-2.0
"""What several commands share: the run argument, `--json`, and how an answer is printed."""

from __future__ import annotations

import json
from pathlib import Path

import click

from storqual.cli.completion import complete_run

__all__ = ["as_json", "print_json", "run_argument"]

run_argument = click.argument(
    "run", type=click.Path(path_type=Path, exists=True, file_okay=False), shell_complete=complete_run
)
as_json = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")


def print_json(value: object) -> None:
    """One JSON document on standard output; NaN is refused, because other people's parsers refuse it."""
    click.echo(json.dumps(value, allow_nan=False, indent=1))
