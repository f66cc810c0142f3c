# SPDX-License-Identifier: Apache-2.0
"""Error counters in the report: what moved in which arm, what was watched and did not, what nobody recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from storqual.report import build_report
from tests.support.judged_reports import QUICK, judged
from tests.support.report_pages import read_page


def block(session: str, **errors: int) -> dict[str, Any]:
    """A finished block with the counters of one claimed drive."""
    disk = {"id": "0x5000c50015ea0000", "wwn": "0x5000c50015ea0000", "claimed": True, "system": ""}
    disks = {"sdb": {**disk, "write_sectors_before": 0, "write_sectors_after": 0, "errors": errors}}
    where = {"bench": "vbench", "session": session, "block": f"{session}-b02"}
    return {"kind": "block_finished", **where, "outcome": "done", "boot_id": session, "end": {"disks": disks}}


def coverage(folder: Path, *events: dict[str, Any]) -> str:
    """The text of the section that shows counters."""
    return read_page(build_report(judged(folder, points=QUICK[:1], events=events))).section("coverage").text()


def test_what_moved_is_told_per_arm(tmp_path: Path) -> None:
    """Sessions of an arm are added up; s01 and s04 are the baseline's."""
    moved = [block("s01", ioerr_cnt=1), block("s04", ioerr_cnt=2), block("s02", ioerr_cnt=0, invalid_dword_count=9)]
    told = coverage(tmp_path, *moved)
    assert "0x5000c50015ea0000 vbench claimed commands that ended with an error 3 0" in told
    assert "0x5000c50015ea0000 vbench claimed invalid dwords on the link 0 9" in told


def test_what_was_watched_and_stayed_is_said(tmp_path: Path) -> None:
    assert "No error counter of 1 watched drives" in coverage(tmp_path / "quiet", block("s01", ioerr_cnt=0))
    assert "No error counter was recorded" in coverage(tmp_path / "old")
