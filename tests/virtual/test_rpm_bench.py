# SPDX-License-Identifier: Apache-2.0
"""A virtual bench of the RPM kind: what it is like, that it can be measured, and the traps that it has."""

import json
import random
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import reset
from tests.support.arming import CUTS, Arming, cut_while_arming, what_boots
from tests.support.driver_sources import driver_sources
from tests.support.live_bench import REPOSITORY, discard, over_ssh, play, powered_on, ran

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(7200)]

INVENTORY = REPOSITORY / "inventories" / "virtual_rpm"
STATE = REPOSITORY / ".cache" / "bench" / "vrpm"
SUITE = REPOSITORY / "tests" / "virtual" / "gate" / "live.suite.yml"
KMOD = REPOSITORY / "tests" / "virtual" / "guest" / "kmod.spec"
needs_compiler = pytest.mark.skipif(
    not (shutil.which("make") and shutil.which("gcc")), reason="needs gcc and make on this machine"
)


def ask(line: str, data: bytes = b"") -> str:
    """What a command prints on the bench."""
    return over_ssh(STATE, "vrpm", f"export LC_ALL=C; {line}", data=data, limit_s=1200).strip()


def saved() -> str:
    return re.findall(r"^saved_entry=(.*)$", ask("grub2-editenv list"), re.MULTILINE)[0]


# everything that a drop could leave changed: the loader's own modules are no file that anything writes
LOOK = """
find /boot ! -path '*/i386-pc/*' ! -name grubenv -type f -exec sha256sum {} + | sort -k2
find /boot /lib/modules -printf '%M %U:%G %p %l\\n' | sort -k3
find /lib/modules -type f -exec sha256sum {} + | sort -k2
sha256sum /etc/sysconfig/kernel /etc/depmod.d/* /etc/dracut.conf.d/* /etc/modprobe.d/* 2>/dev/null
grub2-editenv list | sort
rpm -qa | sort
"""


def provision(tmp_path: Path, drop: str) -> tuple[int, str]:
    """Make the bench what a drop says; exit code and output."""
    file = tmp_path / "drop.yml"
    file.write_text(f"name: t\ndescription: of a test\n{drop}", encoding="utf-8")
    # Ansible would send a module again to a bench that lost its power and comes up
    words = ("-e", f"drop={file}", "-e", "prove_s=0", "-e", "ansible_ssh_retries=0")
    return play(tmp_path / "log", INVENTORY, "provision.yml", *words)


@contextmanager
def provisioning(tmp_path: Path, drop: str) -> Iterator[Future[tuple[int, str]]]:
    """The same, while something else is done."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(provision, tmp_path, drop)


def restored(tmp_path: Path) -> str:
    """What is there after the bench was restored."""
    code, output = play(tmp_path / "log", INVENTORY, "restore.yml")
    assert code == 0, output[-3000:]
    return ask(LOOK)


@pytest.fixture(scope="module", autouse=True)
def powered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    discard(STATE)
    STATE.mkdir(parents=True)
    with powered_on(tmp_path_factory.mktemp("power") / "log", INVENTORY):
        yield


@pytest.fixture(scope="module")
def kernels() -> list[str]:
    """Releases in the bench's repository, oldest first: two with the same symbols, and a third."""
    names = ask("rpm -qp --provides /var/lib/bench-repository/kernel-core-*.rpm")
    return re.findall(r"kernel-uname-r\((.*)\)", names)


@pytest.fixture(scope="module")
def kmod(kernels: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver of the root drive and of an adapter as a vendor's package for the running kernel, with a version."""
    folder, newer = tmp_path_factory.mktemp("kmod"), kernels[1]
    names = ["drivers/scsi/virtio_scsi.c", "drivers/scsi/sd.h", "drivers/scsi/scsi_logging.h"]
    module = driver_sources(folder, names).module("virtio_scsi", "drop", more='MODULE_VERSION("1.0.1");\n')
    ask("mkdir -p /root/drop && cat > /root/drop/virtio_scsi.ko", module.read_bytes())
    ask("cat > /root/drop/kmod.spec", KMOD.read_bytes())
    build = f"--define 'uname {newer}' --define 'module virtio_scsi' --define 'override 1'"
    ask(f"rpmbuild -bb --quiet {build} --define 'file /root/drop/virtio_scsi.ko' /root/drop/kmod.spec 2>&1")
    file = folder / "kmod-virtio_scsi-1.0-1.x86_64.rpm"
    words = ["ssh", "-F", STATE / "ssh_config", "vrpm", "cat /root/rpmbuild/RPMS/*/kmod-virtio_scsi-*.rpm"]
    file.write_bytes(subprocess.run(words, capture_output=True, check=True, timeout=300).stdout)
    return file


KINDS = [pytest.param("kernel", id="kernel"), pytest.param("kmod", marks=needs_compiler, id="kmod")]


@pytest.fixture
def drop(request: pytest.FixtureRequest, kind: str, kernels: list[str]) -> str:
    """What a drop says: the newest kernel of the repository, or another driver for the running one."""
    if kind == "kmod":
        return f"driver: {{kmod: {{files: [{request.getfixturevalue('kmod')}], module: virtio_scsi}}}}\n"
    version = package(kernels[-1]).removeprefix("kernel-core-")
    return f"driver: {{kernel: {{package: kernel, version: {version}}}}}\n"


def package(release: str) -> str:
    """The package of a kernel in the repository."""
    return ask(
        f"dnf -q repoquery --whatprovides 'kernel-uname-r({release})' --qf '%{{name}}-%{{version}}-%{{release}}'"
    )


def test_the_running_kernel_is_a_package_and_its_entry_is_the_default() -> None:
    release = ask("uname -r")
    assert ask(f"rpm -qf /lib/modules/{release}/vmlinuz").startswith("kernel-core-")
    assert saved() == f"{ask('cat /etc/machine-id')}-{release}"
    entry = ask(f"cat /boot/loader/entries/{saved()}.conf")
    assert f"\nlinux /boot/vmlinuz-{release}\n" in entry
    assert saved()[0].isalpha()
    assert ask(f"rpm -V $(rpm -qf /lib/modules/{release}/vmlinuz)") == ""


def test_a_campaign_without_a_kernel_drop_finds_the_planted_difference(tmp_path: Path) -> None:
    words = ["--baseline", "installed", "--candidate", "limited", "--suite", SUITE, "--profile", "quick"]
    code, output = ran(tmp_path / "log", "storqual", "qualify", "-i", INVENTORY, *words, "--runs", tmp_path / "runs")
    (verdict,) = (tmp_path / "runs").glob("*/verdict.json")
    assert (code, json.loads(verdict.read_text(encoding="utf-8"))["outcome"]) == (1, "FAIL"), output[-3000:]


def test_a_kernel_rpm_makes_itself_the_default_and_leaves_it_dangling(kernels: list[str]) -> None:
    before, older = saved(), kernels[0]
    ask(f"dnf -q -y install {package(older)}")
    assert saved() == f"{ask('cat /etc/machine-id')}-{older}"
    assert ask(f"test -s /boot/initramfs-{older}.img && rpm -V {package(older)}") == ""
    ask(f"dnf -q -y remove {package(older)}")
    assert saved().endswith(older)
    assert ask("ls /boot/loader/entries") == f"{before}.conf"
    assert older not in ask("ls /boot")
    assert ask(f"find /lib/modules/{older} -name vmlinuz 2>/dev/null || true") == ""
    ask(f"grub2-set-default {before}")


def test_dnf_ends_well_without_an_initramfs_where_a_plugin_fails(kernels: list[str]) -> None:
    before, older = saved(), kernels[0]
    plugin = "/etc/kernel/install.d/30-fails.install"
    ask(f"printf '#!/bin/sh\\nexit 1\\n' > {plugin} && chmod 755 {plugin}")
    assert "Complete!" in ask(f"dnf -y install {package(older)}")
    assert saved().endswith(older)
    assert f"initramfs-{older}" not in ask("ls /boot")
    ask(f"rm {plugin} && kernel-install add {older} /lib/modules/{older}/vmlinuz && grub2-set-default {before}")
    assert f"initramfs-{older}.img" in ask("ls /boot")


TRIAL = """
options=$(sed -n 's/^options \\(.*\\) $tuned_params/\\1/p' /boot/loader/entries/*-{release}.conf)
cat > /boot/grub2/custom.cfg <<EOF
menuentry 'trial' --unrestricted --id storqual-trial {{
  linux /boot/vmlinuz-{release} $options storqual.trial=1 panic=5
  initrd /boot/initramfs-{release}.img
}}
EOF
sync
grub2-reboot storqual-trial
"""


def test_a_trial_entry_boots_once_and_the_saved_entry_after_it(kernels: list[str]) -> None:
    older, before = kernels[0], (saved(), ask("uname -r"))
    ask(TRIAL.format(release=older))
    assert reset(BenchPlaces.of(STATE), limit_s=600).kernel == older
    assert "storqual.trial=1 panic=5" in ask("cat /proc/cmdline")
    # GRUB forgot it before the kernel ran
    assert "next_entry=\n" in ask("grub2-editenv list") + "\n"
    assert reset(BenchPlaces.of(STATE), limit_s=600).kernel == before[1]
    assert "storqual.trial" not in ask("cat /proc/cmdline")
    assert saved() == before[0]
    ask(": > /boot/grub2/custom.cfg")


def test_a_kernel_of_the_repository_is_tried_once_and_leaves_no_trace(kernels: list[str], tmp_path: Path) -> None:
    backport, before = kernels[-1], ask(LOOK)
    version = package(backport).removeprefix("kernel-core-")
    drop = f"driver: {{kernel: {{package: kernel, version: {version}}}}}\n"
    code, output = provision(tmp_path, drop)
    assert (code, ask("uname -r")) == (0, backport), output[-3000:]
    assert saved() in before
    # a kernel that panics at its start has the bench back by itself, without a trace in the loader
    code, output = provision(tmp_path, f"{drop}virtual: {{panic_at_boot: true}}\n")
    assert code != 0
    assert f"kernel {backport} did not start in its trial boot" in output
    assert ask("uname -r") != backport
    assert restored(tmp_path) == before


def test_no_power_cut_while_a_trial_is_armed_boots_what_is_not_proven(kernels: list[str], tmp_path: Path) -> None:
    """The candidate is the newest kernel, which is what boots where a default names nothing."""
    newest, before = kernels[-1], saved()
    ask(f"dnf -q -y install {package(newest)} && grub2-set-default {before} && sync")
    look = ask(LOOK)
    arming = Arming(STATE, "vrpm", newest, "/boot/grub2", tmp_path)
    try:
        cut_while_arming(arming, before)
    finally:
        arming.end()
    assert ask(LOOK) == look
    ask(f"dnf -q -y remove {package(newest)} && grub2-set-default {before}")


LIMITS = {"kernel": 270, "kmod": 360}
"""Requests a second: a tenth less than what the drives of the adapter are paced to."""


@pytest.mark.parametrize(("slower", "expected"), [(False, (0, "PASS")), (True, (1, "FAIL"))], ids=["same", "slow"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_drop_is_judged_in_a_campaign_and_leaves_no_trace(
    tmp_path: Path, kind: str, drop: str, slower: bool, expected: tuple[int, str]
) -> None:
    before, candidate = ask(LOOK), tmp_path / "candidate.yml"
    limit = f"virtual: {{iops_limit: {{all: {LIMITS[kind]}}}}}\n" if slower else ""
    candidate.write_text(f"name: candidate\ndescription: of a test\n{drop}{limit}", encoding="utf-8")
    words = ["--baseline", "installed", "--candidate", candidate, "--suite", SUITE, "--profile", "quick"]
    words += ["--adapters", {"kernel": "fusion", "kmod": "vscsi"}[kind], "--runs", tmp_path / "runs"]
    code, output = ran(tmp_path / "log", "storqual", "qualify", "-i", INVENTORY, *words)
    (verdict,) = (tmp_path / "runs").glob("*/verdict.json")
    assert (code, json.loads(verdict.read_text(encoding="utf-8"))["outcome"]) == expected, output[-3000:]
    assert ask(LOOK) == before


@pytest.mark.parametrize("kind", KINDS)
def test_at_each_moment_of_a_trial_its_loader_finds_the_old_system(tmp_path: Path, kind: str, drop: str) -> None:
    """By default kernel and initramfs as they were, whatever scripts of packages do; once a trial that is whole."""
    before, seen = ask(LOOK), [what_boots(STATE, tmp_path, "/boot/grub2")]
    drawn = random.Random(kind)

    def look(work: Future[tuple[int, str]]) -> tuple[int, str]:
        while not work.done():
            # a moment is drawn; there is nothing to await
            time.sleep(drawn.uniform(0.0, 6.0))
            seen.append(what_boots(STATE, tmp_path, "/boot/grub2"))
        return work.result()

    with provisioning(tmp_path, drop) as work:
        code, output = look(work)
    assert code == 0, output[-3000:]
    words = ask("cat /proc/cmdline")
    with ThreadPoolExecutor(1) as pool:
        code, output = look(pool.submit(play, tmp_path / "log", INVENTORY, "restore.yml"))
    assert code == 0, output[-3000:]
    assert ask(LOOK) == before
    assert {boots.default for boots in seen} == {seen[0].default}
    assert not [boots for boots in seen if "storqual.trial=" in boots.default_words]
    trials = [boots for boots in seen if boots.once]
    assert len({boots.once for boots in trials}) == 1, seen
    assert all("storqual.trial=" in boots.once_words for boots in trials)
    assert "storqual.trial=" in words
    print(f"{kind}: {len(seen)} moments, {len(trials)} of them with a trial ordered")


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_power_cut_at_any_moment_of_a_trial_the_old_system_runs(tmp_path: Path, kind: str, drop: str) -> None:
    def system() -> tuple[str, str]:
        # Debian's own build says neither version nor srcversion
        return ask("uname -r"), ask("cat /sys/module/virtio_scsi/version 2>/dev/null || true")

    before, old, drawn = ask(LOOK), system(), random.Random(kind)
    for number in range(CUTS):
        with provisioning(tmp_path, drop) as work:
            # a moment is drawn; there is nothing to await
            time.sleep(drawn.uniform(5.0, 300.0))
            reset(BenchPlaces.of(STATE), limit_s=600)
            code, _ = work.result()
        words = ask("cat /proc/cmdline")
        if "storqual.trial=" in words:
            # it was ordered, and is booted once
            reset(BenchPlaces.of(STATE), limit_s=600)
            words = ask("cat /proc/cmdline")
        assert (system(), "storqual.trial=" in words) == (old, False), number
        print(f"{kind}: cut {number}, provision.yml ended with {code}")
    assert restored(tmp_path) == before


@needs_compiler
def test_a_driver_package_drives_its_adapter_and_leaves_no_trace(
    kernels: list[str], kmod: Path, tmp_path: Path
) -> None:
    before = ask(LOOK)
    code, output = provision(tmp_path, f"driver: {{kmod: {{files: [{kmod}], module: virtio_scsi}}}}\n")
    assert code == 0, output[-3000:]
    assert ask("cat /sys/module/virtio_scsi/version") == "1.0.1"
    # its scripts have linked it into the other kernel, which is not under test
    assert ask("find /lib/modules -type l") == ""
    changed = set(ask(LOOK).splitlines()) ^ set(before.splitlines())
    assert not [line for line in changed if "/boot/" in line or kernels[0] in line]
    assert restored(tmp_path) == before


@needs_compiler
def test_a_kmod_rpm_reaches_the_other_kernel_and_wins_there_by_its_override_only(
    kernels: list[str], tmp_path: Path
) -> None:
    older, newer, _ = kernels
    ask("echo 'drivers+=\" scsi_debug \"' > /etc/dracut.conf.d/drop.conf")
    for release in (older, newer):
        ask(f"dracut --force --quiet --kver {release} /boot/initramfs-{release}.img")
    sources = driver_sources(
        tmp_path, ["drivers/scsi/scsi_debug.c", "drivers/scsi/sd.h", "drivers/scsi/scsi_logging.h"]
    )
    module = sources.module(
        "scsi_debug", "drop", more="int storqual_drop(void);\nint storqual_drop(void) { return 1; }\n"
    )
    ask("mkdir -p /root/drop && cat > /root/drop/scsi_debug.ko", module.read_bytes())
    ask("cat > /root/drop/kmod.spec", KMOD.read_bytes())
    images = f"sha256sum /boot/initramfs-{older}.img /boot/initramfs-{newer}.img"
    wins = f"modinfo -k {older} -F filename scsi_debug"
    for override in (0, 1):
        build = f"--define 'uname {newer}' --define 'module scsi_debug' --define 'override {override}'"
        ask(f"rpmbuild -bb --quiet {build} --define 'file /root/drop/scsi_debug.ko' /root/drop/kmod.spec 2>&1")
        before = ask(images).splitlines()
        ask("rpm -i /root/rpmbuild/RPMS/*/kmod-scsi_debug-*.rpm 2>&1")
        link = f"/lib/modules/{older}/weak-updates/scsi_debug/scsi_debug.ko"
        assert ask(f"readlink {link}") == f"/lib/modules/{newer}/extra/scsi_debug/scsi_debug.ko"
        assert ("weak-updates" in ask(wins)) == bool(override)
        # the kernel that nobody tests has another initramfs where its driver is another one
        changed = [was != now for was, now in zip(before, ask(images).splitlines(), strict=True)]
        assert changed == [bool(override), True]
        ask("rpm -e kmod-scsi_debug 2>&1")
        assert ask(f"ls -d {link} 2>/dev/null || true") == ""
