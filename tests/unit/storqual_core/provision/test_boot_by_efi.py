# SPDX-License-Identifier: Apache-2.0
"""A trial on a bench whose loader is told by EFI variables: systemd-boot, and GRUB with its interface."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import StorqualError, ToolError
from storqual_core.kit.machine import Machine
from storqual_core.kit.results import TrialFailedError
from storqual_core.provision import kernel_package
from storqual_core.provision.boot import System, saved_boot
from storqual_core.provision.driver_package import images_elsewhere
from storqual_core.provision.initramfs import Initramfs
from storqual_core.provision.kernel_copies import kernel_of_path, read_state
from storqual_core.provision.restore import Tools, restore
from tests.support.fake_boot import boot_step
from tests.support.fake_efi import EfiBench

OLD, NEW = "6.1.0-50-amd64", "6.1.0-56-amd64"


@pytest.fixture
def bench(tmp_path: Path) -> EfiBench:
    """Two kernels; the older one is the default by its name, and runs."""
    made = EfiBench(tmp_path / "bench", [OLD, NEW], OLD)
    made.set_efi("LoaderEntryDefault", f"token-{OLD}.conf\0".encode("utf-16-le"))
    return made


def step(bench: EfiBench, name: str, **words: Any) -> dict[str, Any]:
    return boot_step(bench.system, str(bench.folder / "state"), name, **words)


def put_back(bench: EfiBench) -> None:
    restore(str(bench.folder / "state"), Tools(bench, bench.system), check=False)


def test_a_trial_boots_once_from_an_entry_without_a_counter(bench: EfiBench) -> None:
    before = bench.files()
    step(bench, "trial", kernel=NEW, arguments=["nosmt"], mark="abc")
    assert bench.text("LoaderEntryOneShot") == "storqual-trial.conf"
    bench.reboot()
    assert bench.running == NEW
    assert {"quiet", "nosmt", "panic=10", "storqual.trial=abc"} <= set(bench.system.arguments())
    assert step(bench, "verify", kernel=NEW, mark="abc")["facts"]["running"] == NEW
    bench.reboot()
    assert bench.running == OLD
    put_back(bench)
    assert bench.files() == before
    assert bench.text("LoaderEntryDefault") == f"token-{OLD}.conf"


def test_a_kernel_that_panics_leaves_the_bench_on_its_default(bench: EfiBench) -> None:
    step(bench, "trial", kernel=NEW, arguments=["rdinit=/storqual-panic"], mark="abc")
    bench.reboot()
    with pytest.raises(TrialFailedError, match="back by itself"):
        step(bench, "verify", kernel=NEW, mark="abc")


def test_without_a_default_by_name_the_fall_back_is_named_for_the_trial(bench: EfiBench) -> None:
    """Our entry comes first by its name here, and would be what boots when nothing is asked for."""
    bench.set_efi("LoaderEntryDefault", b"")
    step(bench, "trial", kernel=NEW, mark="abc", fallback=OLD)
    bench.reboot()
    bench.reboot()
    assert bench.running == OLD
    put_back(bench)
    assert bench.running == OLD
    assert not list(bench.entries.glob("storqual-*"))


def test_a_counted_entry_stays_the_default_when_the_loader_renames_it(bench: EfiBench) -> None:
    (bench.entries / f"token-{NEW}.conf").rename(bench.entries / f"token-{NEW}+3.conf")
    step(bench, "default", kernel=NEW)
    assert bench.text("LoaderEntryDefault") == f"token-{NEW}+*.conf"
    for _ in range(2):
        bench.reboot()
        assert bench.running == NEW
    assert not step(bench, "default", kernel=NEW)["changed"]


def test_a_name_that_does_not_exist_is_not_given_to_the_loader(bench: EfiBench) -> None:
    for name in ("gone.conf", "gone", "*"):
        with pytest.raises(ToolError, match="no boot entry has the name"):
            bench.system.loader.boot_once(name)
    bench.write_entry("a[1]", NEW)
    with pytest.raises(ToolError, match="for a pattern"):
        bench.system.loader.boot_once("a[1].conf")
    assert not bench.text("LoaderEntryOneShot")


def refusal(bench: EfiBench) -> str:
    """The sentence; nothing was changed before it."""
    before = bench.files()
    with pytest.raises(StorqualError) as caught:
        step(bench, "trial", kernel=NEW, mark="abc")
    assert bench.files() == before
    return str(caught.value)


def test_a_loader_that_cannot_boot_once_is_refused(bench: EfiBench) -> None:
    bench.set_efi("LoaderFeatures", (0x10).to_bytes(8, "little"))
    assert "does not say that it boots an entry once" in refusal(bench)
    bench.set_efi("LoaderFeatures", b"")
    assert "does not say that it boots an entry once" in refusal(bench)


def test_another_partition_than_the_loaders_is_refused(bench: EfiBench) -> None:
    bench.set_efi("LoaderEntries", "other-1.conf\0".encode("utf-16-le"))
    assert "is not the partition that the loader reads" in refusal(bench)
    bench.set_efi("LoaderEntries", b"odd")
    assert "no UTF-16 text" in refusal(bench)


PARTITIONS = {"sda1": "8:1", "sda2": "8:2", "sdb1": "8:17", "md0": "9:0"}
ESP = "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709"


def mounted(bench: EfiBench, device: str, members: tuple[str, ...] = ()) -> None:
    """Two disks with partitions; the loader was started from the first, and `device` is mounted where it is read."""
    sysfs, links = bench.folder / "sys", bench.folder / "dev" / "disk" / "by-partuuid"
    for name, number in PARTITIONS.items():
        place = sysfs / "devices" / (name[:3] if name[0] == "s" else "virtual") / name
        place.mkdir(parents=True)
        if name[0] == "s":
            (place / "partition").write_text("1\n")
        for link in (sysfs / "class" / "block" / name, sysfs / "dev" / "block" / number):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(f"../../{place.relative_to(sysfs)}")
        for member in members if name == device else ():
            (place / "slaves" / member).mkdir(parents=True)
    links.mkdir(parents=True)
    (links / ESP.lower()).symlink_to("../../sda1")
    bench.set_efi("LoaderDevicePartUUID", f"{ESP}\0".encode("utf-16-le"))
    row = f"36 35 {PARTITIONS[device]} / /boot rw - vfat /dev/{device} rw\n"
    (bench.folder / "proc" / "self").mkdir()
    (bench.folder / "proc" / "self" / "mountinfo").write_text(f"25 1 8:3 / / rw - ext4 /dev/sda3 rw\n{row}")


def test_a_copy_of_the_partition_that_the_loader_was_started_from_is_refused(bench: EfiBench) -> None:
    """The other disk's has the same entries, so that what the loader found says nothing."""
    mounted(bench, "sdb1")
    assert "started from sda1, and sdb1, of another disk, is mounted at /boot" in refusal(bench)


@pytest.mark.parametrize(("device", "members"), [("sda1", ()), ("sda2", ()), ("md0", ("sda1", "sdb1"))])
def test_what_the_loader_reads_too_may_be_mounted(bench: EfiBench, device: str, members: tuple[str, ...]) -> None:
    """Its own partition, the one for kernels beside it, and a mirror of which it is a half."""
    mounted(bench, device, members)
    step(bench, "trial", kernel=NEW, mark="abc")
    assert bench.text("LoaderEntryOneShot") == "storqual-trial.conf"


def test_variables_that_cannot_be_written_are_refused(bench: EfiBench, monkeypatch: pytest.MonkeyPatch) -> None:
    class ReadOnly:
        f_flag = 1

    monkeypatch.setattr("storqual_core.tools.bootctl.os.statvfs", lambda _path: ReadOnly)
    assert "mounted read-only" in refusal(bench)


def test_an_entry_with_a_variable_is_no_template(bench: EfiBench) -> None:
    bench.write_entry(f"token-{NEW}", NEW, "root=/dev/vda $tuned_params")
    assert "systemd-boot does not expand" in refusal(bench)


def test_an_image_of_ours_that_the_loader_cannot_read_is_refused(bench: EfiBench) -> None:
    image = f"initrd.storqual-{NEW}-0123456789ab"
    (bench.folder / "boot" / image).write_text("")
    step(bench, "trial", kernel=NEW, mark="abc", initramfs=image)
    assert f"initrd /{image}\n" in (bench.entries / "storqual-trial.conf").read_text()


def test_a_kernel_is_proven_by_the_files_that_its_entry_names(
    bench: EfiBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(kernel_package, "lacking_drivers", lambda *words: looked.append(words[2]) or [])

    def answer(argv: Sequence[str], **options: Any) -> Completed:
        return Completed(tuple(argv), 0, "", "", 0.0) if argv[0] == "rpm" else bench(argv, **options)

    system, index = replace(bench.system, runner=answer), bench.folder / "lib/modules" / NEW / "modules.dep"
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_text("")
    assert kernel_package.proof(system, NEW, []) == []
    assert looked == [f"{bench.system.boot}/token/{NEW}/initrd"]
    kernel = bench.folder / "boot" / "token" / NEW / "linux"
    kernel.unlink()
    assert kernel_package.proof(system, NEW, []) == [f"{kernel} is not there"]


def test_what_a_kernel_left_on_the_partition_goes_with_it(bench: EfiBench) -> None:
    """Its folder, and its entry under the name with a counter."""
    saved, kept = saved_boot(bench.system), {path for path in bench.files() if NEW not in path}
    (bench.entries / f"token-{NEW}.conf").rename(bench.entries / f"token-{NEW}+2-1.conf")
    state = str(bench.folder / "state")
    kernel_package.remove_added(bench.system, NEW, {"labels": [], "purges": False}, saved, state)
    assert set(bench.files()) == kept


def test_the_initramfs_of_each_kernel_is_looked_after_while_a_driver_package_is_there(bench: EfiBench) -> None:
    images = [path for path in read_state(bench.folder) if path.startswith("boot/")]
    assert sorted(map(kernel_of_path, images)) == [OLD, NEW]
    assert Initramfs(Machine(str(bench.folder)), bench, NEW).path == f"/boot/token/{NEW}/initrd"
    assert images_elsewhere(bench.system) == []


@pytest.mark.parametrize("image", ["efi/token/initrd", "../efi/token/initrd", "gone"])
def test_a_driver_package_is_refused_where_an_initramfs_of_the_loader_could_not_be_put_back(
    bench: EfiBench, monkeypatch: pytest.MonkeyPatch, image: str
) -> None:
    monkeypatch.setattr(System, "kernels", lambda _: {OLD: "", NEW: image})
    for folder in ("boot/efi/token", "efi/token"):
        (bench.folder / folder).mkdir(parents=True)
        (bench.folder / folder / "initrd").touch()
    (problem,) = images_elsewhere(bench.system)
    assert NEW in problem
