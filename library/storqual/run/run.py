# SPDX-License-Identifier: Apache-2.0
"""A run directory as a reader sees it: judge, report, plugins and `next` use this and nothing below it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from storqual.base.files import OddFileError
from storqual.run.closing import Period, periods_of
from storqual.run.event_kinds import FINISHED
from storqual.run.events import iter_checks, iter_events
from storqual.run.files import file_digest, open_file
from storqual.run.layout import INPUTS, RUN_FILE, read_run_json
from storqual.run.records import (
    Arm,
    Check,
    Event,
    Plan,
    PlannedPoint,
    PlannedSession,
    PointIndex,
    Preconditioned,
    Sample,
    SuiteRef,
    read_launches,
    read_samples,
)
from storqual_core.kit.errors import BadInputError, StorqualError


class Run:
    """One campaign's files. `document` is run.json; samples, checks and events are read when first asked for."""

    def __init__(self, path: Path) -> None:
        # not resolved: whoever holds the folder open reads it by a path that no name can be exchanged under
        self.path = path.absolute()
        self.document: Mapping[str, Any] = read_run_json(path)
        try:
            self.name = str(self.document["run"])
            self.schema = str(self.document["schema"])
            self.plan = Plan.from_json(self.document["plan"])
            suite = self.document["suite"]
            self.suite = SuiteRef(suite["name"], suite["profile"], self.path / suite["file"], suite["sha256"])
            self.arms: Mapping[str, Arm] = {
                name: Arm(name, arm["drop"], arm["file"], arm["sha256"], arm.get("manifest") or {})
                for name, arm in self.document["arms"].items()
            }
            self.benches: Mapping[str, Any] = dict(self.document["benches"])
            # each of these is there for every reader
            _ = self.arms["candidate"], [self.benches[point.bench] for point in self.plan.points]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
            raise StorqualError(
                f"{path / 'run.json'}: the plan is not complete ({problem!r}); the run directory is damaged"
            ) from None

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def samples(self) -> Iterator[Sample]:
        """All samples in the order they came in, one by one. Raises StorqualError for a damaged file."""
        return read_samples(self.path)

    def samples_at(self, point: PlannedPoint) -> Iterator[Sample]:
        """The samples at a point in the order they came in; the lines of other points are not parsed."""
        return self._by_point.samples(point.key)

    @cached_property
    def _by_point(self) -> PointIndex:
        return PointIndex(self.path)

    @property
    def is_identical(self) -> bool:
        """Whether both drops declare the same on every bench."""
        designs = (self.plan.fields.get("designs") or {}).values()
        return "baseline" in self.arms and bool(designs) and all(design.get("identical") for design in designs)

    @cached_property
    def measured(self) -> frozenset[tuple[str, str, str, str, int]]:
        """Bench, adapter, point, arm and number of each launch that has a sample."""
        return frozenset((*launch.key, launch.arm, launch.n) for launch in read_launches(self.path))

    @cached_property
    def recorded(self) -> frozenset[str]:
        """The ids of trials and programs that have a record."""
        return frozenset(event.text("turn") for event in self.events_of("turn_finished"))

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Outcomes of hand-written tests, in order."""
        return tuple(iter_checks(self.path))

    @cached_property
    def events(self) -> tuple[Event, ...]:
        return tuple(iter_events(self.path))

    def events_of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]

    @cached_property
    def periods(self) -> tuple[Period, ...]:
        """The campaign in the stretches in which the run was open."""
        return periods_of(self.events)

    @cached_property
    def measuring(self) -> frozenset[int]:
        """The lines of events that ended a batch, a trial or a program with something newly measured.

        Of a batch these are launches that ran, behind those over which the run was closed before.
        """
        launches = [(launch.block, launch.status) for launch in read_launches(self.path)]
        lines, begin = set(), 0
        for period in self.periods:
            end = period.count("samples")
            ran = {batch for batch, status in launches[begin:end] if status != "lost"}
            lines |= {
                event.number
                for event in period.events
                if event.kind in FINISHED and (event.kind != "block_finished" or event.text("block") in ran)
            }
            begin = len(launches) if end is None else end
        return frozenset(lines)

    @cached_property
    def sessions(self) -> tuple[PlannedSession, ...]:
        """The sessions of the plan, then those that were found worth measuring since."""
        added = [PlannedSession.from_json(event.fields["plan"]) for event in self.events_of("session_planned")]
        return (*self.plan.sessions, *added)

    @cached_property
    def preconditioned(self) -> tuple[Preconditioned, ...]:
        """What was done to drives before they were measured, in order."""
        done = ((event, event.fields.get("preconditioned")) for event in self.events_of("block_finished"))
        return tuple(Preconditioned(e.bench or "", e.text("block"), report) for e, report in done if report)

    @cached_property
    def points(self) -> Mapping[tuple[str, str, str], PlannedPoint]:
        return {point.key: point for point in self.plan.points}

    def input_file(self, name: str) -> Path:
        """The copy of an input in this directory: suite, gate, baseline, candidate, inventory, history.

        Raises BadInputError when the run was planned without it, or its file is no plain one in inputs/.
        """
        entry = (self.document.get("inputs") or {}).get(name)
        if entry is None:
            raise BadInputError([f"{self.path}: this run has no input {name!r} in this run"])
        return self._input(name, str(entry["file"]))

    def _input(self, name: str, file: str) -> Path:
        """An input by its file; one that lies elsewhere is never opened: a message would quote what it holds."""
        odd = ""
        try:
            if file.startswith(f"{INPUTS}/"):
                with suppress(FileNotFoundError):
                    os.close(open_file(self.path, file))
                return self.path / file
        except OddFileError as problem:
            odd = f" ({problem})"
        reason = f"inputs.{name}.file is no file in {INPUTS}/ of this run, so it is not read{odd}"
        raise BadInputError([f"{self.path / RUN_FILE}: {reason}"])

    def verify_inputs(self) -> list[str]:
        """Problems with the copies in inputs/: each is missing or has another digest than at plan time."""
        problems = []
        for name, entry in (self.document.get("inputs") or {}).items():
            try:
                path = self._input(name, str(entry["file"]))
            except BadInputError as problem:
                problems += problem.problems
                continue
            digest = file_digest(self.path, str(entry["file"])) if path.is_file() else "no file"
            if digest != entry["sha256"]:
                problems.append(f"{path}: found {digest}, expected the {name} as planned ({entry['sha256']})")
        return problems


def read_run(path: Path) -> Run:
    """Open a run directory. Raises BadInputError when there is none, StorqualError when it is damaged."""
    return Run(Path(path))
