# SPDX-License-Identifier: Apache-2.0
"""Headings and sentences that name what they are about: the bench, the criterion, and why nothing counted."""

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual.judge.verdict import judge_run, verdict_of
from storqual.report import build_report
from storqual.report.build import pages_of, render
from storqual.report.criterion import JudgedCriterion, read_criteria
from storqual.report.documents import traceability
from storqual.report.material import Material, read_material
from storqual.report.parts.arms import identities
from storqual.report.parts.criteria import criteria_tables, problems_of
from storqual.report.parts.first_screen import _notices, how_sure, sentence_for, signers_for
from storqual.report.parts.timeline import timeline_of
from storqual.report.view import PageLinks, sites_of
from tests.attacks.before.tampering import chained
from tests.support.judged_reports import QUICK
from tests.support.judged_reports import judged as judged_run
from tests.support.make_run import make_run
from tests.support.report_pages import Page, read_page
from tests.support.synthetic_shape import POINTS, SUITE

DISTURBED = "the CPU was throttled"
FLOOR = "  - {metric: iops, id: floor, against: absolute, min: 1, required: true}\n"
FEW = {"points": POINTS[:1], "adapters": ("sym",), "noise": 0.003}


def judged(folder: Path, **options: Any) -> Material:
    run = make_run(folder, **{**FEW, **options})
    judge_run(run)
    return read_material(run)


def links_of(material: Material) -> PageLinks:
    return PageLinks(sites_of(material, (), range(len(material.verdict["criteria"]))), None)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Material:
    suite = SUITE.replace("against: baseline, required: true", "against: baseline, requirement: REQ-1")
    run = make_run(tmp_path_factory.mktemp("two"), suite=suite, **FEW)
    judge_run(run)
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    document["benches"]["other"] = copy.deepcopy(document["benches"]["vbench"])
    document["plan"]["points"] += [{**point, "bench": "other"} for point in document["plan"]["points"]]
    (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
    return read_material(run)


def test_adapters_of_one_alias_on_two_benches_are_named_with_their_bench(two: Material) -> None:
    assert [adapter.name for adapter in identities(two)] == ["vbench/sym", "other/sym"]
    (chart,) = timeline_of(two, "vbench", (), "b0").charts
    assert chart.title.startswith("vbench/sym: IOPS of each launch")


def test_evidence_for_a_requirement_names_its_bench(two: Material) -> None:
    assert f"vbench/sym {POINTS[0]} (c0 in report.html)" in str(traceability(two))


def test_an_adapter_of_the_only_bench_is_named_by_its_alias(tmp_path: Path) -> None:
    material = judged(tmp_path)
    assert [adapter.name for adapter in identities(material)] == ["sym"]
    (chart,) = timeline_of(material, "vbench", (), "b0").charts
    assert chart.title.startswith("sym: IOPS of each launch")


def test_two_criteria_of_one_metric_have_headings_of_their_own(tmp_path: Path) -> None:
    two_limits = FLOOR + FLOOR.replace("floor", "promise").replace("min: 1", "min: 2")
    suite = SUITE.replace("profiles:", f"{two_limits}profiles:")
    material = judged(tmp_path, suite=suite)
    tables = criteria_tables(read_criteria(material.verdict), ["vbench"], links_of(material))
    assert [(table.metric, table.name) for table in tables if table.required] == [
        ("IOPS", ""),
        ("IOPS", "floor"),
        ("IOPS", "promise"),
    ]


def test_failures_of_two_criteria_of_one_metric_are_told_apart(tmp_path: Path) -> None:
    suite = SUITE.replace("profiles:", f"{FLOOR.replace('min: 1', 'min: 1e9')}profiles:")
    material = judged(tmp_path, suite=suite, effect=-0.5)
    required = [row for row in read_criteria(material.verdict) if row.required]
    problems, _ = problems_of(required, ["vbench"], links_of(material))
    assert sorted(problem.metric for problem in problems) == ["IOPS", "IOPS (floor)"]


CHECK = {"id": "sign_off.robot::The Evidence Is Whole", "against": "check", "outcome": "ERROR", "required": True}


def test_a_check_of_a_run_over_several_benches_names_its_bench_in_each_line(tmp_path: Path, two: Material) -> None:
    """On the first screen and in the table of checks; of a single bench nothing is in front."""
    benches = ["vbench", "other"]
    rows = [JudgedCriterion(at, {**CHECK, "bench": bench, "reason": bench}) for at, bench in enumerate(benches)]
    problems, _ = problems_of(rows, benches, links_of(judged(tmp_path)))
    named = [f"{bench}: sign_off.robot: The Evidence Is Whole" for bench in benches]
    assert [problem.where for problem in problems] == named
    assert [row.check_name(benches).replace("::", ": ") for row in rows] == named
    assert rows[0].check_name(benches[:1]) == CHECK["id"]
    material = replace(two, verdict={**two.verdict, "criteria": [row.fields for row in rows]})
    (page,) = [page for name, page in pages_of(material) if name == "report.html"]
    shown = render(page).replace("<wbr>", "")
    assert all(f'<th scope="row">{bench}: {CHECK["id"]}</th>' in shown for bench in benches)


def test_a_check_at_a_point_is_named_with_the_point() -> None:
    row = JudgedCriterion(0, {**CHECK, "bench": "b1", "adapter": "sym", "point": POINTS[0]})
    assert row.check_name(["b1"]) == f"{CHECK['id']} at sym/{POINTS[0]}"
    assert row.check_name(["b1", "b2"]) == f"b1: {CHECK['id']} at sym/{POINTS[0]}"


def sentence(**counts: Mapping[str, int]) -> str:
    fields = {"id": "iops", "metric": "iops", "outcome": "INCONCLUSIVE", "against": "baseline", **counts}
    text = sentence_for({"outcome": "INCONCLUSIVE"}, [JudgedCriterion(0, fields)], {})
    return "".join(map(str, text))


@pytest.mark.parametrize(
    ("samples", "suspect", "words"), json.loads(Path(__file__).with_name("suspects.json").read_text(encoding="utf-8"))
)
def test_the_headline_of_a_run_without_evidence_says_so(
    samples: tuple[int, int], suspect: tuple[int, int], words: str
) -> None:
    arms = ("candidate", "baseline")
    text = sentence(samples=dict(zip(arms, samples, strict=True)), suspect=dict(zip(arms, suspect, strict=True)))
    assert text == f"1 of 1 required criteria are undecided: {words}."


def test_a_run_whose_every_launch_was_disturbed_says_so_and_nothing_of_how_launches_repeat(tmp_path: Path) -> None:
    material = judged(tmp_path, suspect={"sym": DISTURBED})
    text = "".join(map(str, sentence_for(material.verdict, read_criteria(material.verdict), {})))
    assert text.endswith(
        "no launch of the candidate counts as evidence, because all of them were disturbed (suspect)."
    )
    for launch in (launch for data in material.points.values() for launch in data.every()):
        object.__setattr__(launch, "suspect", (DISTURBED,))
    assert not list(how_sure(material, ()))


def test_launches_that_are_all_alike_do_not_repeat_within_nothing(tmp_path: Path) -> None:
    """A rate that fio keeps to leaves less than two decimals show."""
    material = judged(tmp_path, noise=0.0)
    (text,) = ("".join(map(str, phrase)) for phrase in how_sure(material, ()))
    assert "vary by 0.01" in text


def signature_of(material: Material) -> str:
    return " ".join(signers_for(material, [])[0])


def test_who_cannot_sign_a_finished_run_is_not_told_to_resume_it(tmp_path: Path) -> None:
    undecided = judged(tmp_path / "undecided", suspect={POINTS[0]: DISTURBED})
    assert undecided.verdict["outcome"] == "INCONCLUSIVE"
    assert "everything planned was measured, and it is undecided" in signature_of(undecided)
    left = judged(tmp_path / "left", missing=POINTS[:1])
    assert f"storqual qualify --resume {left.run.name}" in signature_of(left)
    assert "resume" not in signature_of(undecided).lower()


def test_points_at_which_no_launch_counts_are_told_beside_those_that_were_measured(tmp_path: Path) -> None:
    material = judged(tmp_path, suspect={POINTS[0]: DISTURBED})
    text = " ".join(read_page(build_report(material.run.path)).root.text().split())
    assert "1 of 1 points measured; at 1 of them no launch counts as evidence, 0 skipped (list of points)" in text
    assert "no second change" not in text
    assert "0 measurements show no change" not in text


def test_a_run_that_compares_a_drop_with_itself_says_so_first(tmp_path: Path) -> None:
    run = make_run(tmp_path, **FEW)
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    for identical in (True, False):
        designs = {"vbench": {"kind": "sessions", "identical": identical, "differences": []}}
        document["plan"]["designs"] = designs
        (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
        verdict = verdict_of(run)
        warned = [warning for warning in verdict["warnings"] if "compares the bench with itself" in warning]
        assert bool(warned) is identical
        judge_run(run)
        first = next(iter(_notices(read_material(run))))
        assert ("Both drops declare the same" in first) is identical


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    run = judged_run(tmp_path_factory.mktemp("limits"), points=QUICK[:2], adapters=("sym",), noise=0.002)
    verdict = json.loads((run / "verdict.json").read_text())
    for row in verdict["criteria"]:
        row |= {"indifference_percent": 1.0, "bound_percent": row["shift_percent"] - 0.5}
    (run / "verdict.json").write_text(json.dumps(verdict))
    document = json.loads((run / "run.json").read_text())
    document["plan"]["alpha"] = 0.05
    document["benches"]["vbench"]["adapters"]["spare"] = {
        "model": "Tekram DC-390",
        "driver": "am53c974",
        "drives": [],
    }
    (run / "run.json").write_text(json.dumps(document))
    return read_page(build_report(run))


def test_both_limits_are_named_with_the_odds_of_a_loss_between_them(page: Page) -> None:
    text = page.section("limits").text()
    assert "IOPS: acceptable loss 1 %, a candidate shown to lose more fails; unacceptable loss 3 %" in text
    # half way is one percent from the limit, twice the reach of a one-sided bound: 1.645 standard errors to spare
    assert "a true loss of 2 % passes in about 95 of 100 such campaigns" in text


def test_the_error_rate_of_the_gate_and_the_noise_of_the_bench_are_told(page: Page) -> None:
    text = page.section("limits").text()
    assert "at most 5 % of campaigns pass a candidate with the unacceptable loss" in text
    assert "Between sessions, the baseline's IOPS vary by 0." in text


def test_what_was_not_tested_is_told_by_name(page: Page) -> None:
    text = page.section("untested").text()
    assert "Adapters: spare (Tekram DC-390)" in text
    assert "Tail latency: no required criterion is about a percentile of latency" in text
    assert "Cost per I/O: CPU time per I/O does not affect the outcome" in text
    assert "Endurance: no launch ran longer than 2 s" in text
    assert "Points of the suite: " in text
    assert "Faults: " in text
    assert "Steady state: drives were measured as they were found" in text


def test_why_cycles_were_not_counted_is_told(tmp_path: Path) -> None:
    run = judged_run(tmp_path, points=QUICK[:1], adapters=("sym",))
    assert "cycles" not in read_page(build_report(run)).section("untested").text().lower()
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    for event in events:
        if "start" in event:
            event["start"]["no_cycles"] = "no <counter>"
    chained(run / "events.jsonl", events)
    text = read_page(build_report(run)).section("untested").text()
    assert "CPU time per I/O does not affect the outcome; CPU cycles per I/O were not counted: no <counter>" in text


def test_drives_that_were_brought_to_a_steady_state_are_not_told_as_untested(tmp_path: Path) -> None:
    run = judged_run(tmp_path, points=QUICK[:1], adapters=("sym",))
    document = json.loads((run / "run.json").read_text())
    steady = {"steady": True, "rounds": 5, "drift": None, "snia": None}
    document["preconditioned"] = [{"bench": "vbench", "report": {"steady": steady}}]
    (run / "run.json").write_text(json.dumps(document))
    assert "Steady state" not in read_page(build_report(run)).section("untested").text()


def test_a_waived_failure_is_in_the_sentence_of_the_outcome(pages: dict[str, Page]) -> None:
    assert pages["waived"].root.all("p", "sentence")[0].text() == (
        "Passes with 1 waiver: BUG-4711 of J. Ortega through 2027-03-31. "
        "13 of 14 required measurements pass; 1 failed and is waived."
    )
