# SPDX-License-Identifier: Apache-2.0
"""From what a bench told to the record of a trial: one function, when the trial is made and whenever it is judged.

Every line of a trial is kept before anything is made of it, those of the control node (its fault, a bench that went
down) with the others. The first says whose it is. A simulated power cut rests on the log of the drive's writes too:
of that the sectors are kept with the sequences of their writes, for the data are tags, which say nothing more.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.inputs.trials import SECTOR, Expectation, IntegrityLoad
from storqual.robustness.images import Checked, Logged, check_power_cuts
from storqual.robustness.observed import Observed
from storqual.robustness.plan import PlannedTrial
from storqual.robustness.record import judge, record_of
from storqual.run.files import read_bytes, read_packed_lines
from storqual.run.layout import sha256_of
from storqual_core.data.faults import FAULTS, LOGGING_WAY
from storqual_core.kit.errors import StorqualError
from storqual_core.turns.integrity_load import FILL_SECTORS

_CLOCK_SLACK_S = 1.0
"""How far the bench's clock may be from what the control node takes it for, by the delay of lines on their way."""
_STREAM, _WRITE_LOG = "stream", "write_log"
_MOST_BESIDE = 200_000
"""Lines of a stream that are no I/Os: the kernel's, those of faults, of states."""
FOLDERS = {"trial": "trials", "program": "external"}
"""Where the records of each kind of turn are in a run directory, beside their streams."""


def head_line(run: str, planned: PlannedTrial, *, bench: str, tag: str, start: str) -> dict[str, Any]:
    """The first line of a stream: whose it is. `tag` is that of the sectors, `start` an ISO time."""
    return {"kind": "trial", "run": run, "trial": planned.id, "bench": bench, "tag": tag, "start": start}


def derive_trial(
    lines: Iterable[Mapping[str, Any]],
    planned: PlannedTrial,
    expect: Expectation,
    *,
    run: str,
    log: Sequence[Logged] | None,
) -> dict[str, Any]:
    """The record of a trial, but for the names of its evidence; `log` is the drive's log of writes, if there is one.

    Raises KeyError, TypeError or ValueError for lines that are none, or are those of another trial.
    """
    seen = Observed()
    for line in lines:
        seen.take(line)
    whose = {name: seen.head.get(name) for name in ("run", "trial")}
    if whose != {"run": run, "trial": planned.id}:
        raise ValueError(f"found the stream of trial {whose['trial']} of run {whose['run']}")
    tag = str(seen.head["tag"])
    fault = FAULTS[planned.fault]
    way = next(way for way in fault.ways if way.name == planned.way)
    cuts = power_cuts(seen, planned, log) if log is not None and way.name == LOGGING_WAY else None
    verdict = judge(seen, fault, way, expect, cuts)
    record = record_of(seen, verdict, planned.to_json(), start=str(seen.head["start"]), cuts=cuts)
    # as it is when it is read again: JSON has no tuples
    told: dict[str, Any] = json.loads(json.dumps({**record, "bench": str(seen.head["bench"]), "tag": tag}))
    return told


def power_cuts(seen: Observed, planned: PlannedTrial, log: Sequence[Logged]) -> Checked | None:
    """What images of power cuts show that are built from a log; None where it was never inserted."""
    inserted = next((at for at, name, _ in seen.seen if name == "inserted"), None)
    if inserted is None:
        return None
    since = inserted + int(_CLOCK_SLACK_S * 1e9)
    return check_power_cuts(log, seen.oracle, seed=planned.seed, since=since)


def keep_lines(path: Path, lines: Iterable[object]) -> tuple[str, str]:
    """Pack lines of JSON into the file of a piece of evidence; its name and digest."""
    text = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
    return keep_packed(path, text)


def keep_packed(path: Path, text: bytes) -> tuple[str, str]:
    """Pack a text into the file of a piece of evidence; its name and digest."""
    data = gzip.compress(text, mtime=0)
    path.write_bytes(data)
    return path.name, sha256_of(data)


def kept_lines(folder: Path, record: Mapping[str, Any], what: str) -> Iterator[Any]:
    """The lines of a piece of evidence that a record names (`stream`, `write_log`).

    Raises StorqualError for a file that is not there, has another digest, or cannot be unpacked; ValueError for a
    line that is no JSON.
    """
    name, digest = f"{record['id']}.{what}.jsonl.gz", record[f"{what}_sha256"]
    if record[what] != name:
        raise StorqualError(f"found its {what} named {record[what]!r}, expected {name!r}")
    run, kept = folder.parent, f"{folder.name}/{name}"
    try:
        data = read_bytes(run, kept)
    except FileNotFoundError:
        raise StorqualError(f"{kept} is missing") from None
    if sha256_of(data) != digest:
        raise StorqualError(f"{name} is not what the bench told: its digest is another one")
    return read_packed_lines(data, kept)


def held_to_load(lines: Iterable[Mapping[str, Any]], load: IntegrityLoad) -> Iterator[Mapping[str, Any]]:
    """Lines whose I/Os are no longer than those of the load or its fill; a turn reads its region back once at most.

    The oracle keeps each sector: one line of a stream that was made up could else take all memory, or years. Raises
    ValueError for any other.
    """
    most, left = max(max(load.sizes) // SECTOR, FILL_SECTORS), dict[Any, int]()
    beside = 0
    for line in lines:
        beside += line["kind"] != "io"
        if beside > _MOST_BESIDE:
            raise ValueError(f"more than {_MOST_BESIDE} lines that are no I/Os")
        for _, _, _, length, *_ in line["ios"] if line["kind"] == "io" else ():
            if length > most:
                raise ValueError(f"an I/O of {length} sectors, the longest of the load has {most}")
        if line["kind"] == "found":
            turn = line["turn"]
            left[turn] = left.get(turn, load.region // SECTOR) - sum(abs(run[1]) for run in line["runs"])
            if left[turn] < 0:
                raise ValueError("more sectors were read back than the region of the load has")
        yield line


def trial_again(
    folder: Path,
    record: Mapping[str, Any],
    planned: PlannedTrial,
    expect: Expectation,
    *,
    load: IntegrityLoad,
    run: str,
) -> dict[str, Any]:
    """The record that the kept evidence of a trial in `folder` gives. Raises what reading and deriving raise."""
    log = None
    if record.get(_WRITE_LOG) is not None:
        log = [Logged.from_json(line) for line in kept_lines(folder, record, _WRITE_LOG)]
    lines = held_to_load(kept_lines(folder, record, _STREAM), load)
    made = derive_trial(lines, planned, expect, run=run, log=log)
    names = (_STREAM, _WRITE_LOG) if _WRITE_LOG in record else (_STREAM,)
    return {**made, **{key: record[key] for name in names for key in (name, f"{name}_sha256")}}
