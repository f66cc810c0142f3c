# SPDX-License-Identifier: Apache-2.0
"""What drives have on record: all that they answer, by one name for each counter, and what they do not answer."""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from storqual_core.facts.preflight import claimed_drives
from storqual_core.facts.tool_facts import errors_on_record, read_drive_log, read_drive_logs
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError
from tests.support.tool_fixtures import fixture_text

FACTS = {
    "drives": [
        {"id": "0x5000c50015ea0000", "serial": "A1", "node": "/dev/sda", "sg": "/dev/sg0", "transport": "scsi"},
        {"id": "0x5000c50015ea0001", "serial": "A2", "node": "/dev/sdb", "sg": "/dev/sg1", "transport": "scsi"},
        {"id": "0x5000c50015ea0002", "serial": "A3", "node": "/dev/sdc", "sg": "", "transport": "scsi"},
        {"id": "nvme.A4", "serial": "A4", "node": "/dev/nvme0n1", "sg": "", "transport": "nvme"},
        {"id": "file", "serial": "", "node": "/dev/loop0", "transport": "loop"},
    ]
}
SCSI, ATA = FACTS["drives"][0], FACTS["drives"][2]
ANSWERS: Mapping[str, tuple[int, str]] = {
    "smartctl --json -a /dev/sda": (0, fixture_text("smartctl", "scsi.json")),
    "sg_logs -a /dev/sg0": (0, fixture_text("sg3", "logs_all.txt")),
    "smartctl --json -a /dev/sdb": (2, fixture_text("smartctl", "open_failed.json")),
    # LOG SENSE is unknown to many emulated drives: status 9 of sg3_utils
    "sg_logs -a /dev/sg1": (9, ""),
    "smartctl --json -a /dev/sdc": (0, fixture_text("smartctl", "ata.json")),
    "sg_logs -a /dev/sdc": (9, ""),
    "nvme smart-log /dev/nvme0n1 --output-format=json": (0, fixture_text("nvme", "smart_log.json")),
}


def answer(argv: list[str], **_: Any) -> Completed:
    line = shlex.join(argv)
    if line not in ANSWERS:
        raise MissingToolError(f"`{argv[0]}` is not installed")
    rc, text = ANSWERS[line]
    return Completed(tuple(argv), rc, text, "", 0.1)


def test_a_scsi_drive_has_what_smartctl_says_and_what_only_its_log_pages_count() -> None:
    log = read_drive_log(SCSI, answer)
    assert (log.answered, log.unread, log.missing) == (("smartctl", "sg_logs"), (), ())
    assert (log.passed, log.hours) == (True, 1234)
    assert log.counters["grown_defects"] == 3
    # both tell it; smartctl's is taken
    assert log.counters["read.total_uncorrected_errors"] == 2
    assert log.counters["non_medium.non_medium_error_count"] == 12
    assert log.counters["link.invalid_dword_count"] == 4


def test_what_a_drive_does_not_answer_is_said() -> None:
    log = read_drive_log(FACTS["drives"][1], answer)
    assert (log.answered, log.health) == ((), None)
    assert log.unread[0].startswith("smartctl: the device could not be opened")
    assert log.unread[1].startswith("the log pages of /dev/sg1: the drive does not know this command")


def test_tools_that_the_bench_lacks_are_named() -> None:
    def missing(argv: list[str], **_: Any) -> Completed:
        raise MissingToolError(f"{argv[0]} is not installed")

    assert read_drive_log(SCSI, missing).missing == ("smartctl", "sg_logs")
    assert read_drive_log(FACTS["drives"][3], missing).missing == ("nvme", "smartctl")


def test_an_nvme_drive_has_the_health_log() -> None:
    log = read_drive_log(FACTS["drives"][3], answer)
    assert log.answered == ("nvme",)
    assert log.counters["nvme.media_errors"] >= 0
    assert (log.temperature, log.trip) == (27, None)
    assert not any(name.startswith("ocp.") for name in log.counters)


def test_an_nvme_drive_with_the_ocp_page_has_its_counts_as_well() -> None:
    line = "nvme ocp smart-add-log /dev/nvme0n1 --output-format=json"

    def with_page(argv: list[str], **options: Any) -> Completed:
        if shlex.join(argv) == line:
            return Completed(tuple(argv), 0, fixture_text("nvme", "ocp_labels.json"), "", 0.1)
        return answer(argv, **options)

    log = read_drive_log(FACTS["drives"][3], with_page)
    assert (log.answered, log.counters["ocp.uncorrectable_read_errors"]) == (("nvme",), 1)
    assert errors_on_record({"n": log.record()})["n"]["ocp.uncorrectable_read_errors"] == 1


def test_an_nvme_drive_without_a_sensor_is_not_frozen() -> None:
    """It reports 0 kelvin."""
    text = re.sub(r'("temperature"\s*:\s*)\d+', r"\g<1>0", fixture_text("nvme", "smart_log.json"))

    def cold(argv: list[str], **options: Any) -> Completed:
        ended = answer(argv, **options)
        return Completed(ended.argv, 0, text, "", 0.1)

    assert read_drive_log(FACTS["drives"][3], cold).temperature is None


def test_the_limit_that_a_drive_names_is_kept_with_its_health() -> None:
    health = read_drive_log(SCSI, answer).health
    assert health is not None
    assert health["trip"] == 60


def test_only_what_healthy_use_never_raises_is_an_error_on_record() -> None:
    """Link errors come with every boot, corrected ones with age: they are told and decide nothing."""
    found = errors_on_record(read_drive_logs([SCSI, ATA, FACTS["drives"][1]], runner=answer))
    assert found == {
        SCSI["id"]: {"grown_defects": 3, "read.total_uncorrected_errors": 2, "write.total_uncorrected_errors": 1},
        ATA["id"]: {"attribute.5": 8},
    }


def test_claimed_drives_are_found_however_the_inventory_spells_their_name() -> None:
    declared = [
        {"wwn": "naa.5000C50015EA0000", "claim": True},
        {"wwn": 0x5000C50015EA0001, "claim": True},
        {"serial": "A3", "claim": True},
        {"serial": "A4"},
        {"serial": "GONE", "claim": True},
    ]
    found = claimed_drives(FACTS, {"sym": {"drives": declared}})
    assert [drive["serial"] for drive in found] == ["A1", "A2", "A3"]
    assert claimed_drives(FACTS, {"sym": {"drives": declared, "under_test": False}}) == []


def test_a_log_is_plain_json() -> None:
    logs = read_drive_logs(FACTS["drives"], runner=answer)
    assert set(json.loads(json.dumps(logs))) == {drive["id"] for drive in FACTS["drives"]}
    assert logs["file"]["answered"] == ()


def test_a_page_that_is_not_whole_is_told_beside_the_others() -> None:
    text = fixture_text("sg3", "logs_all.txt").replace("number of phys = 1", "number of phys = 2")
    assert text != fixture_text("sg3", "logs_all.txt")

    def odd(argv: list[str], **_: Any) -> Completed:
        return Completed(tuple(argv), 0, text, "", 0.1) if argv[0] == "sg_logs" else answer(argv)

    log = read_drive_log(SCSI, odd)
    assert log.unread == ("sg_logs reports 2 phys and lists 1",)
    assert log.counters["non_medium.non_medium_error_count"] == 12
    assert "link.invalid_dword_count" not in log.counters


def test_a_sensor_that_is_not_there_is_no_temperature() -> None:
    log = json.loads(fixture_text("nvme", "smart_log.json"))

    def cold(argv: list[str], **_: Any) -> Completed:
        return Completed(tuple(argv), 0, json.dumps({**log, "temperature": 0}), "", 0.1)

    assert read_drive_log(FACTS["drives"][3], cold).temperature is None
