# SPDX-License-Identifier: Apache-2.0
"""arcconf: enclosures, lanes, connectors and channels, and what they lend the drives beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import arcconf

FIXTURES = Path(__file__).parent / "fixtures" / "arcconf"
CONFIG = (FIXTURES / "getconfig.txt").read_text(encoding="utf-8")
SMARTRAID = (FIXTURES / "smartraid.txt").read_text(encoding="utf-8")
DONE = "\nCommand completed successfully.\n"


ENCLOSURE = """   Channel #2:
      Device #0
         Device is an Enclosure Services Device
         Reported Channel,Device(T:L)         : 2,0(0:0)
         Enclosure Logical Identifier         : 53CE5A0000000040
         Vendor                               : ACME
         Model                                : BP 8
         Status of Enclosure Services Device
            Speaker status                    : Not Available
     Backplane:
      Device #0
         Device is an UBM Controller
         Backplane ID                         : 7
"""


def test_an_enclosure_is_told_and_other_devices_are_kept() -> None:
    text = SMARTRAID.replace("\n\n\nCommand completed", f"\n{ENCLOSURE}\n\nCommand completed")
    adapter = arcconf.parse_config(text).adapters[0]
    assert [(each.position, each.vendor, each.model) for each in adapter.enclosures] == [("2 0", "ACME", "BP 8")]
    assert adapter.settings["device 2 0: Status of Enclosure Services Device: Speaker status"] == "Not Available"
    assert adapter.settings["device 0: Backplane ID"] == "7"
    assert adapter.drives == arcconf.parse_config(SMARTRAID).adapters[0].drives


@pytest.mark.parametrize("label", ["Transfer Speed", "Negotiated Transfer Speed"])
def test_a_name_that_an_expander_lends_is_no_sata_drive_s(label: str) -> None:
    text = SMARTRAID.replace("\n\n\nCommand completed", f"\n{ENCLOSURE}\n\nCommand completed")
    text = text.replace("5002538E00000001", "53CE5A0000000001")
    for speed, wwn in (("SATA 6.0 Gb/s", ""), ("SAS 12.0 Gb/s", "0x53ce5a0000000001")):
        told = text.replace("      Device #5\n", f"      Device #5\n         {label} : {speed}\n")
        assert arcconf.parse_config(told).adapters[0].drives[1].wwn == wwn


def test_a_member_on_a_backplane_is_found_by_its_place() -> None:
    text = SMARTRAID.replace("Enclosure 1, Slot 1(", "Backplane 0, Slot 1(")
    text = text.replace(
        "Device 5                                   : Present (457862MB", "Device 9 : Present (457862MB"
    )
    text = text.replace("Connector:CN0, Enclosure:1, Slot:1) SAME", "Connector:CN0, Backplane:0, Slot:1) SAME")
    assert arcconf.parse_config(text).adapters[0].volumes[0].members[1] == "0 5"


def test_a_name_that_the_phy_s_other_end_lends_is_no_sata_drive_s() -> None:
    """A build that does not tell the controller's own name tells it of each phy that is attached to it."""
    text = """Controllers found: 1
----------------------------------------------------------------------
Physical Device information
----------------------------------------------------------------------
      Device #0
         Device is a Hard drive
         State                              : Online
         Transfer Speed                     : SATA 3.0 Gb/s
         Reported Channel,Device(T:L)       : 0,1(1:0)
         Serial number                      : SN1
         World-wide name                    : 50000D1101D8A111
      ----------------------------------------------------------------
      Device Phy Information
      ----------------------------------------------------------------
         Phy #0
            SAS Address                     : 50000D1101D8A111
            Attached SAS Address            : 50000D1101D8A100

Command completed successfully.
"""
    assert arcconf.parse_config(text).adapters[0].drives[0].wwn == ""
    own = text.replace("name                    : 50000D1101D8A111", "name                    : 5000C50000000011")
    assert arcconf.parse_config(own).adapters[0].drives[0].wwn == "0x5000c50000000011"


def test_a_channel_ends_the_device_of_the_channel_before() -> None:
    text = """Controllers found: 1
----------------------------------------------------------------------
Physical Device information
----------------------------------------------------------------------
   Channel #0:
      Transfer Speed                     : Ultra160
      Device #6
         Device is an Enclosure
         Type                            : SAF-TE
         Vendor                          : ACME
   Channel #1:
      Transfer Speed                     : Ultra320
      Initiator at SCSI ID 7
"""
    (adapter,) = arcconf.parse_config(text + DONE).adapters
    assert [(each.position, each.vendor) for each in adapter.enclosures] == [("device 6", "ACME")]
    channels = {name: value for name, value in adapter.settings.items() if name.startswith("channel")}
    assert channels == {"channel 0: Transfer Speed": "Ultra160", "channel 1: Transfer Speed": "Ultra320"}
    assert not any("Ultra" in value for name, value in adapter.settings.items() if name.startswith("device"))


def test_a_drive_on_a_connector_is_no_member_in_an_enclosure_of_the_same_numbers() -> None:
    text = """Controllers found: 1
----------------------------------------------------------------------
Logical device information
----------------------------------------------------------------------
Logical Device number 0
   RAID level                            : 1
   Status of Logical Device              : Optimal
   --------------------------------------------------------
   Logical Device segment information
   --------------------------------------------------------
   Segment 0                             : Present (953869MB, SATA, HDD, Enclosure:1, Slot:0) DSN0001
   Segment 1                             : Present (953869MB, SATA, HDD, Enclosure:1, Slot:1) DSN0002
----------------------------------------------------------------------
Physical Device information
----------------------------------------------------------------------
      Device #0
         Device is a Hard drive
         Reported Channel,Device(T:L)    : 0,4(4:0)
         Reported Location               : Connector 1, Device 0
         Serial number                   : DSN0009
      Device #1
         Device is a Hard drive
         Reported Channel,Device(T:L)    : 0,5(5:0)
         Reported Location               : Enclosure 1, Slot 1
         Serial number                   : DSN0002
"""
    (volume,) = arcconf.parse_config(text + DONE).adapters[0].volumes
    assert volume.members == ("DSN0001", "0 5")


def test_what_a_lane_is_plugged_into_lends_no_drive_its_name() -> None:
    lane = """   --------------------------------------------------------
   Lane SAS Phy Information
   --------------------------------------------------------
      SAS Address                           : 50000D1700000010
      Attached SAS Address                  : 5000C50011110002
"""
    before = CONFIG.replace(
        "\n   --------------------------------------------------------\n   Controller Ver", "\n{}", 1
    )
    text = before.replace(
        "{}", lane + "   --------------------------------------------------------\n   Controller Ver"
    )
    (adapter,) = arcconf.parse_config(text).adapters
    assert adapter.drives[0].wwn == "0x5000c50011110001"
    assert [port.wwn for port in adapter.ports] == ["0x50000d1700000010"]
    assert adapter.settings["Lane SAS Phy Information: Attached SAS Address"] == "5000C50011110002"


def test_that_there_is_none_of_something_is_kept_and_heads_nothing() -> None:
    rule = "      ----------------------------------------------------------------\n"
    said = f"{rule}      Device Phy Information\n{rule}         No Phy information available\n"
    text = CONFIG.replace("      Device #1\n", f"{said}      Device #1\n")
    facts = arcconf.parse_config(text)
    first, second = facts.adapters[0].drives
    assert first.settings["Device Phy Information"] == "No Phy information available"
    assert second == arcconf.parse_config(CONFIG).adapters[0].drives[1]
    # where no title stands before it, the labels behind it are still the object's own
    alone = arcconf.parse_config(CONFIG.replace("   Controller Model  ", "   No battery\n   Controller Model  "))
    assert (alone.adapters[0].model, alone.adapters[0].settings["Note"]) == ("SmartX 1100", "No battery")


CONNECTORS = """----------------------------------------------------------------------
Connector information
----------------------------------------------------------------------
Connector #0
   Connector Name                           : CN0
   SAS Address                              : 50000D1700000010
"""


def test_connectors_after_the_devices_are_the_controller_s() -> None:
    text = CONFIG.replace("\n\n\nCommand completed", f"\n{CONNECTORS}\n\nCommand completed")
    text = text.replace("5000C50011110001", "50000D1700000011")
    (adapter,) = arcconf.parse_config(text).adapters
    assert [port.wwn for port in adapter.ports] == ["0x50000d1700000010"]
    assert adapter.settings["Connector information: Connector #0: SAS Address"] == "50000D1700000010"
    # the name that it lends a drive is not the drive's
    assert adapter.drives[0].wwn == ""
    assert arcconf.parse_config(text.replace(CONNECTORS, "")).adapters[0].drives[0].wwn == "0x50000d1700000011"


def test_connectors_within_the_controller_do_not_end_it() -> None:
    version = "   --------------------------------------------------------\n   Controller Version Information"
    (adapter,) = arcconf.parse_config(CONFIG.replace(version, f"{CONNECTORS}{version}")).adapters
    assert adapter.firmware == {"firmware": "4.21 (7)", "bios": "4.20 (1)"}
    assert [port.wwn for port in adapter.ports] == ["0x50000d1700000010"]


@pytest.mark.parametrize(
    ("kind", "size"), [("State of the bay : Online", "Total Capacity"), ("Device is a Storage Class Memory", "Size")]
)
def test_a_device_that_may_be_a_drive_and_does_not_say_so_is_refused(kind: str, size: str) -> None:
    text = CONFIG.replace("Device is a Hard drive", kind, 1).replace("  Total Size  ", f"  {size}  ")
    with pytest.raises(ToolError, match=r"lists device #0 and no kind that is understood: (nothing|Device is)"):
        arcconf.parse_config(text)
