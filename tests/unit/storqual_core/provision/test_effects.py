# SPDX-License-Identifier: Apache-2.0
"""What a setting of a drive does is seen by reads and counters, and what cannot be seen is not said."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from storqual_core.host.block_stack import DriveTarget
from storqual_core.kit.results import NOT_SHOWN
from storqual_core.provision import drives, engine
from storqual_core.provision.drives import EFFECTS, DriveSettings, Watched, effect_of, judge_read_pattern
from storqual_core.provision.engine import Proof, SettingPlan, apply
from storqual_core.provision.queue import InFlight


class Drive(Watched):
    """A file as a drive; each reading of its counters is the next of a list."""

    def __init__(self, root: Path, *looks: dict[int, int], nvme: bool = False) -> None:
        self.root = root
        (root / "block/sda/queue").mkdir(parents=True)
        (root / "sda").write_bytes(bytes(1 << 22))
        self.looks = list(looks)
        super().__init__(DriveTarget("0x5000", "nvme0n1" if nvme else "sda", "/dev/sg0"), 0.1, str(root), str(root))

    def write(self, name: str, text: str) -> None:
        path = self.root / "block/sda" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def counters(self) -> list[int]:
        look = self.looks.pop(0)
        return [look.get(place, 0) for place in range(17)]


@pytest.fixture(autouse=True)
def no_direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.O_DIRECT", 0)


@pytest.mark.parametrize(("declared", "flushes", "proven"), [(1, 1, True), (1, 0, False), (0, 0, True), (0, 1, None)])
def test_a_write_cache_is_shown_by_what_becomes_of_a_flush(
    tmp_path: Path, declared: int, flushes: int, proven: bool | None
) -> None:
    drive = Drive(tmp_path, {15: 3}, {15: 3 + flushes})
    assert effect_of(drive, "WCE", declared)[0] is proven


def test_a_kernel_that_counts_no_flushes_shows_no_write_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = Drive(tmp_path)
    monkeypatch.setattr(drive, "counters", lambda: [0] * 11)
    proven, why = effect_of(drive, "WCE", 1)
    assert (proven, why) == (None, "this kernel does not count flushes")


@pytest.mark.parametrize(
    ("name", "own", "proven"),
    [
        ("none", [], True),
        ("none", ["fifo_batch"], False),
        ("mq-deadline", ["fifo_batch", "read_expire"], True),
        ("mq-deadline", ["slice_idle"], False),
        ("mq-deadline", [], False),
        ("kyber", ["read_lat_nsec"], True),
        ("special", ["x"], None),
    ],
)
def test_a_scheduler_is_shown_by_what_only_it_has(
    tmp_path: Path, name: str, own: list[str], proven: bool | None
) -> None:
    drive = Drive(tmp_path)
    for attribute in own:
        drive.write(f"queue/iosched/{attribute}", "1\n")
    found, why = effect_of(drive, "scheduler", name)
    assert found is proven
    assert proven is None or "reads were served" in why


def test_a_depth_is_offered_twice_as_many_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offers = []

    def look(_node: str, offered: int, _seconds: float, _sysfs: str, _dev: str) -> InFlight:
        offers.append(offered)
        return InFlight({4: 100}, offered)

    monkeypatch.setattr(drives, "observe_in_flight", look)
    drive = Drive(tmp_path)
    assert [effect_of(drive, "queue_depth", depth)[0] for depth in (4, 100)] == [True, None]
    assert offers == [8, 108]


@pytest.mark.parametrize(
    ("queues", "depth", "proven"), [(1, "64", True), (2, "64", None), (1, "4", None), (1, "", True)]
)
def test_a_number_of_requests_is_shown_where_nothing_below_is_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queues: int, depth: str, proven: bool | None
) -> None:
    monkeypatch.setattr(drives, "observe_in_flight", lambda *_given: InFlight({4: 100}, 8))
    drive = Drive(tmp_path)
    drive.write("device/queue_depth", depth)
    for number in range(queues):
        drive.write(f"mq/{number}/tags", "")
    assert effect_of(drive, "nr_requests", 4)[0] is proven


@pytest.mark.parametrize(("requests", "proven"), [(4, True), (8, None), (2, False)])
def test_the_largest_request_is_shown_by_what_a_larger_read_becomes(
    tmp_path: Path, requests: int, proven: bool | None
) -> None:
    drive = Drive(tmp_path, {0: 0, 2: 0}, {0: requests, 2: 4 * 64 * 2})
    assert effect_of(drive, "max_sectors_kb", 64)[0] is proven


@pytest.mark.parametrize(("declared", "kib", "proven"), [(64, 64, True), (64, 4, None), (0, 4, True), (0, 64, None)])
def test_read_ahead_is_shown_by_the_size_of_requests(
    tmp_path: Path, declared: int, kib: int, proven: bool | None
) -> None:
    drive = Drive(tmp_path, {}, {0: 10, 2: 10 * kib * 2})
    assert effect_of(drive, "read_ahead_kb", declared)[0] is proven


@pytest.mark.parametrize(
    ("scattered", "pattern", "disabled", "proven"),
    [
        ([8000] * 20, [100] * 20, False, True),
        ([8000] * 20, [100] * 20, True, None),
        ([8000] * 20, [7000] * 20, False, None),
        ([8000] * 20, [7000] * 20, True, None),
        ([8000] * 5, [100] * 20, False, None),
    ],
)
def test_a_read_cache_is_shown_by_a_pattern_that_it_serves(
    scattered: list[int], pattern: list[int], *, disabled: bool, proven: bool | None
) -> None:
    assert judge_read_pattern(scattered, pattern, disabled=disabled, what="a pattern")[0] is proven


def test_read_patterns_are_read_from_the_drive(tmp_path: Path) -> None:
    drive = Drive(tmp_path)
    for name in ("RCD", "DRA"):
        proven, why = effect_of(drive, name, 1)
        assert proven is None
        assert "median of random reads" in why


def test_what_cannot_be_watched_is_not_shown(tmp_path: Path) -> None:
    drive = Drive(tmp_path)
    (tmp_path / "sda").unlink()
    drive.looks = [{}, {}, {}, {}]
    assert {effect_of(drive, name, 4)[0] for name in EFFECTS} == {None}


class Subject(DriveSettings):
    """Drives whose values are those that were asked for; watching one takes a while."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds
        self.seen: list[tuple[str, str]] = []

    def prove(self, target: Any, name: str, value: object) -> Proof:
        del target, name, value
        return None, "why"

    def watch(self, target: Any, name: str, value: Any, seconds: float) -> Proof:
        del value, seconds
        self.seen.append((target, name))
        time.sleep(self.seconds)
        return True, "seen"


def plans(count: int) -> list[SettingPlan[Any]]:
    values = {"WCE": 1, "NCS": 3}
    return [
        SettingPlan(f"d{number}", f"d{number}", {**values, "RCD": None}, {**values, "RCD": 0})
        for number in range(count)
    ]


def test_the_engine_watches_what_reads_back_and_tells_what_is_not_shown() -> None:
    given = plans(1)
    settings = apply(Subject(), given, save=lambda _memory: None, prove_s=0.1).settings
    records = {entry.name: entry.record() for entry in settings}
    assert (records["drive.WCE"]["proven"], records["drive.WCE"]["proof"]) == (True, "seen")
    assert (records["drive.NCS"]["proven"], records["drive.NCS"]["proof"]) == (None, f"{NOT_SHOWN}: why")
    assert (records["drive.RCD"]["proven"], records["drive.RCD"]["proof"]) == (None, "")


def test_nothing_is_watched_unasked_or_in_check_mode() -> None:
    for asked in ({"save": None, "prove_s": 1.0}, {"save": lambda _memory: None}):
        settings = apply(Subject(), plans(1), **asked).settings
        assert {entry.proven for entry in settings} == {None}


def test_the_cheapest_setting_of_all_drives_is_watched_first() -> None:
    values = {"queue_depth": 4, "WCE": 1}
    subject = Subject()
    apply(subject, [SettingPlan(d, d, values, values) for d in ("a", "b")], save=lambda _memory: None, prove_s=0.1)
    assert subject.seen == [("a", "WCE"), ("b", "WCE"), ("a", "queue_depth"), ("b", "queue_depth")]


def test_watching_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "PROOFS_S", 0.05)
    settings = apply(Subject(0.06), plans(3), save=lambda _memory: None, prove_s=0.1).settings
    caches = [entry for entry in settings if entry.name == "drive.WCE"]
    assert [entry.proven for entry in caches] == [True, None, None]
    assert "was used up" in caches[1].proof
