# SPDX-License-Identifier: Apache-2.0
"""Somebody who can write to a run of trials tampers with it before it is signed: nothing of the list goes unseen."""

import random
from pathlib import Path

import pytest

from storqual.judge.verdict import verdict_of
from tests.attacks.before.trials import TRIAL_KINDS
from tests.attacks.finished_run import copy_of
from tests.attacks.test_before_signing import seen, unseen
from tests.attacks.trial_run import trial_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run whose trials pass, and one whose candidate lost data in each."""
    folder = tmp_path_factory.mktemp("runs")
    return {"good": trial_run(folder / "good"), "bad": trial_run(folder / "bad", damaged=True)}


def test_the_runs_are_what_they_are_taken_for(runs: dict[str, Path]) -> None:
    assert seen(runs["good"]) == ""
    verdict = verdict_of(runs["bad"])
    assert (verdict["outcome"], "derived again" in verdict["evidence"]) == ("FAIL", True)


@pytest.mark.parametrize("name", TRIAL_KINDS)
def test_it_is_seen(runs: dict[str, Path], tmp_path: Path, name: str) -> None:
    assert unseen(TRIAL_KINDS, name, runs["good"], tmp_path) == []


def test_no_alteration_of_a_failing_run_makes_it_pass(runs: dict[str, Path], tmp_path: Path) -> None:
    for number in range(120):
        source = random.Random(f"bad/{number}")
        run = copy_of(runs["bad"], tmp_path)
        name = source.choice(sorted(TRIAL_KINDS))
        TRIAL_KINDS[name](run, source)
        assert seen(run), name
