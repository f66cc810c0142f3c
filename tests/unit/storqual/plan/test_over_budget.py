# SPDX-License-Identifier: Apache-2.0
"""A plan that takes longer than its profile allows says by how much, and what to do."""

from pathlib import Path
from typing import Any

import pytest

from storqual.cli.plan import _time_lines
from storqual.plan.make import make_plan, plan_run
from tests.support.make_lab import KERNEL, OTHER, SMALL_SUITE, lab_hosts, make_lab


def test_a_plan_over_its_budget_says_how_long_it_takes_and_what_to_do(tmp_path: Path) -> None:
    tight = SMALL_SUITE.replace("quick: {cells: 8,", "quick: {budget: 30s, cells: 8,")
    warnings = make_plan(make_lab(tmp_path, suite=tight, profile="quick")).warnings
    (told,) = [warning for warning in warnings if "budget" in warning]
    assert "of bench time" in told
    assert "more than the budget of 30 s; raise the budget, or choose fewer points" in told
    assert not any("budget" in one for one in make_plan(make_lab(tmp_path / "other", profile="quick")).warnings)


KERNELS: dict[str, Any] = {"baseline": KERNEL, "candidate": OTHER}
HOSTS = lab_hosts({"sym": 4}, kind="hardware")
MEMBERS = [drive["serial"] for drive in HOSTS["b1"]["storqual_adapters"]["sym"]["drives"]]
VOLUME_SUITE = SMALL_SUITE.replace("drives: [1, 2]", "drives: [1]").replace("{rw:", "{target: volume, rw:")


def lines(folder: Path, **options: Any) -> dict[str, float]:
    """Seconds by line of the estimate, on hardware."""
    found = make_plan(make_lab(folder, **{"hosts": HOSTS, **options})).document["plan"]
    listed = found["bench_time"]["b1"]
    assert found["expected_seconds"] == pytest.approx(sum(line["seconds"] for line in listed), abs=1)
    assert all(line["source"] for line in listed)
    return {line["what"]: line["seconds"] for line in listed}


def volume(initialisation: str) -> dict[str, Any]:
    return {"raid": {"level": "0", "members": MEMBERS[:2], "initialisation": initialisation}}


def test_packages_boots_and_restore_are_counted(tmp_path: Path) -> None:
    """Two kernel packages; four sessions A B B A, of which the first takes the boot to the first configuration."""
    found = lines(tmp_path, **KERNELS)
    assert found["installing packages"] == 2 * 60
    assert found["the first configuration"] + found["boots"] == 4 * 240
    assert found["restore"] == 250


def test_a_profile_that_knows_its_boots_is_the_source(tmp_path: Path) -> None:
    suite = SMALL_SUITE.replace("quick: {", "quick: {costs: {reboot: 100s}, ")
    document = make_plan(make_lab(tmp_path, hosts=HOSTS, suite=suite, **KERNELS)).document
    (boots,) = (line for line in document["plan"]["bench_time"]["b1"] if line["what"] == "boots")
    assert (boots["seconds"], boots["source"]) == (300, "`costs` of the profile: reboot")


def test_each_session_of_an_arm_with_a_dkms_package_builds_it(tmp_path: Path) -> None:
    (tmp_path / "drops").mkdir()
    (tmp_path / "drops" / "new.deb").touch()
    dkms = {"driver": {"dkms": {"package": "new.deb", "module": "sym_driver", "version": "1"}}}
    found = lines(tmp_path, baseline={}, candidate=dkms)
    assert found["DKMS builds"] == 2 * 90


def test_volumes_are_made_and_a_full_initialisation_takes_as_long_as_a_member_is_large(tmp_path: Path) -> None:
    full = lines(tmp_path / "a", baseline=volume("none"), candidate=volume("full"), suite=VOLUME_SUITE)
    assert full["recreating volumes"] + full["the first configuration"] == 4 * 120
    assert full["volumes initialised"] == pytest.approx(2 * 2**30 / 200e6, abs=0.1)
    same = lines(tmp_path / "b", baseline=volume("none"), candidate=volume("none"), suite=VOLUME_SUITE)
    assert "volumes initialised" not in same


def test_volumes_that_both_arms_declare_alike_are_made_once_and_outlive_the_boots_between(tmp_path: Path) -> None:
    alike = {arm: {**drop, **volume("full")} for arm, drop in KERNELS.items()}
    found = lines(tmp_path / "a", **alike, suite=VOLUME_SUITE)
    assert found["creating RAID volumes"] == 120
    assert found["volumes initialised"] == pytest.approx(2**30 / 200e6, abs=0.1)
    unlike = {**alike, "candidate": {**OTHER, **volume("none")}}
    assert lines(tmp_path / "b", **unlike, suite=VOLUME_SUITE)["creating RAID volumes"] == 4 * 120
    varied = VOLUME_SUITE + "vary: {raid.strip: [64k, 128k]}\n"
    assert lines(tmp_path / "c", **alike, suite=varied)["creating RAID volumes"] == 2 * 4 * 120


def test_a_person_reads_each_line_with_its_source(tmp_path: Path) -> None:
    answer = plan_run(make_lab(tmp_path, hosts=HOSTS, **KERNELS), tmp_path, write=False).to_json()
    shown = [text for _, text in _time_lines(answer)]
    assert "2 min: installing packages (2 of them, typical of hardware benches)" in shown


def test_a_bench_that_nothing_changes_is_not_put_back_by_a_none(tmp_path: Path) -> None:
    answer = plan_run(make_lab(tmp_path, hosts=HOSTS), tmp_path, write=False).to_json()
    shown = [text for _, text in _time_lines(answer) if "restore" in text]
    assert len(shown) == 1
    assert shown[0].endswith("restore (typical of hardware benches)")
