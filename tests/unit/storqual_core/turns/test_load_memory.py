# SPDX-License-Identifier: Apache-2.0
"""Every shape of memory is what its name says, holds what is put into it, and sees what is written beside it."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.turns.load_levels import SHAPES
from storqual_core.turns.load_memory import PAGE, Arena, Shaped

BLOCK, ALIGNMENT = 512, 4
ARENA = Arena(1 << 20, ALIGNMENT, BLOCK, 7)


def places(shaped: Shaped) -> list[int]:
    """Where each piece begins."""
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
