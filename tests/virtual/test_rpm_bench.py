# SPDX-License-Identifier: Apache-2.0
"""Virtual benches of the RPM kind: what they are like, that they can be measured, and the traps that they have."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from storqual.console.console import VirtualConsole
from storqual.virtual_bench.boot import logs_in
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import reset
from tests.support.boot_cuts import ROOT, CutBench, cut_a_trial
from tests.support.driver_sources import driver_sources
from tests.support.live_bench import REPOSITORY, discard, over_ssh, play, powered_on, qualified, ran

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(7200)]

SUITE = REPOSITORY / "tests" / "virtual" / "gate" / "live.suite.yml"
# a bench whose disk is copied stands still meanwhile
LIMIT = ("-e", "provision_boot_limit_s=1800", "-e", "restore_boot_limit_s=1800")
SPECS = REPOSITORY / "tests" / "virtual" / "guest"
needs_compiler = pytest.mark.skipif(
    not (shutil.which("make") and shutil.which("gcc")), reason="needs gcc and make on this machine"
)


# everything that a drop could leave changed: the loader's own modules are no file that anything writes
LOOK = Path(__file__).with_suffix(".look").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Bench:
    """The bench of one flavour."""

    flavour: str

    @property
    def suse(self) -> bool:
        return self.flavour == "rpm-suse"

    @property
    def host(self) -> str:
        return {"rpm": "vrpm", "rpm-suse": "vsuse", "uefi": "vuefi"}[self.flavour]

    @property
    def state(self) -> Path:
        return REPOSITORY / ".cache" / "bench" / self.host

    @property
    def inventory(self) -> Path:
        return REPOSITORY / "inventories" / f"virtual_{self.flavour.replace('-', '_')}"

    def ask(self, line: str, data: bytes = b"") -> str:
        """What a command prints on the bench."""
        return over_ssh(self.state, self.host, f"export LC_ALL=C; {line}", data=data, limit_s=1200).strip()

    def saved(self) -> str:
        if self.flavour == "uefi":
            return self.ask("tr -d '\\0\\7' < /sys/firmware/efi/efivars/LoaderEntryDefault-*")
        return re.findall(r"^saved_entry=(.*)$", self.ask("grub2-editenv list"), re.MULTILINE)[0]

    def reset(self) -> str:
        """The kernel that runs after a power cut."""
        return reset(BenchPlaces.of(self.state), limit_s=600).kernel

    def package(self, release: str) -> str:
        """The package of a kernel in the repository."""
        query = "[%{=NAME}-%{=VERSION}-%{=RELEASE} %{PROVIDENAME}\\n]"
        rows = self.ask(f"rpm -qp --qf '{query}' /var/lib/bench-repository/kernel-*.rpm").splitlines()
        return next(row.split()[0] for row in rows if row.endswith(f" kernel-uname-r({release})"))

    def kernel_drop(self, release: str) -> str:
        name, version, build = self.package(release).rsplit("-", 2)
        return f"driver: {{kernel: {{package: {name.removesuffix('-core')}, version: {version}-{build}}}}}\n"

    def provision(self, tmp_path: Path, drop: str, *more: object) -> tuple[int, str]:
        """Make the bench what a drop says; exit code and output."""
        file = tmp_path / "drop.yml"
        file.write_text(f"name: t\ndescription: of a test\n{drop}", encoding="utf-8")
        # Ansible would send a module again to a bench that lost its power and comes up
        words = ("-e", f"drop={file}", "-e", "prove_s=0", "-e", "ansible_ssh_retries=0", *LIMIT, *more)
        return play(tmp_path / "log", self.inventory, "provision.yml", *words)

    def restored(self, tmp_path: Path) -> str:
        """What is there after the bench was restored."""
        code, output = play(tmp_path / "log", self.inventory, "restore.yml", *LIMIT)
        assert code == 0, output[-3000:]
        return self.ask(LOOK)


@pytest.fixture(scope="module", params=["rpm", "rpm-suse", "uefi"])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    flavoured = Bench(request.param)
    discard(flavoured.state)
    flavoured.state.mkdir(parents=True)
    with powered_on(tmp_path_factory.mktemp("power") / "log", flavoured.inventory):
        yield flavoured


on_rpm = pytest.mark.parametrize("bench", ["rpm"], indirect=True)
on_uefi = pytest.mark.parametrize("bench", ["uefi"], indirect=True)
on_suse = pytest.mark.parametrize("bench", ["rpm-suse"], indirect=True)


@pytest.fixture(scope="module")
def kernels(bench: Bench) -> list[str]:
    """Releases in the bench's repository, oldest first: two with the same symbols, and a third."""
    names = bench.ask("rpm -qp --provides /var/lib/bench-repository/kernel-*.rpm")
    return re.findall(r"kernel-uname-r\((.*)\)", names)


SOURCES = {
    "virtio_scsi": ["drivers/scsi/virtio_scsi.c", "drivers/scsi/sd.h", "drivers/scsi/scsi_logging.h"],
    "virtio_blk": ["drivers/block/virtio_blk.c"],
}
"""The driver of an adapter, and that of the root drive, which is in the initramfs."""


def package(bench: Bench, release: str, folder: Path, name: str = "virtio_scsi") -> Path:
    """A driver as a vendor's package for a kernel, with a version."""
    # without the mark of support SUSE's modprobe loads no module
    more = 'MODULE_VERSION("1.0.1");\nMODULE_INFO(supported, "external");\n'
    module = driver_sources(folder, SOURCES[name]).module(name, "drop", more=more)
    bench.ask(f"mkdir -p /root/drop && cat > /root/drop/{name}.ko", module.read_bytes())
    bench.ask("cat > /root/drop/driver.spec", (SPECS / ("kmp.spec" if bench.suse else "kmod.spec")).read_bytes())
    build = f"--define 'uname {release}' --define 'module {name}' --define 'override 1'"
    bench.ask(f"rpmbuild -bb --quiet {build} --define 'file /root/drop/{name}.ko' /root/drop/driver.spec 2>&1")
    file = folder / (f"{name}-kmp-amd64-1.0-1.x86_64.rpm" if bench.suse else f"kmod-{name}-1.0-1.x86_64.rpm")
    words = ["ssh", "-F", bench.state / "ssh_config", bench.host, f"cat /root/rpmbuild/RPMS/*/{file.name}"]
    file.write_bytes(subprocess.run(words, capture_output=True, check=True, timeout=300).stdout)
    return file


@pytest.fixture(scope="module")
def kmod(bench: Bench, kernels: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package(bench, kernels[1], tmp_path_factory.mktemp("kmod"))


KINDS = [pytest.param("kernel", id="kernel"), pytest.param("kmod", marks=needs_compiler, id="kmod")]


@pytest.fixture
def drop(request: pytest.FixtureRequest, bench: Bench, kind: str, kernels: list[str]) -> str:
    """What a drop says: the newest kernel of the repository, or another driver for the running one."""
    if kind == "kmod":
        return f"driver: {{kmod: {{files: [{request.getfixturevalue('kmod')}], module: virtio_scsi}}}}\n"
    return bench.kernel_drop(kernels[-1])


@on_rpm
def test_the_running_kernel_is_a_package_and_its_entry_is_the_default(bench: Bench) -> None:
    release = bench.ask("uname -r")
    assert bench.ask(f"rpm -qf /lib/modules/{release}/vmlinuz").startswith("kernel-core-")
    assert bench.saved() == f"{bench.ask('cat /etc/machine-id')}-{release}"
    entry = bench.ask(f"cat /boot/loader/entries/{bench.saved()}.conf")
    assert f"\nlinux /boot/vmlinuz-{release}\n" in entry
    assert bench.saved()[0].isalpha()
    assert bench.ask(f"rpm -V $(rpm -qf /lib/modules/{release}/vmlinuz)") == ""


@on_uefi
def test_systemd_boot_is_found_by_its_variable_and_its_counted_entry_was_blessed(
    bench: Bench, tmp_path: Path
) -> None:
    code, output = ran(tmp_path / "log", "storqual", "facts", "-i", bench.inventory, "--json")
    assert code == 0, output[-3000:]
    facts = json.loads(output[output.index("{") :])[bench.host]
    kind = facts["kind"]
    assert [kind[name]["value"] for name in ("loader", "loader_entries", "loader_writes", "secure_boot")] == [
        *("systemd-boot", "/boot/loader/entries", "yes", "off"),
    ]
    assert "EFI variable LoaderInfo: systemd-boot" in kind["loader"]["evidence"]
    entry = f"{bench.ask('cat /etc/machine-id')}-{bench.ask('uname -r')}"
    assert bench.ask("ls /boot/loader/entries") == f"{entry}.conf"
    assert f"{entry}+" in bench.ask("tr -d '\\0' < /sys/firmware/efi/efivars/LoaderEntries-*")


ONCE = Path(__file__).with_suffix(".once").read_text(encoding="utf-8")


@on_uefi
def test_the_loader_boots_an_entry_once_and_a_kernel_that_comes_has_tries(bench: Bench, kernels: list[str]) -> None:
    older, running = kernels[0], bench.ask("uname -r")
    token = bench.ask("cat /etc/machine-id")
    bench.ask(f"dnf -q -y install {bench.package(older)}")
    assert f"{token}-{older}+3.conf" in bench.ask("ls /boot/loader/entries")
    bench.ask(ONCE.format(release=older, default=f"{token}-{running}"))
    assert bench.reset() == older
    assert "storqual.trial=1 panic=5" in bench.ask("cat /proc/cmdline")
    assert bench.ask("ls /sys/firmware/efi/efivars").count("LoaderEntryOneShot") == 0
    assert bench.reset() == running
    bench.ask(f"rm /boot/loader/entries/trial.conf; bootctl set-default ''; dnf -q -y remove {bench.package(older)}")
    assert bench.ask("ls /boot/loader/entries") == f"{token}-{running}.conf"


def test_a_campaign_without_a_kernel_drop_finds_the_planted_difference(bench: Bench, tmp_path: Path) -> None:
    words = ["--baseline", "installed", "--candidate", "limited", "--suite", SUITE, "--profile", "quick"]
    code, output, run = qualified(tmp_path / "runs", bench.inventory, *words)
    assert (code, json.loads((run / "verdict.json").read_bytes())["outcome"]) == (1, "FAIL"), output[-3000:]


@on_rpm
def test_a_kernel_rpm_makes_itself_the_default_and_leaves_it_dangling(bench: Bench, kernels: list[str]) -> None:
    before, older = bench.saved(), kernels[0]
    bench.ask(f"dnf -q -y install {bench.package(older)}")
    assert bench.saved() == f"{bench.ask('cat /etc/machine-id')}-{older}"
    assert bench.ask(f"test -s /boot/initramfs-{older}.img && rpm -V {bench.package(older)}") == ""
    bench.ask(f"dnf -q -y remove {bench.package(older)}")
    assert bench.saved().endswith(older)
    assert bench.ask("ls /boot/loader/entries") == f"{before}.conf"
    assert older not in bench.ask("ls /boot")
    assert bench.ask(f"find /lib/modules/{older} -name vmlinuz 2>/dev/null || true") == ""
    bench.ask(f"grub2-set-default {before}")


@on_rpm
def test_dnf_ends_well_without_an_initramfs_where_a_plugin_fails(bench: Bench, kernels: list[str]) -> None:
    before, older = bench.saved(), kernels[0]
    plugin = "/etc/kernel/install.d/30-fails.install"
    bench.ask(f"printf '#!/bin/sh\\nexit 1\\n' > {plugin} && chmod 755 {plugin}")
    assert "Complete!" in bench.ask(f"dnf -y install {bench.package(older)}")
    assert bench.saved().endswith(older)
    assert f"initramfs-{older}" not in bench.ask("ls /boot")
    bench.ask(f"rm {plugin} && kernel-install add {older} /lib/modules/{older}/vmlinuz && grub2-set-default {before}")
    assert f"initramfs-{older}.img" in bench.ask("ls /boot")


TRIAL = Path(__file__).with_suffix(".trial").read_text(encoding="utf-8")


@on_rpm
def test_a_trial_entry_boots_once_and_the_saved_entry_after_it(bench: Bench, kernels: list[str]) -> None:
    older, before = kernels[0], (bench.saved(), bench.ask("uname -r"))
    bench.ask(TRIAL.format(release=older))
    assert bench.reset() == older
    assert "storqual.trial=1 panic=5" in bench.ask("cat /proc/cmdline")
    # GRUB forgot it before the kernel ran
    assert "next_entry=\n" in bench.ask("grub2-editenv list") + "\n"
    assert bench.reset() == before[1]
    assert "storqual.trial" not in bench.ask("cat /proc/cmdline")
    assert bench.saved() == before[0]
    bench.ask(": > /boot/grub2/custom.cfg")


def test_a_kernel_of_the_repository_is_tried_once_and_leaves_no_trace(
    bench: Bench, kernels: list[str], tmp_path: Path
) -> None:
    backport, before, running = kernels[-1], bench.ask(LOOK), bench.ask("uname -r")
    drop = bench.kernel_drop(backport)
    code, output = bench.provision(tmp_path, drop)
    assert (code, bench.ask("uname -r")) == (0, backport), output[-3000:]
    # by its name, also where the first entry of the menu was the default
    assert running in bench.saved()
    # a kernel that panics at its start has the bench back by itself, without a trace in the loader
    code, output = bench.provision(tmp_path, f"{drop}virtual: {{panic_at_boot: true}}\n")
    assert code != 0
    assert f"kernel {backport} did not start in its trial boot" in output
    assert bench.ask("uname -r") != backport
    assert bench.restored(tmp_path) == before


LATEST = "s/^multiversion.kernels.*/multiversion.kernels = latest,running/"


@on_suse
def test_a_purge_of_old_kernels_waits_for_the_end_of_a_trial(
    bench: Bench, kernels: list[str], tmp_path: Path
) -> None:
    """It would remove the kernel that the bench came with, which is neither the newest nor the one on trial."""
    older, running, newest = kernels
    menu = bench.ask("cat /boot/grub2/grub.cfg")
    bench.ask(f"zypper -n install {bench.package(newest)}; sed -i '{LATEST}' /etc/zypp/zypp.conf")
    assert bench.ask("readlink /boot/vmlinuz; ls /boot/do_purge_kernels").split()[0] == f"vmlinuz-{newest}"
    # the new kernel comes first
    assert re.findall(r"/boot/vmlinuz-(\S+)", bench.ask("cat /boot/grub2/grub.cfg"))[0] == newest
    entry = re.findall(rf"'(gnulinux-(?:advanced-|{running}-)[^']*)'", menu)
    bench.ask(f"grub2-set-default '{entry[0]}>{entry[1]}'")
    before = bench.ask(LOOK)
    code, output = bench.provision(tmp_path, bench.kernel_drop(older))
    assert (code, bench.ask("uname -r")) == (0, older), output[-3000:]
    packages = set(map(bench.package, kernels))
    assert {line.removesuffix(".x86_64") for line in bench.ask("rpm -qa 'kernel-*'").splitlines()} == packages
    assert bench.ask("ls /boot/do_purge_kernels 2>/dev/null || true") == ""
    # the mark that was there is there again
    assert bench.restored(tmp_path) == before
    # and without a trial the service does remove what its settings do not keep
    bench.ask(f"zypper -n install --oldpackage {bench.package(older)}; sync")
    assert bench.reset() == running
    bench.ask("systemctl is-system-running --wait || true")
    assert bench.package(older) not in bench.ask("rpm -qa")
    bench.ask(f"rpm -e {bench.package(newest)}; grub2-editenv - unset saved_entry")
    assert bench.ask("cat /boot/grub2/grub.cfg") == menu


PACES = {False: 20, True: 18}
"""Requests a second of each drive: a tenth less where the candidate is slower."""


@pytest.mark.parametrize(("slower", "expected"), [(False, (0, "PASS")), (True, (1, "FAIL"))], ids=["same", "slow"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_drop_is_judged_in_a_campaign_and_leaves_no_trace(
    bench: Bench, tmp_path: Path, kind: str, drop: str, slower: bool, expected: tuple[int, str]
) -> None:
    before = bench.ask(LOOK)
    for arm, driver, pace in (("baseline", "", PACES[False]), ("candidate", drop, PACES[slower])):
        text = f"name: {arm}\ndescription: of a test\n{driver}virtual: {{iops_limit: {{all: {pace}}}}}\n"
        (tmp_path / f"{arm}.yml").write_text(text, encoding="utf-8")
    words = ["--baseline", tmp_path / "baseline.yml", "--candidate", tmp_path / "candidate.yml"]
    words += ["--suite", SUITE.with_name("paced.suite.yml"), "--profile", "quick"]
    words += ["--adapters", {"kernel": "fusion", "kmod": "vscsi"}[kind]]
    code, output, run = qualified(tmp_path / "runs", bench.inventory, *words)
    assert (code, json.loads((run / "verdict.json").read_bytes())["outcome"]) == expected, output[-3000:]
    assert bench.ask(LOOK) == before


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_power_cut_at_any_moment_of_a_trial_the_old_system_runs(
    bench: Bench, kernels: list[str], tmp_path: Path, kind: str
) -> None:
    drop, also = bench.kernel_drop(kernels[-1]), tmp_path / "hosts.yml"
    document = yaml.safe_load((bench.inventory / "hosts.yml").read_text(encoding="utf-8"))
    if kind == "kmod":
        # what the root drive needs is loaded by a boot
        (variables,) = document["benches"]["hosts"].values()
        variables["virtual_bench_state"] = str(bench.state)
        variables["storqual_adapters"]["root"] = ROOT
        file = package(bench, kernels[1], tmp_path, "virtio_blk")
        drop = f"driver: {{kmod: {{files: [{file}], module: virtio_blk}}}}\n"
    also.write_text(yaml.safe_dump(document), encoding="utf-8")
    before = bench.ask(LOOK)

    def work() -> None:
        code, output = bench.provision(tmp_path, drop, "-i", also)
        assert code == 0, output[-3000:]
        bench.restored(tmp_path)

    loader = "" if bench.flavour == "uefi" else "/boot/grub2"
    cut_a_trial(CutBench(bench.state, bench.host, loader, "virtio_blk", tmp_path), work)
    assert bench.ask(LOOK) == before


@needs_compiler
def test_a_driver_package_drives_its_adapter_and_leaves_no_trace(
    bench: Bench, kernels: list[str], kmod: Path, tmp_path: Path
) -> None:
    if bench.suse:
        bench.ask(f"zypper -n install --oldpackage {bench.package(kernels[0])}; rm /boot/do_purge_kernels")
    before = bench.ask(LOOK)
    code, output = bench.provision(tmp_path, f"driver: {{kmod: {{files: [{kmod}], module: virtio_scsi}}}}\n")
    assert code == 0, output[-3000:]
    assert bench.ask("cat /sys/module/virtio_scsi/version") == "1.0.1"
    # its scripts have linked it into the other kernel, which is not under test
    assert bench.ask("find /lib/modules -type l") == ""
    changed = set(bench.ask(LOOK).splitlines()) ^ set(before.splitlines())
    assert not [line for line in changed if "/boot/" in line or kernels[0] in line]
    assert bench.restored(tmp_path) == before


PANICS = {
    "init": "virtual: {panic_at_boot: true}\n",
    "load": "os: {cmdline: [modules_load=panics]}\n",
    "minute": "os: {cmdline: [modules_load=panics, panics.after_s=60]}\n",
}
"""Drops whose kernel panics before its first program, as a driver is loaded, and a minute later."""
PANIC = "Kernel panic - not syncing"


@needs_compiler
@pytest.mark.parametrize("moment", PANICS)
def test_after_a_panic_in_its_trial_a_bench_is_back_by_itself(bench: Bench, tmp_path: Path, moment: str) -> None:
    module = driver_sources(tmp_path, ()).whole_module(SPECS / "panics.c")
    bench.ask("install -D -m 644 /dev/stdin /lib/modules/$(uname -r)/extra/panics.ko; depmod", module.read_bytes())
    before, console = bench.ask(LOOK), VirtualConsole(BenchPlaces.of(bench.state))
    for number in range(int(os.environ.get("STORQUAL_PANICS", "1"))):
        mark = console.mark()
        code, output = bench.provision(tmp_path, PANICS[moment])
        # the trial of one that runs for a minute may have been proven by then
        while PANIC not in console.text_since(mark) or not logs_in(bench.host, bench.state / "ssh_config", 60):
            time.sleep(1)
        assert "storqual.trial=" not in bench.ask("cat /proc/cmdline"), output[-3000:]
        assert console.text_since(mark).count(PANIC) == 1
        print(f"{moment}: panic {number}, provision.yml ended with {code}")
    assert bench.restored(tmp_path) == before


@on_rpm
@needs_compiler
def test_a_kmod_rpm_reaches_the_other_kernel_and_wins_there_by_its_override_only(
    bench: Bench, kernels: list[str], tmp_path: Path
) -> None:
    older, newer, _ = kernels
    bench.ask("echo 'drivers+=\" scsi_debug \"' > /etc/dracut.conf.d/drop.conf")
    for release in (older, newer):
        bench.ask(f"dracut --force --quiet --kver {release} /boot/initramfs-{release}.img")
    sources = driver_sources(
        tmp_path, ["drivers/scsi/scsi_debug.c", "drivers/scsi/sd.h", "drivers/scsi/scsi_logging.h"]
    )
    module = sources.module(
        "scsi_debug", "drop", more="int storqual_drop(void);\nint storqual_drop(void) { return 1; }\n"
    )
    bench.ask("mkdir -p /root/drop && cat > /root/drop/scsi_debug.ko", module.read_bytes())
    bench.ask("cat > /root/drop/kmod.spec", (SPECS / "kmod.spec").read_bytes())
    images = f"sha256sum /boot/initramfs-{older}.img /boot/initramfs-{newer}.img"
    wins = f"modinfo -k {older} -F filename scsi_debug"
    for override in (0, 1):
        build = f"--define 'uname {newer}' --define 'module scsi_debug' --define 'override {override}'"
        bench.ask(f"rpmbuild -bb --quiet {build} --define 'file /root/drop/scsi_debug.ko' /root/drop/kmod.spec 2>&1")
        before = bench.ask(images).splitlines()
        bench.ask("rpm -i /root/rpmbuild/RPMS/*/kmod-scsi_debug-*.rpm 2>&1")
        link = f"/lib/modules/{older}/weak-updates/scsi_debug/scsi_debug.ko"
        assert bench.ask(f"readlink {link}") == f"/lib/modules/{newer}/extra/scsi_debug/scsi_debug.ko"
        assert ("weak-updates" in bench.ask(wins)) == bool(override)
        # the kernel that nobody tests has another initramfs where its driver is another one
        changed = [was != now for was, now in zip(before, bench.ask(images).splitlines(), strict=True)]
        assert changed == [bool(override), True]
        bench.ask("rpm -e kmod-scsi_debug 2>&1")
        assert bench.ask(f"ls -d {link} 2>/dev/null || true") == ""
