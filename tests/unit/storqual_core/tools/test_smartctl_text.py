# SPDX-License-Identifier: Apache-2.0
"""smartctl before 7.0, which prints text only: the same facts by the same names as its later JSON has."""

import json
from pathlib import Path

import pytest

from storqual_core.facts.tool_facts import errors_on_record
from storqual_core.kit.errors import ToolError
from storqual_core.tools import smartctl
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

UNKNOWN = fixture_text("smartctl", "unrecognized_option.txt")


def health(name: str, status: int = 0) -> smartctl.Health:
    return smartctl.parse_health_text(fixture_text("smartctl", name), status)


def test_a_release_without_json_is_asked_again_for_text() -> None:
    replay = Replay(
        [
            Call("smartctl --json -a -d megaraid,8 /dev/sda", UNKNOWN, rc=1),
            Call("smartctl -a -d megaraid,8 /dev/sda", fixture_text("smartctl", "sas_6.6.txt"), rc=64),
        ]
    )
    found = smartctl.read_health(replay, "/dev/sda", "megaraid,8")
    replay.done()
    assert (found.serial, found.complaints) == ("EXSER1", ("the drive's error log has entries",))
    replay = Replay(
        [
            Call("smartctl --json --scan", UNKNOWN, rc=1),
            Call("smartctl --scan", fixture_text("smartctl", "scan_6.6.txt")),
        ]
    )
    assert [(each.name, each.kind, each.hidden) for each in smartctl.read_scan(replay)] == [
        ("/dev/sda", "scsi", False),
        ("/dev/bus/0", "megaraid,8", True),
    ]


def test_json_that_complains_is_not_asked_again() -> None:
    with pytest.raises(ToolError, match="could not be opened"):
        smartctl.read_health(
            Replay([Call("smartctl --json -a /dev/sda", fixture_text("smartctl", "open_failed.json"), rc=2)]),
            "/dev/sda",
        )


def test_a_sas_drive_is_read() -> None:
    found = health("sas_6.6.txt")
    assert (found.vendor, found.model, found.serial, found.firmware) == ("EXAMPLE", "DISK9", "EXSER1", "0007")
    assert (found.wwn, found.size, found.protocol) == ("0x5000c500deadbeef", 600127266816, "SCSI")
    assert (found.passed, found.temperature, found.trip, found.hours) == (True, 28, 85, 55120)
    assert found.counters == json.loads(Path(__file__).with_name("sas_counters.json").read_text(encoding="utf-8"))


def test_a_failing_drive_without_a_temperature_says_so() -> None:
    """Zeros where the drive has no such page; an amount with a decimal comma is no reading."""
    found = health("sas_5.43_failing.txt", 8)
    assert (found.passed, found.temperature, found.trip, found.hours) == (False, None, None, 47981)
    assert found.complaints == ("the drive says that it is failing",)
    assert found.counters["read.total_uncorrected_errors"] == 7
    assert "read.megabytes_processed" not in found.counters
    ata = fixture_text("smartctl", "ata_6.4.txt").replace("37 (0 18 0 0 0)", "0").replace("38 (Min/Max 35/39)", "0")
    assert smartctl.parse_health_text(ata).temperature is None


def test_an_ata_drive_is_read() -> None:
    found = health("ata_6.4.txt")
    assert (found.model, found.wwn, found.size, found.protocol) == (
        "EXAMPLE ST4000-1AB",
        "0x5000c500deadbeef",
        4000787030016,
        "ATA",
    )
    assert (found.passed, found.temperature, found.hours) == (False, 37, 8123)
    assert found.counters == {
        "attribute.1": 119683816,
        "attribute.5": 4095,
        "attribute.12": 17,
        "attribute.197": 8,
        "power_cycles": 17,
        "logged_errors": 4,
    }


def test_an_nvme_drive_is_read() -> None:
    found = health("nvme_6.6.txt")
    assert (found.model, found.serial, found.wwn, found.size) == (
        "EXAMPLE NVME 9",
        "EXSER4",
        "eui.abcdef0000012345",
        1600321314816,
    )
    assert (found.passed, found.temperature, found.hours, found.protocol) == (True, 34, 1742, "NVMe")
    assert (found.counters["nvme.media_errors"], found.counters["nvme.host_reads"]) == (1, 7207810975)
    assert (found.counters["nvme.critical_warning"], found.counters["nvme.percentage_used"]) == (0, 3)
    # the second sensor is not there
    assert [name for name in found.counters if "sensors" in name] == ["nvme.temperature_sensors.1"]
    untold = fixture_text("smartctl", "nvme_6.6.txt").replace("1,600,321,314,816 [1.60 TB]", "0", 1)
    assert smartctl.parse_health_text(untold).size == found.size


@pytest.mark.parametrize("name", ["sas_6.6.txt", "ata_6.4.txt", "nvme_6.6.txt"])
def test_what_healthy_use_never_raises_is_found_under_the_names_of_the_json(name: str) -> None:
    found = errors_on_record({"drive": {"counters": health(name).counters}})["drive"]
    assert found in (
        {"grown_defects": 3, "read.total_uncorrected_errors": 2, "write.total_uncorrected_errors": 0},
        {"attribute.5": 4095, "attribute.197": 8},
        {"nvme.critical_warning": 0, "nvme.media_errors": 1},
    )


@pytest.mark.parametrize(
    ("name", "more", "status", "said"),
    [
        ("no_device_6.6.txt", "", 2, "Smartctl open device: /dev/sdz failed: No such device"),
        ("unrecognized_option.txt", "", 1, "UNRECOGNIZED OPTION"),
        ("scan_6.6.txt", "", 0, "did not print its name first"),
        ("scsi.json", "", 0, "did not print its name first"),
        ("ata_6.4.txt", fixture_text("smartctl", "nvme_6.6.txt"), 0, "tells of several drives"),
        ("asleep", "Device is in STANDBY mode, exit(2)\n", 2, "tells nothing of the drive"),
    ],
)
def test_what_is_no_answer_about_one_drive_is_refused(name: str, more: str, status: int, said: str) -> None:
    asleep = fixture_text("smartctl", "ata_6.4.txt").partition("=== START OF READ")[0]
    with pytest.raises(ToolError, match=said):
        smartctl.parse_health_text((asleep if name == "asleep" else fixture_text("smartctl", name)) + more, status)


@pytest.mark.parametrize(
    "number", ["600.127.266.816", "600\u202f127\u202f266\u202f816", "600 127 266 816", "600,127,26"]
)
def test_a_number_of_another_country_is_no_reading(number: str) -> None:
    text = fixture_text("smartctl", "sas_6.6.txt").replace("600,127,266,816", number)
    assert smartctl.parse_health_text(text).size is None


def test_readings_without_an_identity_are_readings() -> None:
    """As `smartctl -A` prints them."""
    text = fixture_text("smartctl", "ata_6.4.txt")
    head, rest = text.partition("=== START OF INFO")[0], text[text.index("SMART Attributes Data") :]
    found = smartctl.parse_health_text(head + rest)
    assert (found.serial, found.passed, found.counters["attribute.5"]) == ("", None, 4095)


def test_a_list_of_devices_is_one() -> None:
    assert smartctl.parse_scan_text("") == ()
    with pytest.raises(ToolError, match="where a list of devices was expected"):
        smartctl.parse_scan_text(UNKNOWN)
