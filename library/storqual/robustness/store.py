# SPDX-License-Identifier: Apache-2.0
"""Trials in a run directory: planned in run.json, made in `trials/`, each told once in the events."""

from __future__ import annotations

import fcntl
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.inputs import Suite, load_suite
from storqual.inputs.shape import one_of, raise_all
from storqual.robustness.derived import FOLDERS
from storqual.robustness.plan import PlannedTrial
from storqual.run import Run, iter_events, sha256_of, write_json
from storqual.run.events import append_event_locked
from storqual.run.files import parse_line, read_bytes
from storqual.run.layout import RUN_FILE, dump_json, locked
from storqual_core.kit.errors import BadInputError, StorqualError

FOLDER = FOLDERS["trial"]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _list_of(what: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(what, value))


def _is_entry(value: object) -> bool:
    """Seconds of the load, what, and a text."""
    return isinstance(value, list) and len(value) == 3 and _is_number(value[0]) and all(map(_is_text, value[1:]))


_RECORD: Mapping[str, tuple[Callable[[object], bool], str]] = {
    **dict.fromkeys(("id", "pair", "session", "arm", "adapter", "fault", "bench"), (_is_text, "text")),
    "outcome": (lambda value: value in ("passed", "failed", "void"), "passed, failed or void"),
    "reasons": (_list_of(_is_text), "a list of texts"),
    "violations": (_list_of(lambda value: isinstance(value, dict)), "a list of violations"),
    "recovery_s": (lambda value: value is None or _is_number(value), "seconds or null"),
    "timeline": (_list_of(_is_entry), "a list of [seconds, what, text]"),
}
"""What is read of a record, by criteria, matrix and report; what else is in it is evidence for people."""


@dataclass(frozen=True)
class TrialRunFiles:
    """A run of trials: its suite, all that is planned, and what was made of it, in order."""

    suite: Suite
    planned: tuple[PlannedTrial, ...]
    sessions: tuple[tuple[str, str], ...]
    until_failure: bool
    records: tuple[Mapping[str, Any], ...]


def has_trials(document: Mapping[str, Any]) -> bool:
    """Whether a run.json plans trials."""
    return "trials" in (document.get("plan") or {})


def read_trials(run: Run) -> TrialRunFiles:
    """The trials of a run. Raises StorqualError for a record that is not what the events say of it.

    Raises BadInputError with every problem of a plan or of records that another version wrote, or that are damaged.
    """
    planned, sessions = _plan(run)
    records, problems = [], []
    known, counted = {trial.id for trial in planned}, set[str]()
    for event in run.events:
        if event.kind != "turn_finished" or event.text("turn_kind") != "trial":
            continue
        path = run.path / FOLDER / f"{event.text('turn')}.json"
        data = read_bytes(run.path, f"{FOLDER}/{path.name}") if path.is_file() else b""
        if sha256_of(data) != event.text("sha256"):
            raise StorqualError(f"{path}: is not the record that the run's events tell of; the run is damaged")
        record, wrong = _record(data)
        if not wrong and record["id"] != event.text("turn"):
            wrong = [f"id: found {record['id']!r}, expected {event.text('turn')!r}"]
        if event.text("turn") in counted:
            wrong.append("is counted a second time in the run's events")
        if event.text("turn") not in known:
            wrong.append("is of no planned trial")
        counted.add(event.text("turn"))
        records.append(record)
        problems += [f"{path}: {problem}" for problem in wrong]
    raise_all(problems)
    return TrialRunFiles(
        suite=load_suite(run.input_file("suite")),
        planned=planned,
        sessions=sessions,
        until_failure=bool(run.document["plan"].get("until_failure")),
        records=tuple(records),
    )


def _plan(run: Run) -> tuple[tuple[PlannedTrial, ...], tuple[tuple[str, str], ...]]:
    """Trials and sessions (id, arm) of the plan. Raises BadInputError."""
    listed, where = run.document["plan"]["trials"], run.path / RUN_FILE
    if not isinstance(listed, list):
        raise BadInputError([f"{where}: plan.trials: found no list, expected the planned trials"])
    trials, problems = [], []
    for number, line in enumerate(listed):
        try:
            trials.append(PlannedTrial.from_json(line))
        except BadInputError as problem:
            problems += [f"{where}: plan.trials[{number}]: {one}" for one in problem.problems]
    arms = {str(session["id"]): str(session["arm"]) for session in run.document["plan"]["sessions"]}
    problems += [
        f"{where}: plan.trials: {trial.id}: found session {trial.session!r}, expected {one_of(list(arms))}"
        for trial in trials
        if trial.session not in arms
    ]
    raise_all(problems)
    return tuple(trials), tuple(arms.items())


def _record(data: bytes) -> tuple[dict[str, Any], list[str]]:
    """A record, and all that is wrong with it."""
    try:
        body = parse_line(data, f"{FOLDER}/.json")
    except ValueError as problem:
        return {}, [f"found no JSON ({problem}), expected a record"]
    if not isinstance(body, dict):
        return {}, [f"found {body!r}, expected a record"]
    problems = [f"{name}: is missing" for name in _RECORD if name not in body]
    problems += [
        f"{name}: found {body[name]!r}, expected {expected}"
        for name, (fits, expected) in _RECORD.items()
        if name in body and not fits(body[name])
    ]
    if not problems and body["outcome"] != "passed" and not body["reasons"]:
        problems.append(f"reasons: found none, expected why it is {body['outcome']}")
    return body, problems


@contextmanager
def making(run: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Be the one process that makes trials of a run; waits for another one to end, such as one without its parent."""
    folder = run / FOLDER
    folder.mkdir(exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{run.name}: another process makes trials of it; waiting for its end")
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def keep_record(
    run: Path,
    folder: str,
    record: Mapping[str, Any],
    batch: Mapping[str, Any],
    *,
    kind: str,
    ends_session: bool,
) -> None:
    """Write the record of a turn of a batch into a folder, then the event that makes it count.

    Raises StorqualError when there is one already: a turn counts once, whoever else runs batches of the run.
    """
    path = run / folder / f"{record['id']}.json"
    with locked(run):
        if any(event.kind == "turn_finished" and event.text("turn") == record["id"] for event in iter_events(run)):
            raise StorqualError(f"{path}: has a record already; another process runs turns of this run")
        write_json(path, record)
        told = {name: record[name] for name in ("bench", "outcome", "boot_id")}
        told |= {"session": batch["session"], "block": batch["block"], "turn": record["id"], "turn_kind": kind}
        # the guard's count of what was written outside the claims rests on the counters that each turn ends with
        told |= {"ends_session": ends_session, "end": {"disks": record["disks"]}}
        append_event_locked(run, "turn_finished", {**told, "sha256": sha256_of(dump_json(record))})
