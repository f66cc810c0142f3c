# SPDX-License-Identifier: Apache-2.0
"""Tests of the page: self-contained and inert, reachable by keyboard and reader, and the first screen tells all."""

import json
import re
import time
from itertools import pairwise
from pathlib import Path

import pytest

from storqual.base.figures import DASH
from storqual.report import build_report
from tests.support.judged_reports import QUICK, judged, points_of
from tests.support.report_pages import Node, Page, read_page

pytestmark = pytest.mark.slow

OUTCOMES = {"pass": 0, "fail": 1, "waived": 0, "inconclusive": 2, "error": 2, "local": 2}
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


@pytest.fixture(params=["pass", "fail", "waived", "inconclusive", "error", "local", "same"])
def page(request: pytest.FixtureRequest, pages: dict[str, Page]) -> Page:
    return pages[request.param]


def test_a_page_holds_nothing_that_runs_or_loads(page: Page) -> None:
    names = {node.name for node in page.root.walk()}
    assert not names & {"script", "iframe", "object", "embed", "img", "form", "input", "base", "use", "image"}
    for node in page.root.walk():
        for name, value in node.attributes.items():
            assert not name.startswith("on"), (node.name, name)
            assert name not in ("style", "src", "srcset", "action", "xlink:href"), (node.name, name)
            if name == "href":
                assert value.startswith("#") or value == "data:,", value
    metas = [node.attributes for node in page.root.all("meta")]
    assert {"http-equiv": "Content-Security-Policy", "content": POLICY} in metas
    assert "url(" not in page.source
    assert "@import" not in page.source


def test_ids_are_unique_and_references_lead_somewhere(page: Page) -> None:
    ids = [node.attributes["id"] for node in page.root.walk() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in page.root.walk():
        if node.attributes.get("href", "").startswith("#"):
            assert node.attributes["href"][1:] in ids
        for name in ("aria-labelledby", "aria-describedby"):
            for target in node.attributes.get(name, "").split():
                assert target in ids, (node.name, target)


def test_a_page_has_landmarks_and_one_ladder_of_headings(page: Page) -> None:
    body = page.root.all("body")[0]
    assert [child.name for child in body.children] == ["a", "header", "main", "footer"]
    assert body.children[0].attributes["href"] == "#content"
    assert page.root.all("html")[0].attributes["lang"] == "en"
    levels = [int(node.name[1]) for node in page.root.walk() if re.fullmatch(r"h[1-6]", node.name)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


def test_every_table_has_a_caption_and_scoped_heads(page: Page) -> None:
    tables = page.root.all("table")
    assert tables
    for table in tables:
        assert table.all("caption")[0].text()
        heads = [node for node in table.all("th") if any(up.name == "thead" for up in node.ancestors())]
        assert all(node.attributes.get("scope") in ("col", "colgroup") for node in heads)
        for row in table.all("tbody")[0].all("tr"):
            assert [cell.attributes.get("scope") for cell in row.children[:1]] == ["row"]


def test_every_picture_is_named_and_has_its_numbers(page: Page) -> None:
    for picture in page.root.all("svg"):
        if picture.attributes.get("aria-hidden") == "true":
            continue
        assert picture.attributes["role"] == "img"
        assert picture.all("title")[0].text()
    for figure in page.root.all("figure"):
        assert figure.all("figcaption")[0].text()
        picture = figure.all("svg", "chart")[0]
        assert picture.all("desc")[0].text()
        tables = figure.all("table")
        point = next((up for up in figure.ancestors() if up.attributes.get("class") == "point"), None)
        assert tables or (point and point.all("table", "launches")), figure.text()[:80]


def test_outcomes_are_words_with_symbols_before_they_are_colours(page: Page) -> None:
    for badge in page.root.all("span", "o"):
        assert re.search(r"[A-Z]{4,}|Kernel panic|Provisioning failed", badge.text())
        assert badge.children[0].attributes == {"aria-hidden": "true"}


def test_regions_that_scroll_can_be_reached_by_keyboard(page: Page) -> None:
    for node in page.root.all("div", "scroll") + page.root.all("div", "canvas"):
        assert node.attributes["tabindex"] == "0"
        assert node.attributes["aria-label"]


@pytest.mark.parametrize(("name", "code"), OUTCOMES.items())
def test_the_first_screen_gives_the_outcome_and_the_exit_code(name: str, code: int, pages: dict[str, Page]) -> None:
    text = pages[name].section("outcome").text()
    assert f"Exit code {code}," in text
    position = {node.attributes.get("aria-labelledby"): at for at, node in enumerate(pages[name].root.all("section"))}
    assert position["outcome"] == 0
    assert position["outcome"] < position["figures"] < position["subject"] < position["criteria"]


def test_the_first_line_says_that_a_bench_is_virtual(pages: dict[str, Page]) -> None:
    """Before anything else: these figures qualify no hardware."""
    assert pages["pass"].header.startswith("Virtual bench: the adapters and drives are emulated")


def test_the_first_line_says_that_targets_are_files(pages: dict[str, Page]) -> None:
    assert pages["local"].header.startswith("Files on this machine: not a qualification of hardware.")
    assert "not counted: targets are files" in pages["local"].section("figures").text()


def test_the_first_line_tells_a_bench_that_a_drop_changes(pages: dict[str, Page]) -> None:
    assert "The candidate drop changes the virtual bench on purpose: iops_limit: all 900." in pages["same"].header


def test_of_many_changed_drives_the_first_line_names_some_and_the_settings_all(tmp_path: Path) -> None:
    """Twenty serial numbers before the verdict would hide it."""
    limits = {f"SYM000000{number}": 120 for number in range(9)}
    run = judged(tmp_path / "many", manifests={"candidate": {"virtual": {"iops_limit": limits}}})
    page = read_page(build_report(run))
    assert "SYM0000002 120 and so on, see Settings and environment." in page.header
    assert "SYM0000003" not in page.header
    assert "SYM0000008" in page.section("arms").text()


def test_the_first_screen_names_the_points_that_failed_and_links_them(pages: dict[str, Page]) -> None:
    problems = pages["fail"].section("problems")
    first = problems.all("li")[0]
    assert "FAIL sym, IOPS: 7 of 7 points" in first.text()
    points = [link.text() for link in first.all("a")]
    assert sorted(points) == sorted(QUICK)
    target = pages["fail"].find(first.all("a")[0].attributes["href"][1:])
    assert target.name == "tr"


def test_a_failed_check_is_among_the_problems_with_its_reason(pages: dict[str, Page]) -> None:
    assert "link_rate" in pages["fail"].section("problems").text()
    assert "3 Gb/s, expected 6 Gb/s" in pages["fail"].section("problems").text()


def test_a_panic_is_on_the_first_screen_and_its_text_in_the_report(pages: dict[str, Page]) -> None:
    problems = pages["error"].section("problems").text()
    assert "Kernel panic - not syncing: Fatal exception in interrupt" in problems
    assert "Provisioning failed" in problems
    assert "RIP: 0010:sym_probe+0x1a4/0x5c0" in pages["error"].section("time").text()


def test_worst_and_best_change_coverage_and_sectors_are_on_the_first_screen(pages: dict[str, Page]) -> None:
    text = pages["fail"].section("figures").text()
    assert re.search(r"Worst 1\d\.\d\s% fewer IOPS sym", text)
    assert re.search(r"Best 0\.\d\d\s% (more|fewer) IOPS mpt", text)
    assert "Coverage 13 of 14 points measured, 1 skipped (list of points)" in text
    assert "Sectors written outside claims 0" in text


def test_sectors_outside_the_claims_are_the_sentence(pages: dict[str, Page]) -> None:
    """Nothing else matters then."""
    assert "7 sectors were written to disks that no claim covers" in pages["same"].section("outcome").text()


def test_a_run_without_shifts_says_so(pages: dict[str, Page]) -> None:
    assert f"Worst {DASH} no change was measured" in pages["error"].section("figures").text()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pass", "May be signed by: release manager."),
        ("waived", "May be signed by: release manager, with the waivers below."),
        ("fail", "Cannot be signed until waivers cover every failure"),
        ("error", "Cannot be signed: the run is not complete."),
    ],
)
def test_the_first_screen_says_who_may_sign(name: str, expected: str, pages: dict[str, Page]) -> None:
    """A refusal says what would have to change."""
    assert expected in pages[name].section("outcome").text()
    assert bool(pages[name].root.all("section", "sign")) == (name in ("pass", "waived"))


def test_a_waived_failure_is_shown_as_failure_with_its_waiver(pages: dict[str, Page]) -> None:
    page = pages["waived"]
    assert "FAIL sym, IOPS: 1 of 7 points" in page.section("problems").text()
    assert "waived by J. Ortega until 2027-03-31" in page.section("criteria").text()
    ledger = page.section("coverage").text()
    for word in ("J. Ortega", "known, fixed in the next drop", "BUG-4711", "2027-03-31"):
        assert word in ledger


def test_the_driver_of_both_arms_is_on_the_first_screen(pages: dict[str, Page]) -> None:
    """Kernel and srcversion as they were read back."""
    text = pages["pass"].section("subject").text()
    assert "sym53c8xx" in text
    assert "kernel 6.1.0-47-amd64" in text
    assert "kernel 6.12.0-1-amd64" in text
    assert text.count("srcversion") == 4


def test_settings_that_differ_stand_first(pages: dict[str, Page]) -> None:
    rows = pages["pass"].section("arms").all("table", "settings")[0].all("tbody")[0].all("tr")
    assert [row.children[0].text() for row in rows] == [
        "drive.queue_depth",
        "driver.module.megaraid_sas",
        "drive.WCE",
    ]
    assert "≠ differs" in rows[0].text()
    assert "3 targets" in rows[0].text()
    assert "in effect: write latency rose from 0.41 ms to 3.3 ms" in rows[2].text()
    assert "read back, effect not shown" in rows[0].text()


def test_kernel_log_findings_are_on_the_time_axis_and_in_words(pages: dict[str, Page]) -> None:
    section = pages["fail"].section("time")
    assert any("K1" in node.text() for node in section.all("svg"))
    assert "K1 an adapter or link was reset" in section.text()
    assert "sym0: SCSI BUS reset detected" in section.text()


def test_lines_of_no_known_kind_are_counted_by_arm(tmp_path: Path) -> None:
    lines = [f"mpi3mr0: unexpected reply of queue {number}" for number in (7, 12)]
    cells = [
        {"kind": "unclassified", "severity": "warning", "line": line, "lines": [line], "count": 40 + at}
        for at, line in enumerate(lines)
    ]
    section = read_page(build_report(judged(tmp_path / "run", points=QUICK[:1], findings=cells))).section("time")
    (table,) = [candidate for candidate in section.all("table") if "that no rule knows" in candidate.text()]
    (row,) = table.all("tbody")[0].all("tr")
    assert [cell.text() for cell in row.all("td")] == ["0", "81"]
    assert row.all("th")[0].text() == lines[0]
    assert not section.all("li", "o-error")


def test_a_skipped_point_is_in_the_ledger_with_its_reason(pages: dict[str, Page]) -> None:
    assert f"mpt {QUICK[5]} the drive is reserved until Monday" in pages["fail"].section("coverage").text()


def test_every_raw_file_is_named_by_its_digest(runs: dict[str, Path], pages: dict[str, Page]) -> None:
    text = pages["pass"].section("points").text()
    for line in (runs["pass"] / "samples.jsonl").read_text().splitlines():
        assert json.loads(line)["raw"][0]["sha256"] in text


def test_the_appendix_holds_digests_versions_and_the_command(runs: dict[str, Path], pages: dict[str, Page]) -> None:
    text = pages["pass"].section("appendix").text()
    verdict = json.loads((runs["pass"] / "verdict.json").read_text())
    for digest in verdict["inputs"].values():
        assert digest in text
    for word in ("storqual qualify -i inventories/virtual", "fio-3.33", "2.19.14", "Seed"):
        assert word in text


def test_curves_show_both_arms_for_every_metric(pages: dict[str, Page]) -> None:
    section = pages["pass"].section("curves")
    assert [node.text() for node in section.all("figcaption")] == ["IOPS", "Throughput", "CPU time per I/O"] * 2
    for figure in section.all("figure"):
        assert figure.all("g", "d-baseline")
        assert figure.all("g", "d-candidate")


def test_a_launch_that_went_wrong_shows_its_status(pages: dict[str, Page]) -> None:
    launches = pages["local"].section("points").all("table", "launches")[0]
    bad = [row for row in launches.all("tr") if "refused" in row.text()]
    assert bad
    assert all(DASH in row.text() for row in bad)


def test_the_same_files_give_the_same_bytes(runs: dict[str, Path]) -> None:
    first = build_report(runs["fail"]).read_bytes()
    assert build_report(runs["fail"]).read_bytes() == first


def cells(row: Node) -> list[str]:
    return [cell.text() for cell in row.children]


def test_the_table_of_criteria_shows_what_the_verdict_says(runs: dict[str, Path], pages: dict[str, Page]) -> None:
    verdict = json.loads((runs["fail"] / "verdict.json").read_text())
    row = next(row for row in verdict["criteria"] if row["adapter"] == "sym" and row["metric"] == "iops")
    shown = cells(pages["fail"].find(f"c{verdict['criteria'].index(row)}"))
    assert shown[0] == row["point"]
    assert shown[1] == f"✕ FAIL {row['reason']}"
    assert [float(text.replace(",", "")) for text in shown[2:4]] == pytest.approx(
        [row["reference"], row["candidate"]], rel=1e-3
    )
    assert "% less, 95 % interval" in shown[4]
    low, high = (f"{abs(end):.1f}" if abs(end) >= 10 else f"{abs(end):.2f}" for end in row["ci95_percent"])
    assert shown[5].endswith(f"{low} % less to {high} % less")
    assert shown[6].startswith("3 %")
    assert shown[7] == "2 + 2 2 + 2"


@pytest.mark.parametrize("name", ["pass", "fail", "waived", "inconclusive"])
def test_every_row_has_the_outcome_and_the_direction_of_its_criterion(
    name: str, runs: dict[str, Path], pages: dict[str, Page]
) -> None:
    """A negative shift is worse, so that of a latency is told as "more"."""
    verdict = json.loads((runs[name] / "verdict.json").read_text())
    for number, row in enumerate(verdict["criteria"]):
        if row["against"] != "baseline" or not row["shift_percent"]:
            continue
        shown = cells(pages[name].find(f"c{number}"))
        assert shown[1].split()[1] == row["outcome"]
        match = re.match(r"([\d.,]+) %(?: (more|less))?", shown[5])
        assert match is not None
        assert float(match[1].replace(",", "")) == pytest.approx(abs(row["shift_percent"]), abs=0.051)
        grew = (row["shift_percent"] > 0) == (row["better"] == "higher")
        assert match[2] in (None, "more" if grew else "less")
        assert shown[7].startswith(" + ".join(str(row["samples"][arm]) for arm in ("baseline", "candidate")))


MEGABYTE = 1_000_000


def test_200_points_make_one_page_below_three_megabytes_and_time_grows_with_their_number(tmp_path: Path) -> None:
    points = points_of(sizes=(4096, 16384, 65536, 262144))[:50]
    seconds, report = [], tmp_path
    for adapters in (("sym",), ("sym", "mpt", "mega", "sas")):
        run = judged(tmp_path / adapters[-1], adapters=adapters, points=points, runtime_s=3.0)
        began = time.process_time()
        report = build_report(run)
        seconds.append(time.process_time() - began)
    assert seconds[1] < 8 * seconds[0]
    assert len(read_page(report).root.all("details", "point")) == 200
    assert report.stat().st_size < 3 * MEGABYTE
    assert not report.with_name("report").exists()


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
