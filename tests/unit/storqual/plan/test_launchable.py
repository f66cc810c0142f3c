# SPDX-License-Identifier: Apache-2.0
"""Points at which fio would refuse every launch are refused when the campaign is planned."""

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.plan import PlannedCampaign, make_plan
from storqual_core.kit.errors import BadInputError
from tests.support.make_lab import lab_hosts, make_lab

HOSTS = lab_hosts({"sym": 2})
DRIVE = HOSTS["b1"]["storqual_adapters"]["sym"]["drives"][1]["wwn"]


def planned(folder: Path, parameters: str, **more: Any) -> PlannedCampaign:
    suite = f"""\
workloads:
  reads: {{rw: read, {parameters}}}
criteria:
  - {{metric: io_errors_per_tb, against: absolute, max: 0}}
profiles:
  quick: {{cells: all, runtime: 1s, ramp: 0s, launches: 2, file: 24MiB}}
"""
    return make_plan(make_lab(folder, hosts=more.pop("hosts", HOSTS), suite=suite, **more))


def refusal(folder: Path, parameters: str, **more: Any) -> str:
    with pytest.raises(BadInputError) as told:
        planned(folder, parameters, **more)
    (line,) = told.value.problems
    return line.partition("small.suite.yml:")[2]


def facts(folder: Path, block: int) -> Path:
    path = folder / "facts.json"
    drives = [
        {"id": DRIVE, "block": {"logical_block_size": block}},
        {"id": "0x0", "block": {"logical_block_size": 8192}},
    ]
    path.write_text(json.dumps({"b1": {"drives": drives}}), encoding="utf-8")
    return path


def test_direct_io_needs_whole_logical_blocks(tmp_path: Path) -> None:
    told = refusal(tmp_path, "factors: {bs: [4k, 1000]}")
    assert told == (
        "2: a block size of 1000 bytes cannot be used with direct I/O; use a multiple of 512, or `direct: false`"
    )


def test_a_block_size_of_512_is_refused_only_where_a_drive_has_larger_blocks(tmp_path: Path) -> None:
    assert planned(tmp_path, "bs: 512").batches
    assert planned(tmp_path, "bs: 512", facts=facts(tmp_path, 512)).batches
    told = refusal(tmp_path, "bs: 512", facts=facts(tmp_path, 4096))
    assert f"use a multiple of 4096, because drive {DRIVE} has logical blocks of that size" in told


def test_buffered_io_takes_any_block_size(tmp_path: Path) -> None:
    assert planned(tmp_path, "bs: 1000, direct: false").batches


def test_scsi_commands_need_whole_blocks_without_direct_io_too(tmp_path: Path) -> None:
    told = refusal(tmp_path, "bs: 1000, direct: false, engine: sg")
    assert told.endswith("use a multiple of 512")


@pytest.mark.parametrize("target", ["xfs", "ext4", "xfs_on_volume"])
def test_scsi_commands_to_a_file_system_are_refused(tmp_path: Path, target: str) -> None:
    drop = {"raid": {"level": 1}} if "volume" in target else {}
    told = refusal(tmp_path, f"engine: sg, target: {target}", baseline=drop, candidate=drop)
    assert told == f"2: engine sg sends SCSI commands to drives, and target {target} is a file; use libaio or psync"


def test_scsi_commands_to_the_files_of_a_local_bench_are_refused(tmp_path: Path) -> None:
    drive = {"file": str(tmp_path / "targets" / "file"), "size": "64MiB", "paced": {"iops": 100}, "claim": True}
    adapters = {"files": {"model": "files", "drives": [drive]}}
    hosts = {"b1": {"storqual_kind": "local", "storqual_state_dir": str(tmp_path), "storqual_adapters": adapters}}
    told = refusal(tmp_path, "factors: {engine: [psync, sg]}", hosts=hosts)
    assert told == "2: engine sg sends SCSI commands to drives, and b1 has files; use libaio or psync"


def test_scsi_commands_to_drives_are_planned(tmp_path: Path) -> None:
    assert planned(tmp_path, "engine: sg").batches
