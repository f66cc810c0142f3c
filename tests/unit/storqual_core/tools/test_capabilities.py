# SPDX-License-Identifier: Apache-2.0
"""What a request for a volume asks of a tool."""

from __future__ import annotations

import pytest

from storqual_core.kit.errors import ToolError, refuse_for
from storqual_core.tools.capabilities import VolumeRequest

PARTS = ("policies", "strip", "name", "spares", "initialisation")


@pytest.mark.parametrize("initialisation", ["", "none"])
def test_what_is_left_to_the_tool_is_not_asked(initialisation: str) -> None:
    assert VolumeRequest("5", ("0", "1", "2"), initialisation=initialisation).asks(*PARTS) == []


def test_what_is_asked_is_told_in_words_as_far_as_the_tool_minds() -> None:
    request = VolumeRequest("1", ("0", "1"), 65536, "data", {"write_policy": "wt"}, "full", ("2",))
    told = ["write_policy", "a strip", "name", "hot spares", "the initialisation full"]
    assert request.asks(*PARTS) == told
    assert request.asks("spares", "policies") == ["hot spares", "write_policy"]


def test_reasons_are_an_error_and_none_is_not() -> None:
    refuse_for(())
    with pytest.raises(ToolError, match=r"^a; b$"):
        refuse_for(("a", "b"))
