# SPDX-License-Identifier: Apache-2.0
"""Numbers and expressions of a published file end: what no report prints is bad input with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from storqual.audit import audit_document, audit_report
from storqual.inputs.figures import load_published
from storqual_core.kit.errors import BadInputError

PAPER = """\
schema: storqual.published/1
report: {{name: x, title: T, publisher: P, pages: printed}}
figures:
  - {{id: a, page: 1, what: a, value: {value}}}
  - {{id: b, page: 1, what: b, values: [1, 2], along: ports, at: [{label}, 2]}}
assertions:
  - {{id: c, page: 1, text: t, stated: {stated}, computed: "{computed}"}}
  - {{id: d, page: 1, text: t, linear: {{total: "{linear}", single: a, units: 2}}}}
  - {{id: e, page: 1, text: t, linear: {{series: b}}}}
"""
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
