# SPDX-License-Identifier: Apache-2.0
"""Logs of writes, and the images of simulated power cuts that are built from them."""

import struct
from pathlib import Path

import pytest

from storqual.kinds.images import DISCARD, FLUSH, FUA, MAGIC, MARK, check_power_cuts, logged_writes, read_log
from storqual.kinds.oracle import Oracle
from storqual_core.kit.errors import ToolError
from storqual_core.turns.sectors import make_sectors

TAG = b"trial--1"
Step = tuple[str, int]


def log_file(
    path: Path, entries: list[tuple[int, int, bytes]], *, sector: int = 512, count: int | None = None
) -> Path:
    """A log as the kernel's documentation describes it: `(sector, flags, data)` of each entry."""
    parts = [struct.pack("<QQQI", MAGIC, 1, len(entries) if count is None else count, sector).ljust(sector, b"\0")]
    for first_sector, flags, data in entries:
        sectors = 0 if flags & MARK else max(1, len(data) // sector) if flags & DISCARD else len(data) // sector
        head = struct.pack("<QQQQ", first_sector, sectors, flags, len(data) if flags & MARK else 0)
        parts.append(head.ljust(sector, b"\0"))
        if not flags & DISCARD:
            parts.append(data.ljust(-(-len(data) // sector) * sector, b"\0"))
    path.write_bytes(b"".join(parts))
    return path


def test_entries_flags_and_data_of_a_log_are_read(tmp_path: Path) -> None:
    first, second = make_sectors(TAG, 8, 1, 2), make_sectors(TAG, 9, 2, 1)
    log = read_log(
        log_file(
            tmp_path / "log",
            [(8, 0, first), (0, FLUSH, b""), (0, MARK, b"here"), (3, DISCARD, b""), (9, FUA, second)],
        )
    )
    assert [(entry.sector, entry.sectors, entry.flags) for entry in log.entries] == [
        *((8, 2, 0), (0, 0, FLUSH), (0, 0, MARK), (3, 1, DISCARD), (9, 1, FUA))
    ]
    assert log.data(log.entries[0]) == first
    assert log.data(log.entries[4]) == second


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:10], "no log of writes"),
        (lambda data: b"x" + data[1:], "no log of writes"),
        (lambda data: data[:8] + b"\2" + data[9:], "version 2"),
        (lambda data: data[:24] + struct.pack("<I", 500) + data[28:], "sectors of 500"),
        (lambda data: data[:-1], "cut off"),
        (lambda data: data[:600], "cut off"),
        (lambda data: data[:528] + b"\x40" + data[529:], "not known"),
    ],
    ids=["short", "magic", "version", "sector", "data", "entry", "flags"],
)
def test_what_is_no_whole_log_is_refused(tmp_path: Path, change: object, message: str) -> None:
    path = log_file(tmp_path / "log", [(8, 0, make_sectors(TAG, 8, 1, 2))])
    path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(ToolError, match=message):
        read_log(path)


def trial(
    tmp_path: Path, steps: list[Step], *, dropped: tuple[int, ...] = (), swallow_flushes: bool = False
) -> object:
    """A guest that writes and flushes one after the other, and what its driver passes on to the drive's log.

    `dropped` are sequences that the driver acknowledges and never sends; `swallow_flushes` does so with flushes.
    """
    oracle, entries, now = Oracle(), [], 0
    for number, (kind, sector) in enumerate(steps, start=1):
        oracle.take([[kind, number if kind != "f" else 0, sector, 1, now, now + 1, 0]])
        now += 2
        if kind == "f" and not swallow_flushes:
            entries.append((0, FLUSH, b""))
        if kind != "f" and number not in dropped:
            entries.append((sector, FUA if kind == "d" else 0, make_sectors(TAG, sector, number, 1)))
    return check_power_cuts(logged_writes(read_log(log_file(tmp_path / "log", entries)), TAG), oracle, seed=1)


STEPS: list[Step] = [
    *(("w", 1), ("w", 2), ("w", 3), ("f", 0)),
    *(("w", 1), ("d", 4), ("w", 5), ("f", 0)),
    *(("w", 2), ("f", 0)),
]


def test_a_stack_that_sends_what_it_acknowledges_is_never_accused(tmp_path: Path) -> None:
    images = trial(tmp_path, STEPS)
    assert images.missing == ()
    assert images.points == 4
    # none, all, each of three and four drawn; the same of two beside one written through; none, all, each of one
    assert images.images == (2 + 3 + 4) + (2 + 2 + 4) + (2 + 1) + 1


def test_a_flush_that_is_acknowledged_and_never_sent_is_found(tmp_path: Path) -> None:
    missing = trial(tmp_path, STEPS, swallow_flushes=True).missing
    assert {(loss.sector, loss.expected) for loss in missing} == {(1, 5), (2, 2), (3, 3), (5, 7)}
    assert "all" in {loss.lost for loss in missing}
    assert "none" not in {loss.lost for loss in missing}


def test_a_flushed_write_that_never_reached_the_drive_is_missing_even_when_nothing_is_lost(tmp_path: Path) -> None:
    missing = trial(tmp_path, STEPS, dropped=(2,)).missing
    assert {(loss.sector, loss.expected, loss.present) for loss in missing} == {(2, 2, 0)}
    assert "none" in {loss.lost for loss in missing}


def test_a_write_through_that_never_reached_the_drive_is_missing(tmp_path: Path) -> None:
    missing = trial(tmp_path, STEPS, dropped=(6,)).missing
    assert {(loss.sector, loss.expected) for loss in missing} == {(4, 6)}


def test_a_write_through_is_never_lost_with_the_cache(tmp_path: Path) -> None:
    assert trial(tmp_path, [("d", 1), ("w", 2), ("w", 3), ("f", 0)]).missing == ()


def test_an_unflushed_write_may_be_lost(tmp_path: Path) -> None:
    assert trial(tmp_path, [("w", 1), ("w", 1), ("w", 2)]).missing == ()


def test_what_was_written_before_the_log_began_has_lasted(tmp_path: Path) -> None:
    oracle = Oracle()
    oracle.take([["w", 1, 1, 2, 0, 1, 0], ["f", 0, 0, 0, 2, 3, 0], ["w", 2, 1, 1, 10, 11, 0]])
    log = read_log(log_file(tmp_path / "log", [(1, 0, make_sectors(TAG, 1, 2, 1))]))
    assert check_power_cuts(logged_writes(log, TAG), oracle, seed=1, since=5).missing == ()
    # without the log's begin, and with a log that began before, the first write never reached the drive
    missing = check_power_cuts(logged_writes(log, TAG), oracle, seed=1).missing
    assert {(loss.sector, loss.expected) for loss in missing} == {(1, 1), (2, 1)}
    assert "write 1 was told to be flushed and is missing at sector 2, nothing of this trial is there" in " ".join(
        loss.sentence for loss in missing
    )


def large(tmp_path: Path, *, late: bool) -> object:
    """A write of 64 sectors, a flush, and more after it; a `late` second half goes out once the flush is answered."""
    oracle = Oracle()
    for at, (kind, number, sector) in enumerate((("w", 1, 0), ("f", 0, 0), ("w", 2, 100), ("f", 0, 0))):
        oracle.take([[kind, number, sector, 64 if number else 0, 2 * at, 2 * at + 1, 0]])
    one, second = (bytes(make_sectors(TAG, sector, number, 64)) for number, sector in ((1, 0), (2, 100)))
    head, tail, flush = (0, 0, one[: 32 * 512]), (32, 0, one[32 * 512 :]), (0, FLUSH, b"")
    first = [head, flush, tail] if late else [head, tail, flush]
    entries = [*first, (100, 0, second), flush]
    return check_power_cuts(logged_writes(read_log(log_file(tmp_path / "log", entries)), TAG), oracle, seed=1)


def test_the_half_of_a_large_write_that_goes_out_after_its_flush_is_missing(tmp_path: Path) -> None:
    images = large(tmp_path, late=True)
    assert {loss.sector for loss in images.missing} == set(range(32, 64))
    assert {loss.expected for loss in images.missing} == {1}


def test_a_transfer_that_is_torn_where_nothing_was_promised_is_no_failure(tmp_path: Path) -> None:
    """Its head or its tail alone is on the drive: of each sector what was there before, or what was written."""
    images = large(tmp_path, late=False)
    assert images.missing == ()
    # none, all, each, torn twice: of two writes, with four drawn, and of one; and the end
    assert images.images == (2 + 2 + 2 + 4) + (2 + 1 + 2) + 1
