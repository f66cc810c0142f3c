# SPDX-License-Identifier: Apache-2.0
"""A small run of trials and of a foreign program, whose records follow from what was told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from storqual.cli.playbook.publish import publish
from storqual.plan import PlanRequest
from storqual.robustness.derived import derive_trial, head_line, keep_lines, kept_lines
from storqual.robustness.external_runs import FOLDER as PROGRAMS
from storqual.robustness.external_runs import PlannedExternal, derive_program, read_external, run_line
from storqual.robustness.images import Logged
from storqual.robustness.log_writes import FLUSH
from storqual.robustness.plan import PlannedTrial
from storqual.robustness.store import FOLDER, TrialRunFiles, read_trials
from storqual.run import Run, append_event, read_run
from storqual_core.data.faults import LOGGING_WAY
from tests.support.trial_campaign import plan_campaign
from tests.support.turn_records import keep_turn

SUITE = """\
name: kept
loads:
  integrity: {region: 2MiB, workers: 4, sizes: [512], reads: 20%, write_through: 0%, flush_every: 1, time: 1s}
trials:
  - {fault: device_reset, load: integrity, expect: {recovery: 60s, stall: 60s}}
  - {fault: power_cut, load: integrity, away: 3s, expect: {recovery: 60s, stall: 60s}}
programs:
  conformance: {run: [a-test, "{sg}"], reads: tap}
"""
INVENTORY = Path(__file__).resolve().parents[2] / "inventories" / "virtual"
S = 1_000_000_000
_DRIVE = {"name": "sda", "hctl": "2:0:0:0", "wwn": "0x5", "serial": "S1", "size": 1 << 30, "state": "running"}
_DRIVE |= {"in_flight": 0, "settings": {"queue_depth": "64"}}
_STATE = {"drives": {"0x5": _DRIVE}, "driver": "d", "link": "", "slab_bytes": 1000, "residual": {}}
_DISKS = {"sda": {"id": "0x5", "wwn": "0x5", "claimed": True, "system": "", "errors": {}}}
_DISKS["sda"] |= {"write_sectors_before": 0, "write_sectors_after": 80}


def trial_run(folder: Path, *, damaged: bool = False) -> Path:
    """A published run on two adapters in two arms; with `damaged` the candidate lost a write in every trial."""
    folder.mkdir(parents=True)
    suite = folder / "kept.suite.yml"
    suite.write_text(SUITE, encoding="utf-8")
    request = PlanRequest(
        inventories=(INVENTORY,),
        candidate="stable",
        baseline="stable",
        suite=str(suite),
        adapters=("fusion", "vscsi"),
        seed=5,
    )
    path = plan_campaign(request, folder)
    run = read_run(path)
    files, programs = read_trials(run), read_external(run)
    for session, arm in files.sessions:
        told = {"bench": "vbench", "session": session, "arm": arm, "boot_id": "b", "kernel": "6.1"}
        append_event(path, "session_started", told)
    for planned in files.planned:
        keep_turn(path, kept_trial(run, files, planned, lost=damaged and planned.arm == "candidate"))
    (path / PROGRAMS).mkdir()
    for one in programs.planned:
        named = _kept(path / PROGRAMS, one.id, stream=list(_program(run.name, one)))
        lines = kept_lines(path / PROGRAMS, {"id": one.id, **named}, "stream")
        program = programs.suite.programs[one.program]
        keep_turn(path, {**derive_program(lines, one, program, run=run.name), **named}, "program")
    append_event(path, "restored", {"bench": "vbench"})
    publish(path)
    return path


def kept_trial(run: Run, files: TrialRunFiles, planned: PlannedTrial, *, lost: bool) -> dict[str, Any]:
    """The record of a trial, with its evidence in the run."""
    folder = run.path / FOLDER
    folder.mkdir(exist_ok=True)
    log = _log() if planned.way == LOGGING_WAY else None
    evidence: dict[str, list[Any]] = {"stream": list(_stream(run.name, planned, lost=lost))}
    if log is not None:
        evidence["write_log"] = [entry.to_json() for entry in log]
    named = _kept(folder, planned.id, **evidence)
    lines = kept_lines(folder, {"id": planned.id, **named}, "stream")
    expect = files.suite.trials[planned.number].expect
    return {**derive_trial(lines, planned, expect, run=run.name, log=log), **named}


def _kept(folder: Path, ident: str, **evidence: list[Any]) -> dict[str, str]:
    named = {}
    for what, lines in evidence.items():
        named[what], named[f"{what}_sha256"] = keep_lines(folder / f"{ident}.{what}.jsonl.gz", lines)
    return named


def _log() -> tuple[Logged, ...]:
    """Both writes of the load reached the drive, with a flush after each."""
    return (Logged(0, 0, 4096, (1,)), Logged(1, FLUSH, 0, ()), Logged(2, 0, 4096, (2,)), Logged(3, FLUSH, 0, ()))


def _stream(run: str, planned: PlannedTrial, *, lost: bool) -> Iterator[Mapping[str, Any]]:
    """Two writes of one sector, each flushed, around a fault that leaves its proof."""
    yield {"at": 0, **head_line(run, planned, bench="vbench", tag="0011223344556677", start="2026-11-21T10:00:00Z")}
    yield {"kind": "begin", "at": 0, "node": "/dev/sda", "touched": ["0x5"], "wall": 0}
    yield {"kind": "state", "at": 1, "when": "before", "state": _STATE}
    yield {"kind": "loading", "at": S}
    first = [["w", 1, 4096, 1, S, S + 5, 0], ["f", 0, 0, 0, S + 6, S + 9, 0]]
    second = [["w", 2, 4096, 1, 7 * S, 7 * S + 5, 0], ["f", 0, 0, 0, 7 * S + 6, 7 * S + 9, 0]]
    yield {"kind": "io", "at": 2 * S, "ios": first}
    yield {"kind": "fault", "at": 3 * S, "phase": "begin", "text": planned.way}
    for name in ("inserted", "logged", "removed") if planned.way == LOGGING_WAY else ("command",):
        yield {"kind": "seen", "at": 3 * S + 1, "seen": name, "text": "ended with status 0"}
    yield {"kind": "kernel", "at": 3 * S + 2, "lines": ["[   12.1] sd 2:0:0:0: Power-on or device reset occurred"]}
    yield {"kind": "fault", "at": 3 * S + 3, "phase": "end", "text": planned.way}
    yield {"kind": "io", "at": 8 * S, "ios": second}
    yield {"kind": "state", "at": 9 * S, "when": "after", "state": _STATE}
    for turn in (1, 2):
        runs = [[4096, 1, "good", 1 if lost else 2]]
        yield {"kind": "found", "at": (9 + turn) * S, "turn": turn, "runs": runs, "whole": True}
    yield {"kind": "end", "at": 13 * S, "outcome": "done", "message": "", "ios": 4, "disks": _DISKS, "boot_id": "b"}


def _program(run: str, planned: PlannedExternal) -> Iterator[Mapping[str, Any]]:
    """A program of two tests, of which both arms fail one."""
    yield run_line(run, planned, bench="vbench", boot="b", start="2026-11-21T10:00:00Z")
    yield {"kind": "program", "at": 1, "words": ["a-test", "/dev/sg1"]}
    yield {"kind": "output", "at": 2, "text": "1..2\nok 1 - reads\nnot ok 2 - writes\n"}
    yield {"kind": "ended", "at": 3, "status": 1, "hung": False, "stuck": False, "seconds": 1.0, "cut": 0}
    yield {"kind": "end", "at": 5, "outcome": "done", "message": "", "disks": _DISKS, "boot_id": "b"}
    yield {"kind": "spent", "seconds": 2.5}


def record_of(path: Path) -> dict[str, Any]:
    """A record of a run, parsed."""
    body: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return body
