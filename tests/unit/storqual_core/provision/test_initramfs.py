# SPDX-License-Identifier: Apache-2.0
"""Drivers inside an initramfs: archives one after the other, packed in several ways."""

import gzip
import lzma
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.archives import unpack
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.provision.boot import (
    booted_image,
    image_name,
    own_images,
    put_native_back,
    remove_images,
    unchanged,
)
from storqual_core.provision.initramfs import (
    NewModule,
    builds_in,
    copy_with,
    depmod_index,
    entries,
    module_build,
    read_parts,
    with_file,
)
from storqual_core.tools.kmod import Build
from tests.support.cpio_archive import PACKERS, archive

MODULE = b"\x7fELF" + b"code\0" * 9 + b"version=3.04.20\0license=GPL\0srcversion=ABCDEF01\0vermagic=6.1 SMP\0rest"
BUILD = Build("ABCDEF01", "3.04.20", "6.1 SMP")


@pytest.mark.parametrize("packer", PACKERS.values(), ids=list(PACKERS))
def test_a_driver_is_found_behind_microcode_and_padding(tmp_path: Path, packer: Callable[[bytes], bytes]) -> None:
    second = archive(
        {"usr/lib/modules/6.1/mptsas.ko": MODULE, "lib/virtio-scsi.ko.xz": lzma.compress(MODULE), "init": b"#!"}
    )
    image = tmp_path / "initrd.img"
    image.write_bytes(archive({"kernel/x86/microcode/x.bin": b"123"}) + bytes(512) + packer(second))
    found = builds_in(str(image), ["mptsas", "virtio_scsi", "nosuch"])
    assert found["mptsas"] == Build("ABCDEF01", "3.04.20", "6.1 SMP", "usr/lib/modules/6.1/mptsas.ko")
    assert found["virtio_scsi"] is not None
    assert found["virtio_scsi"].srcversion == "ABCDEF01"
    assert found["nosuch"] is None


def test_fields_of_a_module_are_read_between_its_strings() -> None:
    assert module_build(MODULE) == BUILD
    assert module_build(b"\x7fELF\0license=GPL\0srcversion_x=1\0") == Build()
    assert module_build(b"") == Build()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"?nonsense", "unknown way"),
        (b"070701" + b"z" * 120, "broken at byte 0"),
        (archive({"a": b"x" * 100})[:150], "ends inside a file"),
        (gzip.compress(b"x" * 999)[:20] + b"\xff" * 9, "broken"),
        (gzip.compress(gzip.compress(archive({"a": b"x"}))), "no end at byte 0"),
    ],
    ids=["nonsense", "bad-header", "cut-short", "bad-gzip", "packed-twice"],
)
def test_a_broken_image_is_a_sentence(data: bytes, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        list(entries(data))


def test_a_missing_image_is_a_sentence(tmp_path: Path) -> None:
    """A kernel may have none."""
    with pytest.raises(ToolError, match="cannot be read: No such file"):
        builds_in(str(tmp_path / "none"), ["a"])


@given(st.dictionaries(st.from_regex(r"\A[a-z/]{1,20}\Z"), st.binary(max_size=60), max_size=4))
def test_files_come_back_as_they_went_in(files: dict[str, bytes]) -> None:
    assert dict(entries(archive(files))) == files


@given(st.binary(max_size=300))
def test_no_bytes_give_anything_but_files_or_a_sentence(data: bytes) -> None:
    try:
        list(entries(b"070701" + data))
    except ToolError:
        return


@pytest.mark.parametrize("magic", [b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", b"\x5d\x00\x00"])
@given(data=st.binary(max_size=60))
def test_broken_packed_data_is_a_sentence(magic: bytes, data: bytes) -> None:
    try:
        unpack(magic + data)
    except ToolError:
        return


def test_a_name_tells_kernel_and_build() -> None:
    one, other = image_name("6.1.0-1-amd64", b"one"), image_name("6.1.0-1-amd64", b"other")
    assert one.startswith("initrd.storqual-6.1.0-1-amd64-")
    assert one != other
    assert one == image_name("6.1.0-1-amd64", b"one")


def test_the_command_line_names_the_image_that_was_booted() -> None:
    assert booted_image(["root=/dev/sda", "storqual.initramfs=initrd.storqual-1", "quiet"]) == "initrd.storqual-1"
    assert booted_image(["root=/dev/sda"]) == ""


def test_only_images_of_ours_are_removed(tmp_path: Path) -> None:
    for name in ("initrd.img-6.1", "initrd.storqual-6.1-a", "initrd.storqual-6.1-b", "vmlinuz-6.1"):
        (tmp_path / name).write_bytes(b"")
    assert remove_images(str(tmp_path), ["initrd.storqual-6.1-b"]) == ["initrd.storqual-6.1-a"]
    assert own_images(str(tmp_path)) == ["initrd.storqual-6.1-b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("initrd.img-6.1", "initrd.storqual-6.1-b", "vmlinuz-6.1")
    ]


@pytest.fixture
def native(tmp_path: Path) -> Path:
    """The distribution's initramfs, beside a folder for the bench's state."""
    (tmp_path / "state").mkdir()
    (tmp_path / "initrd.img-6.1").write_bytes(b"as found")
    return tmp_path / "initrd.img-6.1"


def test_what_a_package_made_anew_is_put_back(native: Path, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    steps: list[str] = []

    def package() -> None:
        with unchanged(native, state, steps):
            native.write_bytes(b"made anew")
            raise OSError("it broke")

    with pytest.raises(OSError, match="it broke"):
        package()
    assert native.read_bytes() == b"as found"
    assert steps == ["/boot/initrd.img-6.1 put back as it was before the package"]
    number = native.stat().st_ino
    with unchanged(native, state, steps):
        pass
    assert (len(steps), native.stat().st_ino) == (1, number)
    assert list((tmp_path / "state").iterdir()) == []


def test_a_copy_that_a_power_cut_left_is_the_one_that_counts(native: Path, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    cut = unchanged(native, state, [])
    cut.__enter__()
    native.write_bytes(b"made anew")
    steps: list[str] = []
    with unchanged(native, state, steps):
        assert native.read_bytes() == b"as found"
        native.write_bytes(b"made anew once more")
    assert native.read_bytes() == b"as found"
    assert len(steps) == 2
    assert put_native_back(native, state) == []


RELEASE = "6.1.0-1-amd64"
FOLDER = f"usr/lib/modules/{RELEASE}"
OLD, NEW = b"\x7fELF old", b"\x7fELF new"
FILES = {
    "init": b"#!/bin/sh",
    "conf/modules": b"ext4",
    "etc/modprobe.d": b"",
    f"{FOLDER}/modules.dep": b"old index",
    f"{FOLDER}/modules.builtin": b"kernel/lib/crc16.ko\n",
    f"{FOLDER}/kernel/virtio_ring.ko": b"\x7fELF ring",
    f"{FOLDER}/kernel/hba-one.ko": OLD,
}
MICROCODE = archive({"kernel/x86/microcode/x.bin": b"123"})


def index(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """What depmod would write, as far as it matters: the modules by name."""
    listed = ",".join(sorted(name for name in files if ".ko" in name)).encode()
    return {"modules.dep": listed, "modules.devname": b"of depmod alone"}


def image(files: Mapping[str, bytes] = FILES, packer: Callable[[bytes], bytes] = gzip.compress) -> bytes:
    """Microcode, then everything else, packed."""
    return MICROCODE + bytes(64) + packer(archive(dict(files)))


@pytest.mark.parametrize("packer", [gzip.compress, lzma.compress, bytes], ids=["gzip", "xz", "plain"])
def test_only_the_driver_and_the_index_differ(packer: Callable[[bytes], bytes]) -> None:
    """Everything else is as it was, in the same order, packed in the same way, behind the same microcode."""
    base = image(packer=packer)
    copy = copy_with(base, RELEASE, NewModule("hba_one", NEW, ["virtio-ring", "crc16"]), index)
    was, now = dict(entries(base)), dict(entries(copy))
    assert list(was) == list(now)
    changed = {name for name in was if was[name] != now[name]}
    assert changed == {f"{FOLDER}/kernel/hba-one.ko", f"{FOLDER}/modules.dep"}
    assert now[f"{FOLDER}/kernel/hba-one.ko"] == NEW
    assert [part.packing for part in read_parts(copy)] == [part.packing for part in read_parts(base)]


def test_a_packed_module_is_packed_as_it_was() -> None:
    name = f"{FOLDER}/kernel/hba_one.ko.xz"
    base = image({**FILES, name: lzma.compress(OLD)})
    copy = copy_with(base, RELEASE, NewModule("hba_one", NEW), index)
    assert lzma.decompress(dict(entries(copy))[name]) == NEW


def test_a_driver_that_was_not_there_is_added_and_loaded() -> None:
    base = image()
    now = dict(entries(copy_with(base, RELEASE, NewModule("other", NEW), index)))
    place = "updates/storqual/other.ko"
    assert now[f"{FOLDER}/{place}"] == NEW
    assert now["conf/modules"] == b"ext4\nother\n"
    assert place.encode() in now[f"{FOLDER}/modules.dep"]
    names = list(now)
    assert (
        names.index(f"{FOLDER}/updates")
        < names.index(f"{FOLDER}/updates/storqual")
        < names.index(f"{FOLDER}/{place}")
    )


def test_what_a_driver_needs_and_the_image_lacks_comes_from_its_kernel() -> None:
    """With all that this needs in turn; what the image carries is not added again."""
    kernel = {
        "scsi_transport_fc": NewModule("scsi_transport_fc", OLD, ["scsi-lib", "crc16", "scsi_mod"]),
        "scsi_lib": NewModule("scsi_lib", OLD),
        "scsi_mod": NewModule("scsi_mod", b""),
    }
    module = NewModule("hba_one", NEW, ["scsi_transport_fc"])
    base = image()
    now = dict(entries(copy_with(base, RELEASE, module, index, kernel.get)))
    places = {f"updates/storqual/{name}.ko" for name in ("scsi_transport_fc", "scsi_lib")}
    assert {name for name in now.keys() - dict(entries(base)) if name.endswith(".ko")} == {
        f"{FOLDER}/{place}" for place in places
    }
    assert all(place.encode() in now[f"{FOLDER}/modules.dep"] for place in places)
    assert now["conf/modules"] == dict(entries(base))["conf/modules"]


@pytest.mark.parametrize(
    ("files", "module", "words"),
    [
        (FILES, NewModule("hba_one", NEW, ["libsas"]), "needs libsas, which neither the initramfs nor"),
        ({"init": b""}, NewModule("hba_one", NEW), f"holds no modules of kernel {RELEASE}"),
        (
            {name: content for name, content in FILES.items() if name != "conf/modules"},
            NewModule("other", NEW),
            "has no conf/modules",
        ),
    ],
    ids=["needs", "kernel", "list"],
)
def test_what_could_not_be_loaded_is_refused(files: dict[str, bytes], module: NewModule, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        copy_with(image(files), RELEASE, module, index)


def test_a_file_is_put_in_exchanged_and_taken_out() -> None:
    name = "etc/modprobe.d/zz.conf"
    base = image()
    with_it = with_file(base, name, b"options a b=1\n")
    assert dict(entries(with_it))[name] == b"options a b=1\n"
    other = with_file(with_it, name, b"options a b=2\n")
    assert [content for each, content in entries(other) if each == name] == [b"options a b=2\n"]
    assert dict(entries(with_file(other, name, None))) == dict(entries(base))
    with pytest.raises(ToolError, match="no folder nowhere"):
        with_file(base, "nowhere/x", b"")


def test_depmod_sees_the_modules_and_nothing_else(tmp_path: Path) -> None:
    """Names that lead out of the folder are passed over; what depmod reads of the kernel is handed to it."""
    seen: dict[str, Any] = {}

    def runner(argv: Sequence[str], **_options: Any) -> Completed:
        root = Path(argv[2])
        modules = root / "lib/modules" / RELEASE
        seen["argv"] = [*argv[:2], *argv[3:]]
        seen["files"] = sorted(str(path.relative_to(modules)) for path in modules.rglob("*") if path.is_file())
        seen["root"] = root
        (modules / "modules.dep").write_bytes(b"index")
        return Completed(tuple(argv), 0, "", "", 0.0)

    files = {"kernel/a.ko": b"", "../../../x.ko": b"", "modules.dep": b"old", "modules.order": b"", "x.txt": b""}
    assert depmod_index(runner, RELEASE)(files) == {"modules.dep": b"index"}
    assert seen["argv"] == ["depmod", "-b", RELEASE]
    assert seen["files"] == ["kernel/a.ko", "modules.order"]
    assert not seen["root"].exists()
