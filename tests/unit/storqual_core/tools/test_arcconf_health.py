# SPDX-License-Identifier: Apache-2.0
"""The health of a controller as arcconf tells it; the words are those of recorded and published outputs."""

from __future__ import annotations

import pytest

from storqual_core.tools import arcconf

TEXT = """\
Controllers found: 1
----------------------------------------------------------------------
Controller information
----------------------------------------------------------------------
   Controller Status                        : {status}
   Controller Model                         : Adaptec ASR7805
   Temperature                              : {temperature}
   NCQ status                               : Enabled
   --------------------------------------------------------
   RAID Properties
   --------------------------------------------------------
   Logical devices/Failed/Degraded          : 0/0/0
   --------------------------------------------------------
   {title}
   --------------------------------------------------------
   {lines}

Command completed successfully.
"""
BATTERY, UNIT, GREEN = (
    "Controller Battery Information",
    "Controller Cache Backup Unit Information",
    "Green Backup Information",
)


def health(title: str, lines: str, *, status: str = "Optimal", temperature: str = "42 C/ 107 F (Normal)") -> str:
    """What is told of the health of a controller with these lines."""
    text = TEXT.format(status=status, temperature=temperature, title=title, lines=lines)
    return str(arcconf.parse_config(text).adapters[0].health)


@pytest.mark.parametrize(
    ("title", "lines"),
    [
        (BATTERY, "Status : Optimal\n   Over temperature : No\n   Capacity remaining : 100 percent"),
        (BATTERY, "Status : Not Installed"),
        ("Controller ZMM Information", "Status : ZMM Optimal"),
        ("Controller ZMM Information", "Status : ZMM not installed"),
        (UNIT, "Overall Backup Unit Status : Ready\n   Non-Volatile Storage Status : Ready"),
        (UNIT, "Overall Backup Unit Status : Ready\n   Supercap Status : Ready"),
        (UNIT, "Overall Backup Unit Status : Not Present"),
        ("Supercap Information", "Health : 94 percent\n   Learn Status : Idle"),
        ("Supercap Information", "Learn Status : In Progress"),
        ("Cache Properties", "Cache Status : Ok\n   Cache State : Enabled"),
        ("Cache Properties", "Cache Status : Not Configured"),
        (GREEN, "Backup Power Status : Ok\n   Hardware Error : No Error\n   Health Status : 88 percent"),
        ("Cache Properties", "Status : Temporarily Disabled by its owner"),
    ],
)
def test_a_controller_whose_parts_are_well_is_told_by_its_own_status(title: str, lines: str) -> None:
    assert health(title, lines) == "Optimal"
    assert health(title, lines, status="Degraded") == "Degraded"


@pytest.mark.parametrize(
    ("title", "lines", "told"),
    [
        (BATTERY, "Status : Failed", "Status: Failed"),
        (BATTERY, "Status : Charging", "Status: Charging"),
        (BATTERY, "Status : Optimal\n   Over temperature : Yes", "Over temperature: Yes"),
        ("Controller ZMM Information", "Status : ZMM failed", "Status: ZMM failed"),
        (UNIT, "Overall Backup Unit Status : Not Ready", "Overall Backup Unit Status: Not Ready"),
        (UNIT, "Supercap Status : Fatal", "Supercap Status: Fatal"),
        ("Supercap Information", "Status : Failed", "Status: Failed"),
        (GREEN, "Backup Power Status : Not Fully Charged", "Backup Power Status: Not Fully Charged"),
        (GREEN, "Hardware Error : Over Voltage", "Hardware Error: Over Voltage"),
        (BATTERY, "Status : Optimal\n   Status : Failed", "Status #2: Failed"),
        ("Cache Properties", "Cache Status : Permanently Disabled", "Cache Status: Permanently Disabled"),
    ],
)
def test_what_is_wrong_beside_a_status_that_is_well_is_told(title: str, lines: str, told: str) -> None:
    assert health(title, lines) == f"{title}: {told}"


@pytest.mark.parametrize("temperature", ["99 C/ 210 F (Abnormal)", "77 C/ 170 F (Too High)"])
def test_a_controller_that_is_too_hot_is_told(temperature: str) -> None:
    assert health(BATTERY, "Status : Optimal", temperature=temperature) == f"Temperature: {temperature}"


@pytest.mark.parametrize("temperature", ["Not Supported", "-4 C/ 25 F (Normal)", "34 C/ 93 F"])
def test_a_controller_without_a_word_of_its_temperature_is_well(temperature: str) -> None:
    assert health(BATTERY, "Status : Optimal", temperature=temperature) == "Optimal"


def test_all_that_is_wrong_is_told_at_once() -> None:
    told = health(BATTERY, "Status : Failed", status="Failed", temperature="99 C/ 210 F (Abnormal)")
    assert told.split("; ") == [
        "Controller Status: Failed",
        f"{BATTERY}: Status: Failed",
        "Temperature: 99 C/ 210 F (Abnormal)",
    ]
