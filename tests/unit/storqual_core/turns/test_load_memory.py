# SPDX-License-Identifier: Apache-2.0
"""Every shape of memory is what its name says, holds what is put into it, and sees what is written beside it."""

import ctypes
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.turns import load_memory
from storqual_core.turns.load_levels import SHAPES
from storqual_core.turns.load_memory import PAGE, Arena, Shaped, frames_of

BLOCK, ALIGNMENT = 512, 4
ARENA = Arena(1 << 20, ALIGNMENT, BLOCK, 7)


def places(shaped: Shaped) -> list[int]:
    return [ctypes.addressof(ctypes.c_char.from_buffer(piece)) for piece in shaped.pieces]


@given(st.sampled_from(SHAPES), st.integers(1, 2048))
def test_a_shape_holds_what_is_put_into_it_and_sees_what_changes_beside_it(name: str, blocks: int) -> None:
    shaped = ARENA.shape(name, blocks * BLOCK)
    assert sum(map(len, shaped.pieces)) == blocks * BLOCK
    assert all(len(piece) % BLOCK == 0 for piece in shaped.pieces)
    assert all(place % ALIGNMENT == 0 for place in places(shaped))
    shaped.clear()
    assert not shaped.overrun()
    content = bytes(number % 251 for number in range(blocks * BLOCK))
    shaped.put(content if not shaped.repeats else content[:PAGE] * len(shaped.pieces))
    assert not shaped.overrun()
    if not shaped.repeats:
        assert shaped.data() == content
    for guard in shaped.guards:
        for at in (0, -1):
            before, guard[at] = guard[at], guard[at] ^ 0xFF
            assert shaped.overrun()
            guard[at] = before
    assert shaped.guards


def test_each_shape_is_what_it_is_called() -> None:
    size = 40 * BLOCK
    assert [place % PAGE for place in places(ARENA.shape("aligned", size))] == [0]
    offsets = {places(ARENA.shape("offset", size))[0] % PAGE for _ in range(50)}
    assert len(offsets) > 20
    assert 0 not in offsets
    many = ARENA.shape("segments", size)
    assert len(many.pieces) >= 5
    assert len({place % PAGE for place in places(many)}) > 1
    assert any(len(piece) % 1024 for piece in many.pieces), "odd numbers of blocks"
    one = ARENA.shape("one_page", size)
    assert (len(one.pieces), len(set(places(one))), one.repeats) == (5, 1, True)
    assert not ARENA.shape("one_page", BLOCK).repeats


@pytest.mark.skipif(not ARENA.has_huge, reason="the kernel gives no transparent huge pages")
def test_a_huge_page_is_one_and_a_boundary_of_64_kib_is_crossed() -> None:
    for size in (2 * BLOCK, 40 * BLOCK, 1 << 20):
        (begin,) = places(ARENA.shape("straddle", size))
        assert begin // 65536 < (begin + size - 1) // 65536
    (begin,) = places(ARENA.shape("huge", 1 << 20))
    assert begin % (2 << 20) == 0


@given(st.integers(1, 2049), st.sampled_from([(256, 60), (64, 20), (2048, 600)]))
def test_a_command_has_no_more_pieces_than_it_may_wherever_their_pages_lie(
    blocks: int, request_of: tuple[int, int]
) -> None:
    """Counted as the kernel does in the worst case: no two pages are beside each other in memory."""
    limit, most = request_of
    arena = Arena(2 << 20, ALIGNMENT, BLOCK, 7)
    arena.request = (limit * BLOCK, most)
    segments, left, shaped = 0, limit * BLOCK, arena.shape("segments", blocks * BLOCK)
    for piece, begin in zip(shaped.pieces, places(shaped), strict=True):
        at = 0
        while at < len(piece):
            if not left:
                segments, left = 0, limit * BLOCK
            step = min(len(piece) - at, left, PAGE - (begin + at) % PAGE)
            segments, left, at = segments + 1, left - step, at + step
            assert segments <= most
    assert len(shaped.pieces) > 1 or blocks < limit


@pytest.mark.skipif("across4g" in ARENA.lacks, reason=ARENA.lacks.get("across4g", ""))
def test_a_buffer_lies_on_both_sides_of_the_address_of_4_gib() -> None:
    for size in (BLOCK, 40 * BLOCK, 1 << 20):
        (begin,) = places(ARENA.shape("across4g", size))
        assert begin < 1 << 32 < begin + size


def test_pages_from_below_and_above_4_gib_of_memory_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the kernel says of each page; where all lie on one side that is told, and nothing is pretended."""
    below, above = PAGE * 7, (1 << 32) + PAGE * 9
    monkeypatch.setattr(load_memory, "frames_of", lambda memory: [below, below, above] * (len(memory) // PAGE // 3))
    arena = Arena(1 << 20, ALIGNMENT, BLOCK, 7)
    assert "mixed4g" not in arena.lacks
    begin = places(arena.shape("aligned", BLOCK))[0] // PAGE - 1
    shaped = arena.shape("mixed4g", 11 * BLOCK + 3 * PAGE)
    sides = [(place // PAGE - begin) % 3 == 2 for place in places(shaped)]
    assert sides == [False, True, False, True, False]
    assert len(set(places(shaped))) == 5
    monkeypatch.setattr(load_memory, "frames_of", lambda memory: [below] * (len(memory) // PAGE))
    assert "one side" in Arena(1 << 20, ALIGNMENT, BLOCK, 7).lacks["mixed4g"]
    monkeypatch.setattr(load_memory, "frames_of", lambda _: [])
    assert "does not tell" in Arena(1 << 20, ALIGNMENT, BLOCK, 7).lacks["mixed4g"]


def test_where_pages_lie_is_read_from_the_kernels_map(tmp_path: Path) -> None:
    memory = ARENA.whole()[0][: 4 * PAGE]
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory)) // PAGE
    file = tmp_path / "pagemap"
    with file.open("wb") as stream:
        stream.seek(first * 8)
        stream.write(struct.pack("<4Q", 1 << 63 | 5, 5, 1 << 63 | 1 << 61 | 1 << 20, 1 << 63))
    assert frames_of(memory, str(file)) == [5 * PAGE, 0, 1 << 32, 0]
    assert frames_of(memory, str(tmp_path / "none")) == []
