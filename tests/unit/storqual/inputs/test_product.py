# SPDX-License-Identifier: Apache-2.0
"""Spec sheets: the limits that a maker states of a model, asked for by a suite and told with their source."""

import json
from datetime import date
from pathlib import Path

import pytest

from storqual.inputs import load_gate, load_suite, load_waivers
from storqual.judge.verdict import judge_run
from storqual.report import build_report
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS, SUITE

SHEET = Path(__file__).with_suffix(".sheet").read_text(encoding="utf-8")
ASKS = SUITE.replace(
    "profiles:", "  - {id: stated, metric: iops, against: product, required: true}\nproducts: [cheetah]\nprofiles:"
)


def written(folder: Path, sheet: str, suite: str = ASKS) -> Path:
    (folder / "cheetah.product.yml").write_text(sheet, encoding="utf-8")
    path = folder / "mine.suite.yml"
    path.write_text(suite, encoding="utf-8")
    return path


def test_limits_of_the_model_are_judged_with_their_source(tmp_path: Path) -> None:
    run = make_run(tmp_path, noise=0.003, points=POINTS, adapters=("sym",), suite=ASKS)
    (run / "inputs" / "cheetah.product.yml").write_text(SHEET, encoding="utf-8")
    verdict = judge_run(run)
    stated = {entry["point"]: entry for entry in verdict["criteria"] if entry["id"] == "stated"}
    assert [stated[point]["outcome"] for point in POINTS] == ["PASS", "PASS", "SKIPPED", "FAIL"]
    assert "by cheetah: Cheetah 10K.6 data sheet, rev. A, table 2 is required" in stated[POINTS[0]]["reason"]
    assert stated[POINTS[2]]["reason"] == "the spec sheet cheetah states no limit of iops for this point"
    assert len(verdict["inputs"]["product:cheetah"]) == 64
    page = build_report(run).read_text(encoding="utf-8")
    assert "Cheetah 10K.6 data sheet, rev. A, table 3" in page
    assert ">Spec sheet<" in page


def test_a_sheet_of_another_model_judges_nothing(tmp_path: Path) -> None:
    run = make_run(tmp_path, noise=0.003, points=POINTS[:1], adapters=("sym",), suite=ASKS)
    sheet = SHEET.replace("ST3*", "HUS*")
    (run / "inputs" / "cheetah.product.yml").write_text(sheet, encoding="utf-8")
    (entry,) = (one for one in judge_run(run)["criteria"] if one["id"] == "stated")
    model = json.loads((run / "run.json").read_text())["benches"]["vbench"]["adapters"]["sym"].get("model")
    assert (entry["outcome"], entry["reason"]) == ("SKIPPED", f"there is no spec sheet of {model or 'this adapter'}")


def test_every_mistake_in_a_sheet_is_told_with_its_line(tmp_path: Path) -> None:
    sheet = (
        "source: x\nlimits:\n  - {metric: iop, min: 1}\n  - {metric: iops}\n"
        "  - {metric: latency_p99_us, max: 3 MB/s}\n"
    )
    with pytest.raises(BadInputError) as caught:
        load_suite(written(tmp_path, sheet))
    told = "\n".join(caught.value.problems)
    assert "cheetah.product.yml:1: a spec sheet needs `adapter` or `drive`: the model" in told
    assert "cheetah.product.yml:3: unknown metric 'iop'" in told
    assert "cheetah.product.yml:4: iops has no limit; give `min` or `max`" in told
    assert len(caught.value.problems) >= 4


@pytest.mark.parametrize(
    ("suite", "told"),
    [
        (ASKS.replace("[cheetah]", "[other]"), "spec sheet 'other' needs the file"),
        (
            ASKS.replace("metric: iops, against: product", "metric: latency_p99_us, against: product"),
            "no spec sheet of this suite states a limit of",
        ),
        (ASKS.replace("against: product,", "against: product, min: 3,"), "`min` cannot be used against product"),
        (ASKS.replace("products: [cheetah]\n", ""), "iops is judged against spec sheets; name them under `products`"),
    ],
)
def test_a_suite_that_asks_what_no_sheet_states_is_refused(tmp_path: Path, suite: str, told: str) -> None:
    with pytest.raises(BadInputError) as caught:
        load_suite(written(tmp_path, SHEET, suite))
    assert told in str(caught.value)


WAIVER = """\
- {criterion: iops, adapter: sym, point: "rand_*", owner: A. Engineer, reason: known, reference: T-1,
     expiry: 2027-01-31, max_loss: 6%}
"""


def test_a_waiver_has_scope_owner_reference_and_expiry(tmp_path: Path) -> None:
    """A bare list and a list under `waivers` are the same; what is left out means any."""
    path = tmp_path / "waivers.yml"
    for text in (WAIVER, "waivers:\n  " + WAIVER):
        path.write_text(text, encoding="utf-8")
        (waiver,) = load_waivers(path)
        assert ("sym", "*", date(2027, 1, 31), 0.06) == (waiver.adapter, waiver.drop, waiver.expiry, waiver.max_loss)


def test_a_waiver_without_owner_is_none(tmp_path: Path) -> None:
    path = tmp_path / "waivers.yml"
    path.write_text("- {criterion: iops, reason: x, expiry: soon}\n", encoding="utf-8")
    with pytest.raises(BadInputError) as caught:
        load_waivers(path)
    said = "\n".join(caught.value.problems)
    assert "waivers.yml:1: key 'owner' (who is responsible for it) is missing in waivers[0]" in said
    assert "key 'reference' (ticket or document) is missing" in said
    assert "found 'soon' in waivers[0].expiry, expected a date such as 2027-03-31" in said


def test_no_waivers_are_no_waivers(tmp_path: Path) -> None:
    path = tmp_path / "waivers.yml"
    path.write_text("", encoding="utf-8")
    assert load_waivers(path) == ()


def test_a_gate_says_what_a_decision_needs(tmp_path: Path) -> None:
    path = tmp_path / "gate.yml"
    path.write_text(
        "name: release\nbaseline_max_age: 90d\nsignatures: [technician]\nmarginal_passes: false\n", encoding="utf-8"
    )
    gate = load_gate(path)
    assert (gate.baseline_max_age_days, gate.signatures, gate.marginal_passes) == (90, ("technician",), False)


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ("[release-manager, release-manager]", "each role once"),
        ("[../x]", "a role such as technician or release-manager"),
        ("[manifest]", "a role such as technician or release-manager"),
    ],
)
def test_a_role_that_cannot_sign_is_no_role(roles: str, expected: str, tmp_path: Path) -> None:
    """It would look like a signature that is asked for, and none could be given."""
    path = tmp_path / "gate.yml"
    path.write_text(f"name: release\nsignatures: {roles}\n", encoding="utf-8")
    with pytest.raises(BadInputError, match=r"gate.yml:2: found .*expected " + expected):
        load_gate(path)


def test_a_gate_with_an_unknown_key_is_refused(tmp_path: Path) -> None:
    """A misspelt policy would be no policy."""
    path = tmp_path / "gate.yml"
    path.write_text("marginal_pass: false\nbaseline_max_age: long\n", encoding="utf-8")
    with pytest.raises(BadInputError) as caught:
        load_gate(path)
    assert "did you mean 'marginal_passes'?" in str(caught.value)
    assert "gate.yml:2: found 'long' in baseline_max_age, expected a number of days such as 90d" in str(caught.value)


RULES = """\
name: release
waivers: {max_days: 90, max_loss: 5%, owners: ["* Engineer"], reference: "LAB-[0-9]+"}
"""


def test_a_gate_refuses_waivers_that_break_its_rules_all_at_once(tmp_path: Path) -> None:
    (tmp_path / "gate.yml").write_text(RULES, encoding="utf-8")
    gate = load_gate(tmp_path / "gate.yml")
    path = tmp_path / "waivers.yml"
    path.write_text(
        "- {criterion: iops, owner: A. Engineer, reason: x, reference: LAB-12, expiry: 2027-01-31, max_loss: 5%}\n"
        "- {criterion: iops, owner: A. Engineer, reason: x, reference: LAB-12, expiry: 2027-01-31}\n"
        "- {criterion: iops, owner: Pat, reason: x, reference: T-1,\n"
        "   expiry: 2027-03-31, max_loss: 6%}\n",
        encoding="utf-8",
    )
    with pytest.raises(BadInputError) as caught:
        load_waivers(path, gate, date(2026, 11, 23))
    assert [problem.removeprefix(str(path)) for problem in caught.value.problems] == [
        ":2: waivers[1].max_loss is missing; gate release allows at most 5 %",
        ":3: waivers[2].owner is 'Pat'; gate release allows owners that match * Engineer",
        ":3: waivers[2].reference is 'T-1'; gate release allows references that match LAB-[0-9]+",
        ":4: waivers[2].expiry is 2027-03-31, 128 days ahead; gate release allows at most 90 days",
        ":4: waivers[2].max_loss is 6 %; gate release allows at most 5 %",
    ]
    assert len(load_waivers(path)) == 3


def test_a_rule_that_is_no_expression_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gate.yml"
    path.write_text("waivers: {reference: '[A-Z'}\n", encoding="utf-8")
    with pytest.raises(BadInputError, match=r"gate.yml:1: found '\[A-Z' in waivers.reference, expected a regular"):
        load_gate(path)
