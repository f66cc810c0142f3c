# SPDX-License-Identifier: Apache-2.0
"""A batch as one digest, and the batches of a run that no witness knows yet."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from storqual.run.events import append_event
from storqual.run.files import file_digest, parse_line, read_lines
from storqual.run.layout import BLOCKS, EVENTS, SAMPLES, read_run_json, sha256_of
from storqual.witness.places import tell
from storqual_core.kit.errors import StorqualError

TOLD, NOT_TOLD = "witnessed", "not_witnessed"
OVER: Mapping[str, tuple[str, str, str]] = {
    # event: which of its fields names what is over, the folder of its file, the word for it
    "block_finished": ("block", BLOCKS, "batch"),
    "trial_finished": ("trial", "trials", "trial"),
    "external_finished": ("program", "external", "program"),
}
_STORED_ID = re.compile(rb'^\{"schema":"[^"]*","id":"([^"]+)/[0-9]+"')


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that is over: its bench, the time (UTC, ISO 8601) and the SHA-256 of all that was collected of it.

    In a run of trials each trial is one, and each run of a foreign program; `word` is what people call it.
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


def batches_of(run: Path) -> dict[str, Batch]:
    """The batches of a run that are over, by name. Raises StorqualError for a directory that cannot be read.

    The digest is of the batch's file, of the lines of its samples, which name their evidence by digest, and of the
    event that ended it, which carries the digest of the events before it. Of a trial it is of its record, which names
    the bench's stream by digest, and of its event.
    """
    samples: dict[str, hashlib._Hash] = {}
    for _, line in read_lines(run, SAMPLES):
        match = _STORED_ID.match(line)
        name = match.group(1).decode("utf-8", "replace") if match else ""
        samples.setdefault(name, hashlib.sha256()).update(line + b"\n")
    name = str(read_run_json(run).get("run"))
    found = {}
    for number, line in read_lines(run, EVENTS):
        try:
            event = parse_line(line, EVENTS)
            if event["kind"] not in OVER:
                continue
            field, folder, word = OVER[event["kind"]]
            block, bench, time = str(event[field]), str(event["bench"]), str(event["time"])
        except (ValueError, KeyError, TypeError) as problem:
            raise StorqualError(f"{run / EVENTS}:{number}: found no event ({problem!r})") from None
        file = f"{folder}/{block}.json"
        plan = file_digest(run, file) if (run / file).is_file() else "none"
        measured = samples[block].hexdigest() if block in samples else "none"
        parts = " ".join((name, block, plan, measured, sha256_of(line)))
        found[block] = Batch(name, bench, block, time, sha256_of(parts.encode()), word)
    return found


def witness_batches(run: Path, bench: str) -> list[str]:
    """Tell the witness of `bench` every batch that is over and that it was not told; what went wrong, as sentences.

    The place is `storqual_witness` of the bench, as it was planned; without one nothing is told. What was told is an
    event, with the place's answer where it gives one. A witness that cannot be reached stops no campaign: the event
    says so, and the batch is told with the next one.
    """
    document = read_run_json(run)
    place = _told_of(document, bench, "witness")
    if not place:
        return []
    wrong = []
    known = {str(event.get("block")) for event in _events(run, TOLD)}
    for batch in batches_of(run).values():
        if batch.bench != bench or batch.name in known:
            continue
        fields = {"bench": bench, "block": batch.name, "place": place, "sha256": batch.sha256}
        try:
            answer = tell(place, batch.line(), bytes.fromhex(batch.sha256), _told_of(document, bench, "witness_key"))
        except StorqualError as problem:
            wrong.append(f"the digest of {batch.word} {batch.name} did not reach the witness: {problem}")
            append_event(run, NOT_TOLD, {**fields, "reason": str(problem)})
            continue
        append_event(run, TOLD, {**fields, "answer": base64.b64encode(answer).decode()})
    return wrong


def _told_of(document: Mapping[str, object], bench: str, key: str) -> str:
    """What run.json says under `key` of a bench; empty for nothing."""
    benches = document.get("benches")
    entry = benches.get(bench) if isinstance(benches, Mapping) else None
    return str(entry.get(key) or "") if isinstance(entry, Mapping) else ""


def answers_of(run: Path) -> dict[str, bytes]:
    """What the witness answered, by batch."""
    return {str(one.get("block")): base64.b64decode(str(one.get("answer") or "")) for one in _events(run, TOLD)}


def _events(run: Path, kind: str) -> list[dict[str, object]]:
    found = (parse_line(line, EVENTS) for _, line in read_lines(run, EVENTS))
    return [event for event in found if isinstance(event, dict) and event.get("kind") == kind]
