# SPDX-License-Identifier: Apache-2.0
"""newname: right on round numbers, and without a value where the data cannot answer."""

from storqual.metrics import METRICS, Unavailable, Value
from tests.support.metric_samples import launch


def test_the_slowest_second_is_a_share_of_the_median_second() -> None:
    assert METRICS["newname"].value(launch(seconds=[1000.0, 1000.0, 250.0])) == Value(25.0)


def test_one_second_has_no_median_to_compare_with() -> None:
    assert isinstance(METRICS["newname"].value(launch(seconds=[1000.0])), Unavailable)


def test_a_launch_that_stood_still_has_no_value() -> None:
    assert isinstance(METRICS["newname"].value(launch(seconds=[0.0, 0.0, 5.0])), Unavailable)
