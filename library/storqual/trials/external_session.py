# SPDX-License-Identifier: Apache-2.0
"""The foreign programs of one session: those that have no record yet, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from storqual.robustness.external_store import FOLDER, keep_external, read_external
from storqual.run import append_event, read_run
from storqual.trials.bench_packages import install_package
from storqual.trials.external import LiveExternal
from storqual.trials.link import Link
from storqual.trials.one import BenchHere
from storqual.trials.session import bench_here
from storqual.witness import witness_batches


def run_external_session(
    path: Path, bench: str, session: str, link: Link, *, python: str, virtual: str, say: Callable[[str], None]
) -> bool:
    """Run what is left of a session; True when it is done, False when the bench must be provisioned again first.

    Raises LinkError when the bench does not answer, ToolError when a package cannot be installed.
    """
    run = read_run(path)
    files = read_external(run)
    made = {record["id"] for record in files.records}
    left = [one for one in files.planned if one.session == session and one.id not in made]
    if not left:
        return True
    here: BenchHere = bench_here(run, bench, link, python=python, virtual=virtual)
    arm = dict(files.sessions)[session]
    programs = {one.program: files.suite.external[one.program] for one in left}
    for package in dict.fromkeys(program.package for program in programs.values()):
        version = package and install_package(link, package, here.state_dir, virtual=here.virtual is not None)
        if version:
            append_event(path, "note", {"bench": bench, "text": f"installed {package} {version} on {bench}"})
    for number, planned in enumerate(left):
        append_event(path, "external_started", {"bench": bench, "session": session, "program": planned.id})
        live = LiveExternal(here, programs[planned.program], planned, path / FOLDER, run.name)
        record = live.run()
        keep_external(path, record)
        for wrong in witness_batches(path, bench):
            say(f"{bench} | {wrong}")
        counted = Counter(outcome for _, outcome, _ in record["tests"])
        told = ", ".join(f"{outcome} {count}" for outcome, count in sorted(counted.items()))
        why = "; ".join(filter(None, (told, *record["reasons"], *record["problems"][:1], record["recovered"])))
        say(f"{bench} {arm} | program {number + 1} of {len(left)}: {planned.id} | {record['outcome']}: {why}")
        if live.was_reset and number + 1 < len(left):
            return False
    return True
