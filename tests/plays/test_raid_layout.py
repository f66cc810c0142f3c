# SPDX-License-Identifier: Apache-2.0
"""The role raid_layout: volumes are made once, followed until they are initialised, and told as one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.plays.stub import play

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.plays

VARIABLES: dict[str, Any] = {
    "raid_layout_volumes": [{"adapter": "sym", "level": "5", "members": ["a", "b", "c"]}],
    "raid_layout_adapters": {},
}


def answer(before: str | None, percent: float | None, **more: Any) -> dict[str, Any]:
    """What the module says in one slice."""
    setting = {"name": "raid.level", "adapter": "sym/r5", "declared": "5", "before": before, "read_back": "5"}
    progress = {} if percent is None else {"sym/r5": {"initialise": percent}}
    settings = [{**setting, "changed": before != "5"}]
    return {"settings": settings, "steps": [], "drift": [], "progress": progress, **more}


def test_a_volume_is_followed_until_it_is_initialised_and_told_as_made_by_this_step(tmp_path: Path) -> None:
    made = answer(None, 10.0, changed=True, steps=["made"], drift=["sym/r5 raid.level: None, declared 5"])
    answers = {"raid_layout": [made, answer("5", 60.0), answer("5", None)]}
    played = play(tmp_path, "raid_layout", VARIABLES, answers, report="raid_layout_report", plugins=["raid_layout"])
    assert played.code == 0, played.output
    assert "changed=1" in played.output
    assert "sym/r5 initialise 10 %" in played.output
    assert [asked["wait_s"] for asked in played.asked("raid_layout")] == [20.0, 20.0, 20.0]
    (setting,) = played.facts["settings"]
    assert (setting["before"], setting["changed"]) == (None, True)
    assert played.facts["drift"] == made["drift"]


def test_what_is_not_initialised_in_time_is_a_failure_that_says_how_far_it_is(tmp_path: Path) -> None:
    variables = {**VARIABLES, "raid_layout_wait_s": 0.001}
    played = play(tmp_path, "raid_layout", variables, {"raid_layout": [answer("5", 30.5)]}, plugins=["raid_layout"])
    assert played.code == 2, played.output
    assert "there is still under way: sym/r5 initialise 30.5 %; it goes on, run this again later" in played.output
