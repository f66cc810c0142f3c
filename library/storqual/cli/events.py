# SPDX-License-Identifier: Apache-2.0
"""`storqual events`: what happened in a run."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from storqual.cli.options import as_json, print_json, print_rows, run_argument
from storqual.run import iter_events, read_run_json


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
