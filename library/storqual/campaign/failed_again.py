# SPDX-License-Identifier: Apache-2.0
"""Turns at which the candidate failed and the baseline did not, made again until their number can decide.

The trials that the baseline was spared so far (`candidate_first`) are made for the same faults, and all of them when
the bench hung under the candidate: the baseline must then have done as much.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from storqual.base.text import plural
from storqual.campaign.further import next_session_name
from storqual.campaign.steps import Further
from storqual.kinds.trial_checks import later_baselines
from storqual.run import Run, read_batch
from storqual.run.records import PlannedSession
from storqual.run.time_left import bench_seconds, effort_of
from storqual.run.turns import turns_of


def failed_again(run: Run, bench: str) -> Further | None:
    """One more session of each arm with those turns; None where nothing is to be decided, or the budget is used up.

    The arm that the bench is not in comes first, so that each is provisioned and booted anew. A pure function of the
    run's files.
    """
    turns = turns_of(run)
    failed = [repeat for repeat in turns.repeats() if repeat.turn.bench == bench]
    hung = any(event.bench == bench and event.text("arm") == "candidate" for event in run.events_of("bench_hung"))
    points = {(repeat.turn.point, repeat.turn.adapter) for repeat in failed}
    spared = [
        repeat
        for repeat in later_baselines(turns.planned)
        if repeat.turn.bench == bench and (hung or (repeat.turn.point, repeat.turn.adapter) in points)
    ]
    wanted = failed + spared
    effort = effort_of(run, bench)
    over = effort is not None and effort.budget_s is not None and bench_seconds(run.events, bench) >= effort.budget_s
    if not wanted or over:
        return None
    planned: dict[str, tuple[dict[str, Any], Mapping[str, Any]]] = {}
    like: dict[str, PlannedSession] = {}
    for session in run.sessions:
        for name in session.batches if session.bench == bench else ():
            batch = read_batch(run.path, name)
            if batch["spool"] == "streamed":
                planned.update({str(turn["id"]): (batch, turn) for turn in batch["turns"]})
                like.setdefault(session.arm, session)
    last = next(session for session in reversed(run.sessions) if session.bench == bench)
    batches: list[Mapping[str, Any]] = []
    sessions = []
    for offset, arm in enumerate(sorted({arm for repeat in wanted for arm in repeat.arms}, key=last.arm.__eq__)):
        session_id = next_session_name(run, bench, offset)
        numbers = count(1)
        own = []
        for repeat in (repeat for repeat in wanted if arm in repeat.arms):
            batch, turn = planned[repeat.turn.id]
            for more in repeat.names:
                entry = {
                    **turn,
                    "index": 0,
                    "id": f"{more}.{arm}",
                    "arm": arm,
                    "configuration": arm,
                    "request": {**turn["request"], "pair": more},
                }
                name = f"{session_id}-b{next(numbers):03d}"
                own.append({**batch, "block": name, "session": session_id, "turns": [entry]})
        batches += own
        names = tuple(str(batch["block"]) for batch in own)
        # the first session of a plan finds its boot
        sessions.append(replace(like[arm], id=session_id, batches=names, boot=last.boot, change=last.change))
    what = [f"{plural(len(failed), 'failed trial')} made again in each arm"] if failed else []
    what += [f"{plural(len(spared), 'trial')} that the baseline was spared"] if spared else []
    return Further(", ".join(what), tuple(batches), tuple(sessions))
