# SPDX-License-Identifier: Apache-2.0
"""What error counters counted: of the kernel around batches, and of drives before and after; by terabyte moved."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from storqual.metrics.rates import TB
from storqual.report.figures import Figure, count, quantity
from storqual.report.material import ARMS, Material
from storqual.report.view import ChartTable, KeyValue
from storqual.run import planned_session
from storqual.statistics.counts import most_events
from storqual_core.host.counters import ERROR_WORDS


@dataclass(frozen=True)
class ErrorCounters:
    """Error counters that moved; `watched` is how many drives have any, None where none were recorded.

    `per_tb` are all of them by what was moved, `silent` what drives do not answer about themselves.
    """

    watched: Figure | None
    table: ChartTable
    per_tb: ChartTable
    silent: tuple[KeyValue, ...]


_NODE = re.compile(r"(?:^smartctl: (?=smartctl:))| of /dev/[^\s:;]+|/dev/[^\s:;]+")
_BOTH = "both"


def error_counters_of(material: Material) -> ErrorCounters:
    """A row for every counter that moved; sessions that measured both arms have a column of their own."""
    arms = {
        (session.bench, session.id): session.arms[0] if len(session.arms) == 1 else _BOTH
        for session in material.run.plan.sessions
    }
    sums: dict[tuple[str, str, str, str], Counter[str]] = {}
    watched: set[tuple[str, str]] = set()
    used: set[str] = set()
    for event in material.events:
        if event.kind != "block_finished":
            continue
        bench, session = str(event.bench or ""), planned_session(event.text("session"))
        arm = arms.get((bench, session), _BOTH)
        for node, disk in ((event.fields.get("end") or {}).get("disks") or {}).items():
            if not disk.get("errors"):
                continue
            name = str(disk.get("id") or disk.get("wwn") or node)
            watched.add((bench, name))
            used.add(arm)
            role = "claimed" if disk.get("claimed") else "system" if disk.get("system") else "unclaimed"
            for counter, number in disk["errors"].items():
                if number:
                    sums.setdefault((bench, name, role, str(counter)), Counter())[arm] += int(number)
    columns = [arm for arm in (*ARMS, _BOTH) if arm in used]
    rows: list[tuple[Figure | str, ...]] = [
        (
            name,
            bench,
            role,
            ERROR_WORDS.get(counter, counter),
            *(count(found[arm], f"count:errors:{bench}:{name}:{counter}:{arm}") for arm in columns),
        )
        for (bench, name, role, counter), found in sums.items()
    ]
    heads = ("Drive", "Bench", "Role", "Counted", *(_heading(arm) for arm in columns))
    return ErrorCounters(
        watched=count(len(watched), "count:errors:watched") if watched else None,
        table=ChartTable("Error counters that moved while batches ran", heads, tuple(rows)),
        per_tb=_per_tb(material, arms),
        silent=tuple(_silent(material)),
    )


def _heading(arm: str) -> str:
    return "Both arms in turn" if arm == _BOTH else arm.capitalize()


Counted = dict[tuple[str, str], tuple[int, set[tuple[str, str]]]]
"""By counter and arm: how often it counted, and the drives (bench, drive) that keep it."""
_LOGGED = ("error", "defect", "invalid_dword", "loss_of_dword", "phy_reset", "disparity", "attribute.")
_MOVED = "throughput_mb_s"


def _per_tb(material: Material, arms: Mapping[tuple[str, str], str]) -> ChartTable:
    """Each error counter with the drives that keep it, how often it counted, and what that excludes."""
    moved = _bytes_moved(material, arms)
    rows: list[tuple[Figure | str, ...]] = []
    for (counter, arm), (counted, drives) in sorted({**_of_blocks(material, arms), **_of_logs(material)}.items()):
        amount = sum(
            value for (bench, drive, of), value in moved.items() if (bench, drive) in drives and arm in (of, _ALL)
        )
        if not amount:
            continue
        at = f"count:per-tb:{counter}:{arm}"
        terabytes = amount / TB
        rows.append(
            (
                ERROR_WORDS.get(counter, counter.replace("_", " ")),
                _ARMS.get(arm, arm.capitalize()),
                count(len(drives), f"{at}:drives"),
                count(counted, f"{at}:counted"),
                quantity(terabytes, "", f"{at}:tb"),
                quantity(counted / terabytes, "", f"{at}:rate"),
                quantity(most_events(counted, 0.05) / terabytes, "", f"{at}:most"),
            )
        )
    heads = ("Counted", "While", "Drives", "Errors", "TB moved", "Errors per TB", "At most, at 95 %")
    return ChartTable("Errors per TB moved", heads, tuple(rows))


_ALL = "all"
_ARMS = {_BOTH: "Both arms in turn", _ALL: "The whole campaign"}


def _of_blocks(material: Material, arms: Mapping[tuple[str, str], str]) -> Counted:
    """What the kernel counted of claimed drives and their links while batches ran."""
    found: Counted = {}
    for event in material.events:
        if event.kind != "block_finished":
            continue
        bench = str(event.bench or "")
        arm = arms.get((bench, planned_session(event.text("session"))), _BOTH)
        for node, disk in ((event.fields.get("end") or {}).get("disks") or {}).items():
            name = str(disk.get("id") or disk.get("wwn") or node)
            for counter, grown in (disk.get("errors") or {}).items() if disk.get("claimed") else ():
                before, drives = found.get((counter, arm), (0, set()))
                found[counter, arm] = (before + int(grown), drives | {(bench, name)})
    return found


def _of_logs(material: Material) -> Counted:
    """What drives counted themselves between the first look and the last; a counter that went back says nothing."""
    looks: defaultdict[tuple[str, str], list[Mapping[str, int]]] = defaultdict(list)
    for event in material.events:
        if event.kind == "environment":
            for drive, log in (event.fields.get("logs") or {}).items():
                looks[str(event.bench or ""), drive].append(log.get("counters") or {})
    found: Counted = {}
    for place, seen in looks.items():
        first, last = seen[0], seen[-1]
        for counter in first if len(seen) > 1 else ():
            if any(word in counter for word in _LOGGED) and last.get(counter, -1) >= first[counter]:
                before, drives = found.get((counter, _ALL), (0, set()))
                found[counter, _ALL] = (before + last[counter] - first[counter], drives | {place})
    return found


def _bytes_moved(material: Material, arms: Mapping[tuple[str, str], str]) -> dict[tuple[str, str, str], float]:
    """Bytes that launches moved, by bench, drive and arm; a launch's are spread evenly over its drives."""
    found: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    for data in material.points.values():
        for launch in data.every():
            rate = launch.number(_MOVED)
            arm = arms.get((launch.bench, planned_session(launch.session)), _BOTH)
            for drive in data.planned.drives if rate else ():
                share = (rate or 0.0) * 1e6 * launch.runtime_s / len(data.planned.drives)
                found[launch.bench, drive, arm] += share
    return dict(found)


def _silent(material: Material) -> Iterator[KeyValue]:
    """What drives did not answer about themselves, and tools that a bench does not have: one line each."""
    told: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for event in material.events:
        for drive, log in (event.fields.get("logs") or {}).items() if event.kind == "environment" else ():
            for tool in log.get("missing") or ():
                told[f"{tool} is not installed on {event.bench}"].setdefault(drive)
            for sentence in log.get("unread") or ():
                told[_without_node(sentence)].setdefault(drive)
            if not any(log.get(name) for name in ("counters", "unread", "missing")):
                told["responds, but reports no counter"].setdefault(drive)
    yield from (KeyValue(sentence, tuple(drives)) for sentence, drives in told.items())


def _without_node(sentence: str) -> str:
    """A sentence without the kernel's name of the drive, so that drives which answer alike are told together."""
    return _NODE.sub("", sentence.partition("; command:")[0]).replace("  ", " ").strip()
