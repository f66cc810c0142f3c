# SPDX-License-Identifier: Apache-2.0
"""Tests of the findings of a report: the studies that a suite asks for, and none where it asks for none."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from storqual.judge.verdict import judge_run
from storqual.report import build_report
from storqual.report.build import Page, pages_of
from storqual.report.material import read_material
from storqual.report.parts.studies import _published, _settings, studies_of
from storqual.study.findings import findings
from tests.support.make_run import make_run
from tests.support.study_points import point
from tests.support.synthetic_shape import SUITE, point_name

STUDIES = "studies: [adapters, scaling, service_demand, ceiling, features, published]\npublished: [a6826a]\n"
POINTS = tuple(
    point_name("rand_read", bs=size, drives=drives, iodepth=depth)
    for size in (4096, 65536)
    for drives in (1, 4)
    for depth in (1, 16)
)


def run_of(folder: Path, suite: str, **options: object) -> Path:
    """A judged run of two adapters, the second of which is slower by 30 % everywhere."""
    effect = {"mpt": -0.3}
    run = make_run(folder, suite=suite, points=POINTS, adapters=("sym", "mpt"), effect=effect, **options)
    judge_run(run)
    return run


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    run = run_of(tmp_path_factory.mktemp("studies"), SUITE + STUDIES, launches=3)
    return dict(pages_of(read_material(run)))["report.html"]


def test_each_study_is_a_section(page: Page) -> None:
    assert [study.ident for study in page.studies] == [
        *("study-adapters", "study-scaling", "study-demand", "study-features")
    ]


def test_the_slower_adapter_is_behind_at_every_point(page: Page) -> None:
    sentences = " ".join(page.studies[0].sentences)
    assert "sym leads" in sentences
    assert "mpt leads" not in sentences


def test_every_picture_has_its_numbers(page: Page) -> None:
    charts = page.studies[0].charts
    assert charts
    assert {row[1] for chart in charts if chart.table for row in chart.table.rows} == {"sym", "mpt"}


def test_drives_scale_as_they_were_planted(page: Page) -> None:
    scaling = next(study for study in page.studies if study.ident == "study-scaling")
    assert any("Linear over the whole range, from 1 to 4 drives" in sentence for sentence in scaling.sentences)


def test_the_published_figures_are_drawn_into_our_curves_and_told_with_their_ratio() -> None:
    read = {"rw": "read", "bs": 1024}
    points = [
        replace(point("fc0", "iops_1k", 100.0 * ports, bs=1024, ports=ports), levels={"ports": ports}, pattern=read)
        for ports in (1, 2)
    ]
    (study,) = _published(findings(points, ["published"], benches={}, reports=["a6826a"]))
    (chart,) = study.charts
    assert chart.table is not None
    assert [str(row[3]) for row in chart.table.rows] == ["35,530", "70,100"]
    assert len(study.tables[0].rows) == 2


def test_settings_that_were_not_varied_are_told_with_the_reason(tmp_path: Path) -> None:
    material = read_material(run_of(tmp_path, SUITE + STUDIES))
    why = "not changeable on drive 0x1 (its value is 20, and its changeable mask does not allow another)"
    material.run.document["plan"]["not_varied"] = {"b1": {"drive.NCS": why}}
    (study,) = [study for study in studies_of(material)[0] if study.ident == "study-settings"]
    assert study.note == "Nothing was varied whose effect could be ranked."
    assert [table.rows for table in study.tables] == [(("b1", "drive.NCS", why),)]


def test_the_table_of_settings_says_what_changed_along() -> None:
    rates = {("0", 4): 400.0, ("5", 3): 150.0}
    points = [
        point("sym", "dbms", rate, varied={"raid.level": level, "raid.members": members})
        for (level, members), rate in rates.items()
    ]
    results = findings(points, ["settings"], benches={})
    (study,) = _settings(results, SimpleNamespace(document={"plan": {}}))  # type: ignore[arg-type]
    (table,) = study.tables
    assert {row[2] for row in table.rows} == {"raid.level: 0 to 5, raid.members: 4 to 3"}


def test_no_cell_of_the_chart_of_features_is_blank(page: Page) -> None:
    (table,) = next(study for study in page.studies if study.ident == "study-features").tables
    assert all(all(row) for row in table.rows)
    assert ("Boot from CD-ROM", "not known", "not known") in table.rows


def test_a_suite_without_studies_has_no_findings(tmp_path: Path) -> None:
    run = run_of(tmp_path, SUITE)
    page = dict(pages_of(read_material(run)))["report.html"]
    assert (page.studies, page.advice) == ((), ())


def test_names_from_outside_are_escaped(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    run = make_run(tmp_path, suite=SUITE + STUDIES, points=POINTS, adapters=(hostile, "sym"))
    judge_run(run)
    assert hostile not in build_report(run).read_text(encoding="utf-8")
