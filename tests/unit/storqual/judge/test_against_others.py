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


ERRORS = "{id: limit, metric: io_errors_per_tb, against: absolute, max: %s}"
WAIVER = "- {criterion: limit, owner: qa, reason: known, reference: HBA-1, expiry: 2099-12-31, max_loss: %s}\n"


def _waived(tmp_path: Path, criterion: str, max_loss: str) -> tuple[int, int]:
    """How many failures of a criterion there are, and how many of them a waiver with `max_loss` accepts."""
    suite = suite_with(criterion)
    path = make_run(tmp_path / "runs", design="interleaved", launches=4, suite=suite, **QUIET)
    waivers = tmp_path / "waivers.yml"
    waivers.write_text(WAIVER % max_loss, encoding="utf-8")
    failed = [entry for entry in judge_run(path, waivers=waivers)["criteria"] if entry["outcome"] == "FAIL"]
    return len(failed), sum(entry["waiver"] is not None for entry in failed)


def test_a_latency_many_times_its_limit_is_not_accepted_at_a_small_loss(tmp_path: Path) -> None:
    criterion = "{id: limit, metric: latency_mean_us, against: absolute, max: 1}"
    assert _waived(tmp_path / "small", criterion, "1%")[1] == 0
    failed, accepted = _waived(tmp_path / "large", criterion, "10000000%")
    assert failed == accepted > 0


def test_of_two_limits_the_loss_is_to_the_one_that_was_broken(tmp_path: Path) -> None:
    criterion = "{id: limit, metric: iops, against: absolute, min: 0.001, max: 0.01}"
    assert _waived(tmp_path, criterion, "10000%")[1] == 0


def test_a_launch_beyond_a_limit_of_a_count_is_held_to_max_loss(tmp_path: Path) -> None:
    """The mean of the launches may well be within the limit that one launch broke."""
    path = make_run(tmp_path, design="interleaved", launches=8, suite=suite_with(ERRORS % "0"), **QUIET)
    lines = [json.loads(line) for line in (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    next(line for line in lines if line["arm"] == "candidate")["primitives"]["fio_errors"] = 9
    (path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (none,) = (entry for entry in judge_run(path)["criteria"] if entry["outcome"] == "FAIL")
    worst = none["candidate"] * none["samples"]["candidate"]
    for limit, max_loss, accepted in ((0, "1000000%", False), (worst / 3, "1%", False), (worst / 3, "201%", True)):
        suite, waivers = tmp_path / "other.suite.yml", tmp_path / "waivers.yml"
        suite.write_text(suite_with(ERRORS % limit), encoding="utf-8")
        waivers.write_text(WAIVER % max_loss, encoding="utf-8")
        (failed,) = (e for e in judge_run(path, suite=suite, waivers=waivers)["criteria"] if e["outcome"] == "FAIL")
        assert bool(failed["waiver"]) is accepted
        assert limit == 0 or failed["candidate"] < limit


def test_the_document_that_states_a_limit_is_in_the_verdict(tmp_path: Path) -> None:
    asked = "{id: floor, metric: iops, against: absolute, min: 1, source: 'contract 7, section <3>'}"
    verdict = judged(tmp_path, design="interleaved", launches=4, suite=suite_with("{metric: iops}", asked))
    entries = verdict["criteria"]
    assert {entry["reference_source"] for entry in entries if entry["id"] == "floor"} == {"contract 7, section <3>"}
    assert {entry["reference_source"] for entry in entries if entry["id"] == "iops"} == {""}
