# SPDX-License-Identifier: Apache-2.0
"""What was done to drives before they were measured, on the page and in the verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.judge.verdict import judge_run
from storqual.report.build import pages_of, render
from storqual.report.material import read_material
from storqual.run.events import FIRST_DIGEST
from storqual.run.layout import dump_line, sha256_of
from tests.support.make_run import make_run

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
    """The report's first page."""
    return render(dict(pages_of(read_material(path)))["report.html"])


def test_the_page_tells_each_stage_with_its_numbers(tmp_path: Path) -> None:
    text = page(run_with(tmp_path, STEADY)).replace("\u202f", " ").replace("\u00a0", " ")
    for said in ("discarded by blkdiscard", "not steady", "\u22127.12 %", "+12.3 %", "+6.78 %"):
        assert said in text, said
    assert "Drives before the first launch" not in page(make_judged(tmp_path / "plain"))


SETTLED = {**STEADY, "steady": True}
AS_FOUND = "disks were measured as they were found"
NOT_CONDITIONED = "not purged, preconditioned or brought to a steady state"


@pytest.mark.parametrize(
    ("report", "told"),
    [
        ({"as_found": ["0x5000c50015ea0000"]}, [AS_FOUND]),
        ({"as_found": ["0x5000c50015ea0000"], "fill": {"seconds": 9.0}, "steady": SETTLED}, [AS_FOUND]),
        ({"as_found": ["0x5000c50015ea0000"], "fill": {"seconds": 9.0}}, [AS_FOUND, NOT_CONDITIONED]),
        ({"fill": {"seconds": 9.0}, "steady": SETTLED}, []),
    ],
)
def test_the_page_names_disks_that_were_measured_as_they_were_found(
    tmp_path: Path, report: dict[str, Any], told: list[str]
) -> None:
    text = page(run_with(tmp_path, SETTLED, report))
    assert ("0x5000c50015ea0000, no flash" in text) is ("as_found" in report)
    assert [said for said in (AS_FOUND, NOT_CONDITIONED) if said in text] == told


def make_judged(folder: Path) -> Path:
    """A run without preconditioning."""
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
    required = {one["outcome"] for one in verdict["criteria"] if one["required"]}
    assert required == {outcome}
    assert any("the drives were not steady after 12 rounds: drift -7.1 %" in one for one in verdict["warnings"])
    settled = run_with(tmp_path / "settled", {**STEADY, "steady": True}, design=design, launches=launches)
    verdict = json.loads((settled / "verdict.json").read_text(encoding="utf-8"))
    assert {one["outcome"] for one in verdict["criteria"] if one["required"]} == {"PASS"}
