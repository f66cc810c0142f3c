# SPDX-License-Identifier: Apache-2.0
"""Volumes as targets: known by their members before they are made, and apart from the drives that stand alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.plan import Campaign, make_plan
from storqual_core.guard.claims import read_claims, read_volumes
from storqual_core.guard.stamps import volume_path, volume_uuid
from storqual_core.kit.errors import BadInputError
from storqual_core.measure.batch_file import parse_block
from tests.support.make_lab import lab_hosts, make_lab

SUITE = """\
name: volumes
workloads:
  on_volume: {rw: randwrite, target: volume, bs: 4k, factors: {iodepth: [1, 8]}}
  on_drives: {rw: read, factors: {drives: [1, 2]}}
criteria:
  - {metric: iops, against: baseline}
profiles:
  quick: {cells: all, runtime: 2s, ramp: 500ms, sessions: 2, pairs: 2, margin: 8%}
"""
HOSTS = lab_hosts({"sym": 6})
DRIVES = [drive["wwn"] for drive in HOSTS["b1"]["storqual_adapters"]["sym"]["drives"]]


def raid(**changes: Any) -> dict[str, Any]:
    """A drop with one volume of the first four drives."""
    return {"raid": {"level": 5, "strip": "64k", "members": DRIVES[:4], **changes}}


def plan(folder: Path, baseline: dict[str, Any], candidate: dict[str, Any], suite: str = SUITE) -> Campaign:
    """The plan of a campaign over the bench's one adapter."""
    return make_plan(make_lab(folder, hosts=HOSTS, baseline=baseline, candidate=candidate, suite=suite))


def test_a_volume_is_a_target_with_all_its_members_claimed(tmp_path: Path) -> None:
    campaign = plan(tmp_path, raid(), raid(level=10))
    for block in campaign.batches:
        read = parse_block(json.dumps(block))
        (volume,) = read_volumes(read.targets)
        claims = read_claims({name: target for name, target in read.targets.items() if "volume" not in target})
        assert (volume.id, volume.uuid, volume.members) == ("sym/volume1", volume_uuid(DRIVES[:4]), tuple(DRIVES[:4]))
        assert volume.path == volume_path(volume.uuid)
        assert {claim.id for claim in claims} == set(DRIVES)
        drives = {launch.point.partition("[")[0]: launch.drives for launch in read.launches}
        assert drives["on_volume"] == ("sym/volume1",)


def test_drives_in_a_volume_are_no_targets_of_their_own(tmp_path: Path) -> None:
    one = SUITE.replace("drives: [1, 2]", "drives: [1]")
    campaign = plan(tmp_path, raid(), raid(members=DRIVES[1:5]), one)
    launches = [launch for block in campaign.batches for launch in block["launches"]]
    used = {drive for launch in launches if "on_drives" in launch["point"] for drive in launch["drives"]}
    assert used == {DRIVES[5]}
    with pytest.raises(BadInputError, match=r"too few single drives for on_drives; .*`target: volume`"):
        plan(tmp_path, raid(), raid(members=DRIVES[1:5]))


def test_the_points_of_a_volume_name_the_drives_behind_it(tmp_path: Path) -> None:
    points = plan(tmp_path, raid(), raid()).document["plan"]["points"]
    assert {tuple(point["drives"]) for point in points if point["workload"] == "on_volume"} == {tuple(DRIVES[:4])}


def test_another_layout_is_a_rebuild(tmp_path: Path) -> None:
    campaign = plan(tmp_path, raid(), raid(strip="128k"))
    assert {session["change"] for session in campaign.document["plan"]["sessions"]} == {"rebuild"}
    specs = campaign.document["provision"]["b1"]
    assert [spec["raid"][0]["strip"] for spec in specs.values()] == [65536, 131072]


def test_a_suite_varies_the_strip_of_the_volumes(tmp_path: Path) -> None:
    campaign = plan(tmp_path, raid(), raid(), SUITE + "vary: {raid.strip: [64k, 256k]}\n")
    strips = {name: spec["raid"][0]["strip"] for name, spec in campaign.document["provision"]["b1"].items()}
    assert strips["candidate[raid.strip=262144]"] == 262144
    assert {session["change"] for session in campaign.document["plan"]["sessions"]} >= {"rebuild"}


def test_members_are_by_default_all_claimed_drives_but_the_spares(tmp_path: Path) -> None:
    """`on` narrows them."""
    drop = {"raid": {"level": 6, "hot_spares": [DRIVES[5]]}}
    suite = SUITE.replace("  on_drives: {rw: read, factors: {drives: [1, 2]}}\n", "")
    spec = plan(tmp_path, drop, drop, suite).document["provision"]["b1"]["candidate"]["raid"]
    assert spec[0]["members"] == DRIVES[:5]
    drop = {"raid": {"on": {"drives": DRIVES[:3]}, "level": 5}}
    spec = plan(tmp_path, drop, drop, suite).document["provision"]["b1"]["candidate"]["raid"]
    assert spec[0]["members"] == DRIVES[:3]


@pytest.mark.parametrize(
    ("baseline", "suite", "words"),
    [
        ({}, SUITE, "needs 1 volumes of the drops, there are 0"),
        ({}, SUITE.replace(", target: volume", "") + "vary: {raid.strip: [64k, 128k]}\n", "a section raid in both"),
    ],
)
def test_a_volume_that_no_drop_declares_is_told_before_the_bench_is_touched(
    tmp_path: Path, baseline: dict[str, Any], suite: str, words: str
) -> None:
    with pytest.raises(BadInputError, match=r"small\.suite\.yml:\d+: ") as told:
        plan(tmp_path, baseline, baseline, suite)
    assert words in "\n".join(told.value.problems)


def test_the_id_of_a_volume_does_not_depend_on_the_order_of_its_members() -> None:
    assert volume_uuid(DRIVES[:3]) == volume_uuid(DRIVES[2::-1])
    assert volume_uuid(DRIVES[:3]) != volume_uuid(DRIVES[:4])
