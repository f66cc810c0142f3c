# SPDX-License-Identifier: Apache-2.0
"""A bench's campaign over time: every launch against the baseline at its point, sessions, and what happened.

It shows drift (the baseline leaving zero), a loss (the candidate beside zero) and the cause (an event then): events
that are not routine, and what the kernel log says.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from storqual import run as store
from storqual.base.figures import ShownNumber, count, percent, second
from storqual.base.table import Table
from storqual.base.text import telling_line
from storqual.report.charts import EventMark, Span, Trace, clock_axis, percent_axis, time_chart
from storqual.report.criterion import adapter_name
from storqual.report.material import Material, clock
from storqual.report.parts.ledger import preconditioning_of
from storqual.report.view import DrawnChart
from storqual.run import Launch, recovered
from storqual.run.measurements import PointData
from storqual_core.host.kernel_log import KINDS


@dataclass(frozen=True)
class Timeline:
    """One bench's campaign over time."""

    bench: str
    charts: tuple[DrawnChart, ...]
    events: tuple[TimelineEvent, ...]
    sessions: Table
    preconditioning: Table


_METRIC = "iops"
_REACH = 1.0
_MOST_MARKS = 300


def timeline_of(material: Material, bench: str, moments: Sequence[TimelineEvent], ident: str) -> Timeline:
    points = [data for key, data in material.points.items() if key[0] == bench]
    of_bench = [moment for moment in moments if moment.bench in ("", bench)]
    adapters: defaultdict[str, list[PointData]] = defaultdict(list)
    for data in points:
        adapters[data.planned.adapter].append(data)
    launches = [launch for data in points for launch in data.every()]
    charts: list[DrawnChart] = []
    if launches:
        start = min(launch.began for launch in launches)
        end = max(launch.began + max(launch.runtime_s, 1.0) for launch in launches)
        spans = _spans(launches)
        for number, (adapter, members) in enumerate(adapters.items()):
            arms = material.arms
            name = adapter_name(list(material.run.benches), bench, adapter)
            chart = _chart(f"{ident}-{number}", name, members, of_bench, spans, (start, end), arms)
            if chart is not None:
                charts.append(chart)
    return Timeline(
        bench,
        tuple(charts),
        tuple(moment for moment in of_bench if not moment.finding),
        _sessions(material, bench, points),
        preconditioning_of(material, bench),
    )


def _spans(launches: Iterable[Launch]) -> tuple[Span, ...]:
    sessions: dict[str, list[Launch]] = {}
    for launch in launches:
        sessions.setdefault(launch.session, []).append(launch)
    spans: list[Span] = []
    for name, members in sessions.items():
        arms = {launch.arm for launch in members}
        arm = arms.pop() if len(arms) == 1 else ""
        begin = min(launch.began for launch in members)
        end = max(launch.began + max(launch.runtime_s, 1.0) for launch in members)
        spans.append(Span(begin, end, f"{name} {arm}".strip(), arm, name))
    return tuple(sorted(spans, key=lambda span: span.start))


def _deviations(
    points: Iterable[PointData], arms: Sequence[str]
) -> dict[str, list[tuple[float, float, float, Launch]]]:
    """(start, end, percent from the reference's mean at the same point, launch) of each arm's good launches.

    The reference is the baseline, of a run with one arm its own mean.
    """
    deviations: dict[str, list[tuple[float, float, float, Launch]]] = {arm: [] for arm in arms}
    for data in points:
        reference = data.values(arms[0], _METRIC)
        mean = sum(reference) / len(reference) if reference else 0.0
        if mean <= 0:
            continue
        for arm in arms:
            deviations[arm] += [
                (launch.began, launch.began + launch.runtime_s, 100 * (value / mean - 1), launch)
                for launch in data.good(arm)
                if (value := launch.number(_METRIC)) is not None
            ]
    return deviations


def _thinned(marks: Sequence[tuple[float, float, float, Launch]]) -> tuple[tuple[float, float, float], ...]:
    """The marks of an arm; of very many, neighbours in time within a session are drawn as their mean."""
    ordered = sorted(marks, key=lambda mark: (mark[3].session, mark[0]))
    size = math.ceil(len(ordered) / _MOST_MARKS)
    if size <= 1:
        return tuple((start, end, value) for start, end, value, _ in ordered)
    thinned: list[tuple[float, float, float]] = []
    for _, members in groupby(ordered, key=lambda mark: mark[3].session):
        neighbours = list(members)
        for at in range(0, len(neighbours), size):
            part = neighbours[at : at + size]
            thinned.append((part[0][0], part[-1][1], sum(value for *_, value, _ in part) / len(part)))
    return tuple(thinned)


def _chart(
    ident: str,
    adapter: str,
    points: Sequence[PointData],
    moments: Sequence[TimelineEvent],
    spans: Sequence[Span],
    times: tuple[float, float],
    arms: Sequence[str],
) -> DrawnChart | None:
    deviations = _deviations(points, arms)
    distances = [abs(value) for marks in deviations.values() for *_, value, _ in marks]
    if not distances:
        return None
    across = clock_axis(*times)
    events = [
        EventMark(moment.at, moment.badge, moment.serious) for moment in moments if times[0] <= moment.at <= times[1]
    ]
    whose = "the baseline's" if len(arms) > 1 else "their"
    title = f"{adapter}: IOPS of each launch against {whose} mean at the same point"
    described = (
        "One mark per launch (of many, the mean of neighbours) over time; candidate sessions are tinted; "
        "session means in the table below."
    )
    traces = [Trace(arm, _thinned(marks), joined=False) for arm, marks in deviations.items()]
    up = percent_axis(max(_REACH, *distances))
    picture = time_chart(ident, title, described, traces, across, up, spans=spans, events=events, zero=0.0)
    sessions: dict[tuple[str, str], list[float]] = {}
    for arm, marks in deviations.items():
        for *_, value, launch in marks:
            sessions.setdefault((launch.session, arm), []).append(value)
    rows = tuple(
        (
            session,
            arm,
            percent(sum(values) / len(values), f"samples:session:{adapter}:{session}:{arm}"),
            percent(min(values), f"samples:session-low:{adapter}:{session}:{arm}"),
            percent(max(values), f"samples:session-high:{adapter}:{session}:{arm}"),
            count(len(values), f"samples:session-count:{adapter}:{session}:{arm}"),
        )
        for (session, arm), values in sorted(sessions.items())
    )
    heads = ("Session", "Arm", "Mean", "Lowest", "Highest", "Launches")
    return DrawnChart(title, picture, Table(title, heads, rows), wide=True)


def _sessions(material: Material, bench: str, points: Sequence[PointData]) -> Table:
    numbers: dict[str, int] = {}
    for data in points:
        for launch in data.every():
            numbers[launch.session] = numbers.get(launch.session, 0) + 1
    rows: list[tuple[ShownNumber | str, ...]] = []
    planned: Mapping[str, Any] = {session.id: session for session in material.run.sessions}
    for entry in material.document.get("provisioned") or ():
        if entry.get("bench") != bench:
            continue
        name = str(entry.get("session"))
        session = planned.get(name)
        rows.append(
            (
                name,
                " and ".join(session.arms) if session else str(entry.get("arm") or ""),
                str(session.change) if session else "",
                str(entry.get("kernel") or ""),
                str(entry.get("boot_id") or ""),
                count(numbers.get(name, 0), f"samples:launches:{bench}:{name}"),
            )
        )
    return Table("Sessions", ("Session", "Arm", "Change before it", "Kernel", "Boot id", "Launches"), tuple(rows))


_END = ("run_finished", "checks_planned", "closed", "judged", "published")
_CONSOLE = ("console_started", "console_kept")
_ROUTINE = ("planned", "environment", *_CONSOLE, "session_started", "limited", "block_started", "power_step", *_END)


@dataclass(frozen=True)
class TimelineEvent:
    """Something that happened `at` seconds since 1970; `badge` names it in charts and in the table that explains it.

    `recovery` says how the campaign recovered from it; empty where it did not, or where nothing was lost.
    """

    at: float
    bench: str
    kind: str
    time: str
    session: str
    text: str
    serious: bool
    finding: bool = False
    recovery: str = ""
    badge: str = ""

    @property
    def headline(self) -> str:
        return telling_line(self.text)


def moments_of(material: Material) -> tuple[TimelineEvent, ...]:
    """Events that are not routine, and findings of the kernel log, in the order of time; badges E1.. and K1.. ."""
    unnumbered = [moment for event in material.events for moment in _moments(material.run, event)]
    unnumbered.sort(key=lambda moment: moment.at)
    numbers: Counter[str] = Counter()
    moments = []
    for moment in unnumbered:
        letter = "K" if moment.finding else "E"
        numbers[letter] += 1
        moments.append(replace(moment, badge=f"{letter}{numbers[letter]}"))
    return tuple(moments)


def _moments(run: store.Run, event: store.Event) -> Iterator[TimelineEvent]:
    at = _at(event.time)
    ended = event.kind == "block_finished"
    if ended:
        for finding in event.fields.get("findings") or ():
            yield _finding(finding, event, at)
    if event.kind in _ROUTINE or (ended and event.text("outcome") in ("", "done")):
        return
    recovery = recovered(run, event)
    yield TimelineEvent(
        at,
        event.bench or "",
        EVENT_WORDS.get(event.kind, event.kind),
        second(event.time),
        event.text("session"),
        _text(event),
        # what was put right is told where it happened, and is no trouble of the outcome
        serious=(ended or event.kind in SERIOUS_EVENTS) and not recovery,
        recovery=recovery,
    )


_SHOWN_LINES = 40
"""Of what a bench that hung has shown: its last lines hold the panic."""


def _text(event: store.Event) -> str:
    if event.kind == "recovery_step":
        shown = event.text("evidence").splitlines()[-_SHOWN_LINES:]
        return "\n".join([f"{event.text('step')}: {event.text('text')}", *shown])
    if event.kind == "bench_hung":
        ended = event.text("ended_by") or "nothing: the bench is out of service"
        where = event.text("turn") or event.text("block") or f"the preparation of session {event.text('session')}"
        return f"{event.text('text')} in {where}; ended after {event.fields['seconds']:.0f} s by {ended}"
    for name in ("text", "reason", "message", "conclusion", "drive", "outcome"):
        if event.text(name):
            return event.text(name)
    return ""


def _at(text: str) -> float:
    try:
        return clock(text)
    except ValueError:
        return 0.0


def _finding(finding: object, event: store.Event, ended: float) -> TimelineEvent:
    """One finding; one that only knows the time since boot stands where its batch ended."""
    bench, session = event.bench or "", event.text("session")
    if not isinstance(finding, dict):
        return TimelineEvent(
            ended, bench, "kernel log", second(event.time), session, str(finding), serious=True, finding=True
        )
    lines = finding.get("lines") or [finding.get("line") or finding.get("text") or ""]
    shown = [str(line) for line in lines]
    number = finding.get("count")
    if isinstance(number, int) and number > len(shown):
        shown.append(f"… {number} lines in all")
    word = str(finding.get("kind") or "kernel log")
    title = KINDS.get(word)
    where = " ".join(str(finding[name]) for name in ("adapter", "point") if finding.get(name))
    return TimelineEvent(
        _finding_at(finding.get("time"), ended),
        bench,
        title or word,
        second(finding.get("time") or event.time),
        ", ".join(filter(None, [session, where])),
        "\n".join(shown),
        serious=finding.get("severity") != "warning",
        finding=True,
    )


def _finding_at(time: object, otherwise: float) -> float:
    if isinstance(time, str):
        return _at(time) or otherwise
    if isinstance(time, (int, float)) and time > 1e9:
        return float(time)
    return otherwise


EVENT_WORDS: dict[str, str] = {
    "kernel_panic": "Kernel panic",
    "failed": "Campaign failed",
    "provision_failed": "Provisioning failed",
    "restore_failed": "Restoring failed",
    "session_lost": "Session lost",
    "unplugged": "Drive unplugged",
    "bench_hung": "Bench hung",
    "recovery_step": "Bringing the bench back",
    "resumed": "Run resumed",
    "checks_corrected": "Checks corrected",
    "note": "Note",
    "noted": "Somebody's note",
    "restored": "Bench restored",
    "powered_on": "Bench powered on",
    "power_switched": "Power of the bench",
    "block_finished": "Block not finished",
    "session_planned": "Session added",
}

SERIOUS_EVENTS = (
    "kernel_panic",
    "failed",
    "provision_failed",
    "restore_failed",
    "session_lost",
    "unplugged",
    "bench_hung",
)
