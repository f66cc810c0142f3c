# SPDX-License-Identifier: Apache-2.0
"""A campaign's part of a console becomes a raw file of its run, named by its digest as all of them are."""

import time
from pathlib import Path
from typing import Any

from storqual.base.console_log import GAP, NOTE, gaps, read_recording, utc_stamp
from storqual.console.console import Console
from storqual.inputs.console_way import ConsoleWay
from storqual.run import Event, append_event, iter_events
from storqual.run.collect import keep_raw
from storqual_core.kit.errors import ToolError

STARTED, KEPT = "console_started", "console_kept"


def begin(run: Path, console: Console, way: ConsoleWay) -> bool:
    """Have the console recorded for a run; False when it was already. Raises what `Console.start` raises.

    A campaign that is resumed goes on where the interrupted one began: the recorder has outlived it.
    """
    mark = console.mark()
    started = console.start(way, run=run.name)
    if _since(run, console.bench) is None:
        append_event(run, STARTED, {"bench": console.bench, "console": way.words, "from": mark})
    return started


def keep(run: Path, console: Console) -> dict[str, Any]:
    """Take what was recorded since `begin` into the run, and end the recorder that was started for it.

    The fields of the event; empty where nothing was begun. Nothing is lost by an end in the middle: it can be
    repeated, and the recording itself stays.
    """
    event = _since(run, console.bench)
    if event is None:
        return {}
    trouble = ""
    order = console.running()
    if order is not None and order["run"] == run.name:
        try:
            console.stop()
        except ToolError as problem:
            trouble = str(problem)
    if order is None:
        gone = f"{utc_stamp(time.time())} {NOTE} {GAP}no recorder ran any more when the campaign ended\n"
        console.recording.append(gone.encode())
    since, until = int(event.fields["from"]), console.mark()
    # a recording that somebody removed meanwhile begins anew
    since = since if since <= until else 0
    data = console.recording.read(since, until)
    fields: dict[str, Any] = {
        "bench": console.bench,
        "console": event.text("console"),
        "gaps": len(gaps(read_recording(data))),
        **({"recording": keep_raw(run, data, "console.gz")} if data else {}),
        **({"reason": trouble} if trouble else {}),
    }
    append_event(run, KEPT, fields)
    return fields


def _since(run: Path, bench: str) -> Event | None:
    """The event from which on the console is to be kept; None when all of it is."""
    last: Event | None = None
    for event in iter_events(run):
        if event.bench == bench and event.kind in (STARTED, KEPT):
            last = event if event.kind == STARTED else None
    return last
