# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.turns.integrity_load import SECTOR, Found, is_of_write, make_sectors, read_region, read_sector

if TYPE_CHECKING:
    from pathlib import Path


TAG, OTHER = b"trial--1", b"trial--2"


def test_each_sector_of_a_write_tells_its_write_at_its_place() -> None:
    data = make_sectors(TAG, 100, 7, 3)
    found = [read_sector(data[at * SECTOR : (at + 1) * SECTOR], TAG, 100 + at) for at in range(3)]
    assert found == [Found("good", 7)] * 3


def test_a_sector_in_another_place_of_the_same_write_is_misdirected() -> None:
    data = make_sectors(TAG, 100, 7, 3)
    assert read_sector(data[SECTOR : 2 * SECTOR], TAG, 100) == Found("misdirected", 7)


def test_a_place_beyond_the_length_of_its_write_is_no_place_of_it() -> None:
    data = make_sectors(TAG, 100, 7, 3)
    assert read_sector(data[2 * SECTOR :], TAG, 103).code == "misdirected"


def test_a_sector_of_another_trial_is_foreign_and_zeros_are_zeros() -> None:
    assert read_sector(make_sectors(OTHER, 5, 1, 1), TAG, 5) == Found("foreign", 0)
    assert read_sector(bytes(SECTOR), TAG, 5) == Found("zero", 0)


@pytest.mark.parametrize("seam", [40, 100, 300, 499])
def test_a_sector_of_two_writes_is_torn_wherever_its_seam_is(seam: int) -> None:
    first, second = make_sectors(TAG, 5, 1, 1), make_sectors(TAG, 5, 2, 1)
    assert read_sector(second[:seam] + first[seam:], TAG, 5) == Found("torn", 2)


def test_a_sector_with_noise_between_two_writes_is_corrupted_not_torn() -> None:
    first, second = make_sectors(TAG, 5, 1, 1), make_sectors(TAG, 5, 2, 1)
    assert read_sector(second[:100] + b"noise" + first[105:], TAG, 5).code == "corrupted"


@given(st.integers(0, SECTOR - 1), st.integers(1, 255), st.integers(1, 2**40), st.integers(0, 2**40))
def test_no_changed_byte_goes_unseen(at: int, flip: int, sequence: int, sector: int) -> None:
    data = bytearray(make_sectors(TAG, sector, sequence, 1))
    data[at] ^= flip
    assert read_sector(bytes(data), TAG, sector).code != "good"


def test_a_tag_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="8 bytes"):
        make_sectors(b"short", 0, 1, 1)


@given(
    sequence=st.integers(1, 1 << 40),
    place=st.integers(0, 3),
    at=st.integers(0, SECTOR - 1),
    change=st.integers(1, 255),
)
def test_a_sector_is_of_a_write_as_long_as_nothing_of_it_is_another(
    sequence: int, place: int, at: int, change: int
) -> None:
    data = make_sectors(TAG, 100, sequence, 4)
    part = bytearray(data[place * SECTOR : (place + 1) * SECTOR])
    assert is_of_write(memoryview(part), TAG, 100 + place, sequence)
    assert not is_of_write(memoryview(part), TAG, 101 + place, sequence)
    assert not is_of_write(memoryview(part), TAG, 100 + place, sequence + 1)
    assert not is_of_write(memoryview(part), OTHER, 100 + place, sequence)
    part[at] ^= change
    assert not is_of_write(memoryview(part), TAG, 100 + place, sequence)


@pytest.mark.parametrize("chunk", [128, 48, 1])
def test_what_is_read_back_does_not_depend_on_the_size_of_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    path, sizes = tmp_path / "drive", []
    path.write_bytes(make_sectors(TAG, 0, 1, 100) + make_sectors(TAG, 100, 2, 50) + bytes(10 * SECTOR))
    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda *words: sizes.append(len(words[1][0])) or preadv(*words))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = list(read_region(descriptor, TAG, 0, 160, chunk))
    finally:
        os.close(descriptor)
    assert found == [(0, 100, "good", 1), (100, 50, "good", 2), (150, 10, "zero", 0)]
    assert max(sizes) == chunk * SECTOR
