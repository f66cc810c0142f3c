# SPDX-License-Identifier: Apache-2.0
"""Tests of storqual.report.material: means and their intervals, and what moved between two looks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from storqual.metrics import Value
from storqual.report import build_report
from storqual.report.material import mean_of, spread_of
from storqual.run import Launch, PlannedPoint
from storqual.run.measurements import PointData
from tests.support.judged_reports import QUICK, judged
from tests.support.report_pages import Node, read_page


def launch(value: float, session: str = "s01", status: str = "ok", arm: str = "baseline") -> Launch:
    return Launch(
        "x", "b", "a", arm, arm, session, f"{session}-b01", "p", 1, "2026-11-21T10:00:00.000Z", 1.0, status, (), (),
        values={"iops": Value(value)},
    )  # fmt: skip


def point(*launches: Launch) -> PointData:
    data = PointData(PlannedPoint("b", "a", "p", "w", {}, (), {}, ""))
    data.launches["baseline"] = list(launches)
    return data


def test_the_interval_of_a_mean_is_student_s() -> None:
    values = [100.0, 104.0, 98.0, 101.0]
    data = point(*(launch(value) for value in values))
    mean = mean_of(data.good("baseline"), "iops", spread_of([data], "baseline", "iops"))
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert mean is not None
    assert (mean.value, mean.low, mean.high) == pytest.approx((np.mean(values), low, high))


def test_sessions_are_the_unit_where_there_are_several() -> None:
    data = point(launch(100), launch(100), launch(110, "s02"), launch(110, "s02"))
    spread = spread_of([data], "baseline", "iops")
    assert spread.freedom == 1
    assert spread.relative == pytest.approx(np.std([100, 110], ddof=1) / 105)


def test_the_spread_is_pooled_over_points() -> None:
    points = [point(launch(100), launch(102)) for _ in range(10)]
    assert spread_of(points, "baseline", "iops").freedom == 10


def test_one_launch_has_a_mean_and_no_interval() -> None:
    data = point(launch(100))
    mean = mean_of(data.good("baseline"), "iops", spread_of([data], "baseline", "iops"))
    assert mean is not None
    assert (mean.value, mean.low, mean.high) == (100, None, None)


def test_launches_that_went_wrong_are_no_values() -> None:
    data = point(launch(100), launch(0, status="refused"))
    assert [good.number("iops") for good in data.good("baseline")] == [100]


def test_without_values_there_is_no_mean() -> None:
    assert mean_of([], "iops", spread_of([], "baseline", "iops")) is None


BEFORE = {"kernel": {"release": "6.1.0-47-amd64"}, "memory": 1 << 30}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged(tmp_path_factory.mktemp("drift"), points=QUICK[:1])


def arms(run: Path, **environment: Any) -> Node:
    document = json.loads((run / "run.json").read_text())
    document["benches"]["vbench"]["environment"] = environment
    (run / "run.json").write_text(json.dumps(document))
    return read_page(build_report(run)).section("arms")


def test_what_moved_is_shown_with_both_values(run: Path) -> None:
    section = arms(run, before=BEFORE, after={**BEFORE, "memory": 1 << 29})
    moved = next(table for table in section.all("table") if "what changed during the campaign" in table.text())
    assert "memory 1073741824 536870912" in moved.text()
    assert "kernel.release" not in moved.text()
    (folded,) = section.all("details", "same")
    assert "1 values of vbench before and after" in folded.text()
    assert "kernel.release 6.1.0-47-amd64" in folded.text()


def test_a_bench_that_stayed_is_said_to_have(run: Path) -> None:
    assert "reports the same after the campaign" in arms(run, before=BEFORE, after=BEFORE).text()


def test_one_look_is_no_comparison(run: Path) -> None:
    text = arms(run, before=BEFORE).text()
    assert "said the same" not in text
    assert "2 values of vbench as far as they were read" in text
