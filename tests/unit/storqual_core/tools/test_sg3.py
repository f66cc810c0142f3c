# SPDX-License-Identifier: Apache-2.0
"""sg3_utils: exact commands, bytes, exit statuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.host.identity import wwn_of_page
from storqual_core.kit.errors import ToolError
from storqual_core.kit.settings import SETTINGS, ModeField, find
from storqual_core.tools import sg3
from storqual_core.tools.sg3 import check_page, get_field, plan_page, put_field
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

PAGE = "88\n12\n04\n" + "00\n" * 17
READ = "sg_modes -R --control=0 --page=0x8,0x0 /dev/sg3"
READ_6 = "sg_modes --six -R --control=0 --page=0x8,0x0 /dev/sg3"
WRITE = "sg_wr_mode --page=8 --contents=88,12,00 --mask=00,00,04 /dev/sg3"


def test_a_page_is_read_as_bytes() -> None:
    replay = Replay([Call(READ, PAGE)])
    assert sg3.read_page(replay, "/dev/sg3", 8) == b"\x88\x12\x04" + bytes(17)
    replay.done()


def test_a_subpage_and_the_changeable_mask_are_asked_for() -> None:
    replay = Replay([Call("sg_modes -R --control=1 --page=0xa,0x1 /dev/sg3", "4a 01 00 02 00 00")])
    assert sg3.read_page(replay, "/dev/sg3", 0x0A, 1, sg3.CHANGEABLE) == b"\x4a\x01\x00\x02\x00\x00"


def test_a_unit_attention_is_asked_again_once() -> None:
    replay = Replay([Call(READ, rc=6), Call(READ, PAGE)])
    assert sg3.read_page(replay, "/dev/sg3", 8)[0] == 0x88
    replay.done()


def test_a_second_unit_attention_is_a_failure() -> None:
    with pytest.raises(ToolError, match=r"unit attention .* again after a retry"):
        sg3.read_page(Replay([Call(READ, rc=6), Call(READ, rc=6)]), "/dev/sg3", 8)


def test_a_drive_without_the_ten_byte_command_is_asked_with_six() -> None:
    """Old drives know only MODE SENSE(6)."""
    replay = Replay([Call(READ, rc=9), Call(READ_6, PAGE)])
    assert sg3.read_page(replay, "/dev/sg3", 8)[0] == 0x88
    replay.done()


def test_a_write_is_one_masked_mode_select() -> None:
    """Contents and mask have one length, for contents beyond the mask would be written unmasked."""
    replay = Replay([Call(WRITE)])
    sg3.write_page(replay, "/dev/sg3", 8, 0, b"\x88\x12\x00", b"\x00\x00\x04")
    replay.done()
    with pytest.raises(ValueError, match="length"):
        sg3.write_page(replay, "/dev/sg3", 8, 0, b"\x88\x12\x00", b"\x00")


def test_the_saved_page_is_written_on_request() -> None:
    replay = Replay([Call("sg_wr_mode --page=1c,1 --save --contents=5c,01 --mask=00,01 /dev/sg3")])
    sg3.write_page(replay, "/dev/sg3", 0x1C, 1, b"\x5c\x01", b"\x00\x01", save=True)
    replay.done()


@pytest.mark.parametrize("status", [5, 19])
def test_a_drive_that_breaks_its_own_mask_is_said_to(status: int) -> None:
    with pytest.raises(ToolError, match="says mode page 0x08 is changeable, yet refused"):
        sg3.write_page(Replay([Call(WRITE, rc=status)]), "/dev/sg3", 8, 0, b"\x88\x12\x00", b"\x00\x00\x04")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (2, "not ready"),
        (7, "write protected"),
        (24, "reservation"),
        (33, "timed out"),
        (35, "transport"),
        (52, "No such file or directory (ENOENT)"),
        (75, "ENOTTY"),
        (99, "does not explain"),
        (137, "signal 9"),
        (-15, "signal 15"),
    ],
)
def test_exit_statuses_are_sentences(status: int, words: str) -> None:
    assert words in sg3.status_sentence(status)


@given(st.integers(-64, 255))
def test_every_exit_status_has_a_sentence(status: int) -> None:
    assert sg3.status_sentence(status)


def test_a_failure_names_device_reason_and_command() -> None:
    with pytest.raises(
        ToolError, match=r"mode page 0x08 of /dev/sg3: the drive is not ready \(gone\); command: sg_modes"
    ):
        sg3.read_page(Replay([Call(READ, rc=2, stderr="noise\ngone\n")]), "/dev/sg3", 8)


@given(st.text())
def test_no_text_gives_anything_but_bytes_or_a_sentence(text: str) -> None:
    try:
        data = sg3.parse_hex_bytes(text)
    except ToolError:
        return
    assert data == bytes(int(word, 16) for word in text.split())


def test_a_block_is_marked_as_unreadable_by_the_command_that_reaches_it() -> None:
    replay = Replay(
        [
            Call("sg_write_long --wr_uncor --lba=20480 /dev/sg3", rc=6),
            Call("sg_write_long --wr_uncor --lba=20480 /dev/sg3"),
            Call(f"sg_write_long --16 --wr_uncor --lba={1 << 32} /dev/sg3"),
        ]
    )
    sg3.mark_uncorrectable(replay, "/dev/sg3", 20480)
    sg3.mark_uncorrectable(replay, "/dev/sg3", 1 << 32)
    replay.done()


def test_a_drive_that_cannot_mark_a_block_is_a_sentence() -> None:
    refused = Call("sg_write_long --wr_uncor --lba=8 /dev/sg3", rc=5)
    with pytest.raises(ToolError, match="marking block 8 as unreadable: the drive refused the request"):
        sg3.mark_uncorrectable(Replay([refused]), "/dev/sg3", 8)


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


LONG = fixture_text("sg3", "readcap_long.txt")


def test_a_drive_tells_its_size_and_its_blocks() -> None:
    calls = [Call("sg_readcap --long /dev/sg1", "", rc=6), Call("sg_readcap --long /dev/sg1", LONG)]
    capacity = sg3.read_capacity(Replay(calls), "/dev/sg1")
    assert (capacity.size, capacity.block, capacity.physical_block) == (1000204886016, 512, 4096)
    assert (capacity.lowest_aligned, capacity.flags["lbpme"]) == (0, 1)


def test_the_words_of_older_releases_are_read() -> None:
    capacity = sg3.parse_capacity(fixture_text("sg3", "readcap_old.txt"))
    assert (capacity.size, capacity.physical_block) == (1 << 30, None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Number of logical blocks=1953525168", "Number of logical blocks=1953525167"),
        ("length=512 bytes\n   Log", "length=4096 bytes\n   Log"),
        ("0x74706daf", "0x74706db0"),
        ("1000204886016", "1000204886528"),
        ("exponent=3", "exponent=0"),
    ],
)
def test_sizes_that_are_not_one_are_refused(old: str, new: str) -> None:
    with pytest.raises(ToolError, match=r"sizes that are not one|two physical block lengths"):
        sg3.parse_capacity(LONG.replace(old, new))


def test_no_size_is_told_with_the_tools_words() -> None:
    with pytest.raises(ToolError, match="tells no size: READ CAPACITY failed"):
        sg3.parse_capacity("READ CAPACITY failed\n")
    with pytest.raises(ToolError, match="the drive is not ready"):
        sg3.read_capacity(Replay([Call("sg_readcap --long /dev/sg1", "", rc=2)]), "/dev/sg1")


def test_the_words_of_the_first_releases_are_read() -> None:
    text = "Read Capacity results:\n   Last block address=71687371 (0x445dccb), Number of blocks=71687372\n"
    text += "   Block size = 512 bytes\nHence:\n   Device size: 36703934464 bytes, 35003.6 MiB, 36.70 GB\n"
    assert (sg3.parse_capacity(text).size, sg3.parse_capacity(text).block) == (36703934464, 512)
    with pytest.raises(ToolError, match="sizes that are not one"):
        sg3.parse_capacity(text.replace("blocks=71687372", "blocks=71687371"))


ALL = fixture_text("sg3", "logs_all.txt")


def test_pages_are_read_by_number() -> None:
    pages = sg3.parse_log_pages(ALL)
    assert sorted(page for page, _ in pages) == [0x0, 0x2, 0x6, 0xD, 0xE, 0x10, 0x18]
    assert pages[0x0D, 0].values["Current temperature"] == "30 C"
    assert pages[0x10, 0].values["Parameter code #2"] == "2"
    assert pages[0x10, 0].values["accumulated power-on hours"] == "12"
    assert pages[0x18, 0].values["Invalid DWORD count"] == "4"
    assert len(pages[0x00, 0].notes) == 3


def test_error_counters_are_those_of_the_error_pages() -> None:
    calls = [Call("sg_logs -a /dev/sg1", "", rc=6), Call("sg_logs -a /dev/sg1", ALL)]
    assert sg3.error_counters(sg3.read_log_pages(Replay(calls), "/dev/sg1")) == {
        "write.Errors corrected without substantial delay": 0,
        "write.Total errors corrected": 3,
        "write.Total bytes processed": 123456,
        "write.Total uncorrected errors": 1,
        "non_medium.Non-medium error count": 12,
    }


def test_a_page_that_lists_another_number_of_phys_than_it_says_does_not_hide_the_others() -> None:
    whole, odd = (sg3.parse_log_pages(ALL.replace("phys = 1", f"phys = {count}")) for count in (1, 2))
    assert odd[0x18, 0].unread == "sg_logs reports 2 phys and lists 1"
    assert sg3.link_counters(odd) == {}
    assert sg3.link_counters(whole)
    assert {key: page for key, page in odd.items() if key != (0x18, 0)} == {
        key: page for key, page in whole.items() if key != (0x18, 0)
    }


def test_no_page_is_told_with_the_tools_words() -> None:
    with pytest.raises(ToolError, match="no log page: log_sense: not supported"):
        sg3.parse_log_pages("log_sense: not supported\n")
    with pytest.raises(ToolError, match="the drive does not know this command"):
        sg3.read_log_pages(Replay([Call("sg_logs -a /dev/sg1", "", rc=9)]), "/dev/sg1")


ODD = fixture_text("sg3", "logs_odd.txt")


def test_a_page_without_a_number_in_its_title_gives_nothing_to_the_page_before() -> None:
    pages = sg3.parse_log_pages(ODD)
    assert list(pages) == [(6, 0), (-1, 0), (0x37, 0), (0x18, 0)]
    assert sg3.error_counters(pages) == {"non_medium.Non-medium error count": 3}
    assert pages[-1, 0].values == {"Data bytes received with WRITE commands": "5 GB"}
    assert pages[0x37, 0].notes == ("00     37 00 00 04 00 00 00 04",)


def test_what_a_phy_tells_twice_is_counted_once() -> None:
    pages = sg3.parse_log_pages(ODD)
    assert sg3.link_counters(pages) == {
        "link.Running disparity error count": 54,
        "link.Loss of DWORD synchronization": 22,
    }
    assert pages[0x18, 0].values["Phy event: Running disparity error count"] == "52"


def test_a_label_that_compares_is_read_whole() -> None:
    text = (
        "Seagate cache page [0x37]\n"
        "  Number of read and write commands whose size <= segment size = 400\n"
        "  Number of read and write commands whose size > segment size = 500\n"
        "HGST/WDC performance counters page [0x30]\n"
        "  Seeks >= 1/3 and < 2/3 = 3\n"
    )
    pages = sg3.parse_log_pages(text)
    assert pages[0x37, 0].values == {
        "Number of read and write commands whose size <= segment size": "400",
        "Number of read and write commands whose size > segment size": "500",
    }
    assert pages[0x30, 0].values == {"Seeks >= 1/3 and < 2/3": "3"}


@pytest.mark.parametrize(
    "title",
    ["Volume statistics page (ssc-4), subpage=0", "Unable to decode Drive control verification (lto-5) [dcv_]"],
)
def test_values_of_a_page_without_a_number_are_not_those_of_the_page_before_it(title: str) -> None:
    text = f"Write error counter page  [0x2]\n  Total uncorrected errors = 0\n{title}\n  Total write retries: 4\n"
    pages = sg3.parse_log_pages(text)
    assert pages[2, 0].values == {"Total uncorrected errors": "0"}
    assert pages[-1, 0] == sg3.LogPage(title, {"Total write retries": "4"})


def test_a_page_that_is_not_decoded_has_its_number() -> None:
    text = (
        "Non-medium error page  [0x6]\n  Non-medium error count = 1\n"
        "Unable to decode page=0x3a, subpage=0x2\n 00   3a 02\n"
    )
    pages = sg3.parse_log_pages(text)
    assert pages[6, 0].notes == ()
    assert pages[0x3A, 2].notes == ("00   3a 02",)


CACHING = bytes.fromhex("8812 0400 ffff 0000 ffff ffff 9020 0000 0000 0000".replace(" ", ""))
FIELDS = [
    setting.field for setting in SETTINGS.values() if setting.field is not None and setting.field.protocol is None
]


def wce(value: int) -> dict[str, tuple[ModeField, int]]:
    return {"WCE": (find("drive", "WCE").field, value)}


def test_fields_are_read_where_the_standard_puts_them() -> None:
    """A caching page as a drive answers it: write cache on, 32 segments, pre-fetch up to 65535 blocks."""
    read = {
        name: get_field(CACHING, find("drive", name).field) for name in ("WCE", "RCD", "NCS", "DPTL", "DRA", "FSW")
    }
    assert read == {"WCE": 1, "RCD": 0, "NCS": 32, "DPTL": 0xFFFF, "DRA": 0, "FSW": 1}


@given(st.binary(min_size=60, max_size=60), st.sampled_from(FIELDS), st.data())
def test_setting_a_field_changes_it_and_no_other_bit(page: bytes, field: ModeField, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, (1 << field.length) - 1))
    changed = put_field(page, field, value)
    assert get_field(changed, field) == value
    assert put_field(changed, field, get_field(page, field)) == page


def test_a_value_that_does_not_fit_is_refused() -> None:
    """It would spill into the neighbouring field."""
    with pytest.raises(ValueError, match="1 bits"):
        put_field(CACHING, find("drive", "WCE").field, 2)


def test_a_plan_carries_only_the_bits_that_change() -> None:
    plan = plan_page(CACHING, b"\x88\x12" + b"\xff" * 18, wce(0))
    assert plan.mask == b"\x00\x00\x04" + bytes(17)
    assert plan.contents[2] == 0
    assert not plan.unchangeable


def test_several_fields_of_a_page_are_one_plan() -> None:
    wanted = {name: (find("drive", name).field, value) for name, value in {"WCE": 0, "DRA": 1, "NCS": 7}.items()}
    plan = plan_page(CACHING, b"\x88\x12" + b"\xff" * 18, wanted)
    assert {place for place, byte in enumerate(plan.mask) if byte} == {2, 12, 13}
    assert get_field(plan.contents, find("drive", "NCS").field) == 7


def test_a_plan_without_difference_is_empty() -> None:
    assert plan_page(CACHING, bytes(20), wce(1)).empty


def test_a_field_that_the_drive_fixes_is_named() -> None:
    assert plan_page(CACHING, bytes(20), wce(0)).unchangeable == ("WCE",)
    assert plan_page(CACHING, b"", wce(0)).unchangeable == ("WCE",)


def test_a_partly_changeable_field_takes_what_its_bits_allow() -> None:
    """Of eight bits of NCS only the lowest may change: 33 for 32 is possible, 7 is not."""
    mask = b"\x88\x12" + bytes(11) + b"\x01" + bytes(6)
    field = find("drive", "NCS").field
    assert not plan_page(CACHING, mask, {"NCS": (field, 33)}).unchangeable
    assert plan_page(CACHING, mask, {"NCS": (field, 7)}).unchangeable == ("NCS",)


@pytest.mark.parametrize(
    ("data", "subpage", "sentence"),
    [
        (b"", 0, "only 0 bytes"),
        (b"\x0a\x0a" + bytes(10), 0, "answered with page 0x0a"),
        (b"\x88\x12" + bytes(4), 0, "6 of 20 bytes"),
        (b"\xc8\x02\x00\x04" + bytes(4), 1, "subpage 0x02"),
        (b"\x88\x12" + bytes(18), 1, "not its subpage"),
    ],
)
def test_an_answer_that_is_not_the_page_is_refused(data: bytes, subpage: int, sentence: str) -> None:
    """Bytes of another page would be read as settings."""
    with pytest.raises(ToolError, match=sentence):
        check_page(data, 0x08, subpage)


def test_bytes_beyond_the_page_are_cut_off() -> None:
    assert check_page(CACHING + b"\xff\xff", 0x08, 0) == CACHING


@given(st.binary(max_size=40), st.sampled_from([0x08, 0x0A, 0x19]), st.integers(0, 2))
def test_no_answer_gives_anything_but_a_page_or_a_sentence(data: bytes, page: int, subpage: int) -> None:
    try:
        checked = check_page(data, page, subpage)
        for field in FIELDS:
            get_field(checked, field)
    except ToolError:
        return


def test_a_field_of_parallel_scsi_is_not_read_from_a_sas_port_page() -> None:
    sas_port = bytes.fromhex("990e 0600 07d0 2710 0000 0000 0000 0000".replace(" ", ""))
    assert get_field(sas_port, find("drive", "ITNLT").field) == 2000
    with pytest.raises(ToolError, match="protocol 6's, the field 1's"):
        get_field(sas_port, find("drive", "STT").field)


def test_a_page_that_ends_before_the_field_is_a_sentence() -> None:
    """SCSI-2 drives have shorter pages."""
    with pytest.raises(ToolError, match="has 12 bytes, the field needs 14"):
        get_field(bytes.fromhex("880a") + bytes(10), find("drive", "NCS").field)
