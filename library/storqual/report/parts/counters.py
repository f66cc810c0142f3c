# SPDX-License-Identifier: Apache-2.0
"""What error counters of drives and links counted while blocks ran, arm beside arm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from storqual.report.cells import ChartTable
from storqual.report.figures import DASH, Figure, count, percent, seconds
from storqual.report.material import ARMS
from storqual.report.view import ErrorCounters
from storqual.run import planned_session
from storqual_core.host.counters import ERROR_WORDS

if TYPE_CHECKING:
    from storqual.report.material import Material


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
        table=ChartTable("Error counters that moved while blocks ran", heads, tuple(rows)),
    )


def _heading(arm: str) -> str:
    return "Both arms in turn" if arm == _BOTH else arm.capitalize()


if TYPE_CHECKING:
    from storqual.report.material import Material


_HEADS = ("Stage", "Result", "Rounds", "Drift", "from", "to", "SNIA range", "SNIA excursion")
_NOTHING = (DASH,) * 6

Row = tuple[Figure | str, ...]


def preconditioning_of(material: Material, bench: str) -> ChartTable:
    """The table of a bench; without rows where nothing was done."""
    rows: list[Row] = []
    for at, entry in enumerate(material.document.get("preconditioned") or ()):
        if entry["bench"] == bench:
            rows += _rows(entry["report"], f"run:/preconditioned/{at}/report")
    return ChartTable("Drives before the first launch", _HEADS, tuple(rows))


def _rows(report: dict[str, Any], source: str) -> Iterator[Row]:
    for drive, done in (report.get("purge") or {}).items():
        yield (f"Purge of {drive}", str(done), *_NOTHING)
    fill = report.get("fill")
    if fill:
        yield ("Fill", seconds(fill["seconds"], f"{source}/fill/seconds"), *_NOTHING)
    steady = report.get("steady")
    if steady:
        at = f"{source}/steady"
        drift = steady.get("drift") or (None, None, None)
        snia = steady.get("snia") or {}
        yield (
            "Steady state",
            "steady" if steady.get("steady") else "not steady",
            count(steady["rounds"], f"{at}/rounds"),
            *(_share(value, f"{at}/drift/{place}") for place, value in enumerate(drift)),
            *(_share(snia.get(name), f"{at}/snia/{name}") for name in ("range", "excursion")),
        )


def _share(value: float | None, source: str) -> Figure:
    """A fraction in percent."""
    return percent(None if value is None else 100 * value, source)
