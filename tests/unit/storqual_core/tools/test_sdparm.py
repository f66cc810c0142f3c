# SPDX-License-Identifier: Apache-2.0
"""sdparm: every field of a drive in one command."""

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import sdparm
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

LINE = "sdparm --all --long /dev/sg0"
TEXT = fixture_text("sdparm", "long.txt")


def test_fields_are_read_with_what_can_be_changed() -> None:
    found = sdparm.read_fields(Replay([Call(LINE, rc=6), Call(LINE, TEXT, "descriptor overflows\n")]), "/dev/sg0")
    assert found.identity == "EXAMPLE   DISK9             0007"
    assert found.field("WCE") == sdparm.Field(0, changeable=True, default=1, saved=0)
    assert found.field("NCS") == sdparm.Field(16, changeable=False, default=16, saved=None)
    assert found.field("RTL") == sdparm.Field(-1, changeable=False, default=-1, saved=-1)
    assert found.field("DRA") is None
    assert found.notes == ("a line that is no field",)


def test_a_drive_need_not_tell_all_of_what_it_could_tell_of_a_field() -> None:
    lines = (
        "  WCE 1  [ sav:  0]\n  RCD 0  [cha: y]\n  DRA 0  [cha: n, sav:  1]\n  NCS 8  [ def: 16, sav: 8]\n  IC 1\n"
    )
    found = sdparm.parse_fields("Caching (SBC) mode page:\n" + lines)
    assert found.field("WCE") == sdparm.Field(1, saved=0)
    assert found.field("RCD") == sdparm.Field(0, changeable=True)
    assert found.field("DRA") == sdparm.Field(0, changeable=False, saved=1)
    assert found.field("NCS") == sdparm.Field(8, default=16, saved=8)
    assert found.field("IC") == sdparm.Field(1)


def test_a_refusal_is_told_in_the_words_of_the_exit_status() -> None:
    """Shared with sg3_utils."""
    with pytest.raises(ToolError, match=r"mode pages of /dev/sg0 cannot be read: .* not ready.*command: sdparm"):
        sdparm.read_fields(Replay([Call(LINE, rc=2)]), "/dev/sg0")
    with pytest.raises(ToolError, match="no mode page field: descriptor overflows"):
        sdparm.parse_fields("descriptor overflows reply len (12) for IOA_MODE.1\n")
    with pytest.raises(ToolError, match="WCE outside of any mode page"):
        sdparm.parse_fields("  WCE  1\n")


def test_fields_of_a_page_that_seems_malformed_are_not_read() -> None:
    """They are other bytes: a bridge answers every page with the same one."""
    found = sdparm.parse_fields(fixture_text("sdparm", "malformed_page.txt"))
    assert found.field("WCE") is None
    assert found.field("AWRE") == sdparm.Field(1, changeable=False, default=1, saved=1)
    assert found.field("SWP") == sdparm.Field(0, changeable=False, default=0, saved=0)
    assert (
        "Caching (SBC) [ca] mode page: WCE         1  [cha: y, def:  1, sav:  1]  Write cache enable" in found.notes
    )
