# SPDX-License-Identifier: Apache-2.0
"""Where a verdict goes: beside its run, never over one that somebody relied on."""

import json
from datetime import UTC, datetime
from pathlib import Path

from storqual.judge.verdict import judge_run
from storqual.run import read_run
from storqual.run.closing import close_run
from tests.support.judged_run import QUIET
from tests.support.make_run import make_run


def test_the_same_run_judged_twice_is_the_same_verdict(tmp_path: Path) -> None:
    path = make_run(tmp_path, **QUIET)
    judge_run(path)
    first = json.loads((path / "verdict.json").read_text(encoding="utf-8"))
    judge_run(path)
    second = json.loads((path / "verdict.json").read_text(encoding="utf-8"))
    assert {**first, "as_of": ""} == {**second, "as_of": ""}
    assert not (path / "judgements").exists()


def test_a_run_that_went_on_is_judged_again_in_its_place(tmp_path: Path) -> None:
    path = make_run(tmp_path, **QUIET, finished=False)
    assert judge_run(path)["exit_code"] == 2
    close_run(path)
    assert judge_run(path)["exit_code"] == 0
    assert json.loads((path / "verdict.json").read_text(encoding="utf-8"))["exit_code"] == 0


def test_a_signed_verdict_is_never_replaced(tmp_path: Path) -> None:
    path = make_run(tmp_path, **QUIET)
    judge_run(path)
    (path / "signoff.release-manager.json").write_text("{}", encoding="utf-8")
    before = (path / "verdict.json").read_bytes()
    judge_run(path)
    assert (path / "verdict.json").read_bytes() == before
    assert not (path / "annex").exists()
    judge_run(path, as_of=datetime(2026, 12, 1, tzinfo=UTC))
    assert (path / "verdict.json").read_bytes() == before
    assert len(list((path / "annex" / "judgements").glob("*/verdict.json"))) == 1


def test_another_time_of_judging_does_not_overwrite(tmp_path: Path) -> None:
    path = make_run(tmp_path, **QUIET)
    judge_run(path)
    before = (path / "verdict.json").read_bytes()
    judge_run(path, as_of=datetime(2026, 12, 1, tzinfo=UTC))
    assert (path / "verdict.json").read_bytes() == before


def test_inputs_are_named_by_their_digests(tmp_path: Path) -> None:
    path = make_run(tmp_path, **QUIET)
    inputs = judge_run(path)["inputs"]
    assert {"suite", "baseline", "candidate", "samples.jsonl"} <= set(inputs)
    assert inputs["suite"] == read_run(path).suite.sha256
