# SPDX-License-Identifier: Apache-2.0
"""A drive of several paths is one file and a device on each of its adapters, pulled and put back one by one."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from storqual.virtual_bench.description import BenchDescription, describe, from_plain
from storqual.virtual_bench.limits import Limit, plug, read_limits, unplug
from storqual.virtual_bench.qemu import machine_argv
from storqual_core.kit.errors import BadInputError
from tests.support.fake_qemu import FakeQemu
from tests.unit.storqual.virtual_bench.test_qemu import TCG, _machine

SHARED, OWN = "0x5000c5001f2d0000", "0x5000c5001f2d0010"
DEVICES = {"left": {"device": "mptsas1068"}, "right": {"device": "virtio-scsi-pci"}}


def adapters(**shared: Any) -> dict[str, Any]:
    drive = {"wwn": SHARED, "serial": "PTH1", "size": 2**20, "paths": ["right"], **shared}
    own = {"wwn": OWN, "serial": "PTH2", "size": 2**20}
    return {
        "left": {"pci": "0000:00:05.0", "drives": [drive]},
        "right": {"pci": "0000:00:06.0", "drives": [own]},
    }


def bench() -> BenchDescription:
    return describe("vbench", adapters(), {"adapters": DEVICES})


def test_a_drive_of_two_paths_is_one_file_and_a_device_on_each_adapter() -> None:
    argv = machine_argv(bench(), _machine(), TCG)
    files = [json.loads(value)["node-name"] for name, value in pairwise(argv) if name == "-blockdev"]
    assert [name for name in files if name.startswith(("left", "right"))] == ["left-0-file", "right-0-file"]
    told = [json.loads(value) for name, value in pairwise(argv) if name == "-device"]
    paths = {device["id"]: device for device in told if device["driver"] == "scsi-hd"}
    assert [paths[name]["drive"] for name in ("left-0", "right-0", "right-1")] == [
        "left-0-file",
        "right-0-file",
        "left-0-file",
    ]
    assert (paths["right-1"]["bus"], paths["right-1"]["scsi-id"]) == ("right.0", 1)
    for name in ("wwn", "serial", "share-rw"):
        assert paths["left-0"][name] == paths["right-1"][name]
    assert "share-rw" not in paths["right-0"]


def test_it_is_one_drive_that_the_guest_sees_twice() -> None:
    described = bench()
    assert [drive.identity for drive in described.drives] == [SHARED, OWN]
    assert described.devices == 3
    assert described.drive(SHARED).device == "left-0"
    assert from_plain(json.loads(json.dumps(described.plain()))).devices == 3


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"paths": ["middle"]},
            "drives[0].paths: expected other adapters of this bench with SCSI drives, found 'middle'",
        ),
        (
            {"paths": ["left"]},
            "drives[0].paths: expected other adapters of this bench with SCSI drives, found 'left'",
        ),
        ({"paths": "right"}, "found 'right' in storqual_adapters.left.drives[0].paths, expected a list"),
        ({"paths": [{}]}, "found an empty mapping in storqual_adapters.left.drives[0].paths[0], expected text"),
        ({"virtual": {"iops": 200}}, "drives[0].paths: a drive of several paths has a WWN, and no `virtual`"),
        ({"wwn": None}, "drives[0].paths: a drive of several paths has a WWN, and no `virtual`"),
    ],
)
def test_paths_that_cannot_be_built_are_told(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInputError) as raised:
        describe("vbench", adapters(**changes), {"adapters": DEVICES})
    assert any(problem in told for told in raised.value.problems), raised.value.problems


@pytest.mark.parametrize("alias", ["left", "right"])
def test_a_path_of_or_to_a_namespace_cannot_be_built(alias: str) -> None:
    devices = {**DEVICES, alias: {"device": "nvme"}}
    entries = adapters()
    entries["right"]["drives"] = []
    entries["left"]["drives"][0].update({"wwn": "eui.0011223344556677"} if alias == "left" else {})
    with pytest.raises(BadInputError, match=r"\.paths: expected other adapters"):
        describe("vbench", entries, {"adapters": devices})


def test_paths_count_for_the_room_of_an_adapter() -> None:
    entries = adapters()
    entries["right"]["drives"] = [
        {"wwn": f"0x5000c5001f2e{number:04x}", "serial": f"R{number}", "size": 2**20} for number in range(8)
    ]
    with pytest.raises(BadInputError, match=r"mptsas1068 has room for 8 drives, found 9"):
        describe("vbench", entries, {"adapters": {**DEVICES, "right": {"device": "mptsas1068"}}})


def test_a_path_is_pulled_and_put_back_and_the_other_stays() -> None:
    qemu: Any = FakeQemu()
    qemu.limits = {"left-0": (0, 0), "right-0": (0, 0), "right-1": (0, 0)}
    described = bench()
    assert asyncio.run(unplug(qemu, described, SHARED, "right"))
    assert sorted(qemu.limits) == ["left-0", "right-0"]
    assert not asyncio.run(unplug(qemu, described, SHARED, "right"))
    assert SHARED in asyncio.run(read_limits(qemu, described))
    assert asyncio.run(plug(qemu, described, SHARED, Limit(), "right"))
    assert not asyncio.run(plug(qemu, described, SHARED, Limit(), "right"))
    assert asyncio.run(unplug(qemu, described, SHARED))
    assert sorted(qemu.limits) == ["right-0", "right-1"]
    with pytest.raises(BadInputError, match="left has no path to"):
        asyncio.run(unplug(qemu, replace(described, name="b"), OWN, "left"))
