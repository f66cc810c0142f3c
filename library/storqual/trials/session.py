# SPDX-License-Identifier: Apache-2.0
"""The trials of one session: those that have no record yet, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from storqual.robustness.faults import FAULTS
from storqual.robustness.store import FOLDER, keep_record, read_trials
from storqual.run import Run, append_event, read_run
from storqual.trials.link import Link
from storqual.trials.one import BenchHere, LiveTrial, send_program
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import reset

_IDENTITY = ("wwn", "serial", "vendor", "model", "size", "file")


def run_session(
    path: Path, bench: str, session: str, link: Link, *, python: str, virtual: str, say: Callable[[str], None]
) -> bool:
    """Make what is left of a session; True when it is done, False when the bench must be provisioned again first.

    A trial is made when its record is told in the events: one that was under way when its campaign was killed is
    made again, and its earlier stream is not counted. Raises LinkError when the bench does not answer.
    """
    run = read_run(path)
    files = read_trials(run)
    made = {record["id"] for record in files.records}
    arm = dict(files.sessions)[session]
    here = bench_here(run, bench, link, python=python, virtual=virtual)
    boot, kernel = link.run("cat /proc/sys/kernel/random/boot_id; uname -r").split()
    told = {"bench": bench, "session": session, "arm": arm, "boot_id": boot, "kernel": kernel}
    append_event(path, "session_started", told)
    left = [trial for trial in files.planned if trial.session == session and trial.id not in made]
    for number, planned in enumerate(left):
        append_event(path, "trial_started", {"bench": bench, "session": session, "trial": planned.id})
        kept = path / FOLDER / f"{planned.id}.stream.jsonl"
        kept.unlink(missing_ok=True)
        record = LiveTrial(here, files.suite, planned, path / FOLDER, run.name).run()
        keep_record(path, record)
        why = f": {record['reasons'][0]}" if record["reasons"] else ""
        say(f"{bench} {arm} | trial {number + 1} of {len(left)}: {planned.id} | {record['outcome']}{why}")
        if files.until_failure and record["outcome"] == "failed":
            return True
        way = next(way for way in FAULTS[planned.fault].ways if way.name == planned.way)
        hung = any(reason.startswith("hung: ") for reason in record["reasons"])
        if hung and here.virtual is not None:
            # a bench that hangs answers nobody: what comes next needs another boot
            reset(here.virtual)
            link.cut()
        if (way.downs_bench or hung) and number + 1 < len(left):
            return False
    return True


def bench_here(run: Run, bench: str, link: Link, *, python: str, virtual: str) -> BenchHere:
    """A bench of a run as it is reached now, with the bench program on it. Raises LinkError."""
    entry = run.benches[bench]
    return BenchHere(
        name=bench,
        link=link,
        python=python,
        state_dir=entry["state_dir"],
        claims={alias: _claims(adapter) for alias, adapter in entry["adapters"].items()},
        adapters={alias: str(adapter.get("pci") or "") for alias, adapter in entry["adapters"].items()},
        program=send_program(link, python, entry["state_dir"]),
        virtual=BenchPlaces.of(virtual) if virtual else None,
    )


def _claims(adapter: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        drive["id"]: {name: drive[name] for name in _IDENTITY if drive.get(name) is not None}
        for drive in adapter["drives"]
        if drive.get("claim")
    }
