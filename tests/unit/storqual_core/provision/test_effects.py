# SPDX-License-Identifier: Apache-2.0
"""What a setting of a drive does is seen by reads and counters, and what cannot be seen is not said."""

import time
from pathlib import Path
from typing import Any

import pytest

from storqual_core.host.block_stack import DriveTarget
from storqual_core.kit.errors import ToolError
from storqual_core.kit.results import NOT_SHOWN
from storqual_core.provision import drives, engine
from storqual_core.provision.drives import EFFECTS, DriveSettings, Watched, effect_of, judge_read_pattern
from storqual_core.provision.engine import Proof, SettingPlan, apply
from storqual_core.provision.mode_pages import judge_write_cache, write_latencies
from storqual_core.provision.queue import InFlight, judge_queue_depth, observe_in_flight


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
