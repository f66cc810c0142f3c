# SPDX-License-Identifier: Apache-2.0
"""The end of a run's chain: what was collected, by count and digest, so that a cut at the end of a line is found.

The first event of a run has the digest of its plan, the event `closed` that of all that came after it. A campaign
that is resumed after it was closed opens the run again, and is closed again, over all that it has then.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.run.events import append_event_locked, iter_events, opens
from storqual.run.files import file_digest, read_lines
from storqual.run.layout import BATCHES, CHECKS, RAW, RUN_FILE, SAMPLES, locked, sha256_of
from storqual.run.records import Event

_ADDED_LATER = ("finished", "provisioned", "coverage", "preconditioned", "guard", "overhead", "versions")


def plan_digest(document: Mapping[str, Any]) -> str:
    """The SHA-256 of what run.json said when the run was planned: all but what its end adds to it."""
    frozen = {name: value for name, value in document.items() if name not in _ADDED_LATER}
    benches = frozen.get("benches") or {}
    frozen["benches"] = {
        name: {key: value for key, value in bench.items() if key != "environment"} for name, bench in benches.items()
    }
    return sha256_of(json.dumps(frozen, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode())


def collected(run: Path) -> dict[str, Any]:
    return {
        "samples": line_digests(run, SAMPLES, ())[-1],
        "checks": line_digests(run, CHECKS, ())[-1],
        "raw": _names(run, RAW),
        "blocks": _names(run, BATCHES),
        "document": file_digest(run, RUN_FILE),
    }


def line_digests(run: Path, name: str, counts: Iterable[int]) -> list[dict[str, Any]]:
    remaining, digests = sorted(set(counts)), []
    digest, number = hashlib.sha256(), 0
    while remaining and remaining[0] == 0:
        digests.append({"count": remaining.pop(0), "sha256": digest.hexdigest()})
    for number, line in read_lines(run, name):
        digest.update(line)
        digest.update(b"\n")
        if remaining and remaining[0] == number:
            digests.append({"count": remaining.pop(0), "sha256": digest.hexdigest()})
    return [*digests, {"count": number, "sha256": digest.hexdigest()}]


def _names(run: Path, folder: str) -> dict[str, Any]:
    names = sorted(os.listdir(run / folder)) if (run / folder).is_dir() else []  # noqa: PTH208 - names alone are wanted
    return {"count": len(names), "sha256": sha256_of("\n".join(names).encode("utf-8", "surrogateescape"))}


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of a campaign: from the plan, or from the event that opened the run again, to the one that closed it.

    `events` are those up to `closed`, `after` those behind it; `closed` is None for a run that is still measured, or
    was interrupted before its end.
    """

    opened: Event | None
    events: tuple[Event, ...]
    closed: Event | None
    after: tuple[Event, ...]

    def count(self, name: str) -> int | None:
        """How many lines of `samples` or `checks` the run was closed over; None for one that is not closed."""
        return None if self.closed is None else int(self.closed.fields[name]["count"])


def periods_of(events: Iterable[Event]) -> tuple[Period, ...]:
    """The periods of a campaign, one where nobody opened it again; none without events."""
    periods: list[Period] = []
    opened: Event | None = None
    closed: Event | None = None
    within: list[Event] = []
    after: list[Event] = []

    def ended() -> Period:
        return Period(opened, tuple(within), closed, tuple(after))

    for event in events:
        if closed is None:
            within.append(event)
            closed = event if event.kind == "closed" else None
        elif opens(event.kind):
            periods.append(ended())
            opened, within, closed, after = event, [event], None, []
        else:
            after.append(event)
    return (*periods, ended()) if within else ()


def last_closed(events: Iterable[Event]) -> Event | None:
    """The event that closed a run; None for one that is still measured, or was interrupted before its end."""
    *_, last = (None, *periods_of(events))
    return None if last is None else last.closed


def is_closed(run: Path) -> bool:
    """Whether everything of a run was collected: nothing is added to it any more."""
    return last_closed(iter_events(run)) is not None


def close_run(run: Path) -> None:
    """Append the event that ends what is collected, unless it is there. Raises BadInputError for a signed run."""
    with locked(run):
        if not is_closed(run):
            append_event_locked(run, "closed", collected(run))
