# SPDX-License-Identifier: Apache-2.0
"""What in the state of an adapter stands against a flash."""

from hypothesis import given
from hypothesis import strategies as st

from storqual_core.provision.firmware.subject import obstacles
from storqual_core.tools.capabilities import AdapterFacts, DriveFacts, VolumeFacts

WELL = VolumeFacts("0", state="Optl", healthy=True)


def test_a_controller_that_is_well_in_all_it_tells_may_be_flashed() -> None:
    settings = {"Patrol Read State": "Stopped", "Background consistency check": "Disabled", "Learn Cycle": "None"}
    drives = (DriveFacts("252:0", state="Onln"), DriveFacts("252:1", state="UGood"))
    assert obstacles(AdapterFacts("0", health="Optimal", volumes=(WELL,), drives=drives, settings=settings)) == []
    assert obstacles(AdapterFacts("0")) == []


def test_every_task_under_way_is_an_obstacle() -> None:
    settings = {
        "Patrol Read State": "Active",
        "Consistency Check Status": "In progress",
        "BBU learn cycle": "Running",
        "Patrol Read Rate": "30",
    }
    drives = (
        DriveFacts("252:0", state="Rbld"),
        DriveFacts("252:1", state="Cpybck"),
        DriveFacts("252:2", state="Onln"),
    )
    assert obstacles(AdapterFacts("0", drives=drives, settings=settings)) == [
        *("drive 252:0 is Rbld", "drive 252:1 is Cpybck", "Patrol Read State is Active"),
        *("Consistency Check Status is In progress", "BBU learn cycle is Running"),
    ]


@given(st.text(), st.booleans() | st.none())
def test_a_volume_is_flashed_over_only_when_its_tool_says_that_it_is_well(state: str, healthy: bool | None) -> None:
    found = obstacles(AdapterFacts("0", volumes=(WELL, VolumeFacts("1", state=state, healthy=healthy))))
    assert (found == []) == (healthy is True)
