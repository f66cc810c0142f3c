# SPDX-License-Identifier: Apache-2.0
"""A streamed batch: each of its turns that has no record, one after the other, with what a bench needs around it."""

import fcntl
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storqual.bench.follow import ConnectionLostError
from storqual.run import Run, append_event, iter_events, read_batch, read_run
from storqual.run.collect import finish_streamed
from storqual.run.layout import BATCHES, TURNS
from storqual.run.time_left import TimeLeft
from storqual.run.turns import keep_record
from storqual.turns.bring_back import BenchHere, Hung, bring_back, ensure_answer
from storqual.turns.live_trial import LiveTrial
from storqual.turns.live_turn import LiveProgram, TurnLostError
from storqual.turns.needed_packages import install_package
from storqual.turns.paths import make_maps, paths_of
from storqual.turns.settle import settle
from storqual.virtual_bench.power import reset
from storqual_core.data.faults import WAYS
from storqual_core.kit.lease import OutOfServiceError

_BROKEN = ("hung", "panic", "bench down", "not recovered", "drive missing")
"""What the reasons of a trial begin with that leaves a bench on which nothing more can be tried."""
_HUNG = ("hung", "panic")
"""Likewise, of a trial whose bench hangs, or has hung."""
_RESETS, _LOSSES = 1, 4
"""How often a bench may be found on another boot in one trial, and how often one may be cut short in all."""
_INTERRUPTED = "the campaign was interrupted in it"


def run_streamed(path: Path, batch: str, bench: BenchHere, *, say: Callable[[str], None]) -> tuple[str, str]:
    """Run what is left of a batch; how it ended, `done` or `lost`, and why.

    A turn counts when its record is told in the events. One that was under way when its campaign was killed, the
    bench was reset or its connection lost is made again in another session, after the bench was set up again, and its
    earlier stream is not counted. What is cut short too often is judged as it is. One process runs batches of a
    bench at a time. Raises ConnectionLostError when the bench does not answer, OutOfServiceError when nothing brought
    it back, ToolError when a package cannot be installed.
    """
    with _alone(path, bench.name, say):
        run = read_run(path)
        known = {event.kind for event in run.events if event.text("block") == batch}
        if "block_finished" in known:
            # another process was as far
            return "done", ""
        planned = read_batch(path, batch)
        fields = {"bench": bench.name, "session": planned["session"], "block": batch}
        if "block_started" in known:
            settle(bench.connection, bench.state_dir, bench.virtual, say=say)
            return finish_streamed(path, planned, "lost", _INTERRUPTED, {"interrupted": True})
        append_event(path, "block_started", fields)
        # what a panic wrote before anybody noticed that the bench is gone is seen from here on
        answers, console = True, bench.console_mark()
        try:
            return _turns(path, run, planned, bench, say)
        except OutOfServiceError:
            answers = False
            raise
        finally:
            # whatever is next, on this batch's bench nothing is left of it
            if answers:
                ensure_answer(path, bench, console_mark=console, say=say)
                settle(bench.connection, bench.state_dir, bench.virtual, say=say)


def _turns(
    path: Path, run: Run, planned: Mapping[str, Any], bench: BenchHere, say: Callable[[str], None]
) -> tuple[str, str]:
    """Each turn without a record, in its order."""
    arm = planned["turns"][0]["arm"]
    shared = paths_of(run.benches[bench.name]["adapters"])
    if shared and (note := make_maps(bench.connection, shared, bench.state_dir, virtual=bench.virtual is not None)):
        append_event(path, "note", {"bench": bench.name, "text": f"{note} on {bench.name}"})
    left = [turn for turn in planned["turns"] if turn["id"] not in run.recorded]
    time_left = TimeLeft(path, bench.name, planned["block"])
    for number, turn in enumerate(left, start=1):
        make = _trial if turn["kind"] == "trial" else _program
        try:
            record, ends_session, summary = make(run, planned, turn, bench)
            if record["outcome"] == "void":
                # its program may have been ended by who has the bench now, and makes this turn again
                bench.connection.run("true")
        except (TurnLostError, ConnectionLostError) as problem:
            if not _may_be_lost(run, turn["id"]):
                raise
            say(f"{bench.name} {arm} | {turn['id']} was interrupted and is repeated: {problem}")
            lost = {"turn": turn["id"], "rebooted": isinstance(problem, TurnLostError) and problem.rebooted}
            return finish_streamed(path, planned, "lost", str(problem), {"lost": lost})
        keep_record(path, planned, record, ends_session=ends_session)
        rest = time_left.after(str(other["id"]) for other in left[number:])
        say(f"{bench.name} {arm} | {turn['kind']} {turn['id']} | {summary} | {rest}")
        if ends_session and turn is not left[-1]:
            return finish_streamed(path, planned, "lost", f"after {turn['id']} the bench is set up again")
    return finish_streamed(path, planned, "done", "")


def _trial(
    run: Run, batch: Mapping[str, Any], turn: Mapping[str, Any], bench: BenchHere
) -> tuple[dict[str, Any], bool, str]:
    """The record of a trial, whether the bench must be set up again after it, and a sentence."""
    again = _may_be_lost(run, turn["id"])
    boot, console = bench.connection.boot_id(), bench.console_mark()
    record = LiveTrial(run.path, bench, batch, turn, boot=boot, again=again).run()
    begins = [reason.partition(": ")[0] for reason in record["reasons"]]
    broken = any(begin in _BROKEN for begin in begins)
    hung = next((reason for begin, reason in zip(begins, record["reasons"], strict=True) if begin in _HUNG), "")
    if hung and not _was_ended(run.path, turn["id"]):
        bring_back(run.path, bench, Hung.of(batch, turn), boot=boot, hangs=True, reason=hung, console_mark=console)
    elif broken and not hung and bench.virtual is not None:
        # a bench whose drive is out of reach is none for the next trial: it needs another boot
        reset(bench.virtual)
        bench.connection.cut()
    why = f": {record['reasons'][0]}" if record["reasons"] else ""
    return record, broken or WAYS[record["way"]][1].downs_bench, f"{record['outcome']}{why}"


def _program(
    run: Run, batch: Mapping[str, Any], turn: Mapping[str, Any], bench: BenchHere
) -> tuple[dict[str, Any], bool, str]:
    package = turn["request"]["package"]
    if package:
        version = install_package(bench.connection, package, bench.state_dir, virtual=bench.virtual is not None)
        if version:
            text = f"installed {package} {version} on {bench.name}"
            append_event(run.path, "note", {"bench": bench.name, "text": text})
    live = LiveProgram(run.path, bench, batch, turn, boot=bench.connection.boot_id())
    record = live.run()
    counted = Counter(outcome for _, outcome, _ in record["tests"])
    outcomes = ", ".join(f"{outcome} {count}" for outcome, count in sorted(counted.items()))
    why = "; ".join(filter(None, (outcomes, *record["reasons"], *record["problems"][:1], record["recovered"])))
    return record, live.was_reset, f"{record['outcome']}: {why}"


@contextmanager
def _alone(run: Path, bench: str, say: Callable[[str], None]) -> Iterator[None]:
    """Be the one process that runs turns of a bench; waits for another one to end, such as one without its parent.

    The bench's first batch file is what is locked: benches of one run work at the same time.
    """
    (run / TURNS).mkdir(exist_ok=True)
    first = next(name for entry in read_run(run).plan.sessions if entry.bench == bench for name in entry.batches)
    opened = os.open(run / BATCHES / f"{first}.json", os.O_RDONLY)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{run.name}: another process runs turns on {bench}; waiting for its end")
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _was_ended(run: Path, turn: str) -> bool:
    """Whether the bench was brought back from its hang while the trial was followed."""
    return any(event.kind == "bench_hung" and event.text("turn") == turn for event in iter_events(run))


def _may_be_lost(run: Run, turn: str) -> bool:
    """Whether a trial that is cut short is made again, by how often it was."""
    lost = [
        event.fields["lost"]["rebooted"]
        for event in run.events
        if event.kind == "block_finished" and (event.fields.get("lost") or {}).get("turn") == turn
    ]
    return sum(map(bool, lost)) < _RESETS and len(lost) < _LOSSES
