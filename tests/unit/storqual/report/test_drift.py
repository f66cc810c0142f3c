# SPDX-License-Identifier: Apache-2.0
"""A bench before and after its campaign: what moved is shown, what stayed is folded, one look is no comparison."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.report import build_report
from tests.support.judged_reports import QUICK, judged
from tests.support.report_pages import Node, read_page

BEFORE = {"kernel": {"release": "6.1.0-47-amd64"}, "memory": 1 << 30}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged run."""
    return judged(tmp_path_factory.mktemp("drift"), points=QUICK[:1])


def arms(run: Path, **environment: Any) -> Node:
    """The section on arms and environment, for a bench that said this of itself."""
    document = json.loads((run / "run.json").read_text())
    document["benches"]["vbench"]["environment"] = environment
    (run / "run.json").write_text(json.dumps(document))
    return read_page(build_report(run)).section("arms")


def test_what_moved_is_shown_with_both_values(run: Path) -> None:
    section = arms(run, before=BEFORE, after={**BEFORE, "memory": 1 << 29})
    moved = next(one for one in section.all("table") if "what changed during the campaign" in one.text())
    assert "memory 1073741824 536870912" in moved.text()
    assert "kernel.release" not in moved.text()
    (folded,) = section.all("details", "same")
    assert "1 values of vbench before and after" in folded.text()
    assert "kernel.release 6.1.0-47-amd64" in folded.text()


def test_a_bench_that_stayed_is_said_to_have(run: Path) -> None:
    assert "reports the same after the campaign" in arms(run, before=BEFORE, after=BEFORE).text()


def test_one_look_is_no_comparison(run: Path) -> None:
    text = arms(run, before=BEFORE).text()
    assert "said the same" not in text
    assert "2 values of vbench as far as they were read" in text
