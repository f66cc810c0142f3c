# SPDX-License-Identifier: Apache-2.0
"""What is decided on a management controller's firmware inventory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from storqual_core.kit.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def decide(load_module: Callable[[str], Any]) -> Callable[..., dict[str, Any]]:
    """The module's decision, over an inventory with one adapter of version 27.00."""
    module = load_module("redfish_firmware")

    def call(**more: Any) -> dict[str, Any]:
        given = {
            "entries": [{"Id": "1", "Name": "HBA", "Version": "27.00"}],
            "target": "HBA",
            "version": "28.00",
            "from": [],
            "adapter": "sas0",
            "found": "",
            "answer": "",
            "state": "planned",
        }
        result: dict[str, Any] = module.decide({**given, **more})
        return result

    return call


def test_a_newer_version_is_needed_and_an_equal_one_is_not(decide: Callable[..., dict[str, Any]]) -> None:
    newer = decide()
    assert (newer["needed"], newer["drift"]) == (True, ["sas0 firmware.firmware: 27.00, declared 28.00"])
    assert newer["settings"][0]["proven"] is None
    equal = decide(version="27.0")
    assert (equal["needed"], equal["drift"], equal["settings"][0]["proven"]) == (False, [], True)


def test_what_was_flashed_must_be_there(decide: Callable[..., dict[str, Any]]) -> None:
    (entry,) = decide(state="proven", version="27.00", found="26.00")["settings"]
    assert (entry["before"], entry["read_back"], entry["changed"], entry["proven"]) == ("26.00", "27.00", True, True)
    with pytest.raises(ToolError, match=r"28\.00 was written and the management controller tells 27\.00"):
        decide(state="proven")


def test_the_order_of_versions_holds_here_too(decide: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(ToolError, match="newer than"):
        decide(version="26.00")
    assert decide(version="26.00", **{"from": ["27"]})["needed"]


def test_a_failed_request_ends_with_the_controllers_words(decide: Callable[..., dict[str, Any]]) -> None:
    """Its message where it sent one, else what it sent."""
    body = '{"error": {"@Message.ExtendedInfo": [{"Message": "A job is running.", "Resolution": "Wait."}]}}'
    with pytest.raises(ToolError, match=r"did not flash it: A job is running\. Wait\."):
        decide(answer=body)
    with pytest.raises(ToolError, match="did not flash it: HTTP Error 503"):
        decide(answer="HTTP Error 503")
