# SPDX-License-Identifier: Apache-2.0
"""How a bench switches settings by itself: every launch finds its drives as its arm and its point want them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storqual.campaign.further import rest_of
from storqual.plan import make_plan
from storqual_core.kit.errors import BadInputError
from tests.support.make_lab import INSTANT, KERNEL, OTHER, SMALL_SUITE, make_lab


def states_after(block: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, dict[str, Any]]]]:
    """Each launch with the drives' settings when it runs, as a bench that obeys the switches would have them."""
    state: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    seen = []
    for launch in block["turns"]:
        for step in launch["request"]["switch"]:
            assert step["drive"] in launch["drives"]
            state[step["drive"]][step["setting"]] = step["value"]
        seen.append((launch, {drive: dict(state[drive]) for drive in launch["drives"]}))
    return seen


WANTED = {"baseline": {"WCE": 1, "queue_depth": 4}, "candidate": {"WCE": 0, "queue_depth": 16}}


def test_instant_settings_are_switched_between_launches(tmp_path: Path) -> None:
    campaign = make_plan(make_lab(tmp_path, baseline=INSTANT[0], candidate=INSTANT[1]))
    (session,) = campaign.document["plan"]["sessions"]
    assert (session["arms"], session["change"], session["boot"]) == (
        ["baseline", "candidate"],
        "instant",
        "if_needed",
    )
    for launch, drives in states_after(campaign.batches[0]):
        assert all(found == WANTED[launch["arm"]] for found in drives.values())


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_rest_of_a_block_switches_for_itself(tmp_path: Path, data: st.DataObject) -> None:
    campaign = make_plan(make_lab(tmp_path, baseline=INSTANT[0], candidate=INSTANT[1], run="r"))
    (block,) = campaign.batches
    ids = [f"{block['block']}/{launch['index']}" for launch in block["turns"]]
    done = data.draw(st.sets(st.sampled_from(ids)))
    rest = rest_of(block, done, name="s01.2-b01", session="s01.2")
    assert (rest is None) == (len(done) == len(ids))
    if rest is not None:
        assert [launch["index"] for launch in rest["turns"]] == list(range(len(ids) - len(done)))
        for launch, drives in states_after(rest):
            assert all(found == WANTED[launch["arm"]] for found in drives.values())


def test_a_switch_is_a_drive_a_setting_and_a_value_and_no_command(tmp_path: Path) -> None:
    arms = ({"drive": {"NCS": 1}}, {"drive": {"NCS": 16}})
    (block,) = make_plan(make_lab(tmp_path, baseline=arms[0], candidate=arms[1])).batches
    for launch in block["turns"]:
        for step in launch["request"]["switch"]:
            value = {"baseline": 1, "candidate": 16}[launch["arm"]]
            assert step == {"drive": step["drive"], "setting": "NCS", "value": value}


def test_what_a_switch_may_change_is_declared_with_it(tmp_path: Path) -> None:
    """Arms that differ in the scheduler alone: the kernel gives a new one a number of requests of its own."""
    arms = [{"drive": {"nr_requests": 32, "scheduler": name}} for name in ("none", "mq-deadline")]
    (block,) = make_plan(make_lab(tmp_path, baseline=arms[0], candidate=arms[1])).batches
    for launch in block["turns"]:
        by_drive = defaultdict(dict)
        for step in launch["request"]["switch"]:
            by_drive[step["drive"]][step["setting"]] = step["value"]
        scheduler = {"baseline": "none", "candidate": "mq-deadline"}[launch["arm"]]
        assert all(found == {"scheduler": scheduler, "nr_requests": 32} for found in by_drive.values())
    assert any(launch["request"]["switch"] for launch in block["turns"])


def test_a_switch_that_nobody_knows_is_told(tmp_path: Path) -> None:
    (block,) = make_plan(make_lab(tmp_path, baseline=INSTANT[0], candidate=INSTANT[1], run="r")).batches
    block["turns"][0]["request"]["switch"] = [{"argv": ["reboot"], "read_back": []}]
    with pytest.raises(BadInputError, match="plan the run anew"):
        rest_of(block, set(), name="s01.2-b01", session="s01.2")


def test_slow_varied_settings_are_outermost_and_quick_ones_inside(tmp_path: Path) -> None:
    suite = SMALL_SUITE.replace("profiles:", "vary: {nvram.max_tags: [4, 16], drive.WCE: [0, 1]}\nprofiles:")
    campaign = make_plan(make_lab(tmp_path, suite=suite, baseline=KERNEL, candidate=OTHER, profile="full"))
    plan = campaign.document["plan"]
    assert len(plan["sessions"]) == 8
    tags = [session["configuration"].split("max_tags=")[1][:-1] for session in plan["sessions"]]
    assert tags == ["4"] * 4 + ["16"] * 4
    points = {point["point"] for point in plan["points"]}
    assert "seq_read[bs=4k,drive.WCE=0,drives=1,iodepth=1,nvram.max_tags=16]" in points
    measured = {(launch["point"], launch["arm"]) for block in campaign.batches for launch in block["turns"]}
    assert measured == {(point, arm) for point in points for arm in ("baseline", "candidate")}
    for block in campaign.batches:
        for launch, drives in states_after(block):
            level = launch["point"].split("drive.WCE=")[1][0]
            assert all(found == {"WCE": int(level)} for found in drives.values())
