# SPDX-License-Identifier: Apache-2.0
"""The roles that flash and restart: what they bring to a bench, when they restart it, what they prove."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from storqual.campaign.role_inputs import firmware_inputs
from tests.plays.stub import play

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.plays

DONE = {"changed": True, "pending": "", "settings": [{"name": "done"}], "drift": ["a"], "steps": ["s"]}
PROOF = {"changed": True, "pending": "", "settings": [{"name": "proof"}], "drift": [], "steps": []}
ADAPTERS = {"sas0": {"pci": "0000:3b:00.0", "drives": []}, "other": {"pci": "0000:5e:00.0"}}


def image(folder: Path, **more: Any) -> dict[str, Any]:
    """An image as `storqual resolve` hands it to a role, its files on this machine."""
    for name in ("new.bin", "old.bin"):
        (folder / name).write_text(name)
    entry = {
        "adapters": ["sas0"],
        "file": str(folder / "new.bin"),
        "sha256": "a" * 64,
        "version": "2.0",
        "tool": "storcli",
        "component": "firmware",
        "activation": "reset",
        "rollback": [{"file": str(folder / "old.bin"), "sha256": "b" * 64, "version": "1.0"}],
    }
    return firmware_inputs({**entry, **more})


def variables(folder: Path, **more: Any) -> dict[str, Any]:
    """The role's variables."""
    given = {"images": [image(folder, **more)], "adapters": ADAPTERS, "consent": ["000001"]}
    return {f"firmware_{name}": value for name, value in {**given, "state_dir": str(folder / "state")}.items()}


def test_images_are_brought_and_the_adapters_flashed_in_one_call(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        "firmware",
        variables(tmp_path),
        {"adapter_firmware": [DONE]},
        report="firmware_report",
    )
    assert played.code == 0, played.output
    (asked,) = played.asked("adapter_firmware")
    assert asked["adapters"] == {"sas0": ADAPTERS["sas0"]}
    assert asked["path"] == f"firmware/{'a' * 64}/new.bin"
    assert asked["rollback"][0]["path"] == f"firmware/{'b' * 64}/old.bin"
    assert (asked["consent"], asked["activation"], asked["state_dir"]) == (
        ["000001"],
        "reset",
        str(tmp_path / "state"),
    )
    assert (tmp_path / "state" / asked["path"]).read_text() == "new.bin"
    assert (tmp_path / "state" / asked["rollback"][0]["path"]).read_text() == "old.bin"
    assert played.facts == {"settings": [{"name": "done"}], "drift": ["a"], "steps": ["s"]}


def test_a_bench_is_booted_and_the_image_proven_where_it_needs_that(tmp_path: Path) -> None:
    module, more = "drive_firmware", {"adapters": [], "drives": ["0x5000c50000000001"]}
    answers = {module: [{**DONE, "pending": "reboot"}, PROOF], "bench_reboot": [{"changed": True}]}
    played = play(tmp_path, "firmware", variables(tmp_path, **more), answers, report="firmware_report")
    assert played.code == 0, played.output
    assert [name.partition(":")[0] for name in played.order] == [module, "bench_reboot", module]
    first, second = played.asked(module)
    assert ("state" in first, second["state"]) == (False, "proven")
    assert {key: value for key, value in second.items() if key != "state"} == first
    assert played.facts["settings"] == [{"name": "proof"}]
    assert (first["drives"], first["adapters"]) == (["0x5000c50000000001"], ADAPTERS)


def test_a_power_cycle_without_a_management_controller_is_a_persons_work(tmp_path: Path) -> None:
    answers = {"adapter_firmware": [{**DONE, "pending": "power cycle"}], "bench_reboot": [{}]}
    played = play(tmp_path, "firmware", variables(tmp_path), answers)
    assert played.code != 0
    assert "power it on, and run this again" in " ".join(played.output.split())
    assert played.order == ["adapter_firmware"]


def test_check_mode_brings_and_restarts_nothing(tmp_path: Path) -> None:
    answers = {"adapter_firmware": [DONE], "bench_reboot": [{}]}
    given = variables(tmp_path)
    played = play(tmp_path, "firmware", given, answers, check=True, report="firmware_report")
    assert played.code == 0, played.output
    assert [check for _, _, check in played.calls] == [True]
    assert not (tmp_path / "state").exists()
    assert played.facts["drift"] == ["a"]


BMC = {"baseuri": "bmc", "username": "u", "password": "p", "target": "HBA", "images": "http://files"}
LISTED = {"redfish_facts": {"firmware": {"entries": [{"Name": "HBA", "Version": "1.0"}]}}}
UPDATED = {"changed": True, "update_status": {"handle": "/tasks/1"}}
STATUS = {"redfish_facts": {"update_status": {"status": "Completed"}}}


def test_redfish_flashes_by_the_management_controller(tmp_path: Path) -> None:
    given = {**variables(tmp_path, tool="redfish"), "firmware_bmc": BMC}
    plan = {"needed": True, "found": "1.0", "drift": ["d"], "settings": [{"name": "plan"}]}
    answers = {
        "community.general.redfish_info": [LISTED, STATUS, LISTED],
        "community.general.redfish_command": [UPDATED],
        "redfish_firmware": [plan, PROOF],
        "drive_guard": [{}],
    }
    played = play(tmp_path, "firmware", given, answers, report="firmware_report")
    assert played.code == 0, played.output
    (update,) = played.asked("community.general.redfish_command")
    assert (update["command"], update["update_image_uri"]) == ("SimpleUpdate", "http://files/new.bin")
    assert played.asked("drive_guard")[0]["purpose"] == "firmware"
    assert played.asked("redfish_firmware")[1]["state"] == "proven"
    assert [asked["command"] for asked in played.asked("community.general.redfish_info")] == [
        "GetFirmwareInventory",
        "GetUpdateStatus",
        "GetFirmwareInventory",
    ]
    assert played.facts["settings"] == [{"name": "proof"}]


def test_redfish_tells_what_the_controller_answered(tmp_path: Path) -> None:
    given = {**variables(tmp_path, tool="redfish"), "adapter_firmware_bmc": BMC}
    plan = {"needed": True, "found": "1.0", "drift": [], "settings": []}
    answers = {
        "community.general.redfish_info": [LISTED],
        "community.general.redfish_command": [{"failed": True, "msg": "a job is running"}],
        "redfish_firmware": [plan, {"failed": True, "msg": "told"}],
        "drive_guard": [{}],
    }
    played = play(tmp_path, "firmware", given, answers)
    assert played.code != 0
    assert played.asked("redfish_firmware")[1]["answer"] == "a job is running"


def test_a_bench_is_power_cycled_by_its_management_controller(tmp_path: Path) -> None:
    off = {"redfish_facts": {"system": {"entries": [[{"uri": "x"}, [{"PowerState": "Off"}]]]}}}
    answers = {
        "community.general.redfish_info": [off],
        "community.general.redfish_command": [{"changed": True}],
        "bench_reboot": [{}],
    }
    bmc = {"baseuri": "bmc", "username": "u", "password": "p"}
    given = {"bench_restart_kind": "power cycle", "bench_restart_bmc": bmc}
    played = play(tmp_path, "bench_restart", given, answers)
    assert played.code == 0, played.output
    commands = [asked["command"] for asked in played.asked("community.general.redfish_command")]
    assert commands == ["PowerGracefulShutdown", "PowerOn"]
