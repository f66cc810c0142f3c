# SPDX-License-Identifier: Apache-2.0
"""Spec sheets: the limits that a maker states of a model, asked for by a suite and told with their source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from storqual.inputs import load_suite
from storqual.judge.verdict import judge_run
from storqual.report import build_report
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS, SUITE

SHEET = """\
drive: "ST3*"
source: Cheetah 10K.6 data sheet, rev. A
limits:
  - {metric: iops, workloads: rand_*, at: {bs: 4k}, min: 1 IOPS, source: table 2}
  - {metric: iops, workloads: seq_*, min: 900 kIOPS, source: table 3}
"""
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
    assert (entry["outcome"], entry["reason"]) == (
        "SKIPPED",
        f"there is no spec sheet of {model or 'this adapter'}",
    )


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
