# SPDX-License-Identifier: Apache-2.0
"""Every metric: defined once, right on round numbers, and silent where it cannot know."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.metrics import METRICS, Metric, Unavailable, Value, merged
from tests.support.metric_samples import PRIMITIVES, launch

EXPECTED = json.loads(Path(__file__).with_name("expected.json").read_text(encoding="utf-8"))


def value_of(name: str, **changes: object) -> Value:
    value = METRICS[name].value(launch(**changes))  # type: ignore[arg-type]
    assert isinstance(value, Value), value
    return value


def reason_of(name: str, **changes: object) -> str:
    """Why a metric has no value."""
    value = METRICS[name].value(launch(**changes))  # type: ignore[arg-type]
    assert isinstance(value, Unavailable), value
    return value.reason


@pytest.mark.parametrize(("name", "expected"), EXPECTED.items())
def test_a_metric_is_right_on_round_numbers(name: str, expected: float) -> None:
    assert value_of(name).value == pytest.approx(expected)


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_a_metric_is_defined_in_full(metric: Metric) -> None:
    assert metric.unit
    assert metric.better in ("higher", "lower")
    assert metric.needs
    assert METRICS[metric.name] is metric


@pytest.mark.parametrize("lacking", sorted(PRIMITIVES))
def test_a_missing_primitive_is_never_zero(lacking: str) -> None:
    broken = launch(without=(lacking,))
    for metric in METRICS.values():
        whole, value = metric.value(launch()), metric.value(broken)
        if lacking in metric.needs:
            assert isinstance(value, Unavailable)
            assert lacking in value.reason
        elif isinstance(value, Value) and isinstance(whole, Value) and value.source == whole.source:
            assert value.value == pytest.approx(whole.value, rel=0.2, abs=1e-9), metric.name


@given(
    st.dictionaries(
        st.sampled_from(sorted(PRIMITIVES)),
        st.one_of(st.none(), st.integers(-5, 10**12), st.floats(), st.just({}), st.text(max_size=2)),
        max_size=6,
    )
)
def test_broken_primitives_give_a_value_or_a_reason(changes: dict[str, object]) -> None:
    broken = launch(**changes)
    for metric in METRICS.values():
        value = metric.value(broken)
        assert isinstance(value, Unavailable) or math.isfinite(value.value)


def test_no_io_is_no_measurement() -> None:
    assert reason_of("iops", read_ios=0) == "no I/O was done"
    assert reason_of("latency_mean_us", read_ios=0) == "no I/O was done"


def test_both_directions_count() -> None:
    mixed = {"write_ios": 5_000, "write_bytes": 5_000 * 8192}
    assert value_of("iops", **mixed).value == 1500.0
    assert value_of("write_iops", **mixed).value == 500.0
    assert value_of("write_throughput_mb_s", **mixed).value == pytest.approx(4.096)


# percentiles


def test_a_percentile_needs_ten_ios_beyond_it() -> None:
    """One of 10,000 I/Os is no 99.99th percentile."""
    assert "10 are needed" in reason_of("latency_p99.99_us")
    ten = {"1000000": 9_990, "5000000": 10}
    assert value_of("latency_p99.9_us", read_bins=ten).value == 1000.0
    # 10,009 I/Os: p99.9 has rank 9,999, ten lie beyond; one I/O less leaves nine
    assert value_of("latency_p99.9_us", read_ios=10_009, read_bins={"1000000": 10_009}).value == 1000.0
    assert "9 of 9999" in reason_of("latency_p99.9_us", read_ios=9_999, read_bins={"1000000": 9_999})


def test_percentiles_are_merged_by_adding_bins() -> None:
    fast = launch(read_bins={"1000000": 10_000})
    slow = launch(read_bins={"1000000": 9_000, "9000000": 1_000})
    values = [METRICS[f"latency_{name}_us"].value(merged([fast, slow])) for name in ("p90", "p95", "p99")]
    assert [value.value for value in values if isinstance(value, Value)] == [1000.0, 1000.0, 9000.0]


def test_launches_too_short_for_a_percentile_answer_together() -> None:
    """Ten launches of ten thousand I/Os have the hundred thousand that p99.99 needs."""
    many = merged([launch(read_bins={"1000000": 9_998, "7000000": 2}) for _ in range(10)])
    value = METRICS["latency_p99.99_us"].value(many)
    assert isinstance(value, Value)
    assert (value.value, value.ios) == (7000.0, 100_000)


def test_bins_that_do_not_hold_all_ios_are_no_histogram() -> None:
    assert reason_of("latency_p50_us", read_bins={"1000000": 5_000}) == "the bins hold 5000 of 10000 I/Os"


def test_reads_and_writes_share_a_percentile() -> None:
    mixed = {"write_ios": 10_000, "write_bins": {"50000000": 10_000}}
    assert value_of("latency_p50_us", **mixed).value == 30_000.0
    assert value_of("latency_p90_us", **mixed).value == 50_000.0


@given(st.lists(st.lists(st.integers(1, 2000), min_size=20, max_size=60), min_size=1, max_size=4))
def test_merged_percentiles_are_those_of_the_joined_values(jobs: list[list[int]]) -> None:
    launches = []
    for values in jobs:
        bins: dict[str, int] = {}
        for value in values:
            bins[str(value * 1000)] = bins.get(str(value * 1000), 0) + 1
        launches.append(launch(read_ios=len(values), read_bins=bins))
    median = METRICS["latency_p50_us"].value(merged(launches))
    joined = sorted(value for values in jobs for value in values)
    assert isinstance(median, Value)
    assert median.value == float(joined[math.ceil(0.5 * len(joined)) - 1])
    assert median.ios == len(joined)


# processor time


def test_residency_comes_first() -> None:
    assert value_of("cpu_us_per_io").source == "cpuidle residency"


def test_the_idle_column_is_next() -> None:
    """Waiting is idle: 110 of 2000 ticks were busy, 10 of them the idle bench's."""
    value = value_of("cpu_us_per_io", without=("cpuidle_ns", "idle_cpuidle_ns"))
    assert value == Value(pytest.approx(100.0), "/proc/stat idle time")


def test_idle_use_that_is_not_known_is_said() -> None:
    value = value_of("cpu_us_per_io", without=("idle_cpuidle_ns", "idle_wall_ns"))
    assert value.value == pytest.approx(110.0)
    assert value.source == "cpuidle residency, idle use not subtracted"


def test_nothing_falls_back_to_fios_own_time_in_silence() -> None:
    """It misses interrupts and kernel threads: its time is a metric of its own."""
    lacking = ("cpuidle_ns", "stat_idle_ticks")
    assert "cpuidle_ns or stat_idle_ticks" in reason_of("cpu_us_per_io", without=lacking)
    assert value_of("fio_cpu_us_per_io", without=lacking).source == "fio's own"


def test_cycles_of_the_idle_bench_are_subtracted_and_none_left_is_no_value() -> None:
    assert value_of("cycles_per_io").source == "performance events of the kernel"
    assert value_of("cycles_per_io", without=("idle_cycles",)).value == 300_000.0
    assert "idle use not subtracted" in (value_of("cycles_per_io", without=("idle_cycles",)).source or "")
    assert "no more cycles" in reason_of("cycles_per_io", idle_cycles=300_000_000)
    assert "cycles" in reason_of("cycles_per_io", without=("cycles",))


def test_steal_above_one_percent_voids_it() -> None:
    assert "1.5 %" in reason_of("cpu_us_per_io", stat_steal_ticks=30)
    assert value_of("steal_percent", stat_steal_ticks=30).value == pytest.approx(1.5)
    assert value_of("cpu_us_per_io", stat_steal_ticks=19).value == pytest.approx(100.0)


def test_the_bench_programs_own_time_is_taken_off() -> None:
    assert value_of("cpu_us_per_io", own_cpu_ns=100_000_000).value == pytest.approx(90.0)


def test_a_bench_that_is_busier_without_load_has_no_service_demand() -> None:
    assert "no more processor time" in reason_of("cpu_us_per_io", idle_cpuidle_ns=1_500_000_000)


def test_windows_of_different_lengths_are_compared_as_rates() -> None:
    """The processors were watched for 2 % less than fio measured."""
    shorter = {"wall_ns": 9_800_000_000, "cpuidle_ns": 18_522_000_000}
    assert value_of("cpu_us_per_io", **shorter).value == pytest.approx(100.0)


# series


def test_dips_below_the_level_are_counted_once_each() -> None:
    seconds = [1000.0, 1001, 700, 999, 1000, 650, 720, 1000, 998, 1002]
    assert value_of("dips_per_min", seconds=seconds).value == pytest.approx(12.0)


def test_noise_is_no_dip() -> None:
    """A second that is 15 % down among seconds that vary by 10 % is usual."""
    seconds = [1000.0, 1100, 900, 1080, 850, 1020, 930, 1110, 890, 1000]
    assert value_of("dips_per_min", seconds=seconds).value == 0.0


def test_the_longest_stall_is_in_seconds() -> None:
    seconds = [1000.0, 1000, 0, 20, 1000, 1000, 1000, 0, 1000, 1000]
    assert value_of("longest_stall_s", seconds=seconds).value == 2.0


def test_a_launch_without_seconds_has_no_dips() -> None:
    assert "no iops was recorded" in reason_of("dips_per_min", seconds=[])


# volumes


def test_what_an_io_of_a_volume_costs_its_members_is_counted_by_the_kernel() -> None:
    """Two reads and two writes for each small write on RAID 5; a drive alone has no members."""
    counted = {"disk_read_ios": 0, "disk_write_ios": 500, "member_read_ios": 1000, "member_write_ios": 1000}
    assert value_of("member_ios_per_io", **counted).value == 4.0
    assert "no member_read_ios or member_write_ios was recorded" in reason_of("member_ios_per_io", disk_write_ios=500)
    assert "completed no I/O" in reason_of("member_ios_per_io", **{**counted, "disk_write_ios": 0})


# merging


def test_what_one_launch_lacks_the_merged_one_lacks() -> None:
    both = merged([launch(), launch(without=("cpuidle_ns",))])
    assert "cpuidle_ns" not in both.primitives
    assert both.primitives["read_ios"] == 20_000
    assert both.primitives["cpu_count"] == 2


def test_merging_keeps_rates_and_adds_counts() -> None:
    both = merged([launch(), launch()])
    for name in ("iops", "latency_mean_us", "cpu_us_per_io", "interrupts_per_io"):
        assert METRICS[name].value(both) == METRICS[name].value(launch())


def test_counters_of_errors_are_told_by_terabyte_moved() -> None:
    moved = PRIMITIVES["read_bytes"] + PRIMITIVES["write_bytes"]
    value = value_of("link_errors_per_tb", error_invalid_dword_count=2, error_phy_reset_problem_count=1)
    assert value.value == pytest.approx(3 / (moved / 1e12))
    assert value_of("command_timeouts_per_tb", error_iotmo_cnt=1).value == pytest.approx(1e12 / moved)
    sessions = value_of("iscsi_errors_per_tb", error_iscsi_digest_err=2, error_iscsi_timeout_err=3)
    assert sessions.value == pytest.approx(5e12 / moved)


def test_a_drive_without_a_counter_has_no_errors_per_terabyte() -> None:
    assert reason_of("command_errors_per_tb", without=("error_ioerr_cnt",)) == "no error_ioerr_cnt was recorded"
