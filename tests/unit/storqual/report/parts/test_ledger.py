# SPDX-License-Identifier: Apache-2.0
"""Tests of counters, of errors by terabyte and of what was done to drives before the first launch."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual.judge.verdict import judge_run
from storqual.report import build_report
from storqual.report.build import pages_of, render
from storqual.report.material import Material, read_material
from storqual.report.parts.ledger import error_counters_of, paths_of
from storqual.run.events import FIRST_DIGEST
from storqual.run.layout import dump_line, sha256_of
from storqual.run.measurements import measurements
from storqual.statistics.counts import most_events
from tests.support.judged_reports import QUICK, judged
from tests.support.make_run import make_run
from tests.support.report_pages import read_page
from tests.support.synthetic_shape import drive_id


def block(session: str, **errors: int) -> dict[str, Any]:
    disk = {"id": "0x5000c50015ea0000", "wwn": "0x5000c50015ea0000", "claimed": True, "system": ""}
    disks = {"sdb": {**disk, "write_sectors_before": 0, "write_sectors_after": 0, "errors": errors}}
    where = {"bench": "vbench", "session": session, "block": f"{session}-b02"}
    return {"kind": "block_finished", **where, "outcome": "done", "boot_id": session, "end": {"disks": disks}}


def coverage(folder: Path, *events: dict[str, Any]) -> str:
    return read_page(build_report(judged(folder, points=QUICK[:1], events=events))).section("coverage").text()


def test_what_moved_is_told_per_arm(tmp_path: Path) -> None:
    """Sessions of an arm are added up; s01 and s04 are the baseline's."""
    moved = [block("s01", ioerr_cnt=1), block("s04", ioerr_cnt=2), block("s02", ioerr_cnt=0, invalid_dword_count=9)]
    text = coverage(tmp_path, *moved)
    assert "0x5000c50015ea0000 vbench claimed commands that ended with an error 3 0" in text
    assert "0x5000c50015ea0000 vbench claimed invalid dwords on the link 0 9" in text


def test_what_was_watched_and_stayed_is_said(tmp_path: Path) -> None:
    assert "No error counter of 1 watched drives" in coverage(tmp_path / "quiet", block("s01", ioerr_cnt=0))
    assert "No error counter was recorded" in coverage(tmp_path / "old")


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


STEADY: dict[str, Any] = {
    "rounds": 12,
    "steady": False,
    "drift": [-0.0712, -0.0834, -0.0590],
    "window_s": 360,
    "snia": {"range": 0.1234, "excursion": 0.0678, "steady": True},
}


def run_with(folder: Path, steady: dict[str, Any], report: dict[str, Any] | None = None, **shape: Any) -> Path:
    """A judged run whose first block preconditioned the drives."""
    path = make_run(folder, noise=0.002, sessions=8, **shape)
    done = {"purge": {"0x5": "discarded by blkdiscard"}, "fill": {"seconds": 1234.5}, "steady": steady}
    report = done if report is None else report
    previous, lines = FIRST_DIGEST, []
    for text in (path / "events.jsonl").read_text(encoding="utf-8").splitlines():
        event = {**json.loads(text), "previous": previous}
        if event["kind"] == "block_finished" and event["block"] == "s01-b01":
            event["preconditioned"] = report
        lines.append(dump_line(event))
        previous = sha256_of(lines[-1][:-1])
    (path / "events.jsonl").write_bytes(b"".join(lines))
    document = json.loads((path / "run.json").read_text(encoding="utf-8"))
    document["preconditioned"] = [{"bench": "vbench", "block": "s01-b01", "report": report}]
    (path / "run.json").write_text(json.dumps(document), encoding="utf-8")
    judge_run(path)
    return path


def page(path: Path) -> str:
    return render(dict(pages_of(read_material(path)))["report.html"])


def test_the_page_tells_each_stage_with_its_numbers(tmp_path: Path) -> None:
    text = page(run_with(tmp_path, STEADY)).replace("\u202f", " ").replace("\u00a0", " ")
    for phrase in ("discarded by blkdiscard", "not steady", "\u22127.12 %", "+12.3 %", "+6.78 %"):
        assert phrase in text, phrase
    assert "Drives before the first launch" not in page(make_judged(tmp_path / "plain"))


SETTLED = {**STEADY, "steady": True}
AS_FOUND = "disks were measured as they were found"
NOT_CONDITIONED = "not purged, preconditioned or brought to a steady state"


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({"as_found": ["0x5000c50015ea0000"]}, [AS_FOUND]),
        ({"as_found": ["0x5000c50015ea0000"], "fill": {"seconds": 9.0}, "steady": SETTLED}, [AS_FOUND]),
        ({"as_found": ["0x5000c50015ea0000"], "fill": {"seconds": 9.0}}, [AS_FOUND, NOT_CONDITIONED]),
        ({"fill": {"seconds": 9.0}, "steady": SETTLED}, []),
    ],
)
def test_the_page_names_disks_that_were_measured_as_they_were_found(
    tmp_path: Path, report: dict[str, Any], expected: list[str]
) -> None:
    text = page(run_with(tmp_path, SETTLED, report))
    assert ("0x5000c50015ea0000, no flash" in text) is ("as_found" in report)
    assert [phrase for phrase in (AS_FOUND, NOT_CONDITIONED) if phrase in text] == expected


def make_judged(folder: Path) -> Path:
    path = make_run(folder)
    judge_run(path)
    return path


@pytest.mark.parametrize(("design", "outcome"), [("sessions", "INCONCLUSIVE"), ("interleaved", "PASS")])
def test_drives_that_were_not_steady_decide_nothing_unless_the_arms_alternated(
    tmp_path: Path, design: str, outcome: str
) -> None:
    launches = 8 if design == "interleaved" else 1
    path = run_with(tmp_path, STEADY, design=design, launches=launches)
    verdict = json.loads((path / "verdict.json").read_text(encoding="utf-8"))
    required = {entry["outcome"] for entry in verdict["criteria"] if entry["required"]}
    assert required == {outcome}
    assert any("the drives were not steady after 12 rounds: drift -7.1" in warning for warning in verdict["warnings"])
    settled = run_with(tmp_path / "settled", {**STEADY, "steady": True}, design=design, launches=launches)
    verdict = json.loads((settled / "verdict.json").read_text(encoding="utf-8"))
    assert {entry["outcome"] for entry in verdict["criteria"] if entry["required"]} == {"PASS"}


def test_what_paths_and_their_ports_carried_is_told_by_arm(tmp_path: Path) -> None:
    material = material_of(tmp_path)
    samples = material.run.path / "samples.jsonl"
    lines = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    key = (lines[0]["bench"], lines[0]["adapter"], lines[0]["point"])
    ends = ("0x21 to 0x50", "0x22 to 0x50", "0x23 to 0x50")
    for line in lines:
        if (line["bench"], line["adapter"], line["point"]) == key and line["arm"] == "candidate":
            wall = int(line["primitives"]["wall_ns"] / 1e9)
            line["primitives"]["wall_ns"] = wall * 10**9
            line["primitives"]["path_ios"] = dict(zip(ends, (300 * wall, 100 * wall, 0), strict=True))
            line["primitives"]["path_bytes"] = dict(zip(ends, (3_000_000 * wall, 10**6 * wall, 0), strict=True))
    samples.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    points = measurements(material.run, {}, ["path_fairness"], histograms=True).points
    fair = points[key].values("candidate", "path_fairness")
    assert fair == [pytest.approx(100 * 400**2 / (3 * (300**2 + 100**2)))] * len(fair)
    paths, ports = paths_of(replace(material, points=points))
    rows = [(str(row[1]), row[2], *(getattr(cell, "text", cell) for cell in row[3:])) for row in paths.rows]
    assert [row[:2] for row in rows] == [("Candidate", name) for name in ends]
    assert [re.sub(r"[^0-9.]", "", str(cell)) for cell in rows[0][2:]] == ["300", "3", "75"]
    # the target's one port has all of it
    assert [row[2] for row in ports.rows] == ["0x21", "0x22", "0x23"]
    shares = [re.sub(r"[^0-9.]", "", row[5].text) for row in ports.rows]  # type: ignore[union-attr]
    assert shares == ["75", "25", "0"]
    page = render(dict(pages_of(replace(material, points=points)))["report.html"])
    assert "Ports of paths" in page
    assert "0x22 to 0x50" in page


def test_a_run_without_several_paths_says_nothing_of_them(tmp_path: Path) -> None:
    assert [table.rows for table in paths_of(material_of(tmp_path))] == [(), ()]
