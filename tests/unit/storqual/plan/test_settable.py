# SPDX-License-Identifier: Apache-2.0
"""Tests that only what drives let be changed is varied, and that the rest is told with its drives."""

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storqual.campaign.further import rest_of
from storqual.plan import PlannedCampaign, make_plan
from storqual_core.kit.errors import BadInputError
from tests.support.make_lab import INSTANT, KERNEL, OTHER, SMALL_SUITE, lab_hosts, make_lab

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
FREE = {"WCE": (1, True), "NCS": (20, True), "RCD": (0, True)}


def planned(
    folder: Path, *drives: dict[str, tuple[int, bool | None]], links: str | None = None, **request: Any
) -> PlannedCampaign:
    """The plan for as many drives; of each field of a drive its value and whether it can be changed."""
    hosts = lab_hosts({"sym": len(drives)})
    ids = [drive["wwn"] for drive in hosts["b1"]["storqual_adapters"]["sym"]["drives"]]
    listed = [
        {
            "id": name,
            "mode_pages": {field: {"value": value, "changeable": can} for field, (value, can) in one.items()},
            **({} if links is None else {"link": {"rate_max": links}}),
        }
        for name, one in zip(ids, drives, strict=True)
    ]
    folder.mkdir(exist_ok=True)
    path = folder / "facts.json"
    path.write_text(json.dumps({"b1": {"drives": listed}}), encoding="utf-8")
    lab = make_lab(folder, hosts=hosts, **{"suite": SUITE, "facts": path, **request})
    return make_plan(replace(lab, baseline=""))


def varied(campaign: PlannedCampaign) -> set[str]:
    return {name for point in campaign.document["plan"]["points"] for name in point["varied"]}


def test_everything_is_varied_where_every_drive_lets_it_be_changed(tmp_path: Path) -> None:
    campaign = planned(tmp_path, FREE, FREE)
    assert varied(campaign) == {"drive.WCE", "drive.NCS", "drive.RCD", "drive.read_ahead_kb"}
    assert "not_varied" not in campaign.document["plan"]
    assert campaign.inputs["facts"].data == (tmp_path / "facts.json").read_bytes()


def test_a_field_that_one_drive_keeps_is_not_varied_and_is_told_with_the_drive(tmp_path: Path) -> None:
    campaign = planned(tmp_path, FREE, {**FREE, "NCS": (20, False)})
    assert varied(campaign) == {"drive.WCE", "drive.RCD", "drive.read_ahead_kb"}
    specs = campaign.document["provision"]["b1"]
    assert not any("NCS" in settings for spec in specs.values() for settings in spec["drive"].values())
    told = campaign.document["plan"]["not_varied"]["b1"]
    assert set(told) == {"drive.NCS"}
    assert told["drive.NCS"].startswith("not changeable on drive 0x5000c500")
    assert told["drive.NCS"].endswith("0001 (its value is 20, and its changeable mask does not allow another)")
    assert any("b1: drive.NCS is not varied: not changeable on" in warning for warning in campaign.warnings)


def test_a_field_that_a_drive_does_not_have_is_told_as_that(tmp_path: Path) -> None:
    campaign = planned(tmp_path, {"WCE": (1, True), "RCD": (0, True)})
    assert "it has no such field" in campaign.document["plan"]["not_varied"]["b1"]["drive.NCS"]


def test_what_is_not_known_to_be_changeable_is_left_to_the_drive(tmp_path: Path) -> None:
    """Without sdparm a bench knows values only; a drive without any page said nothing (it did not answer)."""
    assert "drive.NCS" in varied(planned(tmp_path, {**FREE, "NCS": (20, None)}, {}))


def test_without_facts_the_plan_says_how_they_are_given(tmp_path: Path) -> None:
    campaign = planned(tmp_path, {**FREE, "NCS": (20, False)}, facts=None)
    assert "drive.NCS" in varied(campaign)
    assert any("--facts" in warning for warning in campaign.warnings)


@pytest.mark.parametrize(("rate_max", "kept"), [("", False), ("6.0 Gbit", True)])
def test_the_rate_of_a_link_is_varied_only_where_drives_are_on_a_sas_link(
    tmp_path: Path, rate_max: str, kept: bool
) -> None:
    suite = SUITE.replace("drive.read_ahead_kb: [128, 1024]", "drive.link_rate: [1.5 Gbit, 3.0 Gbit]")
    campaign = planned(tmp_path, FREE, suite=suite, links=rate_max)
    points = campaign.document["plan"]["points"]
    assert ("drive.link_rate" in varied(campaign)) is kept
    if kept:
        assert {point["varied"]["drive.link_rate"] for point in points} == {"1.5 Gbit", "3.0 Gbit"}
    else:
        told = campaign.document["plan"]["not_varied"]["b1"]["drive.link_rate"]
        assert told.endswith("0000 (it is on no SAS link)")
    without = planned(tmp_path / "without", FREE, suite=suite, facts=None)
    assert any("drive.link_rate" in warning and "--facts" in warning for warning in without.warnings)


@pytest.mark.parametrize("text", ["", "[]", '{"b1": {}}', '{"b1": {"drives": 1}}'])
def test_a_file_that_is_no_answer_of_facts_is_refused(tmp_path: Path, text: str) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError, match="takes the output of `storqual facts --deep --json`"):
        planned(tmp_path, FREE, facts=wrong)


@pytest.mark.parametrize(
    ("told", "lacks"),
    [
        ("[none] mq-deadline", False),
        ("none [bfq]", True),
        ("[none] mq-deadline-old", True),
        ("", False),
        (None, False),
    ],
)
def test_a_scheduler_that_the_kernel_of_a_bench_does_not_have_is_refused(
    tmp_path: Path, told: str | None, lacks: bool
) -> None:
    hosts = lab_hosts({"sym": 2})
    ids = [drive["wwn"] for drive in hosts["b1"]["storqual_adapters"]["sym"]["drives"]]
    path = tmp_path / "facts.json"
    drives = [
        {"id": ids[0], "queue": {"scheduler": "[mq-deadline] none"}},
        {"id": ids[1], "queue": {"scheduler": told}},
    ]
    path.write_text(json.dumps({"b1": {"drives": drives}}), encoding="utf-8")
    drop = {"drive": [{"queue_depth": 4}, {"scheduler": "mq-deadline"}]}
    request = make_lab(tmp_path, hosts=hosts, baseline={}, candidate=drop, facts=path)
    if not lacks:
        assert make_plan(request).batches
        return
    with pytest.raises(BadInputError) as refused:
        make_plan(request)
    known = str(told).replace("[", "").replace("]", "").replace(" ", ", ")
    sentence = f"drive {ids[1]} of b1 has no scheduler mq-deadline; it has {known}"
    assert refused.value.problems == [f"{tmp_path}/drops/candidate.yml:1: {sentence}"]


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
