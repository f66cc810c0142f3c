# SPDX-License-Identifier: Apache-2.0
"""Known formats are found by libblkid, by blkid where the library is missing, and nothing unknown counts as empty."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core.guard.signatures import Content, objection, read_content
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.tools import blkid
from storqual_core.tools.blkid import FormatSignature, parse_export

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """The types that were found."""
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


@pytest.mark.parametrize(("start", "end", "end_named"), [("stamp", "data", "last"), ("data", "stamp", "first")])
def test_data_beside_one_stamp_is_data_unless_storqual_itself_was_clearing_the_drive(
    start: str, end: str, end_named: str
) -> None:
    content = Content((), start, end, stamps=("start",) if start == "stamp" else ("end",))
    assert objection(content) == f"holds data of an unknown kind in its {end_named} 8 MiB"
    assert objection(content, restamping=True) == ""


def test_only_what_storqual_made_itself_is_no_objection() -> None:
    xfs, bare = FormatSignature("filesystem", "xfs", "u-1"), FormatSignature("filesystem", "xfs")
    assert objection(Content((xfs,), "data", "data"), made=["u-1"]) == ""
    assert objection(Content((xfs,), "data", "data"), made=["u-2"])
    assert objection(Content((bare,), "empty", "empty"), made=[""])
    assert objection(Content((xfs, FormatSignature("partition table", "gpt", "u-9")), "data", "data"), made=["u-1"])
