# SPDX-License-Identifier: Apache-2.0
"""A release's own documents: each from a judged run, on one template, escaped like the report."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from storqual.cli import storqual
from storqual.report.documents import (
    ReleaseDocument,
    compatibility,
    customer_summary,
    planned_tests,
    traceability,
    write_document,
)
from storqual.report.material import read_material
from storqual_core.kit.errors import BadInputError
from tests.support.judged_reports import QUICK, judged
from tests.support.make_run import make_run
from tests.support.report_pages import Page, read_page
from tests.support.synthetic_shape import SUITE

REQUIREMENTS = """
requirements:
  REQ-101: {text: The rate of the field release is kept}
  REQ-102: {text: The link has its full rate, checks: ['link_*']}
  REQ-103: {text: A lost drive is survived}
"""


def run_of(folder: Path, suite: str = SUITE, **options: Any) -> Path:
    suite = suite.replace("metric: iops", "metric: iops, requirement: REQ-101", 1) + REQUIREMENTS
    checks = [{"id": "link_rate", "outcome": "PASS", "reason": "6 Gb/s"}]
    run = judged(folder, points=QUICK[:3], noise=0.002, checks=checks, suite=suite, **options)
    verdict = json.loads((run / "verdict.json").read_text())
    for row in verdict["criteria"]:
        # as the judge names them: by the criterion, not by the place
        row["id"] = row["id"].partition("@")[0]
    (run / "verdict.json").write_text(json.dumps(verdict))
    return run


def page_of(document: ReleaseDocument, folder: Path) -> Page:
    return read_page(write_document(document, folder / "document.html"))


def rows_of(page: Page, section: str) -> list[list[str]]:
    return [[cell.text() for cell in row.children] for row in page.section(section).all("tbody")[0].all("tr")]


def test_each_requirement_has_its_criteria_its_result_and_its_evidence(tmp_path: Path) -> None:
    page = page_of(traceability(read_material(run_of(tmp_path))), tmp_path)
    rows = rows_of(page, "matrix")
    assert [(row[0], row[2], row[-1]) for row in rows] == [
        ("REQ-101", "iops", "✓ PASS"),
        ("REQ-102", "link_*", "✓ PASS"),
        ("REQ-103", "not covered", "no result"),
    ]
    assert "6 PASS" in rows[0][3]
    assert f"sym {QUICK[0]} (c0 in report.html)" in rows[0][4]
    assert "3 requirements; 2 are met. Without any result in this run: REQ-103." in page.section("matrix").text()


def test_iops_and_throughput_are_one_measurement_and_each_answers_for_itself(tmp_path: Path) -> None:
    second = "criteria:\n  - {metric: throughput_mb_s, against: baseline, requirement: REQ-101}\n"
    twice = SUITE.replace("criteria:\n", second, 1)
    run = run_of(tmp_path, suite=twice)
    verdict = json.loads((run / "verdict.json").read_text())
    rates = [row for row in verdict["criteria"] if row["metric"] == "iops"]
    verdict["criteria"] += [{**row, "id": "throughput_mb_s", "metric": "throughput_mb_s"} for row in rates]
    (run / "verdict.json").write_text(json.dumps(verdict))
    rows = rows_of(page_of(traceability(read_material(run)), tmp_path), "matrix")
    assert [(row[2], row[-1]) for row in rows[:2]] == [("throughput_mb_s", "✓ PASS"), ("iops", "✓ PASS")]


def test_a_requirement_without_a_result_and_one_that_failed_are_red(tmp_path: Path) -> None:
    page = page_of(traceability(read_material(run_of(tmp_path, effect={"sym": -0.1}))), tmp_path)
    tones = [row.attributes.get("class", "") for row in page.section("matrix").all("tbody")[0].all("tr")]
    assert tones == ["o-fail", "", "o-fail"]
    assert "Not met or not decided: REQ-101." in page.section("matrix").text()


def test_a_suite_without_requirements_has_no_matrix(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="this suite has no requirements"):
        traceability(read_material(judged(tmp_path, points=QUICK[:1])))


def test_a_customers_summary_names_no_serial_host_path_run_or_bench(tmp_path: Path) -> None:
    run = run_of(tmp_path, effect={"sym": -0.1})
    verdict = json.loads((run / "verdict.json").read_text())
    text = page_of(customer_summary(read_material(run)), tmp_path).root.text()
    document = json.loads((run / "run.json").read_text())
    secrets = [document["run"], *document["benches"], *document["inventories"], "/var/lib"]
    for bench in document["benches"].values():
        for adapter in bench["adapters"].values():
            secrets += [adapter["pci"], *(drive[name] for drive in adapter["drives"] for name in ("id", "serial"))]
    assert len(secrets) > 10
    assert [secret for secret in secrets if secret in text] == []
    assert "fewer IOPS" in text
    assert "What was not tested" in text
    assert str(verdict["outcome"]) in text


def test_a_customers_summary_does_not_quote_the_reason_of_a_run_that_is_not_valid(tmp_path: Path) -> None:
    reason = "vbench: 7 sectors were written to /dev/sdq"
    run = judged(tmp_path, points=QUICK[:1], patch={"reason": reason, "outcome": "ERROR", "exit_code": 2})
    text = page_of(customer_summary(read_material(run)), tmp_path).root.text()
    assert "/dev/sdq" not in text
    assert "could not be judged" in text


def test_a_test_plan_needs_no_verdict(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    for name in ("verdict.json", "samples.jsonl"):
        (run / name).unlink()
    page = page_of(planned_tests(run), tmp_path)
    assert [row[1] for row in rows_of(page, "points")] == [*QUICK[:3], *QUICK[:3]]
    assert "required" in page.section("criteria").text()
    assert "REQ-103: A lost drive is survived: not covered by this suite" in page.section("requirements").text()
    assert len(rows_of(page, "order")) == 4


def test_a_test_plan_states_limits_with_their_unit_and_where_a_spec_sheet_has_none(tmp_path: Path) -> None:
    sheet = "drive: 'NO SUCH*'\nsource: data sheet\nlimits:\n  - {metric: iops, min: 100 IOPS}\n"
    criteria = (
        "{id: floor, metric: iops, against: absolute, min: 80}",
        "{id: stated, metric: iops, against: product}",
    )
    lines = "".join(f"  - {criterion}\n" for criterion in criteria)
    suite = SUITE.replace("criteria:\n", f"products: [other]\ncriteria:\n{lines}", 1)
    run = make_run(tmp_path, points=QUICK[:3], suite=suite, finished=False)
    next((run / "inputs").glob("*suite*")).with_name("other.product.yml").write_text(sheet)
    rows = {row[0]: row for row in rows_of(page_of(planned_tests(run), tmp_path), "criteria")}
    assert rows["floor"][4] == "at least 80 IOPS"
    assert "there is no spec sheet of" in rows["stated"][4]


def test_of_each_combination_the_newest_result_stands_and_an_old_one_is_stale(tmp_path: Path) -> None:
    runs = [judged(tmp_path / name, points=QUICK[:1], noise=0.002, effect=effect) for name, effect in EFFECTS]
    for number, run in enumerate(runs):
        document = json.loads((run / "run.json").read_text())
        document |= {"run": f"run-{number}", "created": f"2026-11-2{number}T09:59:00.000Z"}
        for entry in document["provisioned"]:
            entry["kernel"] = {"baseline": "6.1", "candidate": "6.12" if number else "6.6"}[entry["arm"]]
        (run / "run.json").write_text(json.dumps(document))
    soon = page_of(compatibility(runs, as_of=datetime(2026, 12, 1, tzinfo=UTC)), tmp_path)
    rows = [row for row in rows_of(soon, "results") if row[0] == "sym adapter"]
    assert [(row[4], row[6], row[7]) for row in rows] == [("6.12", "run-2", "✕ FAIL"), ("6.6", "run-0", "✓ PASS")]
    assert "stale" not in soon.section("results").text()
    late = page_of(compatibility(runs, as_of=datetime(2027, 6, 1, tzinfo=UTC)), tmp_path)
    assert "2026-11-22, stale" in late.section("results").text()


EFFECTS: list[tuple[str, dict[str, float]]] = [("first", {}), ("second", {}), ("third", {"sym": -0.1})]


def test_what_was_seen_apart_and_never_together_is_listed(tmp_path: Path) -> None:
    runs = [judged(tmp_path / name, points=QUICK[:1], noise=0.002) for name in ("one", "other")]
    for number, run in enumerate(runs):
        document = json.loads((run / "run.json").read_text())
        document["run"] = f"run-{number}"
        document["benches"]["vbench"]["adapters"] = {"sym": document["benches"]["vbench"]["adapters"]["sym"]}
        for drive in document["benches"]["vbench"]["adapters"]["sym"]["drives"]:
            drive["model"] = f"DRIVE-{number}"
        for entry in document["provisioned"]:
            entry["kernel"] = f"6.{number}"
        (run / "run.json").write_text(json.dumps(document))
    page = page_of(compatibility(runs, as_of=datetime(2026, 12, 1, tzinfo=UTC)), tmp_path)
    assert [(row[3], row[4]) for row in rows_of(page, "never")] == [("DRIVE-0", "6.1"), ("DRIVE-1", "6.0")]
    # what nobody recorded is none of the others and no further one
    document = json.loads((runs[1] / "run.json").read_text())
    for entry in document["provisioned"]:
        del entry["kernel"]
    (runs[1] / "run.json").write_text(json.dumps(document))
    page = page_of(compatibility(runs, as_of=datetime(2026, 12, 1, tzinfo=UTC)), tmp_path)
    assert [(row[3], row[4]) for row in rows_of(page, "never")] == [("DRIVE-1", "6.0")]


def test_hostile_names_are_text_in_documents(tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:1], model="<script>alert(1)</script>")
    page = page_of(compatibility([run]), tmp_path)
    assert not page.root.all("script")
    assert "<script>alert(1)</script>" in page.root.text()


def invoke(*words: str) -> str:
    return CliRunner().invoke(storqual, words, standalone_mode=False, catch_exceptions=False).stdout


def test_documents_are_written_beside_the_report(tmp_path: Path) -> None:
    run = run_of(tmp_path / "runs")
    targets = {name: tmp_path / f"{name}.html" for name in ("requirements", "summary")}
    words = [word for name, target in targets.items() for word in (f"--{name}", str(target))]
    written = json.loads(invoke("report", str(run), *words, "--json"))
    assert written == {"report": str(run / "report.html"), **{name: str(path) for name, path in targets.items()}}
    assert json.loads(invoke("report", str(run), "--test-plan", str(tmp_path / "plan.html"), "--json")) == {
        "test-plan": str(tmp_path / "plan.html")
    }
    many = invoke("report", str(tmp_path / "runs"), "--compatibility", str(tmp_path / "many.html"))
    assert many.strip() == str(tmp_path / "many.html")


def test_a_document_does_not_lie_in_the_run_and_pages_of_many_runs_stand_alone(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    with pytest.raises(BadInputError, match="outside"):
        invoke("report", str(run), "--summary", str(run / "summary.html"))
    with pytest.raises(BadInputError, match="cannot be combined; give one of them"):
        invoke("report", str(run), "--trend", "a.html", "--compatibility", "b.html")
