# SPDX-License-Identifier: Apache-2.0
"""The programs that a plan needs on a bench, in run.json for the preflight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from storqual.plan import make_plan
from tests.support.make_lab import SMALL_SUITE, lab_hosts, make_lab


def needs(folder: Path, candidate: dict[str, Any], *, suite: str = SMALL_SUITE, **adapter: Any) -> dict[str, str]:
    """What is needed, by the first name of each program."""
    hosts = lab_hosts({"sym": 4, "mpt": 4}, kind="hardware")
    hosts["b1"]["storqual_adapters"]["sym"] |= adapter
    campaign = make_plan(make_lab(folder, hosts=hosts, baseline=candidate, candidate=candidate, suite=suite))
    needed = campaign.document["plan"]["needs"]["b1"]
    return {need["programs"][0] if need["programs"] else "boots": need["for"] for need in needed}


def test_launches_need_fio_alone(tmp_path: Path) -> None:
    assert needs(tmp_path, {}) == {"fio": "launches"}


def test_settings_volumes_and_file_systems_need_their_programs(tmp_path: Path) -> None:
    volume = {"on": {"adapter": "sym"}, "level": "1", "members": ["B1SYM0000", "B1SYM0001"]}
    suite = SMALL_SUITE.replace("drives: [1, 2], iodepth: [1, 8]", "drives: [1], target: [raw, xfs]").replace(
        "cells: 8, ", "cells: all, file: 24MiB, "
    )
    found = needs(tmp_path, {"drive": {"WCE": 1}, "raid": volume}, suite=suite)
    assert set(found) == {"fio", "mkfs.xfs", "sg_wr_mode", "mdadm"}
    assert found["mdadm"] == "the volumes of adapter sym"


def test_a_raid_controller_needs_the_tool_of_its_vendor(tmp_path: Path) -> None:
    volume = {"on": {"adapter": "sym"}, "level": "1", "members": ["B1SYM0000", "B1SYM0001"]}
    nvram = {"on": {"adapter": "sym"}, "boot_rom": 1}
    found = needs(tmp_path, {"raid": volume, "nvram": nvram}, tool="storcli", driver="megaraid_sas")
    assert found["storcli64"] == "the volumes of adapter sym"
    assert "mdadm" not in found


def test_the_write_cache_of_an_nvme_drive_needs_nvme_cli(tmp_path: Path) -> None:
    found = needs(tmp_path, {"drive": {"on": {"adapter": "sym"}, "WCE": 1}}, driver="nvme")
    assert found == {"fio": "launches", "nvme": "the write cache of NVMe drives"}


def test_a_kernel_of_a_drop_needs_a_bench_that_can_be_booted_with_it(tmp_path: Path) -> None:
    found = needs(tmp_path, {"driver": {"kernel": {"package": "linux-image-x", "version": "6.12.1-1"}}})
    assert found == {"fio": "launches", "boots": "the kernel of the drop"}
