# SPDX-License-Identifier: Apache-2.0
"""Booting a kernel once, proving it, keeping it, falling back, and putting the boot loader back."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.kit.lock import read_saved
from storqual_core.kit.results import PartialError, TrialFailedError
from storqual_core.provision.boot import hang_words, restore_boot, saved_boot
from storqual_core.provision.engine import Call
from storqual_core.provision.kernel_package import install_package, look_at_package
from storqual_core.provision.restore import Tools, restore
from tests.support.cpio_archive import archive
from tests.support.fake_boot import FakeBench, boot_step
from tests.support.power_cut import Mains, every_cut

OLD, NEW = "6.1.0-1-amd64", "6.1.0-2-amd64"
STALE = b"\x7fELF\0srcversion=AAAA\0"
DEB = f"/p/linux-image-new_6.1.2_{NEW}.deb"


@pytest.fixture
def bench(tmp_path: Path) -> FakeBench:
    """Two kernels; the older one is saved as the default, and runs."""
    return FakeBench(
        tmp_path / "bench",
        [OLD, NEW],
        OLD,
        variables={"saved_entry": f"linux-{OLD}"},
        modules={"sym53c8xx": {OLD: "AAAA", NEW: "BBBB"}},
    )


def boot(bench: FakeBench, state: str, **words: object) -> dict:
    """One step, for run r1."""
    return boot_step(bench.system, str(bench.folder / "state"), state, **words)


def install(bench: FakeBench) -> dict:
    """The newer kernel's package, from its file."""
    call = Call(str(bench.folder / "state"), "r1")
    return install_package("linux-image-new", "6.1.2", (DEB,), call, bench.system)


def snapshot(bench: FakeBench) -> dict:
    files = {str(path): path.read_text() for path in sorted(bench.folder.rglob("*")) if path.is_file()}
    return {"files": files, "variables": dict(bench.variables)}


def test_a_trial_boots_once_and_the_default_stays(bench: FakeBench) -> None:
    """The next boot is the new kernel with our words, the one after it the old one."""
    result = boot(bench, "trial", kernel=NEW, arguments=["nosmt"], mark="abc")
    assert result["changed"]
    bench.reboot()
    assert bench.running == NEW
    assert {"nosmt", "panic=10", "storqual.trial=abc", "console=ttyS0"} <= set(bench.system.arguments())
    facts = boot(bench, "verify", kernel=NEW, mark="abc", modules=["sym53c8xx"])["facts"]
    assert facts["added"] == ["nosmt"]
    assert facts["drivers"] == {"sym53c8xx": {"srcversion": "BBBB", "version": ""}}
    assert facts["modules"]["sym53c8xx"]["loaded"]["srcversion"] == "BBBB"
    bench.reboot()
    assert bench.running == OLD
    facts = boot(bench, "facts")["facts"]
    assert (facts["added"], facts["trial"], facts["found_running"]) == ([], "", OLD)


def test_a_trial_ends_its_own_hangs_and_leaves_nothing_of_that_behind(bench: FakeBench) -> None:
    boot(bench, "trial", kernel=NEW, arguments=["nosmt"], mark="abc", hung_task_s=225)
    bench.reboot()
    arguments = bench.system.arguments()
    assert set(hang_words(NEW, 225, hardware_watchdog=False)) <= set(arguments)
    assert "modules_load=softdog" in arguments
    assert {f"sysctl.kernel.hung_task_{word}" for word in ("timeout_secs=225", "check_interval_secs=10")} <= {
        *arguments
    }
    # they are no words of the drop, or the next session would boot again for them
    assert boot(bench, "facts")["facts"]["added"] == ["nosmt"]
    bench.reboot()
    assert not set(hang_words(NEW, 225, hardware_watchdog=False)) & set(bench.system.arguments())


def test_a_hardware_watchdog_makes_softdog_needless_and_is_told_once_it_is_armed(bench: FakeBench) -> None:
    folder = bench.folder / "sys/class/watchdog/watchdog0"
    folder.mkdir(parents=True)
    for name, text in (("identity", "iTCO_wdt"), ("timeout", "60"), ("state", "inactive")):
        (folder / name).write_text(f"{text}\n")
    boot(bench, "trial", kernel=NEW, mark="abc")
    bench.reboot()
    assert "modules_load=softdog" not in bench.system.arguments()
    names = [each["name"] for each in boot(bench, "verify", kernel=NEW, mark="abc")["settings"]]
    assert "boot.watchdog" not in names
    (folder / "state").write_text("active\n")
    settings = {each["name"]: each for each in boot(bench, "verify", kernel=NEW, mark="abc")["settings"]}
    assert settings["boot.watchdog"]["read_back"] == "iTCO_wdt, 60 s"


@pytest.mark.parametrize(
    ("release", "seconds", "panics", "told"),
    [
        ("6.1.0-47-amd64", 300, True, True),
        ("5.8.0", 120, True, True),
        ("4.18.0-553.el8_10.x86_64", 120, True, False),
        # the kernel would take the hang that a trial makes on purpose for one of its own
        ("4.18.0-553.el8_10.x86_64", 300, False, False),
        ("nonsense", 300, False, False),
    ],
)
def test_a_kernel_that_cannot_be_told_the_limit_does_not_panic_by_a_hang_on_purpose(
    release: str, seconds: int, panics: bool, told: bool
) -> None:
    words = hang_words(release, seconds, hardware_watchdog=True)
    assert ("hung_task_panic=1" in words) is panics
    assert any(word.endswith(f"hung_task_timeout_secs={seconds}") for word in words) is told


def test_a_kernel_that_panics_leaves_the_bench_on_its_default(bench: FakeBench) -> None:
    boot(bench, "trial", kernel=NEW, arguments=["rdinit=/storqual-panic"], mark="abc")
    bench.reboot()
    with pytest.raises(
        TrialFailedError, match=f"kernel {NEW} did not start in its trial boot: the bench is back by itself on {OLD}"
    ):
        boot(bench, "verify", kernel=NEW, mark="abc")


def test_a_trial_of_the_default_kernel_is_told_from_the_default(bench: FakeBench) -> None:
    boot(bench, "trial", kernel=OLD, arguments=["rdinit=/storqual-panic"], mark="abc")
    bench.reboot()
    assert bench.running == OLD
    with pytest.raises(TrialFailedError, match="did not start"):
        boot(bench, "verify", kernel=OLD, mark="abc")


def test_a_driver_from_a_stale_initramfs_is_found(bench: FakeBench) -> None:
    """The right kernel with another build of the driver than the one on disk."""
    boot(bench, "trial", kernel=NEW, mark="abc")
    bench.reboot()
    (bench.folder / "sys" / "module" / "sym53c8xx" / "srcversion").write_text("AAAA\n")
    (bench.folder / "boot" / f"initrd.img-{NEW}").write_bytes(archive({"lib/sym53c8xx.ko": STALE}))
    with pytest.raises(
        ToolError,
        match=r"sym53c8xx: build AAAA is loaded, build BBBB is on disk .* carries build AAAA, which is stale",
    ):
        boot(bench, "verify", kernel=NEW, mark="abc", modules=["sym53c8xx"])


def test_a_driver_that_is_not_there_is_a_sentence(bench: FakeBench) -> None:
    boot(bench, "trial", kernel=NEW, mark="abc")
    bench.reboot()
    bench.modules["mptsas"] = {NEW: "CC"}
    with pytest.raises(ToolError, match=r"has no driver other\n.*mptsas is installed .* but not loaded"):
        boot(bench, "verify", kernel=NEW, mark="abc", modules=["other", "mptsas"])


def test_check_mode_of_a_trial_touches_nothing(bench: FakeBench) -> None:
    before = snapshot(bench)
    result = boot(bench, "trial", kernel=NEW, mark="abc", check=True)
    assert result["changed"]
    assert result["diff"]["after"].startswith(f"next boot: {NEW}")
    assert snapshot(bench) == before


def test_a_trial_without_a_way_back_is_refused_before_any_write(bench: FakeBench) -> None:
    """A kernel that is not installed."""
    before = snapshot(bench)
    with pytest.raises(ToolError, match=r"kernel 9\.9 is not installed .*6\.1\.0-1-amd64, 6\.1\.0-2-amd64"):
        boot(bench, "trial", kernel="9.9", mark="abc", check=True)
    assert snapshot(bench) == before


def test_a_failure_of_the_loader_tells_how_far_it_came(bench: FakeBench) -> None:
    bench.broken = ("grub-reboot",)
    with pytest.raises(PartialError, match="it broke"):
        boot(bench, "trial", kernel=NEW, mark="abc")


@pytest.mark.parametrize("command", ["grub-reboot", "grub-set-default"])
def test_what_the_loader_is_told_to_boot_is_where_it_looks(bench: FakeBench, command: str) -> None:
    """It replays no journal: entry, kernel and initramfs first, the word that boots them last."""
    unseen: list[set[str]] = []

    def watched(argv: Sequence[str], **options: Any) -> Completed:
        if argv[0] == command:
            now = bench.files()
            unseen.append({name for name, data in now.items() if bench.settled.get(name) != data})
        return bench(argv, **options)

    system = replace(bench.system, runner=watched)
    state = str(bench.folder / "state")
    boot_step(system, state, "trial", kernel=NEW, mark="abc")
    boot_step(system, state, "default", kernel=NEW, arguments=["nosmt"])
    assert unseen == [set()]


def test_a_trial_that_would_be_the_default_is_not_armed(bench: FakeBench) -> None:
    """Here the configuration reads our entries before its own, and no entry is saved: index 0 would be the trial."""
    config = bench.folder / "boot" / "grub" / "grub.cfg"
    text = config.read_text()
    config.write_text("source ${config_directory}/custom.cfg\n" + text)
    bench.variables.clear()
    with pytest.raises(PartialError, match="would boot storqual-trial by default"):
        boot(bench, "trial", kernel=NEW, mark="abc")
    assert "next_entry" not in bench.variables
    bench.reboot()
    assert bench.running == NEW
    assert not bench.system.arguments()[-1].startswith("panic")


@pytest.mark.parametrize("saved", ["gone", "9", "6.1 rescue", f"gone>linux-{OLD}"])
def test_a_default_that_is_no_name_is_one_during_the_trial(bench: FakeBench, saved: str) -> None:
    """What names nothing boots the first entry, and which one that is changes with the next kernel."""
    bench.variables["saved_entry"] = saved
    boot(bench, "trial", kernel=NEW, mark="abc")
    bench.kernels.append("6.1.0-3-amd64")
    bench.install_kernels()
    bench.reboot()
    bench.reboot()
    assert bench.running == NEW
    restore(str(bench.folder / "state"), Tools(bench, bench.system), check=False)
    assert bench.system.loader.default().release == NEW


def test_a_default_whose_name_is_a_number_to_the_loader_is_kept_by_an_entry_of_ours(bench: FakeBench) -> None:
    config = bench.folder / "boot" / "grub" / "grub.cfg"
    config.write_text(config.read_text().replace(f"'linux-{OLD}'", f"'0{OLD}'"))
    bench.variables["saved_entry"] = "0"
    assert boot(bench, "default", kernel=OLD)["changed"]
    bench.reboot()
    assert bench.running == OLD


def test_a_restore_leaves_no_trial_as_the_default(bench: FakeBench) -> None:
    """An entry on trial that was there when the bench was found, and that the saved name means."""
    entry = f"menuentry 'storqual-trial' --id storqual-trial {{\n    linux /boot/vmlinuz-{OLD} panic=5\n}}\n"
    bench.system.loader.write_custom(entry)
    bench.variables["saved_entry"] = "storqual-trial"
    boot(bench, "trial", kernel=NEW, mark="abc", fallback=NEW)
    restore(str(bench.folder / "state"), Tools(bench, bench.system), check=False)
    assert bench.system.loader.default().identifier != "storqual-trial"


def test_the_running_kernel_is_kept(bench: FakeBench) -> None:
    boot(bench, "trial", kernel=NEW, mark="abc")
    bench.reboot()
    assert boot(bench, "default")["changed"]
    assert not boot(bench, "default")["changed"]
    bench.reboot()
    assert bench.running == NEW


def test_a_kernel_is_kept_with_its_arguments(bench: FakeBench) -> None:
    """In an entry of our own, because the owner's entries stay as they are; a restore has it again, with its name."""
    boot(bench, "default", kernel=OLD, arguments=["nosmt"])
    bench.reboot()
    assert boot(bench, "facts")["facts"]["added"] == ["nosmt"]
    former = saved_boot(bench.system)
    bench.system.loader.write_custom(None)
    bench.variables["saved_entry"] = f"linux-{NEW}"
    restore_boot(bench.system, former)
    assert saved_boot(bench.system) == former


def test_installing_a_kernel_does_not_change_what_boots(tmp_path: Path) -> None:
    """update-grub puts the newest kernel first; so the one that was the default is named before."""
    bench = FakeBench(tmp_path / "bench", [OLD], OLD)
    assert look_at_package(bench.system, "linux-image-new", "6.1.2")["missing"]
    result = install(bench)
    assert (result["changed"], result["kernel"], result["version"]) == (True, NEW, "6.1.2")
    default = bench.system.loader.default()
    assert default is not None
    assert default.release == OLD
    assert boot(bench, "facts")["facts"]["found_default"] == OLD
    boot(bench, "trial", kernel=NEW, mark="abc", fallback=OLD)
    bench.reboot()
    assert bench.running == NEW
    bench.reboot()
    assert bench.running == OLD


def test_the_boot_loader_is_put_back_and_the_former_kernel_boots(tmp_path: Path) -> None:
    """Whenever the restore is cut, also when a newer kernel was installed: the former one is named as the default."""

    def put_back(bench: FakeBench, mains: Mains | None = None) -> dict[str, Any]:
        system = replace(bench.system, runner=mains.runner(bench) if mains else bench)
        return restore(f"{bench.folder}/state", Tools(system.runner, system), check=False)

    def on_trial(root: Path) -> FakeBench:
        bench = FakeBench(root / "bench", [OLD], OLD)
        install(bench)
        boot(bench, "trial", kernel=NEW, mark="abc", fallback=OLD)
        bench.reboot()
        return bench

    for bench in every_cut(tmp_path, on_trial, put_back):
        assert read_saved(bench.folder / "state") is not None
        bench.reboot()
        assert bench.running == OLD
        assert put_back(bench)["restored"]
        assert read_saved(bench.folder / "state") is None
        assert bench.system.loader.custom_text() is None
        bench.reboot()
        assert bench.running == OLD
        third = put_back(bench)
        assert (third["changed"], third["restored"], third["run"]) == (False, True, "")


def test_the_loader_is_as_it_was_after_a_trial_to_the_mode_of_its_files_and_what_is_empty(bench: FakeBench) -> None:
    custom, folder = bench.folder / "boot" / "grub" / "custom.cfg", str(bench.folder / "state")
    custom.write_text("")
    custom.chmod(0o644)
    variables = dict(bench.variables)
    boot_step(bench.system, folder, "trial", kernel=NEW, mark="abc")
    bench.reboot()
    # GRUB has emptied it, and it was not there
    assert bench.variables["next_entry"] == ""
    bench.reboot()
    restore(folder, Tools(bench, bench.system), check=False)
    assert (custom.read_text(), custom.stat().st_mode & 0o777) == ("", 0o644)
    assert bench.variables == variables


def test_a_bench_does_not_stay_in_a_trial_of_the_kernel_that_it_was_found_with(bench: FakeBench) -> None:
    """Such a boot panics where the bench's own would not."""
    folder = str(bench.folder / "state")
    boot(bench, "trial", kernel=bench.running, mark="abc")
    bench.reboot()
    assert restore(folder, Tools(bench, bench.system), check=True)["reboot"]
    assert restore(folder, Tools(bench, bench.system), check=False)["reboot"]
    bench.reboot()
    assert restore(folder, Tools(bench, bench.system), check=False)["restored"]
    assert "oops=panic" not in bench.system.arguments()


def test_words_of_a_trial_on_the_same_kernel_go_with_a_boot(bench: FakeBench) -> None:
    state = str(bench.folder / "state")
    boot(bench, "trial", kernel=bench.running, arguments=["scsi_mod.scan=sync"], mark="s01")
    bench.reboot()
    first = restore(state, Tools(bench, bench.system), check=False)
    assert (first["reboot"], first["restored"]) == (True, False)
    bench.reboot()
    second = restore(state, Tools(bench, bench.system), check=False)
    assert (second["reboot"], second["restored"]) == (False, True)


def test_a_restore_in_check_mode_says_what_it_would_do(bench: FakeBench) -> None:
    boot(bench, "trial", kernel=NEW, mark="abc")
    bench.reboot()
    before = snapshot(bench)
    result = restore(str(bench.folder / "state"), Tools(bench, bench.system), check=True)
    assert (result["changed"], result["reboot"], result["restored"]) == (True, True, False)
    assert snapshot(bench) == before


def test_an_installed_package_is_left_alone(bench: FakeBench) -> None:
    bench.packages["linux-image-new"] = ("6.1.2", NEW)
    result = look_at_package(bench.system, "linux-image-new", "6.1.2")
    assert (result["missing"], result["kernel"]) == (False, NEW)
    assert not [line for line in bench.seen if line.startswith("dpkg -")]


def test_another_version_of_the_same_kernel_is_refused(bench: FakeBench) -> None:
    """The two would overwrite each other, under the feet of the kernel that runs."""
    bench.packages["linux-image-new"] = ("6.1.1", NEW)
    with pytest.raises(ToolError, match=r"installed as 6\.1\.1, the drop says 6\.1\.2"):
        look_at_package(bench.system, "linux-image-new", "6.1.2")


def test_an_installation_that_fails_is_told_with_the_state_after_it(tmp_path: Path) -> None:
    bench = FakeBench(tmp_path / "bench", [OLD], OLD, broken=("dpkg --force",))
    with pytest.raises(PartialError, match="dpkg could not install") as caught:
        install(bench)
    assert caught.value.settings[0].read_back == ""


def test_a_driver_that_neither_disk_nor_initramfs_has_is_told_apart(bench: FakeBench) -> None:
    boot(bench, "trial", kernel=NEW, mark="abc")
    bench.reboot()
    (bench.folder / "sys" / "module" / "sym53c8xx" / "srcversion").write_text("CCCC\n")
    for image, words in (({}, "does not carry the driver"), ({"sym53c8xx.ko": STALE}, "carries build AAAA$")):
        (bench.folder / "boot" / f"initrd.img-{NEW}").write_bytes(archive(image))
        with pytest.raises(ToolError, match=words):
            boot(bench, "verify", kernel=NEW, mark="abc", modules=["sym53c8xx"])
