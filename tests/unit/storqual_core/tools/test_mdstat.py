# SPDX-License-Identifier: Apache-2.0
"""/proc/mdstat: arrays, members, and counts that must agree."""

from __future__ import annotations

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import mdstat
from tests.support.tool_fixtures import fixture_text

TEXT = fixture_text("mdstat", "four.txt")


def test_arrays_are_read_with_members_and_what_is_under_way() -> None:
    mirror, parity, stripes, container = mdstat.parse_arrays(TEXT)
    assert (mirror.id, mirror.level, mirror.members) == ("/dev/md0", "1", ("/dev/sda1", "/dev/sdb1"))
    assert (mirror.size, mirror.healthy, mirror.state) == (1048512 * 1024, True, "active")
    assert (parity.level, parity.strip, parity.progress) == ("5", 65536, {"rebuild": 5.0})
    assert (parity.members, parity.spares, parity.failed) == (
        ("/dev/sdb2", "/dev/sdc1", "/dev/sde1"),
        ("/dev/sdf1",),
        ("/dev/sdd1",),
    )
    assert (parity.healthy, parity.state) == (False, "active, degraded")
    assert (stripes.level, stripes.strip, stripes.state) == ("0", 524288, "active, auto-read-only")
    assert (container.level, container.healthy, container.members) == ("", False, ("/dev/sdb", "/dev/sdc"))
    assert "bitmap" in parity.settings["line 3"]


def test_no_array_is_no_error() -> None:
    assert mdstat.parse_arrays(fixture_text("mdstat", "none.txt")) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[2/2] [UU]", "[2/2] [U_]"),
        ("[2/2] [UU]", "[3/2] [UU]"),
        (" sda1[0]\n", "\n"),
        (" sda1[0]\n", " sda1\n"),
        ("unused devices: <none>\n", ""),
        ("Personalities :", ""),
        ("md2 : active", "md2 is active"),
    ],
)
def test_what_does_not_agree_or_is_not_whole_is_refused(old: str, new: str) -> None:
    with pytest.raises(ToolError, match="/proc/mdstat"):
        mdstat.parse_arrays(TEXT.replace(old, new))


@pytest.mark.parametrize(("word", "task"), [("resync=PENDING", "initialise"), ("check =  1.5%", "check")])
def test_a_task_that_waits_is_under_way(word: str, task: str) -> None:
    assert list(mdstat.parse_arrays(TEXT.replace("recovery =  5.0%", word))[1].progress) == [task]
