# SPDX-License-Identifier: Apache-2.0
"""How a bench switches settings by itself: every launch finds its drives as its arm and its point want them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storqual.campaign.further import rest_of
from storqual.plan import make_plan
from tests.support.make_lab import INSTANT, KERNEL, OTHER, SMALL_SUITE, make_lab


def states_after(block: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, dict[str, str]]]]:
    """Each launch with the drives' settings when it runs, as a bench that obeys the switches would have them."""
    state: defaultdict[str, dict[str, str]] = defaultdict(dict)
    seen = []
    for launch in block["launches"]:
        for step in launch["switch"]:
            words = " ".join(step["argv"])
            (drive,) = [drive for drive in launch["drives"] if f":{drive}}}" in words]
            name = "WCE" if "WCE" in words else "queue_depth"
            state[drive][name] = step["argv"][4]
        seen.append((launch, {drive: dict(state[drive]) for drive in launch["drives"]}))
    return seen


WANTED = {"baseline": {"WCE": "1", "queue_depth": "4"}, "candidate": {"WCE": "0", "queue_depth": "16"}}


def test_instant_settings_are_switched_between_launches(tmp_path: Path) -> None:
    campaign = make_plan(make_lab(tmp_path, baseline=INSTANT[0], candidate=INSTANT[1]))
    (session,) = campaign.document["plan"]["sessions"]
    assert (session["arms"], session["change"], session["boot"]) == (
        ["baseline", "candidate"],
        "instant",
        "if_needed",
    )
    for launch, drives in states_after(campaign.blocks[0]):
        assert all(found == WANTED[launch["arm"]] for found in drives.values())
    assert campaign.document["provision"]["b1"]["baseline"]["switched"]["drive"]


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_rest_of_a_block_switches_for_itself(tmp_path: Path, data: st.DataObject) -> None:
    campaign = make_plan(make_lab(tmp_path, baseline=INSTANT[0], candidate=INSTANT[1], run="r"))
    (block,) = campaign.blocks
    ids = [f"{block['block']}/{launch['index']}" for launch in block["launches"]]
    done = data.draw(st.sets(st.sampled_from(ids)))
    rest = rest_of(block, done, name="s01.2-b01", session="s01.2")
    assert (rest is None) == (len(done) == len(ids))
    if rest is not None:
        assert [launch["index"] for launch in rest["launches"]] == list(range(len(ids) - len(done)))
        for launch, drives in states_after(rest):
            assert all(found == WANTED[launch["arm"]] for found in drives.values())


def test_a_mode_page_field_is_read_back_as_its_current_value_alone(tmp_path: Path) -> None:
    """A drive that keeps no saved pages refuses a question that includes them, and 1 is not 16."""
    arms = ({"drive": {"NCS": 1}}, {"drive": {"NCS": 16}})
    (block,) = make_plan(make_lab(tmp_path, baseline=arms[0], candidate=arms[1])).blocks
    (step, *_) = block["launches"][0]["switch"]
    value = step["argv"][1].rpartition("=")[2]
    assert step["argv"][:2] == ["sdparm", f"--set=NCS={value}"]
    assert step["read_back"][:2] == ["sh", "-c"]
    assert 'sdparm --quiet --get="$1=1" "$2"' in step["read_back"][2]
    assert step["expect"] == f"[NCS][{value}]"


def test_the_kernel_looks_again_at_a_write_cache_that_was_switched(tmp_path: Path) -> None:
    """It flushes, or does not, by what it read before: a synchronous write would be measured at another cost."""
    arms = ({"drive": {"WCE": 1}}, {"drive": {"WCE": 0}})
    (block,) = make_plan(make_lab(tmp_path, baseline=arms[0], candidate=arms[1])).blocks
    (step, *_) = block["launches"][0]["switch"]
    assert 'sdparm --set="WCE=$1" "$2" && printf 1 > "/sys/block/$3/device/rescan"' in step["argv"]
    assert 'cat /sys/block/"$3"/device/scsi_disk/*/cache_type' in step["read_back"][2]
    value = step["argv"][4]
    assert step["expect"] == f"[WCE][{value}][kernel][{value}]"


def test_slow_varied_settings_are_outermost_and_quick_ones_inside(tmp_path: Path) -> None:
    suite = SMALL_SUITE.replace("profiles:", "vary: {nvram.max_tags: [4, 16], drive.WCE: [0, 1]}\nprofiles:")
    campaign = make_plan(make_lab(tmp_path, suite=suite, baseline=KERNEL, candidate=OTHER, profile="full"))
    plan = campaign.document["plan"]
    assert len(plan["sessions"]) == 8
    tags = [session["configuration"].split("max_tags=")[1][:-1] for session in plan["sessions"]]
    assert tags == ["4"] * 4 + ["16"] * 4
    points = {point["point"] for point in plan["points"]}
    assert "seq_read[bs=4k,drive.WCE=0,drives=1,iodepth=1,nvram.max_tags=16]" in points
    measured = {(launch["point"], launch["arm"]) for block in campaign.blocks for launch in block["launches"]}
    assert measured == {(point, arm) for point in points for arm in ("baseline", "candidate")}
    for block in campaign.blocks:
        for launch, drives in states_after(block):
            level = launch["point"].split("drive.WCE=")[1][0]
            assert all(found == {"WCE": level} for found in drives.values())
