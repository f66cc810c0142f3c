# SPDX-License-Identifier: Apache-2.0
"""Runs of foreign programs: planned, made of what a bench told, and kept in the run directory.

They are planned in run.json, kept in `external/` and told in the events; a drive is the same in both arms. What a
bench told becomes a record by one function, when a program is run and whenever it is judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from storqual.inputs import Suite, load_suite
from storqual.inputs.trials import Program
from storqual.robustness.derived import FOLDERS, kept_lines
from storqual.robustness.output.formats import read_output
from storqual.run import Run, sha256_of
from storqual.run.files import parse_line, read_bytes
from storqual_core.kit.errors import StorqualError


@dataclass(frozen=True)
class PlannedExternal:
    """One run of a program. `id` names it everywhere; `number` is the same for the runs of both arms."""

    id: str
    session: str
    arm: str
    adapter: str
    drive: str
    program: str
    number: int

    def to_json(self) -> dict[str, Any]:
        """The entry of `plan.external` in run.json."""
        return asdict(self)

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> PlannedExternal:
        """Read one entry. Raises TypeError."""
        return cls(**line)


FOLDER = FOLDERS["program"]


@dataclass(frozen=True)
class ExternalFiles:
    """The foreign programs of a run: its suite, all that is planned, and the records of what was run, in order."""

    suite: Suite
    planned: tuple[PlannedExternal, ...]
    sessions: tuple[tuple[str, str], ...]
    records: tuple[Mapping[str, Any], ...]


def read_external(run: Run) -> ExternalFiles:
    """The programs of a run, none for one without. Raises StorqualError for a record that was changed."""
    plan = run.document["plan"]
    planned = tuple(PlannedExternal.from_json(line) for line in plan.get("external") or ())
    records = {}
    for event in run.events:
        if event.kind == "turn_finished" and event.text("turn_kind") == "program":
            ident = event.text("turn")
            path = run.path / FOLDER / f"{ident}.json"
            data = read_bytes(run.path, f"{FOLDER}/{path.name}") if path.is_file() else b""
            if sha256_of(data) != event.text("sha256"):
                raise StorqualError(f"{path}: is not the record that the run's events tell of; the run is damaged")
            records[ident] = parse_line(data, f"{FOLDER}/.json")
    return ExternalFiles(
        suite=load_suite(run.input_file("suite")),
        planned=planned,
        sessions=tuple((session["id"], session["arm"]) for session in plan["sessions"]),
        records=tuple(records.values()),
    )


_MOST_UNREAD = 100
_MOST_NOTED = 50


@dataclass
class Told:
    """What was told of one run of a program: by the bench, and by the control node before and after."""

    head: Mapping[str, Any] = field(default_factory=dict)
    output: list[str] = field(default_factory=list)
    report: str | None = None
    ended: Mapping[str, Any] | None = None
    end: tuple[str, str] | None = None
    stuck: str = ""
    recovered: str = ""
    notes: list[str] = field(default_factory=list)
    kernel: list[str] = field(default_factory=list)
    disks: Mapping[str, Any] = field(default_factory=dict)
    boot_id: str = ""
    words: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def take(self, line: Mapping[str, Any]) -> None:
        """One line of the stream; the stream itself is kept whole. Raises KeyError, TypeError or ValueError."""
        kind = line["kind"]
        if kind == "run":
            if self.head:
                raise ValueError("a stream that says a second time whose it is")
            self.head = line
        elif kind == "output":
            self.output.append(str(line["text"]))
        elif kind == "report":
            self.report = str(line["text"])
            self.notes += [str(line["problem"])] if line["problem"] else []
        elif kind == "ended":
            self.ended = line
        elif kind == "end":
            self.end = (str(line["outcome"]), str(line["message"]))
            self.disks, self.boot_id = line.get("disks") or {}, str(line.get("boot_id") or "")
        elif kind in ("stuck", "recovered"):
            setattr(self, kind, str(line["text"]))
        elif kind == "seen":
            self.notes.append(f"{line['seen']}: {line['text']}")
        elif kind == "kernel":
            self.kernel = [str(text) for text in line["lines"]]
        elif kind == "program":
            self.words = [str(word) for word in line["words"]]
        elif kind == "spent":
            self.seconds = float(line["seconds"])


def run_line(run: str, planned: PlannedExternal, *, bench: str, boot: str, start: str) -> dict[str, Any]:
    """The first line of a stream: whose it is. `boot` is the bench's boot id, `start` an ISO time."""
    return {"kind": "run", "run": run, "program": planned.id, "bench": bench, "boot": boot, "start": start}


def derive_program(
    lines: Iterable[Mapping[str, Any]], planned: PlannedExternal, program: Program, *, run: str
) -> dict[str, Any]:
    """The record of one run of a program, but for the names of its evidence.

    Raises KeyError, TypeError or ValueError for lines that are none, or are those of another run.
    """
    seen = Told()
    for line in lines:
        seen.take(line)
    whose = {name: seen.head.get(name) for name in ("run", "program")}
    if whose != {"run": run, "program": planned.id}:
        raise ValueError(f"found the stream of {whose['program']} of run {whose['run']}")
    ended = seen.ended or {}
    hung = bool(ended.get("hung")) or (seen.end is None and bool(seen.words))
    reasons = []
    if seen.end is not None and seen.end[0] != "done":
        reasons.append(f"it could not be run: {seen.end[1]}")
    elif not seen.words:
        reasons.append("it never began")
    text = "".join(seen.output) if program.report is None else (seen.report or "")
    found = read_output(program.reads, text, status=ended.get("status"), hung=hung)
    void = bool(reasons) and not hung
    problems = [*found.problems, *([f"{ended['cut']} bytes of output were cut off"] if ended.get("cut") else [])]
    record = {
        **planned.to_json(),
        "bench": str(seen.head["bench"]),
        "start": str(seen.head["start"]),
        "seconds": seen.seconds,
        "words": seen.words,
        "status": ended.get("status"),
        "outcome": "void" if void else "hung" if hung else "ended",
        "reasons": reasons,
        "tests": [] if void else [[one.name, one.outcome, one.text] for one in found.tests],
        "problems": [] if void else problems,
        "unread": list(found.unread[:_MOST_UNREAD]),
        "unread_lines": len(found.unread),
        "recovered": seen.recovered,
        "notes": seen.notes[:_MOST_NOTED],
        "kernel": seen.kernel[-_MOST_NOTED:],
        "disks": seen.disks,
        "boot_id": seen.boot_id or str(seen.head["boot"]),
    }
    # as it is when it is read again: JSON has no tuples
    told: dict[str, Any] = json.loads(json.dumps(record))
    return told


def program_again(
    folder: Path, record: Mapping[str, Any], planned: PlannedExternal, program: Program, *, run: str
) -> dict[str, Any]:
    """The record that the kept stream of a program in `folder` gives. Raises what reading and deriving raise."""
    made = derive_program(kept_lines(folder, record, "stream"), planned, program, run=run)
    return {**made, **{name: record[name] for name in ("stream", "stream_sha256")}}
