# SPDX-License-Identifier: Apache-2.0
"""nvme-cli: the volatile write cache."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.errors import ToolError
from storqual_core.tools import nvme
from tests.replay import Call, Replay

GET = "nvme get-feature /dev/nvme0 --feature-id=6"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("get-feature:0x06 (Volatile Write Cache), Current value:0x00000001\n", 1),
        ("get-feature:0x6 (Volatile Write Cache), Current value:0x000000\n", 0),
        ("get-feature:6 (Volatile Write Cache), Current value: 00000001\n", 1),
        ("warning: something\nget-feature:0x06 (Volatile Write Cache), Current value:0x00000000\n", 0),
    ],
)
def test_the_cache_is_read_in_the_spellings_of_its_releases(text: str, value: int) -> None:
    """1.x and 2.x print the number differently."""
    assert nvme.read_write_cache(Replay([Call(GET, text)]), "/dev/nvme0") == value


def test_a_controller_without_a_cache_is_said_to_have_none() -> None:
    """The feature is optional."""
    replay = Replay([Call(GET, rc=2, stderr="NVMe status: Invalid Field in Command(0x4002)\n")])
    with pytest.raises(ToolError, match="no volatile write cache that can be read: NVMe status: Invalid Field"):
        nvme.read_write_cache(replay, "/dev/nvme0")


def test_the_cache_is_switched() -> None:
    """Long options only: the short one for the value changed its letter between releases."""
    replay = Replay([Call("nvme set-feature /dev/nvme0 --feature-id=6 --value=0")])
    nvme.write_write_cache(replay, "/dev/nvme0", 0)
    replay.done()


def test_a_refused_switch_is_a_failure() -> None:
    """Never assumed to have worked."""
    with pytest.raises(ToolError, match="could not be changed"):
        nvme.write_write_cache(
            Replay([Call("nvme set-feature /dev/nvme0 --feature-id=6 --value=1", rc=1)]), "/dev/nvme0", 1
        )


@given(st.text())
def test_other_text_is_a_sentence(text: str) -> None:
    """No value, no guess."""
    try:
        nvme.parse_feature(text, 6)
    except ToolError:
        return
    assert "get-feature" in text.lower()
