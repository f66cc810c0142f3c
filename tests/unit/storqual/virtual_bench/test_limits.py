# SPDX-License-Identifier: Apache-2.0
"""Limits go to the drive that was named, are read back, and return to the inventory's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from storqual.virtual_bench.description import BenchDescription, describe
from storqual.virtual_bench.limits import Limit, plug, read_limits, set_limits, unplug, wanted_limits
from storqual_core.errors import BadInputError, ToolError

FIRST, SECOND = "0x5000c50015ea0000", "0x5000c50015ea0001"


def _bench() -> BenchDescription:
    drives = [
        {"wwn": wwn, "serial": f"S{index}", "size": 2**20, "virtual": {"iops": 200, "bandwidth": "1MiB"}}
        for index, wwn in enumerate((FIRST, SECOND))
    ]
    adapters = {
        "sym": {"pci": "00:05.0", "drives": drives},
        "nvme": {"pci": "00:0a.0", "drives": [{"serial": "N1", "size": 2**20}]},
    }
    return describe("vbench", adapters, {"adapters": {"sym": {"device": "lsi53c895a"}, "nvme": {"device": "nvme"}}})


class _Qemu:
    """A monitor that keeps limits as QEMU does; `deaf` takes them and forgets."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.deaf = deaf
        self.limits = {"sym-0": (0, 0), "sym-1": (0, 0), "nvme-0": (0, 0)}
        self.asked: list[str] = []

    async def ask(self, command: str, arguments: Any = None) -> Any:
        self.asked.append(command)
        if command == "query-block":
            disks = [
                {"qdev": f"/machine/peripheral/{name}", "inserted": {"iops": iops, "bps": bps}}
                for name, (iops, bps) in self.limits.items()
            ]
            return [*disks, {"qdev": "cd"}, {"device": "floppy0"}]
        if command == "block_set_io_throttle" and not self.deaf:
            self.limits[arguments["id"]] = (arguments["iops"], arguments["bps"])
        if command == "device_add":
            self.limits[arguments["id"]] = (0, 0)
        return {}

    async def ask_and_await(self, command: str, arguments: Any, event: str, limit_s: float, **match: Any) -> bool:
        self.asked.append(command)
        self.limits.pop(arguments["id"])
        return True


def test_an_entry_of_a_drive_wins_over_all_and_the_rest_is_the_inventorys() -> None:
    """IOPS and bandwidth are chosen apart."""
    wanted = wanted_limits(_bench(), {"all": 950, SECOND: 100}, {"s0": 4096})
    assert wanted == {FIRST: Limit(950, 4096), SECOND: Limit(100, 2**20), "n1": Limit(950, 0)}


def test_nothing_given_is_what_the_inventory_declares() -> None:
    """That is how limits are put back."""
    assert wanted_limits(_bench(), {}, {})[FIRST] == Limit(200, 2**20)


def test_unknown_drives_and_negative_limits_are_told_at_once() -> None:
    """Nothing was set before that."""
    with pytest.raises(BadInputError) as raised:
        wanted_limits(_bench(), {"0xdead": 5, FIRST: -1}, {"0xbeef": 5})
    assert len(raised.value.problems) == 3


def test_limits_are_set_where_they_differ_and_read_back() -> None:
    """A second time sets nothing."""
    qemu: Any = _Qemu()
    before, after = asyncio.run(set_limits(qemu, _bench(), wanted_limits(_bench(), {}, {})))
    assert before[FIRST] == Limit()
    assert after[FIRST] == Limit(200, 2**20)
    asked = qemu.asked.count("block_set_io_throttle")
    asyncio.run(set_limits(qemu, _bench(), wanted_limits(_bench(), {}, {})))
    assert qemu.asked.count("block_set_io_throttle") == asked


def test_a_limit_that_was_taken_and_is_not_in_force_is_an_error() -> None:
    """Set is not proven."""
    qemu: Any = _Qemu(deaf=True)
    with pytest.raises(ToolError, match=FIRST):
        asyncio.run(set_limits(qemu, _bench(), {FIRST: Limit(5, 5)}))


def test_a_drive_is_unplugged_once_and_comes_back_with_its_limit() -> None:
    """A plugged drive would be without a limit otherwise."""
    qemu: Any = _Qemu()
    bench = _bench()
    assert asyncio.run(unplug(qemu, bench, FIRST))
    assert not asyncio.run(unplug(qemu, bench, FIRST))
    assert FIRST not in asyncio.run(read_limits(qemu, bench))
    assert asyncio.run(plug(qemu, bench, FIRST, Limit(200, 2**20)))
    assert not asyncio.run(plug(qemu, bench, FIRST, Limit(200, 2**20)))
    assert asyncio.run(read_limits(qemu, bench))[FIRST] == Limit(200, 2**20)


def test_a_namespace_cannot_be_unplugged_by_itself() -> None:
    """QEMU has no such operation."""
    qemu: Any = _Qemu()
    with pytest.raises(BadInputError, match="namespace"):
        asyncio.run(unplug(qemu, _bench(), "n1"))
