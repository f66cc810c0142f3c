# SPDX-License-Identifier: Apache-2.0
"""What a bench does next, a pure function of the run's files: a killed campaign goes on where it was."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from storqual.campaign.failed_again import failed_again
from storqual.campaign.further import rest_of
from storqual.campaign.steps import CampaignProgress, Further, Provision, RunBatch, Step, Stop, read_progress
from storqual.run import Run, append_event, read_batch, read_launches, read_run, write_batch
from storqual.run.layout import BATCHES
from storqual.run.records import PlannedSession
from storqual_core.kit.errors import BadInputError

_ALL_MEASURED = "everything that was planned has been measured"
MOST_ATTEMPTS = 3
"""How often the rest of a session is tried again when the bench is reset under it."""


def next_step(run: Run, bench: str) -> Step:
    """What is next of what is planned for `bench`. Raises BadInputError when the run has no such bench.

    A batch that was started and has no end is given again, as the same batch: it runs on without us, or its spool
    waits to be collected. A session that lost its boot goes on under a new id with the launches that have no sample.
    """
    if bench not in run.benches:
        raise BadInputError([f"{run.path}: this run has no bench {bench!r}; its benches: {', '.join(run.benches)}"])
    progress = read_progress(run.events, bench)
    known = [session for session in run.plan.sessions if session.bench == bench] + progress.added
    sessions = [replace(s, batches=(*s.batches, *progress.more.get(s.id, ()))) for s in known]
    if progress.halt:
        return Stop(progress.halt, complete=False)
    if progress.failed and run.plan.fields.get("until_failure"):
        return Stop(f"{progress.failed} failed: it was repeated until then", complete=True)
    for number, session in enumerate(sessions, start=1):
        step = _step_of(run, progress, session, number, len(sessions))
        if step is not None:
            return step
    return Stop(_ALL_MEASURED, complete=True)


def session_boot(run: Run, bench: str, session: str) -> str:
    """The boot that a session was started in; empty when it was not started."""
    return read_progress(run.events, bench).boots.get(session, "")


@dataclass(frozen=True)
class _Attempt:
    """One try at a session: its own id from the second on, and the batches it has.

    `failures` are the tries before it that nothing came of.
    """

    number: int
    failures: int
    session: PlannedSession
    batches: tuple[Mapping[str, Any], ...] = ()


def _step_of(run: Run, progress: CampaignProgress, session: PlannedSession, number: int, of: int) -> Step | None:
    """What is left to do for a session; None when it is measured."""
    attempt = _Attempt(1, 0, session)
    while True:
        name = attempt.session.id
        open_batches = [batch for batch in attempt.session.batches if batch not in progress.ended]
        running = [batch for batch in open_batches if batch in progress.started]
        if running:
            # also when the bench was booted meanwhile: what it spooled is collected first
            boot_id = progress.boots.get(name, "")
            return RunBatch(name, running[0], resume=True, boot_id=boot_id, number=number, of=of)
        if name not in progress.lost:
            if not open_batches:
                return None
            if name not in progress.boots:
                boot = attempt.session.boot
                return Provision(attempt.session, _spec(run, attempt.session, boot=boot), number, of, attempt.batches)
            boot_id = progress.boots[name]
            return RunBatch(name, open_batches[0], resume=False, boot_id=boot_id, number=number, of=of)
        following = _following(run, progress, session, attempt)
        if following is None:
            return None
        if following.failures >= MOST_ATTEMPTS:
            reason = (
                f"session {session.id} was lost {MOST_ATTEMPTS} times, the last time because {progress.lost[name]}"
            )
            return Stop(reason, complete=False)
        attempt = following


def _following(run: Run, progress: CampaignProgress, session: PlannedSession, attempt: _Attempt) -> _Attempt | None:
    """The next try: every launch of the lost one that has no sample; None when there is none left."""
    number = attempt.number + 1
    name = f"{session.id}.{number}"
    stored = sorted(path.stem for path in (run.path / BATCHES).glob(f"{name}-b*.json"))
    if stored:
        # planned before; a sample that came in since changes nothing about a batch that a bench may be running
        batches: Sequence[Mapping[str, Any]] = [read_batch(run.path, batch) for batch in stored]
    else:
        done = {launch.id for launch in read_launches(run.path)} | run.recorded
        hung = _hung_points(run, progress)
        open_batches = [batch for batch in attempt.session.batches if progress.ended.get(batch) != "done"]
        known = {str(batch["block"]): batch for batch in attempt.batches}
        rests: list[Mapping[str, Any]] = []
        for batch in open_batches:
            content = known.get(batch) or read_batch(run.path, batch)
            done |= {str(turn["id"]) for turn in content["turns"] if _point_of(turn) in hung}
            rest = rest_of(content, done, name=f"{name}-b{len(rests) + 1:02d}", session=name)
            if rest is not None:
                rests.append(rest)
        batches = rests
    if not batches:
        return None
    names = tuple(str(batch["block"]) for batch in batches)
    # the bench was booted just now, or by itself: one more boot proves nothing
    boot = "if_needed" if session.boot == "always" else session.boot
    again = replace(session, id=name, batches=names, boot=boot)
    failures = attempt.failures + (attempt.session.id not in progress.bounded)
    return _Attempt(number, failures, again, tuple(batches))


def _point_of(turn: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(turn["adapter"]), str(turn["point"]), str(turn["arm"])


def _hung_points(run: Run, progress: CampaignProgress) -> set[tuple[str, str, str]]:
    """The points of launches by which the bench hung: they are not tried again in the session that they cost."""
    return {
        _point_of(turn)
        for block, name in progress.hung
        if block
        for turn in read_batch(run.path, block)["turns"]
        if turn["id"] == name and turn["kind"] == "launch"
    }


def _spec(run: Run, session: PlannedSession, *, boot: str) -> dict[str, Any]:
    specs = (run.document.get("provision") or {}).get(session.bench) or {}
    spec = specs.get(session.configuration)
    if spec is None:
        raise BadInputError([f"{run.path}: found no spec of {session.configuration!r} for bench {session.bench}"])
    return {"session": session.id, "change": session.change, "boot": boot, **spec}


BeyondPlan = Callable[[Run, str], Further | Stop]
"""Called with a run and a bench whose sessions are all measured; a pure function of the run's files.

What it asks for is recorded (`session_planned`, `block_planned`) with its batch files beside those of the plan, so
that the state of a campaign stays in its files alone.
"""


def nothing_more(_run: Run, _bench: str) -> Stop:
    return Stop(_ALL_MEASURED, complete=True)


def as_planned(run: Run, bench: str) -> Further | Stop:
    """Launches go on until decided where the campaign may end at any look; then what failed is made again."""
    step: Further | Stop = nothing_more(run, bench)
    if run.plan.fields.get("looks") == "every":
        from storqual.campaign.until_decided import until_decided  # noqa: PLC0415 - the judge is slow to import

        step = until_decided(run, bench)
    return step if isinstance(step, Further) else failed_again(run, bench) or step


def next_command(path: Path, bench: str, *, boot_id: str | None = None, beyond: BeyondPlan = as_planned) -> Step:
    """The next step of `bench`; batch files that it needs are written before it is told.

    `boot_id` is what the bench says of itself now: when a session's bench was booted since, the session is recorded
    as lost and goes on as a new one. Where everything planned is measured, `beyond` says what else is.
    """
    run = read_run(path)
    step = next_step(run, bench)
    if isinstance(step, Stop) and step.complete:
        answer = beyond(run, bench)
        if isinstance(answer, Stop):
            _tell_why(path, run, bench, answer)
            return answer
        _plan_further(path, bench, answer)
        run = read_run(path)
        step = next_step(run, bench)
    if boot_id and isinstance(step, RunBatch) and not step.resume:
        expected = session_boot(run, bench, step.session)
        if expected and expected != boot_id:
            reason = f"the bench was booted in between (boot {expected}, now {boot_id})"
            append_event(path, "session_lost", {"bench": bench, "session": step.session, "reason": reason})
            step = next_step(read_run(path), bench)
    if isinstance(step, Provision):
        for batch in step.batches:
            write_batch(path, batch)
    return step


def _tell_why(path: Path, run: Run, bench: str, stop: Stop) -> None:
    """Record once why a campaign that could have gone on ended; the plan's own end needs no words."""
    recorded = any(event.kind == "note" and event.text("text") == stop.reason for event in run.events)
    if run.plan.fields.get("looks") == "every" and not recorded:
        append_event(path, "note", {"bench": bench, "text": stop.reason})


def _plan_further(path: Path, bench: str, further: Further) -> None:
    """Write the batches, then record them: a control node that is killed in between finds the same again."""
    # first, because batches follow from them
    for ramp in further.ramps:
        append_event(path, "ramp_lengthened", {"bench": bench, **ramp})
    for batch in further.batches:
        write_batch(path, batch)
    new = {session.id for session in further.sessions}
    for session in further.sessions:
        fields = {"bench": bench, "session": session.id, "plan": session.to_json(), "reason": further.reason}
        append_event(path, "session_planned", fields)
    for batch in further.batches:
        if batch["session"] not in new:
            fields = {"bench": bench, "session": batch["session"], "block": batch["block"], "reason": further.reason}
            append_event(path, "block_planned", fields)
