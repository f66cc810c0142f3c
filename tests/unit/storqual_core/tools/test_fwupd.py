# SPDX-License-Identifier: Apache-2.0
"""fwupd: JSON behind notes, error objects, and every flag that holds an update back."""

import json
from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import fwupd
from storqual_core.tools.capabilities import AdapterFacts, FirmwareImage
from tests.support.replay import Call, Replay

DEVICES = (Path(__file__).parent / "fixtures" / "fwupd" / "devices.json").read_text(encoding="utf-8")
LOOK = Call("fwupdmgr get-devices --json", DEVICES)
FIRST = "aaaabbbbccccddddeeeeffff0000111122223333"
SECOND = "1111bbbbccccddddeeeeffff0000111122223333"
IMAGE = FirmwareImage("/x/a.cab", "00", "EXA2")
INSTALL = f"fwupdmgr install /x/a.cab {FIRST} --allow-older --allow-reinstall --assume-yes --no-reboot-check --json"


def test_devices_are_read_behind_a_warning() -> None:
    """One without an id cannot be named, so it is a note."""
    facts = fwupd.read_facts(Replay([LOOK]))
    assert [(device.index, device.serial, device.firmware["firmware"]) for device in facts.adapters] == [
        (FIRST, "DSN0001", "EXA1"),
        (SECOND, "DSN0002", "EXB7"),
    ]
    assert facts.notes == (
        "WARNING: This package has not been validated",
        "a device without a DeviceId: without an id",
    )
    assert fwupd.read_facts(Replay([Call(LOOK.line, rc=2)])).adapters == ()


@pytest.mark.parametrize("flag", sorted(fwupd._OBSTACLES))
def test_every_flag_against_an_update_is_an_obstacle(flag: str) -> None:
    device = AdapterFacts(FIRST, settings={"Flags": f"internal updatable {flag}"})
    assert fwupd.obstacles(device) == [fwupd._OBSTACLES[flag]]
    assert fwupd.obstacles(AdapterFacts(FIRST, settings={"Flags": "updatable"})) == []
    assert fwupd.obstacles(AdapterFacts(FIRST)) == ["fwupd cannot update it"]


def test_a_device_that_is_held_back_is_not_updated() -> None:
    assert fwupd.firmware_objections(Replay([LOOK]), SECOND, IMAGE)[-1] == "it is in use"
    with pytest.raises(ToolError, match="waiting for a boot; it is in use"):
        fwupd.download(Replay([LOOK]), SECOND, IMAGE)


@pytest.mark.parametrize(
    ("stdout", "rc", "words"),
    [
        ('{"Error": {"Domain": "FwupdError", "Code": 9, "Message": "nothing matched"}}', 1, "nothing matched"),
        ('{"Error": {"Message": "odd"}}', 0, "odd"),
        ("", 3, "status 3"),
        ("", 2, "status 2"),
    ],
)
def test_an_installation_that_did_nothing_is_a_failure(stdout: str, rc: int, words: str) -> None:
    """An error object with status 0, and a status of its own for nothing to do."""
    with pytest.raises(ToolError, match=words):
        fwupd.download(Replay([LOOK, Call(INSTALL, stdout, rc=rc)]), FIRST, IMAGE)


def test_an_image_is_installed_and_may_wait() -> None:
    replay = Replay([LOOK, Call(INSTALL, "{}\n")])
    fwupd.download(replay, FIRST, IMAGE)
    replay.done()
    assert fwupd.activation(Replay([LOOK]), FIRST, IMAGE) == "reboot"
    assert fwupd.activation(Replay([LOOK]), FIRST, FirmwareImage("/x", "00", "EXA1")) == "none"
    cycle = Call(LOOK.line, DEVICES.replace('"registered"', '"needs-shutdown"'))
    assert fwupd.activation(Replay([cycle]), FIRST, IMAGE) == "power cycle"
    with pytest.raises(ToolError, match="knows no device x"):
        fwupd.read_versions(Replay([LOOK]), "x")


def test_names_that_newer_releases_print_as_lists_are_kept() -> None:
    printed = {"DeviceId": "a1", "Protocols": ["org.nvmexpress", "org.example"], "VendorIds": ["PCI:0x0001"]}
    text = json.dumps({"Devices": [{**printed, "Version": "2", "VersionBootloader": "1.9"}]})
    (device,) = fwupd.parse_devices(text).adapters
    assert device.settings["Protocol"] == "org.nvmexpress org.example"
    assert (device.settings["VendorId"], device.settings["VersionBootloader"]) == ("PCI:0x0001", "1.9")


def test_a_device_without_its_name_is_not_left_out() -> None:
    found = fwupd.parse_devices('{"Devices": [{"deviceID": "a1"}, {"Name": "b2"}]}')
    assert ([each.index for each in found.adapters], found.notes) == (["a1"], ("a device without a DeviceId: b2",))
    with pytest.raises(ToolError, match="devices without a DeviceId: b2"):
        fwupd.parse_devices('{"Devices": [{"Name": "b2"}]}')
