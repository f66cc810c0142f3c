# SPDX-License-Identifier: Apache-2.0
"""Archives are written as they were read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.archives import Member, compose, new_file, new_folder, read_archive
from storqual_core.kit.errors import ToolError

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
