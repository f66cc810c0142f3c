# SPDX-License-Identifier: Apache-2.0
"""A drive that storqual may overwrite is known again, also after a power cut in the middle of stamping it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from storqual_core.guard.signatures import (
    AREA,
    STAMP,
    make_stamp,
    objection,
    read_content,
    read_stamp,
    window,
    write_stamps,
)

DRIVE = "0x5000c50000000001"
SIZE = 20 << 20
MAGIC = b"storqual scratch"


def blank(tmp_path: Path) -> Path:
    """An empty drive."""
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
