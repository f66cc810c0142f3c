# SPDX-License-Identifier: Apache-2.0
"""Many runs judged by other rules at once."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from storqual.cli import storqual
from storqual.judge.rejudge import Rules, rejudge
from storqual.judge.verdict import judge_run
from storqual.run.layout import runs_below
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
    done = {rejudged.run: rejudged for rejudged in rejudge(runs_below([runs]), Rules(suite=stricter))}
    assert (done[SAME].before, done[SAME].now) == ("PASS", "PASS")
    assert (done[SLOWER].before, done[SLOWER].now) == ("MARGINAL", "FAIL")
    assert not done[SAME].fails
    assert "iops at" in done[SLOWER].fails[0]
    assert (runs / SLOWER / "verdict.json").read_bytes() == first
    assert len(list((runs / SLOWER / "judgements").glob("*/verdict.json"))) == 1


def test_a_run_that_cannot_be_judged_stops_no_other(runs: Path, stricter: Path) -> None:
    """It is named with its reason, and the exit code says so."""
    (runs / SAME / "samples.jsonl").write_text("no sample\n", encoding="utf-8")
    result = CliRunner().invoke(
        storqual, ["judge", str(runs), "--suite", str(stricter), "--json"], standalone_mode=False
    )
    done = {rejudged["run"]: rejudged for rejudged in json.loads(result.stdout)}
    assert "damaged" in done[SAME]["problem"]
    assert done[SLOWER]["now"] == "FAIL"
    assert result.return_value == 1


def test_the_table_names_the_drops(runs: Path, stricter: Path) -> None:
    """A line for each run, and those that would now fail at the end."""
    result = CliRunner().invoke(storqual, ["judge", str(runs), "--suite", str(stricter)], standalone_mode=False)
    assert "MARGINAL  ->  FAIL" in result.stdout
    assert "newly failing drops: candidate" in result.stdout
    assert "drops with fewer failures: none" in result.stdout


def test_the_exit_code_is_about_what_changed(runs: Path, stricter: Path) -> None:
    (fails,) = rejudge([runs / SLOWER], Rules(suite=stricter))
    assert (fails.before, fails.now, fails.exit_code) == ("MARGINAL", "FAIL", 1)
    verdict = judge_run(runs / SLOWER, suite=stricter)
    (runs / SLOWER / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    (changed,) = rejudge([runs / SLOWER], Rules(suite=stricter, as_of=datetime(2026, 3, 1, tzinfo=UTC)))
    assert (changed.before, changed.now, changed.exit_code, changed.fails) == ("FAIL", "FAIL", 0, ())
    lenient = stricter.with_name("lenient.suite.yml")
    lenient.write_text(SUITE.replace("margin: 8%", "margin: 9%"), encoding="utf-8")
    (passes,) = rejudge([runs / SLOWER], Rules(suite=lenient))
    assert (passes.exit_code, passes.fails) == (0, ())
    assert passes.passes
    assert all(line.endswith(" now") for line in passes.passes)


def test_a_waiver_that_expires_is_a_new_failure(runs: Path, stricter: Path, tmp_path: Path) -> None:
    waivers = tmp_path / "waivers.yml"
    waivers.write_text(
        "- {criterion: '*', owner: Pat, reason: known, reference: LAB-1, expiry: 2026-02-01}\n", encoding="utf-8"
    )
    day = datetime(2026, 1, 15, tzinfo=UTC)
    verdict = judge_run(runs / SLOWER, suite=stricter, waivers=waivers, as_of=day)
    assert verdict["exit_code"] == 0
    (runs / SLOWER / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    late = Rules(suite=stricter, waivers=waivers, as_of=datetime(2026, 3, 1, tzinfo=UTC))
    (expired,) = rejudge([runs / SLOWER], late)
    assert (expired.exit_code, bool(expired.fails)) == (1, True)


def test_a_suite_without_the_profile_of_the_run_is_refused(runs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.suite.yml"
    profile = json.loads((runs / SAME / "run.json").read_text(encoding="utf-8"))["suite"]["profile"]
    other.write_text(
        SUITE.replace(f"\n  {profile}:", "\n  another:").replace(f"default_profile: {profile}", ""), encoding="utf-8"
    )
    with pytest.raises(BadInputError, match=f"no profile '{profile}', with which {SAME} was planned, only another"):
        judge_run(runs / SAME, suite=other)


def test_a_folder_without_runs_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="found no run directory"):
        runs_below([tmp_path])
