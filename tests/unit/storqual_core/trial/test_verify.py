# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from storqual_core.trial.sectors import SECTOR, make_sectors
from storqual_core.trial.verify import read_region

if TYPE_CHECKING:
    from pathlib import Path

TAG = b"trial--1"


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
