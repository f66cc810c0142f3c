# SPDX-License-Identifier: Apache-2.0
"""Builds that come with a boot: an initramfs of their own, one boot, then the disk; and every way back."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.kit.lock import read_saved
from storqual_core.kit.results import PartialError, TrialFailedError
from storqual_core.provision.driver_build import (
    BuildRequest,
    WantedBuild,
    check_build,
    provision_build,
    remove_builds,
    stage_build,
    unstage_builds,
)
from storqual_core.provision.engine import Call
from storqual_core.provision.initramfs import builds_in
from storqual_core.provision.options import OptionsBench
from storqual_core.provision.restore import Tools, restore
from storqual_core.tools import kmod
from tests.support.adapter_bench import KERNEL
from tests.support.build_bench import PLACE, TrialBench, module_file
from tests.support.fake_boot import boot_step
from tests.support.power_cut import every_cut

pytestmark = pytest.mark.slow

NATIVE = f"boot/initrd.img-{KERNEL}"


@pytest.fixture
def bench(tmp_path: Path) -> TrialBench:
    """A bench whose initramfs carries the driver."""
    return TrialBench(tmp_path)


def prebuilt(bench: TrialBench, build: str = "BBBB") -> str:
    place = bench.root / f"{build}/hba.ko"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(module_file(build))
    return str(place)


def build(bench: TrialBench, file: str = "", runner: Any = None, **more: Any) -> dict[str, Any]:
    call = Call(str(bench.root / "state"), "r1", more.pop("check", False))
    on, staged = OptionsBench(runner or bench, bench.machine), more.pop("staged", False)
    if more.pop("as_found", False):
        return unstage_builds(call, on) if staged else remove_builds(call, on)
    request = BuildRequest("hba", files=[file] if file else [], call=call, **more)
    return stage_build(request, on, bench.system) if staged else provision_build(request, on)


def boot(bench: TrialBench, state: str, **words: Any) -> dict[str, Any]:
    return boot_step(bench.system, str(bench.root / "state"), state, **words)


def try_it(bench: TrialBench, file: str) -> dict[str, Any]:
    """What the role does: stage, boot once, prove, put on disk."""
    staged = build(bench, file, staged=True)
    if staged["boots"]:
        boot(bench, "trial", kernel=KERNEL, mark="m1", initramfs=staged["initramfs"])
        bench.reboot()
        boot(bench, "verify", kernel=KERNEL, mark="m1", initramfs=staged["initramfs"], modules=["hba"])
    return build(bench, file)


def put_back(bench: TrialBench) -> dict[str, Any]:
    return restore(str(bench.root / "state"), Tools(bench, bench.system, machine=bench.machine), check=False)


def restore_fully(bench: TrialBench) -> None:
    """What the role restore does: restore, boot where that is needed, restore."""
    if put_back(bench)["reboot"]:
        bench.reboot()
        assert put_back(bench)["restored"]


def as_found(bench: TrialBench) -> None:
    """The bench is what it was before all this."""
    assert bench.loaded == "AAAA"
    assert bench.on_disk == "AAAA"
    assert (bench.root / NATIVE).read_bytes() == bench.native_image
    assert not list((bench.root / "boot").glob("initrd.storqual*"))
    assert read_saved(bench.root / "state") is None
    assert bench.system.loader.custom_text() is None


def test_a_build_is_booted_once_proven_and_gone_again(bench: TrialBench) -> None:
    file = prebuilt(bench)
    result = try_it(bench, file)
    (entry,) = result["settings"]
    assert entry["proof"] == "one build in these places: loaded, disk, initramfs"
    assert (entry["before"], entry["read_back"]) == ("AAAA 2.0", "BBBB 2.0")
    assert (entry["changed"], entry["proven"]) == (True, True)
    assert {place: found["srcversion"] for place, found in result["identifiers"].items()} == {
        "loaded": "BBBB",
        "disk": "BBBB",
        "initramfs": "BBBB",
    }
    seen = len(bench.seen)
    staged = build(bench, file, staged=True)
    assert (staged["boots"], staged["changed"], staged["drift"]) == (False, False, [])
    assert not build(bench, file)["changed"]
    assert not any(line.split()[0] in ("modprobe", "depmod") for line in bench.seen[seen:])
    restore_fully(bench)
    as_found(bench)


def test_nothing_lies_where_the_default_looks_before_the_boot_has_shown_it(bench: TrialBench) -> None:
    staged = build(bench, prebuilt(bench), staged=True)
    assert staged["boots"]
    assert (bench.root / NATIVE).read_bytes() == bench.native_image
    assert bench.on_disk == "AAAA"
    image = bench.root / "boot" / staged["initramfs"]
    assert builds_in(str(image), ["hba"])["hba"].srcversion == "BBBB"  # type: ignore[union-attr]
    boot(bench, "trial", kernel=KERNEL, mark="m1", initramfs=staged["initramfs"])
    bench.grub.variables.pop("next_entry")  # a panic: GRUB forgot the trial, and the bench started again
    bench.reboot()
    with pytest.raises(TrialFailedError, match=f"with {staged['initramfs']} did not start .* back by itself on"):
        boot(bench, "verify", kernel=KERNEL, mark="m1", initramfs=staged["initramfs"])
    assert (bench.loaded, bench.on_disk) == ("AAAA", "AAAA")
    with pytest.raises(ToolError, match=r"needs a boot \(.* carries it\), and this boot's initramfs does not carry"):
        build(bench, prebuilt(bench))
    restore_fully(bench)
    as_found(bench)


def test_what_a_build_needs_is_taken_into_its_image_from_the_kernel(bench: TrialBench) -> None:
    """An FC driver is tried on a bench whose image has no FC; a module that nobody has ends it before the image."""
    place = f"/lib/modules/{KERNEL}/kernel/scsi_transport_fc.ko"
    bench.tree.write(place, module_file("FFFF").decode())

    def runner(argv: Sequence[str], **options: Any) -> Completed:
        wanted = argv[-1]
        if argv[:2] == ["modinfo", "-k"] and wanted == "libfc":
            return Completed(tuple(argv), 1, "", "modinfo: ERROR: Module libfc not found.\n", 0.0)
        if argv[:2] == ["modinfo", "-k"] and wanted == "scsi_transport_fc":
            return Completed(tuple(argv), 0, f"filename: {place}\nname: {wanted}\n", "", 0.0)
        ended = bench(argv, **options)
        needs = {str(bench.root / "BBBB/hba.ko"): "scsi_transport_fc", str(bench.root / "CCCC/hba.ko"): "libfc"}
        return replace(ended, stdout=f"{ended.stdout}depends: {needs.get(wanted, '')}\n")

    staged = build(bench, prebuilt(bench), runner, staged=True)
    (packed,) = builds_in(str(bench.root / "boot" / staged["initramfs"]), ["scsi_transport_fc"]).values()
    assert packed is not None
    assert packed.srcversion == "FFFF"
    with pytest.raises(PartialError, match="needs libfc, which neither the initramfs nor its kernel has"):
        build(bench, prebuilt(bench, "CCCC"), runner, staged=True)


def test_a_trial_that_loaded_something_else_is_found(bench: TrialBench) -> None:
    staged = build(bench, prebuilt(bench), staged=True)
    boot(bench, "trial", kernel=KERNEL, mark="m1", initramfs=staged["initramfs"])
    bench.reboot()
    bench.tree.write("/sys/module/hba/srcversion", "AAAA\n")
    with pytest.raises(ToolError, match=r"the initramfs on trial carries build BBBB 2\.0, and AAAA .* is loaded"):
        boot(bench, "verify", kernel=KERNEL, mark="m1", initramfs=staged["initramfs"], modules=["hba"])


def test_check_mode_touches_nothing(bench: TrialBench) -> None:
    """Also when the file was not copied yet; it says that there would be a boot."""
    before = {str(path): path.read_bytes() for path in bench.root.rglob("*") if path.is_file()}
    for file in (prebuilt(bench), "/nowhere/hba.ko"):
        staged = build(bench, file, staged=True, check=True)
        assert (staged["boots"], staged["changed"], len(staged["drift"])) == (True, True, 1)
        trial = boot(bench, "trial", kernel=KERNEL, mark="m", initramfs=staged["initramfs"], check=True)
        assert trial["changed"]
        assert build(bench, file, check=True)["drift"] == staged["drift"]
    now = {str(path): path.read_bytes() for path in bench.root.rglob("*") if path.is_file()}
    assert {path for path in now if before.get(path) != now[path]} == {str(bench.root / "BBBB/hba.ko")}


def test_check_mode_does_not_judge_an_earlier_build_that_lies_under_the_name_of_the_declared_one(
    bench: TrialBench,
) -> None:
    file = prebuilt(bench)
    with pytest.raises(ToolError, match="its SHA-256 is"):
        build(bench, file, sha256="ab" * 32, staged=True, check=True)
    staged = build(bench, file, sha256="ab" * 32, staged=True, check=True, awaited=True)
    assert (staged["boots"], len(staged["drift"])) == (True, 1)
    assert build(bench, file, sha256="ab" * 32, check=True, awaited=True)["drift"] == staged["drift"]
    with pytest.raises(ToolError, match="its SHA-256 is"):
        build(bench, file, sha256="ab" * 32, staged=True, awaited=True)


def test_a_build_of_the_root_disks_driver_takes_a_boot_though_no_initramfs_carries_it(bench: TrialBench) -> None:
    (bench.root / NATIVE).write_bytes(TrialBench.image({"other.ko": b"\x7fELF"}))
    bench.native_image = (bench.root / NATIVE).read_bytes()
    bench.tree.mount(bench.machine.text("/sys/block/sda/dev"), "/")
    result = try_it(bench, prebuilt(bench))
    assert result["identifiers"]["initramfs"]["srcversion"] == "BBBB"
    restore_fully(bench)
    as_found(bench)


def test_another_build_takes_the_place_of_the_one_on_trial(bench: TrialBench) -> None:
    for name in ("BBBB", "CCCC", "DDDD", "BBBB"):
        try_it(bench, prebuilt(bench, name))
        assert (bench.loaded, bench.on_disk) == (name, name)
        assert len(list((bench.root / "boot").glob("initrd.storqual*"))) <= 2
    restore_fully(bench)
    as_found(bench)


def test_an_arm_without_a_build_boots_what_was_found(bench: TrialBench) -> None:
    try_it(bench, prebuilt(bench))
    assert build(bench, as_found=True, staged=True, check=True)["boots"]
    assert bench.on_disk == "BBBB"
    staged = build(bench, as_found=True, staged=True)
    assert (staged["boots"], staged["initramfs"], staged["steps"]) == (True, "", [f"{PLACE} removed"])
    boot(bench, "trial", kernel=KERNEL, mark="m2")
    bench.reboot()
    boot(bench, "verify", kernel=KERNEL, mark="m2", modules=["hba"])
    assert not build(bench, as_found=True)["changed"]
    assert not build(bench, as_found=True, staged=True)["boots"]
    restore_fully(bench)
    as_found(bench)


@pytest.mark.parametrize("script_builds", [True, False], ids=["script-builds", "script-adds"])
def test_a_package_lies_nowhere_until_the_boot_has_shown_what_it_builds(
    bench: TrialBench, *, script_builds: bool
) -> None:
    bench.script_builds = script_builds
    file = bench.root / "hba-dkms.deb"
    file.write_text("")
    staged = build(bench, str(file), version="2.0", staged=True)
    assert staged["boots"]
    assert bench.on_disk == "AAAA"
    assert (bench.root / NATIVE).read_bytes() == bench.native_image
    assert ("put back as it was before the package" in " ".join(staged["steps"])) == script_builds
    boot(bench, "trial", kernel=KERNEL, mark="m1", initramfs=staged["initramfs"])
    bench.reboot()
    boot(bench, "verify", kernel=KERNEL, mark="m1", initramfs=staged["initramfs"], modules=["hba"])
    result = build(bench, str(file), version="2.0")
    assert result["settings"][0]["proof"] == "one build in these places: loaded, disk, initramfs"
    assert not build(bench, str(file), version="2.0", staged=True)["changed"]
    assert not build(bench, str(file), version="2.0")["changed"]
    restore_fully(bench)
    as_found(bench)
    assert bench.packages == {}


def test_arms_that_alternate_compile_a_package_once(bench: TrialBench) -> None:
    bench.script_builds = False
    file = bench.root / "hba-dkms.deb"
    file.write_text("")
    for _ in range(2):
        try_it(bench, str(file))
        assert (bench.loaded, bench.on_disk) == ("DDDD", "DDDD")
        assert build(bench, as_found=True, staged=True)["steps"] == ["hba-lab 2.0 uninstalled"]
        assert bench.on_disk == "AAAA"
        boot(bench, "trial", kernel=KERNEL, mark="m2")
        bench.reboot()
        assert not build(bench, as_found=True)["changed"]
    assert bench.seen.count(f"dkms build -m hba-lab -v 2.0 -k {KERNEL}") == 1
    restore_fully(bench)
    as_found(bench)
    assert bench.packages == {}


@pytest.mark.parametrize(
    ("built", "words"),
    [
        (module_file("DDDD", version="1.9"), r"is version 1\.9|is version 2\.0, 2\.1 is declared"),
        (module_file(""), "has no srcversion"),
        (module_file("DDDD", magic="6.1.0-9-amd64 SMP"), "is built for kernel 6.1.0-9-amd64"),
    ],
    ids=["version", "srcversion", "vermagic"],
)
def test_what_a_package_builds_is_looked_at_before_it_is_booted(bench: TrialBench, built: bytes, words: str) -> None:
    bench.built = built
    file = bench.root / "hba-dkms.deb"
    file.write_text("")
    with pytest.raises(PartialError, match=words):
        build(bench, str(file), version="2.1", staged=True)
    assert bench.on_disk == "AAAA"
    restore_fully(bench)
    as_found(bench)


def test_a_build_of_another_kind_beside_the_first_is_refused(bench: TrialBench) -> None:
    try_it(bench, prebuilt(bench))
    file = bench.root / "hba-dkms.deb"
    file.write_text("")
    with pytest.raises(ToolError, match="cannot be put beside it: restore the bench first"):
        build(bench, str(file), version="2.0", staged=True)
    restore_fully(bench)
    as_found(bench)


def test_a_kept_build_is_the_default_and_a_later_trial_leaves_it_so(bench: TrialBench) -> None:
    try_it(bench, prebuilt(bench))
    image = bench.machine.text("/proc/cmdline").split("storqual.initramfs=")[1].split()[0]
    assert boot(bench, "default", initramfs=image)["changed"]
    assert not boot(bench, "default", initramfs=image)["changed"]
    (bench.root / "state/saved.json").unlink()  # accepted as the bench's own
    bench.reboot()
    assert (bench.loaded, bench.system.loader.default().arguments[-1]) == ("BBBB", "storqual.kept=1")  # type: ignore[union-attr]
    try_it(bench, prebuilt(bench, "CCCC"))
    assert bench.loaded == "CCCC"
    staged = build(bench, as_found=True, staged=True)
    assert (staged["boots"], staged["initramfs"]) == (True, image)
    restore_fully(bench)
    assert bench.loaded == "BBBB"
    assert [path.name for path in (bench.root / "boot").glob("initrd.storqual*")] == [image]


def test_an_initramfs_of_ours_is_left_by_a_boot_even_when_its_build_is_the_former_one(bench: TrialBench) -> None:
    try_it(bench, prebuilt(bench, "AAAA"))
    assert bench.loaded == "AAAA"
    assert build(bench, as_found=True, staged=True)["boots"]
    assert put_back(bench)["reboot"]
    bench.reboot()
    assert put_back(bench)["restored"]
    as_found(bench)


def test_a_boot_partition_without_room_is_refused_before_the_image_is_written(
    bench: TrialBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half an initramfs would be worse than none."""
    monkeypatch.setattr("shutil.disk_usage", lambda _path: type("Usage", (), {"free": 100}))
    with pytest.raises(PartialError, match="has 0 MiB left"):
        build(bench, prebuilt(bench), staged=True)
    assert not list((bench.root / "boot").glob("initrd.storqual*"))


@pytest.mark.parametrize("package", [False, True], ids=["prebuilt", "package"])
def test_a_power_cut_anywhere_leaves_the_old_build_and_the_next_run_ends_it(tmp_path: Path, *, package: bool) -> None:

    def file_on(bench: TrialBench) -> str:
        deb = bench.root.parent / "hba-dkms.deb"
        deb.write_text("")
        return str(deb) if package else prebuilt(bench)

    def work(bench: TrialBench, mains: Any) -> None:
        mains.inside = True
        file = file_on(bench)
        mains.inside = False
        runner = mains.runner(bench)
        staged = build(bench, file, runner=runner, staged=True)
        boot(bench, "trial", kernel=KERNEL, mark="m1", initramfs=staged["initramfs"])
        bench.reboot()
        build(bench, file, runner=runner)

    cuts = 0
    for bench in every_cut(tmp_path, TrialBench, work):
        cuts += 1
        bench.grub.variables.pop("next_entry", None)
        bench.reboot()
        if not package:
            assert (bench.loaded, (bench.root / NATIVE).read_bytes()) == ("AAAA", bench.native_image)
        if cuts % 2:
            try_it(bench, file_on(bench))
            assert bench.loaded == bench.on_disk == ("DDDD" if package else "BBBB")
        restore_fully(bench)
        as_found(bench)
    assert cuts > 15


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_package_whose_driver_is_not_the_declared_one_is_told(version: str) -> None:
    there = kmod.Build("AAAA", "1.0")
    request, wanted = BuildRequest("hba"), WantedBuild(package="hba-dkms", version=version, installed=True)
    said = pytest.raises(ToolError, match=r"not the declared build everywhere: disk .*, declared 2\.0")
    with said if version == "2.0" else nullcontext():
        check_build(request, wanted, {"disk": there, "loaded": there})
