# SPDX-License-Identifier: Apache-2.0
"""What a flash could set back: an adapter's settings, policies and links, a drive's mode pages."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import BadInputError, GuardRefusalError, MissingToolError, ToolError
from storqual_core.provision.firmware.subject import (
    Access,
    Adapters,
    Drives,
    FlashImage,
    FlashSubject,
    compare,
    image_problems,
    order_problem,
    read_image,
    same_version,
)
from storqual_core.provision.mode_pages import DriveTarget
from storqual_core.tools import fwupd, sg_write_buffer
from storqual_core.tools.capabilities import AdapterFacts, DriveFacts, FirmwareImage, ToolFacts, VolumeFacts
from tests.support.bench_tree import SIZE, STATE, BenchTree, claim
from tests.support.fake_flash import Card, make_tool
from tests.support.replay import Call, Replay

IMAGE = FirmwareImage("/x", "00", "2")
SG = DriveTarget("0x5000c50000000001", "sda", "/dev/sg0")
NVME = DriveTarget("eui.0011", "nvme0n1", "/dev/nvme0")


def page(number: int, third: int, length: int = 18) -> str:
    """A mode page whose first field byte is given."""
    return f"{number:02x} {length:02x} {third:02x} " + "00 " * (length - 1)


def pages(write_cache: int) -> list[Call]:
    """Four pages, one of which this drive does not have."""
    read = "sg_modes -R --control=0 --page=0x{:x},0x0 /dev/sg0"
    return [
        Call(read.format(1), page(1, 0xC0, 10)),
        Call(read.format(8), page(8, write_cache << 2)),
        Call(read.format(0xA), page(0xA, 0, 10)),
        Call(read.format(0x1C), rc=5),
    ]


def test_a_drives_mode_pages_are_compared_by_field() -> None:
    found = FlashSubject("d", sg_write_buffer, "/dev/sg0", Replay(pages(1)), SG).settings()
    assert (found["WCE"], found["AWRE"], found["D_SENSE"]) == (1, 1, 0)
    assert "MRIE" not in found


def test_an_nvme_drive_has_its_write_cache() -> None:
    get = "nvme get-feature /dev/nvme0 --feature-id=6"
    said = "get-feature:0x06 (Volatile Write Cache), Current value:0x00000001\n"
    assert FlashSubject("d", fwupd, "x", Replay([Call(get, said)]), NVME).settings() == {"WCE": 1}
    assert FlashSubject("d", fwupd, "x", Replay([Call(get, rc=1)]), NVME).settings() == {}


def test_a_drives_field_is_put_back(tmp_path: Any) -> None:
    (tmp_path / "block" / "sda" / "device").mkdir(parents=True)
    (tmp_path / "block" / "sda" / "device" / "rescan").write_text("")
    zeros = ",".join(["00"] * 17)
    calls = [
        Call("sg_modes -R --control=0 --page=0x8,0x0 /dev/sg0", page(8, 0)),
        Call("sg_modes -R --control=1 --page=0x8,0x0 /dev/sg0", page(8, 0xFF)),
        Call(f"sg_wr_mode --page=8 --contents=08,12,04,{zeros} --mask=00,00,04,{zeros} /dev/sg0"),
        Call("sg_modes -R --control=0 --page=0x8,0x0 /dev/sg0", page(8, 4)),
    ]
    replay = Replay(calls)
    steps = FlashSubject("d", sg_write_buffer, "/dev/sg0", replay, SG, sysfs=str(tmp_path)).put_back({"WCE": 1})
    assert steps[0].endswith("mode page 0x08 written")
    replay.done()


def test_what_a_tool_does_not_offer_is_not_asked() -> None:
    bare = ModuleType("bare")
    vars(bare).update(read_versions=lambda _runner, _index: {"firmware": "1"})
    subject = FlashSubject("a", bare, "0", Replay([]))
    assert (subject.settings(), subject.obstacles(IMAGE), subject.put_back({"setting.x": 1})) == ({}, [], [])
    assert not subject.starts_images


def test_settings_policies_and_links_of_an_adapter() -> None:
    card = Card()
    subject = FlashSubject("a", make_tool(card), "0", Replay([]))
    assert subject.settings() == {
        "setting.execution_throttle": 32,
        "volume.0.write_policy": "wb",
        "port.0.link": "up",
        "port.0.speed": "",
    }
    assert subject.put_back({"volume.7.write_policy": "wt", "port.0.link": "down"}) == []
    with pytest.raises(ToolError, match="does not show 9 any more"):
        FlashSubject("a", make_tool(card), "9", Replay([])).settings()


def test_flags_of_a_device_stand_against_a_flash() -> None:
    devices = '{"Devices": [{"DeviceId": "x", "Version": "1", "Flags": ["updatable", "locked"]}]}'
    subject = FlashSubject("d", fwupd, "x", Replay([Call("fwupdmgr get-devices --json", devices)] * 2), NVME)
    assert subject.obstacles(IMAGE) == ["it is locked"]


@pytest.mark.parametrize(
    ("one", "other", "order"),
    [
        ("27.00.00.00", "28.00.00.00", -1),
        ("16.00.10.00", "16.00.9.00", 1),
        ("07.00.01.00", "7.0.1.0", 0),
        ("5.2-0 (19109)", "5.2-0 (19204)", -1),
        ("2B3QEXM7", "2B4QEXM7", -1),
        ("2B3Q", "GPK2", None),
        ("26.00", "26.00.00.00", None),
        ("26.00", "27.00.00.00", -1),
        ("a", "b", None),
        ("1.0rc1", "1.0", None),
    ],
)
def test_versions_are_ordered_where_they_are_numbered_alike(one: str, other: str, order: int | None) -> None:
    assert compare(one, other) == order
    assert compare(other, one) == (None if order is None else -order)


@pytest.mark.parametrize(
    ("found", "wanted", "allowed", "words"),
    [
        ("27.00", "28.00", None, ""),
        ("28.00", "27.00", None, "newer than 27.00; name 28.00 in `from`"),
        ("28.00", "28.00", None, "the same as"),
        ("GPK2", "2B3Q", None, "not numbered like"),
        ("28.00", "27.00", ["28.00"], ""),
        ("28.00.03.00", "27.00", ["28.00"], ""),
        ("28.001", "27.00", ["28.00"], "may replace only 28.00"),
        ("26.00", "28.00", ["27.00", "27.50"], "may replace only 27.00, 27.50"),
    ],
)
def test_a_step_needs_a_newer_version_or_somebody_who_allows_it(
    found: str, wanted: str, allowed: list[str] | None, words: str
) -> None:
    told = order_problem(found, wanted, allowed)
    assert (told == "") == (words == "")
    assert words in told


@given(st.text(), st.text())
def test_any_texts_can_be_compared(one: str, other: str) -> None:
    assert compare(one, other) in (-1, 0, 1, None)
    assert same_version(one, other) == same_version(other, one)
    assert same_version(one, one)


@pytest.fixture
def image(tmp_path: Path) -> FlashImage:
    """An image with a signature by a PEM key."""
    (tmp_path / "fw.bin").write_bytes(b"firmware")
    (tmp_path / "key").write_text("-----BEGIN PUBLIC KEY-----\nMFk=\n-----END PUBLIC KEY-----\n")
    return FlashImage(
        str(tmp_path / "fw.bin"),
        hashlib.sha256(b"firmware").hexdigest(),
        "2.0",
        signature=str(tmp_path / "fw.sig"),
        key=str(tmp_path / "key"),
    )


def openssl(image: FlashImage, stdout: str, rc: int = 0) -> Replay:
    """The command that checks a signature by a PEM key."""
    line = f"openssl dgst -sha256 -verify {image.key} -signature {image.signature} {image.path}"
    return Replay([Call(line, stdout, rc=rc)])


def gpgv(image: FlashImage, stdout: str, rc: int = 0) -> Replay:
    """The command that checks a signature by a keyring."""
    line = f"gpgv --status-fd 1 --keyring {image.key} {image.signature} {image.path}"
    return Replay([Call(line, stdout, "gpgv: BAD\n", rc)])


def test_a_good_signature_needs_status_and_word(image: FlashImage, tmp_path: Path) -> None:
    assert image_problems(openssl(image, "Verified OK\n"), image) == []
    for stdout, rc in (("Verified OK\n", 1), ("Verification failure\n", 0), ("", 0)):
        (problem,) = image_problems(openssl(image, stdout, rc), image)
        assert "is not good by" in problem
    (tmp_path / "key").write_bytes(b"\x99\x01keyring")
    assert image_problems(gpgv(image, "[GNUPG:] GOODSIG x\n[GNUPG:] VALIDSIG ABCD\n"), image) == []
    assert "gpgv: BAD" in image_problems(gpgv(image, "[GNUPG:] BADSIG x\n", 1), image)[0]
    assert image_problems(gpgv(image, "[GNUPG:] GOODSIG x\n"), image)


def test_a_digest_comes_before_a_signature(image: FlashImage) -> None:
    (problem,) = image_problems(Replay([]), replace(image, sha256="0" * 64))
    assert problem.endswith("expected " + "0" * 64)
    assert "cannot be read: No such file" in image_problems(Replay([]), replace(image, path="/no/image"))[0]
    assert image_problems(Replay([]), replace(image, signature="", key="")) == []


def test_a_signature_that_cannot_be_checked_is_not_good(image: FlashImage) -> None:
    assert "/no/key: cannot be read" in image_problems(Replay([]), replace(image, key="/no/key"))[0]

    def missing(_argv: object, **_options: object) -> None:
        raise MissingToolError("`openssl` is not installed on this machine")

    assert "its signature could not be checked: `openssl` is not installed" in image_problems(missing, image)[0]  # type: ignore[arg-type]


def test_an_image_survives_the_memory(image: FlashImage) -> None:
    assert read_image(image.record()) == image
    with pytest.raises(BadInputError, match="found no sha256"):
        read_image({"path": "x", "version": "1"})


PCI = "0000:05:00.0"
WWN = claim().wwn
DRIVE = {"wwn": WWN, "serial": "SER1", "vendor": "SEAGATE", "model": "ST336607LW", "size": SIZE, "claim": True}


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    made = BenchTree(tmp_path)
    return made.adapter(PCI).scsi("sda", pci=PCI)


def access(tree: BenchTree, consent: Sequence[str] = ()) -> Access:
    return Access(STATE, "r1", tuple(consent), Replay([]), tree.machine)


def adapters(tree: BenchTree, consent: Sequence[str] = (), **declared: Any) -> Adapters:
    """The adapter as an inventory declares it."""
    return Adapters(access(tree, consent), {"sas0": {"pci": PCI, "serial": "CSN1", "drives": [DRIVE], **declared}})


def tool(*found: AdapterFacts) -> ModuleType:
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
