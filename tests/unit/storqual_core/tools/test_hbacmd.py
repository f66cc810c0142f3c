# SPDX-License-Identifier: Apache-2.0
"""hbacmd: attributes, firmware parameters, boot code."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import hbacmd
from storqual_core.tools.capabilities import FirmwareImage
from tests.support.replay import Call, Replay

FIXTURES = Path(__file__).parent / "fixtures" / "hbacmd"
WWN = "10:00:00:00:00:00:00:01"
POOL = [line for path in sorted(FIXTURES.glob("*.txt")) for line in path.read_text().splitlines()]


def text_of(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def test_attributes_are_read_below_the_commands_echo() -> None:
    facts = hbacmd.parse_attributes(text_of("attributes"))
    assert (facts.index, facts.pci, facts.serial) == (WWN, "0000:3b:00.1", "SYN0000001")
    assert facts.driver_version == "12.0.0.0; HBAAPI(I) v2.3.d, 07-12-10"
    assert facts.ports[0].wwn == "0x1000000000000001"


def test_ports_are_listed_then_read_one_by_one() -> None:
    calls = [Call("hbacmd ListHBAs", text_of("list")), Call(f"hbacmd HbaAttributes {WWN}", text_of("attributes"))]
    shown = hbacmd.read_facts(Replay([*calls, Call(f"hbacmd GetFwParams {WWN}", text_of("parameters"))]))
    assert [adapter.index for adapter in shown.adapters] == [WWN]
    assert (shown.adapters[0].settings["vlink-failover (firmware parameter)"], shown.notes) == ("1", ())
    refused = hbacmd.read_facts(Replay([*calls, Call(f"hbacmd GetFwParams {WWN}", "Error: not supported\n", rc=1)]))
    assert refused.adapters[0].serial == shown.adapters[0].serial
    assert refused.notes == (f"{WWN}: hbacmd shows no firmware parameters: Error: not supported",)


def test_flash_firmware_that_does_not_run_is_pending() -> None:
    versions = hbacmd.read_versions(Replay([Call(f"hbacmd HbaAttributes {WWN}", text_of("attributes"))]), WWN)
    assert versions == {"firmware": "11.1.0.1", "firmware.pending": "11.2.0.1"}


def test_the_table_of_firmware_parameters_is_read_by_its_heading() -> None:
    table = hbacmd.parse_firmware_parameters(text_of("parameters"))
    assert table["vlink-failover"] == {"fx": "01", "low": "0", "high": "1", "def": "0", "cur": "1", "dyn": "3"}
    with pytest.raises(ToolError, match="shows no firmware parameters"):
        hbacmd.parse_firmware_parameters("Error: not supported\n")


def test_boot_code_is_written_when_the_help_knows_the_command() -> None:
    calls = [
        Call(f"hbacmd HbaAttributes {WWN}", text_of("attributes")),
        Call("hbacmd help EnableBootCode", "Usage: hbacmd EnableBootCode <WWN> <E|D>\n"),
        Call(f"hbacmd EnableBootCode {WWN} E", "Operation complete.\n"),
    ]
    replay = Replay(calls)
    assert hbacmd.read_settings(replay, WWN) == {"boot_rom": 0}
    hbacmd.write_setting(replay, WWN, "boot_rom", 1)
    replay.done()


def test_a_command_that_the_help_does_not_know_is_not_tried() -> None:
    help_call = Call("hbacmd help EnableBootCode", "ERROR: invalid command EnableBootCode\n")
    with pytest.raises(ToolError, match="does not know EnableBootCode"):
        hbacmd.write_setting(Replay([help_call]), WWN, "boot_rom", 1)


def test_a_write_that_failed_is_told() -> None:
    """With status 0 it may still have failed."""
    calls = [
        Call("hbacmd help EnableBootCode", "EnableBootCode <WWN>\n"),
        Call(f"hbacmd EnableBootCode {WWN} D", "ERROR: HBA not found\n"),
    ]
    with pytest.raises(ToolError, match="HBA not found"):
        hbacmd.write_setting(Replay(calls), WWN, "boot_rom", 0)


def test_no_attributes_are_told_with_the_tools_words() -> None:
    with pytest.raises(ToolError, match="ERROR: HBA not found"):
        hbacmd.parse_attributes("ERROR: HBA not found\n")


@given(st.lists(st.one_of(st.sampled_from(POOL), st.text()), max_size=30), st.integers(0, 1500))
def test_any_text_is_read_or_refused(lines: list[str], cut: int) -> None:
    text = "\n".join(lines)[:cut]
    with suppress(ToolError):
        # half a WWN, of a line that was cut, is kept beside a whole one
        assert any(len(wwn) == 23 for wwn in hbacmd.parse_list(text)) or "Port WWN" not in text
    for parse in (hbacmd.parse_attributes, hbacmd.parse_firmware_parameters):
        with suppress(ToolError):
            assert parse(text) is not None


def test_a_recorded_output_is_read(transcripts: Path) -> None:
    facts = hbacmd.parse_attributes((transcripts / "hbacmd" / "hbaattributes_lpe31002-m6.txt").read_text())
    assert (facts.pci, facts.model) == ("0000:59:00.1", "LPe31002-M6")
    assert facts.firmware["firmware"] != facts.firmware["firmware.flash"]


@pytest.mark.parametrize("said", ["Download Complete.\n", "The new firmware is activated. A reboot is optional.\n"])
def test_an_image_is_written_and_the_tool_says_so(said: str) -> None:
    image = FirmwareImage("/x/fw.grp", "00", "14.0.0.1")
    hbacmd.download(Replay([Call(f"hbacmd Download {WWN} /x/fw.grp", said)]), WWN, image)
    with pytest.raises(ToolError, match=r"did not accept .*: ERROR"):
        hbacmd.download(Replay([Call(f"hbacmd Download {WWN} /x/fw.grp", "ERROR: <1>\n")]), WWN, image)
    look = Call(f"hbacmd HbaAttributes {WWN}", text_of("attributes"))
    assert hbacmd.activation(Replay([look]), WWN, image) == "reboot"
    assert hbacmd.activation(Replay([look]), WWN, FirmwareImage("/x", "00", "11.1.0.1")) == "none"
    assert hbacmd.firmware_objections(Replay([]), WWN, image) == ()
    assert hbacmd.firmware_objections(Replay([]), WWN, FirmwareImage("/x", "00", "1", "bios"))


def test_ports_are_read_apart() -> None:
    two = text_of("attributes") + text_of("attributes").replace("00:01", "00:02").replace("SYN0000001", "SYN0000002")
    with pytest.raises(ToolError, match="the attributes of 2 ports in one text"):
        hbacmd.parse_attributes(two)
    with pytest.raises(ToolError, match="twice: the text is of several ports"):
        hbacmd.parse_firmware_parameters(text_of("parameters") + "00 FA-PWWN           0    1     0    1    3\n")


def test_a_value_that_comes_twice_keeps_its_name() -> None:
    text = text_of("attributes") + "Port Number                   : 0\nPort Number                   : 1\n"
    settings = hbacmd.parse_attributes(text).settings
    assert (settings["Port Number"], settings["Port Number #2"]) == ("0", "1")


def test_names_of_parameters_and_columns_are_kept() -> None:
    """A table of the driver's parameters has other columns, and names of several words."""
    text = "DX string        Low  High  Def  Cur  Exp Dyn\n00: log verbose now  0  ffffffff  0  7  1  1\n"
    row = {"dx": "00:", "low": "0", "high": "ffffffff", "def": "0", "cur": "7", "exp": "1", "dyn": "1"}
    assert hbacmd.parse_firmware_parameters(text) == {"log verbose now": row}
    odd = hbacmd.parse_firmware_parameters(text + "01: lun-queue-depth 1\n")
    assert odd == {"log verbose now": row, "lun-queue-depth": {"unread": "01: lun-queue-depth 1"}}


@pytest.mark.parametrize("text", ["", "hbacmd: command not found\n", "Port WWN : 10:00\n"])
def test_what_is_no_list_of_ports_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match=r"hbacmd lists no ports|without the whole of its WWN"):
        hbacmd.parse_list(text)
    assert hbacmd.parse_list("Manageable HBA List\n\n") == []


def test_the_name_of_an_overlay_is_no_version() -> None:
    text = text_of("attributes")
    (line,) = (line for line in text.splitlines() if line.strip().startswith("Operational FW"))
    older = text.replace(line, "FW Version : 2.72A2 (Z3F2.72A2), sli-3\nOperational FW : SLI-3 Overlay")
    assert hbacmd.parse_attributes(older).firmware["firmware"] == "2.72A2"


def test_a_word_for_none_is_no_version() -> None:
    text = text_of("attributes") + "FC FCODE Version              : None\nFC EFI BIOS Version           : 11.2.0.3\n"
    firmware = hbacmd.parse_attributes(text).firmware
    assert ("fcode" in firmware, firmware["efi"]) == (False, "11.2.0.3")
