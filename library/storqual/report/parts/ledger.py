# SPDX-License-Identifier: Apache-2.0
"""What was covered, what was written where, what failures were accepted, and what was done to drives before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.report.criterion import Criterion, place_name
from storqual.report.figures import DASH, NONE, Figure, count, percent, seconds
from storqual.report.material import Material
from storqual.report.view import ChartTable


@dataclass(frozen=True)
class SkippedRow:
    """A planned point that was not measured; without a reason it is a hole."""

    where: str
    reason: str
    hole: bool


@dataclass(frozen=True)
class CoverageLedger:
    """The ledger: planned x measured x skipped, in total, per adapter, and what is missing."""

    table: ChartTable
    skipped: tuple[SkippedRow, ...]


@dataclass(frozen=True)
class Guard:
    """What was written, where; `applies` is false for files on this machine."""

    applies: bool
    sectors: Figure
    disks: ChartTable


@dataclass(frozen=True)
class WaiverRow:
    """A failure that somebody accepted."""

    criterion: str
    href: str
    owner: str
    reason: str
    reference: str
    expiry: str


def coverage_of(material: Material) -> CoverageLedger:
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
            f"{place_name(benches, key[0], key[1])} {key[2]}".strip(), reason or "no reason was recorded", not reason
        )
        for key, reason in missing.items()
    )
    return CoverageLedger(
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
    for drive in report.get("as_found") or ():
        yield (f"{drive}, no flash", "measured as it was found: SNIA's PTS is for flash", *_NOTHING)
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
