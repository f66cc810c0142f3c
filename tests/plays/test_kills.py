# SPDX-License-Identifier: Apache-2.0
"""The main job on files, killed at fifty random moments: no finished sample is lost or repeated."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from storqual.judge.verdict import judge_run

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
STORQUAL = str(Path(sys.executable).parent / "storqual")
CAMPAIGNS, KILLS = 5, 10
MOST_STARTS = 3 * KILLS


def start(argv: list[str], log: Path) -> subprocess.Popen[bytes]:
    """A job in a process group of its own, so that all of it can be killed at once."""
    with log.open("ab") as stream:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True)


def spooled(lab: Path, run: str) -> set[str]:
    found = set()
    for spool in (lab.parents[1] / ".cache" / "local" / "spool" / run).glob("*.jsonl"):
        for line in spool.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record["kind"] == "sample":
                found.add(record["sample"]["id"])
    return found


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(CAMPAIGNS))
def test_killed_again_and_again_a_campaign_comes_to_its_end(tmp_path: Path, seed: int) -> None:
    lab = tmp_path / "lab" / "inventories" / "local"
    shutil.copytree(REPOSITORY / "inventories" / "local", lab)
    runs, log, chance = tmp_path / "runs", tmp_path / "log", random.Random(seed)
    first = [STORQUAL, "qualify", "-i", str(lab), "--runs", str(runs), "--seed", str(seed), "--baseline", "baseline"]
    first += ["--candidate", "candidate", "--suite", str(HERE / "sequential.suite.yml")]
    argv, kills, seen = first, 0, Counter[str]()
    run: Path | None = None
    for _ in range(MOST_STARTS):
        child = start(argv, log)
        if kills < KILLS:
            try:
                # not an event that is awaited but a moment that is drawn
                child.wait(timeout=chance.uniform(0.5, 9.0))
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                kills += 1
        code = child.wait()
        # a plan that was being made when it was killed leaves a draft, which is no run, or is made to its end by an
        # orphan, and is then a run that nobody goes on with
        made = [path.parent for path in runs.glob("[!.]*/run.json")]
        run = run or max(made, key=lambda path: (path / "events.jsonl").stat().st_size, default=None)
        if run is not None:
            samples = run / "samples.jsonl"
            lines = samples.read_text(encoding="utf-8").splitlines() if samples.is_file() else []
            assert [json.loads(line)["id"] for line in lines[: len(seen)]] == list(seen), "a stored sample changed"
            seen = Counter(json.loads(line)["id"] for line in lines)
            argv = [STORQUAL, "qualify", "--resume", run.name, "--runs", str(runs)]
            if code >= 0 and (run / "verdict.json").is_file():
                break
    output = log.read_text(encoding="utf-8")
    assert run is not None, output[-3000:]
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert code == verdict["exit_code"] in (0, 2), output[-3000:]
    assert max(seen.values()) == 1
    assert set(seen) == spooled(lab, run.name)
    again = judge_run(run)
    assert [one["outcome"] for one in again["criteria"]] == [one["outcome"] for one in verdict["criteria"]]
