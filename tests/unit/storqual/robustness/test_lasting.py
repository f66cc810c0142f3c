# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from storqual.robustness.lasting import LEAK_BYTES, lasting_checks

SHORT = {"asked": 252, "given": 8}
RIGHT, WRONG = {**SHORT, "received": 8}, {**SHORT, "received": 252}


def records(arm: str, growths: list[int], residual: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    return [
        {
            "fault": "device_reset",
            "adapter": "sym",
            "arm": arm,
            "outcome": "passed",
            "slab_bytes": {"before": 1 << 24, "after": (1 << 24) + growth},
            "residual": {"before": residual, "after": residual} if residual else {},
        }
        for growth in growths
    ]


def memory(*listed: dict[str, Any]) -> tuple[str, str] | None:
    found = {check["id"]: check for check in lasting_checks(listed, bench="b")}
    check = found.get("memory.device_reset")
    return check and (check["outcome"], check["reason"])


def residual(*listed: dict[str, Any]) -> tuple[str, str] | None:
    found = {check["id"]: check for check in lasting_checks(listed, bench="b")}
    check = found.get("residual")
    return check and (check["outcome"], check["reason"])


GROWN = [LEAK_BYTES + 1] * 5


def test_memory_that_grows_in_every_one_of_five_trials_is_a_leak() -> None:
    assert memory(*records("candidate", GROWN), *records("baseline", [0] * 5)) == (
        "FAIL",
        "memory leak: after 5 of 5 trials slabs had grown by more than 256 KiB, by 256 KiB in the median",
    )
    assert memory(*records("candidate", GROWN)) is not None


@pytest.mark.parametrize(
    "growths", [[LEAK_BYTES] * 5, [*GROWN[:4], 0], [-LEAK_BYTES * 9] * 5], ids=["at the limit", "once not", "less"]
)
def test_memory_that_need_not_grow_in_most_trials_is_none(growths: list[int]) -> None:
    found = memory(*records("candidate", growths))
    assert found is not None
    assert found[0] == "PASS"


def test_a_single_trial_without_growth_among_many_hides_no_leak() -> None:
    found = memory(*records("candidate", [*GROWN, *GROWN, 0]))
    assert found is not None
    assert found[0] == "FAIL"


def test_memory_that_grows_with_the_baseline_too_is_known() -> None:
    found = memory(*records("candidate", GROWN), *records("baseline", GROWN))
    assert found is not None
    assert (found[0], found[1].partition(",")[0]) == ("PASS", "known")


def test_four_trials_say_nothing_of_memory_and_void_ones_do_not_count() -> None:
    listed = records("candidate", GROWN)
    assert memory(*listed[:4]) is None
    listed[0]["outcome"] = "void"
    assert memory(*listed) is None


def test_a_driver_that_tells_more_than_was_read_has_wrong_residuals() -> None:
    found = residual(*records("candidate", [0], WRONG), *records("baseline", [0], RIGHT))
    assert found is not None
    assert found[0] == "FAIL"
    assert found[1].startswith("wrong residual: after 2 of 2 commands the driver told other lengths than")
    assert found[1].endswith("252 bytes were asked for, the drive gave 8, the driver told 252")
    assert residual(*records("candidate", [0], WRONG)) == found


def test_a_driver_that_tells_what_was_read_passes_with_its_count() -> None:
    assert residual(*records("candidate", [0, 0], RIGHT), *records("baseline", [0], WRONG)) == (
        "PASS",
        "4 of 4 commands that ended short were told with what they read",
    )


def test_residuals_that_are_wrong_in_both_arms_are_known() -> None:
    found = residual(*records("candidate", [0], WRONG), *records("baseline", [0], WRONG))
    assert found is not None
    assert (found[0], found[1].partition(",")[0]) == ("PASS", "known")


def test_what_the_baseline_alone_shows_accuses_nobody() -> None:
    assert residual(*records("baseline", [0], WRONG)) is None
    assert memory(*records("baseline", GROWN)) is None


def test_a_command_that_was_not_answered_and_a_drive_without_them_say_nothing_of_residuals() -> None:
    assert residual(*records("candidate", [0], {"problem": "no such device"})) is None
    assert residual(*records("candidate", [0])) is None
