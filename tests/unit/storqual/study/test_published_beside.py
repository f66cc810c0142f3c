# SPDX-License-Identifier: Apache-2.0
"""What a paper printed of a metric stands beside a point of its method, and in the curve of that point."""

from __future__ import annotations

import pytest

from storqual.base.resources import project_root
from storqual.inputs import load_suite
from storqual.inputs.references import overlays
from storqual.metrics import METRICS
from storqual.plan.points import points_of as suite_points
from storqual.study.points import STUDIED, StudyPoint
from storqual.study.published_beside import beside, overlays_of

SUITES = ("a6826a-port-scaling", "a7173a-service-demand", "qla1040-adapters", "xeon-ultra320")
ALONE = {
    "a6826a-port-scaling": set(),
    "a7173a-service-demand": set(),
    "qla1040-adapters": set(),
    # rate and users of a search for a load, which is one launch
    "xeon-ultra320": {("iops_at_cap", 2000.0), ("load_at_cap", 250.0)},
}
"""Figures beside a point that has no neighbours, so that there is no curve to draw them into."""


def measured(name: str) -> list[StudyPoint]:
    """Every point of a suite, as one adapter with two ports a card measured it."""
    found = []
    for one in suite_points(load_suite(project_root() / "suites" / f"{name}.suite.yml")):
        levels, pattern = {**dict(one.factors), **dict(one.varied)}, dict(one.pattern.values)
        ports = int(pattern.get("ports") or 2 * int(pattern.get("adapters") or 1))
        subject = ("hba", "b1", "hba", one.name, one.workload)
        varied = tuple(name for name, _ in one.varied)
        found.append(StudyPoint(*subject, levels, varied, pattern, ("d0",), ports, (dict.fromkeys(STUDIED, 1.0),)))
    return found


def test_every_suite_that_names_a_paper_is_here() -> None:
    named = {file.name.partition(".")[0] for file in (project_root() / "suites").glob("*.suite.yml")}
    read = {name: load_suite(project_root() / "suites" / f"{name}.suite.yml") for name in SUITES}
    assert all(suite.published for suite in read.values())
    others = [name for name in named - set(SUITES) if name not in ("robustness", "paths", "recovery", "conformance")]
    assert not any(load_suite(project_root() / "suites" / f"{name}.suite.yml").published for name in others)


@pytest.mark.parametrize("name", SUITES)
def test_every_published_figure_of_a_metric_is_beside_a_point_and_drawn_in_its_curve(name: str) -> None:
    papers = load_suite(project_root() / "suites" / f"{name}.suite.yml").published
    printed = {(metric, one.value) for paper in papers for metric in METRICS for one in overlays(paper, metric)}
    assert printed
    points = measured(name)
    found = beside(points, papers)
    assert {(one.theirs.metric, one.theirs.value) for one in found} == printed
    drawn = {
        (curve.metric, value)
        for curve in overlays_of(points, found)
        for levels in curve.theirs.values()
        for value in levels.values()
    }
    assert printed - drawn == ALONE[name]
