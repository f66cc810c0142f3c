# SPDX-License-Identifier: Apache-2.0
"""What else went on on the bench makes a sample suspect, and says what it was; an honest bench is not suspected."""

from pathlib import Path
from typing import Any

import pytest

from storqual_core.host.counters import Meter, differences
from storqual_core.turns.batch_file import parse_batch
from storqual_core.turns.sample import environment_doubts
from tests.support.fake_fio import block_text, launch

ASK = parse_batch(block_text(Path("/state"), [launch(0)])).launches[0].fio
SECOND = 1_000_000_000
# two seconds of 4 KiB reads at 1000 IOPS on one processor of an emulated bench
QUIET = {
    "runtime_ns": 2 * SECOND,
    "wall_ns": 2 * SECOND,
    "read_bytes": 2000 * 4096,
    "write_bytes": 0,
    "fio_user_ns": SECOND // 10,
    "tick_ns": SECOND // 100,
    "stat_user_ticks": 60,
    "stat_nice_ticks": 0,
    "own_cpu_ns": SECOND // 50,
    "disk_read_sectors": 2010 * 8,
    "disk_write_sectors": 0,
    "thermal_throttles": 0,
    "cpu_khz_before": 2_900_000,
    "cpu_khz_after": 2_850_000,
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stat_user_ticks": 180}, "another load on the bench: programs beside fio used 0.84 processors"),
        ({"stat_nice_ticks": 120}, "another load on the bench: programs beside fio used 0.84 processors"),
        ({"disk_read_sectors": 2600 * 8}, "the drives moved 5.3 MB/s in reads, fio 4.1"),
        ({"disk_write_sectors": 500 * 8}, "the drives moved 1.0 MB/s in writes, fio 0.0"),
        ({"thermal_throttles": 3}, "processors were slowed down for heat 3 times"),
        ({"cpu_khz_after": 2_100_000}, "the processors' clock fell from 2.90 to 2.10 GHz"),
    ],
)
def test_what_else_went_on_is_named(change: dict[str, int], said: str) -> None:
    assert environment_doubts(ASK, 1, QUIET) == []
    (sentence,) = environment_doubts(ASK, 1, {**QUIET, **change})
    assert said in sentence


@pytest.mark.parametrize("missing", sorted(QUIET))
def test_what_was_not_counted_is_not_suspected(missing: str) -> None:
    assert environment_doubts(ASK, 1, {name: value for name, value in QUIET.items() if name != missing}) == [] or (
        missing == "read_bytes"
    )


def test_many_processes_of_fio_are_not_another_load() -> None:
    busy = {**QUIET, "fio_user_ns": 16 * 2 * SECOND, "stat_user_ticks": 3400}
    assert environment_doubts(ASK, 1, busy) == []


def machine(root: Path, throttles: int, khz: int) -> dict[str, Any]:
    """A machine of two processors that were hot so often and run so fast; what it says."""
    for cpu in (0, 1):
        folder = root / f"sys/devices/system/cpu/cpu{cpu}"
        for name, number in (("thermal_throttle/core_throttle_count", throttles), ("cpufreq/scaling_cur_freq", khz)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"{number}\n", encoding="ascii")
    return {}


def test_heat_and_clock_are_read_from_sysfs(tmp_path: Path) -> None:
    """Throttle events over all processors, the mean of their clocks; nothing where the kernel shows neither."""
    machine(tmp_path, 5, 2_900_000)
    meter = Meter(tmp_path)
    before = meter.snapshot()
    machine(tmp_path, 7, 2_000_000)
    found = differences(before, meter.snapshot())
    meter.close()
    assert (found["thermal_throttles"], found["cpu_khz_before"], found["cpu_khz_after"]) == (4, 2_900_000, 2_000_000)
    bare = Meter(tmp_path / "bare").snapshot()
    assert not {"thermal_throttles", "cpu_khz_before", "cpu_khz_after"} & differences(bare, bare).keys()
