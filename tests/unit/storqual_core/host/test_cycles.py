# SPDX-License-Identifier: Apache-2.0
"""Cycles of the processors: added over all of them, or a reason why there are none; never 0 for "not known"."""

import errno
import os
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from storqual_core.host.counters import CycleCounter, Meter, differences, online

Reading = tuple[int, int, int]


def machine(root: Path, cpus: str = "0-1") -> Path:
    """A machine that says which processors it has."""
    for name, text in {"sys/devices/system/cpu/online": cpus, "proc/sys/kernel/perf_event_paranoid": "4"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n", encoding="ascii")
    return root


def counters(*readings: Sequence[Reading]) -> Callable[[int], int]:
    """What the kernel hands out for each processor: a descriptor with these readings (count, enabled, running)."""

    def opened(cpu: int) -> int:
        reader, writer = os.pipe()
        os.write(writer, b"".join(struct.pack("=QQQ", *one) for one in readings[cpu]))
        os.close(writer)
        return reader

    return opened


def refusing(code: int) -> Callable[[int], int]:
    def opened(_cpu: int) -> int:
        raise OSError(code, os.strerror(code))

    return opened


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3", [0, 1, 2, 3]), ("0", [0]), ("0-1,4,6-7", [0, 1, 4, 6, 7]), ("", []), ("none", [])]
)
def test_processors_in_use_are_read(tmp_path: Path, text: str, cpus: list[int]) -> None:
    assert online(machine(tmp_path, text)) == cpus
    assert online(tmp_path / "nothing") == []


def test_cycles_of_all_processors_are_added(tmp_path: Path) -> None:
    opened = counters([(100, 5, 5), (350, 9, 9)], [(1000, 5, 5), (1001, 9, 9)])
    counter = CycleCounter(machine(tmp_path), opened)
    meter = Meter(tmp_path, counter)
    before, after = meter.snapshot(), meter.snapshot()
    assert (before.cycles, after.cycles, counter.reason) == (1100, 1351, "")
    assert differences(before, after)["cycles"] == 251
    assert counter.read() is None  # nothing is left to read: the processor is gone
    assert "switched off" in counter.reason


def test_a_counter_that_was_shared_counts_nothing_from_then_on(tmp_path: Path) -> None:
    counter = CycleCounter(machine(tmp_path, "0"), counters([(100, 9, 4), (200, 19, 19)]))
    assert counter.read() is None
    assert "another program used" in counter.reason
    assert counter.read() is None


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOENT, "no cycle counter"),
        (errno.EOPNOTSUPP, "usual for emulated"),
        (errno.EACCES, "kernel.perf_event_paranoid is 4"),
        (errno.ENOSYS, "no performance events"),
        (errno.EMFILE, "Too many open files"),
    ],
)
def test_why_none_are_counted_is_a_reason(tmp_path: Path, code: int, reason: str) -> None:
    counter = CycleCounter(machine(tmp_path), refusing(code))
    assert reason in counter.reason
    assert counter.read() is None
    snapshot = Meter(tmp_path, counter).snapshot()
    assert "cycles" not in differences(snapshot, snapshot)


def test_a_machine_that_names_no_processor_is_a_reason(tmp_path: Path) -> None:
    assert CycleCounter(tmp_path, refusing(errno.EIO)).reason == "the kernel does not say which processors it has"


def test_this_machine_counts_or_says_why_not() -> None:
    counter = CycleCounter()
    before, after = counter.read(), counter.read()
    counter.close()
    assert counter.reason or (before is not None and after is not None and after > before)
