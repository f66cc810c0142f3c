# SPDX-License-Identifier: Apache-2.0
"""A bench's campaign over time: every launch against the baseline at its point, sessions, and what happened.

It shows drift (the baseline leaving zero), a loss (the candidate beside zero) and the cause (an event then).
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from storqual.report.axes import clock_axis, percent_axis
from storqual.report.cells import Chart, ChartTable
from storqual.report.charts.steps import Event, Span, Trace, time_chart
from storqual.report.figures import Figure, count, percent
from storqual.report.parts.counters import preconditioning_of
from storqual.report.view import LogFinding, Timeline
from storqual.report.words import second

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from storqual.report.material import Material
    from storqual.report.moments import Moment
    from storqual.run import Launch
    from storqual.run.measurements import PointData


_METRIC = "iops"
_REACH = 1.0
_MOST_MARKS = 300


def findings_of(moments: Iterable[Moment]) -> tuple[LogFinding, ...]:
    """The kernel log's findings as rows."""
    return tuple(
        LogFinding(one.badge, second(one.time), one.session, one.kind, one.text) for one in moments if one.finding
    )


def timeline_of(material: Material, bench: str, moments: Sequence[Moment], ident: str) -> Timeline:
    """The charts, events and sessions of one bench."""
    points = [data for key, data in material.points.items() if key[0] == bench]
    mine = [moment for moment in moments if moment.bench in ("", bench)]
    adapters: defaultdict[str, list[PointData]] = defaultdict(list)
    for data in points:
        adapters[data.planned.adapter].append(data)
    launches = [launch for data in points for launch in data.every()]
    charts: list[Chart] = []
    if launches:
        start = min(launch.began for launch in launches)
        end = max(launch.began + max(launch.runtime_s, 1.0) for launch in launches)
        spans = _spans(launches)
        for number, (adapter, members) in enumerate(adapters.items()):
            arms = material.arms
            chart = _chart(f"{ident}-{number}", adapter, members, mine, spans, (start, end), arms)
            if chart is not None:
                charts.append(chart)
    return Timeline(
        bench,
        tuple(charts),
        tuple(m.event() for m in mine if not m.finding),
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
        begin = min(one.began for one in members)
        end = max(one.began + max(one.runtime_s, 1.0) for one in members)
        spans.append(Span(begin, end, f"{name} {arm}".strip(), arm, name))
    return tuple(sorted(spans, key=lambda span: span.start))


def _deviations(
    points: Iterable[PointData], arms: Sequence[str]
) -> dict[str, list[tuple[float, float, float, Launch]]]:
    """(start, end, percent from the reference's mean at the same point, launch) of each arm's good launches.

    The reference is the baseline, of a run with one arm its own mean.
    """
    found: dict[str, list[tuple[float, float, float, Launch]]] = {arm: [] for arm in arms}
    for data in points:
        reference = [value for one in data.good(arms[0]) if (value := one.number(_METRIC)) is not None]
        mean = sum(reference) / len(reference) if reference else 0.0
        if mean <= 0:
            continue
        for arm in arms:
            found[arm] += [
                (one.began, one.began + one.runtime_s, 100 * (value / mean - 1), one)
                for one in data.good(arm)
                if (value := one.number(_METRIC)) is not None
            ]
    return found


def _thinned(marks: Sequence[tuple[float, float, float, Launch]]) -> tuple[tuple[float, float, float], ...]:
    """The marks of an arm; of very many, neighbours in time within a session are drawn as their mean."""
    ordered = sorted(marks, key=lambda mark: (mark[3].session, mark[0]))
    size = math.ceil(len(ordered) / _MOST_MARKS)
    if size <= 1:
        return tuple((start, end, value) for start, end, value, _ in ordered)
    found: list[tuple[float, float, float]] = []
    for _, members in groupby(ordered, key=lambda mark: mark[3].session):
        listed = list(members)
        for at in range(0, len(listed), size):
            part = listed[at : at + size]
            found.append((part[0][0], part[-1][1], sum(value for *_, value, _ in part) / len(part)))
    return tuple(found)


def _chart(
    ident: str,
    adapter: str,
    points: Sequence[PointData],
    moments: Sequence[Moment],
    spans: Sequence[Span],
    times: tuple[float, float],
    arms: Sequence[str],
) -> Chart | None:
    deviations = _deviations(points, arms)
    every = [abs(value) for marks in deviations.values() for *_, value, _ in marks]
    if not every:
        return None
    across = clock_axis(*times)
    events = [
        Event(moment.at, moment.badge, moment.serious) for moment in moments if times[0] <= moment.at <= times[1]
    ]
    whose = "the baseline's" if len(arms) > 1 else "their"
    title = f"{adapter}: IOPS of each launch against {whose} mean at the same point"
    described = (
        "One mark per launch (of many, the mean of neighbours) over time; candidate sessions are tinted; "
        "session means in the table below."
    )
    traces = [Trace(arm, _thinned(marks), joined=False) for arm, marks in deviations.items()]
    up = percent_axis("", max(_REACH, *every))
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
    return Chart(title, picture, ChartTable(title, heads, rows), wide=True)


def _sessions(material: Material, bench: str, points: Sequence[PointData]) -> ChartTable:
    """What each session ran on, and how many launches it has."""
    numbers: dict[str, int] = {}
    for data in points:
        for launch in data.every():
            numbers[launch.session] = numbers.get(launch.session, 0) + 1
    rows: list[tuple[Figure | str, ...]] = []
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
    return ChartTable(
        "Sessions", ("Session", "Arm", "Change before it", "Kernel", "Boot id", "Launches"), tuple(rows)
    )
