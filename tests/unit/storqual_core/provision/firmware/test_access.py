# SPDX-License-Identifier: Apache-2.0
"""Who may be flashed: the adapter that is meant, everything behind it claimed, every drive named by the consent."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from storqual_core.kit.errors import GuardRefusalError, ToolError
from storqual_core.provision.firmware.subject import Access, Adapters, Drives
from storqual_core.tools import sg_write_buffer
from storqual_core.tools.capabilities import AdapterFacts, DriveFacts, ToolFacts, VolumeFacts
from tests.support.bench_tree import SIZE, STATE, BenchTree, claim
from tests.support.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Sequence

PCI = "0000:05:00.0"
WWN = claim().wwn
DRIVE = {"wwn": WWN, "serial": "SER1", "vendor": "SEAGATE", "model": "ST336607LW", "size": SIZE, "claim": True}


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """An adapter with one drive."""
    made = BenchTree(tmp_path)
    return made.adapter(PCI).scsi("sda", pci=PCI)


def access(tree: BenchTree, consent: Sequence[str] = ()) -> Access:
    """The guard over the tree."""
    return Access(STATE, "r1", tuple(consent), Replay([]), tree.machine)


def adapters(tree: BenchTree, consent: Sequence[str] = (), **declared: Any) -> Adapters:
    """The adapter as an inventory declares it."""
    return Adapters(access(tree, consent), {"sas0": {"pci": PCI, "serial": "CSN1", "drives": [DRIVE], **declared}})


def tool(*found: AdapterFacts) -> ModuleType:
    """A tool that shows these."""
    made = ModuleType("fake")
    vars(made).update(read_facts=lambda _runner: ToolFacts(found))
    return made


def refusal(owners: Adapters | Drives, *cards: AdapterFacts, write: bool = True) -> str:
    """What the guard says, or nothing."""
    try:
        with owners.hold(tool(*cards), write=write):
            return ""
    except GuardRefusalError as problem:
        return str(problem)


def test_a_flash_needs_a_consent_that_names_every_drive_behind_the_adapter(tree: BenchTree) -> None:
    assert "there is no consent to it; add -e consent=00000001" in refusal(adapters(tree))
    assert refusal(adapters(tree), write=False) == ""
    assert refusal(adapters(tree, ["000001"])) == ""
    assert "there is no consent" in refusal(Drives(access(tree), (claim(),)))
    assert refusal(Drives(access(tree, ["000001"]), (claim(),))) == ""


def test_a_drive_behind_the_adapter_that_nobody_claimed_forbids_it(tree: BenchTree) -> None:
    tree.scsi("sdb", pci=PCI, wwn="0x5000c50000000002", serial="SER2")
    told = refusal(adapters(tree, ["000001"]))
    assert "drive 0x5000c50000000002 (sdb): it is not claimed" in told
    assert "0x5000c50000000002" in refusal(adapters(tree), write=False)


def test_a_drive_behind_another_adapter_does_not_matter(tree: BenchTree) -> None:
    tree.adapter("0000:06:00.0", driver="mptsas").scsi(
        "sdb", pci="0000:06:00.0", wwn="0x5000c50000000002", serial="S2"
    )
    assert refusal(adapters(tree, ["000001"])) == ""


@pytest.mark.parametrize("use", ["mounted", "swap", "data"])
def test_a_drive_in_use_or_with_data_forbids_it(tree: BenchTree, use: str) -> None:
    number = tree.machine.text("/sys/class/block/sda/dev")
    if use == "mounted":
        tree.mount(number, "/data")
    elif use == "swap":
        tree.swap("/dev/sda")
    else:
        tree.fill("sda", 0, b"somebody's data")
    assert f"drive {WWN}" in refusal(adapters(tree, ["000001"]))


def test_all_refusals_are_told_at_once(tree: BenchTree) -> None:
    tree.scsi("sdb", pci=PCI, wwn="0x5000c50000000002", serial="SER2")
    told = refusal(adapters(tree)).splitlines()
    assert len(told) == 2


def test_an_adapter_with_nothing_behind_it_is_named_itself(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter(PCI)
    bare = {"drives": [], "serial": "CSN00012345"}
    assert "add -e consent=00012345 if you mean this adapter" in refusal(adapters(tree, **bare))
    assert "there is no consent" in refusal(adapters(tree, ["12345"], **bare))
    assert refusal(adapters(tree, ["012345"], **bare)) == ""
    assert refusal(adapters(tree, [PCI], **bare)) == ""
    assert refusal(adapters(tree, **bare), write=False) == ""


MEMBERS = (DriveFacts("252:0", wwn=WWN, serial="SER1", model="ST336607LW"), DriveFacts("252:1", serial="FOREIGN"))


@pytest.fixture
def volume(tmp_path: Path) -> BenchTree:
    """A RAID controller with one volume in the kernel's eyes; its member is hidden."""
    return BenchTree(tmp_path).adapter(PCI).scsi("sda", pci=PCI, wwn="0x6001438011112222", serial="VOL")


def raid(*members: str) -> AdapterFacts:
    """What the controller's tool shows."""
    made = VolumeFacts("0", device="/dev/sda", members=members, healthy=True)
    return AdapterFacts("0", pci=PCI, drives=MEMBERS, volumes=(made,))


def test_a_volume_of_claimed_drives_that_nobody_uses_may_go_away(volume: BenchTree) -> None:
    """Its members are named by the consent, although the kernel does not show them."""
    assert refusal(adapters(volume, ["000001"]), raid("252:0")) == ""
    assert refusal(adapters(volume), raid("252:0"), write=False) == ""
    assert "there is no consent to it; add -e consent=00000001" in refusal(adapters(volume), raid("252:0"))


def test_a_volume_in_use_or_of_foreign_drives_forbids_it(volume: BenchTree) -> None:
    assert "is not claimed" in refusal(adapters(volume, ["000001"]), raid("252:0", "252:1"))
    assert "neither the kernel nor the adapter shows" in refusal(adapters(volume, ["000001"]), AdapterFacts("0"))
    volume.mount(volume.machine.text("/sys/class/block/sda/dev"), "/data")
    assert "volume 0: sda is mounted on /data" in refusal(adapters(volume, ["000001"]), raid("252:0"))


def test_the_tools_adapter_is_found_by_address_and_serial(tree: BenchTree) -> None:
    cards = (AdapterFacts("0", pci="0000:06:00.0", serial="CSN2"), AdapterFacts("1", pci=PCI.upper(), serial="CSN1"))
    (subject,) = adapters(tree).subjects(tool(*cards), ())
    assert (subject.owner, subject.index, subject.pci) == ("sas0", "1", PCI)
    (subject,) = adapters(tree, pci=None).subjects(tool(AdapterFacts("7", serial="CSN1")), ())
    assert subject.index == "7"


@pytest.mark.parametrize(
    ("card", "declared"),
    [
        (AdapterFacts("0", pci=PCI, serial="OTHER"), {}),
        (AdapterFacts("0", pci="0000:06:00.0", serial="CSN1"), {}),
        (AdapterFacts("0", model="no identity"), {}),
        (AdapterFacts("0", pci=PCI), {"pci": "0000:07:00.0"}),
    ],
    ids=["serial", "address", "nothing", "elsewhere"],
)
def test_an_adapter_that_differs_in_anything_is_not_the_one(
    tree: BenchTree, card: AdapterFacts, declared: dict[str, Any]
) -> None:
    with pytest.raises(ToolError, match="adapter sas0: 0 adapters of the tool have pci"):
        adapters(tree, **declared).subjects(tool(card), ())


def test_an_adapter_without_an_identity_in_the_inventory_is_refused(tree: BenchTree) -> None:
    with pytest.raises(ToolError, match="states neither its PCI address nor its serial number"):
        adapters(tree, pci=None, serial=None).subjects(tool(), ())


def test_an_image_for_another_board_is_refused(tree: BenchTree) -> None:
    card = tool(AdapterFacts("0", pci=PCI))
    assert adapters(tree).subjects(card, ["1000:1000"])
    with pytest.raises(ToolError, match="the image is for boards 1000:3010, this one is 1000:1000"):
        adapters(tree).subjects(card, ["1000:3010"])


def test_a_drive_is_named_by_its_sg_node_or_by_the_tool_that_knows_its_serial(tree: BenchTree) -> None:
    drives = Drives(access(tree), (claim(),))
    (subject,) = drives.subjects(sg_write_buffer, ())
    assert (subject.owner, subject.index) == (WWN, "/dev/sg0")
    (subject,) = drives.subjects(tool(AdapterFacts("abc", serial="SER1"), AdapterFacts("d", serial="X")), ())
    assert subject.index == "abc"
    with pytest.raises(ToolError, match="0 devices of the tool have serial SER1"):
        drives.subjects(tool(), ())


def test_what_a_restore_needs_is_remembered(tree: BenchTree) -> None:
    """Claims and consent, so that neither inventory nor drop is."""
    kept = adapters(tree, ["000001"]).memory("sas0")
    assert kept["adapter"]["drives"] == [DRIVE]
    assert (kept["adapter"]["pci"], kept["consent"]) == (PCI, ["000001"])
    kept = Drives(access(tree, ["000001"]), (claim(),)).memory(WWN)
    assert (kept["kind"], kept["claim"]["serial"]) == ("drive", "SER1")
