# SPDX-License-Identifier: Apache-2.0
"""Reads in the background are counted, fail in words, and end with the body."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.provision.queue import random_reads


def test_every_path_is_read_until_the_body_ends(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in "ab"]
    for path in paths:
        Path(path).write_bytes(bytes(65536))
    before = threading.active_count()
    with random_reads(paths, 3) as tally:
        assert threading.active_count() > before
        threading.Event().wait(0.05)
    assert threading.active_count() == before
    assert all(tally.reads[path] > 0 for path in paths)
    assert tally.failures == []


def test_a_read_that_fails_is_told_and_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = str(tmp_path / "good"), str(tmp_path / "bad")
    for path in (good, bad):
        Path(path).write_bytes(bytes(65536))
    preadv = os.preadv

    def read(handle: int, buffers: Any, offset: int) -> int:
        if Path(f"/proc/self/fd/{handle}").readlink() == Path(bad):
            raise OSError(errno.EIO, "Input/output error")
        return preadv(handle, buffers, offset)

    monkeypatch.setattr("os.preadv", read)
    with random_reads([bad, good], 1) as tally:
        threading.Event().wait(0.05)
    assert tally.reads[bad] == 0
    assert tally.reads[good] > 0
    assert tally.failures == [f"{bad}: Input/output error"]


def test_a_path_that_does_not_open_is_a_sentence_before_anything_is_read(tmp_path: Path) -> None:
    before = threading.active_count()
    with (
        pytest.raises(ToolError, match="nowhere cannot be read: No such file"),
        random_reads([str(tmp_path / "nowhere")], 2),
    ):
        pytest.fail("the body must not run")
    assert threading.active_count() == before
