# SPDX-License-Identifier: Apache-2.0
"""Redfish: inventories and errors of management controllers."""

import json
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


def test_an_error_that_tells_its_id_alone_is_its_id() -> None:
    told = {"message": "See @Message.ExtendedInfo.", "@Message.ExtendedInfo": [{"MessageId": "iLO.2.21.Example"}]}
    assert redfish.parse_error(json.dumps({"error": told})) == "iLO.2.21.Example"
    about = {"MessageId": "iLO.2.19.Example", "MessageArgs": ["a", "b"]}
    assert redfish.parse_error(json.dumps({"error": {"@Message.ExtendedInfo": [about]}})) == "iLO.2.19.Example: a, b"
    # older controllers spell the key otherwise, and have it in a list of their own
    older = {"@Message.ExtendedInfo": [{"MessageID": "iLO.0.10.Example"}], "message": "See @Message.ExtendedInfo."}
    assert redfish.parse_error(json.dumps({"error": older})) == "iLO.0.10.Example"
    assert redfish.parse_error('{"Messages": [{"MessageID": "iLO.0.9.Example"}]}') == "iLO.0.9.Example"
    none = {"@Message.ExtendedInfo": [{"Message": "It failed.", "Resolution": "None."}]}
    assert redfish.parse_error(json.dumps({"error": none})) == "It failed."


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


def test_an_informational_message_may_be_the_cause() -> None:
    cause = {"MessageId": "EX.STOR023", "Message": "A job exists already.", "Severity": "Informational"}
    fine = {"MessageId": "EX.SYS413", "Message": "The operation successfully completed.", "Severity": "Informational"}
    body = {"error": {"message": "A general error.", "@Message.ExtendedInfo": [fine, cause]}}
    assert redfish.parse_error(json.dumps(body)) == "A job exists already. (EX.STOR023)"


def test_the_message_of_an_error_is_told_beside_ids_alone() -> None:
    info = [{"MessageId": "Base.1.7.Success"}, {"MessageId": "EX.1.0.NotInList", "Resolution": "Choose another."}]
    body = {"error": {"message": "No value is Blue.", "@Message.ExtendedInfo": info}}
    assert redfish.parse_error(json.dumps(body)) == "No value is Blue.; EX.1.0.NotInList Choose another."
    general = {"error": {"message": "See @Message.ExtendedInfo for more information.", "@Message.ExtendedInfo": info}}
    assert redfish.parse_error(json.dumps(general)) == "EX.1.0.NotInList Choose another."


def test_messages_without_an_error_around_them_are_told_and_good_news_is_not() -> None:
    bad = '{"MessageId": "EX.1.0.BUSY", "Message": "A job is running.", "Severity": "Critical"}'
    good = '{"MessageId": "Base.1.18.Success", "Message": "The request completed successfully.", "Severity": "OK"}'
    text = f'{{"@Message.ExtendedInfo": [{good}, {bad}]}}'
    assert redfish.parse_error(text) == "A job is running. (EX.1.0.BUSY)"
    with pytest.raises(ToolError, match="without a message"):
        redfish.parse_error(f'{{"@Message.ExtendedInfo": [{good}], "LCStatus": "Ready"}}')
