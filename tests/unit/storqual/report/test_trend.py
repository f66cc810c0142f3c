# SPDX-License-Identifier: Apache-2.0
"""The trend of a lab: campaigns, drops, waivers that end, and a bench that is no longer what it was."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from storqual.cli import storqual
from storqual.report import build_report
from storqual.report.trend import build_trend, read_past, reference_series, series_of
from storqual_core.kit.errors import BadInputError
from tests.support.report_pages import read_page
from tests.support.trend_labs import campaign, make_year, with_reference

AS_OF = datetime(2027, 3, 20, tzinfo=UTC)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_year(tmp_path_factory.mktemp("lab"))


def test_a_quarter_is_on_one_page(lab: Path, tmp_path: Path) -> None:
    (reported,) = [run for run in lab.iterdir() if "202609" in run.name]
    build_report(reported)
    text = read_page(build_trend([lab], tmp_path / "trend.html", as_of=AS_OF))
    rows = text.section("campaigns").all("tr")[1:]
    assert len(rows) == 11
    assert "NOT JUDGED" in rows[0].text()
    assert "FAIL" in rows[3].text()
    links = [anchor.attributes["href"] for anchor in text.section("campaigns").all("a")]
    assert [(tmp_path / link).resolve() for link in links] == [reported / "report.html"]


def test_a_bench_that_changed_needs_a_look(lab: Path, tmp_path: Path) -> None:
    """October's baseline is 20 % below its usual level on both adapters: beyond the limits, and said first."""
    series = {line.point: line for line in series_of(read_past([lab]))}
    assert {point: line.control.signals[-1] for point, line in series.items()} == {"sym": "beyond", "mpt": "beyond"}
    assert series["sym"].levels[-1].percent == pytest.approx(-20, abs=1)
    page = read_page(build_trend([lab], tmp_path / "trend.html", as_of=AS_OF))
    assert "beyond its control limits on 2026-10-21" in page.section("signals").text()


def test_a_golden_reference_has_a_chart_of_its_own(tmp_path: Path) -> None:
    for number, rate in enumerate((200.0, 201.0, 199.0, 200.0, 201.0, 160.0), start=1):
        with_reference(campaign(tmp_path, number, seed=number), "0x5000c500aaaa0001", rate)
    (series,) = reference_series(read_past([tmp_path]))
    assert (series.bench, series.point, series.what) == ("vbench", "0x5000c500aaaa0001", "golden reference")
    assert series.control.signals == ("",) * 5 + ("beyond",)
    assert series.levels[-1].percent == pytest.approx(-20, abs=0.5)
    page = read_page(build_trend([tmp_path], tmp_path / "trend.html", as_of=AS_OF))
    assert "vbench, 0x5000c500aaaa0001: beyond its control limits on 2026-06-21" in page.section("signals").text()


def test_waivers_are_told_before_they_end(lab: Path, tmp_path: Path) -> None:
    for as_of, validity in ((AS_OF, "ends in 11 days"), (datetime(2027, 5, 1, tzinfo=UTC), "expired 31 days ago")):
        page = read_page(build_trend([lab], tmp_path / "trend.html", as_of=as_of))
        shown = page.section("waivers").text()
        assert validity in shown
        assert "J. Ortega" in shown


def test_a_drop_has_a_row_per_adapter(lab: Path, tmp_path: Path) -> None:
    page = read_page(build_trend([lab], tmp_path / "trend.html", as_of=AS_OF))
    rows = [row.text() for row in page.section("drops").all("tr")[1:]]
    assert len(rows) == 2
    assert all("candidate" in row and "baseline" in row for row in rows)


def test_the_page_holds_no_script_and_keeps_text_text(tmp_path: Path) -> None:
    run = campaign(tmp_path / "lab", 1, seed=1)
    document = json.loads((run / "run.json").read_text())
    document["arms"]["candidate"]["drop"] = "<img src=x onerror=alert(1)>"
    (run / "run.json").write_text(json.dumps(document))
    page = build_trend([tmp_path / "lab"], tmp_path / "trend.html", as_of=AS_OF).read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="found no run directory"):
        build_trend([tmp_path], tmp_path / "trend.html")
    assert not (tmp_path / "trend.html").exists()


def test_the_command_writes_the_page(lab: Path, tmp_path: Path) -> None:
    target = tmp_path / "quarter.html"
    words = ["report", str(lab), "--trend", str(target), "--as-of", "2027-03-20", "--json"]
    answer = CliRunner().invoke(storqual, words, standalone_mode=False, catch_exceptions=False)
    assert json.loads(answer.stdout) == {"trend": str(target)}
    assert "ends in 11 days" in target.read_text()
