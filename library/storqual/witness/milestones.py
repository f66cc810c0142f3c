# SPDX-License-Identifier: Apache-2.0
"""What a witness is told of a run, each as one digest: batches, trials, programs, ends, and what was published."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.run.event_kinds import FINISHED
from storqual.run.events import append_event, iter_events
from storqual.run.files import file_digest, read_lines
from storqual.run.layout import BLOCKS, SAMPLES, TURNS, read_run_json, sha256_of
from storqual.run.records import Event
from storqual.witness.places import tell
from storqual_core.kit.errors import StorqualError

TOLD, NOT_TOLD = "witnessed", "not_witnessed"
_OF_RUN = {"closed": "end of the run", "published": "publication"}
"""Events of the run as a whole, and the word for what each stands for."""
_STORED_ID = re.compile(rb'^\{"schema":"[^"]*","id":"([^"]+)/[0-9]+"')


@dataclass(frozen=True, slots=True)
class Milestone:
    """Something that a witness is told: its time (UTC, ISO 8601), its SHA-256, and the word that people have for it.

    `bench` is where a batch, a trial or a program ended; it is empty for what is of the whole run, whose `name` is
    `events/closed-1` and the like: no batch has a slash in its name.
    """

    run: str
    bench: str
    name: str
    time: str
    sha256: str
    word: str = "batch"

    def line(self) -> str:
        """What a witness that keeps lines is told."""
        return f"storqual run={self.run} batch={self.name} sha256={self.sha256}"

    @property
    def label(self) -> str:
        """What a sentence about it begins with."""
        return f"{self.word} {self.name}"


def milestones_of(run: Path) -> dict[str, Milestone]:
    """What a witness is told of a run, by name. Raises StorqualError for a directory that cannot be read.

    The digest of a batch is of its file, of the lines of its samples, which name their evidence by digest, and of the
    event that ended it, which carries the digest of the events before it. Of a trial it is of its record, which names
    the bench's stream by digest, and of its event; of an end and of a publication it is of their event.
    """
    samples: dict[str, hashlib._Hash] = {}
    for _, line in read_lines(run, SAMPLES):
        match = _STORED_ID.match(line)
        name = match.group(1).decode("utf-8", "replace") if match else ""
        samples.setdefault(name, hashlib.sha256()).update(line + b"\n")
    name = str(read_run_json(run).get("run"))
    counted: Counter[str] = Counter()
    found: dict[str, Milestone] = {}
    for event in iter_events(run):
        if event.kind in FINISHED:
            block = event.text(FINISHED[event.kind])
            measured = samples[block].hexdigest() if block in samples else "none"
            parts: tuple[str, ...] = (name, block, _file_digest(run, event, block), measured, event.sha256)
            word = event.text("turn_kind") or "batch"
        elif event.kind in _OF_RUN:
            counted[event.kind] += 1
            block = f"events/{event.kind}-{counted[event.kind]}"
            parts, word = (name, block, event.sha256), _OF_RUN[event.kind]
        else:
            continue
        digest = sha256_of(" ".join(parts).encode())
        bench = str(event.bench or "")
        found[block] = Milestone(name, bench, block, event.time, digest, word)
    return found


def _file_digest(run: Path, event: Event, name: str) -> str:
    file = f"{TURNS if event.kind == 'turn_finished' else BLOCKS}/{name}.json"
    return file_digest(run, file) if "/" not in name and (run / file).is_file() else "none"


def notify_witness(run: Path, bench: str | None = None) -> list[str]:
    """Tell the witness of `bench`, or of every bench, what it was not told; what went wrong, as sentences.

    The place is `storqual_witness` of the bench, as it was planned; without one nothing is told. What is of the whole
    run each place is told once. What was told is an event, with the place's answer where it gives one. A witness that
    cannot be reached stops no campaign: the event says so, and it is told with what comes next.
    """
    places = witness_places(read_run_json(run))
    if not places or (bench is not None and bench not in places):
        return []
    first: dict[str, str] = {}
    for name, place in places.items():
        first.setdefault(place, name)
    known = {(event.bench, event.text("block")) for event in iter_events(run) if event.kind == TOLD}
    wrong = []
    for milestone in milestones_of(run).values():
        for where in [milestone.bench] if milestone.bench else first.values():
            of_bench = where in places and (bench is None or places[bench] == places[where])
            if not of_bench or (milestone.bench and bench not in (None, where)) or (where, milestone.name) in known:
                continue
            problem = _tell(run, where, places[where], milestone)
            if problem:
                wrong.append(f"the digest of {milestone.label} did not reach the witness: {problem}")
    return wrong


def _tell(run: Path, bench: str, place: str, milestone: Milestone) -> str:
    """Tell one place; why that failed, empty when it did not."""
    fields = {"bench": bench, "block": milestone.name, "place": place, "sha256": milestone.sha256}
    try:
        answer = tell(place, milestone.line(), bytes.fromhex(milestone.sha256))
    except StorqualError as problem:
        append_event(run, NOT_TOLD, {**fields, "reason": str(problem)})
        return str(problem)
    append_event(run, TOLD, {**fields, "answer": base64.b64encode(answer).decode()})
    return ""


def witness_places(document: Mapping[str, Any]) -> dict[str, str]:
    """The witness of each bench that has one, as run.json says it."""
    benches = document.get("benches")
    entries = benches.items() if isinstance(benches, Mapping) else ()
    return {
        str(name): str(entry["witness"])
        for name, entry in entries
        if isinstance(entry, Mapping) and entry.get("witness")
    }


def answers_of(run: Path) -> dict[str, list[bytes]]:
    """What witnesses answered, by the name of what they were told. Raises ValueError for what is no base64."""
    answers: dict[str, list[bytes]] = {}
    for event in iter_events(run):
        if event.kind == TOLD:
            answer = base64.b64decode(event.text("answer"), validate=True)
            answers.setdefault(event.text("block"), []).append(answer)
    return answers


def excuses_of(run: Path) -> dict[str, str]:
    """Why a witness was not told, by the name of what it was to be told."""
    return {event.text("block"): event.text("reason") for event in iter_events(run) if event.kind == NOT_TOLD}
