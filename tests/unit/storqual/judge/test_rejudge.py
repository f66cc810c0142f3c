# SPDX-License-Identifier: Apache-2.0
"""Many runs judged by other rules at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from storqual.cli import storqual
from storqual.judge.rejudge import Rules, rejudge, runs_below
from storqual.judge.verdict import judge_run
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import make_run
from tests.support.synthetic_shape import SUITE

SAME, SLOWER = "20260101T000000Z-same-0001", "20260102T000000Z-slower-0002"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two judged runs: one unchanged, one that lost less than the margin of its suite."""
    folder = tmp_path / "runs"
    for name, effect in ((SAME, 0.0), (SLOWER, -0.05)):
        judge_run(make_run(folder, run=name, effect=effect, noise=0.002, sessions=8))
    return folder


@pytest.fixture
def stricter(tmp_path: Path) -> Path:
    """The same suite with a quarter of its margins."""
    file = tmp_path / "stricter.suite.yml"
    file.write_text(SUITE.replace("margin: 8%, indifference: 2%", "margin: 2%, indifference: 1%"), encoding="utf-8")
    return file


def test_it_is_told_which_drops_of_the_past_would_now_fail(runs: Path, stricter: Path) -> None:
    """Beside what they were; the first verdicts stay, the new ones go to `judgements/`."""
    first = (runs / SLOWER / "verdict.json").read_bytes()
    done = {one.run: one for one in rejudge(runs_below([runs]), Rules(suite=stricter))}
    assert (done[SAME].before, done[SAME].now) == ("PASS", "PASS")
    assert (done[SLOWER].before, done[SLOWER].now) == ("MARGINAL", "FAIL")
    assert not done[SAME].turned
    assert "iops at" in done[SLOWER].turned[0]
    assert (runs / SLOWER / "verdict.json").read_bytes() == first
    assert len(list((runs / SLOWER / "judgements").glob("*/verdict.json"))) == 1


def test_a_run_that_cannot_be_judged_stops_no_other(runs: Path, stricter: Path) -> None:
    """It is named with its reason, and the exit code says so."""
    (runs / SAME / "samples.jsonl").write_text("no sample\n", encoding="utf-8")
    result = CliRunner().invoke(
        storqual, ["judge", str(runs), "--suite", str(stricter), "--json"], standalone_mode=False
    )
    done = {one["run"]: one for one in json.loads(result.stdout)}
    assert "damaged" in done[SAME]["problem"]
    assert done[SLOWER]["now"] == "FAIL"
    assert result.return_value == 1


def test_the_table_names_the_drops(runs: Path, stricter: Path) -> None:
    """A line for each run, and those that would now fail at the end."""
    result = CliRunner().invoke(storqual, ["judge", str(runs), "--suite", str(stricter)], standalone_mode=False)
    assert "MARGINAL  ->  FAIL" in result.stdout
    assert result.stdout.rstrip().rpartition("\n")[2].startswith("would now fail: ")


def test_a_folder_without_runs_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="found no run directory"):
        runs_below([tmp_path])
