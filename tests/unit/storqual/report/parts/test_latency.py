# SPDX-License-Identifier: Apache-2.0
"""Latencies of a point: quantiles that their counts support, and how far the candidate's are from the baseline's."""

from __future__ import annotations

from storqual.base.figures import DASH, ShownNumber
from storqual.report.parts.point import latency_charts
from storqual.run import PlannedPoint
from storqual.run.measurements import PointData

POINT = PlannedPoint("lab", "hba", "rand_read[bs=4k]", "rand_read", {"bs": 4096}, ("0x5",), {}, "")


def data(**arms: dict[int, int]) -> PointData:
    point = PointData(POINT)
    for arm, bins in arms.items():
        point.bins[arm, "read"] = bins
    return point


def table(**arms: dict[int, int]) -> dict[str, tuple[ShownNumber | str, ...]]:
    chart = latency_charts(data(**arms), "p0")[-1]
    assert chart.beside is not None
    return {str(row[0]): row[1:] for row in chart.beside.rows}


def spread(shift: int, number: int) -> dict[int, int]:
    return {1_000_000 + shift + 1000 * step: number for step in range(100)}


def test_a_percentile_is_not_printed_where_the_counts_cannot_support_it() -> None:
    rows = table(baseline=spread(0, 11), candidate=spread(0, 11))
    assert [str(cell) for cell in rows["p99.9"]] == [DASH] * 5
    assert str(rows["p99"][0]) != DASH
    assert [str(cell) for cell in rows["I/Os"][:2]] == ["1,100", "1,100"]


def test_a_difference_of_percentiles_has_an_interval_around_it() -> None:
    same = table(baseline=spread(0, 100), candidate=spread(0, 100))["p50"]
    assert str(same[2]) == "0\u00a0ns"
    low, high = same[3:]
    assert isinstance(low, ShownNumber)
    assert isinstance(high, ShownNumber)
    assert (low.value or 0) < 0 < (high.value or 0)
    slower = table(baseline=spread(0, 100), candidate=spread(50_000, 100))["p50"]
    assert str(slower[2]) == "+50\u00a0µs"
    assert str(slower[3]).startswith("+4")


def test_the_tail_is_drawn_where_there_is_one() -> None:
    titles = [chart.title for chart in latency_charts(data(baseline=spread(0, 5), candidate=spread(0, 5)), "p0")]
    assert titles == ["Reads that took longer", "Latency of reads"]
    flat = latency_charts(data(baseline={1000: 5}, candidate={1000: 5}), "p0")
    assert [chart.title for chart in flat] == ["Latency of reads"]
