# SPDX-License-Identifier: Apache-2.0
"""Files on file systems in the plan: what the bench is asked for, in which order, and where there is no room."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest

from storqual.plan import make_plan
from storqual_core.kit.errors import BadInputError
from storqual_core.turns.batch_file import FileSystemAsk, parse_batch, part_bytes
from tests.support.make_lab import lab_hosts, make_lab

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
SUITE = """\
name: files
workloads:
  reads: {rw: read, factors: {bs: [4k, 8k, 64k], direct: [true, false], target: [raw, xfs, ext4]}}
criteria:
  - {id: errors, metric: io_errors_per_tb, against: absolute, max: 0}
profiles:
  quick: {cells: all, runtime: 2s, ramp: 500ms, pairs: 4, file: 24MiB}
"""


def plan(folder: Path, suite: str = SUITE, **lab: Any) -> Any:
    """One arm on one adapter with one drive of 1 GiB."""
    return make_plan(make_lab(folder, hosts=lab_hosts({"sym": 1}, **lab), suite=suite, baseline=None, candidate={}))


def kind_of(launch: dict[str, Any]) -> str:
    """The file system of a launch of a block file; empty for none."""
    return str(launch["request"].get("file_system", {}).get("kind", ""))


def test_a_launch_says_which_file_system_its_drives_carry_and_how_large_the_file_is(tmp_path: Path) -> None:
    campaign = plan(tmp_path, SUITE.replace("24MiB", "24000001"))
    block = parse_batch(json.dumps(campaign.batches[0]))
    asked = {launch.point.rpartition("target=")[2][:-1]: launch.file_system for launch in block.launches}
    size = 23 * MIB
    assert asked == {"raw": None, "xfs": FileSystemAsk("xfs", size), "ext4": FileSystemAsk("ext4", size)}
    assert block.writes


def test_launches_on_one_file_system_stay_together(tmp_path: Path) -> None:
    (block,) = plan(tmp_path).batches
    rounds = [block["turns"][start : start + 36] for start in range(0, 144, 36)]
    orders = [[kind for kind, _ in groupby(round_, key=kind_of)] for round_ in rounds]
    assert [sorted(order) for order in orders] == [["", "ext4", "xfs"]] * 4
    assert len({tuple(order) for order in orders}) > 1
    points = [tuple(launch["point"] for launch in round_) for round_ in rounds]
    assert len(set(points)) == 4


def test_making_file_systems_is_part_of_the_expected_time(tmp_path: Path) -> None:
    seconds = [
        plan(tmp_path / name, SUITE.replace("24MiB", size)).document["plan"]["expected_seconds"]
        for name, size in (("small", "20MiB"), ("large", "220MiB"))
    ]
    assert seconds[1] - seconds[0] == pytest.approx(2 * 200 * MIB / 20e6, abs=1.0)


@pytest.mark.parametrize(
    ("lab", "size", "why"),
    [
        ({}, "600MiB", "xfs with a file of 600 MiB takes 1135 MiB of drive 0x5000c500"),
        ({"kind": "local"}, "24MiB", "xfs needs a drive, and the targets of this bench are files"),
    ],
    ids=["no-room", "files"],
)
def test_points_without_room_for_a_file_system_are_skipped_with_the_reason(
    tmp_path: Path, lab: dict[str, Any], size: str, why: str
) -> None:
    hosts = lab_hosts({"sym": 1}, **lab)
    if lab:
        (drive,) = hosts["b1"]["storqual_adapters"]["sym"]["drives"]
        path = tmp_path / "targets" / "disk"
        hosts["b1"]["storqual_state_dir"] = str(tmp_path)
        hosts["b1"]["storqual_adapters"]["sym"] = {
            "model": "a file",
            "drives": [{"file": str(path), "size": drive["size"], "claim": True}],
        }
    suite = SUITE.replace("24MiB", size)
    document = make_plan(make_lab(tmp_path, hosts=hosts, suite=suite, candidate={})).document
    points = document["plan"]["points"]
    assert {point["factors"]["target"] for point in points if not point["skipped"]} == {"raw"}
    assert {point["skipped"][: len(why)] for point in points if point["factors"]["target"] == "xfs"} == {why}


def test_a_file_system_needs_a_quarter_more_than_its_file_and_what_is_its_own() -> None:
    """XFS makes none below 300 MiB."""
    assert part_bytes(MIB) == 386 * MIB
    assert part_bytes(1024 * MIB) == (1280 + 385) * MIB


ON_VOLUMES = """\
name: arrays
workloads:
  reads: {rw: read, bs: 64k, factors: {target: [raw, xfs]}}
  of_volume: {rw: read, bs: 64k, factors: {direct: [true, false], target: [volume, xfs_on_volume]}}
criteria:
  - {id: errors, metric: io_errors_per_tb, against: absolute, max: 0}
profiles:
  quick: {cells: all, runtime: 2s, ramp: 500ms, launches: 2, file: 24MiB}
"""


def on_volume(folder: Path, suite: str = ON_VOLUMES, *, level: int = 0, size: int = 1024 * MIB) -> Any:
    """Two equal arms with a volume of the first four of five drives of an adapter."""
    hosts = lab_hosts({"sym": 5})
    drives = hosts["b1"]["storqual_adapters"]["sym"]["drives"]
    for drive in drives[:4]:
        drive["size"] = size
    drop = {"raid": {"level": level, "strip": "64k", "members": [drive["wwn"] for drive in drives[:4]]}}
    return make_plan(make_lab(folder, hosts=hosts, suite=suite, baseline=drop, candidate=drop))


def test_a_file_on_a_volume_is_a_file_system_on_the_volume_of_the_drop(tmp_path: Path) -> None:
    campaign = on_volume(tmp_path)
    launches = [launch for batch in campaign.batches for launch in parse_batch(json.dumps(batch)).launches]
    asked = {
        (launch.point, launch.drives[0], launch.file_system) for launch in launches if "of_volume" in launch.point
    }
    xfs = FileSystemAsk("xfs", 24 * MIB)
    assert asked == {
        (f"of_volume[direct={direct},target={target}]", "sym/volume1", ask)
        for direct in ("true", "false")
        for target, ask in (("volume", None), ("xfs_on_volume", xfs))
    }
    points = {point["point"]: point["drives"] for point in campaign.document["plan"]["points"]}
    assert len(points["of_volume[direct=true,target=xfs_on_volume]"]) == 4
    assert len(points["reads[target=xfs]"]) == 1


def test_launches_on_one_file_system_of_a_volume_stay_together(tmp_path: Path) -> None:
    suite = ON_VOLUMES.replace("bs: 64k, factors: {direct", "factors: {bs: [4k, 8k, 64k], direct")
    (block,) = on_volume(tmp_path, suite).batches
    for start in range(0, 2 * 28, 28):
        round_ = block["turns"][start : start + 28]
        made = [target for target, _ in groupby((launch["drives"][0], kind_of(launch)) for launch in round_)]
        assert sorted(kind for _, kind in made if kind) == ["xfs", "xfs"]


def test_making_one_on_a_volume_takes_time_of_its_own(tmp_path: Path) -> None:
    both = on_volume(tmp_path / "a")
    one = on_volume(tmp_path / "b", ON_VOLUMES.replace("[volume, xfs_on_volume]", "[volume]"))
    made = [
        line["seconds"]
        for campaign in (both, one)
        for line in campaign.document["plan"]["bench_time"]["b1"]
        if line["what"] == "creating file systems"
    ]
    assert made[0] == pytest.approx(2 * made[1], abs=0.2)


def test_files_on_volumes_are_left_out_by_name_where_the_drop_declares_no_volume(tmp_path: Path) -> None:
    suite = ON_VOLUMES.replace("[volume, xfs_on_volume]", "[xfs_on_volume]")
    points = plan(tmp_path, suite).document["plan"]["points"]
    skipped = {point["point"]: point["skipped"] for point in points if point["skipped"]}
    assert skipped == {
        f"of_volume[direct={direct},target=xfs_on_volume]": "needs 1 volume, the drops declare 0"
        for direct in ("true", "false")
    }
    only = suite.replace("  reads: {rw: read, bs: 64k, factors: {target: [raw, xfs]}}\n", "")
    with pytest.raises(BadInputError, match="needs 1 volume, the drops declare 0"):
        plan(tmp_path, only)


@pytest.mark.parametrize(
    ("level", "size", "fits"), [(0, 115, True), (5, 115, False), (10, 230, True), (10, 200, False)]
)
def test_a_volume_without_room_for_a_file_system_is_skipped_with_the_reason(
    tmp_path: Path, level: int, size: int, fits: bool
) -> None:
    """415 MiB, behind the guard's area; what a level keeps of its members for redundancy is no room."""
    points = on_volume(tmp_path, level=level, size=size * MIB).document["plan"]["points"]
    skipped = {point["skipped"] for point in points if point["factors"]["target"] == "xfs_on_volume"}
    assert skipped == {"" if fits else "xfs with a file of 24 MiB takes 415 MiB of a volume"}
