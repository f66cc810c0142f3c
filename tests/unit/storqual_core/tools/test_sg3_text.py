# SPDX-License-Identifier: Apache-2.0
"""sg3_utils for people: pages as bytes, identity as words."""

from __future__ import annotations

import pytest

from storqual_core.host.identity import wwn_of_page
from storqual_core.kit.errors import ToolError
from storqual_core.tools import sg3
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text


def test_all_mode_pages_are_read_as_bytes() -> None:
    replay = Replay([Call("sg_modes -a /dev/sg0", fixture_text("sg3", "modes.txt"))])
    found = sg3.read_mode_pages(replay, "/dev/sg0")
    assert (found.identity, found.kind) == ("EXAMPLE DISK9 0007", "disk")
    assert found.titles == {(8, 0): "Caching", (10, 0): "Control", (10, 1): "Control extension"}
    assert len(found.pages[8, 0]) == 20
    assert found.pages[10, 1] == bytes.fromhex("4a01000400000000")
    assert "page_code: 0x0: 80 42 14 00" in found.notes
    assert "00     00 00 00 00 00 00 02 00" in found.notes


def test_a_page_that_is_cut_off_is_kept_as_a_note_and_takes_no_other_with_it() -> None:
    short = fixture_text("sg3", "modes.txt").replace(" 10     00 00 00 00\n", "")
    found = sg3.parse_mode_pages(short)
    assert set(found.pages) == set(found.titles) == {(10, 0), (10, 1)}
    assert any(note.startswith("Caching: mode page 0x08: 16 of 20 bytes came back: 88 12 ") for note in found.notes)
    only = short.partition(">> Control,")[0]
    with pytest.raises(ToolError, match="no mode page: Caching: mode page 0x08: 16 of 20 bytes"):
        sg3.parse_mode_pages(only)


def test_a_text_without_a_page_is_refused() -> None:
    with pytest.raises(ToolError, match="no mode page"):
        sg3.parse_mode_pages("")


def test_other_text_than_bytes_is_refused_in_the_name_of_its_tool() -> None:
    with pytest.raises(ToolError, match="sg_vpd printed 'Device' where a byte was expected"):
        sg3.parse_hex_file("Device Identification VPD page:\n")
    with pytest.raises(ToolError, match="no byte"):
        sg3.parse_hex_file("# only a comment\n")


def test_a_device_that_is_no_disk_is_identified() -> None:
    calls = [Call("sg_inq /dev/sg1", rc=6), Call("sg_inq /dev/sg1", fixture_text("sg3", "inquiry.txt"))]
    found = sg3.read_inquiry(Replay(calls), "/dev/sg1")
    assert (found.vendor, found.product, found.revision, found.serial) == ("EXAMPLE", "JBOD 24", "1.02", "ENC0001")
    assert (found.kind, found.flags["EncServ"]) == ("enclosure services device", 1)
    with pytest.raises(ToolError, match="does not identify the device"):
        sg3.parse_inquiry("standard INQUIRY:\n")
    with pytest.raises(ToolError, match=r"the identity of /dev/sg1: .*not ready"):
        sg3.read_inquiry(Replay([Call("sg_inq /dev/sg1", rc=2)]), "/dev/sg1")


def test_a_page_of_names_is_read_where_the_kernel_does_not_keep_it() -> None:
    call = Call("sg_vpd -HHH --page=0x83 /dev/sg0", fixture_text("sg3", "page_0x83.hex"))
    assert wwn_of_page(sg3.read_vpd_page(Replay([call]), "/dev/sg0", 0x83)) == "0x5000c500deadbeef"


def test_the_name_of_an_old_array_stands_without_a_designator() -> None:
    """EMC Symmetrix, before SPC-2."""
    assert wwn_of_page(bytes.fromhex("00830010" + "6006048000112233" * 2)) == "0x" + "6006048000112233" * 2


def test_the_place_of_a_line_is_no_byte_of_it() -> None:
    plain = "00 80 00 0a  45 58 30 30\n30 30 30 30  30 31\n"
    placed = " 00     00 80 00 0a  45 58 30 30\n 08     30 30 30 30  30 31\n"
    assert sg3.parse_hex_file(placed) == sg3.parse_hex_file(plain)
    assert sg3.parse_hex_file(plain)[4:] == b"EX00000001"
