# SPDX-License-Identifier: Apache-2.0
"""Tests of reading published files: strict, every problem at once, each with its line."""

import json
from pathlib import Path

import pytest

from storqual.audit import audit, audit_document, audit_report, exit_code
from storqual.inputs import load_suite
from storqual.inputs.figures import load_published
from storqual.inputs.references import overlays, published_value
from storqual.inputs.suite import effective
from storqual.metrics import METRICS
from storqual_core.kit.errors import BadInputError
from tests.support.audit_reports import published, report_text
from tests.unit.storqual.inputs.test_published import REPORTS, report

FIGURES = "- {id: a, page: 1, what: a figure, value: 1}\n"


def problems(figures: str, assertions: str) -> list[str]:
    with pytest.raises(BadInputError) as told:
        published(report_text(figures, assertions))
    return told.value.problems


@pytest.mark.parametrize(
    ("assertion", "said"), json.loads(Path(__file__).with_name("assertion_mistakes.json").read_text(encoding="utf-8"))
)
def test_a_wrong_assertion_is_told_with_its_line(assertion: str, said: str) -> None:
    told = problems(FIGURES, f"- {{id: claim, page: 1, text: it says so, {assertion}}}\n")
    assert any(said in one and one.startswith("paper.yml:6:") for one in told), told


@pytest.mark.parametrize(
    ("figure", "said"), json.loads(Path(__file__).with_name("figure_mistakes.json").read_text(encoding="utf-8"))
)
def test_a_wrong_figure_is_told_with_its_line(figure: str, said: str) -> None:
    told = problems(f"- {{{figure}}}\n", "- {id: claim, page: 1, text: it, not_checkable: no}\n")
    assert any(said in one and one.startswith("paper.yml:4:") for one in told), told


def test_an_id_that_is_there_twice_is_told_at_both_places() -> None:
    """Two figures of one name would hide one of them."""
    told = problems(FIGURES + FIGURES, "- {id: claim, page: 1, text: it, not_checkable: no}\n")
    assert [one.split(":")[1] for one in told] == ["4", "5"]


def test_all_problems_are_told_at_once() -> None:
    wrong = "- {id: one, page: 1, text: it, stated: 1, computed: b}\n- {id: two, page: 1, text: it, stated: 1}\n"
    assert len(problems(FIGURES, wrong)) == 2


def test_an_unknown_text_is_refused_with_what_to_do(tmp_path: Path) -> None:
    text = tmp_path / "report.txt"
    text.write_text("our adapter is 13 % faster: 2721 against 2425\n", encoding="utf-8")
    with pytest.raises(BadInputError, match=r"found a text whose figures have no names, expected a file such as"):
        audit([text])


def test_the_problems_of_all_files_are_told_together(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as told:
        audit([tmp_path / "one.yml", tmp_path / "two.txt", tmp_path])
    assert len(told.value.problems) == 3
    for name, problem in zip(("one.yml", "two.txt", ""), told.value.problems, strict=True):
        assert problem.startswith(f"{tmp_path / name}: ")


def test_the_exit_code_is_that_of_a_check(tmp_path: Path) -> None:
    """0 when all is well, 1 when anything is inconsistent, never a count."""
    paper = tmp_path / "paper.yml"
    for stated, code in (("1", 0), ("3", 1)):
        assertion = f"- {{id: claim, page: 1, text: it, stated: {stated}, computed: a}}\n"
        paper.write_text(report_text(FIGURES, assertion), encoding="utf-8")
        assert exit_code(audit([paper, paper])) == code


PAPER = Path(__file__).with_suffix(".paper").read_text(encoding="utf-8")
USUAL = {"value": "12", "label": "1", "stated": "12", "computed": "a", "linear": "a * 2"}
HUGE = "9" * 5000


@pytest.mark.parametrize(
    ("line", "written"),
    [
        (4, {"value": "1e31"}),
        (4, {"value": "1e-31"}),
        (4, {"value": "1e999999999"}),
        (4, {"value": "1e-999999999999999999999"}),
        (4, {"value": "9" * 32}),
        (4, {"value": HUGE}),
        (4, {"value": ".inf"}),
        (9, {"label": '"\u00b2"'}),
        (9, {"label": f'"{HUGE}"'}),
        (7, {"stated": "1e400"}),
        (7, {"computed": "a * 1e31"}),
        (7, {"computed": "a * 1e999999999"}),
        (7, {"computed": "1e-999999999 + a"}),
        (7, {"computed": "a ** 30"}),
        (7, {"computed": "a ** a ** a"}),
        (7, {"computed": "0x10 + a"}),
        (7, {"computed": " * ".join(["1e30"] * 3)}),
        (7, {"computed": "a / 1e-30 / 1e-30 / 1e-30"}),
        (7, {"value": "1e30", "stated": "1e30", "computed": " * ".join(["a"] * 100)}),
        (7, {"computed": " + ".join(f"1 / {10**20 + number}" for number in range(15)) + " * a" * 200}),
        (8, {"linear": " * ".join(["1e30"] * 3)}),
    ],
)
def test_a_number_that_no_report_prints_is_bad_input_with_its_line(
    tmp_path: Path, line: int, written: dict[str, str]
) -> None:
    path = tmp_path / "p.yml"
    path.write_text(PAPER.format(**{**USUAL, **written}), encoding="utf-8")
    with pytest.raises(BadInputError) as caught:
        audit_report(load_published(path))
    assert [problem.startswith(f"{path}:{line}: ") for problem in caught.value.problems] == [True]


@pytest.mark.parametrize(
    "written",
    [
        {"value": "1e30"},
        {"value": "1e-30"},
        {"value": "0"},
        {"value": "0", "computed": "1 / a"},
        {"value": "9" * 31},
        {"computed": "a * 1e30"},
        {"computed": "-" * 390 + "a"},
        {"value": "1.0", "computed": "1 / (a - 0.95)"},
        {"computed": "1e30 * 1e30 / 1e30"},
    ],
)
def test_a_number_within_the_limits_is_audited(tmp_path: Path, written: dict[str, str]) -> None:
    path = tmp_path / "p.yml"
    path.write_text(PAPER.format(**{**USUAL, **written}), encoding="utf-8")
    claims = audit_report(load_published(path))
    assert [claim.id for claim in claims] == ["x.c", "x.d", "x.e"]
    json.dumps(audit_document(claims), allow_nan=False)


def test_a_cell_of_a_series_is_found_with_its_point_and_source() -> None:
    found = published_value("a6826a:reads.superdome[4]")
    assert (found.value, found.unit, found.metric, found.label) == (766.0, "MB/s", "throughput_mb_s", "4")
    assert found.point == {"rw": "read", "bs": "128k", "ports": "4"}
    assert found.source.endswith("p. 5: read throughput of the Superdome in chart 3a")


def test_the_unit_convention_of_a_report_is_in_the_metric() -> None:
    """The A7173A paper's MB is 2^20 bytes."""
    assert published_value("a7173a:throughput.a7173a[read]").metric == "throughput_mib_s"


def test_overlays_are_all_figures_of_a_metric() -> None:
    """The five adapters and systems of the QLA1040 report."""
    values = [one.value for one in overlays("qla1040", "iops")]
    assert values == [8901, 7919, 2721, 2425, 1765, 2666, 2367, 1826]


@pytest.mark.parametrize("name", REPORTS)
def test_the_metrics_that_figures_compare_with_exist(name: str) -> None:
    assert {figure.metric for figure in report(name).figures if figure.metric} <= set(METRICS)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a6826:reads.superdome[4]", r"unknown published report 'a6826'.*did you mean 'a6826a'"),
        ("../published/a6826a:x", r"unknown published report"),
        ("a6826a:reads.superdom[4]", r"no figure 'reads.superdom'.*did you mean 'reads.superdome'"),
        ("a6826a:reads.superdome[9]", r"no '9' in 'reads.superdome'"),
        ("a6826a:reads.superdome", r"no 'single value' in"),
        ("a6826a:name", r"is the name 'A6826A' and no number"),
        ("a6826a:1 + 1", r"the name of one figure"),
    ],
)
def test_what_is_not_there_is_told(name: str, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        published_value(name)


SUITE = """\
workloads: {{iops_1k: {{rw: read, bs: 1k, factors: {{ports: [1, 2]}}}}}}
criteria:
  - {{{criterion}}}
profiles: {{quick: {{}}}}
{more}
"""


def suite(folder: Path, criterion: str, more: str = "") -> Path:
    path = folder / "p.suite.yml"
    path.write_text(SUITE.format(criterion=criterion, more=more), encoding="utf-8")
    return path


def test_a_limit_is_that_share_of_the_figure(tmp_path: Path) -> None:
    """70,100 IOPS of two ports: 90 % are 63,090, and the source names report and page."""
    loaded = load_suite(
        suite(tmp_path, 'metric: iops, against: published, reference: "a6826a:iops.read[2]", min: 90 %')
    )
    found = effective(loaded.criteria[0], loaded.profiles["quick"], "hardware")
    assert (found.min, found.max) == (pytest.approx(63090.0), None)
    assert "A6826A" in found.source
    assert "p. 2" in found.source


def test_a_label_may_hold_blanks(tmp_path: Path) -> None:
    reference = '"a6826a:sd.throughput[single read 4KB]"'
    loaded = load_suite(
        suite(tmp_path, f"metric: throughput_mb_s, against: published, reference: {reference}, max: 100 %")
    )
    assert effective(loaded.criteria[0], loaded.profiles["quick"], "hardware").max == pytest.approx(130.0)


@pytest.mark.parametrize(
    ("criterion", "said"), json.loads(Path(__file__).with_name("reference_mistakes.json").read_text(encoding="utf-8"))
)
def test_what_cannot_be_meant_is_told_with_its_line(tmp_path: Path, criterion: str, said: str) -> None:
    with pytest.raises(BadInputError) as raised:
        load_suite(suite(tmp_path, criterion))
    assert said in str(raised.value)
    assert "p.suite.yml:3: " in str(raised.value)


def test_an_unknown_published_report_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="expected one of a6826a"):
        load_suite(suite(tmp_path, "metric: iops, against: baseline", "published: [a6827a]"))
