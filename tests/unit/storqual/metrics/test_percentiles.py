# SPDX-License-Identifier: Apache-2.0
"""A percentile carries how many I/Os it is of and where it lies; too few I/Os have none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.metrics import METRICS, Primitives, Unavailable, Value
from storqual.metrics.latency import percentile, quantile
from storqual.metrics.metric import UnavailableError

pytestmark = pytest.mark.slow


def launch(latencies_ns: np.ndarray) -> Primitives:
    edges, counts = np.unique(latencies_ns.astype(int), return_counts=True)
    bins = {str(edge): int(count) for edge, count in zip(edges, counts, strict=True)}
    return Primitives({"read_ios": len(latencies_ns), "read_bins": bins}, {})


def test_the_99_9_of_eleven_hundred_ios_is_refused_and_the_99_is_not() -> None:
    """By the rule of ten beyond, with how many it would take."""
    few = launch(np.arange(1, 1101) * 1000.0)
    with pytest.raises(
        UnavailableError, match="1 of 1100 I/Os lie beyond it, 10 are needed: about 10000 I/Os in all"
    ):
        percentile(few, 0.999)
    assert isinstance(METRICS["latency_p99.9_us"].value(few), Unavailable)
    value = METRICS["latency_p99_us"].value(few)
    assert value == Value(1089.0, "", 1100, (1082.0, 1097.0))


@pytest.mark.parametrize(("share", "ios"), [(0.5, 60), (0.99, 1000), (0.99, 20_000), (0.999, 10_000)])
def test_the_interval_holds_the_true_percentile_in_95_of_100_launches(share: float, ios: int) -> None:
    """Independent I/Os; 400 launches, two standard errors."""
    rng = np.random.default_rng(3)
    truth = -np.log1p(-share) * 1e6
    held = 0
    for _ in range(400):
        value = percentile(launch(rng.exponential(1e6, ios)), share)
        assert value.low <= value.value <= value.high
        held += value.low <= truth <= value.high
    assert held >= 0.93 * 400


def test_more_ios_have_a_narrower_interval() -> None:
    """By about the root of their number."""
    rng = np.random.default_rng(4)
    few, many = (percentile(launch(rng.exponential(1e6, ios)), 0.99) for ios in (1000, 50_000))
    assert many.high - many.low < 0.3 * (few.high - few.low)
    assert (few.count, many.count) == (1000, 50_000)


@given(st.dictionaries(st.integers(1, 10**9), st.integers(1, 1000), min_size=1, max_size=30), st.floats(0.001, 0.999))
def test_a_quantile_is_the_smallest_value_that_enough_do_not_exceed(bins: dict[int, int], share: float) -> None:
    values = sorted(value for value, number in bins.items() for _ in range(number))
    rank = int(np.ceil(share * len(values) - 1e-6))
    if len(values) - rank < 10:
        with pytest.raises(UnavailableError):
            quantile(bins, share)
    else:
        assert quantile(bins, share).value == values[max(rank, 1) - 1]
