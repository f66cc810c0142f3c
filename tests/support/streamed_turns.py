# SPDX-License-Identifier: Apache-2.0
"""Trials and programs as a bench would tell of them: raw files in a run, and the records that follow from these."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from storqual.kinds.images import FLUSH, Logged
from storqual.kinds.kind import PlannedTurn
from storqual.kinds.program import OUTPUT, run_line
from storqual.kinds.trial import STREAM, WRITES, head_line
from storqual.run import read_batch
from storqual.run.collect import finish_streamed, keep_raw
from storqual.run.turns import derive_record, keep_record
from storqual_core.data.faults import LOGGING_WAY

S = 1_000_000_000
_DRIVE = {"name": "sda", "hctl": "2:0:0:0", "wwn": "0x5", "serial": "S1", "size": 1 << 30, "state": "running"}
_DRIVE |= {"in_flight": 0, "settings": {"queue_depth": "64"}}
_STATE = {"drives": {"0x5": _DRIVE}, "driver": "d", "link": "", "slab_bytes": 1000, "residual": {}}
_DISKS = {"sda": {"id": "0x5", "wwn": "0x5", "claimed": True, "system": "", "errors": {}}}
_DISKS["sda"] |= {"write_sectors_before": 0, "write_sectors_after": 80}


def run_streamed(path: Path, name: str) -> bool:
    """Run a streamed batch that was started: each of its turns leaves what it would. False for a durable one."""
    batch = read_batch(path, name)
    if batch["spool"] == "durable":
        return False
    for turn in batch["turns"]:
        keep_record(path, batch, made_record(path, PlannedTurn.of(batch, turn)), ends_session=False)
    finish_streamed(path, batch, "done", "")
    return True


def made_record(path: Path, turn: PlannedTurn, *, lost: bool = False) -> dict[str, Any]:
    raw: dict[str, Iterable[object]] = {OUTPUT: _program(turn)}
    if turn.kind == "trial":
        raw = {STREAM: _stream(turn, lost=lost)}
        if turn.request["way"] == LOGGING_WAY:
            raw[WRITES] = [entry.to_json() for entry in _log()]
    kept = [
        keep_raw(path, b"".join(json.dumps(line).encode() + b"\n" for line in lines), f"{what}.jsonl.gz")
        for what, lines in raw.items()
    ]
    return derive_record(path, turn, kept)


def _log() -> tuple[Logged, ...]:
    """Both writes of the load reached the drive, with a flush after each."""
    return (Logged(0, 0, 4096, (1,)), Logged(1, FLUSH, 0, ()), Logged(2, 0, 4096, (2,)), Logged(3, FLUSH, 0, ()))


def _stream(turn: PlannedTurn, *, lost: bool) -> Iterator[Mapping[str, Any]]:
    yield {"at": 0, **head_line(turn, tag="0011223344556677", start="2026-11-21T10:00:00Z")}
    yield {"kind": "begin", "at": 0, "node": "/dev/sda", "touched": ["0x5"], "wall": 0}
    yield {"kind": "state", "at": 1, "when": "before", "state": _STATE}
    yield {"kind": "loading", "at": S}
    first = [["w", 1, 4096, 1, S, S + 5, 0], ["f", 0, 0, 0, S + 6, S + 9, 0]]
    second = [["w", 2, 4096, 1, 7 * S, 7 * S + 5, 0], ["f", 0, 0, 0, 7 * S + 6, 7 * S + 9, 0]]
    yield {"kind": "io", "at": 2 * S, "ios": first}
    yield {"kind": "fault", "at": 3 * S, "phase": "begin", "text": turn.request["way"]}
    for name in ("inserted", "logged", "removed") if turn.request["way"] == LOGGING_WAY else ("command",):
        yield {"kind": "seen", "at": 3 * S + 1, "seen": name, "text": "ended with status 0"}
    yield {"kind": "kernel", "at": 3 * S + 2, "lines": ["[   12.1] sd 2:0:0:0: Power-on or device reset occurred"]}
    yield {"kind": "fault", "at": 3 * S + 3, "phase": "end", "text": turn.request["way"]}
    yield {"kind": "io", "at": 8 * S, "ios": second}
    yield {"kind": "state", "at": 9 * S, "when": "after", "state": _STATE}
    for reading in (1, 2):
        runs = [[4096, 1, "good", 1 if lost else 2]]
        yield {"kind": "found", "at": (9 + reading) * S, "turn": reading, "runs": runs, "whole": True}
    yield {"kind": "end", "at": 13 * S, "outcome": "done", "message": "", "ios": 4, "disks": _DISKS, "boot_id": "b"}


def _program(turn: PlannedTurn) -> Iterator[Mapping[str, Any]]:
    yield run_line(turn, boot="b", start="2026-11-21T10:00:00Z")
    yield {"kind": "program", "at": 1, "words": ["a-test", "/dev/sg1"]}
    yield {"kind": "output", "at": 2, "text": "1..2\nok 1 - reads\nnot ok 2 - writes\n"}
    yield {"kind": "ended", "at": 3, "status": 1, "hung": False, "stuck": False, "seconds": 1.0, "cut": 0}
    yield {"kind": "end", "at": 5, "outcome": "done", "message": "", "disks": _DISKS, "boot_id": "b"}
    yield {"kind": "spent", "seconds": 2.5}
