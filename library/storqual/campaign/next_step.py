# SPDX-License-Identifier: Apache-2.0
"""`next_step`: a pure function of the run's files, so that a killed campaign goes on where it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from storqual.campaign.further import rest_of
from storqual.campaign.progress import Progress, read_progress
from storqual.campaign.steps import Provision, RunBlock, Step, Stop
from storqual.run import Run, read_block, read_launches
from storqual.run.layout import BLOCKS
from storqual.run.records import PlannedSession
from storqual_core.kit.errors import BadInputError

MOST_ATTEMPTS = 3
"""How often the rest of a session is tried again when the bench is reset under it."""


def next_step(run: Run, bench: str) -> Step:
    """What is next of what is planned for `bench`. Raises BadInputError when the run has no such bench.

    A block that was started and has no end is given again, as the same block: it runs on without us, or its spool
    waits to be collected. A session that lost its boot goes on under a new id with the launches that have no sample.
    """
    if bench not in run.benches:
        raise BadInputError([f"{run.path}: found no bench {bench!r}, expected one of {', '.join(run.benches)}"])
    progress = read_progress(run.events, bench)
    known = [session for session in run.plan.sessions if session.bench == bench] + progress.added
    sessions = [replace(s, blocks=(*s.blocks, *progress.more.get(s.id, ()))) for s in known]
    if progress.halt:
        return Stop(progress.halt, complete=False)
    for number, session in enumerate(sessions, start=1):
        step = _step_of(run, progress, session, number, len(sessions))
        if step is not None:
            return step
    return Stop("everything that was planned is measured", complete=True)


def session_boot(run: Run, bench: str, session: str) -> str:
    """The boot that a session was started in; empty when it was not started."""
    return read_progress(run.events, bench).boots.get(session, "")


@dataclass(frozen=True)
class _Attempt:
    """One try at a session: its own id from the second on, and the blocks it has."""

    number: int
    session: PlannedSession
    blocks: tuple[Mapping[str, Any], ...] = ()


def _step_of(run: Run, progress: Progress, session: PlannedSession, number: int, of: int) -> Step | None:
    """What is left to do for a session; None when it is measured."""
    attempt = _Attempt(1, session)
    while True:
        name = attempt.session.id
        open_blocks = [block for block in attempt.session.blocks if block not in progress.ended]
        running = [block for block in open_blocks if block in progress.started]
        if running:
            # also when the bench was booted meanwhile: what it spooled is collected first
            boot_id = progress.boots.get(name, "")
            return RunBlock(name, running[0], resume=True, boot_id=boot_id, number=number, of=of)
        if name not in progress.lost:
            if not open_blocks:
                return None
            if name not in progress.boots:
                boot = attempt.session.boot
                return Provision(attempt.session, _spec(run, attempt.session, boot=boot), number, of, attempt.blocks)
            boot_id = progress.boots[name]
            return RunBlock(name, open_blocks[0], resume=False, boot_id=boot_id, number=number, of=of)
        following = _following(run, progress, session, attempt)
        if following is None:
            return None
        if following.number > MOST_ATTEMPTS:
            reason = (
                f"session {session.id} was lost {MOST_ATTEMPTS} times, the last time because {progress.lost[name]}"
            )
            return Stop(reason, complete=False)
        attempt = following


def _following(run: Run, progress: Progress, session: PlannedSession, attempt: _Attempt) -> _Attempt | None:
    """The next try: every launch of the lost one that has no sample; None when there is none left."""
    number = attempt.number + 1
    name = f"{session.id}.{number}"
    stored = sorted(path.stem for path in (run.path / BLOCKS).glob(f"{name}-b*.json"))
    if stored:
        # planned before; a sample that came in since changes nothing about a block that a bench may be running
        blocks: Sequence[Mapping[str, Any]] = [read_block(run.path, block) for block in stored]
    else:
        done = {launch.id for launch in read_launches(run.path)}
        open_blocks = [block for block in attempt.session.blocks if progress.ended.get(block) != "done"]
        known = {str(block["block"]): block for block in attempt.blocks}
        rests: list[Mapping[str, Any]] = []
        for block in open_blocks:
            content = known.get(block) or read_block(run.path, block)
            rest = rest_of(content, done, name=f"{name}-b{len(rests) + 1:02d}", session=name)
            if rest is not None:
                rests.append(rest)
        blocks = rests
    if not blocks:
        return None
    names = tuple(str(block["block"]) for block in blocks)
    # the bench was booted just now, or by itself: one more boot proves nothing
    boot = "if_needed" if session.boot == "always" else session.boot
    again = replace(session, id=name, blocks=names, boot=boot)
    return _Attempt(number, again, tuple(blocks))


def _spec(run: Run, session: PlannedSession, *, boot: str) -> dict[str, Any]:
    """The provisioning spec of a session: the configuration's, and how to get there."""
    specs = (run.document.get("provision") or {}).get(session.bench) or {}
    spec = specs.get(session.configuration)
    if spec is None:
        raise BadInputError([f"{run.path}: found no spec of {session.configuration!r} for bench {session.bench}"])
    return {"session": session.id, "change": session.change, "boot": boot, **spec}
