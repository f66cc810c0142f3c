# SPDX-License-Identifier: Apache-2.0
"""Data is packed in the way that it came in, and in no way that the kernel does not know."""

import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit import archives
from storqual_core.kit.archives import (
    Member,
    compose,
    magic_of,
    new_file,
    new_folder,
    pack,
    pack_like,
    read_archive,
    unpack,
)
from storqual_core.kit.errors import ToolError

NEEDS_ZSTD = pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")
MAGICS = {"gzip": b"\x1f\x8b", "xz": b"\xfd7zXZ\x00", "lzma": b"\x5d\x00\x00", "bzip2": b"BZh"}


@pytest.mark.parametrize("magic", MAGICS.values(), ids=list(MAGICS))
@given(data=st.binary(max_size=200))
def test_packed_data_unpacks_to_itself(magic: bytes, data: bytes) -> None:
    packed = pack(data, magic)
    assert magic_of(packed) == magic
    assert unpack(packed) == data
    assert unpack(packed + bytes(64)) == data
    with pytest.raises(ToolError, match="it is cut"):
        unpack(packed[:-1])


@NEEDS_ZSTD
def test_zstd_is_left_to_its_program() -> None:
    packed = pack(bytes(range(256)) * 999, b"\x28\xb5\x2f\xfd")
    assert unpack(packed) == unpack(packed + bytes(512)) == bytes(range(256)) * 999
    with pytest.raises(ToolError, match="did not give all"):
        unpack(packed[:-1])


def test_xz_has_the_check_that_the_kernel_knows() -> None:
    """The library's own choice, CRC64, is none that the kernel's unpacker has."""
    unpacker = lzma.LZMADecompressor()
    unpacker.decompress(pack(b"x", MAGICS["xz"]))
    assert unpacker.check == lzma.CHECK_CRC32


def test_a_file_is_packed_as_its_name_says() -> None:
    assert unpack(pack_like("hba.ko.xz", b"m")) == b"m"
    assert pack_like("hba.ko", b"m") == b"m"


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolError, match="`lz4` is not installed on this machine"):
        pack(b"x", b"\x02\x21\x4c\x18")


def test_an_unknown_way_is_a_sentence() -> None:
    with pytest.raises(ToolError, match="unknown way"):
        magic_of(b"?what")


@NEEDS_ZSTD
@pytest.mark.parametrize("magic", [*MAGICS.values(), b"\x28\xb5\x2f\xfd"], ids=[*MAGICS, "zstd"])
def test_data_that_unpacks_to_more_than_anything_that_boots_is_refused(
    magic: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storqual_core.kit.archives.MOST", 1 << 20)
    assert unpack(pack(bytes(1 << 20), magic)) == bytes(1 << 20)
    with pytest.raises(ToolError, match="unpacks to more than 1 MiB"):
        unpack(pack(bytes((1 << 20) + 1), magic))
    with pytest.raises(ToolError, match="unpacks to more than 1 MiB"):
        unpack(pack(bytes(64 << 20), magic))


@NEEDS_ZSTD
def test_a_program_is_read_on_a_bench_that_has_less_memory_than_may_be_unpacked() -> None:
    packed = pack(b"initramfs" * 99, b"\x28\xb5\x2f\xfd")
    code = (
        "import resource, sys\n"
        "from storqual_core.kit.archives import MOST, unpack\n"
        "resource.setrlimit(resource.RLIMIT_AS, (MOST // 2, MOST // 2))\n"
        "sys.stdout.buffer.write(unpack(sys.stdin.buffer.read()))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(archives.__file__).parents[2])}
    ended = subprocess.run(
        [sys.executable, "-c", code], input=packed, capture_output=True, env=environment, check=False
    )
    assert (ended.stdout, ended.stderr) == (b"initramfs" * 99, b"")


def test_a_program_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slow = tmp_path / "zstd"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("storqual_core.kit.archives._LIMIT_S", 0.3)
    with pytest.raises(ToolError, match="did not end within"):
        unpack(b"\x28\xb5\x2f\xfd")


FIELDS = st.tuples(*[st.integers(0, 2**32 - 1)] * 13)
NAMES = st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF), min_size=1, max_size=20)


@given(st.lists(st.tuples(NAMES, st.binary(max_size=40), FIELDS), max_size=5))
def test_files_go_out_as_they_came_in(files: list[tuple[str, bytes, tuple[int, ...]]]) -> None:
    members = [Member(name, content, fields) for name, content, fields in files if name != "TRAILER!!!"]
    image = compose(members)
    assert len(image) % 512 == 0
    again, end = read_archive(image, 0)
    assert image[end:].strip(b"\0") == b""
    assert [(each.name, each.content) for each in again] == [(each.name, each.content) for each in members]
    free = [0, 1, 2, 3, 4, 5, 7, 8, 9, 10]
    assert [[each.fields[n] for n in free] for each in again] == [[each.fields[n] for n in free] for each in members]
    assert all(each.fields[12] == 0 for each in again)


def test_new_files_and_folders_are_roots_and_readable() -> None:
    """What the kernel makes of their modes."""
    (file, folder), _ = read_archive(compose([new_file("a/b", b"x"), new_folder("a")]), 0)
    assert (oct(file.fields[1]), oct(folder.fields[1])) == ("0o100644", "0o40755")
    assert file.fields[2] == file.fields[3] == 0


def test_an_archive_ends_at_its_trailer() -> None:
    first, second = compose([new_file("a", b"1")]), compose([new_file("b", b"2")])
    members, place = read_archive(first + second, 0)
    assert [member.name for member in members] == ["a"]
    assert (first + second)[place:].lstrip(b"\0").startswith(b"070701")


def test_a_file_that_is_cut_short_is_a_sentence() -> None:
    with pytest.raises(ToolError, match="ends inside a file that begins at byte 0"):
        read_archive(compose([new_file("a", b"x" * 900)])[:300], 0)
    with pytest.raises(ToolError, match="has no end at byte 1012"):
        read_archive(compose([new_file("a", b"x" * 900), new_file("b", b"")])[:1012], 0)


@pytest.mark.parametrize("size", [b"-0000001", b"+0000000", b" 0000000", b"0000_000"])
def test_the_numbers_of_a_header_have_digits_only(size: bytes) -> None:
    """A size below zero leads back to where the file began: the archive would never end."""
    image = compose([new_file("a", b"")])
    with pytest.raises(ToolError, match="broken at byte 0"):
        read_archive(image[:54] + size + image[62:], 0)
