# SPDX-License-Identifier: Apache-2.0
"""The role provision: one call of the module, and what the control node does between two of them."""

from pathlib import Path
from typing import Any

import pytest

from storqual.run import read_run_json
from tests.plays.stub import Played, play
from tests.support.make_run import make_run

pytestmark = pytest.mark.plays

DRIVER = {"kernel": "6.1", "boot_id": "b1", "drivers": {"hba": {"srcversion": "A"}}}
NO_NEEDS: dict[str, Any] = {"files": [], "package": {}, "controller": {}}
ANSWER: dict[str, Any] = {
    "changed": True,
    "settings": [{"name": "drive.WCE", "before": 1, "read_back": 0}],
    "drift": ["d drive.WCE: 1, declared 0"],
    "steps": ["s"],
    "driver": DRIVER,
    "needs": NO_NEEDS,
    "boot_needed": {},
    "resume": {},
    "progress": {},
}
FIRST = {**ANSWER, "settings": [], "resume": {"stage": "driver", "state": {"trial": {"kernel": "6.1"}}}}
BOOT = {**FIRST, "boot_needed": {"kind": "reboot", "reason": "kernel 6.1"}}


def apply(
    folder: Path, answers: dict[str, list[dict[str, Any]]], *, given: dict[str, Any] | None = None, **more: Any
) -> Played:
    bench = {"kind": "virtual", "state_dir": str(folder / "state"), "adapters": {"sym": {"drives": []}}}
    variables = {"provision_bench": bench, "provision_declared": {"change": ""}, **(given or {})}
    return play(folder, "provision", variables, answers, tasks_from="apply", report="provision_report", **more)


def test_everything_is_handed_to_one_call(tmp_path: Path) -> None:
    given = {
        "provision_consent": ["abcdef"],
        "provision_prove_s": 0.5,
        "provision_run": "r1",
        "provision_keep": True,
        "provision_save": True,
        "provision_start_driver": False,
        "provision_soak_s": 3,
        "provision_wait_s": 7,
    }
    played = apply(tmp_path, {"bench_apply": [ANSWER]}, given=given)
    assert played.code == 0, played.output
    (asked,) = played.asked("bench_apply")
    assert len(asked.pop("only")) == 8
    assert asked == {
        **{name.removeprefix("provision_"): value for name, value in given.items()},
        "declared": {"change": ""},
        "adapters": {"sym": {"drives": []}},
        "kind": "virtual",
        "apt": False,
        "brought": {},
        "resume": {},
        "state_dir": str(tmp_path / "state"),
    }
    assert played.facts.items() >= {name: ANSWER[name] for name in ("settings", "drift", "driver")}.items()


@pytest.mark.parametrize(
    ("words", "given", "only"),
    [
        ("--tags modepages", [], ["modepages"]),
        ("--skip-tags raid,os,driver", [], ["firmware", "nvram", "queue", "modepages", "multipath"]),
        ("", ["nvram", "raid"], ["nvram", "raid"]),
        ("--tags raid,queue", ["nvram", "raid"], ["raid"]),
        ("--tags suite", [], None),
    ],
)
def test_tags_and_the_roles_variable_choose_subsystems(
    tmp_path: Path, words: str, given: list[str], only: list[str] | None
) -> None:
    played = apply(tmp_path, {"bench_apply": [ANSWER]}, given={"provision_only": given}, tags=words)
    assert played.code == 0, played.output
    assert [sorted(asked["only"]) for asked in played.asked("bench_apply")] == ([sorted(only)] if only else [])
    assert played.facts.get("drift", []) == (ANSWER["drift"] if only else [])


def test_the_bench_is_booted_and_the_rest_applied_after_it(tmp_path: Path) -> None:
    played = apply(tmp_path, {"bench_apply": [BOOT, BOOT, ANSWER], "bench_reboot": [{"changed": True}]})
    assert played.code == 0, played.output
    assert played.order == ["bench_apply", "bench_reboot", "bench_apply", "bench_reboot", "bench_apply"]
    first, second, third = played.asked("bench_apply")
    assert (first["resume"], second["resume"], third["resume"]) == ({}, BOOT["resume"], BOOT["resume"])
    assert played.facts["settings"] == ANSWER["settings"]


def test_files_and_packages_that_the_bench_lacks_are_copied_once(tmp_path: Path) -> None:
    """A session on a bench that holds its files starts Python for nothing else than its module."""
    for name in ("hba.ko", "linux.deb"):
        (tmp_path / name).write_text(name)
    file = {"from": str(tmp_path / "hba.ko"), "to": "packages/abc/hba.ko", "sha256": "abc", "subsystem": "driver"}
    answers = {
        "bench_apply": [
            {**FIRST, "needs": {**NO_NEEDS, "files": [file]}},
            {**FIRST, "needs": {**NO_NEEDS, "package": {"name": "linux", "version": "1"}}},
            ANSWER,
        ]
    }
    given = {"provision_source": "files", "provision_files": [str(tmp_path / "linux.deb")]}
    played = apply(tmp_path, answers, given=given)
    assert played.code == 0, played.output
    assert (tmp_path / "state" / "packages" / "abc" / "hba.ko").read_text() == "hba.ko"
    assert (tmp_path / "state" / "packages" / "linux.deb").read_text() == "linux.deb"
    assert [asked["brought"].get("packages", []) for asked in played.asked("bench_apply")] == [
        [],
        [],
        ["packages/linux.deb"],
    ]


def test_a_power_cycle_without_a_way_to_the_power_is_a_persons_work(tmp_path: Path) -> None:
    boot = {"kind": "power cycle", "reason": "firmware 2"}
    answers = {"bench_apply": [{**FIRST, "boot_needed": boot}], "bench_reboot": [{}]}
    played = apply(tmp_path, answers, plugins=["bench_power"])
    assert played.code != 0
    assert "power it on, and run this again" in " ".join(played.output.split())
    assert played.order == ["bench_apply"]


@pytest.mark.parametrize("images", [[], [{"file": "x"}]])
def test_a_flash_is_given_the_rules_for_the_kernels_log(tmp_path: Path, images: list[dict[str, str]]) -> None:
    """Ansible ships no data files to a bench."""
    given = {"provision_declared": {"firmware": images}}
    played = apply(tmp_path, {"bench_apply": [ANSWER]}, given=given, plugins=["bench_apply"])
    (asked,) = played.asked("bench_apply")
    assert bool(asked.get("log_rules")) == bool(images), played.output


def test_check_mode_is_one_call(tmp_path: Path) -> None:
    played = apply(tmp_path, {"bench_apply": [ANSWER]}, check=True)
    # it differs from what is declared
    assert played.code == 1, played.output
    assert [check for _, _, check in played.calls] == [True]
    assert not (tmp_path / "state").exists()


BMC = {"baseuri": "bmc", "username": "u", "password": "p", "target": "HBA", "images": "http://files"}
LISTED = {"redfish_facts": {"firmware": {"entries": [{"Name": "HBA", "Version": "1.0"}]}}}
STATUS = {"redfish_facts": {"update_status": {"status": "Completed"}}}
CONTROLLER = {"file": "/x/new.bin", "activation": "reboot", "adapter": "sas0"}
LOOK, FLASH = (
    {**FIRST, "needs": {**NO_NEEDS, "controller": {**CONTROLLER, "flash": flash}}} for flash in (False, True)
)


def test_the_management_controller_looks_flashes_and_looks_again(tmp_path: Path) -> None:
    answers = {
        "bench_apply": [LOOK, FLASH, ANSWER],
        "bench_reboot": [{"changed": True}],
        "community.general.redfish_info": [LISTED, STATUS, LISTED],
        "community.general.redfish_command": [{"changed": True, "update_status": {"handle": "/tasks/1"}}],
    }
    played = apply(tmp_path, answers, given={"provision_bmc": BMC})
    assert played.code == 0, played.output
    (update,) = played.asked("community.general.redfish_command")
    assert (update["command"], update["update_image_uri"]) == ("SimpleUpdate", "http://files/new.bin")
    assert [name for name in played.order if "redfish" not in name] == [
        *("bench_apply", "bench_apply", "bench_reboot", "bench_apply")
    ]
    brought = [asked["brought"] for asked in played.asked("bench_apply")[1:]]
    assert [each["entries"] for each in brought] == [LISTED["redfish_facts"]["firmware"]["entries"]] * 2
    assert {each["target"] for each in brought} == {"HBA"}


def test_what_the_controller_answered_reaches_the_bench(tmp_path: Path) -> None:
    answers = {
        "bench_apply": [LOOK, FLASH, {"failed": True, "msg": "told"}],
        "community.general.redfish_info": [LISTED],
        "community.general.redfish_command": [{"failed": True, "msg": "a job is running"}],
    }
    played = apply(tmp_path, answers, given={"provision_bmc": BMC})
    assert played.code != 0
    assert played.asked("bench_apply")[2]["brought"]["answer"] == "a job is running"


def test_redfish_without_a_management_controller_is_refused(tmp_path: Path) -> None:
    answers = {
        "bench_apply": [LOOK],
        "community.general.redfish_info": [{}],
        "community.general.redfish_command": [{}],
    }
    played = apply(tmp_path, answers)
    assert played.code != 0
    assert "declare provision_bmc" in " ".join(played.output.split())


IPMI = [{"ipmi": {"host": "a", "user": "b", "password": "c"}}]


@pytest.mark.parametrize("given", [{"provision_bmc": BMC}, {"storqual_power": IPMI}])
def test_a_power_cycle_is_made_by_what_the_bench_has_and_waits_as_long_as_the_drop_says(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    declared = {"firmware": [{"answers_within": 600.0}, {"file": "x"}]}
    given = {"provision_restart": "power cycle", "provision_declared": declared, **given}
    played = play(tmp_path, "provision", given, {"bench_power": [{}], "bench_reboot": [{}]}, tasks_from="restart")
    assert played.asked("bench_power"), played.output
    (asked,) = played.asked("bench_power")
    assert (asked["switch"], float(asked["answers_within"])) == ("cycle", 600.0)


def test_an_unknown_variable_is_refused_before_anything(tmp_path: Path) -> None:
    """A misspelt variable would silently leave the bench as it is."""
    played = play(tmp_path, "provision", {"provision_drop": "x", "provision_kep": True}, {"bench_apply": [{}]})
    assert played.code != 0
    assert "provision_kep is not a variable of role provision; did you mean provision_keep?" in played.output
    assert played.calls == []


def volumes(before: str | None, percent: float | None, **more: Any) -> dict[str, Any]:
    setting = {"name": "raid.level", "adapter": "sym/r5", "declared": "5", "before": before, "read_back": "5"}
    progress = {} if percent is None else {"sym/r5": {"initialise": percent}}
    resume = {} if percent is None else {"stage": "raid"}
    own = {"settings": [{**setting, "changed": before != "5"}], "progress": progress, "resume": resume}
    return {**ANSWER, "changed": False, "steps": [], "drift": [], **own, **more}


def test_a_volume_is_followed_until_it_is_initialised_and_told_as_made_by_this_step(tmp_path: Path) -> None:
    drive = {"name": "drive.WCE", "drive": "0x5000", "before": 1, "read_back": 0, "changed": True}
    made = volumes(None, 10.0, changed=True, steps=["made"], drift=["sym/r5 raid.level: None, declared 5"])
    made["settings"].insert(0, drive)
    answers = {"bench_apply": [made, volumes("5", 60.0), volumes("5", None)]}
    played = apply(tmp_path, answers, plugins=["bench_apply"])
    assert played.code == 0, played.output
    assert "changed=1" in played.output
    assert "sym/r5 initialise 10 %" in played.output
    assert [asked["wait_s"] for asked in played.asked("bench_apply")] == [20.0, 20.0, 20.0]
    assert [asked["resume"] for asked in played.asked("bench_apply")] == [{}, {"stage": "raid"}, {"stage": "raid"}]
    first, second = played.facts["settings"]
    assert first == drive
    assert (second["before"], second["changed"]) == (None, True)
    assert (played.facts["drift"], played.facts["driver"]) == (made["drift"], DRIVER)


@pytest.mark.parametrize("wait_s", [0.001, 0])
def test_what_is_not_initialised_in_time_is_a_failure_unless_nobody_waits(tmp_path: Path, wait_s: float) -> None:
    answers = {"bench_apply": [volumes("5", 30.5)]}
    played = apply(tmp_path, answers, given={"provision_wait_s": wait_s}, plugins=["bench_apply"])
    assert played.code == (2 if wait_s else 0), played.output
    assert ("there is still under way: sym/r5 initialise 30.5 %" in played.output) == bool(wait_s)


NOTHING = {"restored": True, "reboot": False, "power_cycle": False, "run": "", "settings": [], "steps": []}


def test_a_bench_on_its_own_kernel_is_put_back_without_a_boot(tmp_path: Path) -> None:
    answers = {"bench_restore": [{**NOTHING, "changed": True, "run": "r1"}], "bench_reboot": [{}]}
    played = play(tmp_path, "restore", {"restore_state_dir": "/s"}, answers, report="restore_report")
    assert played.code == 0, played.output
    assert played.order == ["bench_restore"]
    assert played.asked("bench_restore")[0]["state_dir"] == "/s"
    assert played.facts["run"] == "r1"


def test_a_bench_on_another_kernel_is_booted_and_then_put_back(tmp_path: Path) -> None:
    first = {**NOTHING, "changed": True, "restored": False, "reboot": True}
    answers = {
        "bench_restore": [first, {**NOTHING, "changed": True, "run": "r1"}],
        "bench_reboot": [{"changed": True}],
    }
    played = play(tmp_path, "restore", {}, answers, report="restore_report")
    assert played.code == 0, played.output
    assert played.order == ["bench_restore", "bench_reboot", "bench_restore"]
    assert played.facts["restored"]


def test_a_former_kernel_that_does_not_come_up_is_a_failure(tmp_path: Path) -> None:
    """It booted, and still another kernel runs."""
    answers = {"bench_restore": [{**NOTHING, "restored": False, "reboot": True}], "bench_reboot": [{"changed": True}]}
    played = play(tmp_path, "restore", {}, answers)
    assert played.code == 2
    assert "its former kernel is not the default" in played.output


def test_check_mode_of_a_restore_boots_nothing(tmp_path: Path) -> None:
    """It says that it would."""
    answers = {
        "bench_restore": [{**NOTHING, "restored": False, "reboot": True, "changed": True}],
        "bench_reboot": [{}],
    }
    played = play(tmp_path, "restore", {}, answers, check=True)
    assert played.code == 0, played.output
    assert all(check for _, _, check in played.calls)


def test_a_report_that_was_not_published_ends_the_role_with_the_reason(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs")
    assert read_run_json(run)
    (run / "samples.jsonl").write_text("no sample\n", encoding="utf-8")
    played = play(tmp_path / "play", "publish", {"publish_run": str(run)}, {})
    assert played.code != 0
    assert "samples.jsonl" in played.output
    assert "has no attribute" not in played.output
