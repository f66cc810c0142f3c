# SPDX-License-Identifier: Apache-2.0
"""A bench that is not what its inventory says is told so, all differences at once."""

from pathlib import Path
from typing import Any

import pytest

from storqual_core.facts.bench_facts import environment_of, read_facts
from storqual_core.facts.preflight import compare
from tests.support.bench_tree import SIZE, STATE, BenchTree

FIRST = {
    "wwn": "0x5000C50000000001",
    "serial": "SER1",
    "vendor": "SEAGATE",
    "model": "ST336607LW",
    "revision": "0007",
    "size": "20MiB",
    "claim": True,
}
SECOND = {**FIRST, "wwn": "0x5000c50000000002", "serial": "SER2"}


def inventory(*drives: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "sym": {"driver": "sym53c8xx", "pci": "0000:00:05.0", "drives": list(drives or (FIRST, SECOND)), **changes}
    }


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    return BenchTree(tmp_path).adapter().scsi("sda").scsi("sdb", wwn="0x5000c50000000002", serial="SER2")


def problems(tree: BenchTree, adapters: dict[str, Any], **options: str) -> list[str]:
    return compare(read_facts(tree.machine, state_dir=STATE), adapters, **options)


def test_a_bench_that_is_as_described_has_no_problem(tree: BenchTree) -> None:
    """Whatever way names are spelt; the firmware revision is what a drop changes, so it is no identity."""
    assert SIZE == 20 << 20
    assert problems(tree, inventory()) == []
    assert problems(tree, inventory(pci="00:05.0")) == []
    assert problems(tree, inventory({**FIRST, "wwn": 0x5000C50000000001, "revision": "9999"})) == []
    assert problems(tree, {"sym": {"driver": "sym53c8xx", "drives": [{"serial": "SER2"}]}}) == []


@pytest.mark.parametrize(
    ("adapters", "expected"),
    [
        (
            inventory(pci="0000:00:06.0"),
            "adapter sym: there is no storage adapter at 0000:00:06.0; this bench has 0000:00:05.0 (sym53c8xx)",
        ),
        (
            inventory(driver="mptsas"),
            "adapter sym at 0000:00:05.0: its driver is sym53c8xx, the inventory says mptsas",
        ),
        (
            inventory(subsystem="1077:02b1"),
            "adapter sym at 0000:00:05.0: its subsystem is 1000:1000, the inventory says 1077:02b1",
        ),
        (inventory(serial="X"), "adapter sym at 0000:00:05.0: its serial is not shown, the inventory says X"),
        (
            inventory({**FIRST, "wwn": "0x5000c500000000ff"}),
            "no drive of this bench has that WWN; sda has its serial, with WWN 0x5000c50000000001",
        ),
        (inventory({"serial": "NONE"}), "adapter sym, drive 1 (NONE): no drive of this bench has that serial"),
        (
            inventory({**FIRST, "serial": "OTHER"}),
            "adapter sym, drive 1 (0x5000c50000000001): its serial is 'SER1', the inventory says 'OTHER'",
        ),
        (
            inventory({**FIRST, "size": "1GiB"}),
            "adapter sym, drive 1 (0x5000c50000000001): its size is 20971520 bytes, the inventory says 1073741824",
        ),
        (inventory({**FIRST, "size": "big"}), "'big' is not a size"),
        (inventory(FIRST, FIRST), "WWN 0x5000c50000000001 stands twice in the inventory"),
        (inventory(FIRST, {**SECOND, "serial": "SER1"}), "serial SEAGATE SER1 stands twice in the inventory"),
    ],
)
def test_each_difference_is_told(tree: BenchTree, adapters: dict[str, Any], expected: str) -> None:
    assert any(expected in problem for problem in problems(tree, adapters)), problems(tree, adapters)


def test_all_differences_are_told_at_once(tree: BenchTree) -> None:
    wrong = inventory({**FIRST, "model": "A"}, {**SECOND, "wwn": "0x5000c500000000ff"}, driver="mptsas")
    assert len(problems(tree, wrong)) == 3


def test_an_adapter_without_an_address_is_the_only_one_of_its_driver(tree: BenchTree) -> None:
    tree.adapter("0000:00:06.0", driver="mptsas")
    assert problems(tree, inventory(pci="")) == []
    assert "gives no PCI address, and 0 adapters have its driver" in problems(tree, inventory(pci="", driver="x"))[0]
    assert "gives no PCI address" in problems(tree, inventory(pci="", driver=""))[0]
    tree.adapter("0000:00:07.0")
    assert "and 2 adapters have its driver" in problems(tree, inventory(pci=""))[0]


def test_a_drive_on_another_adapter_is_told(tree: BenchTree) -> None:
    tree.adapter("0000:00:06.0", driver="mptsas").scsi(
        "sdc", pci="0000:00:06.0", hctl="3:0:0:0", wwn="0x5000c50000000003", serial="SER3"
    )
    moved = {**FIRST, "wwn": "0x5000c50000000003", "serial": "SER3"}
    expected = "adapter sym, drive 1 (0x5000c50000000003): it is on the adapter at 0000:00:06.0, not on 0000:00:05.0"
    assert problems(tree, inventory(moved)) == [expected]


def test_two_drives_with_one_name_are_told_unless_they_are_paths_of_one(tree: BenchTree) -> None:
    tree.scsi("sdc")
    said = problems(tree, inventory(FIRST))
    assert "2 drives of this bench have wwn 0x5000c50000000001: sda, sdc" in said
    assert "2 drives of this bench have serial SER1: sda, sdc" in said
    tree.stacked("dm-0", ["sda", "sdc"], uuid="mpath-1")
    assert problems(tree, inventory(FIRST)) == []


def test_two_drives_with_one_name_are_paths_of_one_where_the_inventory_says_so(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter().adapter("0000:00:07.0", driver="virtio").scsi("sda")
    tree.scsi("sdc", hctl="3:0:0:0", pci="0000:00:07.0")
    declared = {**inventory({**FIRST, "paths": ["virt"]}), "virt": {"pci": "0000:00:07.0", "driver": "virtio"}}
    assert problems(tree, declared) == []
    tree.scsi("sde", hctl="3:0:1:0", pci="0000:00:07.0")
    assert "3 drives of this bench have wwn 0x5000c50000000001: sda, sdc, sde" in problems(tree, declared)


def test_an_adapter_without_a_driver_is_told(tree: BenchTree) -> None:
    (tree.root / "sys/devices/pci0000:00/0000:00:05.0/driver").unlink()
    assert "adapter sym at 0000:00:05.0: its driver is no driver, the inventory says sym53c8xx" in problems(
        tree, inventory()
    )


def test_a_local_bench_has_nothing_to_compare(tree: BenchTree) -> None:
    assert problems(tree, {"files": {"drives": [{"file": "/x"}]}}, kind="local") == []


def test_hostile_names_are_only_text(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter().scsi("sda", model="\x1b[31m", serial="{{ 7*7 }}\n")
    said = problems(tree, inventory())
    assert said
    assert all(sentence.isascii() and sentence.isprintable() for sentence in said)


def two_channels(folder: Path) -> BenchTree:
    """A card of two channels: two functions in one slot, a drive behind each."""
    tree = BenchTree(folder).adapter().adapter("0000:00:05.1").scsi("sda")
    return tree.scsi("sdb", pci="0000:00:05.1", hctl="3:0:0:0", wwn="0x5000c50000000002", serial="SER2")


def test_a_card_of_two_channels_is_one_adapter(tmp_path: Path) -> None:
    """Its second function is not declared by itself, so its drives are the card's."""
    assert problems(two_channels(tmp_path), inventory()) == []


def test_a_channel_that_is_an_adapter_of_its_own_keeps_its_drives(tmp_path: Path) -> None:
    adapters = inventory()
    adapters["other"] = {"driver": "sym53c8xx", "pci": "0000:00:05.1", "drives": []}
    (told,) = problems(two_channels(tmp_path), adapters)
    assert "it is on the adapter at 0000:00:05.1, not on 0000:00:05.0" in told


DEBUG = {"wwn": "0x33333330000007d0", "serial": "2000", "vendor": "Linux", "model": "scsi_debug", "size": "20MiB"}


def test_an_adapter_without_hardware_is_compared_like_any_other(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter().scsi("sda").debug_host()
    named = {name: str(DEBUG[name]) for name in ("wwn", "serial", "vendor", "model")}
    tree.scsi("sdb", above="pseudo_0/adapter0", hctl="3:0:0:0", **named)
    entry = {"driver": "scsi_debug", "pseudo": "adapter0", "drives": [DEBUG]}
    both = {**inventory(FIRST), "debug": entry}
    assert problems(tree, both) == []
    [said] = problems(tree, {"debug": {**entry, "pseudo": "adapter1"}})
    assert said.startswith("adapter debug: there is no storage adapter at pseudo/adapter1; this bench has ")
    assert said.endswith("0000:00:05.0 (sym53c8xx), pseudo/adapter0 (scsi_debug)")
    [said] = problems(tree, {"debug": {**entry, "drives": [FIRST]}})
    assert said.endswith("it is on the adapter at 0000:00:05.0, not on pseudo/adapter0")
    facts = environment_of(read_facts(tree.machine, state_dir=STATE), both)["adapters"]["debug"]
    assert (facts["pci"], facts["driver"], [*facts["drives"]]) == ("pseudo/adapter0", "scsi_debug", [DEBUG["wwn"]])
