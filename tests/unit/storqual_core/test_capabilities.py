# SPDX-License-Identifier: Apache-2.0
"""What a request for a volume asks of a tool."""

from __future__ import annotations

import pytest

from storqual_core.capabilities import VolumeRequest
from storqual_core.errors import ToolError, refuse_for

PARTS = ("policies", "strip", "name", "spares", "initialisation")


@pytest.mark.parametrize("initialisation", ["", "none"])
def test_what_is_left_to_the_tool_is_not_asked(initialisation: str) -> None:
    """Level and members say every volume."""
    assert VolumeRequest("5", ("0", "1", "2"), initialisation=initialisation).asks(*PARTS) == []


def test_what_is_asked_is_told_in_words_as_far_as_the_tool_minds() -> None:
    """In the order of the question."""
    request = VolumeRequest("1", ("0", "1"), 65536, "data", {"write_policy": "wt"}, "full", ("2",))
    told = ["write_policy", "a strip", "name", "hot spares", "the initialisation full"]
    assert request.asks(*PARTS) == told
    assert request.asks("spares", "policies") == ["hot spares", "write_policy"]


def test_reasons_are_an_error_and_none_is_not() -> None:
    """All in one sentence."""
    refuse_for(())
    with pytest.raises(ToolError, match=r"^a; b$"):
        refuse_for(("a", "b"))
