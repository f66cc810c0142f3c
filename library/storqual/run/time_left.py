# SPDX-License-Identifier: Apache-2.0
"""How long a campaign still takes on a bench, by what is left of it and by what its parts have taken so far.

The plan says what each part takes on a bench of its kind. A bench that is slower, or faster, shows it in the parts
that are done: what is left of the same kind is taken to be as much slower. How much a campaign that measures until it
is decided will add is not known: it has two figures, without anything more and with the most that it may add.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storqual.base.text import terminal_text
from storqual.run.collect import read_batch
from storqual.run.event_kinds import EVENT_KINDS, Stage
from storqual.run.layout import CHECK_INPUT
from storqual.run.records import Event, planned_session
from storqual.run.run import Run, read_run


@dataclass(frozen=True)
class Effort:
    """Seconds that measuring takes on one bench, and limits.

    `launch_s` is one launch with all that it costs, `block_s` what a block costs beside its launches, `session_s` a
    session beside its batches, `restore_s` putting the bench back at the end. `most` is how many pairs (sessions per
    arm) a point may get, `launches` how many launches it gets in one session, `longest_block_s` and `budget_s` are
    limits (None: none).
    """

    by_session: bool
    launch_s: float
    block_s: float
    session_s: float
    most: int
    launches: int
    longest_block_s: float
    budget_s: float | None = None
    restore_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The entry of `plan.effort`."""
        return asdict(self)

    def unit_seconds(self, points: int = 1) -> float:
        """Seconds of one more pair (one more session of each arm) at so many points."""
        if self.by_session:
            return 2 * (self.session_s + self.block_s + points * self.launches * self.launch_s)
        return 2 * points * self.launch_s


def effort_of(run: Run, bench: str) -> Effort | None:
    """What the plan says of `bench`; None for a run that was planned without."""
    entry = (run.plan.fields.get("effort") or {}).get(bench)
    return None if entry is None else Effort(**entry)


def bench_seconds(events: Iterable[Event], bench: str) -> float:
    """How long the campaign has had the bench, in seconds, from its first event there.

    The time between an interruption and the `resumed` that ends it is nobody's: it is not counted.
    """
    used = 0.0
    before: datetime | None = None
    for event in events:
        if event.bench not in (bench, None) or EVENT_KINDS[event.kind].stage is Stage.ANY:
            # a note that somebody writes next week is no use of the bench
            continue
        moment = datetime.fromisoformat(event.time)
        if before is not None and EVENT_KINDS[event.kind].stage is not Stage.OPENING:
            used += max((moment - before).total_seconds(), 0.0)
        if before is not None or event.bench == bench:
            before = moment
    return used


_START_S = 0.5
"""Starting and collecting a fio process, beside its ramp and runtime."""
_SEARCH = 10
"""Launches of a search for a latency cap, usually."""
_TRIAL_S = 6.0
_END_S = 12.0
_CHECK_S = 3.0
"""Running the checks, judging and publishing, and what each file of a user's own checks adds to it."""
_FIRST = ("installing packages", "the first configuration")
_PRECONDITIONING = "preconditioning"
_PRIOR_S = 20.0
"""Seconds of the plan that weigh as much as seconds that were seen: a few launches alone show no pace."""
_OVERDUE = 0.25
"""What has taken longer than expected is expected to take this share of its time more."""


@dataclass(frozen=True)
class Left:
    """Seconds until a bench is restored and the run published: `most` is None where nobody can say."""

    least: float
    most: float | None

    def __str__(self) -> str:
        """`about 12 min left`, `at least 4 min left, at most 25 min`."""
        if self.most is None:
            return f"at least {_rounded(self.least)} left"
        if self.most - self.least < 1.0:
            return f"about {_rounded(self.least)} left"
        return f"at least {_rounded(self.least)} left, at most {_rounded(self.most)}"


def _rounded(seconds: float) -> str:
    """A time as precise as an estimate is: `35 s`, `4 min`, `2 h 20 min`."""
    if seconds < 90:
        return f"{max(5 * round(seconds / 5), 5)} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h {10 * (minutes % 60 // 10)} min"


@dataclass
class _Pace:
    """How much longer than planned parts of one kind take."""

    planned: float = 0.0
    spent: float = 0.0

    def add(self, planned: float, spent: float) -> None:
        self.planned += planned
        self.spent += spent

    def factor(self, planned: float = 0.0, spent: float = 0.0) -> float:
        return (_PRIOR_S + self.spent + spent) / (_PRIOR_S + self.planned + planned)


def _now() -> datetime:
    return datetime.now(UTC)


class TimeLeft:
    """What is left on `bench` as its run is now; a `batch` that is named has begun."""

    def __init__(self, path: Path, bench: str, batch: str = "", now: Callable[[], datetime] = _now) -> None:
        run = read_run(path)
        self._bench = bench
        self._now = now
        self._effort = effort_of(run, bench)
        self._batch = batch
        self._since = now()
        self._launching = False
        self._measuring, self._setting_up = _Pace(), _Pace()
        self._of_batch = self._setup_s = self._measure_s = self._more_s = 0.0
        self._turns: Mapping[str, float] = {}
        self._open_end = False
        self._own_checks = sum(name.startswith(CHECK_INPUT) for name in run.document.get("inputs") or {})
        if self._effort is not None:
            self._read(run, bench, self._effort)

    def _read(self, run: Run, bench: str, effort: Effort) -> None:
        lines = {
            line["what"]: float(line["seconds"]) for line in (run.plan.fields.get("bench_time") or {}).get(bench, ())
        }
        trials = {
            str(turn["id"]): float(turn["load_s"]) + float(turn["away_s"])
            for turn in run.plan.fields.get("trials", ())
        }
        sessions = [session for session in run.sessions if session.bench == bench]
        events = [event for event in run.events if event.bench in (bench, None)]
        added = [event for event in events if event.kind == "block_planned"]
        names = [batch for session in sessions for batch in session.batches]
        names += [event.text("block") for event in added]
        batches = {name: read_batch(run.path, name) for name in dict.fromkeys([*names, *filter(None, [self._batch])])}
        planned = {}
        for name, batch in batches.items():
            turns = {str(turn["id"]): _turn_s(turn, trials) for turn in batch["turns"]}
            first = lines.get(_PRECONDITIONING, 0.0) if "precondition" in batch else 0.0
            planned[name] = effort.block_s + first + sum(turns.values())
            if name == self._batch:
                self._turns = turns
        self._open_end = any(turn["kind"] == "program" for batch in batches.values() for turn in batch["turns"])
        first_s = effort.session_s + sum(lines.get(what, 0.0) for what in _FIRST)
        done, whole, started = self._take_events(events, effort, batches, planned, first_s)
        self._of_batch = planned.get(self._batch, 0.0)
        here = {_key(batches[self._batch], turn) for turn in batches[self._batch]["turns"]} if self._batch else set()
        lost = done != whole or any(event.kind == "session_lost" for event in events)
        # what was cut off is measured in a batch of another name: what counts then is which launches are missing
        share = {
            name: 1.0 if not lost else _missing(batches[name], run, here)
            for name in names
            if name not in whole and name != self._batch
        }
        self._measure_s = sum(part * planned[name] for name, part in share.items())
        due = [session for session in sessions if any(share.get(batch) for batch in session.batches)]
        fresh = [session for session in due if session.id not in started]
        again = len(due) > len(fresh) and lost and "." not in self._batch
        self._setup_s = (len(fresh) + again) * effort.session_s
        if fresh and not started:
            self._setup_s += first_s - effort.session_s
        if run.plan.fields.get("looks") == "every":
            self._more_s = _most_more(run, bench, effort, self._measure_s + self._of_batch + self._setup_s)

    def _take_events(
        self,
        events: list[Event],
        effort: Effort,
        batches: Mapping[str, Mapping[str, Any]],
        planned: Mapping[str, float],
        first_s: float,
    ) -> tuple[set[str], set[str], set[str]]:
        """Batches that ended, those that ended as planned, and sessions that began; their time goes to the paces."""
        done: set[str] = set()
        whole: set[str] = set()
        started: set[str] = set()
        began: dict[str, datetime] = {}
        free: datetime | None = None
        for event in events:
            moment, batch = datetime.fromisoformat(event.time), event.text("block")
            if event.kind in ("environment", "resumed"):
                free = moment
            elif event.kind == "session_started":
                if free is not None:
                    took = (moment - free).total_seconds()
                    if len(started) == 1:
                        # the first one had packages to install; those that follow are like what is left
                        self._setting_up = _Pace()
                    self._setting_up.add(effort.session_s if started else first_s, took)
                started.add(planned_session(event.text("session")))
            elif event.kind == "block_started":
                began[batch] = moment
            elif event.kind == "block_finished":
                free = moment
                done.add(batch)
                if event.text("outcome") != "done":
                    continue
                whole.add(batch)
                if batch in began and batch in planned and "precondition" not in batches[batch]:
                    self._measuring.add(planned[batch], (moment - began[batch]).total_seconds())
        if self._batch in began:
            self._since = began[self._batch]
        return done, whole, started

    def left(self, of_batch: float | None = None) -> Left:
        """From now on; `of_batch` is what the batch under way still takes by the plan, None where it does not say."""
        if self._effort is None:
            return Left(_END_S, None)
        passed = (self._now() - self._since).total_seconds() if self._batch else 0.0
        here, planned, spent = 0.0, 0.0, 0.0
        if self._batch and of_batch is None:
            here = max(self._of_batch - passed, _OVERDUE * passed)
        elif self._batch and of_batch is not None:
            if not self._launching and passed > self._of_batch - of_batch + _PRIOR_S:
                # drives were preconditioned first, or it was under way before: its pace counts from here
                self._since, self._of_batch, passed = self._now(), of_batch, 0.0
            self._launching = True
            here = of_batch
            planned, spent = max(self._of_batch - of_batch, 0.0), passed
        measuring = self._measuring.factor(planned, spent)
        setting_up = self._setting_up.factor()
        setup_s = self._setup_s + self._effort.restore_s
        least = measuring * (here + self._measure_s) + setting_up * setup_s + self._end_s()
        most = least + max(measuring, setting_up, 1.0) * self._more_s
        return Left(least, None if self._open_end else most)

    def _end_s(self) -> float:
        """What comes when the bench is restored, on a machine that is as busy as it was when sessions were set up."""
        return float(max(self._setting_up.factor(), 1.0) * (_END_S + _CHECK_S * self._own_checks))

    def after(self, turns: Iterable[str]) -> Left:
        """When of the batch under way these turns are still to come."""
        return self.left(sum(self._turns.get(turn, 0.0) for turn in turns))

    def line(self, what: str, *, over: bool = False) -> str:
        """A line on a bench that is not measuring: `b1 | session s1 is prepared | about 12 min left`.

        `over`: nothing more is measured there.
        """
        time_left = self.left()
        if over and self._effort is not None:
            seconds = self._setting_up.factor() * self._effort.restore_s + self._end_s()
            time_left = Left(seconds, seconds)
        return terminal_text(f"{self._bench} | {what} | {time_left}")


def _key(batch: Mapping[str, Any], turn: Mapping[str, Any]) -> tuple[object, ...]:
    """A launch as `Run.measured` has it; another turn by its id."""
    if turn["kind"] != "launch":
        return (turn["id"],)
    return (batch["bench"], turn["adapter"], turn["point"], turn["arm"], turn["n"])


def _missing(batch: Mapping[str, Any], run: Run, here: Collection[tuple[object, ...]]) -> float:
    """The share of a batch's turns that has no record, and is not of the batch that runs."""
    keys = [_key(batch, turn) for turn in batch["turns"]]
    lacking = [key for key in keys if key not in run.measured and key[0] not in run.recorded and key not in here]
    return len(lacking) / max(len(keys), 1)


def _turn_s(turn: Mapping[str, Any], trials: Mapping[str, float]) -> float:
    """Seconds that a turn takes by its plan; how long a program takes is not known."""
    if turn["kind"] == "launch":
        fio = turn["request"]["fio"]
        launch_s = float(fio["ramp_s"]) + float(fio["runtime_s"]) + _START_S
        return launch_s * (_SEARCH if "load" in turn["request"] else 1)
    return trials.get(str(turn["id"]), 0.0) + _TRIAL_S if turn["kind"] == "trial" else 0.0


def _most_more(run: Run, bench: str, effort: Effort, planned_s: float) -> float:
    """Seconds that a campaign which measures until decided may add at most to what is planned so far."""
    if effort.budget_s is not None:
        return max(effort.budget_s - bench_seconds(run.events, bench) - planned_s, 0.0)
    points = sum(point.bench == bench and not point.skipped for point in run.plan.points)
    # as many units as a point may have, and as many again where every point fails and is confirmed
    units = 2 * effort.most
    batches = effort.block_s * units * (1 if effort.by_session else points)
    whole = units * effort.unit_seconds(points) + batches + effort.session_s
    return max(whole - planned_s - _measured_s(run, bench, effort), 0.0)


def _measured_s(run: Run, bench: str, effort: Effort) -> float:
    """Seconds by the plan of what is measured."""
    return effort.launch_s * sum(launch[0] == bench for launch in run.measured)
