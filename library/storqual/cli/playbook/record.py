# SPDX-License-Identifier: Apache-2.0
"""`storqual record` and `events`: what happened in a run, written down and shown."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from storqual.cli.options import as_json, print_json, print_rows, run_argument
from storqual.run import EVENT_KINDS, Event, append_event, iter_events, read_run, read_run_json
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


def session_failure(given: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a session that was not provisioned: what its bench hung in, why, the last words of its kernel.

    `failed` is the result of the `task` that failed, `booted` that of the boot before it.
    """
    session, failed = {"session": given["session"], "arm": given["arm"]}, given["failed"]
    reason = str(failed.get("msg") or failed.get("reason") or "no message")
    # what a kernel that did not start left is the evidence of no other failure
    hung = failed if failed.get("ended_by") else given["booted"] if "evidence" in failed else {}
    # a bench may answer anything
    if isinstance(hung.get("ended_by"), str) and hung["ended_by"] and isinstance(hung.get("seconds"), int | float):
        text = reason if hung is failed else "it hung in its trial boot"
        yield "bench_hung", {**session, "ended_by": hung["ended_by"], "seconds": hung["seconds"], "text": text}
    yield "provision_failed", {**session, "reason": reason, "task": str(failed.get("subsystem") or given["task"])}
    words = given["last_words"]
    if words["panic"]:
        yield "kernel_panic", {**session, "text": words["panic"], "sources": words["sources"]}


def bench_look(given: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a look `when`, before or after a run: what is not well around the drives, state of the bench."""
    look = given["look"]
    if conditions := look.get("conditions"):
        yield "note", {"text": "; ".join(conditions)}
    kept = {name: look[name] for name in ("smart", "logs", "stamped") if name in look}
    yield (
        "environment",
        {"when": given["when"], "facts": look["environment"], "disks": look["facts"]["disks"], **kept},
    )


_OF_PLAYBOOKS = {"session_failed": session_failure, "looked": bench_look}


def parse_fields(words: Sequence[str]) -> dict[str, Any]:
    """`name=value` words as fields. Raises BadInputError."""
    problems = [f"found {word!r}, expected name=value" for word in words if word.find("=") < 1]
    if problems:
        raise BadInputError(problems)
    return dict(word.split("=", 1) for word in words)


@click.command("record")
@run_argument
@click.argument("kind")
@click.argument("fields", nargs=-1)
@click.option("--bench", help="The bench on which it happened.")
@as_json
def record_command(run: Path, kind: str, fields: tuple[str, ...], bench: str | None, as_json: bool) -> None:
    """Append an event to a run. Give its fields as name=value, or as a JSON object on standard input.

    A playbook gives the KIND session_failed or looked, which becomes the events of that failure or look.

    \b
    Example:
      storqual record runs/20261121T101500Z-adapter-4f2a note --bench vbench text="cable of port 2 reseated"
    """
    given = parse_fields(fields) if fields else _fields_from_stdin()
    events = _OF_PLAYBOOKS[kind](given) if kind in _OF_PLAYBOOKS else iter([(kind, given)])
    for event_kind, of_kind in events:
        event = record(run, event_kind, {**({"bench": bench} if bench else {}), **of_kind})
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


@click.command("events")
@run_argument
@click.option("--bench", help="Show only events of this bench.")
@click.option("--kind", help="Show only events of this kind.")
@as_json
def events_command(run: Path, bench: str | None, kind: str | None, as_json: bool) -> None:
    """Show what happened in a run, oldest first. A broken digest chain is an error.

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
        [(event.time, event.kind, "  ".join(_field_texts(event.fields))) for event in chosen],
    )


def _field_texts(fields: Mapping[str, object]) -> Iterator[str]:
    for name, value in fields.items():
        if name not in ("time", "kind", "previous") and isinstance(value, str | int | float):
            yield f"{name}={value}"
