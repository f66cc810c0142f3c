# SPDX-License-Identifier: Apache-2.0
"""Measure until every required criterion is decided, or until no more may be measured.

Points that are decided cost nothing more. Fails are measured again in sessions of their own: last, so that one such
session serves all of them, or first when the time left is not enough for everything. What is then left of a budget
goes to points that pass with a loss between the two limits.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, cycle, groupby, islice
from typing import Any, Generic, TypeVar

from storqual.base.text import plural
from storqual.campaign.further import (
    PointKey,
    SessionPattern,
    Turn,
    further_batch,
    next_session_name,
    planned_pattern,
)
from storqual.campaign.steps import Further, Stop, read_progress
from storqual.judge.evidence import Settling, lengthened
from storqual.judge.interim import Need, needs
from storqual.judge.question import PURPOSE
from storqual.run.records import PlannedSession, planned_session
from storqual.run.run import Run
from storqual.run.time_left import Effort, bench_seconds, effort_of
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.quantities import format_duration

Key = TypeVar("Key", bound=Hashable)

SHORTEST_BATCH_S = 30.0
"""Asking what to do next costs a bench some seconds: a batch shorter than this is not worth asking for."""


@dataclass(frozen=True)
class Want(Generic[Key]):
    """A point that is not decided: about `units` more pairs will decide it, and it may have `left` more."""

    key: Key
    units: int
    left: int


def funded(wants: Sequence[Want[Key]], unit_s: float, left_s: float) -> list[Want[Key]]:
    """The wants that the time left is spent on, nearest decision first; `unit_s` is one pair at one point.

    With time for all of them that is all. With less, most points are decided by finishing those that need least; the
    nearest is always among them, because what it will take is an estimate.
    """
    ordered = sorted((want for want in wants if want.left > 0), key=lambda want: want.units)
    chosen: list[Want[Key]] = []
    spent = 0.0
    for want in ordered:
        spent += min(want.units, want.left) * unit_s
        if chosen and spent > left_s:
            break
        chosen.append(want)
    return chosen


def allocate(wants: Sequence[Want[Key]], *, unit_s: float, longest_s: float, left_s: float) -> dict[Key, int]:
    """Pairs for each point in the next batch; empty when the time left (`left_s`) is not enough for one.

    A pair beyond a point's decision is wasted, so nobody gets more than half of what it will probably take, and a
    batch is no longer than worth asking for; but each funded point gets a pair where the longest batch has room.
    """
    chosen = funded(wants, unit_s, left_s)
    room = int(min(longest_s, left_s) / unit_s)
    if left_s >= unit_s > longest_s:
        room = 1
    enough = math.ceil(SHORTEST_BATCH_S / unit_s)
    given: dict[Key, int] = {}
    while room > 0:
        hungry = [want for want in chosen if given.get(want.key, 0) < min(want.left, math.ceil(want.units / 2))]
        if not hungry or (given and sum(given.values()) >= enough):
            break
        for want in hungry[:room]:
            given[want.key] = given.get(want.key, 0) + 1
        room -= len(hungry[:room])
    return given


_ARMS = ("baseline", "candidate")


def until_decided(run: Run, bench: str) -> Further | Stop:
    """The next batch or sessions of `bench`, or why there is none. A pure function of the run's files."""
    effort = effort_of(run, bench)
    if effort is None:
        raise StorqualError(f"{run.path}: found no effort for {bench} in a plan that measures until decided")
    campaign = _Campaign(run, bench, effort)
    wanted = needs(run, bench)
    if not wanted:
        return Stop("every required criterion is decided or cannot be judged", complete=True)
    undecided = [need for need in wanted if need.what != "marginal"]
    further = campaign.further(wanted)
    if further is None and not undecided:
        return Stop("every required criterion is decided or cannot be judged", complete=True)
    return further or Stop(campaign.why_not(undecided), complete=True)


@dataclass(frozen=True)
class _Lane:
    """Where launches go: to the sessions that measure, or to those that confirm (`purpose`)."""

    purpose: str
    wants: list[Want[PointKey]]

    def seconds(self, effort: Effort) -> float:
        """What it takes to decide all of it, by what is known now."""
        if not effort.by_session:
            return sum(min(want.units, want.left) for want in self.wants) * effort.unit_seconds()
        return max((want.units for want in self.wants), default=0) * effort.unit_seconds(len(self.wants))


class _Campaign:
    """One bench's part of a run as it is now."""

    def __init__(self, run: Run, bench: str, effort: Effort) -> None:
        self._run = run
        self._bench = bench
        self._effort = effort
        self._progress = read_progress(run.events, bench)
        designs = run.plan.fields.get("designs") or {}
        self._by_batch = bool((designs.get(bench) or {}).get("by_block"))
        self._left_s = float("inf")
        if effort.budget_s is not None:
            self._left_s = effort.budget_s - bench_seconds(run.events, bench)
        self._known = {key[1:]: settling for key, settling in lengthened(run).items() if key[0] == bench}
        self._settling: dict[PointKey, Settling] = {}

    def _ramps(self, points: Mapping[PointKey, int], cost_s: float) -> dict[PointKey, Settling]:
        """What is added to the ramps at these points, each with so many pairs.

        Nothing new where the budget has no room for it after `cost_s`.
        """
        new = sum(each * self._longer_s(self._settling[key]) for key, each in points.items() if key in self._settling)
        affordable = cost_s + new <= self._left_s
        ramps = {**(self._settling if affordable else {}), **self._known}
        return {key: ramps[key] for key in points if key in ramps}

    def _longer_s(self, settling: Settling) -> float:
        """Seconds that a pair, or a session of each arm, takes longer by that at a point."""
        launches = self._effort.launches if self._effort.by_session else 1
        return 2 * ((launches - 1) * settling.every_s + settling.of(first=self._effort.by_session))

    def _sessions_s(self, points: Sequence[PointKey]) -> float:
        """Seconds of one more session of each arm at these points, with the ramps that they have."""
        longer = sum(self._longer_s(self._known[key]) for key in points if key in self._known)
        return self._effort.unit_seconds(len(points)) + longer

    def _ramp_events(self, ramps: Mapping[PointKey, Settling]) -> tuple[dict[str, Any], ...]:
        """The events of points that have a longer ramp from now on."""
        new = {key: settling for key, settling in ramps.items() if key not in self._known}
        return tuple({"adapter": key[0], "point": key[1], **settling.to_json()} for key, settling in new.items())

    def further(self, wanted: Sequence[Need]) -> Further | None:
        """What is worth most; None when nothing may be measured any more."""
        pattern = planned_pattern(self._run, self._bench)
        settling = {(need.point.adapter, need.point.point): need.settling for need in wanted if need.settling}
        self._settling = {key: ramp for key, ramp in settling.items() if pattern.takes_ramp(key)}
        more, fresh = (_lane(wanted, what, self._effort) for what in ("more", PURPOSE))
        lanes = [more, fresh]
        if sum(lane.seconds(self._effort) for lane in lanes) > self._left_s:
            # a fail that is confirmed decides the whole run
            lanes.reverse()
        if self._effort.budget_s is not None:
            lanes.append(_lane(wanted, "marginal", self._effort))
        for lane in lanes:
            addition = self._sessions(lane, pattern) if self._effort.by_session else self._batch(lane, pattern)
            if addition is not None:
                return addition
        return None

    def why_not(self, wanted: Sequence[Need]) -> str:
        nearest = wanted[0]
        unit = "session of each arm" if self._effort.by_session else "pair"
        more = plural(nearest.units, unit).replace("arms", "arm") if nearest.units != 1 else f"1 {unit}"
        seconds = format_duration(nearest.units * self._effort.unit_seconds())
        count = f"{len(wanted)} required {'criterion is' if len(wanted) == 1 else 'criteria are'} undecided"
        limit = f"the most of the profile is measured ({self._effort.most})"
        if self._effort.budget_s is not None and any(need.used < self._effort.most for need in wanted):
            limit = f"the budget of {format_duration(self._effort.budget_s)} is used up"
        return f"{limit}; {count}, the nearest needs about {more} more ({seconds})"

    def _batch(self, lane: _Lane, pattern: SessionPattern) -> Further | None:
        effort = self._effort
        live = self._live(lane.purpose)
        cost = effort.block_s + (0.0 if live else effort.session_s)
        longest = effort.longest_block_s - effort.block_s
        # pairs with a lengthened ramp take longer; as if all of them did, because one unit stands for every point
        unit_s = effort.unit_seconds() + max(map(self._longer_s, self._known.values()), default=0.0)
        given = allocate(lane.wants, unit_s=unit_s, longest_s=longest, left_s=max(self._left_s - cost, 0.0))
        if not given:
            return None
        ramps = self._ramps(given, cost + sum(given.values()) * unit_s)
        turns = _pairs(given, self._counts(), by_batch=self._by_batch)
        longer = {turn: ramps[turn[0]].every_s for turn in turns if turn[0] in ramps}
        parts = [turns]
        if self._by_batch:
            parts = [list(part) for _, part in groupby(turns, key=lambda turn: turn[1])]
        reason = f"{plural(sum(given.values()), 'pair')} for {plural(len(given), 'undecided point')}"
        if lane.purpose:
            reason = f"{plural(len(given), 'failed point')} measured again"
        if live:
            batches = _batches(pattern, live, parts, longer, self._stored(live))
            return Further(reason, batches, ramps=self._ramp_events(ramps))
        like = next(s for s in self._run.plan.sessions if s.bench == self._bench)
        session = self._new(like, 0, lane.purpose)
        batches = _batches(pattern, session.id, parts, longer)
        names = tuple(str(batch["block"]) for batch in batches)
        return Further(
            reason, batches, (replace(session, boot="if_needed", batches=names),), ramps=self._ramp_events(ramps)
        )

    def _sessions(self, lane: _Lane, pattern: SessionPattern) -> Further | None:
        effort = self._effort
        chosen = funded(lane.wants, effort.unit_seconds(), max(self._left_s, 0.0))
        if not chosen:
            return None
        groups: dict[tuple[str, str], list[PointKey]] = {}
        for want in chosen:
            names = (pattern.sessions[want.key, _ARMS[0]], pattern.sessions[want.key, _ARMS[1]])
            groups.setdefault(names, []).append(want.key)
        names, points = max(groups.items(), key=lambda group: len(group[1]))
        while points and self._sessions_s(points) > self._left_s:
            points.pop()
        if not points:
            return None
        alike = [s for s in self._run.sessions if s.bench == self._bench and s.id in names]
        before = [s for s in self._run.sessions if self._is_like(s, alike, lane.purpose)]
        orders = list(islice(cycle((*_ARMS, *reversed(_ARMS))), len(before), len(before) + 2))
        if len(before) % 2:
            # the control node was killed between the two: the other arm is missing
            orders = orders[:1]
        made = [
            self._new(next(s for s in alike if s.arm == arm), number, lane.purpose)
            for number, arm in enumerate(orders)
        ]
        counts = self._counts()
        ramps = self._ramps(dict.fromkeys(points, 1), self._sessions_s(points))
        further = []
        for session in made:
            rounds = range(1, effort.launches + 1)
            numbered = [(key, n, counts.get((key, session.arm), 0) + n) for n in rounds for key in points]
            turns = [(key, session.arm, number) for key, _, number in numbered]
            longer = {
                (key, session.arm, number): ramps[key].of(first=n == 1) for key, n, number in numbered if key in ramps
            }
            further.append(further_batch(pattern, session.batches[0], session.id, turns, longer))
        what = f"{plural(len(points), 'failed point')} measured again"
        if not lane.purpose:
            what = f"{plural(len(points), 'undecided point')} in one more session of each arm"
        return Further(what, tuple(further), tuple(made), self._ramp_events(ramps))

    def _is_like(self, session: PlannedSession, alike: Sequence[PlannedSession], purpose: str) -> bool:
        same = {other.configuration for other in alike}
        return session.bench == self._bench and session.configuration in same and session.purpose == purpose

    def _new(self, like: PlannedSession, offset: int, purpose: str) -> PlannedSession:
        name = next_session_name(self._run, self._bench, offset)
        return replace(like, id=name, batches=(f"{name}-b01",), purpose=purpose)

    def _sessions_so_far(self) -> list[PlannedSession]:
        return [session for session in self._run.sessions if session.bench == self._bench]

    def _live(self, purpose: str) -> str:
        """The session under way that launches of a purpose can be added to; empty when there is none."""
        current = ""
        own = {session.id for session in self._sessions_so_far() if session.purpose == purpose}
        for name in self._progress.boots:
            if planned_session(name) in own and name not in self._progress.lost:
                current = name
        return current

    def _stored(self, session: str) -> int:
        """How many batches a session has; all of them were started, else there would be no question what is next."""
        started = {batch for batch in self._progress.started if batch.rpartition("-b")[0] == session}
        return len(started | set(self._progress.more.get(session, ())))

    def _counts(self) -> Mapping[tuple[PointKey, str], int]:
        """The highest launch number of each arm at each point."""
        counts: dict[tuple[PointKey, str], int] = {}
        for bench, adapter, point, arm, number in self._run.measured:
            if bench == self._bench:
                counts[(adapter, point), arm] = max(counts.get(((adapter, point), arm), 0), number)
        return counts


def _lane(wanted: Sequence[Need], what: str, effort: Effort) -> _Lane:
    """The points that need more launches, or fresh ones: a point's costliest criterion says how many.

    Suspect launches are measured again while the budget lasts, at most as many as a point may have.
    """
    points: dict[PointKey, tuple[int, int]] = {}
    for need in wanted:
        if need.what == what:
            key = (need.point.adapter, need.point.point)
            units, left = points.get(key, (0, effort.most))
            own = effort.most - need.launched
            if effort.budget_s is not None:
                own = min(effort.most - need.used, own + effort.most)
            points[key] = (max(units, need.units), min(left, own))
    wants = [Want(key, units, left) for key, (units, left) in points.items()]
    return _Lane(PURPOSE if what == PURPOSE else "", wants)


def _batches(
    pattern: SessionPattern,
    session: str,
    parts: Sequence[Sequence[Turn]],
    longer: Mapping[Turn, float],
    stored: int = 0,
) -> tuple[dict[str, Any], ...]:
    names = (f"{session}-b{number:02d}" for number in count(stored + 1))
    return tuple(
        further_batch(pattern, name, session, part, longer) for name, part in zip(names, parts, strict=False)
    )


def _pairs(
    given: Mapping[PointKey, int], counts: Mapping[tuple[PointKey, str], int], *, by_batch: bool
) -> list[Turn]:
    """Round by round over the points, A B and then B A: the order of a point goes on where it stopped.

    `by_batch`: a round has all of one arm, then all of the other, in the order in which its first point goes on.
    """
    turns: list[Turn] = []
    for number in range(max(given.values())):
        round_: list[Turn] = []
        for key in (key for key, pairs in given.items() if pairs > number):
            so_far = max(counts.get((key, arm), 0) for arm in _ARMS) + number
            arms = _ARMS if so_far % 2 == 0 else tuple(reversed(_ARMS))
            round_ += [(key, arm, so_far + 1) for arm in arms]
        if by_batch:
            first = round_[0][1]
            round_.sort(key=lambda turn: turn[1] != first)
        turns += round_
    return turns
