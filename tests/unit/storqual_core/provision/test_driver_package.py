# SPDX-License-Identifier: Apache-2.0
"""A driver as kmod RPM: refused before anything is changed, installed for one kernel, proven, removed again."""

import gzip
import itertools
import lzma
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign.declared import declared_document
from storqual.inputs import load_drop
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import StorqualError, ToolError
from storqual_core.kit.lock import read_saved
from storqual_core.kit.machine import Machine
from storqual_core.kit.results import PartialError
from storqual_core.provision.apply import Apply, ApplyRequest, ProvisionedBench
from storqual_core.provision.boot import System
from storqual_core.provision.engine import Call
from storqual_core.provision.initramfs import builds_in
from storqual_core.provision.kernel_copies import KernelCopies, read_state
from storqual_core.provision.kernel_package import install_package
from storqual_core.provision.restore import Tools, restore
from tests.support.fake_kmod import (
    CRCS,
    MACHINE,
    NAME,
    NEWER,
    NEWER_CRCS,
    OLDER,
    RUNS,
    KmodBench,
    module,
    package_bytes,
)
from tests.support.power_cut import Mains, every_cut
from tests.support.site_blocks import DOCS, blocks

OVERRIDE = f"override {NAME} * weak-updates/{NAME}\n"
LABEL = f"kmod-{NAME}-47.0-1.el9.{MACHINE}"


def make(root: Path) -> KmodBench:
    root.mkdir(exist_ok=True)
    variables = {"saved_entry": f"token-{RUNS}", "kernelopts": "root=/dev/sda ro"}
    return KmodBench(root / "bench", [OLDER, RUNS, NEWER], RUNS, variables=variables)


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake bench's packages are on no disk that could lose them."""
    for name in ("sync", "fsync"):
        monkeypatch.setattr(os, name, lambda *_: None)


@pytest.fixture
def bench(tmp_path: Path) -> KmodBench:
    """Its root drive is behind the driver, so that another build takes a boot."""
    return make(tmp_path)


def package(bench: KmodBench, **words: Any) -> str:
    """A package file with the module of `release`, and an override where the packages of vendors have one."""
    release, build = words.get("release", RUNS), words.get("build", "BBBB")
    content = words.get("content") or module(build, release, words.get("crcs", CRCS), **words.get("fields", {}))
    place = f"/lib/modules/{release}/extra/{NAME}/{words.get('name', NAME)}.ko{words.get('ending', '')}"
    files = {place: words.get("pack", bytes)(content)}
    if words.get("override", OVERRIDE):
        files[f"/etc/depmod.d/kmod-{NAME}.conf"] = words.get("override", OVERRIDE).encode()
    path = bench.folder / "drop" / f"{words.get('label', LABEL)}.rpm"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(package_bytes(files))
    return str(path)


def apply(
    bench: KmodBench, file: str = "", runner: Any = None, resume: Any = None, *, check: bool = False, **kmod: Any
) -> dict[str, Any]:
    """One call of the module, for a drop with this package, or (without) for the other arm."""
    spec: dict[str, Any] = {"as_found": {"driver": {"": ["kmod"]}}}
    if file:
        named = {} if "driver_disk" in kmod else {"files": [file]}
        spec = {"driver": {"kmod": {**named, "module": NAME, "as": "package", **kmod}}}
    declared = declared_document({**spec, "expected_drivers": {"hba0": NAME}})
    state = bench.folder / "state"
    for each in declared["files"]:
        place = state / each["to"]
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            shutil.copyfile(each["from"], place)
    where = {"only": ["driver"], "state_dir": str(state), "check": check}
    request = ApplyRequest(declared, {}, "hardware", resume=resume or {}, **where)
    system = replace(bench.system, runner=runner or bench)
    return Apply(request, ProvisionedBench(runner or bench, Machine(str(bench.folder)), system)).run()


def arm(bench: KmodBench, file: str = "", **kmod: Any) -> dict[str, Any]:
    """A session of an arm: applied, booted where that is needed, and applied on."""
    result = apply(bench, file, **kmod)
    if result["boot_needed"]:
        bench.reboot()
        result = apply(bench, file, resume=result["resume"], **kmod)
    assert not result["boot_needed"]
    return result


def put_back(bench: KmodBench) -> list[str]:
    tools = Tools(bench, bench.system, machine=Machine(str(bench.folder)))
    steps: list[str] = []
    for _ in range(3):
        result = restore(str(bench.folder / "state"), tools, check=False)
        steps += result["steps"]
        if result["restored"]:
            return steps
        bench.reboot()
        tools = Tools(bench, bench.system, machine=Machine(str(bench.folder)))
    raise AssertionError(result)


def as_it_is(bench: KmodBench) -> tuple[Any, ...]:
    """Everything that a drop may not leave changed."""
    folders = sorted(str(path.relative_to(bench.folder)) for path in (bench.folder / "lib").rglob("*"))
    return read_state(bench.folder), folders, bench.files(), dict(bench.variables), set(bench.rpms)


def others(bench: KmodBench) -> dict[str, str]:
    """What is of the kernels that are not under test."""
    return {path: words for path, words in read_state(bench.folder).items() if OLDER in path or NEWER in path}


# installed as its customers do


@pytest.mark.parametrize("release", [RUNS, OLDER], ids=["built for this kernel", "linked"])
def test_a_package_is_tried_proven_and_gone_again_without_a_trace(bench: KmodBench, release: str) -> None:
    before, beside = as_it_is(bench), others(bench)
    result = apply(bench, package(bench, release=release))
    assert result["boot_needed"]
    # until its boot has shown it, the default boots what it booted
    assert bench.build(RUNS) == "AAAA"
    assert builds_in(str(bench.boot / f"initramfs-{RUNS}.img"), [NAME])[NAME].srcversion == "AAAA"
    native = {path: words for path, words in others(bench).items() if f"{release}/extra/{NAME}" not in path}
    assert {path: words for path, words in native.items() if beside.get(path) != words} == {}
    bench.reboot()
    result = apply(bench, package(bench, release=release), resume=result["resume"])
    (driver, *_) = [
        entry
        for entry in result["settings"]
        if entry["name"] == f"driver.module.{NAME}" and entry["proof"].startswith("one build")
    ]
    assert driver["proof"] == "one build in these places: loaded, disk, initramfs"
    assert (bench.build(RUNS), driver["read_back"]) == ("BBBB", "BBBB 47.0")
    native = {path: words for path, words in others(bench).items() if f"{release}/extra/{NAME}" not in path}
    assert {path: words for path, words in native.items() if beside.get(path) != words} == {}
    steps = put_back(bench)
    assert any("are as before the package" in step for step in steps)
    assert as_it_is(bench) == before
    assert read_saved(bench.folder / "state") is None
    assert bench.build(RUNS) == "AAAA"


def test_what_a_package_holds_and_reaches_is_told_before_it_is_installed(bench: KmodBench) -> None:
    steps = apply(bench, package(bench, release=OLDER, fields={"signer": "ACME", "supported": "external"}))["steps"]
    told = steps.index(f"{LABEL} installed")
    before = "\n".join(steps[:told])
    for words in (
        f"extra/{NAME}/{NAME}.ko for kernel {OLDER}, build BBBB 47.0, module signed by 'ACME', SUSE's mark: external",
        OVERRIDE.strip(),
        f"reaches the kernels {OLDER}, {RUNS}, and not {NEWER}: the kernel differs in scsi_host_alloc",
        f"{LABEL} needs kmod >= 20",
        "signed with key db42a60e",
    ):
        assert words in before


def test_the_initramfs_of_the_trial_is_the_one_that_the_packages_scripts_made(bench: KmodBench) -> None:
    apply(bench, package(bench))
    (image,) = bench.boot.glob("initrd.storqual-*")
    assert b"serial" in image.read_bytes()
    assert int(bench.serial) == 5  # three as found, two kernels of one symbol table by the scripts


def test_arms_change_by_one_installation_and_one_removal(bench: KmodBench) -> None:
    file = package(bench)
    before = None
    for _ in range(2):
        bench.seen.clear()
        arm(bench, file)
        installed = [line for line in bench.seen if line.startswith(("dnf -y", "rpm -e"))]
        assert len(installed) == 1
        assert bench.build(RUNS) == "BBBB"
        bench.seen.clear()
        arm(bench)
        removed = [line for line in bench.seen if line.startswith(("dnf -y", "rpm -e"))]
        assert removed == [f"rpm -e -- {LABEL}"]
        assert bench.build(RUNS) == "AAAA"
        now = others(bench)
        assert before in (None, now)
        before = now
    # nothing is installed or indexed a second time for what is there
    arm(bench, file)
    bench.seen.clear()
    arm(bench, file)
    assert not [line for line in bench.seen if line.split()[0] in ("dnf", "depmod")]


@pytest.mark.parametrize("ending", ["", ".xz", ".gz"])
def test_a_module_taken_out_of_its_package_goes_the_way_of_prebuilt_ones(bench: KmodBench, ending: str) -> None:
    before, beside = as_it_is(bench), others(bench)
    pack = {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress}[ending]
    bench.packings = "-XZ -ZLIB -ZSTD"
    # without an override, which it does not need
    arm(bench, package(bench, release=OLDER, override="", ending=ending, pack=pack), **{"as": "module"})
    assert bench.chosen(RUNS) == f"updates/storqual/{NAME}.ko"
    assert (bench.build(RUNS), bench.rpms) == ("BBBB", before[4])
    put_back(bench)
    assert (bench.build(RUNS), bench.rpms) == ("AAAA", before[4])
    assert (bench.files(), others(bench)) == (before[2], beside)
    assert read_saved(bench.folder / "state") is None


# refused before anything is changed


def _other_vendor(bench: KmodBench) -> None:
    place = bench.folder / "lib" / "modules" / RUNS / "extra" / "acme" / f"{NAME}.ko"
    place.parent.mkdir(parents=True)
    place.write_bytes(module("CCCC", RUNS))
    folder = bench.folder / "etc" / "depmod.d"
    folder.mkdir(parents=True)
    (folder / "acme.conf").write_text(f"override {NAME} * extra/acme\n")
    bench.depmod(RUNS)


def _enforced(bench: KmodBench) -> None:
    place = bench.folder / "sys" / "kernel" / "security"
    place.mkdir(parents=True)
    (place / "lockdown").write_text("none [integrity] confidentiality\n")
    (bench.folder / "proc" / "keys").write_text(
        "0a I--- 1 perm 1f0f0000 0 0 asymmetri Red Hat driver key: bf57: X509.rsa 2fc5 []\n"
    )


def _unsupported(bench: KmodBench) -> None:
    place = bench.folder / "lib" / "modprobe.d"
    place.mkdir(parents=True)
    (place / "10-unsupported-modules.conf").write_text("allow_unsupported_modules 0\n")


def _there(bench: KmodBench) -> None:
    bench.rpms.add(f"kmod-{NAME}-46.0-1.el9.{MACHINE}")


def _boot_not_mounted(bench: KmodBench) -> None:
    """What lies in the folder below it are files of an earlier installation."""
    (bench.folder / "etc" / "fstab").write_text("UUID=1 / xfs\nUUID=2 /boot xfs\n")


def _no_trial(bench: KmodBench) -> None:
    wants = bench.folder / "etc" / "systemd" / "system" / "multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "grub2-once.service").symlink_to("/usr/lib/systemd/system/grub2-once.service")


def _no_zstd(bench: KmodBench) -> None:
    bench.packings = "+XZ +ZLIB -ZSTD"


@pytest.mark.parametrize(
    ("words", "arrange", "sentence"),
    [
        pytest.param({"release": OLDER, "override": ""}, None, "would be installed and change nothing", id="loses"),
        pytest.param({}, _other_vendor, "acme.conf says `override mpt3sas \\* extra/acme`", id="other vendor"),
        pytest.param(
            {"release": NEWER, "crcs": NEWER_CRCS}, None, "the kernel differs in scsi_host_alloc", id="newer minor"
        ),
        pytest.param(
            {"release": "4.18.0-553.el8_10.x86_64", "crcs": {**CRCS, "gone_in_9": 7}},
            None,
            "the kernel lacks gone_in_9",
            id="EL8 on EL9",
        ),
        pytest.param(
            {"label": f"kmod-{NAME}-47.0-1.el9.s390x"}, None, "expected one package in each file", id="arch"
        ),
        pytest.param({"name": "other"}, None, "expected module mpt3sas, found other", id="no such module"),
        pytest.param({"ending": ".zst"}, _no_zstd, "cannot read \\(it needs \\+ZSTD", id="packed with zstd"),
        pytest.param({}, _enforced, "is not signed, and this kernel loads signed modules only", id="unsigned"),
        pytest.param(
            {"fields": {"signer": "ACME"}},
            _enforced,
            "signed by 'ACME', a key that this machine does",
            id="unknown key",
        ),
        pytest.param({}, _unsupported, "allow_unsupported_modules 0", id="unsupported"),
        pytest.param({}, _boot_not_mounted, "file system at /boot, which is not mounted", id="/boot not mounted"),
        pytest.param({}, _no_trial, "would be booted for ever", id="no trial possible"),
        pytest.param({}, _there, "kmod-mpt3sas-46.0-1.*would take its place", id="other version there"),
    ],
)
def test_a_package_that_could_not_come_into_effect_is_refused(
    bench: KmodBench, words: dict[str, Any], arrange: Any, sentence: str
) -> None:
    if arrange:
        arrange(bench)
    before = as_it_is(bench)
    with pytest.raises(StorqualError, match=sentence):
        apply(bench, package(bench, **words))
    assert as_it_is(bench) == before
    assert not [line for line in bench.seen if line.startswith(("dnf -y", "rpm -e", "depmod"))]


@pytest.mark.parametrize(
    ("words", "arrange"),
    [
        ({"fields": {"signer": "Red Hat driver key"}}, _enforced),
        ({"fields": {"supported": "external"}}, _unsupported),
        ({"release": RUNS, "override": ""}, None),
    ],
)
def test_one_that_the_policy_of_the_bench_allows_is_taken(
    bench: KmodBench, words: dict[str, Any], arrange: Any
) -> None:
    if arrange:
        arrange(bench)
    assert apply(bench, package(bench, **words))["boot_needed"]


@pytest.mark.parametrize(
    ("attribute", "value", "sentence"),
    [
        ("holder", "4711", "the package lock is held by process 4711"),
        ("also", "Removing:\n kmod-old 1.0-1\n", "would also"),
        ("checked", "Header SHA256 digest: BAD", "is damaged or was changed"),
    ],
)
def test_a_transaction_that_would_not_come_to_it_is_refused(
    bench: KmodBench, attribute: str, value: str, sentence: str
) -> None:
    if attribute == "also":
        value = f"Removing:\n kmod-old {MACHINE} 1.0-1 @System 1 M\n"
    setattr(bench, attribute, value)
    before = as_it_is(bench)
    with pytest.raises(StorqualError, match=sentence):
        apply(bench, package(bench))
    assert as_it_is(bench) == before


def test_check_mode_says_what_would_come_and_touches_nothing(bench: KmodBench) -> None:
    before, file = as_it_is(bench), package(bench)
    assert any("would be made" in step for step in apply(bench, file, check=True)["steps"])
    assert as_it_is(bench) == before
    with pytest.raises(ToolError, match="change nothing"):
        apply(bench, package(bench, release=OLDER, override=""), check=True)
    assert not [line for line in bench.seen if line.startswith(("dnf", "rpm -e", "depmod"))]


def test_images_that_could_not_be_put_back_are_a_refusal(bench: KmodBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(System, "kernels", lambda _system: {RUNS: "linux/initrd"})
    with pytest.raises(ToolError, match="where what a package's scripts make of it could be put back"):
        apply(bench, package(bench))


def test_a_bench_whose_packages_are_of_another_kind_is_told_so(bench: KmodBench) -> None:
    (bench.folder / "usr" / "bin" / "rpm").unlink()
    with pytest.raises(ToolError, match="the packages of this bench are those of dpkg"):
        apply(bench, package(bench))


def test_a_file_that_is_no_package_is_told(bench: KmodBench) -> None:
    file = package(bench)
    os.truncate(file, 100)
    with pytest.raises(ToolError, match="is no RPM package, or is cut"):
        apply(bench, file)


# what goes wrong on the way


def test_a_script_that_fails_leaves_nothing_behind(bench: KmodBench) -> None:
    before = as_it_is(bench)
    bench.failing_post = "warning: %post(kmod-mpt3sas-47.0-1.el9.x86_64) scriptlet failed, exit status 1\n"
    with pytest.raises(PartialError, match=r"%post.*failed.*the bench is as it was"):
        apply(bench, package(bench))
    assert as_it_is(bench) == before


def test_a_package_whose_links_did_not_come_is_removed_again(bench: KmodBench) -> None:
    """The scripts decide otherwise than the symbols do."""
    before = as_it_is(bench)
    bench.weak_modules = lambda **_words: None  # type: ignore[method-assign]
    with pytest.raises(PartialError, match="is installed and changes nothing"):
        apply(bench, package(bench, release=OLDER))
    bench.__dict__.pop("weak_modules")
    assert as_it_is(bench) == before


@pytest.mark.parametrize("release", [RUNS, OLDER, f"5.14.0-427.el9.{MACHINE}"], ids=["this", "other", "none of here"])
def test_a_transaction_that_broke_off_leaves_no_file_though_rpm_knows_none(
    bench: KmodBench, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    before, front_end = as_it_is(bench), bench._front_end

    def broken(words: Any) -> tuple[str, int]:
        told = front_end(words)
        if "--assumeno" in words:
            return told
        bench.rpms.discard(LABEL)
        return "Error: Transaction failed", 1

    monkeypatch.setattr(bench, "_front_end", broken)
    with pytest.raises(PartialError, match="the bench is as it was"):
        apply(bench, package(bench, release=release))
    assert as_it_is(bench) == before


def test_a_package_for_a_kernel_that_is_not_here_comes_and_goes(bench: KmodBench) -> None:
    before, release = as_it_is(bench), f"5.14.0-427.el9.{MACHINE}"
    arm(bench, package(bench, release=release))
    assert (loaded(bench), bench.build(RUNS)) == ("BBBB", "BBBB")
    put_back(bench)
    assert as_it_is(bench) == before


@pytest.mark.parametrize("attribute", ["leaves", "failing_preun"])
def test_what_a_removal_leaves_goes_all_the_same(bench: KmodBench, attribute: str) -> None:
    before = as_it_is(bench)
    arm(bench, package(bench, release=OLDER))
    setattr(bench, attribute, True)
    put_back(bench)
    assert as_it_is(bench) == before


def test_what_another_party_changed_meanwhile_stays_and_is_named(bench: KmodBench) -> None:
    arm(bench, package(bench))
    place = bench.boot / f"initramfs-{OLDER}.img"
    place.write_bytes(b"of another party")
    steps = put_back(bench)
    assert place.read_bytes() == b"of another party"
    assert any(f"another party changed /boot/initramfs-{OLDER}.img" in step for step in steps)


@pytest.mark.slow
def test_a_power_cut_at_any_moment_ends_in_the_bench_as_it_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an installation, the trial and a removal; the new driver never runs but in its trial."""
    # each program that goes on has another number, so that it does not write over what was left
    numbers = itertools.count(5000)
    monkeypatch.setattr(os, "getpid", lambda: next(numbers))
    file = package(make(tmp_path / "file"), release=OLDER)

    def work(bench: KmodBench, mains: Mains) -> None:
        runner = mains.runner(bench)
        result = apply(bench, file, runner)
        bench.reboot()
        apply(bench, file, runner, result["resume"])
        apply(bench, "", runner)

    cuts = 0
    for bench in every_cut(tmp_path, make, work):
        cuts += 1
        bench.reboot()
        on_trial = any("storqual.trial" in word for word in bench.system.arguments())
        assert bench.running == RUNS
        loaded = (bench.folder / "sys" / "module" / NAME / "srcversion").read_text().strip()
        assert on_trial or loaded == "AAAA", f"cut {cuts}"
        put_back(bench)
        fresh = make(bench.folder / "fresh")
        fresh_state, now = as_it_is(fresh), as_it_is(bench)
        assert now[1] == fresh_state[1]
        assert now[2:] == fresh_state[2:], f"cut {cuts}"
        assert now[0] == fresh_state[0], f"cut {cuts}"
        assert read_saved(bench.folder / "state") is None
        assert not KernelCopies(Machine(str(bench.folder)), str(bench.folder / "state")).kernel
    assert cuts >= 80


def test_contexts_of_other_kernels_files_are_put_back(bench: KmodBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were made anew have lost theirs."""
    contexts: dict[tuple[str, int], bytes] = {}
    place = bench.boot / f"initramfs-{OLDER}.img"
    wanted = b"system_u:object_r:boot_t:s0"

    def key(path: Any) -> tuple[str, int]:
        # a file that is replaced is another one
        return str(path), Path(path).lstat().st_ino

    def read(path: Any, _name: str, **_options: Any) -> bytes:
        if key(path) not in contexts:
            raise OSError
        return contexts[key(path)]

    def write(path: Any, _name: str, value: bytes, **_options: Any) -> None:
        contexts[key(path)] = value.rstrip(b"\0")

    monkeypatch.setattr(os, "getxattr", read)
    monkeypatch.setattr(os, "setxattr", write)
    write(place, "", wanted)
    apply(bench, package(bench))
    assert read(place, "") == wanted


# the page for those who ship such packages


def test_the_page_of_drops_as_rpm_is_followed(bench: KmodBench) -> None:
    page = DOCS / "how-to" / "driver-developer" / "drop-as-rpm.md"
    shown = [block for block in blocks(page) if block.title.startswith("drops/") and "files:" in block.text]
    texts = [line for block in blocks(page) if block.language == "text" for line in block.text.splitlines()]
    source = package(bench, release=OLDER)
    assert len(shown) == 2
    for block in shown:
        file = bench.folder / block.title
        file.parent.mkdir(exist_ok=True)
        file.write_text(block.text)
        ((_, (entry, *_)),) = [item for item in load_drop(file).sections.items() if item[0] == "driver"]
        kmod = {**entry.settings["kmod"]}
        (named,) = kmod.pop("files")
        assert source.endswith(named)
        before = as_it_is(bench)
        steps = [*apply(bench, source, **kmod)["steps"]]
        bench.reboot()
        steps += [*arm(bench, source, **kmod)["steps"], *put_back(bench)]
        if kmod["as"] == "package":
            assert [text for text in texts if not any(text in step for step in steps)] == []
            assert as_it_is(bench) == before
        else:
            assert not any("installed" in step for step in steps)


# a driver that can be loaded again where it is


@pytest.fixture
def data(tmp_path: Path) -> KmodBench:
    """A bench that boots without the driver, whose adapter has no drive."""
    return make_data(tmp_path)


def make_data(root: Path) -> KmodBench:
    bench = make(root)
    (bench.folder / "proc" / "self" / "mountinfo").write_text("22 1 252:0 / / rw - ext4 /dev/vda rw\n")
    for place in ("block/sda", "class/block/sda", "dev/block/8:0"):
        (bench.folder / "sys" / place).unlink()
    shutil.rmtree(bench.folder / "sys" / "devices" / "pci0000:00" / "0000:00:10.0" / "host0")
    bench.in_initramfs = False
    for kernel in bench.kernels:
        bench.dracut(kernel)
    return bench


def loaded(bench: KmodBench) -> str:
    return (bench.folder / "sys" / "module" / NAME / "srcversion").read_text().strip()


def test_a_driver_without_which_the_bench_runs_is_loaded_again(data: KmodBench) -> None:
    before, beside = as_it_is(data), others(data)
    result = apply(data, package(data))
    assert not result["boot_needed"]
    assert (loaded(data), data.build(RUNS)) == ("BBBB", "BBBB")
    assert others(data) == beside
    assert not apply(data, package(data))["changed"]
    apply(data)
    assert (loaded(data), data.build(RUNS)) == ("AAAA", "AAAA")
    apply(data, package(data))
    put_back(data)
    assert loaded(data) == "AAAA"
    assert as_it_is(data) == before


@pytest.mark.slow
def test_a_power_cut_while_such_a_driver_comes_and_goes_ends_as_it_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = itertools.count(5000)
    monkeypatch.setattr(os, "getpid", lambda: next(numbers))
    file = package(make_data(tmp_path / "file"))

    def work(bench: KmodBench, mains: Mains) -> None:
        runner = mains.runner(bench)
        apply(bench, file, runner)
        apply(bench, "", runner)

    cuts = 0
    for bench in every_cut(tmp_path, make_data, work):
        cuts += 1
        bench.reboot()
        put_back(bench)
        fresh = as_it_is(make_data(bench.folder / "fresh"))
        assert as_it_is(bench) == fresh, f"cut {cuts}"
        assert loaded(bench) == "AAAA"
    assert cuts >= 40


def test_the_initramfs_of_an_arm_is_made_once(bench: KmodBench) -> None:
    file = package(bench)
    made = [step for step in arm_steps(bench, file) if "initrd.storqual" in step]
    again = [step for step in arm_steps(bench, file) if "initrd.storqual" in step]
    assert any("made from" in step for step in made)
    assert not any("made from" in step for step in again)
    assert any("made of the same" in step for step in again)
    # another initramfs of the distribution is another base
    arm(bench)
    bench.dracut(RUNS)
    assert any("made from" in step for step in apply(bench, file)["steps"])


def arm_steps(bench: KmodBench, file: str) -> list[str]:
    """What is done for an arm after the other one."""
    arm(bench)
    return list(arm(bench, file)["steps"])


@pytest.mark.parametrize("package_manager", ["dnf", "zypper"])
def test_a_transaction_of_another_party_is_named_with_its_command(bench: KmodBench, package_manager: str) -> None:
    file = package(bench)
    arm(bench, file)
    bench.rpms.add(f"tuned-2.24-1.el9.{MACHINE}")
    if package_manager == "zypper":
        history = bench.folder / "var" / "log" / "zypp" / "history"
        history.parent.mkdir(parents=True)
        history.write_text(
            "2026-11-26 10:00:00|command|root@bench|'zypper' 'in' 'tuned'|\n"
            f"2026-11-26 10:00:09|install|tuned|2.24-1.el9|{MACHINE}||repo|abc|\n"
        )
    told = f"another party installed tuned-2.24-1.el9.{MACHINE} since the last step"
    by = " (2026-11-26 10:00:09: root@bench 'zypper' 'in' 'tuned')" if package_manager == "zypper" else ""
    assert f"{told}{by}" in apply(bench, file)["drift"]


def test_a_kernel_is_not_installed_while_a_driver_package_is(bench: KmodBench) -> None:
    arm(bench, package(bench))
    kernel = f"5.14.0-600.1.1.el9_6.{MACHINE}"
    files = [f"/p/{name}-{kernel}.rpm" for name in ("kernel-core", "kernel-modules")]
    with pytest.raises(PartialError, match=f"{LABEL} is installed for a trial"):
        install_package("kernel-core", "", files, Call(str(bench.folder / "state"), "provision"), bench.system)


def test_why_a_module_was_not_linked_is_told_in_the_words_of_its_script(
    bench: KmodBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = f"Module {NAME}.ko from kernel {OLDER} is not compatible with kernel {RUNS} in symbols: scsi_done"

    def answer(argv: list[str], **options: Any) -> Completed:
        if argv[0] == "weak-modules":
            assert options["send"] == f"/lib/modules/{OLDER}/extra/{NAME}/{NAME}.ko\n".encode()
            return Completed(tuple(argv), 0, said, "", 0.0)
        return bench(argv, **options)

    monkeypatch.setattr(bench, "weak_modules", lambda **_words: None)
    with pytest.raises(PartialError, match="weak-modules: it differs in scsi_done"):
        apply(bench, package(bench, release=OLDER), answer)


# a driver disk


def disk(bench: KmodBench, *packages: str) -> str:
    if shutil.which("xorriso") is None:
        pytest.skip("xorriso is not installed")
    tree = bench.folder / "tree"
    folder = tree / "rpms" / MACHINE
    folder.mkdir(parents=True, exist_ok=True)
    (tree / "rhdd3").write_text("Driver Update Disk version 3\n")
    for file in packages:
        shutil.copy(file, folder)
    made = bench.folder / "drop" / "dd-mpt3sas.iso"
    words = ["xorriso", "-as", "mkisofs", "-quiet", "-R", "-V", "OEMDRV", "-o", str(made), str(tree)]
    subprocess.run(words, check=True, capture_output=True)
    return str(made)


def test_the_package_of_a_driver_disk_for_this_kernel_is_found(bench: KmodBench) -> None:
    before, other = as_it_is(bench), f"kmod-{NAME}-47.0-1.el9_5.{MACHINE}"
    image = disk(
        bench,
        package(bench, release=OLDER),
        package(bench, release=NEWER, crcs=NEWER_CRCS, label=other),
        package(bench, name="hba", label=f"kmod-hba-1-1.el9.{MACHINE}"),
        package(bench, label=f"kmod-{NAME}-47.0-1.el9.s390x"),
    )
    result = arm(bench, image, driver_disk=image)
    assert (bench.build(RUNS), bench.rpms - before[4]) == ("BBBB", {LABEL})
    assert not result["boot_needed"]
    put_back(bench)
    assert as_it_is(bench) == before


def test_a_driver_disk_without_one_for_this_kernel_is_refused_with_what_it_has(bench: KmodBench) -> None:
    image = disk(bench, package(bench, release=NEWER, crcs=NEWER_CRCS))
    with pytest.raises(ToolError, match=f"no package with {NAME} for kernel {RUNS}.*differs in scsi_host_alloc"):
        apply(bench, image, driver_disk=image)
    empty = disk(bench)
    (bench.folder / "tree" / "rpms" / MACHINE / f"{LABEL}.rpm").unlink()
    with pytest.raises(ToolError, match="it has no package for"):
        apply(bench, disk(bench), driver_disk=empty)
