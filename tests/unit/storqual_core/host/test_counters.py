# SPDX-License-Identifier: Apache-2.0
"""Counters are read as the kernel writes them; what is missing stays missing."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.host.counters import (
    MOST_WINDOWS,
    TICK_NS,
    CounterSnapshot,
    DiskCounters,
    Meter,
    adapter_vectors,
    busy_share,
    differences,
    idle_window,
    parse_block_stat,
    parse_interrupts,
    parse_proc_stat,
    ticks_are_measured,
    watch_idle,
)
from storqual_core.turns.targets import BatchAim, TargetDevice

STAT = Path(__file__).with_name("proc_stat.txt").read_text(encoding="utf-8")
INTERRUPTS = Path(__file__).with_name("proc_interrupts.txt").read_text(encoding="utf-8")


def machine(root: Path) -> Path:
    """A small machine: two processors with idle states, one disk, one adapter with two vectors, one with a line."""
    for place, text in {
        "proc/stat": STAT,
        "proc/interrupts": INTERRUPTS,
        "sys/devices/system/cpu/cpu0/cpuidle/state0/time": "1000\n",
        "sys/devices/system/cpu/cpu0/cpuidle/state1/time": "500\n",
        "sys/devices/system/cpu/cpu1/cpuidle/state1/time": "250\n",
        "sys/block/sda/stat": "  10  0  80  5  20  0  160  9  3  11  14\n",
        "sys/bus/pci/devices/0000:00:05.0/irq": "11\n",
        "sys/bus/pci/devices/0000:00:06.0/irq": "26\n",
        "sys/bus/pci/devices/0000:00:06.0/msi_irqs/24": "msix\n",
        "sys/bus/pci/devices/0000:00:06.0/msi_irqs/25": "msix\n",
    }.items():
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    return root


def test_a_snapshot_holds_every_counter_of_the_machine(tmp_path: Path) -> None:
    meter = Meter(machine(tmp_path))
    meter.aim({"0x5": tmp_path / "sys/block/sda"}, adapter_vectors(["0000:00:06.0"], tmp_path / "sys"))
    found = meter.snapshot()
    meter.close()
    assert found.cpu_count == 2
    assert dict(found.ticks) == {
        "user": 10, "nice": 2, "system": 30, "idle": 4000, "iowait": 50, "irq": 6, "softirq": 7, "steal": 8,
    }  # fmt: skip
    assert (found.context_switches, found.interrupts, found.cpuidle_ns) == (987654, 123456, 1_750_000)
    assert found.adapter_interrupts == 7305
    assert found.disks == {"0x5": DiskCounters(10, 80, 20, 160, 3)}


def test_an_adapter_without_message_interrupts_has_its_line(tmp_path: Path) -> None:
    sys = machine(tmp_path) / "sys"
    assert adapter_vectors(["0000:00:05.0"], sys) == ("11",)
    assert adapter_vectors(["0000:00:06.0"], sys) == ("24", "25")
    assert adapter_vectors(["0000:00:07.0"], sys) == ()
    assert parse_interrupts(INTERRUPTS, ["11"]) == 150
    assert parse_interrupts(INTERRUPTS, ["99"]) is None


def test_a_disk_that_vanishes_is_left_out(tmp_path: Path) -> None:
    meter = Meter(machine(tmp_path))
    meter.aim({"a": tmp_path / "sys/block/sda", "b": tmp_path / "sys/block/sdb"}, [])
    assert set(meter.disks()) == {"a"}
    before = meter.snapshot()
    gone = before._replace(disks={})
    assert "disk_read_ios" not in differences(before, gone)
    assert differences(before, before)["disk_read_ios"] == 0
    meter.close()


def test_drives_behind_a_volume_are_counted_beside_it(tmp_path: Path) -> None:
    root = machine(tmp_path)
    for name in ("md0", "sdb"):
        stat = root / f"sys/block/{name}/stat"
        stat.parent.mkdir(parents=True)
        stat.write_text("0 0 0 0 0 0 0 0 0 0 0\n", encoding="ascii")
    places = {name: TargetDevice(root / "sys/block" / name, ()) for name in ("md0", "sda", "sdb")}
    targets = {"md0": {"volume": {"members": ["sda", "sdb"]}}, "sda": {"claim": {}}, "sdb": {"claim": {}}}
    meter = Meter(root)
    aim = BatchAim(meter, targets, places)
    aim.at(["md0"])
    before = meter.snapshot()
    (root / "sys/block/md0/stat").write_text("0 0 0 0 5 0 40 0 0 0 0\n", encoding="ascii")
    (root / "sys/block/sda/stat").write_text("20 0 160 5 30 0 240 9 3 11 14\n", encoding="ascii")
    found = differences(before, meter.snapshot())
    assert (found["disk_read_ios"], found["disk_write_ios"]) == (0, 5)
    assert (found["member_read_ios"], found["member_write_ios"]) == (10, 10)
    aim.at(["sda"])
    assert not any(name.startswith("member_") for name in differences(meter.snapshot(), meter.snapshot()))
    meter.close()


@pytest.mark.parametrize("own", [0, 21])
def test_an_nvme_drive_counts_itself_or_its_paths_do(tmp_path: Path, own: int) -> None:
    root = machine(tmp_path)
    for name, ios in (("nvme0n1", own), ("nvme0c0n1", 10), ("nvme0c1n1", 11), ("nvme1c0n1", 5)):
        (root / "sys/block" / name).mkdir(parents=True)
        (root / "sys/block" / name / "stat").write_text(f"{ios} 0 {ios * 8} 0 0 0 0 0 1 0 0\n", encoding="ascii")
    meter = Meter(root)
    meter.aim({"drive": root / "sys/block/nvme0n1"}, [])
    assert meter.disks()["drive"][:2] == (21, 168)
    (root / "sys/block/nvme0c1n1/stat").unlink()
    meter.close()
    # what a path that is gone has counted is in no other's number
    assert [counters.read_ios for counters in meter.disks().values()] == ([own] if own else [])
    meter.close()


def test_error_counters_of_a_launch_are_those_of_its_drives_and_their_phys(tmp_path: Path) -> None:
    root = machine(tmp_path)
    device = root / "sys/block/sda/device"
    device.mkdir(parents=True, exist_ok=True)
    (device / "ioerr_cnt").write_text("0x1e\n", encoding="ascii")
    meter = Meter(root)
    meter.aim({"0x5": root / "sys/block/sda"}, [])
    before = meter.snapshot()
    (device / "ioerr_cnt").write_text("0x20\n", encoding="ascii")
    after = meter.snapshot()
    meter.close()
    assert before.errors == {"ioerr_cnt": 30}
    assert differences(before, after)["error_ioerr_cnt"] == 2
    assert "error_iotmo_cnt" not in differences(before, after)
    assert not any("error" in name for name in idle_window(before, after))


def snapshot(**fields: object) -> CounterSnapshot:
    """A snapshot with nothing but what is given."""
    empty = CounterSnapshot(0, 2, {}, None, None, None, None)
    return empty._replace(**fields)  # type: ignore[arg-type]


def test_what_one_end_lacks_is_missing_in_the_difference() -> None:
    before = snapshot(time_ns=5, ticks={"user": 3, "idle": 9}, context_switches=7, interrupts=100)
    after = snapshot(time_ns=9, ticks={"user": 5}, context_switches=2, interrupts=130, cpuidle_ns=8)
    found = differences(before, after)
    assert found["wall_ns"] == 4
    assert found["stat_user_ticks"] == 2
    assert found["interrupts"] == 30
    assert not {"stat_idle_ticks", "context_switches", "cpuidle_ns", "disk_read_ios"} & set(found)
    assert set(idle_window(before, after)) == {f"idle_{name}" for name in found} - {"idle_cpu_count", "idle_tick_ns"}


def test_a_processor_that_came_or_went_voids_the_count() -> None:
    assert "cpu_count" not in differences(snapshot(cpu_count=2), snapshot(cpu_count=4))


@given(st.text(max_size=300))
def test_any_text_is_read_without_complaint(text: str) -> None:
    parse_proc_stat(text)
    parse_interrupts(text, ["1", "NMI"])
    parse_block_stat(text)


def test_the_kernels_configuration_says_whether_ticks_are_measured(tmp_path: Path) -> None:
    """It is printed beside the number, so it must not be guessed."""
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/config-a").write_text("CONFIG_TICK_CPU_ACCOUNTING=y\n# CONFIG_IRQ_TIME_ACCOUNTING is not set\n")
    (tmp_path / "boot/config-b").write_text("CONFIG_VIRT_CPU_ACCOUNTING_GEN=y\n")
    assert (ticks_are_measured("a", tmp_path), ticks_are_measured("b", tmp_path)) == (False, True)
    assert ticks_are_measured("c", tmp_path) is None


def test_this_machine_can_be_read() -> None:
    meter = Meter()
    before = meter.snapshot()
    time.sleep(0.2)
    found = differences(before, meter.snapshot())
    meter.close()
    assert 0.2e9 <= found["wall_ns"] < 2e9
    assert 0 <= found.get("cpuidle_ns", 0) <= found["cpu_count"] * found["wall_ns"] + 20e6
    assert found["context_switches"] > 0
    assert found["own_cpu_ns"] < found["wall_ns"]


def idle_snapshot(busy_s: float, at_s: float, *, counts: tuple[str, ...] = ("idle",)) -> CounterSnapshot:
    """Counters of one processor that was busy for so long of the time since it began."""
    idle_ns = round((at_s - busy_s) * 1e9)
    ticks = {"idle": idle_ns // TICK_NS, "user": 0} if "idle" in counts else {"user": 0}
    return CounterSnapshot(round(at_s * 1e9), 1, ticks, 0, 0, idle_ns if "residency" in counts else None, 0)


class Bench:
    """A bench that is busy for the share named of each window; time passes where it is waited for."""

    def __init__(self, shares: Sequence[float]) -> None:
        self.shares = list(shares)
        self.time = self.busy = 0.0
        self.windows = 0

    def wait(self, seconds: float) -> None:
        self.busy += seconds * self.shares[min(self.windows, len(self.shares) - 1)]
        self.time += seconds
        self.windows += 1

    def read(self) -> CounterSnapshot:
        return idle_snapshot(self.busy, self.time)


def test_the_start_of_a_batch_is_not_the_idle_bench() -> None:
    bench = Bench([1.0, 0.02])
    assert busy_share(watch_idle(bench.read, bench.wait, 1.0)) == pytest.approx(0.02)
    assert bench.windows == 2


def test_a_window_that_something_else_filled_is_measured_again() -> None:
    bench = Bench([0.0, 1.0, 0.6, 0.04])
    assert busy_share(watch_idle(bench.read, bench.wait, 1.0)) == pytest.approx(0.04)
    assert bench.windows == 4


def test_of_a_bench_that_is_never_quiet_the_quietest_window_counts() -> None:
    bench = Bench([0.0, 0.5, 0.4, 0.3, 0.35, 0.45])
    assert busy_share(watch_idle(bench.read, bench.wait, 1.0)) == pytest.approx(0.3)
    assert bench.windows == 1 + MOST_WINDOWS


def test_residency_counts_before_ticks_and_no_counter_is_no_share() -> None:
    both = ("idle", "residency")
    assert busy_share((idle_snapshot(0, 0, counts=both), idle_snapshot(0.25, 1, counts=both))) == pytest.approx(0.25)
    assert busy_share((idle_snapshot(0, 0, counts=()), idle_snapshot(0.25, 1, counts=()))) is None
    bench = Bench([0.0])
    silent = watch_idle(lambda: idle_snapshot(0, bench.time, counts=()), bench.wait, 1.0)
    assert (busy_share(silent), bench.windows) == (None, 2)
