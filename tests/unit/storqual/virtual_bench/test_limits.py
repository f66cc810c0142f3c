# SPDX-License-Identifier: Apache-2.0
"""Limits go to the drive that was named, are read back, and return to the inventory's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from storqual.virtual_bench.limits import Limit, plug, read_limits, set_limits, unplug, wanted_limits
from storqual_core.kit.errors import BadInputError, ToolError
from tests.support.fake_qemu import FIRST, SECOND, FakeQemu, bench_of_three_drives


def test_an_entry_of_a_drive_wins_over_all_and_the_rest_is_the_inventorys() -> None:
    wanted = wanted_limits(bench_of_three_drives(), {"all": 950, SECOND: 100}, {"s0": 4096})
    assert wanted == {FIRST: Limit(950, 4096), SECOND: Limit(100, 2**20), "n1": Limit(950, 0)}


def test_nothing_given_is_what_the_inventory_declares() -> None:
    assert wanted_limits(bench_of_three_drives(), {}, {})[FIRST] == Limit(200, 2**20)


def test_unknown_drives_and_negative_limits_are_told_at_once() -> None:
    with pytest.raises(BadInputError) as raised:
        wanted_limits(bench_of_three_drives(), {"0xdead": 5, FIRST: -1}, {"0xbeef": 5})
    assert len(raised.value.problems) == 3


def test_limits_are_set_where_they_differ_and_read_back() -> None:
    qemu: Any = FakeQemu()
    before, after = asyncio.run(
        set_limits(qemu, bench_of_three_drives(), wanted_limits(bench_of_three_drives(), {}, {}))
    )
    assert before[FIRST] == Limit()
    assert after[FIRST] == Limit(200, 2**20)
    asked = qemu.asked.count("block_set_io_throttle")
    asyncio.run(set_limits(qemu, bench_of_three_drives(), wanted_limits(bench_of_three_drives(), {}, {})))
    assert qemu.asked.count("block_set_io_throttle") == asked


def test_a_limit_that_was_taken_and_is_not_in_force_is_an_error() -> None:
    qemu: Any = FakeQemu(deaf=True)
    with pytest.raises(ToolError, match=FIRST):
        asyncio.run(set_limits(qemu, bench_of_three_drives(), {FIRST: Limit(5, 5)}))


def test_a_drive_is_unplugged_once_and_comes_back_with_its_limit() -> None:
    qemu: Any = FakeQemu()
    bench = bench_of_three_drives()
    assert asyncio.run(unplug(qemu, bench, FIRST))
    assert not asyncio.run(unplug(qemu, bench, FIRST))
    assert FIRST not in asyncio.run(read_limits(qemu, bench))
    assert asyncio.run(plug(qemu, bench, FIRST, Limit(200, 2**20)))
    assert not asyncio.run(plug(qemu, bench, FIRST, Limit(200, 2**20)))
    assert asyncio.run(read_limits(qemu, bench))[FIRST] == Limit(200, 2**20)


def test_a_namespace_cannot_be_unplugged_by_itself() -> None:
    qemu: Any = FakeQemu()
    with pytest.raises(BadInputError, match="namespace"):
        asyncio.run(unplug(qemu, bench_of_three_drives(), "n1"))
