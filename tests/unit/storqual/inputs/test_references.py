# SPDX-License-Identifier: Apache-2.0
"""Tests of published references: one number with its unit, metric and source, or a sentence about what is wrong."""

from __future__ import annotations

import pytest

from storqual.inputs.references import overlays, published_value
from storqual.metrics import METRICS
from storqual_core.kit.errors import BadInputError
from tests.unit.storqual.inputs.test_published import REPORTS, report


def test_a_cell_of_a_series_is_found_with_its_point_and_source() -> None:
    found = published_value("a6826a:reads.superdome[4]")
    assert (found.value, found.unit, found.metric, found.label) == (766.0, "MB/s", "throughput_mb_s", "4")
    assert found.point == {"rw": "read", "bs": "128k", "ports": "4"}
    assert found.source.endswith("p. 5: read throughput of the Superdome in chart 3a")


def test_the_unit_convention_of_a_report_is_in_the_metric() -> None:
    """The A7173A paper's MB is 2^20 bytes."""
    assert published_value("a7173a:throughput.a7173a[read]").metric == "throughput_mib_s"


def test_overlays_are_all_figures_of_a_metric() -> None:
    """The five adapters and systems of the QLA1040 report."""
    values = [one.value for one in overlays("qla1040", "iops")]
    assert values == [8901, 7919, 2721, 2425, 1765, 2666, 2367, 1826]


@pytest.mark.parametrize("name", REPORTS)
def test_the_metrics_that_figures_compare_with_exist(name: str) -> None:
    assert {figure.metric for figure in report(name).figures if figure.metric} <= set(METRICS)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a6826:reads.superdome[4]", r"unknown published report 'a6826'.*did you mean 'a6826a'"),
        ("../published/a6826a:x", r"unknown published report"),
        ("a6826a:reads.superdom[4]", r"no figure 'reads.superdom'.*did you mean 'reads.superdome'"),
        ("a6826a:reads.superdome[9]", r"no '9' in 'reads.superdome'"),
        ("a6826a:reads.superdome", r"no 'single value' in"),
        ("a6826a:name", r"is the name 'A6826A' and no number"),
        ("a6826a:1 + 1", r"the name of one figure"),
    ],
)
def test_what_is_not_there_is_told(name: str, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        published_value(name)
