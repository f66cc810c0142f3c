# SPDX-License-Identifier: Apache-2.0
"""Limits go to the drive that was named, are read back, and return to the inventory's."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storqual.campaign.drive_limits import limit_drives, limits_of_batch
from storqual.run import read_batch, read_run
from storqual.virtual_bench import power
from storqual.virtual_bench.limits import Limit, plug, read_limits, set_limits, unplug, wanted_limits
from storqual_core.kit.errors import BadInputError, StorqualError, ToolError
from tests.support.fake_qemu import FIRST, SECOND, FakeQemu, bench_of_three_drives
from tests.support.simulated_campaign import plan


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


ARMS = {
    "baseline": {"virtual": {"iops_limit": {"all": 1000}}},
    "candidate": {"virtual": {"iops_limit": {"all": 950}}},
}


@pytest.fixture
def qemu(monkeypatch: pytest.MonkeyPatch) -> FakeQemu:
    """A bench that is powered on, and its emulator."""
    found = FakeQemu()
    state = SimpleNamespace(bench=bench_of_three_drives(), monitor="monitor")
    monkeypatch.setattr(power, "power_state", lambda places: None if places.state.name == "targets" else state)
    monkeypatch.setattr(power, "converse", lambda _, talk: asyncio.run(talk(found)))
    return found


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = plan(tmp_path, **ARMS)
    document = json.loads((path / "run.json").read_text(encoding="utf-8"))
    for name, spec in document["provision"]["b1"].items():
        spec["virtual"]["iops_limit"] = dict.fromkeys((FIRST, SECOND), 1000 if name == "baseline" else 950)
    (path / "run.json").write_text(json.dumps(document), encoding="utf-8")
    return path


def test_each_block_gets_the_limits_of_its_arm_and_a_record_of_them(
    run: Path, qemu: FakeQemu, tmp_path: Path
) -> None:
    for name, expected in (("s01-b01", 1000), ("s01-b02", 950), ("s01-b03", 1000)):
        (arm,) = {launch["arm"] for launch in read_batch(run, name)["turns"]}
        assert arm == ("baseline" if expected == 1000 else "candidate")
        limit_drives(run, "b1", name, str(tmp_path / "state"))
        assert (qemu.limits["sym-0"][0], qemu.limits["sym-1"][0]) == (expected, expected)
        told = read_run(run).events[-1]
        assert (told.kind, told.fields["block"]) == ("limited", name)
        assert told.fields["limits"] == {**dict.fromkeys((FIRST, SECOND), expected), "n1": 0}


def test_a_block_runs_under_no_limit_that_is_not_in_force(run: Path, qemu: FakeQemu, tmp_path: Path) -> None:
    qemu.deaf = True
    with pytest.raises(ToolError, match="reports others"):
        limit_drives(run, "b1", "s01-b01", str(tmp_path / "state"))
    assert read_run(run).events[-1].kind != "limited"


def test_a_bench_that_is_off_cannot_be_limited(run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It says so."""
    monkeypatch.setattr(power, "power_state", lambda _: None)
    with pytest.raises(StorqualError, match="the bench is off"):
        limit_drives(run, "b1", "s01-b01", str(tmp_path / "state"))


def test_a_block_of_two_arms_has_no_limits_of_its_own(run: Path) -> None:
    file = run / "blocks" / "s01-b01.json"
    block = json.loads(file.read_text(encoding="utf-8"))
    block["turns"][0]["configuration"] = "candidate"
    file.write_text(json.dumps(block), encoding="utf-8")
    with pytest.raises(StorqualError, match="expected one arm"):
        limits_of_batch(run, "b1", "s01-b01")


def test_where_arms_alternate_launch_by_launch_nothing_is_limited(tmp_path: Path) -> None:
    same: dict[str, Any] = {"baseline": ARMS["baseline"], "candidate": ARMS["baseline"]}
    assert limits_of_batch(plan(tmp_path, **same), "b1", "s01-b01") is None
