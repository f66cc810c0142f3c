# SPDX-License-Identifier: Apache-2.0
"""Drives in a volume that storqual made are still the bench's own: settings, preflight and blocks work on them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual_core.facts.preflight import Request, examine
from storqual_core.guard.claims import claims_of_adapters
from storqual_core.guard.hold import hold
from storqual_core.guard.signatures import AREA, Ledger, own_volumes, volume_path, volume_uuid
from storqual_core.kit.errors import BadInputError, GuardRefusalError, StorqualError
from storqual_core.provision.drives import usable_drives
from storqual_core.turns.batch_file import parse_batch
from storqual_core.turns.targets import hold_targets
from tests.support.batches import launch_batch
from tests.support.bench_tree import MIB, STATE, BenchTree
from tests.support.fake_md import Array, FakeMd

IDS = ["0x5000c50000000001", "0x5000c50000000002", "0x5000c50000000003"]
MADE = volume_uuid(IDS[:2])
DRIVES = [
    {"wwn": wwn, "serial": f"S{place}", "vendor": "SEAGATE", "model": "ST336607LW", "size": 4 * MIB, "claim": True}
    for place, wwn in enumerate(IDS)
]
ADAPTERS = {"sym": {"driver": "sym53c8xx", "pci": "0000:00:05.0", "drives": DRIVES}}
CLAIMS = claims_of_adapters(ADAPTERS)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BenchTree:
    """An array of the first two of three drives; this process sees the bench as its own."""
    tree = BenchTree(tmp_path).adapter()
    for place, wwn in enumerate(IDS):
        tree.scsi(f"sd{'abc'[place]}", wwn=wwn, serial=f"S{place}", size=4 * MIB)
    for place in ("guard.hold", "provision.drives"):
        monkeypatch.setattr(f"storqual_core.{place}.Machine", lambda: tree.machine)
    FakeMd(tree).assemble(Array("/dev/md127", MADE, "1", ["/dev/sda", "/dev/sdb"], [], "512K", "own"))
    return tree


def announce(tree: BenchTree) -> None:
    Ledger.read(tree.machine.path(STATE)).announce(*IDS[:2], name=MADE)


def test_an_array_is_storquals_own_when_its_uuid_was_written_down_before(tree: BenchTree) -> None:
    assert own_volumes(tree.machine, STATE, CLAIMS) == ()
    announce(tree)
    (volume,) = own_volumes(tree.machine, STATE, CLAIMS)
    assert (volume.path, volume.uuid, volume.members) == ("/dev/md127", MADE, tuple(IDS[:2]))


def test_settings_of_members_can_be_changed_beside_their_volume(tree: BenchTree) -> None:
    """Also when only one of them is asked for; but not those of somebody else's array."""
    with pytest.raises(GuardRefusalError, match="md array md127"), usable_drives(CLAIMS, STATE, "r"):
        pass
    announce(tree)
    with usable_drives(CLAIMS, STATE, "r") as targets:
        assert [targets[drive].node for drive in IDS] == ["sda", "sdb", "sdc"]
    with usable_drives(CLAIMS[:1], STATE, "r") as targets:
        assert [target.node for target in targets.values()] == ["sda"]


def test_a_volume_that_is_not_held_for_being_deleted_is_not_taken_over(tree: BenchTree) -> None:
    announce(tree)
    (volume,) = own_volumes(tree.machine, STATE, CLAIMS)
    with (
        hold(CLAIMS, purpose="settings", state_dir=STATE, run="r", volumes=[volume], machine=tree.machine) as held,
        pytest.raises(StorqualError, match="not held for being deleted"),
    ):
        held.adopt(volume.id)


def test_a_preflight_accepts_volumes_that_storqual_made_and_stamps_only_drives_that_stand_alone(
    tree: BenchTree,
) -> None:
    request = Request(adapters=ADAPTERS, state_dir=STATE, stamp=True)
    assert examine(request, machine=tree.machine).exit_code == 4
    announce(tree)
    found = examine(request, machine=tree.machine)
    assert (found.exit_code, found.stamped) == (0, [IDS[2]])


def block(drives: list[str]) -> Any:
    targets: dict[str, Any] = {drive["wwn"]: {"claim": drive} for drive in DRIVES}
    targets["sym/volume1"] = {"volume": {"path": volume_path(MADE), "uuid": MADE, "members": IDS[:2]}}
    launch = {
        "index": 0,
        "adapter": "sym",
        "arm": "baseline",
        "configuration": "baseline",
        "point": "p",
        "n": 1,
        "drives": drives,
        "fio": {"rw": "randwrite", "bs": 4096, "runtime_s": 1.0},
        "switch": [],
    }
    names = {"run": "r", "block": "b", "bench": "b1", "session": "s1", "state_dir": STATE, "idle_s": 0.0}
    return parse_batch(json.dumps(launch_batch([launch], **names, targets=targets)))


def test_a_block_holds_the_volume_and_tells_its_members_beside_it(tree: BenchTree) -> None:
    announce(tree)
    with hold_targets(block(["sym/volume1"])) as targets:
        assert {name: target.node for name, target in targets.items()} == {
            "sym/volume1": f"/dev/{tree.machine.link(volume_path(MADE)).rsplit('/', 1)[-1]}",
            IDS[0]: "/dev/sda",
            IDS[1]: "/dev/sdb",
            IDS[2]: "/dev/sdc",
        }


def test_a_volume_is_refused_when_storqual_made_another_one_of_its_members(tree: BenchTree) -> None:
    Ledger.read(tree.machine.path(STATE)).announce(*IDS[:2], name=volume_uuid(IDS))
    with pytest.raises(GuardRefusalError, match="storqual did not make it"), hold_targets(block(["sym/volume1"])):
        pass


def test_a_volume_is_refused_when_one_of_its_members_is_not_claimed(tree: BenchTree) -> None:
    announce(tree)
    asked = block(["sym/volume1"])
    targets = {name: target for name, target in asked.targets.items() if name != IDS[1]}
    with (
        pytest.raises(GuardRefusalError, match=f"its member {IDS[1]} is not claimed"),
        hold_targets(replace(asked, targets=targets)),
    ):
        pass


def test_no_launch_is_pointed_at_a_member(tree: BenchTree) -> None:
    """It would write under the volume."""
    announce(tree)
    with (
        pytest.raises(BadInputError, match="is a target, and so is a volume of which it is a member"),
        hold_targets(block(IDS[:1])),
    ):
        pass


def test_a_part_that_a_batch_left_on_storquals_own_volume_is_no_reason_against_it(tree: BenchTree) -> None:
    announce(tree)
    tree.partition("md127", 1, start=AREA)
    with hold_targets(block(["sym/volume1"])) as targets:
        assert "sym/volume1" in targets


def test_any_other_part_of_a_volume_tells_of_data(tree: BenchTree) -> None:
    announce(tree)
    tree.partition("md127", 2, start=2 * AREA)
    known = r"the kernel knows partitions of it \(md127p2\)"
    with pytest.raises(GuardRefusalError, match=known), hold_targets(block(["sym/volume1"])):
        pass


def test_a_part_of_a_volume_that_storqual_made_of_other_drives_tells_of_data(tree: BenchTree) -> None:
    Ledger.read(tree.machine.path(STATE)).announce(*IDS[:1], name=MADE)
    tree.partition("md127", 1, start=AREA)
    known = r"the kernel knows partitions of it \(md127p1\)"
    with pytest.raises(GuardRefusalError, match=known), hold_targets(block(["sym/volume1"])):
        pass


def test_while_a_volume_is_let_go_for_a_mount_other_targets_are_taken_again(tree: BenchTree) -> None:
    """It is mounted, and so are its members: nothing is decided of them before they are taken again."""
    announce(tree)
    with hold_targets(block(["sym/volume1"])) as targets:
        held = targets.hold
        assert held is not None
        held.release("sym/volume1")
        tree.partition("md127", 1, start=AREA)
        number = tree.machine.text("/sys/class/block/md127p1/dev")
        tree.mount(number, "/run/storqual/md127p1", "xfs", namespace="77")
        held.release(IDS[2])
        held.retake(IDS[2])
        with pytest.raises(GuardRefusalError, match="partition md127p1 on it is mounted on /run/storqual/md127p1"):
            held.retake("sym/volume1")
