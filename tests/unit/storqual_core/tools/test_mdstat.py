# SPDX-License-Identifier: Apache-2.0
"""/proc/mdstat: arrays, members, and counts that must agree."""

from __future__ import annotations

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import mdadm
from storqual_core.tools.capabilities import DELAYED_TASK
from tests.support.tool_fixtures import fixture_text

TEXT = fixture_text("mdadm", "mdstat_four.txt")


def test_arrays_are_read_with_members_and_what_is_under_way() -> None:
    mirror, parity, stripes, container = mdadm.parse_arrays(TEXT)
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
    # a container is never started, and a volume of it that is not is not well
    assert (container.level, container.healthy, container.members) == ("", None, ("/dev/sdb", "/dev/sdc"))
    assert mdadm.parse_arrays(TEXT.replace("external:imsm", "external:/md9/0"))[3].healthy is False
    assert "bitmap" in parity.settings["line 3"]


def test_no_array_is_no_error() -> None:
    assert mdadm.parse_arrays(fixture_text("mdadm", "mdstat_none.txt")) == ()


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
        mdadm.parse_arrays(TEXT.replace(old, new))


@pytest.mark.parametrize(("word", "task"), [("resync=PENDING", "initialise"), ("check =  1.5%", "check")])
def test_a_task_that_waits_is_under_way(word: str, task: str) -> None:
    assert list(mdadm.parse_arrays(TEXT.replace("recovery =  5.0%", word))[1].progress) == [task]


def test_a_journal_and_a_replacement_are_no_members() -> None:
    text = TEXT.replace("sdf1[5](S)", "sdf1[5](R) sdg1[6](J)").replace("sde1[4]", "sde1[4](W)")
    parity = mdadm.parse_arrays(text)[1]
    assert (parity.members, parity.spares) == (("/dev/sdb2", "/dev/sdc1", "/dev/sde1"), ("/dev/sdf1",))
    assert parity.settings["journal"] == "/dev/sdg1"


def test_an_array_whose_failed_member_was_replaced_is_well() -> None:
    mirror = mdadm.parse_arrays(TEXT.replace("sdb1[1] sda1[0]", "sdb1[1] sda1[0] sdz1[2](F)"))[0]
    assert (mirror.failed, mirror.healthy) == (("/dev/sdz1",), True)


def test_an_array_that_is_broken_is_read_and_is_not_well() -> None:
    """What newer kernels call an array whose last members failed, of whatever level."""
    *_, stripes, _ = mdadm.parse_arrays(TEXT.replace("md2 : active", "md2 : broken"))
    assert (stripes.state.split(",")[0], stripes.healthy, len(stripes.members)) == ("broken", False, 2)
    lost = "md0 : broken raid1 sdb1[1](F) sda1[0](F)"
    (mirror, *_) = mdadm.parse_arrays(
        TEXT.replace("md0 : active raid1 sdb1[1] sda1[0]", lost).replace("[2/2] [UU]", "[2/0] [__]")
    )
    assert (mirror.members, mirror.failed, mirror.healthy) == ((), ("/dev/sda1", "/dev/sdb1"), False)


def test_a_task_that_waits_for_another_array_is_not_taken_for_an_initialisation() -> None:
    """The kernel calls a check and a rebuild that wait `resync=DELAYED` too."""
    assert mdadm.parse_arrays(TEXT.replace("recovery =  5.0%", "resync=DELAYED"))[1].progress == {DELAYED_TASK: 0.0}


def test_an_array_whose_drive_is_in_error_is_not_well() -> None:
    """A NAS's own kernel marks a drive that it does not write any more with E, and counts it among those there."""
    text = TEXT.replace("sda1[0]", "sda1[0](E)").replace("[2/2] [UU]", "[2/2] [EU]")
    mirror = mdadm.parse_arrays(text)[0]
    assert (mirror.members, mirror.healthy) == (("/dev/sda1", "/dev/sdb1"), False)
    assert mirror.settings["Device /dev/sda1"] == "(E)"
    with pytest.raises(ToolError, match="/proc/mdstat"):
        mdadm.parse_arrays(text.replace("[EU]", "[E_]"))
    alone = TEXT.replace("sda1[0]", "sda1[0](E)").replace(" [2/2] [UU]", "")
    assert mdadm.parse_arrays(alone)[0].healthy is False
