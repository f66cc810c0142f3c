# SPDX-License-Identifier: Apache-2.0
"""Wrong data is a FAIL of its point whatever its speed, with address and content; nothing else is changed by it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign.pipeline import publish
from storqual.judge.verdict import verdict_of
from tests.support.make_lab import KERNEL, OTHER, lab_hosts
from tests.support.simulated_campaign import Bench, Rates, drive, plan

pytestmark = pytest.mark.slow

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
BAD = "seq_write[bs=256k]"


class Damaging(Rates):
    """Launches of which those of some arms zero the tail of each block at the large writes."""

    damaged: tuple[str, ...] = ()

    def __call__(self, block: Mapping[str, Any], launch: Mapping[str, Any]) -> dict[str, Any]:
        wrong = launch["arm"] in self.damaged and launch["point"] == BAD
        return {**super().__call__(block, launch), "wrong_tail": wrong}


def run_with(folder: Path, *damaged: str) -> Path:
    path = plan(folder, hosts=lab_hosts({"sym": 2}), suite=SUITE, baseline=KERNEL, candidate=OTHER)
    rates = Damaging(noise=0.003)
    object.__setattr__(rates, "damaged", damaged)
    drive(path, Bench(rates))
    return path


def of_data(verdict: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {entry["point"]: entry for entry in verdict["criteria"] if entry["id"] == "data"}


def test_a_wrong_sector_fails_its_point_and_the_run(tmp_path: Path) -> None:
    path = run_with(tmp_path, "candidate")
    verdict = verdict_of(path)
    checks = of_data(verdict)
    assert {point: entry["outcome"] for point, entry in checks.items()} == {
        BAD: "FAIL",
        "seq_write[bs=4k]": "PASS",
        "rand_read[bs=4k]": "PASS",
    }
    assert verdict["outcome"] == "FAIL"
    reason = checks[BAD]["reason"]
    for part in ("byte 1310208", "sector 2559", "expected a5a5", "found 0000", "in 4 of 4 launches"):
        assert part in reason
    # the figures are judged as ever
    assert {entry["outcome"] for entry in verdict["criteria"] if entry["metric"] == "iops"} == {"PASS"}
    publish(path)
    page = (path / "report.html").read_text(encoding="utf-8")
    assert "byte 1310208" in page
    assert "expected a5a5" in page


def test_data_that_was_right_is_a_pass_of_its_own(tmp_path: Path) -> None:
    verdict = verdict_of(run_with(tmp_path))
    assert {entry["outcome"] for entry in of_data(verdict).values()} == {"PASS"}
    assert "2,048 sectors were read back after 4 launches, none was wrong" in of_data(verdict)[BAD]["reason"]


def test_wrong_data_of_the_baseline_is_told_and_is_no_fail_of_the_candidate(tmp_path: Path) -> None:
    verdict = verdict_of(run_with(tmp_path, "baseline"))
    assert {entry["outcome"] for entry in of_data(verdict).values()} == {"PASS"}
    assert "of the baseline: 4 of 2,048 sectors read back are wrong" in of_data(verdict)[BAD]["reason"]
    assert any("the baseline's data is wrong" in warning for warning in verdict["warnings"])


def test_the_look_is_planned_within_a_tenth_of_each_launch_and_for_reads_after_every_third(tmp_path: Path) -> None:
    path = plan(tmp_path, hosts=lab_hosts({"sym": 2}), suite=SUITE, baseline=KERNEL, candidate=OTHER)
    turns = [
        turn
        for file in sorted((path / "blocks").glob("*.json"))
        for turn in json.loads(file.read_text(encoding="utf-8"))["turns"]
    ]
    looked = {(turn["request"]["fio"]["rw"], turn["n"], turn["request"].get("readback_s", 0.0)) for turn in turns}
    writes, reads = dict.fromkeys((1, 2, 3, 4), 0.42), {1: 0.42, 2: 0.0, 3: 0.0, 4: 0.42}
    expected = {("write", n, s) for n, s in writes.items()} | {("randread", n, s) for n, s in reads.items()}
    assert looked == expected
    assert {s for _, _, s in looked} <= {0.0, 0.42}
    assert 0.42 <= 0.1 * (5 + 1)


def test_a_forged_look_without_evidence_is_a_finding(tmp_path: Path) -> None:
    path = run_with(tmp_path, "candidate")
    lines = [json.loads(line) for line in (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["data"].get("wrong"):
            del line["data"]["first"]
            line["data"]["wrong"] = 0
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (path / "samples.jsonl").write_text(text, encoding="utf-8")
    verdict = verdict_of(path)
    assert verdict["outcome"] == "ERROR"
    assert any("found data" in warning for warning in verdict["warnings"])
