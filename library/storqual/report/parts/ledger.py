# SPDX-License-Identifier: Apache-2.0
"""What was covered and what not, what was written where, and which failures somebody accepted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from storqual.report.cells import ChartTable
from storqual.report.criterion import place_name
from storqual.report.figures import DASH, NONE, Figure, count
from storqual.report.view import Coverage, Guard, SkippedRow, WaiverRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storqual.report.criterion import Criterion
    from storqual.report.material import Material


def coverage_of(material: Material) -> Coverage:
    """Planned, measured, skipped and unexplained points per adapter and workload, and every point that is missing."""
    benches = list(material.run.benches)
    covered = material.verdict.get("coverage") or {}
    missing = {
        (str(entry.get("bench") or ""), str(entry.get("adapter") or ""), str(entry.get("point"))): str(
            entry.get("reason") or ""
        )
        for entry in covered.get("skipped") or ()
    }
    planned: Counter[tuple[str, str]] = Counter()
    skipped: Counter[tuple[str, str]] = Counter()
    holes: Counter[tuple[str, str]] = Counter()
    launches: Counter[tuple[str, str]] = Counter()
    for key, data in material.points.items():
        cell = (place_name(benches, key[0], key[1]), data.planned.workload)
        planned[cell] += 1
        launches[cell] += sum(len(arm) for arm in data.launches.values())
        # older ledgers name the point only
        names = (key, ("", key[1], key[2]), ("", "", key[2]))
        reason = next((missing[name] for name in names if name in missing), None)
        if reason is not None:
            (skipped if reason else holes)[cell] += 1
    rows: list[tuple[Figure | str, ...]] = []
    for cell in planned:
        where = f"count:coverage:{cell[0]}:{cell[1]}"
        done = planned[cell] - skipped[cell] - holes[cell]
        numbers = (planned[cell], done, skipped[cell], holes[cell], launches[cell])
        rows.append((f"{cell[0]} {cell[1]}", *(count(number, f"{where}:{at}") for at, number in enumerate(numbers))))
    heads = ("Adapter and workload", "Planned", "Measured", "Skipped", "Unexplained", "Launches")
    listed = tuple(
        SkippedRow(
            f"{place_name(benches, key[0], key[1])} {key[2]}".strip(), reason or "no reason is on record", not reason
        )
        for key, reason in missing.items()
    )
    return Coverage(
        ChartTable("Coverage ledger", heads, tuple(rows)), tuple(sorted(listed, key=lambda row: not row.hole))
    )


def guard_of(material: Material) -> Guard:
    """The guard's last layer: sectors written to every disk, and how many of them nobody allowed."""
    guard = material.document.get("guard") or {}
    applies = bool(guard.get("applies", True))
    value = material.verdict.get("sectors_written_outside_claims")
    disks = [disk for disk in guard.get("disks") or () if isinstance(disk, dict)]
    rows: list[tuple[Figure | str, ...]] = []
    for number, disk in enumerate(disks):
        written = disk.get("sectors_written")
        shown = count(written, f"run:/guard/disks/{number}/sectors_written") if isinstance(written, int) else NONE
        role = "claimed" if disk.get("claimed") else "system" if disk.get("system") else "unclaimed"
        rows.append(
            (str(disk.get("disk") or DASH), str(disk.get("bench") or ""), str(disk.get("wwn") or DASH), role, shown)
        )
    heads = ("Disk", "Bench", "WWN", "Role", "Sectors written")
    return Guard(
        applies=applies,
        sectors=count(value if isinstance(value, int) else None, "verdict:/sectors_written_outside_claims"),
        disks=ChartTable("Disks of the bench", heads, tuple(rows)),
    )


def waivers_of(rows: Sequence[Criterion]) -> tuple[WaiverRow, ...]:
    """Every waiver that covers a failure."""
    found: list[WaiverRow] = []
    for row in rows:
        waiver = row.fields.get("waiver")
        if isinstance(waiver, dict):
            texts = [str(waiver.get(name) or DASH) for name in ("owner", "reason", "reference", "expiry")]
            name = " ".join(filter(None, (row.text(part) for part in ("id", "adapter", "point"))))
            found.append(WaiverRow(name, f"#{row.ident}", *texts))
    return tuple(found)
