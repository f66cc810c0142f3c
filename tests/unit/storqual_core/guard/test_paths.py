# SPDX-License-Identifier: Apache-2.0
"""Several paths to one drive are that drive only under its own multipath device, and nothing else is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storqual_core.guard import hold
from storqual_core.guard.claims import claims_of_adapters, read_claims
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError
from storqual_core.provision.drives import claim_record
from tests.support.bench_tree import SIZE, STATE, BenchTree, claim, designator, vpd_page
from tests.support.paths import MAP, Paths, two_paths

TWICE = "2 devices of this bench answer to that name (sda, sdc)"

HARM: dict[str, tuple[Callable[[BenchTree], object], str]] = {
    "volume": (
        lambda tree: tree.stacked("dm-8", ["dm-7"], title="vg-lv", uuid="LVM-1"),
        "LVM volume vg-lv (dm-8) is made",
    ),
    "array": (lambda tree: tree.stacked("md0", ["dm-7"]), "md array md0 (raid1) is made of it"),
    "crypt-on-a-path": (
        lambda tree: tree.stacked("dm-8", ["sdc"], title="one", uuid="CRYPT-1"),
        "encrypted volume one (dm-8) is made",
    ),
    "map-mounted": (
        lambda tree: tree.mount(tree.machine.text("/sys/class/block/dm-7/dev"), "/data"),
        "is mounted on /data",
    ),
    "path-mounted": (
        lambda tree: tree.mount(tree.machine.text("/sys/class/block/sdc/dev"), "/data"),
        "is mounted on /data",
    ),
    "swap": (lambda tree: tree.swap("/dev/dm-7"), "it is a system disk: it carries swap"),
    "map-open": (lambda tree: tree.opened("/dev/dm-7"), "on it is open for writing"),
    "path-open": (lambda tree: tree.opened("/dev/sdc"), "it is open for writing"),
    "other-size": (lambda tree: tree.write("/sys/block/sdc/size", f"{SIZE // 512 - 1}\n"), "its size is"),
    "other-model": (lambda tree: tree.write("/sys/block/sdc/device/model", "OTHER\n"), "its model is 'OTHER'"),
    "map-of-another-drive": (
        lambda tree: tree.write("/sys/class/block/dm-7/dm/uuid", "mpath-35000c50000000002\n"),
        TWICE,
    ),
    "other-kind": (lambda tree: tree.write("/sys/class/block/dm-7/dm/uuid", "LVM-35000c50000000001\n"), TWICE),
    "path-outside": (
        lambda tree: tree.scsi("sde", hctl="4:0:0:0"),
        "3 devices of this bench answer to that name (sda, sdc, sde)",
    ),
    "second-map": (lambda tree: tree.stacked("dm-9", ["sda", "sdc"], title="also", uuid=MAP), "is made of it"),
}


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A bench with a claimed drive that is reached by sda and sdc, under its multipath device dm-7."""
    return two_paths(BenchTree(tmp_path).adapter().scsi("sda").scsi("sdc", hctl="3:0:0:0"))


def refusals(tree: BenchTree, runner: Any = None, purpose: str = "write") -> list[str]:
    found = hold.check(
        [claim()], purpose=purpose, state_dir=STATE, machine=tree.machine, runner=runner or Paths(tree)
    )
    return [str(refusal) for refusal in found]


DRIVE = {"wwn": "0x5000c50000000001", "serial": "SER1", "vendor": "SEAGATE", "model": "ST336607LW", "size": SIZE}


def test_paths_through_the_declared_adapters_are_one_drive_for_a_claim_of_the_inventory(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter().adapter("0000:00:07.0", driver="virtio").scsi("sda")
    tree.scsi("sdc", hctl="3:0:0:0", pci="0000:00:07.0")
    drives = [{**DRIVE, "claim": True, "port": 0, "paths": ["b"]}]
    adapters = {"a": {"pci": "0000:00:05.0", "drives": drives}, "b": {"pci": "0000:00:07.0"}}
    (declared,) = claims_of_adapters(adapters, routes=True)
    # as a restore has it, from its memory
    (remembered,) = read_claims({declared.id: json.loads(json.dumps(claim_record(declared)))})
    assert remembered == declared

    def reasons() -> list[str]:
        found = hold.check([declared], purpose="settings", state_dir=STATE, machine=tree.machine, runner=Paths(tree))
        return [str(each) for each in found]

    assert claims_of_adapters(adapters)[0].routes == ()
    assert reasons() == []
    mounts = tree.machine.text("/proc/self/mountinfo")
    # by the path that is not the first
    tree.mount(tree.machine.text("/sys/block/sdc/dev").strip(), "/data")
    assert any("mounted on /data" in reason for reason in reasons())
    tree.write("/proc/self/mountinfo", mounts)
    device = tree.machine.real("/sys/block/sdc/device")
    tree.write(f"{device}/vpd_pg83", vpd_page(0x83, designator(3, bytes.fromhex("5000c50000000001")) * 2))
    assert reasons() == []
    copy = designator(3, bytes.fromhex("5000c50000000001")) + designator(1, b"SEAGATE COPY")
    tree.write(f"{device}/vpd_pg83", vpd_page(0x83, copy))
    assert any("do not lead to one LUN" in reason for reason in reasons())
    tree.scsi("sde", hctl="3:0:1:0", pci="0000:00:07.0")
    assert any("3 devices of this bench answer to that name" in reason for reason in reasons())


def test_two_paths_under_multipath_are_one_drive_and_the_top_is_held(tree: BenchTree) -> None:
    tree.machine.taken.update(dict.fromkeys(("/dev/sda", "/dev/sdc"), "another program holds it"))
    with hold.hold([claim()], purpose="write", state_dir=STATE, machine=tree.machine, runner=Paths(tree)) as held:
        assert held[claim().id] == "/dev/dm-7"


@pytest.mark.parametrize("harm", HARM)
def test_what_is_not_the_drive_alone_under_its_own_map_is_refused(tree: BenchTree, harm: str) -> None:
    assert refusals(tree) == []
    make, expected = HARM[harm]
    make(tree)
    assert any(expected in sentence for sentence in refusals(tree)), refusals(tree)


def test_a_map_over_another_drive_too_is_refused(tmp_path: Path) -> None:
    tree = (
        BenchTree(tmp_path)
        .adapter()
        .scsi("sda")
        .scsi("sdc", hctl="3:0:0:0")
        .scsi("sdb", hctl="4:0:0:0", wwn="0x5000c50000000002", serial="SER2")
    )
    two_paths(tree, "sda", "sdc", "sdb")
    assert any("multipath device mpatha (dm-7) is made of it" in sentence for sentence in refusals(tree))


@pytest.mark.parametrize(
    "says", ["0 2048 linear 8:0 0\n", "", "0 2048 multipath 2 0 0 0 1\n", "0 9 multipath 0 0 0 1\n" * 2]
)
def test_a_device_that_has_the_name_of_a_map_and_another_target_is_none(tree: BenchTree, says: str) -> None:
    def runner(argv: Any, **_: object) -> Completed:
        return Completed(tuple(argv), 0 if argv[0] == "dmsetup" else 2, says, "", 0.0)

    assert any(TWICE in sentence for sentence in refusals(tree, runner))


def test_a_map_that_nobody_can_ask_the_kernel_about_is_none(tree: BenchTree) -> None:
    def runner(argv: Any, **_: object) -> Completed:
        raise MissingToolError(str(argv))

    assert any(TWICE in sentence for sentence in refusals(tree, runner, purpose="settings"))


def test_what_lies_on_the_drive_is_read_through_its_map(tree: BenchTree) -> None:
    tree.fill("dm-7", 0, b"data of somebody")
    assert any("it holds" in sentence for sentence in refusals(tree))
