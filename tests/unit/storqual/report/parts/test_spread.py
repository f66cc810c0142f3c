# SPDX-License-Identifier: Apache-2.0
"""Launches as ratios with the limits, and the overview of a large matrix."""

from __future__ import annotations

import json
from pathlib import Path

from storqual.report.criterion import read_criteria
from storqual.report.material import read_material
from storqual.report.parts.curves import launch_strip, overview
from tests.support.judged_reports import QUICK, judged


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
