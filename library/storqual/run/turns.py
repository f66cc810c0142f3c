# SPDX-License-Identifier: Apache-2.0
"""Turns of a run that are no launches: what was planned, what is recorded of it, and what follows from the records.

No kind is known here by its name: what each record follows from, is checked for and shows says the table of kinds. A
record is derived again from its raw files whenever the run is judged, as a sample is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from storqual.base.files import NoJsonError
from storqual.base.table import Table
from storqual.kinds.kind import COUNTED, Document, FoldedList, Kind, Part, PlannedTurn, Record, RepeatedPair, Section
from storqual.run.collect import read_batch
from storqual.run.events import append_event_locked, iter_events
from storqual.run.files import DAMAGE, damage_sentences, parse_line, read_bytes
from storqual.run.layout import BATCHES, EVENTS, TURNS, dump_json, locked, sha256_of, write_bytes
from storqual.run.recompute import RawFiles, first_difference, short
from storqual.run.records import Check, Event
from storqual.run.run import Run
from storqual_core.kit.errors import StorqualError

__all__ = [
    "COUNTED",
    "Document",
    "FoldedList",
    "Part",
    "PlannedTurn",
    "Record",
    "Section",
    "Table",
    "Turns",
    "turns_of",
]


def _kinds() -> Mapping[str, Kind]:
    from storqual.kinds.registry import KINDS  # noqa: PLC0415 - its exact statistics are slow to import

    return KINDS


class Turns:
    """The turns of a run, read once; nothing is raised for what is damaged: `problems` says what cannot be read.

    `planned` are those of the plan and those added since, each once; `records` those that are sound, in the order in
    which they were made.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.problems: list[str] = []
        self._kinds: set[str] = set()
        self._batches: dict[str, dict[str, PlannedTurn]] = {}
        batches = [name for session in run.sessions for name in session.batches]
        turns = [turn for name in batches for turn in self._batch(name).values()]
        self.planned: tuple[PlannedTurn, ...] = tuple({turn.id: turn for turn in turns}.values())
        self._made = [*self._read()]
        self.records: tuple[Record, ...] = tuple(record for _, _, record in self._made)

    def of_batch(self, name: str) -> tuple[PlannedTurn, ...]:
        return tuple(self._batch(name).values())

    def _batch(self, name: str) -> dict[str, PlannedTurn]:
        if name not in self._batches:
            self._batches[name] = {}
            try:
                batch = read_batch(self._run.path, name)
                self._kinds |= {str(turn["kind"]) for turn in batch["turns"]}
                if batch["spool"] != "durable":
                    turns = [PlannedTurn.of(batch, turn) for turn in batch["turns"]]
                    self._batches[name] = {turn.id: turn for turn in turns if turn.kind in _kinds()}
            except DAMAGE as problem:
                self.problems += self._damage(f"{BATCHES}/{name}.json", problem)
        return self._batches[name]

    def _damage(self, file: str, problem: BaseException) -> list[str]:
        """What was raised while a file of the run was read, as sentences that begin with the file."""
        if isinstance(problem, StorqualError | OSError):
            return damage_sentences(self._run.path, problem)
        return [f"{file}: cannot be read ({problem!r})"]

    def _read(self) -> Iterator[tuple[Event, PlannedTurn, Record]]:
        planned, counted = {turn.id for turn in self.planned}, set[str]()
        for event in self._run.events_of("turn_finished"):
            name = event.text("turn")
            file, turn = f"{TURNS}/{name}.json", self._batch(event.text("block")).get(name)
            if turn is None or name not in planned:
                self.problems.append(f"{file}: is of no planned turn")
                continue
            try:
                record, wrong = self._record(file, turn, event)
            except DAMAGE as problem:
                self.problems += self._damage(file, problem)
                continue
            if name in counted:
                wrong = [*wrong, "is counted a second time in the run's events"]
            counted.add(name)
            self.problems += [f"{file}: {text}" for text in wrong]
            if not wrong:
                yield event, turn, record

    def _record(self, file: str, turn: PlannedTurn, event: Event) -> tuple[Record, list[str]]:
        if not (self._run.path / file).is_file():
            return {}, ["is missing"]
        data = read_bytes(self._run.path, file)
        if sha256_of(data) != event.text("sha256"):
            return {}, ["is not the record that was made"]
        try:
            record = parse_line(data, file)
        except NoJsonError as problem:
            return {}, [f"is no record ({problem})"]
        wrong = [
            f"found {name} {short(record.get(name))}, its batch says {short(value)}"
            for name, value in turn.head().items()
            if record.get(name) != value
        ]
        return record, wrong or list(_kinds()[turn.kind].problems(record))

    def findings(self) -> list[str]:
        """Everything that speaks against the records, a sentence each: they are derived again from raw files."""
        findings = list(self.problems)
        for event, turn, record in self._made:
            findings += _against(self._run.path, turn, record)
            fields = {key: event.fields.get(key) for key in ("outcome", "boot_id")}
            fields |= {"bench": event.bench, "disks": (event.fields.get("end") or {}).get("disks")}
            findings += [
                f"{EVENTS}: {event.kind} of {turn.id}: found {key} {short(value)}, its record says "
                f"{short(record.get(key))}"
                for key, value in fields.items()
                if value != record.get(key)
            ]
        return findings

    def _of_kinds(self) -> Iterator[tuple[Kind, Sequence[PlannedTurn], Sequence[Record]]]:
        for kind in _kinds().values():
            planned = [turn for turn in self.planned if turn.kind == kind.name]
            if planned:
                yield kind, planned, [record for record in self.records if record["kind"] == kind.name]

    @property
    def left(self) -> list[PlannedTurn]:
        """What was planned and not made; nothing of a run that was to end at its first failure, and did."""
        made = {record["id"] for record in self.records}
        failed = any(record.get("outcome") == "failed" for record in self.records)
        ended = failed and self._run.plan.fields.get("until_failure")
        return [] if ended else [turn for turn in self.planned if turn.id not in made]

    def checks(self) -> list[Check]:
        document = self._run.document
        return [
            Check.from_json(fields)
            for kind, planned, records in self._of_kinds()
            for fields in kind.checks(planned, records, document)
        ]

    def repeats(self) -> list[RepeatedPair]:
        """What is undecided and worth more turns; nothing of a run that is to end at its first failure."""
        if self._run.plan.fields.get("until_failure"):
            return []
        return [repeat for kind, planned, records in self._of_kinds() for repeat in kind.repeats(planned, records)]

    def sections(self) -> list[Section]:
        """What a report shows of each kind, with the turns that were cut short and made again."""
        sections = []
        for kind, planned, records in self._of_kinds():
            if kind.show is None:
                continue
            shown = kind.show(planned, records, self._run.document)
            turn_ids = {turn.id for turn in planned}
            again = tuple(
                f"{event.fields['lost']['turn']}: {event.text('message')}"
                for event in self._run.events
                if event.kind == "block_finished" and (event.fields.get("lost") or {}).get("turn") in turn_ids
            )
            parts = (*shown.parts, Part("Interrupted and repeated", sentences=again)) if again else shown.parts
            sections.append(Section(shown.name, shown.title, parts, shown.about, shown.figures, shown.criterion_ids))
        return sections

    def plan(self) -> list[Part]:
        return [part for kind, planned, _ in self._of_kinds() for part in kind.plan(planned, self._run.document)]

    def summary(self) -> list[Part]:
        return [kind.summary(records) for kind, _, records in self._of_kinds() if kind.summary]

    def absent(self) -> list[tuple[str, str]]:
        """What is not tested: kinds of which the run has no turns, and what those that there are did not reach."""
        whole = [kind.absent for name, kind in _kinds().items() if kind.absent and name not in self._kinds]
        return [*whole, *(absence for kind, _, records in self._of_kinds() for absence in kind.unreached(records))]


@lru_cache(maxsize=8)
def turns_of(run: Run) -> Turns:
    return Turns(run)


def _against(run: Path, turn: PlannedTurn, record: Record) -> list[str]:
    """Why a record does not follow from its raw files."""
    file = f"{TURNS}/{turn.id}.json"
    try:
        made = derive_record(run, turn, record.get("raw") or ())
    except DAMAGE as problem:
        reason = str(problem) if isinstance(problem, StorqualError) else repr(problem)
        return [f"{file}: cannot be derived from its raw files ({reason})"]
    wrong = first_difference(made, record)
    return [f"{file}: {wrong}"] if wrong else []


def derive_record(run: Path, turn: PlannedTurn, raw: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The record of a turn that left these raw files: when it is made, and whenever it is judged.

    Raises what reading and deriving raise, and StorqualError for raw files that the record does not follow from.
    """
    files = RawFiles(run, raw)
    made = {**turn.head(), **_kinds()[turn.kind].derive(turn, files), "raw": list(raw)}
    if files.unread:
        raise StorqualError(f"it names {files.unread[0]}, which nothing of it follows from")
    # as it is when it is read again: JSON has no tuples
    record: dict[str, Any] = json.loads(json.dumps(made))
    return record


def keep_record(run: Path, batch: Mapping[str, Any], record: Record, *, ends_session: bool) -> None:
    """Write the record of a turn of a batch, then the event that makes it count.

    Raises StorqualError when there is one already: a turn counts once, whoever else runs batches of the run.
    """
    path = run / TURNS / f"{record['id']}.json"
    with locked(run):
        if any(event.kind == "turn_finished" and event.text("turn") == record["id"] for event in iter_events(run)):
            raise StorqualError(f"{path}: has a record already; another process runs turns of this run")
        data = dump_json(record)
        write_bytes(path, data)
        fields = {name: record[name] for name in ("bench", "outcome", "boot_id")}
        fields |= {"session": batch["session"], "block": batch["block"], "turn": record["id"]}
        # the guard's count of what was written outside the claims rests on the counters that each turn ends with
        fields |= {"turn_kind": record["kind"], "ends_session": ends_session, "end": {"disks": record["disks"]}}
        append_event_locked(run, "turn_finished", {**fields, "sha256": sha256_of(data)})
