# SPDX-License-Identifier: Apache-2.0
"""Turns at which the candidate failed and the baseline did not, made again until their number can decide."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from storqual.base.text import plural
from storqual.campaign.further import next_session_name
from storqual.campaign.steps import Further
from storqual.run import Run, read_batch
from storqual.run.time_left import bench_seconds, effort_of
from storqual.run.turns import turns_of


def failed_again(run: Run, bench: str) -> Further | None:
    """One more session of each arm with those turns; None where nothing is to be decided, or the budget is used up.

    The arm that the bench is not in comes first, so that each is provisioned and booted anew. A pure function of the
    run's files.
    """
    wanted = [repeat for repeat in turns_of(run).repeats() if repeat.turns[0].bench == bench]
    effort = effort_of(run, bench)
    over = effort is not None and effort.budget_s is not None and bench_seconds(run.events, bench) >= effort.budget_s
    if not wanted or over:
        return None
    planned = {}
    for session in run.sessions:
        for name in session.batches if session.bench == bench else ():
            batch = read_batch(run.path, name)
            planned.update({str(turn["id"]): (session, batch, turn) for turn in batch["turns"]})
    last = next(session for session in reversed(run.sessions) if session.bench == bench)
    batches: list[Mapping[str, Any]] = []
    sessions = []
    for offset, arm in enumerate(
        sorted({turn.arm for repeat in wanted for turn in repeat.turns}, key=last.arm.__eq__)
    ):
        session_id = next_session_name(run, bench, offset)
        numbers = count(1)
        own = []
        for repeat in wanted:
            like, batch, turn = planned[next(turn.id for turn in repeat.turns if turn.arm == arm)]
            for more in repeat.names:
                entry = {
                    **turn,
                    "index": 0,
                    "id": f"{more}.{arm}",
                    "request": {**turn["request"], "pair": more},
                }
                name = f"{session_id}-b{next(numbers):03d}"
                own.append({**batch, "block": name, "session": session_id, "turns": [entry]})
        batches += own
        names = tuple(str(batch["block"]) for batch in own)
        # the first session of a plan finds its boot
        sessions.append(replace(like, id=session_id, batches=names, boot=last.boot, change=last.change))
    what = plural(len(wanted), "failed trial")
    return Further(f"{what} made again in each arm", tuple(batches), tuple(sessions))
