# SPDX-License-Identifier: Apache-2.0
"""A kernel as RPM: installed beside the others without becoming the default, proven by its files, removed again."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign.declared import declared_document
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import StorqualError, ToolError
from storqual_core.kit.lock import read_saved
from storqual_core.kit.machine import Machine
from storqual_core.kit.results import PartialError
from storqual_core.provision import kernel_package
from storqual_core.provision.apply import Apply, ApplyRequest, ProvisionedBench
from storqual_core.provision.engine import Call
from storqual_core.provision.kernel_package import install_package, look_at_package
from storqual_core.provision.restore import Tools, restore
from tests.support.fake_boot import boot_step
from tests.support.fake_rpm import RpmBench, label
from tests.support.power_cut import Mains, every_cut

MACHINE = os.uname().machine
OLD, NEW = f"5.14.0-70.13.1.el9_0.{MACHINE}", f"5.14.0-162.6.1.el9_1.{MACHINE}"
FILES = tuple(f"/p/{label(name, NEW)}.rpm" for name in ("kernel-core", "kernel-modules"))
VERSION = NEW.rpartition(".")[0]


@pytest.fixture
def bench(tmp_path: Path) -> RpmBench:
    """One kernel, which runs and is the default by its name."""
    variables = {"saved_entry": f"token-{OLD}", "kernelopts": "root=/dev/sda ro"}
    return RpmBench(tmp_path / "bench", [OLD], OLD, variables=variables)


def install(bench: RpmBench, files: tuple[str, ...] = FILES) -> dict[str, Any]:
    call = Call(str(bench.folder / "state"), "r1")
    return install_package("kernel-core", VERSION, files, call, bench.system)


def state(bench: RpmBench) -> tuple[dict[str, bytes], dict[str, str], set[str]]:
    """Everything that a drop may not leave changed."""
    settings = {"kernel": (bench.folder / "etc" / "sysconfig" / "kernel").read_bytes()}
    return {**bench.files(), **settings}, dict(bench.variables), set(bench.rpms)


def test_a_kernel_comes_beside_the_others_and_is_not_the_default(bench: RpmBench) -> None:
    before = state(bench)
    assert look_at_package(bench.system, "kernel-core", VERSION)["missing"]
    result = install(bench)
    assert (result["kernel"], result["version"]) == (NEW, VERSION)
    # no kernel that is there goes for the new one, and none is upgraded
    assert [line for line in bench.seen if line.startswith("dnf -y")] == [
        f"dnf -y --setopt=installonly_limit=0 install {' '.join(FILES)}"
    ]
    assert not [line for line in bench.seen if line.startswith(("rpm -U", "rpm -i"))]
    assert not look_at_package(bench.system, "kernel-core", VERSION)["missing"]
    assert bench.variables == before[1]
    assert state(bench)[0]["kernel"] == before[0]["kernel"]
    assert before[2] < bench.rpms
    assert not (bench.folder / "boot" / "do_purge_kernels").exists()
    bench.reboot()
    assert bench.running == OLD


@pytest.mark.parametrize("saved", [f"token-{OLD}", "", None])
def test_a_campaign_with_a_kernel_leaves_the_bench_as_it_was(bench: RpmBench, saved: str | None) -> None:
    """Also where no entry is the default by its name, so that the newest kernel would be."""
    link = bench.folder / "boot" / "vmlinuz"
    link.symlink_to(f"vmlinuz-{OLD}")
    bench.variables.pop("saved_entry")
    bench.variables.update({} if saved is None else {"saved_entry": saved})
    (bench.folder / "boot" / "do_purge_kernels").write_text("")
    before = state(bench)
    install(bench)
    assert not (bench.folder / "boot" / "do_purge_kernels").exists()
    assert str(link.readlink()) == f"vmlinuz-{NEW}"
    default = bench.system.loader.default()
    assert default is not None
    assert default.release == OLD
    folder = str(bench.folder / "state")
    boot_step(bench.system, folder, "trial", kernel=NEW, mark="abc", fallback=OLD)
    bench.reboot()
    assert bench.running == NEW
    assert restore(folder, Tools(bench, bench.system), check=False)["reboot"]
    assert label("kernel-core", NEW) in bench.rpms
    bench.reboot()
    result = restore(folder, Tools(bench, bench.system), check=False)
    assert result["restored"]
    # the initramfs is no file of a package, and its package left it
    assert [step for step in result["steps"] if f"initramfs-{NEW}.img removed" in step]
    assert state(bench) == before
    assert str(link.readlink()) == f"vmlinuz-{OLD}"
    assert not (bench.folder / "lib" / "modules" / NEW).exists()
    assert read_saved(Path(folder)) is None


def test_arguments_of_a_running_trial_do_not_become_the_new_kernels(bench: RpmBench) -> None:
    own = ["root=/dev/sda", "panic=30", "quiet"]
    bench.write_entry(f"token-{OLD}", OLD, options=" ".join(own))
    bench.boot_with([*own, "oops=panic", "softlockup_panic=1", "storqual.trial=abc", "scsi_mod.x=1", "panic=10"])
    install(bench)
    entry = bench.folder / "boot" / "loader" / "entries" / f"token-{NEW}.conf"
    assert "options root=/dev/sda panic=30 quiet\n" in entry.read_text()


def test_a_new_kernel_has_the_words_of_a_bench_that_runs_no_trial(bench: RpmBench) -> None:
    bench.boot_with(["root=/dev/sda", "panic=30", "oops=panic"])
    assert not [step for step in install(bench)["steps"] if "taken out" in step]
    entry = bench.folder / "boot" / "loader" / "entries" / f"token-{NEW}.conf"
    assert "options root=/dev/sda panic=30 oops=panic\n" in entry.read_text()


def test_a_bench_on_which_nothing_can_be_tried_gets_no_kernel(bench: RpmBench) -> None:
    before = state(bench)
    bench.write_entry(f"token-{OLD}", OLD, options="$kernelopts $unknown")
    with pytest.raises(StorqualError, match=r"\$unknown"):
        install(bench)
    assert bench.rpms == before[2]


def test_a_complete_transaction_without_an_initramfs_is_a_failure(bench: RpmBench) -> None:
    bench.broken_script = "dracut"
    with pytest.raises(PartialError, match=f"kernel {NEW} has no initramfs"):
        install(bench)
    before = state(bench)
    assert before[1]["saved_entry"] == f"token-{OLD}"
    restore(str(bench.folder / "state"), Tools(bench, bench.system), check=False)
    assert label("kernel-core", NEW) not in bench.rpms


def test_a_script_that_hangs_past_its_limit_leaves_nothing_behind(bench: RpmBench) -> None:
    """It has done all but its last step when the front end is killed."""
    before = state(bench)

    def killed(argv: Sequence[str], **options: Any) -> Completed:
        ended = bench(argv, **options)
        if argv[0] == "dnf" and "--assumeno" not in argv:
            raise ToolError("`dnf` did not end within 3600 s")
        return ended

    call = Call(str(bench.folder / "state"), "r1")
    with pytest.raises(PartialError, match="did not end within 3600 s"):
        install_package("kernel-core", VERSION, FILES, call, replace(bench.system, runner=killed))
    assert label("kernel-core", NEW) in bench.rpms
    assert bench.variables == before[1]
    restore(str(bench.folder / "state"), Tools(bench, bench.system), check=False)
    assert state(bench) == before


def test_an_entry_under_another_machines_name_goes_with_its_kernel(bench: RpmBench) -> None:
    """An /etc/machine-id that is empty, or `uninitialized`, has kernel-install make up another name each time."""
    before = state(bench)
    install(bench)
    entries = bench.folder / "boot" / "loader" / "entries"
    (entries / f"token-{NEW}.conf").rename(entries / f"0123456789abcdef-{NEW}.conf")
    restore(str(bench.folder / "state"), Tools(bench, bench.system), check=False)
    assert state(bench) == before


@pytest.mark.parametrize(
    ("running", "words"),
    [
        ("root=/dev/sda ro", ""),
        ("root=/dev/sda ro mitigations=off", "has mitigations=off"),
        ("ro", "lacks root=/dev/sda"),
    ],
)
def test_boot_options_that_the_arms_do_not_share_are_told(bench: RpmBench, running: str, words: str) -> None:
    bench.write_entry(f"token-{OLD}", OLD, options="root=/dev/sda ro")
    bench.boot_with(running.split(" "))
    differing = [step for step in install(bench)["steps"] if "boot options" in step]
    assert bool(differing) == bool(words)
    assert all(words in step for step in differing)


def test_a_cut_installation_has_the_settings_put_back(bench: RpmBench) -> None:
    settings = bench.folder / "etc" / "sysconfig" / "kernel"
    was = settings.read_bytes()
    folder = bench.folder / "state"
    folder.mkdir()
    held = kernel_package.held(bench.system, str(folder), [])
    held.__enter__()
    assert b"UPDATEDEFAULT=no" in settings.read_bytes()
    # the power goes here; the next step finds it
    install(bench)
    assert settings.read_bytes() == was


def test_a_package_that_becomes_the_default_all_the_same_is_an_error(bench: RpmBench) -> None:
    file = bench.folder / "etc" / "sysconfig" / "kernel"
    file.write_text("")
    bench.promotes = True
    with pytest.raises(PartialError, match="changed saved_entry"):
        install(bench)
    assert bench.variables["saved_entry"] == f"token-{OLD}"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (("/p/kernel-core-5.14.0-1.el9.s390x.rpm",), "expected one package in each file"),
        (FILES[1:], "expected the image of one kernel, found none"),
        ((*FILES, f"/p/{label('kernel-core', OLD)}.rpm"), "expected the image of one kernel, found 5"),
        (FILES[:1], "kernel-core comes without its modules"),
        ((FILES[0], f"/p/{label('kernel-modules', OLD)}.rpm"), "several releases"),
        (
            tuple(f"/p/{label(f'kernel-{name}', OLD)}.rpm" for name in ("core", "modules")),
            "runs: its packages are not exchanged",
        ),
    ],
)
def test_files_that_are_not_one_other_kernel_are_refused(bench: RpmBench, files: tuple[str, ...], words: str) -> None:
    before = state(bench)
    with pytest.raises(StorqualError, match=words):
        install(bench, files)
    assert state(bench) == before


def test_a_full_boot_is_told_with_its_figure(bench: RpmBench, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.folder / "boot" / f"initramfs-{OLD}.img").write_bytes(b"x" * (3 << 20))
    usage = type("Usage", (), {"free": 2 << 20})
    monkeypatch.setattr(kernel_package.shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(StorqualError, match="has 2 MiB left, and a kernel with its initramfs takes 3 MiB"):
        install(bench)
    assert label("kernel-core", NEW) not in bench.rpms


def test_the_running_kernel_is_never_removed(bench: RpmBench) -> None:
    added = {"labels": [label("kernel-core", OLD)], "purges": False}
    with pytest.raises(ToolError, match="boot the former one first"):
        kernel_package.remove_added(bench.system, OLD, added, {}, str(bench.folder))
    assert label("kernel-core", OLD) in bench.rpms


def test_a_power_cut_at_any_moment_of_a_kernel_drop_ends_on_the_old_kernel_or_the_marked_trial(
    tmp_path: Path,
) -> None:
    """Whatever came to the disk, the candidate never runs without its marks, and a restore leaves nothing of it."""

    def made(root: Path) -> RpmBench:
        root.mkdir(exist_ok=True)
        variables = {"saved_entry": f"token-{OLD}", "kernelopts": "root=/dev/sda ro"}
        return RpmBench(root / "bench", [OLD], OLD, variables=variables)

    def work(bench: RpmBench, mains: Mains) -> None:
        system = replace(bench.system, runner=mains.runner(bench))
        folder = str(bench.folder / "state")
        install_package("kernel-core", VERSION, FILES, Call(folder, "r1"), system)
        boot_step(system, folder, "trial", kernel=NEW, mark="abc", fallback=OLD)

    cuts = 0
    for bench in every_cut(tmp_path, made, work):
        cuts += 1
        folder = str(bench.folder / "state")
        bench.reboot()
        assert bench.running == OLD or "storqual.trial=abc" in bench.system.arguments()
        if bench.running != OLD:
            bench.reboot()
            assert bench.running == OLD
        for _ in range(2):
            restore(folder, Tools(bench, bench.system), check=False)
        fresh = made(bench.folder / "fresh")
        assert state(bench) == state(fresh)
        assert read_saved(Path(folder)) is None
    assert cuts >= 40


def drop_of_files(bench: RpmBench, names: tuple[str, ...] = FILES) -> Apply:
    """A drop with files of a kernel, which have come to the bench."""
    source = bench.folder / "drop"
    source.mkdir(exist_ok=True)
    sources = [source / Path(name).name for name in names]
    for path in sources:
        path.write_text(path.name)
    declared = declared_document({"driver": {"kernel": {"files": [str(path) for path in sources]}}})
    state_dir = str(bench.folder / "state")
    for each in declared["files"]:
        place = Path(state_dir, each["to"])
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(Path(each["from"]).read_bytes())
    request = ApplyRequest(declared, {}, "hardware", only=["driver"], state_dir=state_dir)
    return Apply(request, ProvisionedBench(bench, Machine(str(bench.folder)), bench.system))


def test_a_kernel_of_files_is_installed_and_its_boot_asked_for(bench: RpmBench) -> None:
    first = drop_of_files(bench).run()
    assert first["boot_needed"]["reason"] == f"kernel {NEW}"
    assert {label("kernel-core", NEW), label("kernel-modules", NEW)} < bench.rpms
    bench.reboot()
    assert bench.running == NEW


def test_a_kernel_whose_modules_have_gone_is_completed(bench: RpmBench) -> None:
    drop_of_files(bench).run()
    bench.rpms.remove(label("kernel-modules", NEW))
    drop_of_files(bench).run()
    assert label("kernel-modules", NEW) in bench.rpms
    installed = len([line for line in bench.seen if line.startswith("dnf -y")])
    drop_of_files(bench).run()
    assert len([line for line in bench.seen if line.startswith("dnf -y")]) == installed


def test_files_of_the_other_package_manager_are_refused(bench: RpmBench) -> None:
    before = state(bench)
    with pytest.raises(ToolError, match=r"the packages of this bench are those of rpm \(\.rpm\)"):
        drop_of_files(bench, ("linux-image-6.1.0-47-amd64_6.1.170-3_amd64.deb",)).run()
    assert state(bench) == before


OTHERS = f"""\
Installing dependencies:
 kernel-modules-core {MACHINE} {VERSION} baseos 30 M
Upgrading:
 linux-firmware noarch 20250101-1.el9 baseos 401 M
Removing:
 kmod-old {MACHINE} 1.0-1 @System 1 M
"""


def test_a_kernel_that_would_change_anything_else_is_refused_with_names(bench: RpmBench) -> None:
    bench.also, before = OTHERS, state(bench)
    with pytest.raises(PartialError) as caught:
        install(bench)
    for name in (f"install kernel-modules-core-{VERSION}", "upgrade linux-firmware", "remove kmod-old-1.0-1"):
        assert name in str(caught.value)
    assert state(bench) == before


def test_the_holder_of_the_package_lock_is_named(bench: RpmBench) -> None:
    bench.holder, before = "4711", state(bench)
    with pytest.raises(PartialError, match="the package lock is held by process 4711"):
        install(bench)
    assert state(bench) == before


def test_who_signed_a_kernel_is_told_and_nothing_is_switched_off(bench: RpmBench) -> None:
    name = Path(FILES[0]).name
    assert f"{name}: signed with key db42a60e" in install(bench)["steps"]
    assert not [line for line in bench.seen if "gpg" in line or "--nosignature" in line]


@pytest.mark.parametrize(
    ("checked", "words"),
    [
        ("Header V4 RSA/SHA256 Signature, key ID db42a60e: NOKEY", "key db42a60e, which this bench does not know"),
        ("Header SHA256 digest: OK", "not signed"),
    ],
)
def test_a_signature_that_the_bench_cannot_check_is_told(bench: RpmBench, checked: str, words: str) -> None:
    bench.checked = checked
    assert any(words in step for step in install(bench)["steps"])


@pytest.mark.parametrize("part", ["Header V4 RSA/SHA256 Signature, key ID db42a60e", "Header SHA256 digest"])
def test_a_damaged_package_is_refused(bench: RpmBench, part: str) -> None:
    bench.checked, before = f"{part}: BAD", state(bench)
    with pytest.raises(PartialError, match="is damaged or was changed"):
        install(bench)
    assert state(bench) == before


@pytest.mark.parametrize(
    ("command", "remarked"),
    [
        ("dracut -f --regenerate-all", True),
        ("weak-modules --add-modules", True),
        (f"weak-modules --add-kernel {NEW}", False),
        (f"kernel-install add {NEW} /lib/modules/{NEW}/vmlinuz", False),
    ],
)
def test_a_script_that_is_for_other_kernels_too_is_told(bench: RpmBench, command: str, remarked: bool) -> None:
    bench.scripts = f"posttrans scriptlet (using /bin/sh):\ntrue\n{command}\n"
    steps = [step for step in install(bench)["steps"] if "posttrans" in step]
    assert bool(steps) is remarked
    assert all(command in step for step in steps)


def drop_of_package(bench: RpmBench, **kernel: str) -> Apply:
    """A drop with a kernel by its name; the control node was asked for files and has brought none."""
    declared = declared_document({"driver": {"kernel": kernel}})
    state_dir = str(bench.folder / "state")
    resume = {"stage": "driver", "state": {"fetched": True}}
    request = ApplyRequest(declared, {}, "hardware", only=["driver"], state_dir=state_dir, resume=resume)
    return Apply(request, ProvisionedBench(bench, Machine(str(bench.folder)), bench.system))


TOGETHER = tuple(label(name, NEW) for name in ("kernel", "kernel-core", "kernel-modules", "kernel-modules-core"))


def test_what_belongs_to_a_kernel_comes_from_the_benchs_own_repositories(bench: RpmBench) -> None:
    bench.repository = TOGETHER
    before = state(bench)
    first = drop_of_package(bench, package="kernel", version=VERSION).run()
    assert first["boot_needed"]["reason"] == f"kernel {NEW}"
    assert bench.rpms - before[2] == set(TOGETHER)
    assert all(any(name in step for step in first["steps"]) for name in TOGETHER)
    bench.reboot()
    assert bench.running == NEW
    for _ in range(2):
        restore(str(bench.folder / "state"), Tools(bench, bench.system), check=False)
        bench.reboot()
    assert state(bench) == before


def test_a_kernel_whose_fetch_would_change_anything_else_is_not_fetched(bench: RpmBench) -> None:
    bench.repository, bench.also = TOGETHER, OTHERS
    with pytest.raises(ToolError, match="would also upgrade linux-firmware") as caught:
        drop_of_package(bench, package="kernel", version=VERSION).run()
    assert "kernel-modules-core" not in str(caught.value)
    assert not (bench.folder / "state" / "packages").exists()


def test_a_kernel_that_no_repository_has_is_told_with_its_name(bench: RpmBench) -> None:
    before = state(bench)
    with pytest.raises(ToolError, match=f"kernel-{VERSION}"):
        drop_of_package(bench, package="kernel", version=VERSION).run()
    assert state(bench) == before


def test_an_initramfs_without_the_driver_of_the_root_drive_is_a_failure(bench: RpmBench) -> None:
    bench.in_image = ("a",)
    with pytest.raises(PartialError, match=f"initramfs-{NEW}.img lacks mpt3sas, the driver of the root drive"):
        install(bench)
    before = label("kernel-core", NEW) in bench.rpms
    restore(str(bench.folder / "state"), Tools(bench, bench.system), check=False)
    assert (before, label("kernel-core", NEW) in bench.rpms) == (True, False)


def test_a_driver_in_a_squashfs_of_the_initramfs_is_there(bench: RpmBench) -> None:
    bench.in_image, rule = ("a",), "=" * 72
    file = f"-rw-r--r--   1 root     root  500 Nov 24  2025 usr/lib/modules/{NEW}/kernel/drivers/scsi/mpt3sas.ko.xz"
    bench.listing = (
        f"Image: /boot/initramfs-{NEW}.img: 30M\n{rule}\nVersion: dracut-057\n\nArguments: -f\n\n"
        f"dracut modules:\nbase\nsquash\n{rule}\n{file}\n{rule}\n"
    )
    assert install(bench)["kernel"] == NEW


def test_a_driver_that_is_built_into_the_new_kernel_needs_no_file(bench: RpmBench) -> None:
    bench.in_image = ()
    folder = bench.folder / "lib" / "modules" / NEW
    folder.mkdir(parents=True)
    (folder / "modules.builtin").write_text("kernel/drivers/scsi/mpt3sas/mpt3sas.ko\n")
    assert install(bench)["kernel"] == NEW


def test_a_transaction_of_another_party_is_named_once_at_the_next_step(bench: RpmBench) -> None:
    drop_of_files(bench).run()
    assert drop_of_files(bench).run()["drift"] == [f"kernel {OLD} , declared {NEW} "]
    bench.rpms.add(f"tuned-2.24-1.el9.{MACHINE}")
    bench.rpms.remove(label("kernel-modules", OLD))
    named = [
        f"another party installed tuned-2.24-1.el9.{MACHINE} since the last step",
        f"another party removed {label('kernel-modules', OLD)} since the last step",
    ]
    assert drop_of_files(bench).run()["drift"][:2] == named
    assert not [line for line in drop_of_files(bench).run()["drift"] if "another party" in line]


def test_a_restore_names_what_another_party_removed_meanwhile(bench: RpmBench) -> None:
    install(bench)
    bench.rpms.remove(label("kernel-modules", NEW))
    result = restore(str(bench.folder / "state"), Tools(bench, bench.system), check=False)
    named = f"another party removed {label('kernel-modules', NEW)} since the last step"
    assert named in result["steps"]
    assert not [step for step in result["steps"] if "another party installed" in step]


def test_the_runs_own_packages_are_no_other_partys_after_a_cut(bench: RpmBench) -> None:
    """The power went after the installation: the list is of before."""
    drop_of_files(bench).run()
    listed = bench.folder / "state" / "rpm-packages"
    listed.write_text("".join(line for line in listed.read_text().splitlines(keepends=True) if NEW not in line))
    assert not [line for line in drop_of_files(bench).run()["drift"] if "another party" in line]
