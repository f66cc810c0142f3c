# SPDX-License-Identifier: Apache-2.0
"""Compatibility over runs: adapter, firmware, driver, drive and kernel; newest result, stale, never run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

from storqual.report.criterion import Criterion, outcome
from storqual.report.documents.document import Document, Row, Section, Table
from storqual.report.figures import DASH
from storqual.report.trend.read import PastRun, read_past

STALE_DAYS = 90
_ORDER = ("FAIL", "ERROR", "INCONCLUSIVE", "MARGINAL", "PASS", "SKIPPED")
_MOST_NEVER = 200


@dataclass(frozen=True)
class Combination:
    """What ran together; a part that nobody recorded is a dash."""

    adapter: str
    firmware: str
    driver: str
    drive: str
    kernel: str

    @property
    def cells(self) -> tuple[str, ...]:
        """In the order of the columns."""
        return self.adapter, self.firmware, self.driver, self.drive, self.kernel


def compatibility(places: Sequence[Path], *, as_of: datetime | None = None) -> Document:
    """The page of the runs at `places`; a result is of the candidate. Raises BadInputError when there is no run."""
    today = as_of or datetime.now(UTC)
    newest: dict[Combination, tuple[PastRun, str]] = {}
    for run in read_past(places):
        for combination, word in _results(run):
            newest[combination] = (run, word)
    oldest = today.replace(tzinfo=today.tzinfo or UTC) - timedelta(days=STALE_DAYS)
    rows = []
    for combination, (run, word) in sorted(newest.items(), key=lambda one: one[0].cells):
        stale = datetime.fromisoformat(run.created) < oldest if run.created else True
        told = f"{run.created[:10]}, stale" if stale else run.created[:10]
        tone = "fail" if word == "FAIL" else ""
        rows.append(Row((*combination.cells, told, run.name), tone, outcome(word)))
    never = list(_never(list(newest)))
    heads = ("Adapter", "Firmware", "Driver", "Drive", "Kernel", "Measured", "Run", "Result")
    ran = Table("Newest result of each combination", heads, tuple(rows), judged=True)
    lacking = Table(
        "Combinations of what was seen that never ran",
        heads[:5],
        tuple(Row(one.cells) for one in never[:_MOST_NEVER]),
    )
    more = len(never) - _MOST_NEVER
    return Document(
        kind="Compatibility",
        title="Adapters, firmware, drivers, drives and kernels",
        subject=(f"As of {today.date().isoformat()}; a result older than {STALE_DAYS} days is stale",),
        sections=(
            Section("results", "Results", (), ran),
            Section(
                "never",
                "Never run",
                (
                    "An adapter's own firmware, drives and drivers with each driver and kernel seen on it."
                    + (f" {more} more are not listed." if more > 0 else ""),
                )
                if never
                else ("Every combination of what was seen has run.",),
                lacking,
            ),
        ),
        foot="Made by storqual from run.json and verdict.json of each run.",
    )


def _results(run: PastRun) -> Iterator[tuple[Combination, str]]:
    """What the candidate ran on, with the worst outcome of the required criteria of each adapter."""
    entries = [entry for entry in run.document.get("provisioned") or () if entry.get("arm") == "candidate"]
    for bench, entry in (run.document.get("benches") or {}).items():
        here: Mapping[str, Any] = next((one for one in reversed(entries) if one.get("bench") == bench), {})
        for alias, adapter in (entry.get("adapters") or {}).items():
            rows = [row for row in run.rows if (row.text("bench"), row.text("adapter")) == (bench, alias)]
            judged = [row for row in rows if row.required and row.outcome != "SKIPPED"]
            if not judged:
                continue
            word = min((_word(row) for row in judged), key=_rank)
            for drive in dict.fromkeys(str(one.get("model") or DASH) for one in adapter.get("drives") or ()):
                yield _combination(adapter, drive, here, _firmware(entry, alias)), word


def _word(row: Criterion) -> str:
    return "PASS with a waiver" if row.waived else row.outcome


def _rank(word: str) -> int:
    return _ORDER.index(word) if word in _ORDER else 3


def _combination(adapter: Mapping[str, Any], drive: str, here: Mapping[str, Any], firmware: str) -> Combination:
    driver = str(adapter.get("driver") or DASH)
    version = ((here.get("drivers") or {}).get(driver) or {}).get("version")
    return Combination(
        adapter=str(adapter.get("model") or DASH),
        firmware=firmware,
        driver=" ".join(filter(None, (driver, str(version or "")))),
        drive=drive,
        kernel=str(here.get("kernel") or DASH),
    )


def _firmware(bench: Mapping[str, Any], alias: str) -> str:
    environment = bench.get("environment") or {}
    looks = [((environment.get(when) or {}).get("adapters") or {}).get(alias) or {} for when in ("after", "before")]
    return next((str(look["firmware"]) for look in looks if look.get("firmware")), DASH)


def _never(seen: Sequence[Combination]) -> Iterator[Combination]:
    """Each adapter with every firmware, driver, drive and kernel that it was seen with, as far as it never ran.

    A part that nobody recorded makes no combination: it may have been any of the others.
    """
    known = set(seen)
    for adapter in dict.fromkeys(one.adapter for one in seen):
        own = [one for one in seen if one.adapter == adapter]
        parts = [
            [part for part in dict.fromkeys(column) if part != DASH] or [DASH]
            for column in zip(*(one.cells[1:] for one in own), strict=True)
        ]
        for cells in product(*parts):
            combination = Combination(adapter, *cells)
            if combination not in known:
                yield combination
