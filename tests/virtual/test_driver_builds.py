# SPDX-License-Identifier: Apache-2.0
"""Driver builds on the virtual bench: prebuilt modules and a DKMS package, made from the sources of its own kernel.

am53c974 drives an adapter under test and is loaded again where it is. virtio_blk drives the root disk and lies in the
initramfs: its builds come with an initramfs of their own, which is booted once.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import reset
from tests.support.driver_sources import DriverSources, driver_sources, packages_of_compiler
from tests.support.live_bench import INVENTORY, Bench, powered_bench

pytestmark = [
    pytest.mark.bench,
    pytest.mark.long,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(
        not (shutil.which("make") and shutil.which("gcc")), reason="needs gcc and make on this machine"
    ),
]

# everything that a build could leave behind, from the bench's own tools
LOOK = Path(__file__).with_suffix(".look").read_text(encoding="utf-8")
BOOT = "cat /proc/sys/kernel/random/boot_id"
PLACES = """
cat /sys/module/virtio_blk/srcversion /sys/module/virtio_blk/version
modinfo -F srcversion virtio_blk
modinfo -F filename virtio_blk
"""
BAD = (
    "module_init(virtio_blk_init);",
    'static int __init bad_init(void) { panic("bad driver of a test"); }\nmodule_init(bad_init);',
)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> DriverSources:
    """What drivers are made from; unpacked once."""
    paths = ["drivers/block/virtio_blk.c", "drivers/scsi/am53c974.c", "drivers/scsi/esp_scsi.h"]
    return driver_sources(tmp_path_factory.mktemp("sources"), paths)


@pytest.fixture(scope="module")
def good(sources: DriverSources) -> Path:
    """The root disk's driver with a version."""
    return sources.module("virtio_blk", "good", more='MODULE_VERSION("1.0.1");\n')


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of our own whose inventory knows the adapter of the root disk."""
    with powered_bench("builds", tmp_path_factory.mktemp("builds")) as found:
        text = (INVENTORY / "hosts.yml").read_text(encoding="utf-8")
        head, key, rest = text.partition("      storqual_adapters:\n")
        assert key
        adapter = json.dumps({"model": "virtio disk", "driver": "virtio_blk", "pci": "0000:00:03.0", "drives": []})
        (found.drops / "hosts.yml").write_text(f"{head}{key}        root: {adapter}\n{rest}", encoding="utf-8")
        found.ask("mkdir -p /lib/modules/$(uname -r)/updates")
        yield found


def drop(file: Path, sha256: str = "") -> str:
    digest = sha256 or hashlib.sha256(file.read_bytes()).hexdigest()
    return f"driver: {{module: {{file: {file}, sha256: {digest}}}}}\n"


def test_check_mode_shows_the_drift_and_touches_nothing(bench: Bench, good: Path) -> None:
    """Exit code 1 for drift, whether or not the build takes a boot."""
    held = "; ls -A /var/lib/storqual 2>/dev/null || true"
    before = bench.ask(LOOK + BOOT + held)
    played = bench.provision(drop(good), "--check", "--diff")
    assert played.code == 1, played.output
    assert "driver virtio_blk: no srcversion, another build is declared" in played.output
    assert bench.ask(LOOK + BOOT + held) == before


def test_check_mode_does_not_take_an_earlier_build_of_the_same_name_for_the_declared_one(
    bench: Bench, good: Path
) -> None:
    packages = "/var/lib/storqual/packages"
    bench.ask(f"mkdir -p {packages}")
    bench.send([str(good)], packages)
    bench.ask(f"echo >> {packages}/{good.name}")
    played = bench.provision(drop(good), "--check", "--diff")
    assert played.code == 1, played.output
    assert "driver virtio_blk: no srcversion, another build is declared" in played.output


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("vermagic", b"vermagic=6.1.0-", b"vermagic=6.1.9-", "has to load it"),
        ("srcversion", b"srcversion=", b"srcversiom=", "has no srcversion"),
        ("sha256", b"", b"", "does not have the declared SHA-256"),
    ],
    ids=["vermagic", "srcversion", "sha256"],
)
def test_what_is_not_the_right_file_is_refused_before_anything_is_written(
    bench: Bench, good: Path, tmp_path: Path, name: str, old: bytes, new: bytes, words: str
) -> None:
    before = bench.ask(LOOK + BOOT)
    file = tmp_path / good.name
    file.write_bytes(good.read_bytes().replace(old, new) if old else good.read_bytes())
    played = bench.provision(drop(file, "ab" * 32 if name == "sha256" else ""))
    assert played.code == 2, played.output
    assert words in " ".join(played.output.split())
    assert bench.ask(LOOK + BOOT) == before


def test_a_driver_that_can_be_taken_out_is_loaded_again_without_a_boot(bench: Bench, sources: DriverSources) -> None:
    """An adapter under test; its drives are back, and restored so is the kernel's own build."""
    version = '#define DRV_MODULE_VERSION "1.0{}"'
    file = sources.module("am53c974", "esp", [(version.format(0), version.format(1))])
    before = bench.ask(LOOK + BOOT)
    drives = bench.ask("ls -d /sys/bus/pci/drivers/am53c974/*/host*/target*/*:*:*:*/block/* | wc -l")
    first = bench.provision(drop(file), "-v")
    assert first.code == 0, first.output
    assert "one build in these places: loaded, disk" in first.output
    assert bench.ask("cat /sys/module/am53c974/version").strip() == "1.01"
    assert bench.ask("ls -d /sys/bus/pci/drivers/am53c974/*/host*/target*/*:*:*:*/block/* | wc -l") == drives
    again = bench.provision(drop(file))
    assert (again.code, again.changed) == (0, 0), again.output
    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    assert bench.ask(LOOK + BOOT) == before


def test_a_build_that_panics_leaves_the_bench_on_what_it_booted_before(bench: Bench, sources: DriverSources) -> None:
    bad = sources.module("virtio_blk", "bad", [BAD], 'MODULE_VERSION("6.6.6");\n')
    before, boot = bench.ask(LOOK), bench.ask(BOOT)
    played = bench.provision(drop(bad))
    assert played.code == 2, played.output
    told = " ".join(played.output.split())
    assert "did not start in its trial boot: the bench is back by itself on" in told
    assert "bad driver of a test" in (bench.state / "console.log").read_text(encoding="utf-8", errors="replace")
    assert bench.ask(BOOT) != boot
    assert bench.ask("cat /sys/module/virtio_blk/version 2>/dev/null || echo none").strip() == "none"
    assert bench.ask("find /lib/modules/*/updates -type f") == ""
    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    assert bench.ask(LOOK) == before


def test_the_root_disks_driver_is_booted_once_proven_and_left_again(bench: Bench, good: Path) -> None:
    before = bench.ask(LOOK)
    first = bench.provision(drop(good), "-v")
    assert first.code == 0, first.output
    assert "one build in these places: loaded, disk, initramfs" in first.output
    loaded, version, disk, place = bench.ask(PLACES).split()
    assert (loaded, version) == (disk, "1.0.1")
    assert place.endswith("/updates/storqual/virtio_blk.ko")
    assert "storqual.initramfs=initrd.storqual-" in bench.ask("cat /proc/cmdline")
    native = next(line for line in before.splitlines() if "/boot/initrd.img" in line)
    assert native in bench.ask(LOOK).splitlines()

    now, boot = bench.ask(LOOK), bench.ask(BOOT)
    again = bench.provision(drop(good))
    assert (again.code, again.changed) == (0, 0), again.output
    assert (bench.ask(LOOK), bench.ask(BOOT)) == (now, boot)

    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    assert bench.ask(LOOK) == before
    once_more = bench.play("restore.yml")
    assert (once_more.code, once_more.changed) == (0, 0), once_more.output


def test_a_dkms_package_is_built_on_the_bench_booted_once_and_left_again(
    bench: Bench, sources: DriverSources
) -> None:
    bench.send(packages_of_compiler(), "/root/compiler")
    bench.ask(
        "nohup sh -c 'dpkg --force-depends -i /root/compiler/*.deb; echo $? > /root/compiler/rc' >/dev/null 2>&1 &"
    )
    bench.wait_for("/root/compiler/rc", limit_s=3000)
    assert bench.ask("cat /root/compiler/rc; rm -r /root/compiler").strip() == "0"
    package = sources.dkms_package("virtio_blk", "1.0.2", 'MODULE_VERSION("1.0.2");\n')
    manifest = f"driver: {{dkms: {{package: {package}, module: virtio_blk, version: 1.0.2}}}}\n"
    inventory = ("-i", str(bench.drops / "hosts.yml"))
    before = bench.ask(LOOK)
    first = bench.provision(manifest, *inventory, "-v")
    assert first.code == 0, first.output
    assert "one build in these places: loaded, disk, initramfs" in first.output
    loaded, version, disk, place = bench.ask(PLACES).split()
    assert (loaded, version) == (disk, "1.0.2")
    assert "/updates/dkms/virtio_blk.ko" in place
    assert "virtio-blk-lab/1.0.2" in bench.ask("dkms status")

    now, boot = bench.ask(LOOK), bench.ask(BOOT)
    again = bench.provision(manifest, *inventory)
    assert (again.code, again.changed) == (0, 0), again.output
    assert (bench.ask(LOOK), bench.ask(BOOT)) == (now, boot)

    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    assert bench.ask(LOOK) == before
    assert bench.ask("dkms status") == ""


def test_a_kernel_that_wants_signatures_refuses_an_unsigned_build(bench: Bench, good: Path) -> None:
    before = bench.ask(LOOK)
    bench.ask("echo 1 > /sys/module/module/parameters/sig_enforce")
    try:
        played = bench.provision(drop(good))
        assert played.code == 2, played.output
        assert "is not signed, and this kernel loads signed modules only (module.sig_enforce)" in " ".join(
            played.output.split()
        )
        assert bench.ask(LOOK) == before
    finally:
        # the kernel cannot be told otherwise until the next boot
        bench.ask("sync")
        reset(BenchPlaces.of(bench.state), limit_s=600)
