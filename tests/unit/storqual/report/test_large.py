# SPDX-License-Identifier: Apache-2.0
"""Tests of large campaigns: 200 points fit one light page, more are told on pages of their own."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from storqual.report import build_report
from tests.support.judged_reports import judged, points_of
from tests.support.report_pages import read_page

pytestmark = pytest.mark.slow

MEGABYTE = 1_000_000


def test_200_points_make_one_page_below_three_megabytes_in_five_seconds(tmp_path: Path) -> None:
    points = points_of(sizes=(4096, 16384, 65536, 262144))[:50]
    run = judged(tmp_path, adapters=("sym", "mpt", "mega", "sas"), points=points, runtime_s=3.0)
    began = time.process_time()
    report = build_report(run)
    assert time.process_time() - began < 5
    assert len(read_page(report).root.all("details", "point")) == 200
    assert report.stat().st_size < 3 * MEGABYTE
    assert not (run / "report").exists()


def test_more_points_are_told_on_pages_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storqual.report.view.MOST_POINTS", 8)
    points = points_of(workloads=("rand_read", "seq_write"), sizes=(4096, 65536), depths=(1,))
    run = judged(tmp_path, points=points, effect={"sym": -0.2}, noise=0.002)
    page = read_page(build_report(run))
    rollup = page.root.all("table", "rollup")[0]
    links = [link.attributes["href"] for link in rollup.all("a")]
    assert links == [f"report/{at:03d}-{name}.html" for at, name in enumerate(
        ["sym-rand_read", "sym-seq_write", "mpt-rand_read", "mpt-seq_write"], start=1)]  # fmt: skip
    assert not page.root.all("details", "point")
    for link in page.root.all("a"):
        file, _, anchor = link.attributes["href"].partition("#")
        target = read_page(run / file) if file else page
        assert not anchor or target.find(anchor)
    detail = read_page(run / links[0])
    assert [node.text() for node in detail.root.all("h1")] == ["sym rand_read"]
    assert len(detail.root.all("details", "point")) == 4
    assert detail.root.all("a")[1].attributes["href"] == "../report.html"


def test_a_report_made_again_leaves_no_page_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Detail pages that nothing leads to would be evidence of nothing."""
    run = judged(tmp_path, adapters=("sym",), points=points_of(sizes=(4096,)))
    monkeypatch.setattr("storqual.report.view.MOST_POINTS", 1)
    build_report(run)
    assert list((run / "report").iterdir())
    monkeypatch.setattr("storqual.report.view.MOST_POINTS", 300)
    build_report(run)
    assert not (run / "report").exists()
