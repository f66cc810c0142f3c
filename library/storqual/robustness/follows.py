# SPDX-License-Identifier: Apache-2.0
"""Do the checks of a run of trials follow from its records, and these from what was told? Both are made again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from storqual.robustness.criteria import checks_of
from storqual.robustness.derived import FOLDERS, trial_again
from storqual.robustness.external_results import external_checks
from storqual.robustness.external_runs import FOLDER as PROGRAMS
from storqual.robustness.external_runs import ExternalFiles, program_again, read_external
from storqual.robustness.store import FOLDER, TrialRunFiles, has_trials, read_trials
from storqual.run import Run, append_check, read_run
from storqual.run.files import DAMAGE, damage_told
from storqual.run.layout import CHECKS, EVENTS, RUN_FILE, TRIAL_SCHEMA
from storqual.run.records import TRIALS
from storqual_core.kit.errors import StorqualError


def append_turn_checks(path: Path) -> None:
    """Append the checks that follow from the records of a run's trials and programs, at its end.

    Raises StorqualError, BadInputError for records that cannot be read.
    """
    run = read_run(path)
    if has_trials(run.document):
        for check in _checks(run, read_trials(run), read_external(run)):
            append_check(path, check)


def _checks(run: Run, files: TrialRunFiles, programs: ExternalFiles) -> Iterator[dict[str, Any]]:
    bench = next(iter(run.benches), "")
    yield from checks_of(files.planned, files.records, bench=bench, until_failure=files.until_failure)
    yield from external_checks(programs.planned, programs.records, bench=bench)


def trial_findings(run: Run) -> list[str]:
    """What does not follow in a run of trials, a sentence each; empty for a run without trials.

    Of checks only outcomes are compared: another version may say otherwise why. A record that cannot be read is told
    as well.
    """
    if not has_trials(run.document):
        return []
    try:
        files, programs = read_trials(run), read_external(run)
        counted = [*_checks(run, files, programs)]
        wanted = {(one["id"], one["bench"], one["adapter"]): one["outcome"] for one in counted}
        said = {(one.id, one.bench, one.adapter): one.outcome for one in run.checks if one.source == TRIALS}
    except DAMAGE as problem:
        return damage_told(run.path, problem)
    other = [
        f"{CHECKS}: {key[0]} on {key[2]}: found {said.get(key, 'no outcome')}, "
        f"the records of its trials say {wanted.get(key, 'nothing of it')}"
        for key in dict.fromkeys([*wanted, *said])
        if wanted.get(key) != said.get(key)
    ]
    return [*_records(run, files, programs), *other]


def _records(run: Run, files: TrialRunFiles, programs: ExternalFiles) -> Iterator[str]:
    """Records that are not what was kept of their trial says."""
    evidence = run.document["plan"].get("evidence")
    if evidence != TRIAL_SCHEMA:
        yield f"{RUN_FILE}: plan: found evidence {_short(evidence)}, expected {_short(TRIAL_SCHEMA)}"
    trials = {one.id: one for one in files.planned}
    runs = {one.id: one for one in programs.planned}
    yield from _different(
        FOLDER,
        files.records,
        lambda record: trial_again(
            run.path / FOLDER,
            record,
            trials[record["id"]],
            files.suite.trials[trials[record["id"]].number].expect,
            load=files.suite.loads[trials[record["id"]].load],
            run=run.name,
        ),
    )
    yield from _different(
        PROGRAMS,
        programs.records,
        lambda record: program_again(
            run.path / PROGRAMS,
            record,
            runs[record["id"]],
            programs.suite.programs[runs[record["id"]].program],
            run=run.name,
        ),
    )
    yield from _events(run, {FOLDER: files.records, PROGRAMS: programs.records})


def _different(
    folder: str,
    records: Iterable[Mapping[str, Any]],
    again: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> Iterator[str]:
    """Each record of a folder that cannot be made again, or is made otherwise."""
    for record in records:
        file = f"{folder}/{record.get('id')}.json"
        try:
            made = again(record)
        except DAMAGE as problem:
            reason = str(problem) if isinstance(problem, StorqualError) else repr(problem)
            yield f"{file}: cannot be derived from its stream ({reason})"
            continue
        for key in sorted(made.keys() | record.keys()):
            if made.get(key) != record.get(key) or (key in made) != (key in record):
                yield f"{file}: found {key} {_short(record.get(key))}, its stream says {_short(made.get(key))}"
                break


def _events(run: Run, records: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterator[str]:
    """What the event of a record tells of it: the guard's count rests on the counters of disks that stand there."""
    known = {(folder, record["id"]): record for folder, listed in records.items() for record in listed}
    for event in run.events:
        folder = FOLDERS.get(event.text("turn_kind"), "") if event.kind == "turn_finished" else ""
        record = known.get((folder, event.text("turn")))
        if record is None:
            continue
        told = {key: event.fields.get(key) for key in ("outcome", "boot_id")}
        told |= {"bench": event.bench, "disks": (event.fields.get("end") or {}).get("disks")}
        for key, value in told.items():
            if value != record.get(key):
                what = f"{event.kind} of {record['id']}"
                yield f"{EVENTS}: {what}: found {key} {_short(value)}, its record says {_short(record.get(key))}"


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
