# SPDX-License-Identifier: Apache-2.0
"""Proofs of effect: what was seen, and what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.provision.mode_pages import judge_write_cache, write_latencies
from storqual_core.provision.queue import InFlight, judge_queue_depth, observe_in_flight


@pytest.mark.parametrize(
    ("seen", "proven"),
    [
        (InFlight({4: 500}, offered=8), True),
        (InFlight({5: 400, 4: 100}, offered=8), False),
        (InFlight({5: 1}, offered=8), False),
        (InFlight({3: 500}, offered=8), None),
        (InFlight({4: 3}, offered=8), None),
        (InFlight({4: 500}, offered=4), None),
        (InFlight({}, offered=8), None),
        # one look in which a request was counted twice is none against the depth
        (InFlight({4: 499, 5: 1}, offered=8), True),
        (InFlight({4: 470, 5: 30}, offered=8), False),
        # a drive so fast that its queue is rarely full, with and without the depth
        (InFlight({2: 490, 4: 2, 5: 8}, offered=8), None),
    ],
)
def test_a_depth_is_shown_when_it_is_reached_and_not_exceeded(seen: InFlight, proven: bool | None) -> None:
    verdict, sentence = judge_queue_depth(4, seen)
    assert verdict is proven
    assert f"{seen.highest} in flight" in sentence


@pytest.mark.parametrize(
    ("on", "off", "proven"),
    [
        ([100.0] * 30, [500.0] * 30, True),
        ([100.0] * 30, [101.0] * 30, None),
        ([100.0] * 3, [500.0] * 30, None),
        ([], [], None),
    ],
)
def test_a_write_cache_is_shown_by_slower_writes_without_it(on: list, off: list, proven: bool | None) -> None:
    assert judge_write_cache(on, off)[0] is proven


def test_reads_are_offered_and_the_count_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.O_DIRECT", 0)
    (tmp_path / "block" / "sdb").mkdir(parents=True)
    (tmp_path / "block" / "sdb" / "inflight").write_text("       3        1\n")
    (tmp_path / "sdb").write_bytes(bytes(1 << 16))
    seen = observe_in_flight("sdb", 6, 0.1, sysfs=str(tmp_path), dev=str(tmp_path))
    assert (seen.highest, seen.offered) == (4, 6)
    assert seen.samples > 3


def test_a_drive_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="sdb cannot be read: No such file"):
        observe_in_flight("sdb", 6, 0.1, dev=str(tmp_path))


def test_single_writes_stay_inside_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.O_DIRECT", 0)
    path = tmp_path / "disk"
    path.write_bytes(b"x" * (1 << 16))
    found = write_latencies(str(path), 8192, 16384)
    assert len(found) == 40
    assert min(found) > 0
    data = path.read_bytes()
    assert data[:8192] == b"x" * 8192
    assert data[24576:] == b"x" * (len(data) - 24576)
    assert b"\0" in data


def test_a_drive_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="nothing cannot be written: No such file"):
        write_latencies(str(tmp_path / "nothing"), 0, 4096)
