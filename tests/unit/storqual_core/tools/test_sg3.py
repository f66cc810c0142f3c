# SPDX-License-Identifier: Apache-2.0
"""sg3_utils: exact commands, bytes, exit statuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import sg3
from tests.support.replay import Call, Replay

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
