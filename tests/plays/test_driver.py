# SPDX-License-Identifier: Apache-2.0
"""The role driver: when it installs, when it boots, what it proves, what it leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.plays.stub import play

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.plays

OLD, NEW = "6.1.0-1-amd64", "6.1.0-2-amd64"
PACKAGE = "linux-image-6.1.0-2-amd64"
HERE = {"missing": False, "kernel": NEW, "version": "6.1.2", "settings": [{"name": "driver.kernel.version"}]}
GONE = {"missing": True, "kernel": "", "version": "", "settings": []}


def facts(running: str, **more: Any) -> dict[str, Any]:
    """What kernel_boot tells of a bench whose default is the old kernel."""
    known = {
        "running": running,
        "boot_id": "0c7f4a0e-0f5c-4a39-9d0c-2c7a4a3d8a11",
        "found_running": OLD,
        "found_default": OLD,
        "default": {"release": OLD, "entry": "0"},
        "added": [],
        "initramfs": "",
        "modules": {},
        "drivers": {"mptsas": {"srcversion": running, "version": "3"}},
    }
    return {**known, **more}


REBOOT = {"bench_reboot": [{"changed": True, "seconds": 20.5}]}
VERIFIED = {"facts": facts(NEW, boot_id="1d8e5b1f"), "settings": [{"name": "driver.kernel"}]}


def test_a_bench_that_runs_the_drop_is_left_alone(tmp_path: Path) -> None:
    answers = {"kernel_boot": [{"facts": facts(NEW), "package": HERE}], **REBOOT}
    played = play(tmp_path, "driver", {"driver_kernel": {"package": PACKAGE}}, answers, report="driver_report")
    assert played.code == 0, played.output
    assert played.order == ["kernel_boot"]
    assert "changed=0" in played.output
    assert (played.facts["kernel"], played.facts["booted"], played.facts["drift"]) == (NEW, False, [])
    assert played.facts["settings"] == [{"name": "driver.kernel.version"}]


def test_another_kernel_is_booted_once_and_proven(tmp_path: Path) -> None:
    answers = {"kernel_boot": [{"facts": facts(OLD), "package": HERE}, {"changed": True}, VERIFIED], **REBOOT}
    variables = {"driver_kernel": {"package": PACKAGE}, "driver_cmdline": ["nosmt"], "driver_modules": ["mptsas"]}
    played = play(tmp_path, "driver", variables, answers, report="driver_report")
    assert played.code == 0, played.output
    assert played.order == ["kernel_boot", "kernel_boot:trial", "bench_reboot", "kernel_boot:verify"]
    trial, verify = played.asked("kernel_boot")[1:]
    assert (trial["kernel"], trial["arguments"], trial["fallback"]) == (NEW, ["nosmt"], OLD)
    assert trial["mark"] == verify["mark"] == "0c7f4a0e"
    assert verify["modules"] == ["mptsas"]
    assert (played.facts["kernel"], played.facts["boot_id"], played.facts["seconds"]) == (NEW, "1d8e5b1f", 20.5)
    assert played.facts["drivers"]["mptsas"]["srcversion"] == NEW
    assert [entry["name"] for entry in played.facts["settings"]] == ["driver.kernel.version", "driver.kernel"]


def test_a_missing_package_is_brought_and_installed_first(tmp_path: Path) -> None:
    deb = tmp_path / "x.deb"
    deb.write_text("package")
    state = tmp_path / "state"
    answers = {
        "kernel_boot": [{"facts": facts(OLD), "package": GONE}, {"changed": True}, VERIFIED],
        "driver_package": [{"changed": True, **HERE}],
        **REBOOT,
    }
    variables = {
        "driver_kernel": {"package": PACKAGE, "version": "6.1.2"},
        "driver_source": "files",
        "driver_files": [str(deb)],
        "driver_state_dir": str(state),
    }
    played = play(tmp_path, "driver", variables, answers)
    assert played.code == 0, played.output
    assert played.order[:3] == ["kernel_boot", "driver_package", "kernel_boot:trial"]
    (installed,) = played.asked("driver_package")
    assert installed["files"] == [f"{state}/packages/x.deb"]
    assert installed["version"] == "6.1.2"
    assert (state / "packages" / "x.deb").read_text() == "package"
    assert played.asked("kernel_boot")[1]["kernel"] == NEW


def test_check_mode_of_a_missing_package_installs_and_boots_nothing(tmp_path: Path) -> None:
    """It says that the bench would be rebooted, and into what."""
    answers = {"kernel_boot": [{"facts": facts(OLD), "package": GONE}], "driver_package": [{}], **REBOOT}
    variables = {"driver_kernel": {"package": PACKAGE}}
    played = play(tmp_path, "driver", variables, answers, check=True, report="driver_report")
    assert played.code == 0, played.output
    assert played.order == ["kernel_boot", "bench_reboot"]
    assert all(check for _, _, check in played.calls)
    assert played.facts["drift"] == [f"kernel {OLD} , declared {PACKAGE} "]


def test_a_fresh_boot_is_a_boot_of_the_same_kernel(tmp_path: Path) -> None:
    answers = {"kernel_boot": [{"facts": facts(NEW), "package": HERE}, {"changed": True}, VERIFIED], **REBOOT}
    variables = {"driver_kernel": {"package": PACKAGE}, "driver_fresh_boot": True}
    played = play(tmp_path, "driver", variables, answers, report="driver_report")
    assert "bench_reboot" in played.order
    assert played.facts["drift"] == []


def test_a_drop_without_a_kernel_is_the_kernel_the_bench_was_found_with(tmp_path: Path) -> None:
    answers = {"kernel_boot": [{"facts": facts(NEW)}, {"changed": True}, {**VERIFIED, "facts": facts(OLD)}], **REBOOT}
    played = play(tmp_path, "driver", {}, answers)
    assert played.code == 0, played.output
    assert played.asked("kernel_boot")[1]["kernel"] == OLD


def test_words_that_an_earlier_trial_added_are_left_by_booting(tmp_path: Path) -> None:
    """The kernel is right, its command line is the other arm's."""
    running = facts(NEW, added=["nosmt"])
    answers = {"kernel_boot": [{"facts": running, "package": HERE}, {"changed": True}, VERIFIED], **REBOOT}
    played = play(tmp_path, "driver", {"driver_kernel": {"package": PACKAGE}}, answers)
    assert played.order[1:3] == ["kernel_boot:trial", "bench_reboot"]
    assert played.asked("kernel_boot")[1]["arguments"] == []


def test_a_panic_is_asked_of_the_trial_only(tmp_path: Path) -> None:
    """By arguments that make any kernel panic; the failure of the proof ends the role."""
    failed = {"failed": True, "msg": "did not come up", "evidence": [{"name": "p", "text": "t"}]}
    answers = {"kernel_boot": [{"facts": facts(NEW), "package": HERE}, {"changed": True}, failed], **REBOOT}
    variables = {"driver_kernel": {"package": PACKAGE}, "driver_panic_at_boot": True, "driver_keep": True}
    played = play(tmp_path, "driver", variables, answers)
    assert played.code == 2
    assert played.asked("kernel_boot")[1]["arguments"] == ["rdinit=/storqual-panic", "root=/dev/storqual-panic"]
    assert played.order[-1] == "kernel_boot:verify"
    assert "did not come up" in played.output


def test_a_proven_kernel_is_kept_on_request(tmp_path: Path) -> None:
    answers = {
        "kernel_boot": [
            {"facts": facts(OLD), "package": HERE},
            {"changed": True},
            VERIFIED,
            {"settings": [{"name": "d"}]},
        ],
        **REBOOT,
    }
    variables = {"driver_kernel": {"package": PACKAGE}, "driver_keep": True}
    played = play(tmp_path, "driver", variables, answers, report="driver_report")
    assert played.order[-2:] == ["kernel_boot:verify", "kernel_boot:keep"]
    assert played.facts["settings"][-1] == {"name": "d"}


IMAGE = "initrd.storqual-6.1.0-2-amd64-0123456789ab"
STAGED = {"changed": True, "boots": True, "initramfs": IMAGE, "drift": ["driver hba: A, another build is declared"]}


def build(tmp_path: Path) -> dict[str, Any]:
    """A drop with a prebuilt module, and a bench's own folder."""
    file = tmp_path / "hba.ko"
    file.write_text("module")
    return {"driver_module": {"file": str(file), "sha256": "ab"}, "driver_state_dir": str(tmp_path / "state")}


def test_a_build_that_takes_a_boot_is_staged_booted_once_proven_and_put_on_disk(tmp_path: Path) -> None:
    answers = {
        "kernel_boot": [{"facts": facts(OLD)}, {"changed": True}, {**VERIFIED, "facts": facts(OLD)}],
        "driver_build": [STAGED, {"changed": True, "drift": STAGED["drift"], "settings": [{"name": "d"}]}],
        **REBOOT,
    }
    played = play(tmp_path, "driver", {**build(tmp_path), "driver_modules": ["hba"]}, answers, report="driver_report")
    assert played.code == 0, played.output
    assert played.order == [
        *("kernel_boot", "driver_build", "kernel_boot:trial", "bench_reboot", "kernel_boot:verify", "driver_build"),
        "kernel_boot",
    ]
    staged, present = played.asked("driver_build")
    assert (staged["module"], staged["staged"], staged["kernel"], staged["sha256"]) == ("hba", True, OLD, "ab")
    assert "staged" not in present
    trial, verify, _ = played.asked("kernel_boot")[1:]
    assert (trial["initramfs"], verify["initramfs"], verify["modules"]) == (IMAGE, IMAGE, ["hba"])
    assert played.facts["drift"] == STAGED["drift"]
    assert played.facts["settings"][-1] == {"name": "d"}


@pytest.mark.parametrize(
    ("held", "check", "awaited"),
    [(None, True, True), ("older", True, True), ("module", True, False), ("older", False, False)],
    ids=["no build", "another build", "this build", "another build, no check mode"],
)
def test_check_mode_says_whether_the_bench_holds_the_declared_build(
    tmp_path: Path, held: str | None, check: bool, awaited: bool
) -> None:
    variables = build(tmp_path)
    place = tmp_path / "state" / "packages" / "hba.ko"
    if held is not None:
        place.parent.mkdir(parents=True)
        place.write_text(held)
    answers = {
        "kernel_boot": [{"facts": facts(OLD)}],
        "driver_build": [{"boots": False, "initramfs": "", "drift": []}, {"drift": [], "settings": []}],
    }
    played = play(tmp_path, "driver", variables, answers, check=check)
    assert played.code == 0, played.output
    assert [asked["awaited"] for asked in played.asked("driver_build")] == [awaited, awaited]


def test_a_build_is_kept_only_once_it_is_on_disk(tmp_path: Path) -> None:
    """A default with its initramfs, and another build on disk, would be two drivers."""
    running = facts(OLD, initramfs=IMAGE)
    answers = {
        "kernel_boot": [{"facts": running}],
        "driver_build": [{"boots": False, "initramfs": IMAGE, "drift": []}, {"drift": [], "settings": []}],
    }
    played = play(tmp_path, "driver", {**build(tmp_path), "driver_keep": True}, answers)
    assert played.code == 0, played.output
    assert played.order == ["kernel_boot", "driver_build", "driver_build", "kernel_boot:keep"]
    assert played.asked("kernel_boot")[1]["initramfs"] == IMAGE


def test_a_build_that_takes_no_boot_is_put_on_disk_alone(tmp_path: Path) -> None:
    loaded = {"hba": {"srcversion": "B", "version": "2"}}
    answers = {
        "kernel_boot": [{"facts": facts(OLD)}, {"facts": facts(OLD, drivers=loaded)}],
        "driver_build": [{"boots": False, "initramfs": "", "drift": []}, {"changed": True, "drift": ["d"]}],
        **REBOOT,
    }
    played = play(tmp_path, "driver", build(tmp_path), answers, report="driver_report")
    assert played.order == ["kernel_boot", "driver_build", "driver_build", "kernel_boot"]
    assert (played.facts["booted"], played.facts["drift"]) == (False, ["d"])
    assert played.facts["drivers"] == loaded


def test_a_fresh_boot_of_a_build_that_runs_is_a_boot_with_its_initramfs(tmp_path: Path) -> None:
    running = facts(OLD, initramfs=IMAGE)
    answers = {
        "kernel_boot": [{"facts": running}, {"changed": True}, {**VERIFIED, "facts": running}],
        "driver_build": [{"boots": False, "initramfs": IMAGE, "drift": []}, {}],
        **REBOOT,
    }
    played = play(tmp_path, "driver", {**build(tmp_path), "driver_fresh_boot": True}, answers, report="driver_report")
    assert played.asked("kernel_boot")[1]["initramfs"] == IMAGE
    assert played.facts["drift"] == []


def test_the_other_arms_build_leaves_the_disk_before_the_boot_that_leaves_it(tmp_path: Path) -> None:
    """A default that loads drivers from the disk would meet it there."""
    answers = {
        "kernel_boot": [{"facts": facts(OLD, initramfs=IMAGE)}, {"changed": True}, {**VERIFIED, "facts": facts(OLD)}],
        "driver_build": [{"boots": True, "initramfs": "", "drift": []}, {"drift": [], "settings": []}],
        **REBOOT,
    }
    played = play(tmp_path, "driver", {"driver_build_as_found": True}, answers)
    assert played.code == 0, played.output
    assert played.order[1:4] == ["driver_build", "kernel_boot:trial", "bench_reboot"]
    staged, gone = played.asked("driver_build")
    assert (staged["as_found"], staged["staged"], gone["as_found"]) == (True, True, True)
    assert played.asked("kernel_boot")[1]["initramfs"] == ""


def test_a_bench_that_keeps_an_initramfs_of_ours_is_booted_with_it(tmp_path: Path) -> None:
    """A drop without a build does not take the bench's own away, but another kernel has no use for it."""
    for kernel, wanted in ((OLD, IMAGE), (NEW, "")):
        package = {**HERE, "kernel": kernel}
        answers = {
            "kernel_boot": [{"facts": facts(OLD, initramfs=IMAGE), "package": package}, {"changed": True}, VERIFIED],
            **REBOOT,
        }
        variables = {"driver_kernel": {"package": PACKAGE}, "driver_fresh_boot": True}
        played = play(tmp_path, "driver", variables, answers)
        assert played.asked("kernel_boot")[1]["initramfs"] == wanted


def test_an_unknown_variable_is_refused_before_anything(tmp_path: Path) -> None:
    """A misspelt wish would silently not be granted."""
    variables = {"driver_kernel": {"package": PACKAGE}, "driver_fresh_bot": True}
    played = play(tmp_path, "driver", variables, {"kernel_boot": [{}]})
    assert played.code != 0
    assert "driver_fresh_bot is not a variable of role driver; did you mean driver_fresh_boot?" in played.output
    assert played.calls == []
