# SPDX-License-Identifier: Apache-2.0
"""What a flash could set back: an adapter's settings, policies and links, a drive's mode pages."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.provision.firmware.subject import FlashSubject
from storqual_core.provision.mode_pages import DriveTarget
from storqual_core.tools import fwupd, sg_write_buffer
from storqual_core.tools.capabilities import FirmwareImage
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
