# SPDX-License-Identifier: Apache-2.0
"""Is a run whole? Plan, events, batches, samples, raw files and checks must be those that were planned and collected.

A run has the digest of its plan in its first event, and an event that closes it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from storqual.inputs import load_drop, load_suite
from storqual.inputs.suite import point_name
from storqual.run.closing import collected, line_digests, plan_digest
from storqual.run.collect import batch_digest
from storqual.run.event_kinds import EVENT_KINDS, FINISHED, Stage
from storqual.run.events import append_event_locked, iter_events
from storqual.run.files import DAMAGE, damage_sentences, file_digest, read_bytes, read_object
from storqual.run.layout import (
    BATCHES,
    CHECK_INPUT,
    CHECKS,
    EVENTS,
    INPUTS,
    RAW,
    RUN_FILE,
    RUN_SCHEMA,
    SAMPLES,
    locked,
    sha256_of,
)
from storqual.run.measurements import measurements
from storqual.run.recompute import SampleCheck, read_raw
from storqual.run.records import REFERENCE_POINT, Check, Event, planned_session
from storqual.run.reopened import CORRECTED, counted_checks, reopened
from storqual.run.run import Run
from storqual.run.turns import COUNTED
from storqual_core.kit.errors import BadInputError, StorqualError

_LACKS = "it was planned and has no outcome"
INTERRUPTED = f"{EVENTS}: the run was not closed: it was interrupted before its end, or its end was cut off"
_FILES = {"samples": SAMPLES, "checks": CHECKS, "raw": f"{RAW}/", "blocks": f"{BATCHES}/", "document": RUN_FILE}


def rules_of(run: Run) -> str:
    """By which rules a run is held to its evidence, and whether it was opened again, as a sentence."""
    rules = f"by the rules of {RUN_SCHEMA}: every sample and record is derived again from its raw files"
    try:
        return "; ".join([rules, *reopened(run)])
    except StorqualError:
        # what cannot be read is a finding of its own
        return rules


def evidence_findings(run: Run, samples: SampleCheck | None = None) -> list[str]:
    """Everything that speaks against the evidence of a run, a sentence each that begins with the file.

    `samples` is what was found when they were read; without it they are read now. Empty for a run that is whole.
    Raises StorqualError for a file that cannot be read as what it is, and for a chain of events that is broken.
    """
    if samples is None:
        samples = measurements(run, {}, evidence=True).evidence
    findings = [*_chain(run)]
    if samples is not None:
        findings += [*_batches(run, samples), *samples.findings]
        if samples.more:
            findings.append(f"{SAMPLES}: and {samples.more} more findings of this kind")
    return list(dict.fromkeys(findings))


def missing_checks(run: Run) -> list[Check]:
    """Checks that were planned and have fewer outcomes than points where they were to run, as errors."""
    planned: dict[tuple[str, str], int] = {}
    for event in run.events:
        for name, count in event.fields["checks"].items() if event.kind == "checks_planned" else ():
            key = (event.text("source"), name)
            planned[key] = max(count, planned.get(key, 0))
    outcomes = Counter(check.id for check in counted_checks(run))
    return [
        Check(name, "ERROR", f"{_LACKS} ({outcomes[name]} of {count} are in {CHECKS})", source, None, None, None, {})
        for (source, name), count in planned.items()
        if outcomes[name] < count
    ]


def plan_findings(run: Run) -> Iterator[str]:
    """What is not as it was planned, or as it was when a bench was given it: run.json, inputs and batch files."""
    first = run.events[:1]
    if [event.kind for event in first] != ["planned"]:
        yield f"{EVENTS}: has no beginning: its first event is not that of the plan"
        return
    planned = first[0].fields
    if planned["run"] != run.name:
        yield f"{RUN_FILE}: is of run {run.name}, its events are of {planned['run']}"
    if planned["plan_sha256"] != plan_digest(run.document):
        yield f"{RUN_FILE}: the plan was changed after it was made"
    try:
        # an input that was changed is told by its digest
        yield from () if run.verify_inputs() else _of_other_inputs(run)
    except BadInputError as problem:
        yield f"{INPUTS}/: {problem.problems[0]}"
    for event in run.events:
        for file, digest in event.fields["blocks"].items() if event.kind == "planned" else ():
            yield from _file(run, file, digest)
        if event.kind == "block_started":
            yield from _file(run, f"{event.text('block')}.json", event.fields.get("file_sha256"))


def strange_batches(run: Run) -> Iterator[str]:
    """Batches of second tries, and later ones, that ask for what no batch of the plan asks for; a sentence each."""
    planned = run.events[0].fields["blocks"]
    switches = run.document.get("switches") or {}
    known = {
        _part(step) for bench in switches.values() for drives in bench.values() for step in chain(*drives.values())
    }
    for name in (
        *planned,
        *(path.name for path in sorted((run.path / BATCHES).iterdir()) if path.name not in planned),
    ):
        try:
            parts = set(_parts(read_object(run.path, f"{BATCHES}/{name}")))
            if name not in planned and parts - known:
                yield f"{BATCHES}/{name}: asks for {min(parts - known)[:200]}, which no batch of the plan asks for"
            known |= parts if name in planned else set()
        except DAMAGE as problem:
            yield from damage_sentences(run.path, problem)


def _parts(batch: Mapping[str, Any]) -> Iterator[str]:
    """What a batch asks of its bench, each part by itself, but for names, numbers and the lengths of ramps."""
    yield from (_part(item) for item in batch.items() if item[0] not in ("block", "session", "targets", "turns"))
    yield from map(_part, batch["targets"].items())
    for turn in batch["turns"]:
        fio, steps = turn["request"].get("fio") or {}, turn["request"].get("switch") or ()
        request = {**turn["request"], "switch": None, "pair": None, "fio": {**fio, "ramp_s": None}}
        yield from map(_part, [[turn["kind"], turn["drives"], request], *steps])


_part = partial(json.dumps, sort_keys=True)


def _chain(run: Run) -> Iterator[str]:
    """The plan at the beginning, what was collected at the end, and each kind of event where it belongs."""
    yield from plan_findings(run)
    if not run.events:
        return
    if any(event.kind == "planned" for event in run.events[1:]):
        yield f"{EVENTS}: has two beginnings"
    yield from _of_no_session(run)
    for event in run.events:
        if event.bench not in (None, *run.benches):
            yield f"{_at(event)}: is of bench {event.bench}, which this run does not have"
    yield from _order(run)
    yield from _checks_planned(run)
    yield from _own_checks(run)
    yield from _end(run)


def _of_other_inputs(run: Run) -> Iterator[str]:
    """What run.json says of drops, suite and benches otherwise than its inputs: by these names a run is released.

    Raises BadInputError for a drop or a suite that is none.
    """
    inputs = run.document.get("inputs") or {}
    for arm in run.arms.values():
        drop = load_drop(run.input_file(arm.name))
        manifest = json.loads(json.dumps(drop.to_json()))
        entry = inputs[arm.name]
        # a drop or a suite without a name is called as the file that was planned
        name = Path(entry["source"]).stem if drop.name == Path(entry["file"]).stem else drop.name
        if (arm.drop, arm.file, arm.sha256, arm.manifest) != (name, entry["file"], entry["sha256"], manifest):
            yield f"{RUN_FILE}: says of the {arm.name} something else than {entry['file']}"
    entry, name = inputs["suite"], str(load_suite(run.input_file("suite")).name)
    if name == Path(entry["file"]).stem:
        name = Path(entry["source"]).name.partition(".")[0]
    if (run.suite.name, run.suite.sha256) != (name, entry["sha256"]):
        yield f"{RUN_FILE}: says of the suite something else than {entry['file']}"
    for point in run.plan.points:
        if point.point != point_name(point.workload, {**point.factors, **point.varied}):
            yield f"{RUN_FILE}: the point {point.point} has another workload, or other factors, than its name says"
    benches = read_object(run.path, f"{INPUTS}/{run.input_file('inventory').name}")
    for name, bench in run.benches.items():
        if bench.get("kind") != benches.get(name, {}).get("kind"):
            yield f"{RUN_FILE}: says that {name} is {bench.get('kind')}, and its inventory does not"


def _at(event: Event) -> str:
    return f"{EVENTS}:{event.number}: {event.kind}"


def _order(run: Run) -> Iterator[str]:
    for period in run.periods:
        for event in period.after:
            if EVENT_KINDS[event.kind].stage is not Stage.ANY:
                yield f"{_at(event)}: stands behind the end of the run, which no resumed campaign opened again"
    sessions: set[tuple[str | None, str]] = {(session.bench, session.id) for session in run.plan.sessions}
    seen: set[tuple[str, ...]] = set()
    for event in run.events:
        field = FINISHED.get(event.kind)
        if field is not None:
            name = (event.kind, event.text(field))
            if name in seen:
                yield f"{_at(event)}: ends {name[1]} a second time"
            if event.kind == "block_finished" and ("block_started", name[1]) not in seen:
                yield f"{_at(event)}: ends {name[1]}, which was never started"
            seen.add(name)
        elif event.kind == "block_started":
            seen.add((event.kind, event.text("block")))
        elif event.kind == "session_planned":
            session = (event.bench, event.fields["plan"]["id"])
            if session in sessions or session != (event.fields["plan"]["bench"], event.text("session")):
                yield f"{_at(event)}: session {event.text('session')} is planned already, or is of another name"
            sessions.add(session)
        elif event.kind == "block_planned" and (event.bench, event.text("session")) not in sessions:
            yield f"{_at(event)}: adds to session {event.text('session')}, which was not planned"


def _checks_planned(run: Run) -> Iterator[str]:
    last: dict[tuple[str, str], Event] = {}
    corrected: set[str] = set()
    for event in run.events:
        if event.kind == CORRECTED:
            corrected |= set(event.fields["checks"])
        if event.kind != "checks_planned":
            continue
        file = event.text("file")
        source = (event.text("source"), file)
        before = last.get(source)
        if file in corrected:
            # it may have other tests than before; those that were planned and have no outcome are missed anyway
            last[source] = event
            continue
        if before is not None:
            fewer = [
                name for name, count in before.fields["checks"].items() if event.fields["checks"].get(name, 0) < count
            ]
            if fewer:
                yield f"{_at(event)}: plans fewer checks than line {before.number} did: {fewer[0]} is missing"
        else:
            before_it = (check for check in run.checks if _is_before(check, event))
            early = next((check for check in before_it if check.source == source[0]), None)
            if early is not None:
                yield f"{_at(event)}: was written after the check {early.id} had its outcome"
        last[source] = event
    if any(check.source == COUNTED for check in run.checks):
        yield f"{CHECKS}: has outcomes that are counted from records, which nobody appends"


def _own_checks(run: Run) -> Iterator[str]:
    """Files of checks that the campaign was planned with: each has outcomes, or a plan says that none was to come.

    One that was corrected is one of them, and the run has the file as it was run.
    """
    planned = {
        name.removeprefix(CHECK_INPUT) for name in run.document.get("inputs") or {} if name.startswith(CHECK_INPUT)
    }
    for event in run.events:
        for name, corrected in event.fields["checks"].items() if event.kind == CORRECTED else ():
            file, digest = str(corrected["file"]), corrected["sha256"]
            if name not in planned:
                yield f"{_at(event)}: is of check {name}, which was not planned"
            if file != f"{INPUTS}/{digest}.{name}" or not (run.path / file).is_file():
                yield f"{_at(event)}: names {file[:100]}, which is not the file as it was run"
            elif file_digest(run.path, file) != digest:
                yield f"{file}: is not the corrected check that was run"
    sources = {event.text("source") for event in run.events if event.kind == "checks_planned"}
    files = {check.id.partition("::")[0] for check in run.checks}
    for name in run.document.get("inputs") or {}:
        file = name.removeprefix(CHECK_INPUT)
        source = "robot" if file.endswith(".robot") else "pytest"
        if file != name and source not in sources and file not in files:
            yield f"{CHECKS}: has no outcome of {file}, which was planned, and no event says what it was to check"


def _is_before(check: Check, event: Event) -> bool:
    """Whether a planned check had its outcome before the plan; one without a time is not known to."""
    time = check.fields.get("time")
    return check.id in event.fields["checks"] and isinstance(time, str) and time < event.time


def _end(run: Run) -> Iterator[str]:
    *earlier, last = run.periods
    closed = last.closed
    if closed is None:
        yield INTERRUPTED
    else:
        now = collected(run.path)
        for name, file in _FILES.items():
            digest = closed.fields.get(name)
            if digest != now[name]:
                yield f"{file}: {_other(digest, now[name])}"
    # a campaign that went on has only added to what it was closed over before
    for before in (period.closed for period in earlier if period.closed is not None):
        for name in ("samples", "checks"):
            digest = before.fields[name]
            if digest not in line_digests(run.path, _FILES[name], [digest["count"]]):
                yield f"{_FILES[name]}: its first {digest['count']} lines are not those that were closed over"


def _other(recorded: object, present: object) -> str:
    """How a file differs from what the run was closed over."""
    if isinstance(recorded, Mapping) and isinstance(present, Mapping) and recorded.get("count") != present["count"]:
        return f"holds {present['count']} entries, the run was closed over {recorded.get('count')}"
    return "was changed after the run was closed"


def _batches(run: Run, samples: SampleCheck) -> Iterator[str]:
    planned, started, done = list[str](), set[str](), set[str]()
    for event in run.events:
        batch = event.text("block")
        if event.kind == "planned":
            planned += [file.removesuffix(".json") for file in event.fields["blocks"]]
        elif event.kind == "block_started":
            started.add(batch)
        elif event.kind == "block_finished":
            done |= {batch} if event.fields["outcome"] == "done" else set()
            yield from _finished(run, event, samples)
        elif event.kind == "console_kept" and (raw := event.fields.get("recording")):
            result = read_raw(run.path, raw["path"], raw["sha256"], unpack=False)
            if isinstance(result, str):
                yield f"{result} (it is the console of {event.bench})"
    for batch in dict.fromkeys((*planned, *started)):
        launched, count = samples.launched(batch), len(samples.by_batch.get(batch, ()))
        yield from _beyond_plan(run, batch, launched)
        if batch in done and count < len(launched):
            yield f"{SAMPLES}: has {count} samples of batch {batch}, which ended with {len(launched)} launches"
    for batch in samples.by_batch:
        if batch not in started:
            yield f"{SAMPLES}: has samples of batch {batch}, which was never started"


def _of_no_session(run: Run) -> Iterator[str]:
    """Batches that no session has: nobody would miss what they measured; sessions of another arm, or never begun."""
    sessions = {(session.bench, session.id): set(session.batches) for session in run.sessions}
    arms = {(session.bench, session.id): session.arm for session in run.sessions}
    began: set[tuple[str | None, str]] = set()
    for event in run.events:
        batch, session = event.text("block"), event.text("session")
        if event.kind == "planned":
            files = {f"{batch}.json" for batches in sessions.values() for batch in batches}
            yield from (f"{BATCHES}/{file}: is in no session" for file in event.fields["blocks"] if file not in files)
        elif event.kind == "block_planned":
            sessions.get((str(event.bench), session), set()).add(batch)
        elif event.kind == "session_started":
            began.add((event.bench, session))
            if event.text("arm") != arms.get((str(event.bench), planned_session(session))):
                yield f"{_at(event)}: a session {session} of the arm {event.text('arm') or 'unknown'} is not planned"
        elif event.kind == "block_started":
            # one that was lost is tried again in batches of its own
            own = sessions.get((str(event.bench), planned_session(session)))
            if own is None or (session == planned_session(session) and batch not in own):
                yield f"{_at(event)}: starts {batch}, which is not planned in session {session}"
            if (event.bench, session) not in began:
                yield f"{_at(event)}: starts {batch}, and the session {session} was not started before it"


def _beyond_plan(run: Run, batch: str, launched: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """The first point of a batch that the plan does not have, or skips: what was measured there is judged nowhere."""
    for bench, adapter, point in launched:
        planned = run.points.get((bench, adapter, point))
        if point != REFERENCE_POINT and (planned is None or planned.skipped):
            why = "has no such point" if planned is None else "skips this point"
            yield f"{BATCHES}/{batch}.json: launches {point} of {adapter} on {bench}, but the plan {why}"
            return


def _file(run: Run, file: str, digest: str | None) -> Iterator[str]:
    if not (run.path / BATCHES / file).is_file():
        yield f"{BATCHES}/{file}: is missing"
    elif digest is not None and sha256_of(read_bytes(run.path, f"{BATCHES}/{file}")) != digest:
        yield f"{BATCHES}/{file}: was changed after it was planned"


def _finished(run: Run, event: Event, samples: SampleCheck) -> Iterator[str]:
    batch = event.text("block")
    lines = samples.by_batch.get(batch, [])
    if event.fields["samples"] != len(lines):
        yield f"{SAMPLES}: has {len(lines)} samples of batch {batch}, {event.fields['samples']} were collected"
    elif event.fields["sha256"] != batch_digest(lines):
        yield f"{SAMPLES}: the samples of batch {batch} are not those that were collected"
    log = event.fields.get("kernel_log")
    if log is not None:
        path, sha256 = log["path"], log["sha256"]
        content = read_raw(run.path, path, sha256, unpack=False)
        if isinstance(content, str):
            yield f"{content} (it is the kernel's log of batch {batch})"


PUBLISHED = ("verdict.json", "report.html", "junit.xml", "pytest.html", "ocp.jsonl")


def record_published(run: Path) -> None:
    """Append the digests of what was published, unless the chain has them. Raises BadInputError for a signed run."""
    with locked(run):
        files = {name: file_digest(run, name) for name in PUBLISHED if (run / name).is_file()}
        lists = [event.fields.get("files") for event in iter_events(run) if event.kind == "published"]
        if lists[-1:] != [files]:
            append_event_locked(run, "published", {"files": files})
