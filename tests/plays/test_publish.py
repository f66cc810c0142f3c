# SPDX-License-Identifier: Apache-2.0
"""Publishing a run from a playbook: what could not be published fails with its own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storqual.run import read_run_json
from tests.plays.stub import play
from tests.support.make_run import make_run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.plays


def test_a_report_that_was_not_published_ends_the_role_with_the_reason(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs")
    assert read_run_json(run)
    (run / "samples.jsonl").write_text("no sample\n", encoding="utf-8")
    played = play(tmp_path / "play", "publish", {"publish_run": str(run)}, {})
    assert played.code != 0
    assert "samples.jsonl" in played.output
    assert "has no attribute" not in played.output
