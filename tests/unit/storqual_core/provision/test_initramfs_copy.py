# SPDX-License-Identifier: Apache-2.0
"""A copy of an initramfs differs in one driver, and is refused where that driver could not be loaded from it."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.provision.initramfs import NewModule, copy_with, depmod_index, entries, read_parts, with_file
from tests.unit.storqual_core.provision.test_initramfs import archive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


@pytest.mark.parametrize(
    ("files", "module", "words"),
    [
        (FILES, NewModule("hba_one", NEW, ["libsas"]), "needs libsas, which the initramfs does not carry"),
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
