# SPDX-License-Identifier: Apache-2.0
"""Is a run whole? Plan, events, batches, samples, raw files and checks must be those that were planned and collected.

Runs of storqual.run/2 have the digest of their plan in their first event, and an event that closes them. Those of
storqual.run/1 have neither, and no records of their launches: of them only what is there can be held to itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from storqual.run.closing import collected, last_closed, line_digests, plan_digest
from storqual.run.collect import block_digest
from storqual.run.files import file_digest, parse_line, read_bytes
from storqual.run.layout import (
    BLOCKS,
    CHECKS,
    EVENTS,
    RAW,
    RUN_FILE,
    RUN_SCHEMA,
    SAMPLES,
    TRIAL_SCHEMA,
    sha256_of,
)
from storqual.run.measurements import measurements
from storqual.run.recompute import SampleCheck, read_raw
from storqual.run.records import Check, Event
from storqual.run.run import Run

INTERRUPTED = f"{EVENTS}: the run was not closed: it was interrupted before its end, or its end was cut off"
_RECORDS = {"trial_finished": ("trials", "trial"), "external_finished": ("external", "program")}
"""Where the records are that an event tells of, and which of its fields names one."""
_FILES = {"samples": SAMPLES, "checks": CHECKS, "raw": f"{RAW}/", "blocks": f"{BLOCKS}/", "document": RUN_FILE}


def is_derived(run: Run) -> bool:
    """Whether all that a verdict counts is derived again from what was recorded, as runs of today are."""
    plan = run.document["plan"]
    return run.schema == RUN_SCHEMA and ("trials" not in plan or plan.get("evidence") == TRIAL_SCHEMA)


def rules_of(run: Run) -> str:
    """By which rules a run is held to its evidence, as a sentence."""
    plan = run.document["plan"]
    if run.schema == RUN_SCHEMA and "trials" in plan:
        if is_derived(run):
            return f"by the rules of {TRIAL_SCHEMA}: the record of each trial is derived again from its stream"
        return (
            f"by the rules of {RUN_SCHEMA}: the record of each trial, and the stream that it rests on, are those "
            "that its event tells of; what a record says is not derived again from its stream"
        )
    if run.schema == RUN_SCHEMA:
        return f"by the rules of {RUN_SCHEMA}: every sample is derived again from its raw files"
    return (
        f"by the rules of {run.schema}: it keeps no counters of its launches, so its samples are not derived again, "
        "and its chain of events has no end"
    )


def evidence_findings(run: Run, samples: SampleCheck | None = None) -> list[str]:
    """Everything that speaks against the evidence of a run, a sentence each that begins with the file.

    `samples` is what was found when they were read; without it they are read now. Empty for a run that is whole.
    Raises StorqualError for a file that cannot be read as what it is, and for a chain of events that is broken.
    """
    if samples is None:
        samples = measurements(run, {}, evidence=True).evidence
    found = [*_chain(run), *_records(run)]
    if samples is not None:
        found += _batches(run, samples)
    if samples is not None:
        found += samples.findings
        if samples.more:
            found.append(f"{SAMPLES}: and {samples.more} more findings of this kind")
    return list(dict.fromkeys(found))


def missing_checks(run: Run) -> list[Check]:
    """Checks that were planned and have fewer outcomes than places where they were to run, as errors."""
    planned: dict[str, dict[str, int]] = {}
    for event in run.events:
        if event.kind == "checks_planned":
            planned[event.text("source")] = dict(event.fields["checks"])
    places: Counter[str] = Counter()
    for name, *_ in {(one.id, one.bench, one.adapter, one.point) for one in run.checks}:
        places[name] += 1
    return [
        _missing(name, source, places[name], wanted)
        for source, checks in planned.items()
        for name, wanted in checks.items()
        if places[name] < wanted
    ]


def _missing(name: str, source: str, found: int, wanted: int) -> Check:
    reason = f"it was planned and has no outcome ({found} of {wanted} are in {CHECKS})"
    return Check(name, "ERROR", reason, source, None, None, None, {})


def _chain(run: Run) -> Iterator[str]:
    """The plan at the beginning, and what was collected at the end."""
    events = run.events
    if not events or events[0].kind != "planned":
        yield f"{EVENTS}: has no beginning: its first event is not that of the plan"
        return
    planned = events[0].fields
    if any(event.kind == "planned" for event in events[1:]):
        yield f"{EVENTS}: has two beginnings"
    if planned.get("run") != run.name:
        yield f"{RUN_FILE}: is of run {run.name}, its events are of {planned.get('run')}"
    if run.schema != RUN_SCHEMA:
        if "plan_sha256" in planned:
            yield f"{RUN_FILE}: says schema {run.schema}, its events are those of {RUN_SCHEMA}"
        if any(event.kind == "closed" for event in events):
            # it was planned by a former version and went on with this one
            yield from _end(run, events)
        return
    if planned.get("plan_sha256") != plan_digest(run.document):
        yield f"{RUN_FILE}: the plan was changed after it was made"
    yield from _end(run, events)


def _end(run: Run, events: Sequence[Event]) -> Iterator[str]:
    closed = last_closed(events)
    if closed is None:
        yield INTERRUPTED
    else:
        now = collected(run.path)
        for name, file in _FILES.items():
            said = closed.fields.get(name)
            if said != now[name]:
                yield f"{file}: {_other(said, now[name])}"
    # a campaign that went on has only added to what it was closed over before
    for before in (event for event in events if event.kind == "closed" and event is not closed):
        for name in ("samples", "checks"):
            said = before.fields.get(name) or {}
            if said not in line_digests(run.path, _FILES[name], [int(said.get("count") or 0)]):
                yield f"{_FILES[name]}: its first {said.get('count')} lines are not those that were closed over"


def _other(said: object, now: object) -> str:
    """How a file differs from what the run was closed over."""
    if isinstance(said, Mapping) and isinstance(now, Mapping) and said.get("count") != now["count"]:
        return f"holds {now['count']} entries, the run was closed over {said.get('count')}"
    return "was changed after the run was closed"


def _batches(run: Run, samples: SampleCheck) -> Iterator[str]:
    """Files of batches, and what each was collected as."""
    started: dict[str, Any] = {}
    for event in run.events:
        block = event.text("block")
        if event.kind == "planned":
            for file, digest in (event.fields.get("blocks") or {}).items():
                yield from _file(run, file, digest)
        elif event.kind == "block_started":
            started[block] = event
            yield from _file(run, f"{block}.json", event.fields.get("file_sha256"))
        elif event.kind == "block_finished":
            yield from _finished(run, event, samples)
    for block in samples.by_block:
        if block not in started:
            yield f"{SAMPLES}: has samples of batch {block}, which was never started"


def _records(run: Run) -> Iterator[str]:
    """Records of trials and of foreign programs are those that were made, and so are the streams that they name."""
    for event in run.events:
        folder, name = _RECORDS.get(event.kind, ("", ""))
        if not folder:
            continue
        file = f"{folder}/{event.text(name)}.json"
        path = run.path / file
        if "/" in event.text(name) or not path.is_file():
            yield f"{file}: is missing"
        elif sha256_of(data := read_bytes(run.path, file)) != event.text("sha256"):
            yield f"{file}: is not the record that was made"
        else:
            yield from _stream(run, file, data)


def _stream(run: Run, file: str, data: bytes) -> Iterator[str]:
    """What the bench told of a trial; former versions recorded no digest of it."""
    try:
        record, folder = parse_line(data, file), file.partition("/")[0]
        name, digest = str(record.get("stream")), record.get("stream_sha256")
    except (ValueError, AttributeError):
        # whoever reads records says what they are
        return
    path = run.path / folder / name
    if digest is not None and (
        "/" in name or not path.is_file() or file_digest(run.path, f"{folder}/{name}") != digest
    ):
        yield f"{folder}/{name}: is missing, or is not what the bench told"


def _file(run: Run, file: str, digest: str | None) -> Iterator[str]:
    path = run.path / BLOCKS / file
    if not path.is_file():
        yield f"{BLOCKS}/{file}: is missing"
    elif digest is not None and sha256_of(read_bytes(run.path, f"{BLOCKS}/{file}")) != digest:
        yield f"{BLOCKS}/{file}: was changed after it was planned"


def _finished(run: Run, event: Event, samples: SampleCheck) -> Iterator[str]:
    """Samples and kernel log of a batch are those that were collected."""
    block = event.text("block")
    lines = samples.by_block.get(block, [])
    digest = event.fields.get("sha256")
    if event.fields.get("samples") not in (None, len(lines)):
        yield f"{SAMPLES}: has {len(lines)} samples of batch {block}, {event.fields['samples']} were collected"
    elif digest is not None and digest != block_digest(lines):
        yield f"{SAMPLES}: the samples of batch {block} are not those that were collected"
    log = event.fields.get("kernel_log")
    if isinstance(log, Mapping):
        path, sha256 = str(log.get("path")), str(log.get("sha256"))
        said = read_raw(run.path, path, sha256, unpack=False)
        if isinstance(said, str):
            yield f"{said} (it is the kernel's log of batch {block})"
