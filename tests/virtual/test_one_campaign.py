# SPDX-License-Identifier: Apache-2.0
"""Two benches at once, and all kinds of turns in one run: one campaign, one verdict, one report."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.support.live_bench import GATE, REPOSITORY, drops, powered_on, qualified

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(5400)]

BENCHES = ("left", "right")
MIXED = Path(__file__).with_suffix(".mixed").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A lab of two virtual benches with drives of their own, powered on."""
    folder = tmp_path_factory.mktemp("two") / "lab"
    shutil.copytree(GATE / "drops", folder / "drops")
    (described,) = YAML(typ="safe").load(GATE / "hosts.yml")["benches"]["hosts"].values()
    hosts: dict[str, Any] = {}
    for index, name in enumerate(BENCHES):
        bench = json.loads(json.dumps(described))
        bench["virtual_bench_state"] = str(REPOSITORY / ".cache" / "bench" / f"{name}bench")
        bench["storqual_virtual"]["adapters"].pop("mraid")
        bench["storqual_adapters"].pop("mraid")
        for drive in bench["storqual_adapters"]["vscsi"]["drives"]:
            drive["wwn"] = f"{drive['wwn'][:-4]}{index + 1}{drive['wwn'][-3:]}"
            drive["serial"] = f"{name.upper()[:4]}{drive['serial'][-6:]}"
        hosts[name] = bench
    (folder / "hosts.yml").write_text(json.dumps({"benches": {"hosts": hosts}}), encoding="utf-8")
    with powered_on(folder.parent / "playbook.log", folder):
        yield folder


def passed(lab: Path, runs: Path, suite: Path, *more: str) -> Path:
    """The run of a campaign that ended with PASS."""
    code, output, run = qualified(runs, lab, *drops("bare", "bare_too", suite=suite), *more)
    assert code == 0, output[-4000:]
    return run


def verdict_of(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "verdict.json").read_text(encoding="utf-8")))


def test_a_workload_a_trial_and_a_program_on_two_benches_are_one_verdict_and_one_report(
    lab: Path, tmp_path: Path
) -> None:
    suite = tmp_path / "mixed.suite.yml"
    suite.write_text(MIXED, encoding="utf-8")
    run = passed(lab, tmp_path / "runs", suite)
    criteria = verdict_of(run)["criteria"]
    kinds = {"write_error": "trial", "read": "workload", "look": "program"}
    for bench in BENCHES:
        judged = [one for one in criteria if one["bench"] == bench]
        for name in kinds:
            assert any(name in one["id"] + str(one.get("point")) for one in judged), (bench, name)
        assert {one["outcome"] for one in judged} == {"PASS"}
    page = (run / "report.html").read_text(encoding="utf-8")
    assert all(name in page for name in kinds)
    assert verdict_of(run)["sectors_written_outside_claims"] == 0


def test_the_shipped_faults_are_tried_on_both_benches(lab: Path, tmp_path: Path) -> None:
    run = passed(lab, tmp_path / "runs", REPOSITORY / "suites" / "robustness.suite.yml", "--profile", "quick")
    criteria = verdict_of(run)["criteria"]
    left, right = ({one["id"] for one in criteria if one["bench"] == bench} for bench in BENCHES)
    assert left
    assert left == right
    records = [json.loads(path.read_text(encoding="utf-8")) for path in (run / "turns").glob("*.json")]
    assert {record["outcome"] for record in records} == {"passed"}
