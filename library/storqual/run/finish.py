# SPDX-License-Identifier: Apache-2.0
"""What run.json gets at the end of a campaign, computed from events and samples: it can be done again at any time."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from storqual.run.coverage import ledger
from storqual.run.layout import RUN_FILE, locked, now, write_json
from storqual.run.measurements import Measurements, measurements
from storqual.run.records import Event
from storqual.run.run import Run, read_run


def finish_run(path: Path, *, versions: Mapping[str, Any] | None = None, measured: Measurements | None = None) -> Run:
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
        document["versions"] = {**(document.get("versions") or {}), **_versions(run.events), **(versions or {})}
        document["benches"] = _with_environment(run)
        write_json(path / RUN_FILE, document)
    return read_run(path)


def _finished(events: Sequence[Event]) -> str:
    """When something last happened on a bench: a run that is published again was not measured until then."""
    return next((event.time for event in reversed(events) if event.bench is not None), now())


def provisioned(events: Iterable[Event]) -> list[dict[str, Any]]:
    """What each session ran on, from the events that started them: the `provisioned` list of run.json."""
    listed = []
    for event in events:
        if event.kind == "session_started":
            details = event.fields.get("provisioned") or {}
            own = {
                name: value for name, value in event.fields.items() if name not in ("kind", "previous", "provisioned")
            }
            listed.append({"settings": [], "drivers": {}, **details, **own})
    return listed


def guard_ledger(events: Iterable[Event], benches: Mapping[str, Any]) -> dict[str, Any]:
    """Sectors written to disks that no claim covers: per boot, last reading minus first, summed over boots.

    A counter starts again with a boot, and programs other than fio write between blocks: so the first and the last
    reading of each boot count, not the readings around single blocks. System disks are listed and not counted.
    """
    applies = any(bench.get("kind") != "local" for bench in benches.values())
    boots: dict[tuple[str, str, str], dict[str, Any]] = {}
    for event in events:
        end = event.fields.get("end") or {}
        for name, disk in (end.get("disks") or {}).items():
            key = (event.bench or "", event.text("boot_id"), str(disk.get("wwn") or name))
            before, after = int(disk["write_sectors_before"]), int(disk["write_sectors_after"])
            entry = boots.setdefault(key, {**disk, "disk": name, "write_sectors_before": before})
            entry["write_sectors_after"] = after
    totals: dict[tuple[str, str], dict[str, Any]] = {}
    for (bench, _, identity), disk in boots.items():
        entry = totals.setdefault(
            (bench, identity),
            {
                "bench": bench,
                "disk": disk["disk"],
                "wwn": disk.get("wwn"),
                "claimed": bool(disk.get("claimed")),
                "system": bool(disk.get("system")),
                "sectors_written": 0,
            },
        )
        entry["sectors_written"] += disk["write_sectors_after"] - disk["write_sectors_before"]
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
    """The version of fio on each bench, as the benches said it."""
    found: dict[str, str] = {}
    for event in events:
        version = (event.fields.get("start") or {}).get("fio") or event.fields.get("fio")
        if event.bench and version:
            found[event.bench] = str(version)
    return {"fio": found} if found else {}


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
