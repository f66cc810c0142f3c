# SPDX-License-Identifier: Apache-2.0
"""Driver builds: what speaks against a file, one build in all places, and the way back."""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import BadInputError, GuardRefusalError, ToolError
from storqual_core.kit.lock import read_saved
from storqual_core.kit.results import PartialError
from storqual_core.provision.boot import System
from storqual_core.provision.driver_build import BuildRequest, provision_build, remove_builds
from storqual_core.provision.engine import Call
from storqual_core.provision.options import OptionsBench
from storqual_core.provision.restore import Tools, restore
from tests.support.adapter_bench import KERNEL
from tests.support.build_bench import MAGIC, PLACE, BuildBench


class NewDriverBench(BuildBench):
    """A bench that has no module of that name, neither loaded nor on the disk."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.native = ""
        shutil.rmtree(root / "sys/module/hba")

    def __call__(self, argv: Sequence[str], **options: Any) -> Completed:
        """As the tools say when a module has no file."""
        if argv[0] == "rmmod":
            shutil.rmtree(self.root / "sys/module" / argv[1])
            return Completed(tuple(argv), 0, "", "", 0.0)
        if not self.on_disk and (list(argv[:2]) == ["modprobe", "-r"] or list(argv[:2]) == ["modinfo", "-k"]):
            return Completed(tuple(argv), 1, "", f"{argv[0]}: ERROR: Module hba not found.\n", 0.0)
        return super().__call__(argv, **options)


@pytest.fixture
def bench(tmp_path: Path) -> BuildBench:
    """An adapter whose driver is the kernel's own."""
    return BuildBench(tmp_path)


def prebuilt(bench: BuildBench, text: str = f"BBBB|hba|{MAGIC}") -> str:
    place = bench.root / "hba.ko"
    place.write_text(text)
    return str(place)


def provide(bench: BuildBench, file: str, **more: Any) -> dict[str, Any]:
    call = Call(str(bench.root / "state"), "r1", more.pop("check", False))
    return provision_build(BuildRequest("hba", files=[file], call=call, **more), OptionsBench(bench, bench.machine))


def put_back(bench: BuildBench) -> dict[str, Any]:
    """One call of the restore module's work."""
    return restore(str(bench.root / "state"), Tools(bench, System(bench), machine=bench.machine), check=False)


def test_a_prebuilt_module_runs_and_goes_again(bench: BuildBench) -> None:
    """One build on disk and loaded; the second time nothing is done; restored, the kernel's own runs."""
    file = prebuilt(bench)
    digest = hashlib.sha256((bench.root / "hba.ko").read_bytes()).hexdigest()
    first = provide(bench, file, sha256=digest, version="2.0")
    assert first["changed"]
    (entry,) = first["settings"]
    assert (entry["read_back"], entry["proven"]) == ("BBBB 2.0", True)
    assert entry["proof"] == "one build in these places: loaded, disk"
    assert first["identifiers"]["disk"]["srcversion"] == "BBBB"
    again = provide(bench, file, sha256=digest)
    assert (again["changed"], again["steps"], again["drift"]) == (False, [], [])
    assert put_back(bench)["restored"]
    assert bench.machine.text("/sys/module/hba/srcversion") == "AAAA"
    assert not (bench.root / PLACE.lstrip("/")).exists()
    assert read_saved(bench.root / "state") is None


@pytest.mark.parametrize("cut", [False, True], ids=["at once", "after the file is gone"])
def test_a_driver_that_the_bench_never_had_is_taken_out_again(tmp_path: Path, *, cut: bool) -> None:
    bench = NewDriverBench(tmp_path)
    assert provide(bench, prebuilt(bench))["settings"][0]["proven"]
    if cut:
        # an earlier restore was cut short behind the file
        (bench.root / PLACE.lstrip("/")).unlink()
    assert put_back(bench)["restored"]
    assert not (bench.root / PLACE.lstrip("/")).exists()
    assert not (bench.root / "sys/module/hba").exists()
    assert read_saved(bench.root / "state") is None
    assert not put_back(bench)["changed"]


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        (f"BBBB|hba|{MAGIC}", {"sha256": "0" * 64}, "its SHA-256 is"),
        (f"BBBB|other|{MAGIC}", {}, "is module other, the drop declares hba"),
        (
            "BBBB|hba|6.1.0-9-amd64 SMP",
            {},
            "is built for kernel 6.1.0-9-amd64, but kernel 6.1.0-1-amd64 has to load it",
        ),
        (f"BBBB|hba|{KERNEL} SMP", {}, "this kernel as"),
        (f"|hba|{MAGIC}", {}, "has no srcversion"),
        (f"BBBB|hba|{MAGIC}", {"version": "3.0"}, "is version 2.0, 3.0 is declared"),
        ("BBBB|hba|", {}, "is not a kernel module: it has no vermagic"),
    ],
)
def test_a_file_that_is_not_what_it_must_be_is_refused(
    bench: BuildBench, text: str, more: dict[str, str], words: str
) -> None:
    with pytest.raises(ToolError, match=words):
        provide(bench, prebuilt(bench, text), **more)
    assert not (bench.root / PLACE.lstrip("/")).exists()
    assert not (bench.root / "state").exists()


@pytest.mark.parametrize(
    ("path", "text"),
    [("/sys/module/module/parameters/sig_enforce", "Y\n"), ("/sys/kernel/security/lockdown", "none [integrity]\n")],
)
def test_a_kernel_that_wants_signatures_gets_one(bench: BuildBench, path: str, text: str) -> None:
    bench.tree.write(path, text)
    with pytest.raises(ToolError, match="is not signed, and this kernel loads signed modules only"):
        provide(bench, prebuilt(bench))
    assert provide(bench, prebuilt(bench, f"BBBB|hba|{MAGIC}|lab key"))["changed"]


def test_a_package_is_built_on_the_bench_and_goes_again(bench: BuildBench) -> None:
    """Installed, built for the running kernel, loaded; restored, it is removed."""
    file = bench.root / "hba-dkms.deb"
    file.write_text("")
    first = provide(bench, str(file), version="2.0")
    assert first["changed"]
    assert first["settings"][0]["read_back"] == "DDDD 2.0"
    assert not provide(bench, str(file), version="2.0")["changed"]
    assert put_back(bench)["restored"]
    assert bench.packages == {}
    assert bench.machine.text("/sys/module/hba/srcversion") == "AAAA"


def test_a_package_whose_installation_was_cut_short_goes_too(bench: BuildBench) -> None:
    """It is half configured, and the restore does not leave it so."""
    file = bench.root / "hba-dkms.deb"
    file.write_text("")
    bench.broken = ("dkms status",)
    with pytest.raises(ToolError):
        provide(bench, str(file), version="2.0")
    bench.broken = ("modprobe hba",)
    with pytest.raises(PartialError):
        provide(bench, str(file), version="2.0")
    bench.broken, bench.state = (), "iF "
    bench.load("hba")
    assert put_back(bench)["restored"]
    assert bench.packages == {}


def test_a_package_that_builds_nothing_says_why(bench: BuildBench, monkeypatch: pytest.MonkeyPatch) -> None:
    file = bench.root / "hba-dkms.deb"
    file.write_text("")
    monkeypatch.setattr("storqual_core.tools.dkms.last_build_words", lambda: "make.log: hba.c:3: error")
    with pytest.raises(PartialError, match=r"has no driver of version 3\.0: make\.log: hba\.c:3: error"):
        provide(bench, str(file), version="3.0")


def test_a_package_needs_the_headers_of_the_kernel(bench: BuildBench) -> None:
    file = bench.root / "hba-dkms.deb"
    file.write_text("")
    (bench.root / f"lib/modules/{KERNEL}/build/Makefile").unlink()
    with pytest.raises(ToolError, match=f"install linux-headers-{KERNEL}"):
        provide(bench, str(file))
    assert bench.packages == {}


def test_check_mode_touches_nothing(bench: BuildBench) -> None:
    for file in (prebuilt(bench), "/nowhere/hba.ko"):
        result = provide(bench, file, check=True)
        assert (result["changed"], len(result["drift"])) == (True, 1)
    assert not (bench.root / "state").exists()
    assert not any(line.startswith("modprobe") for line in bench.seen)


def test_a_driver_in_use_is_refused(bench: BuildBench) -> None:
    bench.tree.mount(bench.machine.text("/sys/block/sda/dev"), "/data")
    with pytest.raises(GuardRefusalError, match="is mounted on /data"):
        provide(bench, prebuilt(bench))
    bench.tree.mount(bench.machine.text("/sys/block/sda/dev"), "/boot")
    with pytest.raises(ToolError, match="the role provision boots it once"):
        provide(bench, prebuilt(bench))
    assert not (bench.root / PLACE.lstrip("/")).exists()


def test_a_module_that_does_not_load_is_told_and_restored(bench: BuildBench) -> None:
    """What was done stands in the failure; the restore puts the kernel's own back."""
    bench.broken = ("modprobe hba",)
    with pytest.raises(PartialError, match="it broke") as caught:
        provide(bench, prebuilt(bench))
    assert caught.value.steps == [f"{PLACE} written"]
    bench.broken = ()
    bench.load("hba")
    assert put_back(bench)["restored"]
    assert bench.machine.text("/sys/module/hba/srcversion") == "AAAA"


def test_no_file_is_bad_input(bench: BuildBench) -> None:
    with pytest.raises(BadInputError, match="module and file are needed"):
        provision_build(BuildRequest("hba"), OptionsBench(bench, bench.machine))


def test_an_arm_without_a_build_runs_the_driver_of_before(bench: BuildBench) -> None:
    provide(bench, prebuilt(bench))
    for check, changed in ((True, True), (False, True), (False, False)):
        call = Call(str(bench.root / "state"), "r1", check)
        result = remove_builds(call, OptionsBench(bench, bench.machine))
        assert result["changed"] == changed
    assert bench.machine.text("/sys/module/hba/srcversion") == "AAAA"
    assert read_saved(bench.root / "state") is not None
    assert put_back(bench)["restored"]
