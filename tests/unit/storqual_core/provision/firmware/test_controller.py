# SPDX-License-Identifier: Apache-2.0
"""What is decided on a management controller's firmware inventory, and whom the guard is asked about."""

from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.errors import GuardRefusalError, ToolError
from storqual_core.provision.firmware.flash import guard_adapter, judge_inventory, refuse_answer
from storqual_core.provision.firmware.subject import Access
from tests.support.bench_tree import STATE, BenchTree
from tests.support.replay import Replay
from tests.unit.storqual_core.provision.firmware.test_subject import DRIVE, PCI


def decide(**more: Any) -> dict[str, Any]:
    """The decision over an inventory with one adapter of version 27.00."""
    words = {name: more.pop(name) for name in ("before", "flashed") if name in more}
    entries = [{"Id": "1", "Name": "HBA", "Version": "27.00"}]
    return judge_inventory({"version": "28.00", "from": [], **more}, "sas0", entries, "HBA", **words)


def test_a_newer_version_is_needed_and_an_equal_one_is_not() -> None:
    newer = decide()
    assert (newer["needed"], newer["drift"]) == (True, ["sas0 firmware.firmware: 27.00, declared 28.00"])
    assert newer["settings"][0]["proven"] is None
    equal = decide(version="27.0")
    assert (equal["needed"], equal["drift"], equal["settings"][0]["proven"]) == (False, [], True)


def test_what_was_flashed_must_be_there() -> None:
    (entry,) = decide(flashed=True, version="27.00", before="26.00")["settings"]
    assert (entry["before"], entry["read_back"], entry["changed"], entry["proven"]) == ("26.00", "27.00", True, True)
    with pytest.raises(ToolError, match=r"28\.00 was written and the management controller tells 27\.00"):
        decide(flashed=True)


def test_the_order_of_versions_holds_here_too() -> None:
    with pytest.raises(ToolError, match="newer than"):
        decide(version="26.00")
    assert decide(version="26.00", **{"from": ["27"]})["needed"]


def test_a_failed_request_ends_with_the_controllers_words() -> None:
    """Its message where it sent one, else what it sent."""
    body = '{"error": {"@Message.ExtendedInfo": [{"Message": "A job is running.", "Resolution": "Wait."}]}}'
    with pytest.raises(ToolError, match=r"did not flash it: A job is running\. Wait\."):
        refuse_answer("sas0", body)
    with pytest.raises(ToolError, match="did not flash it: HTTP Error 503"):
        refuse_answer("sas0", "HTTP Error 503")
    refuse_answer("sas0", "")


def test_the_guard_is_asked_about_everything_behind_the_adapter(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter(PCI).scsi("sda", pci=PCI)
    declared = {"pci": PCI, "serial": "CSN1", "drives": [DRIVE]}

    def ask(*consent: str, **more: Any) -> None:
        guard_adapter(Access(STATE, "r1", consent, Replay([]), tree.machine), "sas0", {"sas0": {**declared, **more}})

    ask("000001")
    with pytest.raises(GuardRefusalError, match="there is no consent"):
        ask()
    with pytest.raises(ToolError, match=r"there is no adapter at 0000:09:00\.0"):
        ask("000001", pci="0000:09:00.0")
    tree.scsi("sdb", pci=PCI, wwn="0x5000c50000000002", serial="SER2")
    with pytest.raises(GuardRefusalError, match="is not claimed, and a flash interrupts access"):
        ask("000001")
