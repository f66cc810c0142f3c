# SPDX-License-Identifier: Apache-2.0
"""The papers' numbers come out of the formulas that live runs use."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.base.formulas import (
    Interval,
    drives_without_queueing,
    efficiency,
    increase_percent,
    outstanding,
    percent_of,
    read_ahead_threshold,
    service_demand_percent_thousandths,
    service_demand_us_per_kb,
    stripes_per_second,
    throughput,
)
from storqual.metrics import METRICS, Primitives, Value

# (throughput MB/s, CPU %, service demand) as printed; `None` stands where the audit finds a misprint
A7173A = [
    (144, 69, 0.466), (153, 72, 0.461), (91, 66, 0.706), (137, 69, 0.495),
    (195, 72, 0.362), (287, 78, 0.267), (172, 80, 0.453), (246, 84, 0.332),
]  # fmt: skip
A6829A = [
    (62, 60, 0.946), (48, 64, 1.311), (72, 60, 0.825),
    (81, 73, 0.876), (122, 69, 0.549), (93, 75, 0.789), (136, 69, 0.493),
]  # fmt: skip
A6826A = [
    (130, 37, 2.93), (275, 74, 2.75), (190, 25, 1.34), (379, 65, 1.75),
    (83, 25, 3.08), (164, 53, 3.30), (127, 20, 1.61), (248, 58, 2.39),
]  # fmt: skip


def around(value: float, step: str) -> Interval:
    """What was printed as `value`, to the step of its last digit."""
    return Interval.around(Fraction(str(value)), Fraction(step) / 2)


@pytest.mark.parametrize(("throughput_mb", "cpu", "printed"), A7173A + A6829A)
def test_the_a7173a_service_demands_come_from_throughput_and_cpu(
    throughput_mb: int, cpu: int, printed: float
) -> None:
    computed = service_demand_percent_thousandths(around(cpu, "1"), around(throughput_mb, "1"))
    assert computed.meets(around(printed, "0.001"))


@pytest.mark.parametrize(("throughput_mb", "cpu", "printed"), A6826A)
def test_the_a6826a_service_demands_come_from_throughput_and_cpu(
    throughput_mb: int, cpu: int, printed: float
) -> None:
    assert service_demand_us_per_kb(around(cpu, "1"), around(throughput_mb, "1")).meets(around(printed, "0.01"))


def test_only_one_pair_of_units_fits_the_a6826a_table() -> None:
    for mb, kb in ((10**6, 1000), (2**20, 1024), (2**20, 1000)):
        fits = [
            service_demand_us_per_kb(around(cpu, "1"), around(rate, "1"), mb, kb).meets(around(printed, "0.01"))
            for rate, cpu, printed in A6826A
        ]
        assert not all(fits)


def test_both_service_demands_are_the_same_quantity() -> None:
    """0.466 of one paper is 4.66 microseconds per KB of the other, for one CPU."""
    for rate, cpu, _ in A7173A:
        demand = service_demand_percent_thousandths(float(cpu), float(rate), 10**6, 1024)
        assert 10 * demand == pytest.approx(service_demand_us_per_kb(cpu, float(rate)))


@given(st.floats(0.1, 100), st.floats(0.1, 1e5))
def test_a_live_run_and_a_paper_agree_on_service_demand(cpu: float, rate: float) -> None:
    second = 10**9
    times = {"fio_user_ns": cpu / 100 * second, "fio_system_ns": 0, "runtime_ns": second}
    live = METRICS["fio_cpu_us_per_kib"].value(Primitives({**times, "read_bytes": rate * 1e6}, {}))
    assert isinstance(live, Value)
    assert live.value == pytest.approx(service_demand_us_per_kb(cpu, rate))


@pytest.mark.parametrize(("achieved", "printed"), [(521.1, 85.4), (262.6, 43.0), (248.9, 40.8)])
def test_percent_of_the_ultra320_maximum(achieved: float, printed: float) -> None:
    """The A7173A's row, of two buses in binary MB."""
    maximum = 2 * 320e6 / 2**20
    assert percent_of(achieved, maximum) == pytest.approx(printed, abs=0.05)


@pytest.mark.parametrize(
    ("achieved", "ports", "duplex", "printed"),
    [(195, 1, 1, 97.5), (188, 1, 1, 94), (351, 1, 2, 87.7), (390, 2, 1, 97.5), (368, 2, 1, 92)],
)
def test_percent_of_the_fibre_channel_maximum(achieved: float, ports: int, duplex: int, printed: float) -> None:
    """The A6826A's row: 200 MB/s per port and direction."""
    assert percent_of(achieved, 200 * ports * duplex) == pytest.approx(printed, abs=0.051)


def test_four_cards_scale_linearly_on_the_superdome() -> None:
    """1524 MB/s of eight ports of 192 MB/s are 99 % of linear."""
    assert efficiency(1524.0, 192.0, 8) == pytest.approx(0.992, abs=5e-4)


def test_an_increase_is_of_the_old_value() -> None:
    """521.1 over 262.6 is 98 %, not 51 %."""
    assert increase_percent(521.1, 262.6) == pytest.approx(98.4, abs=0.05)


def test_the_stripe_arithmetic_of_the_perc_article() -> None:
    """2.5 stripes a millisecond, 11.25 in a write, twelve drives; 64 KiB over 48 drives needs 3136 KiB reads."""
    rate = stripes_per_second(160e6, 64e3)
    assert rate == 2500
    assert drives_without_queueing(Fraction(9, 2000), Fraction(rate)) == 12
    assert read_ahead_threshold(64 * 1024, 48) == 3136 * 1024


def test_throughput_and_outstanding_are_products() -> None:
    """2000 I/Os per second of 8 KiB; at 125 ms each, 250 are in flight."""
    assert throughput(2000.0, 8192.0) == 16_384_000
    assert outstanding(2000.0, 0.125) == 250


@given(st.fractions(1, 1000), st.fractions(1, 1000), st.fractions(0, 1), st.fractions(0, 1))
def test_an_interval_holds_what_its_ends_hold(a: Fraction, b: Fraction, u: Fraction, v: Fraction) -> None:
    wide_a, wide_b = Interval.around(a, Fraction(1, 2)), Interval.around(b, Fraction(1, 4))
    x, y = wide_a.low + u, wide_b.low + v / 2
    assert x + y in wide_a + wide_b
    assert x - y in wide_a - wide_b
    assert x * y in wide_a * wide_b
    assert x / y in wide_a / wide_b
    assert 100 - x in 100 - wide_a
    assert 100 / y in 100 / wide_b


def test_an_interval_refuses_to_divide_by_what_may_be_zero() -> None:
    with pytest.raises(ZeroDivisionError):
        Interval.exactly(1) / Interval.around(0, 1)
