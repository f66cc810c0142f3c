# SPDX-License-Identifier: Apache-2.0
"""`storqual record`: write down in a run what happened."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from storqual.cli.options import as_json, print_json, run_argument
from storqual.run import EVENT_KINDS, Event, append_event, read_run
from storqual_core.kit.errors import BadInputError


def record(path: Path, kind: str, fields: Mapping[str, Any]) -> Event:
    """Append one event of a kind that playbooks and people record.

    Raises BadInputError for any other kind, for fields that are not those of the kind, for a bench of another run,
    and behind the end of a run for all but a note.
    """
    recorded = [name for name, entry in EVENT_KINDS.items() if entry.recorded]
    if kind not in recorded:
        who = "which another command writes itself" if kind in EVENT_KINDS else "which is none"
        raise BadInputError([f"found kind {kind!r}, {who}; expected one of {', '.join(recorded)}"])
    run = read_run(path)
    bench = fields.get("bench")
    if bench is not None and bench not in run.benches:
        raise BadInputError([f"{path}: this run has no bench {bench!r}; its benches: {', '.join(run.benches)}"])
    return append_event(path, kind, fields)


def parse_fields(words: Sequence[str]) -> dict[str, Any]:
    """`name=value` words as fields; `name:=json` for anything that is not text. Raises BadInputError."""
    fields: dict[str, Any] = {}
    problems = []
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not name.rstrip(":"):
            problems.append(f"found {word!r}, expected name=value or name:=json")
        elif name.endswith(":"):
            try:
                fields[name[:-1]] = json.loads(value)
            except (ValueError, RecursionError) as problem:
                problems.append(f"found {word[:80]!r}, expected JSON after := ({problem})")
        else:
            fields[name] = value
    if problems:
        raise BadInputError(problems)
    return fields


@click.command("record")
@run_argument
@click.argument("kind")
@click.argument("fields", nargs=-1)
@click.option("--bench", help="The bench on which it happened.")
@as_json
def record_command(run: Path, kind: str, fields: tuple[str, ...], bench: str | None, as_json: bool) -> None:
    """Append an event to a run. Give its fields as name=value, or as a JSON object on standard input.

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
    except (ValueError, RecursionError) as problem:
        raise BadInputError([f"standard input: found no JSON ({problem}), expected the event's fields"]) from None
    if not isinstance(fields, dict):
        raise BadInputError([f"standard input: found {type(fields).__name__}, expected a JSON object"])
    return fields
