# SPDX-License-Identifier: Apache-2.0
"""What the sessions of trials are provisioned with: as planned, arm by arm, and nothing left undone in silence."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign import Provision
from storqual.campaign.declared import declared_document
from storqual.campaign.next_step import next_command
from storqual.checks import campaign_keywords
from storqual.plan import make_plan
from storqual_core.kit.errors import BadInputError
from tests.support.turn_records import REQUEST, plan_campaign

pytestmark = pytest.mark.slow


def draft(tmp_path: Path, **drops: str) -> dict[str, Any]:
    """What both arms would be provisioned with, by arm; `drops` are texts of drops."""
    for name, text in drops.items():
        (tmp_path / f"{name}.yml").write_text(f"name: {name}\n{text}", encoding="utf-8")
    asked = {name: str(tmp_path / f"{name}.yml") for name in drops}
    specs: dict[str, Any] = make_plan(replace(REQUEST, **asked)).document["provision"]["vbench"]
    return specs


def test_a_session_of_trials_has_as_found_what_only_the_other_arm_declares(tmp_path: Path) -> None:
    specs = draft(tmp_path, baseline="drive: {WCE: 0, on: {adapter: fusion}}\n", candidate="os: {cpus: 1}\n")
    off = {drive: {"WCE": 0} for drive in specs["baseline"]["drive"]}
    assert len(off) == 8
    assert specs["baseline"]["drive"] == off
    assert specs["candidate"]["drive"] == {}
    assert specs["candidate"]["as_found"] == {"drive": {drive: ["WCE"] for drive in off}}
    assert specs["baseline"]["as_found"] == {"os": {"": ["cpus"]}}


def test_trials_are_provisioned_with_what_was_planned_whatever_happens_to_the_drop(tmp_path: Path) -> None:
    """Files that a drop names beside itself are found beside it, not beside the run's copy of the drop."""
    (tmp_path / "acme.ko").write_bytes(b"module")
    digest = hashlib.sha256(b"module").hexdigest()
    drop = tmp_path / "own.yml"
    drop.write_text(f"name: own\ndriver: {{module: {{file: acme.ko, sha256: {digest}}}}}\n", encoding="utf-8")
    path = plan_campaign(replace(REQUEST, baseline="", candidate=str(drop)), tmp_path / "runs")
    drop.unlink()
    step = next_command(path, "vbench")
    assert isinstance(step, Provision)
    assert declared_document(step.spec)["files"][0]["from"] == str(tmp_path / "acme.ko")
    assert (step.spec["change"], step.session.arm) == ("none", "candidate")


@pytest.mark.parametrize("word", ["iops_limit: {all: 900}", "unplug: {drive: '0x5000c50067b10000', after_s: 4}"])
def test_what_only_a_measured_campaign_does_to_a_virtual_bench_is_refused_for_trials(
    tmp_path: Path, word: str
) -> None:
    with pytest.raises(BadInputError) as told:
        draft(tmp_path, candidate=f"virtual:\n  {word}\n")
    name = word.partition(":")[0]
    sentence = f"sessions of trials and programs do not apply virtual.{name}; remove it from the drop"
    assert told.value.problems == [f"{tmp_path}/candidate.yml:3: {sentence}"]


@pytest.mark.parametrize(("text", "declares"), [("drive: {WCE: 0, on: {adapter: fusion}}\n", True), ("", False)])
def test_a_run_of_trials_tells_the_check_of_settings_whether_its_drops_declare_any(
    tmp_path: Path, text: str, declares: bool
) -> None:
    drop = tmp_path / "one.yml"
    drop.write_text(f"name: one\n{text}", encoding="utf-8")
    document = make_plan(replace(REQUEST, baseline="", candidate=str(drop))).document
    assert campaign_keywords._declares(document, "vbench") is declares


def test_trials_leave_the_members_of_volumes_alone(tmp_path: Path) -> None:
    drop = tmp_path / "raid.yml"
    text = "name: raid\nraid: {on: {adapter: fusion}, name: v, level: 1, members: [MEMBERS]}\n"
    inventory = json.loads(make_plan(REQUEST).inputs["inventory"].data)["vbench"]
    drives = [drive["wwn"] for drive in inventory["adapters"]["fusion"]["drives"] if drive.get("claim")]
    drop.write_text(text.replace("MEMBERS", ", ".join(f"'{wwn}'" for wwn in drives[:2])), encoding="utf-8")
    plan = make_plan(replace(REQUEST, baseline="", candidate=str(drop))).document["plan"]
    used = {trial["drive"] for trial in plan["trials"] if trial["adapter"] == "fusion"}
    assert used
    assert not used & set(drives[:2])
    level_5 = text.replace("level: 1", "level: 5").replace("MEMBERS", ", ".join(f"'{wwn}'" for wwn in drives))
    drop.write_text(level_5, encoding="utf-8")
    with pytest.raises(BadInputError, match="every claimed drive of adapter fusion is a member of a volume"):
        make_plan(replace(REQUEST, baseline="", candidate=str(drop)))
