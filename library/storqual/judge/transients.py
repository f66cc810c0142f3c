# SPDX-License-Identifier: Apache-2.0
"""Launches that still settle when they are measured: told, and given a longer ramp where a campaign goes on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from storqual.base.text import plural
from storqual.judge.question import ArmLaunches, Question
from storqual.run import Run
from storqual.run.measurements import PointKey
from storqual.run.records import Launch
from storqual_core.kit.quantities import format_percent
from storqual_core.turns.precondition import settled_from

LENGTHENED = "ramp_lengthened"
"""The event of a point whose further launches get a longer ramp."""
_FEWEST_LAUNCHES = 8
_FEWEST_FIRST = 4
_FEWEST_SECONDS = 4
_LARGEST_OFF = 0.01
_SPREADS = 3.0

Seconds = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Settling:
    """For how many seconds after their ramp launches of a point still settle: `every_s` each of them.

    `first_s` is what the first launch of a session (after a boot or a switch) needs instead, where it is another.
    """

    every_s: float = 0.0
    first_s: float = 0.0

    def __bool__(self) -> bool:
        return self.every_s > 0 or self.first_s > 0

    def of(self, *, first: bool) -> float:
        """What is added to the ramp of a launch; `first` of its session."""
        return max(self.every_s, self.first_s) if first else self.every_s

    def to_json(self) -> dict[str, float]:
        return asdict(self)


NOTHING = Settling()


def short_ramps(questions: Iterable[Question]) -> list[str]:
    """A sentence for each bench whose launches still settle when they are measured."""
    series: defaultdict[str, list[Sequence[float]]] = defaultdict(list)
    for (bench, _, _), arms in _launches(questions).items():
        series[bench] += _seconds(arms)
    sentences = []
    for bench, seconds in series.items():
        found = transient(seconds)
        if found is not None:
            cut, off = found
            text = (
                f"launches take {cut} s longer than their ramp to settle, and deviate by "
                f"{format_percent(off, signed=True)} until then"
            )
            sentences.append(f"{bench}: {text}; a longer ramp would remove it")
    return sentences


def lengthened_ramps(run: Run) -> list[str]:
    """A sentence for each bench on which points were given a longer ramp while the campaign went on."""
    found: defaultdict[str, list[Settling]] = defaultdict(list)
    for (bench, _, _), settling in lengthened(run).items():
        found[bench].append(settling)
    sentences = []
    for bench, each in found.items():
        longest = max(max(one.every_s, one.first_s) for one in each)
        text = f"launches at {plural(len(each), 'point')} settled for up to {longest:g} s after their ramp"
        sentences.append(f"{bench}: {text}; further launches there had a longer ramp")
    return sentences


def lengthened(run: Run) -> dict[PointKey, Settling]:
    """What was added to the ramps of further launches so far, by point, from the run's events."""
    return {
        (str(event.bench), event.text("adapter"), event.text("point")): Settling(
            float(event.fields.get("every_s") or 0.0), float(event.fields.get("first_s") or 0.0)
        )
        for event in run.events
        if event.kind == LENGTHENED
    }


def settling(questions: Iterable[Question]) -> dict[PointKey, Settling]:
    """What launches of each point need beyond their ramp; points that need nothing are left out.

    A point with few launches is judged by those of its workload on that adapter.
    """
    arms = _launches(questions)
    groups: defaultdict[tuple[str, str, str], list[PointKey]] = defaultdict(list)
    for key in arms:
        groups[key[0], key[1], key[2].partition("[")[0]].append(key)
    by_session = {question.point.key: question.by_session for question in questions}
    found: dict[PointKey, Settling] = {}
    for keys in groups.values():
        together = [seconds for key in keys for seconds in _seconds(arms[key])]
        first = _first([arms[key] for key in keys if by_session.get(key)])
        for key in keys:
            own = _seconds(arms[key])
            each = transient(own if len(own) >= _FEWEST_LAUNCHES else together)
            one = Settling(0.0 if each is None else float(each[0]), first)
            if one:
                found[key] = one
    return found


def _launches(questions: Iterable[Question]) -> dict[PointKey, ArmLaunches]:
    return {one.point.key: one.launches for one in questions}


def _ran(arms: ArmLaunches) -> list[Launch]:
    every = [launch for launches in arms.arms.values() for launch in launches]
    return [
        one for one in every if one.status == "ok" and sum(one.seconds) > 0 and len(one.seconds) >= _FEWEST_SECONDS
    ]


def _seconds(arms: ArmLaunches) -> list[Sequence[float]]:
    return [launch.seconds for launch in _ran(arms)]


def transient(series: Seconds) -> tuple[int, float] | None:
    """How many seconds of the usual launch are a transient, and how far they are off; None for none."""
    if len(series) < _FEWEST_LAUNCHES:
        return None
    length = min(map(len, series))
    shares = np.array([one[:length] for one in series]) / np.array([[sum(one) / len(one)] for one in series])
    # launches that want more than half of their seconds cut have not settled at all: then half is what is known
    cut = settled_from(shares.mean(axis=0).tolist(), group=1) or length // 2
    off = shares[:, :cut].mean(axis=1) / shares[:, cut:].mean(axis=1) - 1
    return (cut, float(off.mean())) if _is_off(off.tolist()) else None


def _first(points: Sequence[ArmLaunches]) -> float:
    """The seconds of the first launch of a session where it runs otherwise than those after it; else 0."""
    ratios, length = [], 0.0
    for arms in points:
        sessions: defaultdict[str, list[Launch]] = defaultdict(list)
        for launch in sorted(_ran(arms), key=lambda one: one.n):
            sessions[launch.session].append(launch)
        for first, *others in sessions.values():
            if others:
                after = float(np.mean([np.mean(one.seconds) for one in others]))
                ratios.append(float(np.mean(first.seconds)) / after - 1)
                length = max(length, float(len(first.seconds)))
    return length if len(ratios) >= _FEWEST_FIRST and _is_off(ratios) else 0.0


def _is_off(off: Sequence[float]) -> bool:
    """Whether shares differ from none by more than a percent, and by more than chance."""
    error = float(np.std(off, ddof=1)) / np.sqrt(len(off))
    return bool(abs(np.mean(off)) > max(_LARGEST_OFF, _SPREADS * error))
