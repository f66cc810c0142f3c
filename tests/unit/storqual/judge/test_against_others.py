# SPDX-License-Identifier: Apache-2.0
"""Criteria against a limit that a suite states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from storqual.judge.verdict import judge_run
from tests.support.judged_run import QUIET, judged, suite_with
from tests.support.make_run import make_run


def _limited(tmp_path: Path, limit: float, noise: float) -> list[dict[str, Any]]:
    """An absolute limit as this fraction of what the candidate shows, with that noise of each launch."""
    found = judged(tmp_path / "free", design="interleaved", launches=4, noise=noise)["criteria"]
    means = [entry["candidate"] for entry in found if entry["metric"] == "iops"]
    asked = f"{{id: floor, metric: iops, against: absolute, min: {limit * min(means):.3f}}}"
    entries = judged(tmp_path, design="interleaved", launches=4, noise=noise, suite=suite_with(asked))["criteria"]
    return [entry for entry in entries if entry["id"] == "floor"]


def test_an_absolute_limit_just_above_the_mean_is_not_broken_while_the_interval_reaches_it(tmp_path: Path) -> None:
    assert {entry["outcome"] for entry in _limited(tmp_path, 1.005, 0.02)} <= {"INCONCLUSIVE", "PASS"}
    assert any(entry["outcome"] == "INCONCLUSIVE" for entry in _limited(tmp_path / "again", 1.005, 0.02))


def test_an_absolute_limit_far_above_every_launch_is_broken(tmp_path: Path) -> None:
    assert any(entry["outcome"] == "FAIL" for entry in _limited(tmp_path, 1.5, 0.02))


def test_one_launch_with_an_error_breaks_a_limit_of_none(tmp_path: Path) -> None:
    suite = suite_with("{id: errors, metric: io_errors_per_tb, against: absolute, max: 0}")
    path = make_run(tmp_path, design="interleaved", launches=4, suite=suite, **QUIET)
    lines = [json.loads(line) for line in (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    broken = next(line for line in lines if line["arm"] == "candidate")
    broken["primitives"]["fio_errors"] = 1
    (path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    entries = {
        (entry["adapter"], entry["point"]): entry["outcome"]
        for entry in judge_run(path)["criteria"]
        if entry["id"] == "errors"
    }
    assert entries.pop((broken["adapter"], broken["point"])) == "FAIL"
    assert set(entries.values()) == {"PASS"}


def test_the_document_that_states_a_limit_is_in_the_verdict(tmp_path: Path) -> None:
    asked = "{id: floor, metric: iops, against: absolute, min: 1, source: 'contract 7, section <3>'}"
    verdict = judged(tmp_path, design="interleaved", launches=4, suite=suite_with("{metric: iops}", asked))
    entries = verdict["criteria"]
    assert {entry["reference_source"] for entry in entries if entry["id"] == "floor"} == {"contract 7, section <3>"}
    assert {entry["reference_source"] for entry in entries if entry["id"] == "iops"} == {""}
