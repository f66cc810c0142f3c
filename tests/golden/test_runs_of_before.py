# SPDX-License-Identifier: Apache-2.0
"""Runs of an earlier version: judged, reported and resumed by this one with the same verdict."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.golden.earlier_runs import INTERRUPTED, expected, move_lab, unpack

pytestmark = pytest.mark.slow

STORQUAL = str(Path(sys.executable).parent / "storqual")
FACTS = expected()
FINISHED = [name for name in FACTS if name != INTERRUPTED]
WRITTEN_AT_THE_END = ("verdict.json", "report.html", "audit.json", "ocp.jsonl")


def storqual(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command; its exit code and what it says."""
    return subprocess.run(
        [STORQUAL, *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def outcomes(criteria: list[dict[str, Any]]) -> dict[tuple[str, ...], str]:
    """What became of each criterion; its shift and interval are not compared, a better estimate may move them."""
    return {tuple(str(one[name]) for name in ("id", "bench", "adapter", "point")): one["outcome"] for one in criteria}


def reasons(criteria: list[dict[str, Any]]) -> dict[tuple[str, ...], str]:
    """Why each criterion has its outcome."""
    return {tuple(str(one[name]) for name in ("id", "bench", "adapter", "point")): one["reason"] for one in criteria}


@pytest.mark.parametrize("name", FINISHED)
def test_it_is_judged_and_reported_as_it_was(name: str, tmp_path: Path) -> None:
    """Verdict, report and audit are made anew from what was measured then."""
    facts, run = FACTS[name], unpack(name, tmp_path)
    for path in (*map(run.joinpath, WRITTEN_AT_THE_END), *run.glob("signoff.*")):
        path.unlink(missing_ok=True)
    judged = storqual("judge", run, "--json")
    verdict = json.loads(judged.stdout)
    # suspect launches were evidence then; what rested on them is not decided now, and says so
    left = {tuple(map(str, one)) for one in facts.get("rested_on_suspects", ())}
    assert all("are suspect and do not count as evidence" in reasons(verdict["criteria"])[key] for key in left)
    outcome, code = ("INCONCLUSIVE", 2) if left else (facts["outcome"], facts["exit_code"])
    assert (verdict["outcome"], judged.returncode) == (outcome, code), judged.stderr
    assert outcomes(verdict["criteria"]) == {**outcomes(facts["criteria"]), **dict.fromkeys(left, "INCONCLUSIVE")}
    reported = storqual("report", run)
    assert reported.returncode == 0, reported.stderr
    assert outcome in (run / "report.html").read_text(encoding="utf-8")
    audited = storqual("audit", run)
    assert audited.returncode == 0, audited.stdout + audited.stderr


def kernels_of(run: Path) -> set[str]:
    """The kernels that the sessions of a run ran under."""
    events = map(json.loads, (run / "events.jsonl").read_text(encoding="utf-8").splitlines())
    return {str(event["kernel"]) for event in events if event["kind"] == "session_started"}


@pytest.mark.plays
def test_the_one_that_was_killed_is_resumed_and_repeats_nothing(tmp_path: Path) -> None:
    """It goes on in another folder, on a bench whose program is gone."""
    run, facts = unpack(INTERRUPTED, tmp_path), FACTS[INTERRUPTED]
    move_lab(tmp_path, run)
    kept = (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(kept) == facts["samples"] < facts["launches"]
    ended = storqual("qualify", "--resume", run.name, "--runs", run.parent)
    told = ended.stdout[-3000:] + ended.stderr[-3000:]
    assert (run / "verdict.json").is_file(), told
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    # how it ends rests on what this machine measures now; that it ends with a verdict of these does not
    outcomes_now = {verdict["outcome"]}
    assert platform.release() in kernels_of(run), told
    if kernels_of(run) != {platform.release()}:
        # a run that was begun under one kernel and ended under another compares nothing, and says so of that alone
        (wrong,) = (one for one in verdict["criteria"] if one["outcome"] == "ERROR")
        assert "its sessions ran several kernels" in wrong["reason"]
        outcomes_now -= {"ERROR"}
    assert outcomes_now <= set(facts["outcomes"]), told
    assert ended.returncode == verdict["exit_code"], told
    lines = (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    assert lines[: len(kept)] == kept
    launches = Counter((one["point"], one["arm"], one["n"]) for one in map(json.loads, lines))
    assert set(launches.values()) == {1}
    assert len(lines) >= facts["launches"]
    assert (run / "report.html").is_file()
