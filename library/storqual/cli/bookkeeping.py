# SPDX-License-Identifier: Apache-2.0
"""`storqual next`, `record`, `events` and `collect`: what a playbook asks and tells between two blocks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from storqual.base.text import terminal_text
from storqual.campaign import Provision, RunBlock
from storqual.campaign.next import next_command as next_step
from storqual.campaign.role_inputs import role_inputs
from storqual.cli.options import as_json, print_json, run_argument
from storqual.cli.tables import print_rows
from storqual.run import Event, append_event, collect, iter_events, planned_session, read_run, read_run_json
from storqual_core.kit.errors import BadInputError


@click.command("next")
@run_argument
@click.option("--bench", required=True, help="The bench that asks.")
@click.option("--boot-id", help="The boot id the bench has now; another one than the session's is a new session.")
@as_json
def next_command(run: Path, bench: str, boot_id: str | None, as_json: bool) -> None:
    """Say what a bench must do next: provision a session, measure a block, or stop.

    \b
    Example:
      storqual next runs/20261121T101500Z-adapter-4f2a --bench vbench --json
    """
    step = next_step(run, bench, boot_id=boot_id)
    answer = step.to_json()
    if isinstance(step, Provision):
        answer["roles"] = role_inputs(step.spec)
    elif isinstance(step, RunBlock):
        answer["disturb"] = _disturbance(run, bench, step.session)
    if as_json:
        print_json(answer)
        return
    words = [answer["action"], *(str(answer[name]) for name in ("block", "reason") if answer.get(name))]
    click.echo(terminal_text(" ".join(words)))


def _disturbance(run: Path, bench: str, session: str) -> dict[str, object]:
    """What the drop of a virtual bench asks to happen while this session is measured."""
    opened = read_run(run)
    name = planned_session(session)
    planned = next((s for s in opened.sessions if s.id == name and s.bench == bench), None)
    if planned is None:
        return {}
    spec = opened.document["provision"][bench][planned.configuration]
    return dict((spec.get("virtual") or {}).get("unplug") or {})


def record(path: Path, kind: str, fields: Mapping[str, Any]) -> Event:
    """Append one event. Raises BadInputError for an unknown kind, a missing field, or a bench of another run."""
    run = read_run(path)
    bench = fields.get("bench")
    if bench is not None and bench not in run.benches:
        raise BadInputError([f"{path}: found no bench {bench!r}, expected one of {', '.join(run.benches)}"])
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
            except ValueError as problem:
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


@click.command("events")
@run_argument
@click.option("--bench", help="Only events of this bench.")
@click.option("--kind", help="Only events of this kind.")
@as_json
def events_command(run: Path, bench: str | None, kind: str | None, as_json: bool) -> None:
    """Show what happened in a run, oldest first; a broken chain is an error.

    \b
    Example:
      storqual events runs/20261121T101500Z-adapter-4f2a --kind session_started
    """
    # a folder that is no run has no events either, and no mistake should read like an uneventful run
    read_run_json(run)
    chosen = [
        event for event in iter_events(run) if (bench is None or event.bench == bench) and kind in (None, event.kind)
    ]
    if as_json:
        print_json([{**event.fields, "time": event.time, "kind": event.kind} for event in chosen])
        return
    print_rows(
        ("Time", "Event", "What"),
        [(event.time, event.kind, "  ".join(_told(event.fields))) for event in chosen],
    )


def _told(fields: Mapping[str, object]) -> Iterator[str]:
    """The plain values of an event."""
    for name, value in fields.items():
        if name not in ("time", "kind", "previous") and isinstance(value, str | int | float):
            yield f"{name}={value}"


@click.command("collect")
@run_argument
@click.option("--block", required=True, help="The block whose spool is given on standard input.")
@click.option("--lost", help="Why the spool's last line never comes, such as a reset of the bench.")
@as_json
def collect_command(run: Path, block: str, lost: str | None, as_json: bool) -> None:
    """Store the samples of a block's spool (standard input); doing it twice changes nothing.

    \b
    Example:
      ssh bench cat /var/lib/storqual/spool/<run-id>/s01-b01.jsonl | storqual collect runs/<run-id> --block s01-b01
    """
    got = collect(run, block, sys.stdin.read(), lost=lost)
    if as_json:
        print_json(got.to_json())
    else:
        click.echo(f"{got.new} new samples, {got.known} known, {got.of} planned in {got.block}")
