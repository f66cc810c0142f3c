# SPDX-License-Identifier: Apache-2.0
"""What was measured of what was planned, and all else that run.json gets at the end of a campaign."""

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from storqual.run.event_kinds import FINISHED
from storqual.run.events import of_campaign
from storqual.run.layout import RUN_FILE, locked, now, write_json
from storqual.run.measurements import Measurements, measurements
from storqual.run.records import Event, PlannedPoint, read_launches
from storqual.run.run import Run, read_run


@dataclass(frozen=True, slots=True)
class Skipped:
    """A planned cell that was left out on purpose, and why."""

    bench: str
    adapter: str
    point: str
    reason: str


@dataclass(frozen=True)
class Coverage:
    """Counts are cells (bench, adapter, point). `holes` are cells with neither samples of every arm nor a reason."""

    planned: int
    measured: int
    skipped: tuple[Skipped, ...]
    holes: tuple[PlannedPoint, ...]

    def to_json(self) -> dict[str, Any]:
        """The `coverage` object of run.json and verdict.json; a hole is listed with an empty reason."""
        missing = [*self.skipped, *(Skipped(hole.bench, hole.adapter, hole.point, "") for hole in self.holes)]
        return {
            "planned": self.planned,
            "measured": self.measured,
            "skipped": [
                {"bench": planned.bench, "adapter": planned.adapter, "point": planned.point, "reason": planned.reason}
                for planned in missing
            ],
        }


def coverage(run: Run) -> Coverage:
    """The ledger of a run: a cell is measured when every arm has at least one finished sample there."""
    finished: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for launch in read_launches(run.path):
        if launch.status != "lost":
            finished[launch.key].add(launch.arm)
    return ledger(run.plan.points, finished, run.arms)


def ledger(
    points: Iterable[PlannedPoint], finished: Mapping[tuple[str, str, str], Collection[str]], arms: Iterable[str]
) -> Coverage:
    """The same from the arms that have a sample at each point which is not lost.

    One that was refused counts as measured: its outcome is an ERROR, not a hole.
    """
    expected = set(arms)
    planned = measured = 0
    skipped: list[Skipped] = []
    holes: list[PlannedPoint] = []
    for point in points:
        planned += 1
        if expected <= set(finished.get(point.key, ())):
            measured += 1
        elif point.skipped:
            skipped.append(Skipped(point.bench, point.adapter, point.point, point.skipped))
        else:
            holes.append(point)
    return Coverage(planned, measured, tuple(skipped), tuple(holes))


def finish_run(path: Path, *, measured: Measurements | None = None) -> Run:
    """Write provisioned settings, environment, coverage, overhead and the guard's count into run.json.

    `measured` is what was read of its samples already. Returns the run as it reads now; the plan and the inputs are
    not touched.
    """
    with locked(path):
        run = read_run(path)
        measured = measured or measurements(run, {})
        document = dict(run.document)
        document["finished"] = _finished(run.events)
        document["provisioned"] = provisioned(run.events)
        document["coverage"] = ledger(run.plan.points, measured.finished, run.arms).to_json()
        document["preconditioned"] = [asdict(entry) for entry in run.preconditioned]
        document["guard"] = guard_ledger(run.events, run.benches)
        document["overhead"] = _overhead(measured.overhead_s)
        document["versions"] = {**(document.get("versions") or {}), **_versions(run.events)}
        document["benches"] = _with_environment(run)
        write_json(path / RUN_FILE, document)
    return read_run(path)


def _finished(events: Sequence[Event]) -> str:
    """When something last happened on a bench: a run that is published again was not measured until then."""
    return next((event.time for event in reversed(events) if event.bench is not None and of_campaign(event)), now())


def provisioned(events: Iterable[Event]) -> list[dict[str, Any]]:
    """What each session ran on, from the events that started them: the `provisioned` list of run.json."""
    sessions = []
    for event in events:
        if event.kind == "session_started":
            details = event.fields.get("provisioned") or {}
            fields = {
                name: value for name, value in event.fields.items() if name not in ("kind", "previous", "provisioned")
            }
            sessions.append({"settings": [], "drivers": {}, **details, **fields})
    return sessions


def guard_ledger(events: Iterable[Event], benches: Mapping[str, Any]) -> dict[str, Any]:
    """Sectors written to disks that no claim covers: the growth of each disk's counter, summed over boots.

    A counter starts again with a boot, and when a drive was taken away and came back; programs other than fio write
    between batches, so that its growth from one batch to the next counts as well. A disk that any batch of the run
    claims is claimed in all of it: the members of a volume are written while another configuration is made.
    System disks are listed and not counted. Only what ends a batch, a trial or a program tells of disks.
    """
    applies = any(bench.get("kind") != "local" for bench in benches.values())
    totals: dict[tuple[str, str], dict[str, Any]] = {}
    latest: dict[tuple[str, str, str], int] = {}
    for event in (event for event in events if event.kind in FINISHED):
        end = event.fields.get("end") or {}
        for name, disk in (end.get("disks") or {}).items():
            bench, identity = event.bench or "", str(disk.get("wwn") or name)
            entry = totals.setdefault(
                (bench, identity),
                {
                    "bench": bench,
                    "disk": name,
                    "wwn": disk.get("wwn"),
                    "claimed": False,
                    "system": False,
                    "sectors_written": 0,
                },
            )
            entry["claimed"] = entry["claimed"] or bool(disk.get("claimed"))
            entry["system"] = entry["system"] or bool(disk.get("system"))
            boot = (bench, event.text("boot_id"), identity)
            for count in (int(disk["write_sectors_before"]), int(disk["write_sectors_after"])):
                grown = count - latest.get(boot, count)
                entry["sectors_written"] += grown if grown >= 0 else count
                latest[boot] = count
    outside = sum(d["sectors_written"] for d in totals.values() if not d["claimed"] and not d["system"])
    return {"sectors_written_outside_claims": outside, "disks": list(totals.values()), "applies": applies}


def _overhead(seconds: Sequence[float]) -> dict[str, Any]:
    """Seconds that the bench program adds to fio's own process time, per sample: median, largest, how many."""
    if not seconds:
        return {"seconds_per_sample": None, "largest_seconds": None, "samples": 0}
    return {
        "seconds_per_sample": round(statistics.median(seconds), 6),
        "largest_seconds": round(max(seconds), 6),
        "samples": len(seconds),
    }


def _versions(events: Iterable[Event]) -> dict[str, Any]:
    fio: dict[str, str] = {}
    for event in events:
        version = event.kind == "block_finished" and (event.fields.get("start") or {}).get("fio")
        if event.bench and version:
            fio[event.bench] = str(version)
    return {"fio": fio} if fio else {}


def _with_environment(run: Run) -> dict[str, Any]:
    """The benches of run.json with the fingerprints taken before (the first) and after (the last)."""
    seen: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for event in run.events:
        if event.kind == "environment" and event.bench:
            when = event.text("when")
            if when != "before" or "before" not in seen[event.bench]:
                seen[event.bench][when] = event.fields["facts"]
    return {
        name: {**bench, "environment": {**(bench.get("environment") or {}), **seen.get(name, {})}}
        for name, bench in run.benches.items()
    }
