# SPDX-License-Identifier: Apache-2.0
"""What is particular about newname; what holds for every tool is in test_conformance.py."""

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools.newname import parse_show
from tests.support.tool_fixtures import fixture_text


def test_an_adapter_is_read_with_its_firmware_and_its_drives() -> None:
    (adapter,) = parse_show(fixture_text("newname", "show_one_adapter.txt")).adapters
    assert (adapter.serial, adapter.pci, adapter.firmware) == ("AC0001", "0000:3b:00.0", {"firmware": "4.20"})
    assert [(drive.position, drive.serial) for drive in adapter.drives] == [("1:4", "DK0001")]


def test_a_line_that_is_not_understood_is_kept() -> None:
    assert parse_show(fixture_text("newname", "show_one_adapter.txt")).notes == ("Beeper is on",)


def test_an_answer_that_is_no_listing_is_refused_with_what_the_tool_said() -> None:
    with pytest.raises(ToolError, match="the driver is not loaded"):
        parse_show(fixture_text("newname", "refused_no_driver.txt"))
