# SPDX-License-Identifier: Apache-2.0
"""`storqual record`: write down in a run what happened."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from storqual.cli.options import as_json, print_json, run_argument
from storqual.run.record import parse_fields, record
from storqual_core.kit.errors import BadInputError


@click.command("record")
@run_argument
@click.argument("kind")
@click.argument("fields", nargs=-1)
@click.option("--bench", help="The bench it happened on.")
@as_json
def record_command(run: Path, kind: str, fields: tuple[str, ...], bench: str | None, as_json: bool) -> None:
    """Append an event to a run; fields are name=value words, or a JSON object on standard input.

    \b
    Example:
      storqual record runs/20261121T101500Z-adapter-4f2a note --bench vbench text="cable of port 2 reseated"
    """
    given = parse_fields(fields) if fields else _fields_from_stdin()
    event = record(run, kind, {**({"bench": bench} if bench else {}), **given})
    if as_json:
        print_json({"time": event.time, "kind": event.kind, **event.fields})


def _fields_from_stdin() -> dict[str, object]:
    text = "" if sys.stdin.isatty() else sys.stdin.read()
    try:
        fields = json.loads(text) if text.strip() else {}
    except ValueError as problem:
        raise BadInputError([f"standard input: found no JSON ({problem}), expected the event's fields"]) from None
    if not isinstance(fields, dict):
        raise BadInputError([f"standard input: found {type(fields).__name__}, expected a JSON object"])
    return fields
