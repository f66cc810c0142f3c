# SPDX-License-Identifier: Apache-2.0
"""The trials of one session: those that have no record yet, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from storqual.robustness.store import FOLDER, keep_record, making, read_trials
from storqual.run import Run, append_event, read_run
from storqual.trials.link import Link, LinkError
from storqual.trials.one import BenchHere, LiveTrial, TrialLostError, send_program
from storqual.trials.paths import make_maps, paths_of
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import reset
from storqual.witness import notify_witness
from storqual_core.data.faults import WAYS
from storqual_core.host.identity import declared_address

_BROKEN = ("hung", "panic", "bench down", "not recovered", "drive missing")
"""What the reasons of a trial begin with that leaves a bench on which nothing more can be tried."""
_RESETS, _LOSSES = 1, 4
"""How often a bench may be found on another boot in one trial, and how often one may be cut short in all."""
_IDENTITY = ("wwn", "serial", "vendor", "model", "size", "file")


def run_session(
    path: Path, bench: str, session: str, link: Link, *, python: str, virtual: str, say: Callable[[str], None]
) -> bool:
    """Make what is left of a session; True when it is done, False when the bench must be provisioned again first.

    A trial is made when its record is told in the events: one that was under way when its campaign was killed, the
    bench was reset or its connection lost is made again, and its earlier stream is not counted. What is cut short too
    often is judged as it is. One process makes trials of a run at a time.
    """
    with making(path, say):
        try:
            return _session(path, bench, session, link, python=python, virtual=virtual, say=say)
        except LinkError as problem:
            say(f"{bench} | {problem}")
            return False


def _session(
    path: Path, bench: str, session: str, link: Link, *, python: str, virtual: str, say: Callable[[str], None]
) -> bool:
    run = read_run(path)
    files = read_trials(run)
    made = {record["id"] for record in files.records}
    arm = dict(files.sessions)[session]
    here = bench_here(run, bench, link, python=python, virtual=virtual)
    shared = paths_of(run.benches[bench]["adapters"])
    if shared and (note := make_maps(link, shared, here.state_dir, virtual=here.virtual is not None)):
        append_event(path, "note", {"bench": bench, "text": f"{note} on {bench}"})
    left = [trial for trial in files.planned if trial.session == session and trial.id not in made]
    for number, planned in enumerate(left):
        named = {"bench": bench, "session": session, "trial": planned.id}
        append_event(path, "trial_started", named)
        trial = LiveTrial(here, files.suite, planned, path / FOLDER, run.name, again=_may_be_lost(run, planned.id))
        try:
            record = trial.run()
        except TrialLostError as problem:
            append_event(path, "trial_lost", {**named, "reason": str(problem), "rebooted": problem.rebooted})
            say(f"{bench} {arm} | {planned.id} was interrupted and is repeated: {problem}")
            return False
        keep_record(path, record)
        for wrong in notify_witness(path, bench):
            say(f"{bench} | {wrong}")
        why = f": {record['reasons'][0]}" if record["reasons"] else ""
        say(f"{bench} {arm} | trial {number + 1} of {len(left)}: {planned.id} | {record['outcome']}{why}")
        if files.until_failure and record["outcome"] == "failed":
            return True
        way = WAYS[planned.way][1]
        broken = any(reason.partition(": ")[0] in _BROKEN for reason in record["reasons"])
        if broken and here.virtual is not None:
            # a bench that hangs, or whose drive is out of reach, is none for the next trial: it needs another boot
            reset(here.virtual)
            link.cut()
        if (way.downs_bench or broken) and number + 1 < len(left):
            return False
    return True


def _may_be_lost(run: Run, trial: str) -> bool:
    """Whether a trial that is cut short is made again, by how often it was."""
    lost = [
        event.fields.get("rebooted")
        for event in run.events
        if event.kind == "trial_lost" and event.text("trial") == trial
    ]
    return sum(map(bool, lost)) < _RESETS and len(lost) < _LOSSES


def bench_here(run: Run, bench: str, link: Link, *, python: str, virtual: str) -> BenchHere:
    """A bench of a run as it is reached now, with the bench program on it. Raises LinkError."""
    entry = run.benches[bench]
    return BenchHere(
        name=bench,
        link=link,
        python=python,
        state_dir=entry["state_dir"],
        claims={alias: _claims(alias, entry["adapters"]) for alias in entry["adapters"]},
        adapters={alias: declared_address(adapter) for alias, adapter in entry["adapters"].items()},
        program=send_program(link, python, entry["state_dir"]),
        virtual=BenchPlaces.of(virtual) if virtual else None,
        boot_id=link.run("cat /proc/sys/kernel/random/boot_id").strip(),
    )


def _claims(alias: str, adapters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The claims on the drives that an adapter reaches, its own and those that name it among their paths."""
    return {
        drive["id"]: {name: drive[name] for name in _IDENTITY if drive.get(name) is not None}
        for owner, adapter in adapters.items()
        for drive in adapter["drives"]
        if drive.get("claim") and alias in (owner, *(drive.get("paths") or ()))
    }
