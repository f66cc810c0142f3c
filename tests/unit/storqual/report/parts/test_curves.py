# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from storqual.base.figures import DASH
from storqual.report.parts.curves import overlay_chart
from storqual.study.points import PointLine, StudyPoint
from storqual.study.published_beside import Overlay


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
