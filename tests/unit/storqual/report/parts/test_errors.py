# SPDX-License-Identifier: Apache-2.0
"""Errors by what was moved, and what drives do not answer of themselves, on the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from storqual.judge.verdict import judge_run
from storqual.report.build import pages_of, render
from storqual.report.material import Material, read_material
from storqual.report.parts.ledger import error_counters_of
from storqual.statistics.counts import most_events
from tests.support.make_run import make_run
from tests.support.synthetic_shape import drive_id

DRIVE = drive_id("sym", 0)
SILENT = drive_id("sym", 1)
UNREAD = "the log pages of /dev/sg4: the drive does not know this command; command: sg_logs -a /dev/sg4"


def log(**counters: int) -> dict[str, Any]:
    """What a drive told, by counters whose first underscore is a point."""
    named = {name.replace("_", ".", 1): count for name, count in counters.items()}
    return {"counters": named, "answered": ["smartctl"], "unread": [], "missing": []}


def material_of(folder: Path, **shape: Any) -> Material:
    """A judged run in which one drive told its counters, and another nothing."""
    silent = {SILENT: {"counters": {}, "answered": [], "unread": [UNREAD], "missing": []}}
    looks = (
        {DRIVE: log(read_total_errors_corrected=40, link_invalid_dword_count=7, read_gigabytes=5), **silent},
        {DRIVE: log(read_total_errors_corrected=43, link_invalid_dword_count=2, read_gigabytes=9), **silent},
    )
    run = make_run(folder, noise=0.002, logs=looks, **shape)
    judge_run(run)
    return read_material(run)


def bytes_of(run: Path, drive: str, arm: str = "") -> float:
    """What launches moved on a drive, from the samples themselves."""
    lines = [json.loads(line) for line in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    points = json.loads((run / "run.json").read_text(encoding="utf-8"))["plan"]["points"]
    drives = {(point["adapter"], point["point"]): point["drives"] for point in points}
    total = 0.0
    for line in lines:
        mine = drives[line["adapter"], line["point"]]
        if drive in mine and arm in ("", line["arm"]):
            moved = sum(line["primitives"].get(f"{way}_bytes", 0) for way in ("read", "write"))
            total += moved / len(mine)
    return total


def test_errors_are_told_by_terabyte_with_what_they_exclude(tmp_path: Path) -> None:
    material = material_of(tmp_path, errors={"iotmo_cnt": 0, "ioerr_cnt": 2})
    rows = {(str(row[0]), str(row[1])): row for row in error_counters_of(material).per_tb.rows}
    errors = rows["commands that ended with an error", "Baseline"]
    terabytes = bytes_of(material.run.path, DRIVE, "baseline") / 1e12
    _, _, drives, counted, moved, rate, most = (getattr(cell, "value", None) for cell in errors)
    assert (drives, counted) == (1, 2)
    assert moved == pytest.approx(terabytes, rel=0.01)
    assert rate == pytest.approx(2 / terabytes, rel=0.01)
    assert most == pytest.approx(most_events(2, 0.05) / terabytes, rel=0.01)
    none = rows["commands that timed out", "Baseline"]
    assert none[3].value == 0  # type: ignore[union-attr]
    assert none[6].value == pytest.approx(2.9957 / terabytes, rel=0.01)  # type: ignore[union-attr]


def test_what_drives_count_themselves_is_of_the_whole_campaign(tmp_path: Path) -> None:
    """A counter that went back began anew, and one of use is no error."""
    material = material_of(tmp_path)
    rows = {str(row[0]): row for row in error_counters_of(material).per_tb.rows}
    assert list(rows) == ["read.total errors corrected"]
    row = rows["read.total errors corrected"]
    assert (row[1], row[3].value) == ("The whole campaign", 3)  # type: ignore[union-attr]
    terabytes = bytes_of(material.run.path, DRIVE) / 1e12
    assert row[4].value == pytest.approx(terabytes, rel=0.01)  # type: ignore[union-attr]


def test_what_a_drive_does_not_answer_is_on_the_page(tmp_path: Path) -> None:
    page = render(dict(pages_of(read_material(material_of(tmp_path).run.path)))["report.html"])
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    assert f"the log pages: the drive does not know this command: {SILENT}" in text
    assert "Errors per TB moved" in text
