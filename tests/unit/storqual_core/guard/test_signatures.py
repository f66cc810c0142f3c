# SPDX-License-Identifier: Apache-2.0
"""Known formats are found by libblkid, by blkid where the library is missing, and nothing unknown counts as empty."""

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from storqual_core.guard import signatures
from storqual_core.guard.signatures import (
    AREA,
    STAMP,
    Content,
    Ledger,
    make_stamp,
    objection,
    read_content,
    read_stamp,
    window,
    write_stamps,
)
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import StorqualError, ToolError
from storqual_core.tools import blkid
from storqual_core.tools.blkid import FormatSignature, parse_export

SIZE = 20 << 20


@pytest.fixture
def image(tmp_path: Path) -> Callable[..., str]:
    """An image with bytes at places; a negative place counts from the end."""

    def make(*pieces: tuple[int, bytes]) -> str:
        path = tmp_path / "image"
        with path.open("wb") as stream:
            stream.truncate(SIZE)
            for offset, data in pieces:
                stream.seek(offset if offset >= 0 else SIZE + offset)
                stream.write(data)
        return str(path)

    return make


def kinds(path: str) -> set[str]:
    return {signature.kind for signature in read_content(path, "d", SIZE).signatures}


@pytest.mark.parametrize(
    ("offset", "data", "kind"),
    [
        (0x100000, b"\x0d\xd0\x01\xc0", "VMFS_volume_member"),
        (0x200000, b"\x5e\xf1\xab\x2f", "VMFS"),
        (32, b"ORCLDISK", "oracleasm"),
        (0, b"bluestore block device", "ceph_bluestore"),
        (0x10000, b"\x01\x16\x19\x70", "gfs2"),
        (0x2000, b"OCFSV2", "ocfs2"),
        (512, b"LABELONE", "LVM2_member"),
        (0, b"LUKS\xba\xbe\x00\x02", "crypto_LUKS"),
        (4086, b"SWAPSPACE2", "swap"),
    ],
)
def test_a_format_is_known_by_its_magic(image: Callable[..., str], offset: int, data: bytes, kind: str) -> None:
    path = image((offset, data))
    content = read_content(path, "d", SIZE)
    assert kind in kinds(path) or content.start == "data"
    assert objection(content)


def test_without_the_library_blkid_is_asked(image: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def runner(argv: list[str], **_: Any) -> Completed:
        asked.append(argv)
        return Completed(
            tuple(argv), 0, "DEVNAME=/x\nTYPE=xfs\nUUID=u-1\nLABEL=l\nUSAGE=filesystem\nPTTYPE=gpt\n", "", 0.1
        )

    monkeypatch.setattr(blkid, "_LIBRARY", "no-such-library.so")
    path = image()
    content = read_content(path, "d", SIZE, runner=runner)
    assert content.signatures == (
        FormatSignature("filesystem", "xfs", "u-1", "l"),
        FormatSignature("partition table", "gpt"),
    )
    assert asked == [["blkid", "-p", "-o", "export", path]]


def test_without_library_and_tool_nothing_is_known_and_all_is_refused(
    image: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty answer would be the worst one."""

    def runner(argv: list[str], **_: Any) -> Completed:
        raise ToolError(f"`{argv[0]}` is not installed on this machine")

    monkeypatch.setattr(blkid, "_LIBRARY", "no-such-library.so")
    content = read_content(image(), "d", SIZE, runner=runner)
    assert objection(content) == "cannot be examined: `blkid` is not installed on this machine"


@pytest.mark.parametrize(
    ("rc", "text", "expected"),
    [
        (2, "", []),
        (8, "", [FormatSignature("other", "several formats at once")]),
        (0, "PTTYPE=dos\nPTUUID=1\n", [FormatSignature("partition table", "dos", "")]),
        (0, "DEVNAME=/dev/sda\n", [FormatSignature("other", "unknown")]),
    ],
)
def test_what_blkid_answers(rc: int, text: str, expected: list[FormatSignature]) -> None:
    assert [(found.usage, found.kind) for found in parse_export(rc, text)] == [(e.usage, e.kind) for e in expected]


def test_an_answer_of_blkid_that_is_none_is_an_error() -> None:
    """Status 4 is wrong use or an internal error."""
    with pytest.raises(ToolError, match="status 4"):
        parse_export(4, "")
    with pytest.raises(ToolError, match="told of several devices"):
        parse_export(0, "DEVNAME=/dev/sda1\nTYPE=ext4\n\nDEVNAME=/dev/sdb\nTYPE=linux_raid_member\n")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, SIZE - 1), st.integers(1, 255))
def test_one_byte_anywhere_in_the_ends_is_data(offset: int, value: int) -> None:
    import tempfile  # noqa: PLC0415

    with tempfile.NamedTemporaryFile() as stream:
        stream.truncate(SIZE)
        stream.seek(offset)
        stream.write(bytes([value]))
        stream.flush()
        content = read_content(stream.name, "d", SIZE)
    near = offset < 8 << 20 or offset >= SIZE - (8 << 20)
    assert bool(objection(content)) == near


def test_a_drive_that_cannot_be_read_to_its_end_is_refused(image: Callable[..., str]) -> None:
    assert "cannot be read" in objection(read_content(image(), "d", SIZE + (1 << 20)))
    assert "cannot be opened" in objection(read_content("/nonexistent", "d", SIZE))


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_a_drive_that_reads_otherwise_the_second_time_is_refused_for_that(
    image: Callable[..., str], monkeypatch: pytest.MonkeyPatch, wrong: int
) -> None:
    """The `wrong`th read from a stamped or an empty drive gives what is not there: the drive does not hold data."""
    plain, reads = os.pread, itertools.count()

    def pread(descriptor: int, length: int, offset: int) -> bytes:
        data = plain(descriptor, length, offset)
        return b"\x55" * length if next(reads) == wrong else data

    monkeypatch.setattr(signatures.os, "pread", pread)
    assert "when it was read again" in objection(read_content(image(), "d", SIZE, runner=no_formats))


def no_formats(*_: Any, **__: Any) -> Completed:
    return Completed((), 2, "", "")


@pytest.mark.parametrize(("start", "end", "end_named"), [("stamp", "data", "last"), ("data", "stamp", "first")])
def test_data_beside_one_stamp_is_data_unless_storqual_itself_was_clearing_the_drive(
    start: str, end: str, end_named: str
) -> None:
    content = Content((), start, end, stamps=("start",) if start == "stamp" else ("end",))
    assert objection(content) == f"holds data of an unknown kind in its {end_named} 8 MiB"
    assert objection(content, restamping=True) == ""


@pytest.mark.parametrize(("uuid", "member", "may"), [("u1", True, True), ("u1", False, False), ("u2", True, False)])
def test_a_member_of_our_array_may_change_while_it_is_read(uuid: str, member: bool, may: bool) -> None:
    """The initialisation of a mirror carries the stamp at one member's end to the others."""
    content = Content((FormatSignature("raid", "linux_raid_member", uuid),), "data", "foreign", unsteady=True)
    assert (objection(content, made=["u1"], member=member) == "") == may
    assert objection(Content((), "data", "empty", unsteady=True), made=["u1"], member=True)


def test_only_what_storqual_made_itself_is_no_objection() -> None:
    xfs, bare = FormatSignature("filesystem", "xfs", "u-1"), FormatSignature("filesystem", "xfs")
    assert objection(Content((xfs,), "data", "data"), made=["u-1"]) == ""
    assert objection(Content((xfs,), "data", "data"), made=["u-2"])
    assert objection(Content((bare,), "empty", "empty"), made=[""])
    assert objection(Content((xfs, FormatSignature("partition table", "gpt", "u-9")), "data", "data"), made=["u-1"])


DRIVE = "0x5000c50000000001"
MAGIC = b"storqual scratch"


def blank(tmp_path: Path) -> Path:
    path = tmp_path / "drive"
    with path.open("wb") as stream:
        stream.truncate(SIZE)
    return path


def test_both_ends_are_stamped_and_nothing_else_is_touched(tmp_path: Path) -> None:
    """4 KiB at each end."""
    path = blank(tmp_path)
    write_stamps(str(path), DRIVE, SIZE, run="run-1")
    data = path.read_bytes()
    assert read_stamp(data[:STAMP], DRIVE, SIZE, end="start") == "stamp"
    assert read_stamp(data[-STAMP:], DRIVE, SIZE, end="end") == "stamp"
    assert not any(data[STAMP:-STAMP])
    assert read_content(str(path), DRIVE, SIZE).stamped


@pytest.mark.parametrize(
    ("drive", "size", "end"),
    [("0x5000c50000000002", SIZE, "start"), (DRIVE, SIZE + 512, "start"), (DRIVE, SIZE, "end")],
)
def test_a_stamp_of_another_drive_size_or_end_is_not_this_drives(drive: str, size: int, end: str) -> None:
    assert read_stamp(make_stamp(drive, size, end=end), DRIVE, SIZE, end="start") == "foreign"


def test_a_new_run_may_stamp_over_an_old_stamp() -> None:
    old, new = make_stamp(DRIVE, SIZE, end="start", run="a"), make_stamp(DRIVE, SIZE, end="start", run="b")
    assert read_stamp(new[:1024] + old[1024:], DRIVE, SIZE, end="start") == "stamp"


@settings(deadline=None)
@given(st.integers(0, 8))
def test_a_stamp_cut_off_at_any_sector_is_a_stamp_or_nothing(sectors: int) -> None:
    cut = make_stamp(DRIVE, SIZE, end="start")[: sectors * 512].ljust(STAMP, b"\0")
    assert read_stamp(cut, DRIVE, SIZE, end="start") == ("stamp" if sectors else "empty")


@settings(deadline=None)
@given(st.integers(0, 447), st.integers(1, 255))
def test_any_changed_byte_of_a_record_is_noticed(place: int, change: int) -> None:
    block = bytearray(make_stamp(DRIVE, SIZE, end="start"))
    block[place] ^= change
    assert read_stamp(bytes(block), DRIVE, SIZE, end="start") in ("data", "foreign")


@settings(deadline=None)
@given(st.binary(max_size=600), st.integers(0, STAMP - 600))
@example(MAGIC, 0)
@example(MAGIC, 7)
def test_other_blocks_are_data(data: bytes, offset: int) -> None:
    block = (bytes(offset) + data).ljust(STAMP, b"\0")
    # what begins as a stamp does, and is none, is nobody's to write over either
    begins = any(block[place:].startswith(MAGIC) for place in range(0, STAMP, 512))
    expected = "foreign" if begins else "data" if any(block) else "empty"
    assert read_stamp(block, DRIVE, SIZE, end="start") == expected


STEPS = ("end", "start")


@pytest.mark.parametrize("done", range(3))
def test_a_power_cut_while_an_empty_drive_is_stamped_leaves_a_drive_that_is_accepted(
    tmp_path: Path, done: int
) -> None:
    path = blank(tmp_path)
    with path.open("r+b") as stream:
        for end in STEPS[:done]:
            stream.seek(0 if end == "start" else SIZE - STAMP)
            stream.write(make_stamp(DRIVE, SIZE, end=end))
    content = read_content(str(path), DRIVE, SIZE)
    assert objection(content) == ""
    assert content.stamped == (done == 2)
    write_stamps(str(path), DRIVE, SIZE)
    assert read_content(str(path), DRIVE, SIZE).stamped


class PowerCutError(Exception):
    """The lights went out."""


@pytest.mark.parametrize("writes", range(5))
def test_a_power_cut_while_a_drive_is_cleared_leaves_a_drive_that_is_known(
    tmp_path: Path, writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import storqual_core.guard.signatures as module  # noqa: PLC0415
    from storqual_core.tools.blkid import FormatSignature  # noqa: PLC0415

    path = blank(tmp_path)
    with path.open("r+b") as stream:
        # a file system over the whole drive: its superblock at the start, data everywhere
        stream.write(b"XFSB" + b"x" * (SIZE - 4))
    write, left = module._write, [writes]

    def cut(descriptor: int, data: bytes, offset: int) -> None:
        if not left[0]:
            raise PowerCutError
        left[0] -= 1
        write(descriptor, data, offset)

    monkeypatch.setattr(module, "_write", cut)
    try:
        write_stamps(str(path), DRIVE, SIZE, clear=True)
    except PowerCutError:
        assert writes < 4
    content = read_content(str(path), DRIVE, SIZE)
    made = ["uuid-1"]
    if path.read_bytes()[:4] == b"XFSB":
        content = type(content)(
            (FormatSignature("filesystem", "xfs", "uuid-1"),), content.start, content.end, stamps=content.stamps
        )
    assert objection(content, made=made, restamping=True) == ""
    assert content.stamped == (writes == 4)


def test_the_window_lies_between_the_guards_areas_in_whole_mib() -> None:
    """With fio's largest block it stays aligned."""
    assert (window(1 << 30).offset, window(1 << 30).size) == (AREA, (1 << 30) - 2 * AREA)
    assert window((1 << 30) + 512).size == (1 << 30) - 2 * AREA
    with pytest.raises(ValueError, match="too small"):
        window(2 * AREA)


def test_a_name_that_does_not_fit_is_refused() -> None:
    for drive in ("", "x" * 257):
        with pytest.raises(ValueError, match="not a drive name"):
            make_stamp(drive, SIZE, end="start")


def test_what_is_announced_is_on_disk_at_once(tmp_path: Path) -> None:
    ledger, first = Ledger.read(str(tmp_path)).announce("a")
    ledger, second = ledger.announce("a")
    assert first != second
    assert Ledger.read(str(tmp_path)).made == {"a": frozenset({first, second})}


def test_a_cleared_drive_is_forgotten_and_others_are_not(tmp_path: Path) -> None:
    ledger, _ = Ledger.read(str(tmp_path)).announce("a")
    ledger, kept = ledger.announce("b")
    ledger = ledger.clearing("a")
    assert Ledger.read(str(tmp_path)).restamping == {"a"}
    ledger.cleared("a")
    found = Ledger.read(str(tmp_path))
    assert (found.made, found.restamping) == ({"b": frozenset({kept})}, frozenset())


def test_a_drive_that_was_lent_is_on_disk_at_once_until_it_is_cleared(tmp_path: Path) -> None:
    Ledger.read(str(tmp_path)).lending("a")
    ledger = Ledger.read(str(tmp_path)).clearing("b")
    assert Ledger.read(str(tmp_path)).lent == {"a"}
    ledger.cleared("a")
    found = Ledger.read(str(tmp_path))
    assert (found.lent, found.restamping) == (frozenset(), {"b"})


def test_a_list_from_before_drives_were_lent_is_read(tmp_path: Path) -> None:
    (tmp_path / "made.json").write_text('{"storqual.made/1": {"made": {}, "restamping": ["a"]}}')
    found = Ledger.read(str(tmp_path))
    assert (found.lent, found.restamping) == (frozenset(), {"a"})


def test_a_bench_on_which_nothing_was_made_has_an_empty_list(tmp_path: Path) -> None:
    assert Ledger.read(str(tmp_path / "nothing")).made == {}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"storqual.made/1": {"made": 3, "restamping": []}}', "\x00"])
def test_a_damaged_list_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "made.json").write_text(text)
    with pytest.raises(StorqualError, match="cannot be read"):
        Ledger.read(str(tmp_path))
