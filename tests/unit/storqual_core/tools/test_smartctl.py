# SPDX-License-Identifier: Apache-2.0
"""smartctl: JSON of several releases, and an exit status made of bits."""

import json
from typing import Any

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import smartctl
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text


def test_a_scsi_drive_is_read() -> None:
    """Names of release 7.3, counters by their paths, a text that is no whole number left out."""
    call = Call("smartctl --json -a /dev/sda", fixture_text("smartctl", "scsi.json"), rc=64)
    health = smartctl.read_health(Replay([call]), "/dev/sda")
    assert (health.vendor, health.model, health.serial, health.firmware) == (
        *("EXAMPLE", "EXAMPLE DISK9", "EXSER1", "0007"),
    )
    assert (health.wwn, health.size, health.passed, health.temperature) == ("0x5000c500deadbeef", 1048576, True, 31)
    assert health.hours == 1234
    assert health.counters == {
        "read.total_uncorrected_errors": 2,
        "read.megabytes_processed": 12500,
        "sas_port_0.relative_target_port_id": 1,
        "sas_port_0.phy_0.invalid_dword_count": 9,
        "grown_defects": 3,
    }
    assert health.complaints == ("the drive's error log has entries",)


def test_an_ata_drive_that_is_failing_says_so() -> None:
    call = Call("smartctl --json -a -d sat /dev/sdb", fixture_text("smartctl", "ata.json"), rc=24)
    health = smartctl.read_health(Replay([call]), "/dev/sdb", "sat")
    assert (health.wwn, health.passed) == ("0x5000c500deadbeef", False)
    assert health.counters == {"attribute.5": 8, "power_cycles": 17, "logged_errors": 4}
    assert health.complaints == (
        "the drive says that it is failing",
        "an attribute of the pre-fail kind is at or below its threshold",
    )


def test_a_device_that_cannot_be_opened_is_a_sentence() -> None:
    with pytest.raises(ToolError, match=r"could not be opened, or is in standby \(status 2\): Smartctl open device"):
        smartctl.parse_health(fixture_text("smartctl", "open_failed.json"))


def test_disks_behind_a_controller_share_a_name_and_differ_in_kind() -> None:
    replay = Replay([Call("smartctl --json --scan", fixture_text("smartctl", "scan.json"))])
    assert [device.kind for device in smartctl.read_scan(replay)] == ["megaraid,8", "megaraid,9"]
    with pytest.raises(ToolError, match="where a list of devices was expected"):
        smartctl.parse_scan(fixture_text("smartctl", "scsi.json"))
    with pytest.raises(ToolError, match="without a device"):
        smartctl.parse_health(fixture_text("smartctl", "scan.json"))


def test_text_is_refused() -> None:
    with pytest.raises(ToolError, match=r"no JSON object: smartctl 7\.3"):
        smartctl.parse_health("smartctl 7.3 2022-02-28\nTotal NVM Capacity: 1 000 204 886 016\n")


HOURS = {"power_on_time": {"hours": 7}}


def nvme(**more: Any) -> str:
    body = {"smartctl": {"exit_status": 0}, "device": {"name": "/dev/nvme0", "protocol": "NVMe"}, **HOURS, **more}
    return json.dumps(body)


@pytest.mark.parametrize(
    ("more", "size"),
    [
        ({"user_capacity": {"bytes": 1000}, "nvme_total_capacity": 3000, "nvme_number_of_namespaces": 2}, 3000),
        ({"user_capacity": {"bytes": 1000}, "nvme_total_capacity": 3000, "nvme_number_of_namespaces": 1}, 1000),
        ({"nvme_total_capacity": 3000, "nvme_number_of_namespaces": 1}, 3000),
        ({"user_capacity": {"bytes": 1000}, "nvme_total_capacity": 0, "nvme_number_of_namespaces": 32}, 1000),
        ({"user_capacity": {"bytes": 0}}, None),
    ],
)
def test_the_size_of_an_nvme_drive_is_not_that_of_one_namespace(more: dict[str, Any], size: int | None) -> None:
    assert smartctl.parse_health(nvme(**more)).size == size


def answer(**body: Any) -> str:
    """An answer of smartctl 7.4 about a drive, with these names in it."""
    about = {"smartctl": {"version": [7, 4], "exit_status": 0}, "device": {"name": "/dev/x"}}
    return json.dumps({**about, **HOURS, **body})


def test_the_only_namespace_of_an_nvme_drive_gives_it_its_name() -> None:
    one = {"id": 1, "eui64": {"oui": 0xABCDEF, "ext_id": 0x12345}}
    assert smartctl.parse_health(answer(nvme_namespaces=[one])).wwn == "eui.abcdef0000012345"
    assert smartctl.parse_health(answer(nvme_namespaces=[one, {**one, "id": 2}])).wwn == ""
    assert smartctl.parse_health(answer(nvme_namespaces=[{"id": 1}])).wwn == ""


def test_readings_of_all_sensors_and_wear_of_every_release_are_kept() -> None:
    found = smartctl.parse_health(
        answer(
            nvme_smart_health_information_log={"temperature_sensors": [35, 30]},
            scsi_percentage_used_endurance_indicator=7,
            scsi_pending_defects={"count": 2},
        )
    )
    assert found.counters == {
        "nvme.temperature_sensors.1": 35,
        "nvme.temperature_sensors.2": 30,
        "endurance_used.current_percent": 7,
        "pending_defects": 2,
    }
    newer = smartctl.parse_health(
        answer(endurance_used={"current_percent": 7}, spare_available={"current_percent": 9})
    )
    assert newer.counters == {"endurance_used.current_percent": 7, "spare_available.current_percent": 9}


def test_a_drive_without_a_temperature_page_is_not_frozen() -> None:
    nothing = {"current": 0, "drive_trip": 0}
    assert smartctl.parse_health(answer(temperature=nothing)).temperature is None
    elsewhere = {"temperature_1": {"parameter_code": 0, "current": 38}}
    found = smartctl.parse_health(answer(temperature=nothing, scsi_environmental_reports=elsewhere))
    assert found.temperature == 38
    assert smartctl.parse_health(answer(temperature={"current": 0, "drive_trip": 65})).temperature == 0


def test_the_limit_of_a_drives_temperature_is_kept() -> None:
    assert smartctl.parse_health(answer(temperature={"current": 31, "drive_trip": 65})).trip == 65
    assert smartctl.parse_health(answer(temperature={"current": 31})).trip is None
    assert smartctl.parse_health(answer(temperature={"current": 0, "drive_trip": 0})).trip is None


def test_the_limit_may_stand_apart_from_the_reading() -> None:
    apart = {"drive_trip": 68}
    assert smartctl.parse_health(answer(temperature={"current": 33}, scsi_temperature=apart)).trip == 68
    no_page = answer(temperature={"current": 0}, scsi_temperature={"drive_trip": 0})
    assert (smartctl.parse_health(no_page).temperature, smartctl.parse_health(no_page).trip) == (None, None)
    cold = answer(temperature={"current": 0}, scsi_temperature=apart)
    assert smartctl.parse_health(cold).temperature == 0


def test_what_a_scsi_drive_has_transferred_is_read_to_the_last_place() -> None:
    counted = {"read": {"gigabytes_processed": "717449.555"}, "write": {"gigabytes_processed": "0.001"}}
    found = smartctl.parse_health(answer(scsi_error_counter_log=counted)).counters
    assert found == {"read.megabytes_processed": 717449555, "write.megabytes_processed": 1}
    # a number of another country's, or of another unit, is none
    for other in ("717449,555", "717449", ""):
        told = smartctl.parse_health(answer(scsi_error_counter_log={"read": {"gigabytes_processed": other}}))
        assert told.counters == {}


@pytest.mark.parametrize("log", ["summary", "extended"])
def test_logged_errors_are_those_of_the_log_that_is_printed(log: str) -> None:
    found = smartctl.parse_health(answer(ata_smart_error_log={log: {"revision": 1, "count": 3}}))
    assert found.counters == {"logged_errors": 3}


@pytest.mark.parametrize("kind", ["jmb39x,1+sat", "jmb39x-q,0", "jms56x,1", "sat+megaraid,8", "sssraid,0,1"])
def test_a_disk_that_only_its_number_names_is_hidden(kind: str) -> None:
    assert smartctl.ScannedDevice("/dev/sda", kind, "ATA").hidden
    assert not smartctl.ScannedDevice("/dev/sda", kind.partition(",")[0], "ATA").hidden
