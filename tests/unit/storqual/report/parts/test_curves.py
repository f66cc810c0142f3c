# SPDX-License-Identifier: Apache-2.0
"""Tests of curves, and of how launches lie."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from storqual.base.figures import DASH
from storqual.report.criterion import read_criteria
from storqual.report.material import read_material
from storqual.report.parts.curves import launch_strip, overlay_chart, overview
from storqual.study.points import PointLine, StudyPoint
from storqual.study.published_beside import Overlay
from tests.support.judged_reports import QUICK, judged


def line(subject: str, values: dict[int, float]) -> PointLine:
    """IOPS over ports."""
    points = [
        StudyPoint(
            subject,
            "b1",
            "fc0",
            f"ports={at}",
            "iops",
            {"ports": at},
            (),
            {"rw": "read"},
            ("d",),
            at,
            ({"iops": rate},),
        )
        for at, rate in values.items()
    ]
    return PointLine(subject, "iops", "ports", (), tuple(points))


def overlay(ours: dict[int, float], theirs: dict[float, float]) -> Overlay:
    return Overlay("iops", "iops", "ports", (line("fc0", ours),), {"A6826A, p. 2": theirs})


def test_the_published_line_ours_and_their_ratio_are_in_one_picture() -> None:
    chart = overlay_chart(overlay({1: 30000.0, 2: 56000.0, 4: 60000.0}, {1.0: 35530.0, 2.0: 70100.0}), "sp-0")
    assert chart.table is not None
    assert [(str(row[0]), str(row[4]), str(row[5])) for row in chart.table.rows] == [
        ("1 port", "0.8444", "A6826A, p. 2"),
        ("2 ports", "0.7989", "A6826A, p. 2"),
        ("4 ports", DASH, DASH),
    ]
    assert "published" in chart.picture
    assert "fc0" in chart.picture


@pytest.mark.parametrize(("ours", "ticks"), [(30000.0, [0.0]), (30.0, [])], ids=["near", "far-apart"])
def test_curves_that_are_far_apart_stand_on_a_logarithmic_scale(ours: float, ticks: list[float]) -> None:
    chart = overlay_chart(overlay({1: ours, 2: 2 * ours}, {1.0: 35530.0, 2.0: 70100.0}), "sp-0")
    assert (">0</text>" in chart.picture) == bool(ticks)


def test_a_strip_shows_each_launch_and_both_limits(tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:1], adapters=("sym",), noise=0.002, launches=3)
    verdict = json.loads((run / "verdict.json").read_text())
    verdict["criteria"][0]["indifference_percent"] = 1.0
    (run / "verdict.json").write_text(json.dumps(verdict))
    material = read_material(run)
    (point,) = material.points.values()
    chart = launch_strip(point, read_criteria(material.verdict), "s")
    assert chart is not None
    assert chart.picture.count("<circle") == sum(len(arm) for arm in point.launches.values())
    assert "unacceptable</text>" in chart.picture
    assert ">acceptable</text>" in chart.picture


def test_a_point_without_two_arms_has_no_strip(tmp_path: Path) -> None:
    material = read_material(judged(tmp_path, points=QUICK[:1], adapters=("sym",)))
    point = next(iter(material.points.values()))
    del point.launches["candidate"]
    assert launch_strip(point, read_criteria(material.verdict), "s") is None


def test_many_points_have_an_overview_and_few_have_none(tmp_path: Path) -> None:
    many = read_material(judged(tmp_path / "many", points=QUICK, noise=0.002, effect={"sym": -0.1}))
    chart = overview(many, read_criteria(many.verdict), "o")
    assert chart is not None
    assert chart.picture.count("<circle") == 14
    assert 'class="sh o-fail"' in chart.picture
    assert chart.table is not None
    assert str(chart.table.rows[0][0]).startswith("sym ")
    few = read_material(judged(tmp_path / "few", points=QUICK[:3], noise=0.002))
    assert overview(few, read_criteria(few.verdict), "o") is None
