# SPDX-License-Identifier: Apache-2.0
"""sg_readcap: the size three times, which must be one."""

from __future__ import annotations

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import sg3
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

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
