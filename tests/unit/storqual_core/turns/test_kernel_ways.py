# SPDX-License-Identifier: Apache-2.0
"""Each way into the kernel is the one that it is called, and what it wrote is on the drive when it ends."""

import errno
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storqual_core.turns import kernel_ways
from storqual_core.turns.kernel_ways import RWF_DSYNC, KernelWays, LackingError
from storqual_core.turns.load_levels import QueueLimits
from storqual_core.turns.load_memory import Arena
from storqual_core.turns.scsi_command import CommandEnd
from storqual_core.turns.sectors import SECTOR

LIMITS = QueueLimits(scsi=False, hard=64, segments=10)
ARENA = Arena(1 << 20, 512, SECTOR, 1)
CONTENT = bytes(range(256)) * 32
WRITES = ("direct", "dsync", "buffered", "range", "mmap", "uring")


@pytest.fixture
def ways(tmp_path: Path) -> Iterator[KernelWays]:
    """All ways to a file, which takes no O_DIRECT everywhere."""
    (tmp_path / "drive").write_bytes(bytes(1 << 20))
    descriptor = os.open(tmp_path / "drive", os.O_RDWR)
    found = KernelWays(descriptor, LIMITS, ARENA)
    yield found
    found.close()
    os.close(descriptor)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The system calls that say how durable a write is, in their order, with their flags."""
    seen: list[tuple[Any, ...]] = []

    def through(name: str, *, flags: bool = False) -> None:
        real = getattr(os, name)

        def call(descriptor: int, *rest: Any) -> Any:
            seen.append((name, *(rest[2:3] if flags else ())))
            return real(descriptor, *rest)

        monkeypatch.setattr(kernel_ways.os, name, call)

    through("pwritev", flags=True)
    through("preadv")
    through("fdatasync")
    through("posix_fadvise")

    class Library:
        """libc, whose sync_file_range is told."""

        syscall = kernel_ways._LIBC.syscall

        @staticmethod
        def sync_file_range(*words: Any) -> int:
            seen.append(("sync_file_range", words[1].value, words[2].value, words[3].value))
            return 0

    monkeypatch.setattr(kernel_ways, "_LIBC", Library)
    return seen


@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize("back", ["direct", "buffered", "mmap", "uring"])
@pytest.mark.parametrize("shape", ["aligned", "segments"])
def test_what_one_way_wrote_every_other_reads(ways: KernelWays, way: str, back: str, shape: str) -> None:
    if "uring" in ways.ring_lacks and "uring" in (way, back):
        pytest.skip(ways.ring_lacks["uring"])
    memory = ARENA.shape(shape, len(CONTENT))
    memory.put(CONTENT)
    ways.write(way, memory, 3)
    found = ARENA.shape(shape, len(CONTENT))
    found.clear()
    ways.read(back, found, 3)
    assert (found.data(), found.overrun()) == (CONTENT, False)
    beside = ARENA.shape("aligned", SECTOR)
    for sector in (2, 3 + len(CONTENT) // SECTOR):
        ways.read("direct", beside, sector)
        assert beside.data() == bytes(SECTOR)


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("direct", [("pwritev", 0)]),
        ("dsync", [("pwritev", RWF_DSYNC)]),
        ("buffered", [("posix_fadvise",), ("pwritev",), ("fdatasync",)]),
        ("range", [("posix_fadvise",), ("pwritev",), ("sync_file_range", 5 * SECTOR, len(CONTENT), 7)]),
    ],
)
def test_a_write_is_as_durable_as_its_way_says(
    ways: KernelWays, calls: list[tuple[Any, ...]], way: str, expected: list[tuple[Any, ...]]
) -> None:
    memory = ARENA.shape("aligned", len(CONTENT))
    memory.put(CONTENT)
    ways.write(way, memory, 5)
    assert calls == expected


@pytest.mark.parametrize("way", ["buffered", "mmap"])
def test_a_read_through_the_cache_begins_with_an_empty_one(
    ways: KernelWays, calls: list[tuple[Any, ...]], way: str
) -> None:
    ways.read(way, ARENA.shape("aligned", SECTOR), 0)
    assert calls[0] == ("posix_fadvise",)


def test_a_transfer_that_is_short_is_an_error(ways: KernelWays, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = ARENA.shape("aligned", 4 * SECTOR)
    for name in ("pwritev", "preadv"):
        monkeypatch.setattr(kernel_ways.os, name, lambda *_: 3 * SECTOR)
    for act in (lambda: ways.write("direct", memory, 0), lambda: ways.read("direct", memory, 0)):
        with pytest.raises(OSError, match="1536 of 2048 bytes"):
            act()


def test_what_the_kernel_refuses_is_lacking_and_an_error_of_the_drive_is_none(
    ways: KernelWays, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(number: int) -> None:
        def call(*_: Any) -> int:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(kernel_ways.os, "pwritev", call)

    fail(errno.EOPNOTSUPP)
    with pytest.raises(LackingError, match="dsync"):
        ways.write("dsync", ARENA.shape("aligned", SECTOR), 0)
    fail(errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        ways.write("dsync", ARENA.shape("aligned", SECTOR), 0)


def test_a_transfer_beyond_what_the_driver_takes_is_several_commands(
    ways: KernelWays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten segments are eight pages at most, wherever they lie; a command is never split by the kernel."""
    sent: list[tuple[str, int, int]] = []

    def send(_: int, command: bytes, pieces: Any = (), **__: object) -> CommandEnd:
        size = sum(map(len, pieces))
        sent.append((command[:1].hex(), int.from_bytes(command[2:6], "big"), size))
        assert int.from_bytes(command[7:9], "big") * SECTOR == size
        return CommandEnd(0, 0, 0.0)

    monkeypatch.setattr("storqual_core.turns.scsi_command.send", send)
    object.__setattr__(ways.limits, "scsi", True)
    try:
        ways.write("sg10", ARENA.shape("segments", 100 * SECTOR), 1000)
    finally:
        object.__setattr__(ways.limits, "scsi", False)
    assert sent == [("2a", 1000, 64 * SECTOR), ("2a", 1064, 36 * SECTOR)]


def test_completions_are_polled_for_where_the_queue_polls(
    ways: KernelWays, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(LackingError, match="io_poll"):
        ways.write("polled", ARENA.shape("aligned", SECTOR), 0)
    flags: list[int] = []

    class Library:
        """libc, of which the flags of a new ring are looked at; no ring is made."""

        @staticmethod
        def syscall(number: int, _entries: int, parameters: Any) -> int:
            assert number == 425
            flags.append(int.from_bytes(parameters.raw[8:12], "little"))
            return -1

    monkeypatch.setattr(kernel_ways, "_LIBC", Library)
    descriptor = os.open(tmp_path / "drive", os.O_RDWR)
    polled = KernelWays(descriptor, replace(LIMITS, polls=True), ARENA)
    assert flags == [0, 1]
    for act in (polled.write, polled.read):
        with pytest.raises(LackingError, match="no io_uring"):
            act("polled", ARENA.shape("aligned", SECTOR), 0)
    polled.close()
    os.close(descriptor)


def test_a_device_that_is_not_polled_after_all_lacks_it(ways: KernelWays, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel answers each I/O of such a ring with EOPNOTSUPP."""
    monkeypatch.setitem(
        ways._rings, "polled", SimpleNamespace(transfer=lambda *_, **__: [-errno.EOPNOTSUPP], close=int)
    )
    with pytest.raises(LackingError, match="polled"):
        ways.read("polled", ARENA.shape("aligned", SECTOR), 0)
