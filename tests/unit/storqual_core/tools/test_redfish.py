# SPDX-License-Identifier: Apache-2.0
"""Redfish: inventories and errors of management controllers."""

from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import redfish

ERROR = (Path(__file__).parent / "fixtures" / "redfish" / "error.json").read_text(encoding="utf-8")
ENTRIES = [
    {"Id": "Installed-1", "Name": "HBA 9500", "Version": "27.00"},
    {"Id": "Installed-2", "Name": "BIOS", "Version": "1.2"},
    "odd",
    {"Name": "twice", "Version": "1"},
    {"Name": "twice", "Version": "2"},
]


def test_an_error_is_its_message_id_and_remedy() -> None:
    assert redfish.parse_error(ERROR) == "The adapter is in use. (Base.1.8.ResourceInUse) Try again later."
    assert redfish.parse_error('HTTP 500\n{"error": {"message": "busy"}}') == "busy"
    for text in ('{"error": {}}', '{"error": 7}', "busy"):
        with pytest.raises(ToolError):
            redfish.parse_error(text)


def test_a_version_is_found_by_id_or_name() -> None:
    assert redfish.find_version(ENTRIES, "Installed-1") == redfish.find_version(ENTRIES, "HBA 9500") == "27.00"
    with pytest.raises(ToolError, match="2 versions of 'twice'"):
        redfish.find_version(ENTRIES, "twice")
    with pytest.raises(ToolError, match="0 versions of 'x' are in the firmware inventory, which has BIOS, HBA 9500"):
        redfish.find_version(ENTRIES, "x")


def test_an_image_that_is_kept_beside_the_one_that_runs_does_not_count() -> None:
    runs = {"Id": "Installed-7-25.5", "Name": "RAID Mini", "Version": "25.5", "Status": {"State": "Enabled"}}
    before = {"Id": "Previous-7-25.4", "Name": "RAID Mini", "Version": "25.4", "Status": {"State": "Enabled"}}
    shipped = {"Id": "Current-7-25.4", "Name": "RAID Mini", "Version": "25.4", "Status": {"State": "Enabled"}}
    second = {"Id": "c0ffee", "Name": "RAID Mini", "Version": "25.3", "Status": {"State": "StandbySpare"}}
    assert redfish.find_version([shipped, before, second, runs], "RAID Mini") == "25.5"
    assert redfish.find_version([before, runs], "Previous-7-25.4") == "25.4"
    with pytest.raises(ToolError, match="2 versions of 'RAID Mini'"):
        redfish.find_version([runs, {**runs, "Version": "26"}], "RAID Mini")
