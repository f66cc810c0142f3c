# SPDX-License-Identifier: Apache-2.0
"""dmidecode: the slots of a machine."""

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import dmidecode
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

TEXT = fixture_text("dmidecode", "slots.txt")


def test_slots_are_read_with_the_address_of_what_is_in_them() -> None:
    assert dmidecode.read_slots(Replay([Call("dmidecode -t slot", TEXT)])) == (
        dmidecode.Slot("PCIe Slot 2", "x16 PCI Express 3 x16", "In Use", "0000:3b:00.0"),
        dmidecode.Slot("PCIe Slot 3", "x8 PCI Express 3 x8", "Available", ""),
    )


def test_every_record_is_kept() -> None:
    records, notes = dmidecode.parse_records(TEXT)
    assert [record.title for record in records] == [
        "System Information",
        *["System Slot Information"] * 2,
        "End Of Table",
    ]
    assert records[1].lists == {"Characteristics": ("3.3 V is provided", "PME signal is supported")}
    assert len(notes) == 3


def test_a_machine_without_slots_has_none_and_one_without_firmware_tables_says_so() -> None:
    assert dmidecode.read_slots(Replay([Call("dmidecode -t slot", "# dmidecode 3.4\nSMBIOS 2.8 present.\n")])) == ()
    with pytest.raises(ToolError, match="no record of the machine's firmware: # No SMBIOS nor DMI entry point"):
        dmidecode.read_slots(Replay([Call("dmidecode -t slot", "# No SMBIOS nor DMI entry point found, sorry.\n")]))


def test_text_whose_tabs_became_blanks_is_read_the_same() -> None:
    text = (
        "Handle 0x0001, DMI type 9, 17 bytes\nSystem Slot Information\n\tDesignation: SLOT 1\n"
        "\tType: x8 PCI Express\n"
        "\tCurrent Usage: In Use\n\tCharacteristics:\n\t\t3.3 V is provided\n\t\tPME signal is supported\n"
        "\tBus Address: 0000:12:00.0\n"
    )
    blanks = text.replace("\t", " " * 8)
    assert dmidecode.slots(dmidecode.parse_records(blanks)[0]) == dmidecode.slots(dmidecode.parse_records(text)[0])
    (record,), _ = dmidecode.parse_records(blanks)
    assert record.values["Bus Address"] == "0000:12:00.0"
    assert record.lists == {"Characteristics": ("3.3 V is provided", "PME signal is supported")}


def slot(designation: str, address: str) -> str:
    return (
        f"Handle 0x0009, DMI type 9, 17 bytes\nSystem Slot Information\n\tDesignation: {designation}\n"
        f"\tCurrent Usage: In Use\n\tBus Address: {address}\n\n"
    )


@pytest.mark.parametrize("address", ["0000:00:00.0", "0000:ff:1f.7", "0000:00:1f.7"])
def test_an_address_that_several_slots_have_or_that_is_no_slots_is_left_out(address: str) -> None:
    text = slot("SLOT 1", address) + slot("SLOT 2", address) + slot("SLOT 3", "0000:3B:00.0")
    found = dmidecode.slots(dmidecode.parse_records(text)[0])
    assert [each.pci for each in found] == ["", "", "0000:3b:00.0"]


def test_records_of_releases_before_2_7_are_read_the_same() -> None:
    new = (
        "# dmidecode 2.6\nSMBIOS 2.3 present.\n"
        "Handle 0x0900, DMI type 9, 13 bytes.\nSystem Slot Information\n\tDesignation: SLOT 1\n"
        "\tCharacteristics:\n\t\t3.3 V is provided\n\t\tPME signal is supported\n"
        "Handle 0x7F00, DMI type 127, 4 bytes.\nEnd Of Table\n"
    )
    old = (
        "# dmidecode 2.6\nSMBIOS 2.3 present.\n"
        "Handle 0x0900\n\tDMI type 9, 13 bytes.\n\tSystem Slot Information\n\t\tDesignation: SLOT 1\n"
        "\t\tCharacteristics:\n\t\t\t3.3 V is provided\n\t\t\tPME signal is supported\n"
        "Handle 0x7F00\n\tDMI type 127, 4 bytes.\n\tEnd Of Table\n"
    )
    assert dmidecode.parse_records(old) == dmidecode.parse_records(new)
    assert dmidecode.parse_records(old)[0][0].title == "System Slot Information"


def test_a_text_that_stands_further_in_as_a_whole_is_read() -> None:
    text = "".join(f"    {line}\n" for line in TEXT.splitlines())
    assert dmidecode.parse_records(text)[0] == dmidecode.parse_records(TEXT)[0]


def test_slots_of_release_2_0_are_read_by_their_own_words() -> None:
    text = (
        "Handle 0x0009\n\tDMI type 9, 13 bytes.\n\tCard Slot\n\t\tSlot: PCI7\n\t\tType: 32bit Long PCI \n"
        "\t\tStatus: In use.\n\t\tSlot Features: 5v \n"
    )
    assert dmidecode.slots(dmidecode.parse_records(text)[0]) == (
        dmidecode.Slot("PCI7", "32bit Long PCI", "In use", ""),
    )
