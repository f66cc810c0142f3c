# SPDX-License-Identifier: Apache-2.0
"""Somebody who can write to a run tampers with it before it is signed: nothing of the written list goes unseen."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from storqual.judge.verdict import verdict_of
from storqual.run import read_run
from storqual.signoff.findings import published_findings
from storqual_core.kit.errors import StorqualError
from tests.attacks.before import KINDS
from tests.attacks.before.tampering import Kind
from tests.attacks.finished_run import copy_of, finished_run

pytestmark = pytest.mark.slow

EACH = 8
"""Drawings of each kind."""
ALTERED = 320
"""Altered runs of each of the two, the one that passes and the one that fails."""
PASSING = ("PASS", "MARGINAL")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return {"good": finished_run(folder / "good", 0.0), "bad": finished_run(folder / "bad", 0.3)}


def seen(run: Path) -> str:
    """Why this run is not released as it lies there; empty when nothing speaks against it."""
    try:
        verdict = verdict_of(run)
        if verdict["outcome"] not in PASSING:
            return str(verdict["reason"] or verdict["outcome"])
        return "; ".join(published_findings(read_run(run)))
    except StorqualError as problem:
        return str(problem)


def alter(run: Path, names: Sequence[str], source: random.Random) -> None:
    """One kind after the other; the first may leave nothing for the second, and never leaves nothing itself."""
    for place, name in enumerate(names):
        try:
            KINDS[name](run, source)
        except (OSError, ValueError, KeyError, IndexError, StopIteration):
            if place == 0:
                raise


def test_the_runs_are_what_they_are_taken_for(runs: dict[str, Path]) -> None:
    assert seen(runs["good"]) == ""
    verdict = verdict_of(runs["bad"])
    assert (verdict["outcome"], "derived again" in verdict["evidence"]) == ("FAIL", True)


def test_there_are_five_hundred_of_them() -> None:
    assert len(KINDS) * EACH >= 500


def unseen(kinds: Mapping[str, Kind], name: str, good: Path, folder: Path) -> list[int]:
    """The drawings of a kind after which the run passes, and what was published of it agrees with it."""
    numbers = []
    for number in range(EACH):
        run = copy_of(good, folder)
        kinds[name](run, random.Random(f"{name}/{number}"))
        numbers += [] if seen(run) else [number]
    return numbers


@pytest.mark.parametrize("name", KINDS)
def test_it_is_seen(runs: dict[str, Path], tmp_path: Path, name: str) -> None:
    assert unseen(KINDS, name, runs["good"], tmp_path) == []


def altered(run: Path, folder: Path, seed: int, *sizes: int) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Verdicts of copies that were altered by some kinds one after the other, where there is one."""
    source = random.Random(seed)
    for _ in range(ALTERED):
        copy = copy_of(run, folder)
        names = source.sample(list(KINDS), source.choice(sizes) if len(sizes) > 1 else sizes[0])
        alter(copy, names, source)
        with suppress(StorqualError):
            yield names, verdict_of(copy)


def test_no_alteration_of_a_failing_run_makes_it_pass(runs: dict[str, Path], tmp_path: Path) -> None:
    verdicts = altered(runs["bad"], tmp_path, 16, 2)
    assert [names for names, verdict in verdicts if verdict["outcome"] in PASSING] == []


def required_figures(verdict: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = ("id", "bench", "adapter", "point", "outcome", "candidate", "reference", "shift_percent", "ci95_percent")
    required = [one for one in verdict["criteria"] if one["required"]]
    return [{name: one[name] for name in (*names, "margin_percent", "samples", "waiver")} for one in required]


def test_a_passing_run_that_was_altered_passes_with_the_same_required_figures_only(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    """One kind or two at a time: where it still passes, no figure that decides is another one."""
    verdicts = [both for both in altered(runs["good"], tmp_path, 17, 1, 2) if both[1]["outcome"] in PASSING]
    before = required_figures(verdict_of(runs["good"]))
    assert [names for names, verdict in verdicts if required_figures(verdict) != before] == []
    # what was published is not what a verdict rests on: some pass, most do not
    assert 0 < len(verdicts) < ALTERED // 2


def test_a_finding_names_the_file(runs: dict[str, Path], tmp_path: Path) -> None:
    run = copy_of(runs["good"], tmp_path)
    KINDS["a_primitive_is_changed"](run, random.Random(1))
    (first, *_) = verdict_of(run)["warnings"]
    assert first.startswith("samples.jsonl: ")
    assert "its raw files say" in json.dumps(verdict_of(run)["warnings"])
