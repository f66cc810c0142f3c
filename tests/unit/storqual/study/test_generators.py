# SPDX-License-Identifier: Apache-2.0
"""Tests that load generators are compared on one adapter at a time, and never called equal for nothing."""

from __future__ import annotations

import random

from storqual.report.parts.studies import _generators
from storqual.study.comparisons import Contest, generator_contests
from storqual.study.findings import findings
from storqual.study.points import StudyPoint


def points_with(
    rates: dict[str, float], *, launches: int = 6, adapter: str = "sym", noise: float = 0.004
) -> list[StudyPoint]:
    """Reads of two sizes by each engine, at so many IOPS."""
    draw = random.Random(5)
    return [
        StudyPoint(
            subject=adapter,
            bench="b1",
            adapter=adapter,
            point=f"reads[bs={size},engine={engine}]",
            workload="reads",
            levels={"bs": size, "engine": engine},
            varied=(),
            pattern={},
            drives=("a",),
            ports=1,
            launches=tuple({"iops": rate * draw.gauss(1, noise)} for _ in range(launches)),
        )
        for engine, rate in rates.items()
        for size in (2048, 65536)
    ]


def told(points: list[StudyPoint]) -> tuple[list[Contest], str]:
    """The contests, and all their sentences as one text."""
    found = generator_contests(points)
    return found, " ".join(sentence for one in found for sentence in one.sentences)


def test_ways_that_give_the_same_are_called_equal_with_their_interval() -> None:
    (contest,), text = told(points_with({"libaio": 100, "psync": 100, "sg": 100}))
    assert {line.subject for line in contest.lines} == {"libaio", "psync", "sg"}
    assert {level.relation for one in contest.comparisons for level in one.levels} == {"equal"}
    assert "libaio" in text
    assert "sg" in text


def test_a_way_that_gives_less_is_found() -> None:
    (contest,), _ = told(points_with({"libaio": 100, "psync": 100, "sg": 80}))
    relations = {(one.first, one.second): {level.relation for level in one.levels} for one in contest.comparisons}
    assert relations == {("libaio", "psync"): {"equal"}, ("libaio", "sg"): {"ahead"}, ("psync", "sg"): {"ahead"}}


def test_one_launch_shows_nothing() -> None:
    (contest,), _ = told(points_with({"libaio": 100, "sg": 100}, launches=1))
    assert {level.relation for one in contest.comparisons for level in one.levels} == {"open"}


def test_each_adapter_is_compared_with_itself() -> None:
    points = points_with({"libaio": 100, "sg": 100}) + points_with({"libaio": 50, "sg": 50}, adapter="mpt")
    found, _ = told(points)
    assert [one.title.partition(",")[0] for one in found] == ["sym", "mpt"]
    assert {level.relation for one in found for pair in one.comparisons for level in pair.levels} == {"equal"}


def test_only_a_suite_that_asks_for_it_has_the_study() -> None:
    points = points_with({"libaio": 100, "sg": 100})
    assert len(findings(points, ["generators"], benches={}).generators) == 1
    assert findings(points, ["scaling"], benches={}).generators == ()


def test_the_report_has_figures_and_intervals_of_each_way() -> None:
    (study,) = _generators(findings(points_with({"libaio": 100, "sg": 80}), ["generators"], benches={}))
    rows = [row for chart in study.charts if chart.table for row in chart.table.rows]
    assert {str(row[1]) for row in rows} == {"libaio", "sg"}
    assert any("sym, reads: " in sentence and "libaio" in sentence for sentence in study.sentences)
    assert not list(_generators(findings(points_with({"libaio": 100}), ["generators"], benches={})))
