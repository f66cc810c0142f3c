# SPDX-License-Identifier: Apache-2.0
"""Drivers inside an initramfs: archives one after the other, packed in several ways."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.archives import unpack
from storqual_core.kit.errors import ToolError
from storqual_core.provision.initramfs import builds_in, entries, module_build
from storqual_core.tools.kmod import Build

MODULE = b"\x7fELF" + b"code\0" * 9 + b"version=3.04.20\0license=GPL\0srcversion=ABCDEF01\0vermagic=6.1 SMP\0rest"
BUILD = Build("ABCDEF01", "3.04.20", "6.1 SMP")


def archive(files: dict[str, bytes]) -> bytes:
    """A cpio archive in the format newc."""
    body = b""
    for name, content in {**files, "TRAILER!!!": b""}.items():
        raw = name.encode() + b"\0"
        fields = [0, 0o100644, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(raw), 0]
        body += b"070701" + b"".join(b"%08x" % field for field in fields) + raw
        body += bytes(-len(body) % 4) + content
        body += bytes(-len(body) % 4)
    return body


def zstd(data: bytes) -> bytes:
    """Packed by the tool that Debian packs with."""
    if shutil.which("zstd") is None:
        pytest.skip("zstd is not installed")
    return subprocess.run(["zstd", "-cq"], input=data, capture_output=True, check=True).stdout


PACKERS = {"gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress, "zstd": zstd, "plain": bytes}


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
    ],
    ids=["nonsense", "bad-header", "cut-short", "bad-gzip"],
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
