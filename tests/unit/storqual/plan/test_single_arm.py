# SPDX-License-Identifier: Apache-2.0
"""Tests of a plan without a baseline: one arm, with the suite's settings varied inside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual.plan import PlannedCampaign, make_plan
from storqual_core.kit.errors import BadInputError
from tests.support.make_lab import lab_hosts, make_lab

SUITE = """\
name: small
workloads:
  seq_read: {rw: read, factors: {bs: [4k, 64k], ports: [1, 2], drives_per_port: [1, 2]}}
  emulation_cannot: {rw: read, hardware_only: it has no cache, factors: {bs: [4k]}}
criteria:
  - {id: errors, metric: io_errors_per_tb, against: absolute, max: 0}
vary: {VARY}
profiles:
  quick: {cells: all, runtime: 2s, ramp: 500ms, sessions: 4, launches: 2, levels: {drives_per_port: [2]}}
  other: {cells: all, runtime: 2s, ramp: 500ms, sessions: 4, launches: 2, vary: {drive.nomerges: [0, 2]}}
"""


def plan(folder: Path, *, vary: str = "", suite: str = SUITE, **request: Any) -> PlannedCampaign:
    """The plan of a lab with one adapter and no baseline; `vary` is what stands between the braces."""
    hosts = request.pop("hosts", None) or lab_hosts({"sym": 4})
    lab = make_lab(folder, hosts=hosts, suite=suite.replace("VARY", vary), run="r", **request)
    return make_plan(replace(lab, baseline=""))


def test_one_arm_has_one_session_and_no_baseline(tmp_path: Path) -> None:
    campaign = plan(tmp_path)
    document = campaign.document
    assert set(document["arms"]) == {"candidate"}
    assert document["plan"]["design"] == "single"
    assert [session["arms"] for session in document["plan"]["sessions"]] == [["candidate"]]
    assert {launch["arm"] for block in campaign.batches for launch in block["turns"]} == {"candidate"}
    assert document["plan"]["detectable"] is None
    assert campaign.warnings == ()


def test_drives_per_port_balance_the_ports(tmp_path: Path) -> None:
    points = {point["point"]: point for point in plan(tmp_path).document["plan"]["points"]}
    assert len(points["seq_read[bs=4k,drives_per_port=2,ports=1]"]["drives"]) == 2
    assert len(points["seq_read[bs=4k,drives_per_port=2,ports=2]"]["drives"]) == 4


def test_a_profile_measures_its_own_levels_only(tmp_path: Path) -> None:
    names = [point["point"] for point in plan(tmp_path).document["plan"]["points"]]
    assert not any("drives_per_port=1" in name for name in names)
    assert len([name for name in names if name.startswith("seq_read")]) == 4


def test_what_an_emulation_cannot_stand_for_is_skipped_with_the_reason(tmp_path: Path) -> None:
    points = {point["workload"]: point for point in plan(tmp_path).document["plan"]["points"]}
    assert points["emulation_cannot"]["skipped"] == "needs hardware: it has no cache"
    real = plan(tmp_path, hosts=lab_hosts({"sym": 4}, kind="hardware"))
    assert {point["skipped"] for point in real.document["plan"]["points"]} == {""}


def test_instant_settings_are_switched_inside_the_session(tmp_path: Path) -> None:
    campaign = plan(tmp_path, vary="drive.nomerges: [0, 2]")
    assert len(campaign.document["plan"]["sessions"]) == 1
    (block,) = campaign.batches
    assert any(launch["request"]["switch"] for launch in block["turns"])
    assert {step["setting"] for launch in block["turns"] for step in launch["request"]["switch"]} == {"nomerges"}


def test_dear_settings_are_visited_there_and_back(tmp_path: Path) -> None:
    campaign = plan(tmp_path, vary="os.cpus: [2, 4]")
    sessions = campaign.document["plan"]["sessions"]
    assert [session["configuration"] for session in sessions] == [
        "candidate[os.cpus=2]",
        "candidate[os.cpus=4]",
        "candidate[os.cpus=4]",
        "candidate[os.cpus=2]",
    ]
    assert [session["change"] for session in sessions] == ["reboot", "reboot", "none", "reboot"]


def test_a_profile_may_vary_other_settings(tmp_path: Path) -> None:
    campaign = plan(tmp_path, vary="os.cpus: [2, 4]", profile="other")
    assert {name for point in campaign.document["plan"]["points"] for name in point["varied"]} == {"drive.nomerges"}


def test_a_criterion_against_nobody_is_refused(tmp_path: Path) -> None:
    """A suite that compares with a baseline says so before a bench is touched."""
    suite = SUITE.replace("against: absolute, max: 0", "against: baseline")
    with pytest.raises(BadInputError, match="is judged against the baseline; name a baseline drop"):
        plan(tmp_path, suite=suite)


def test_levels_of_a_profile_that_no_workload_has_are_told(tmp_path: Path) -> None:
    with pytest.raises(
        BadInputError, match=r"no workload has drives_per_port 3, as profile quick asks; their levels: 1, 2"
    ):
        plan(tmp_path, suite=SUITE.replace("drives_per_port: [2]", "drives_per_port: [2, 3]"))


TEAM = """\
name: team
workloads:
  cards: {rw: read, bs: 64k, factors: {adapters: [1, 2], drives_per_port: [2]}}
  ports: {rw: read, bs: 64k, adapters: 2, factors: {ports: [1, 2, 3, 4], drives_per_port: [2]}}
criteria:
  - {id: errors, metric: io_errors_per_tb, against: absolute, max: 0}
profiles:
  quick: {cells: all, runtime: 2s, ramp: 500ms}
"""


def test_adapters_of_one_driver_work_as_a_team(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 4, "symb": 4})
    for adapter in hosts["b1"]["storqual_adapters"].values():
        adapter["driver"] = "sym53c8xx"
    points = {
        (point["adapter"], point["point"]): point
        for point in plan(tmp_path, suite=TEAM, hosts=hosts).document["plan"]["points"]
    }
    assert len(points["sym", "cards[adapters=1,drives_per_port=2]"]["drives"]) == 4
    assert len(points["sym", "cards[adapters=2,drives_per_port=2]"]["drives"]) == 8
    assert points["symb", "cards[adapters=2,drives_per_port=2]"]["skipped"] == "measured together with sym"
    first, third = (set(points["sym", f"ports[drives_per_port=2,ports={n}]"]["drives"]) for n in (2, 3))
    own = {drive["wwn"] for drive in hosts["b1"]["storqual_adapters"]["sym"]["drives"]}
    assert first == own
    assert len(third - own) == 2
