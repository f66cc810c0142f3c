# SPDX-License-Identifier: Apache-2.0
"""What programs of benches of RPMs do that those of Enterprise Linux and of SUSE do, one test for each trap in it."""

import argparse
import gzip
import io
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storqual.virtual_bench import image
from tests.support.cpio_archive import archive

RECIPE = Path(image.__file__).parent / "recipe"
TREE = RECIPE / "rpm/tree"
SUSE = "rpm-suse/tree/usr/lib/module-init-tools"
MACHINE = "fa" * 16
OLD, NEW, FAR = "6.1.0-55-amd64", "6.1.0-56-amd64", "6.12.1-amd64"


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """A root folder with one kernel's files, and an environment of GRUB that is a file of lines."""
    for folder in ("etc/kernel", "etc/sysconfig", "proc", "boot", f"usr/lib/modules/{NEW}", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("vmlinuz", "System.map", "config", "symvers.gz"):
        (tmp_path / f"usr/lib/modules/{NEW}/{name}").write_text(name)
    (tmp_path / "etc/machine-id").write_text(f"{MACHINE}\n")
    (tmp_path / "etc/sysconfig/kernel").write_text("UPDATEDEFAULT=yes\nDEFAULTKERNEL=kernel-core\n")
    (tmp_path / "proc/cmdline").write_text(
        "BOOT_IMAGE=/boot/vmlinuz initrd=x root=/dev/vda panic=5 storqual.trial=1\n"
    )
    editenv = tmp_path / "bin/grub2-editenv"
    editenv.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/grubenv\n')
    editenv.chmod(0o755)
    return tmp_path


def plugin(bench: Path, command: str) -> None:
    """Run 20-grub.install on that root folder."""
    text = (TREE / "usr/lib/kernel/install.d/20-grub.install").read_text()
    for folder in ("etc", "proc", "usr/lib"):
        text = text.replace(f"/{folder}/", f"{bench}/{folder}/")
    text = text.replace("entries=/boot", f"entries={bench}/boot").replace('"/boot/', f'"{bench}/boot/')
    script = bench / "bin/plugin"
    script.write_text(text)
    ended = subprocess.run(
        ["sh", script, command, NEW, "", f"{bench}/usr/lib/modules/{NEW}/vmlinuz"],
        env={"PATH": f"{bench}/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def entry(bench: Path) -> dict[str, str]:
    text = (bench / f"boot/loader/entries/{MACHINE}-{NEW}.conf").read_text()
    return dict(line.split(" ", 1) for line in text.splitlines())


def test_a_new_kernel_becomes_the_default_as_it_is_installed(bench: Path) -> None:
    plugin(bench, "add")
    assert (bench / "grubenv").read_text() == f"- set saved_entry={MACHINE}-{NEW}\n"
    assert entry(bench)["linux"] == f"/boot/vmlinuz-{NEW}"
    assert (bench / f"boot/symvers-{NEW}.gz").exists()


@pytest.mark.parametrize(
    "settings", ["UPDATEDEFAULT=no\nDEFAULTKERNEL=kernel-core\n", "UPDATEDEFAULT=yes\nDEFAULTKERNEL=kernel-rt-core\n"]
)
def test_a_new_kernel_leaves_the_default_alone_where_the_settings_say_so(bench: Path, settings: str) -> None:
    (bench / "etc/sysconfig/kernel").write_text(settings)
    plugin(bench, "add")
    assert not (bench / "grubenv").exists()
    assert entry(bench)["version"] == NEW


def test_a_kernel_that_is_installed_during_a_trial_takes_its_arguments(bench: Path) -> None:
    plugin(bench, "add")
    assert entry(bench)["options"] == "root=/dev/vda panic=5 storqual.trial=1 $tuned_params"


def test_arguments_of_a_file_go_before_those_of_the_running_kernel(bench: Path) -> None:
    (bench / "etc/kernel/cmdline").write_text("root=/dev/vda quiet\n")
    plugin(bench, "add")
    assert entry(bench)["options"] == "root=/dev/vda quiet $tuned_params"


def test_a_removal_leaves_the_default_dangling(bench: Path) -> None:
    plugin(bench, "add")
    before = (bench / "grubenv").read_text()
    plugin(bench, "remove")
    assert not (bench / f"boot/loader/entries/{MACHINE}-{NEW}.conf").exists()
    assert not (bench / f"boot/vmlinuz-{NEW}").exists()
    assert (bench / "grubenv").read_text() == before


def program(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, list[list[str]]]:
    """A stand-in over two kernels with the same symbols and a third, and what it runs."""
    text = (RECIPE / name).read_text().replace("/usr/lib/storqual", str(RECIPE / "rpm-base/tree/usr/lib/storqual"))
    module = ModuleType("stand_in")
    exec(text, module.__dict__)  # noqa: S102 - a program of the recipe
    for release, crc in ((OLD, "0x1"), (NEW, "0x1"), (FAR, "0x2")):
        (folder / release).mkdir()
        symbols = f"{crc}\tmodule_layout\tvmlinux\tEXPORT\n"
        (folder / release / "symvers.gz").write_bytes(gzip.compress(symbols.encode()))
    ran: list[list[str]] = []

    def run(argv: list[Any], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append([str(word) for word in argv])
        out = f"/usr{folder}/{OLD}/updates/drop.ko\n" if argv[0] == "rpm" else "0x00000001\tmodule_layout\n"
        return subprocess.CompletedProcess(argv, 0, out, "")

    monkeypatch.setattr(subprocess, "run", run)
    for place, value in (("MODULES", folder), ("BOOT", folder), ("LATER", folder / "later")):
        setattr(module, place, value)
    return module, ran


@pytest.fixture
def weak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[str]]]:
    """The stand-in for weak-modules; it returns what it ran."""
    module, ran = program("rpm-dnf/tree/usr/sbin/weak-modules", tmp_path, monkeypatch)

    def call(action: str, argument: Any = None) -> list[list[str]]:
        ran.clear()
        options = argparse.Namespace(verbose=True, dry_run=False, no_initramfs=True)
        tool = module.Weak(options)
        getattr(tool, action)(argument)
        tool.finish()
        return [words for words in ran if words[0] != "modprobe"]

    call.module = module  # type: ignore[attr-defined]
    return call


def test_a_module_reaches_every_kernel_with_the_same_symbols_and_no_other(
    weak: Callable[..., list[list[str]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drop = tmp_path / OLD / "extra/drop/drop.ko"
    drop.parent.mkdir(parents=True)
    drop.touch()
    assert weak("add_modules", [drop]) == [["depmod", OLD], ["depmod", NEW]]
    assert (tmp_path / NEW / "weak-updates/drop/drop.ko").readlink() == drop
    assert not (tmp_path / FAR / "weak-updates").exists()
    assert (
        f"drop.ko from kernel {OLD} is not compatible with kernel {FAR} in symbols: module_layout"
        in capsys.readouterr().out
    )
    assert weak("remove_modules", [drop]) == [["depmod", OLD], ["depmod", NEW]]
    assert not (tmp_path / NEW / "weak-updates/drop/drop.ko").is_symlink()


def test_a_new_kernel_takes_the_modules_of_the_others(weak: Callable[..., list[list[str]]], tmp_path: Path) -> None:
    drop = tmp_path / OLD / "extra/drop/drop.ko"
    drop.parent.mkdir(parents=True)
    drop.touch()
    assert weak("add_kernel", NEW) == [["depmod", NEW]]
    assert (tmp_path / NEW / "weak-updates/drop/drop.ko").is_symlink()


def test_images_of_another_compression_seem_to_hold_the_same_modules(
    weak: Callable[..., list[list[str]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Old driver in the image, new driver on the disk, and no error: what a zstd image leads to."""
    member = archive({"lib/a.ko": b"code"})
    packed, other = tmp_path / "gzip.img", tmp_path / "zstd.img"
    packed.write_bytes(gzip.compress(member))
    other.write_bytes(b"\x28\xb5\x2f\xfd" + member)
    members = weak.module.members  # type: ignore[attr-defined]
    assert members(packed) == {"lib/a.ko": b"code"}
    assert members(other) == {}
    assert "Unknown format" in capsys.readouterr().err


@pytest.mark.parametrize(("later", "in_image"), [(True, True), (False, True), (True, False)])
def test_a_kmp_reaches_every_kernel_of_its_flavour_with_the_same_symbols(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], later: bool, in_image: bool
) -> None:
    """In `updates` of one kernel and linked into others; their initramfs is made anew where it holds the module."""
    module, ran = program(f"{SUSE}/weak-modules2", tmp_path, monkeypatch)
    monkeypatch.setenv("INITRD_IN_POSTTRANS", "1" if later else "")
    for release in (OLD, NEW, FAR):
        name = "drop.ko" if in_image else "other.ko"
        (tmp_path / f"initrd-{release}").write_bytes(gzip.compress(archive({f"lib/{name}": b""})))
    monkeypatch.setattr(module, "modules_in", lambda _: [tmp_path / OLD / "updates/drop.ko"])
    assert module.add_kmp("drop-kmp-amd64-1.0-1") == 0
    link = tmp_path / NEW / "weak-updates/updates/drop.ko"
    assert link.readlink() == tmp_path / OLD / "updates/drop.ko"
    assert f"FAILED to add drop-kmp-amd64-1.0-1 in kernel {FAR}" in capsys.readouterr().err
    assert [words[-1] for words in ran if words[0] == "depmod"] == [OLD, NEW]
    made = [words[-1] for words in ran if words[0] == "dracut"]
    marked = sorted(path.name for path in (tmp_path / "later").glob("*"))
    assert (made, marked) == ([OLD, NEW] if in_image and not later else [], [OLD, NEW] if in_image and later else [])
    done = len(ran)
    assert (module.add_kmp("drop-kmp-rt-1.0-1"), [words[0] for words in ran[done:]]) == (0, ["rpm"])
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert module.remove_kmp("drop-kmp-amd64-1.0-1") == 0
    assert not link.is_symlink()


def scriptlet(bench: Path, step: str, left: int) -> None:
    """Run a script of SUSE's kernel package on that root folder; `left` are the versions that are installed then."""
    text = (RECIPE / SUSE / "kernel-scriptlets/scriptlet").read_text()
    script = bench / "bin" / step
    script.write_text(text.replace("/boot/", f"{bench}/boot/").replace("/usr/lib/", f"{bench}/bin/"))
    for name in ("update-bootloader", "module-init-tools/weak-modules2"):
        (bench / "bin" / name).parent.mkdir(exist_ok=True)
        (bench / "bin" / name).write_text(f'#!/bin/sh\necho {Path(name).name} "$@" >> {bench}/ran\n')
        (bench / "bin" / name).chmod(0o755)
    words = ["--name", "kernel-amd64", "--kernelrelease", NEW.rpartition("-")[0], "--flavor", "amd64"]
    ended = subprocess.run(
        ["sh", script, *words, "--image", "vmlinuz", str(left)],
        env={"PATH": f"{bench}/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("image", [True, False])
def test_a_second_kernel_of_suse_orders_a_purge_and_takes_the_links_for_good(bench: Path, image: bool) -> None:
    boot = bench / "boot"
    scriptlet(bench, "rpm-post", 1)
    assert not (boot / "do_purge_kernels").exists()
    if image:
        (boot / f"initrd-{NEW}").touch()
    scriptlet(bench, "rpm-post", 2)
    assert (boot / "do_purge_kernels").exists()
    # without an initramfs there is no entry either, and the package is installed
    assert ("update-bootloader --add" in (bench / "ran").read_text()) == image
    scriptlet(bench, "rpm-postun", 1)
    # also the mark of somebody else
    assert not (boot / "do_purge_kernels").exists()
    assert {path.name: str(path.readlink()) for path in boot.iterdir() if path.is_symlink()} == {
        "vmlinuz": f"vmlinuz-{NEW}",
        "initrd": f"initrd-{NEW}",
    }
    assert "update-bootloader --remove" in (bench / "ran").read_text()
