# SPDX-License-Identifier: Apache-2.0
"""Kills, cuts and resets at random moments: no trial is counted twice, none is lost, the oracle's lists are whole."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual.kinds.record import Observed
from storqual.run import iter_events, read_run, write_json
from storqual.run.turns import turns_of
from tests.support.trial_bench import TrialBench
from tests.support.turn_records import REQUEST, plan_campaign

pytestmark = pytest.mark.slow

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
WRITES = 40


@pytest.fixture
def bench(tmp_path: Path) -> TrialBench:
    return TrialBench(tmp_path / "bench")


@pytest.fixture
def run(tmp_path: Path, bench: TrialBench) -> Path:
    suite = tmp_path / "own.suite.yml"
    suite.write_text(SUITE, encoding="utf-8")
    path = plan_campaign(replace(REQUEST, suite=str(suite), adapters=("vscsi",)), tmp_path / "runs")
    for file in (path / "blocks").glob("*.json"):
        write_json(file, {**json.loads(file.read_text(encoding="utf-8")), "state_dir": str(bench.folder)})
    return path


def start(run: Path, bench: TrialBench) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "tests.support.trial_bench", str(run), str(bench.folder)]
    with (bench.folder / "output.log").open("ab") as log:
        return subprocess.Popen(
            words, env=bench.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def await_end(child: subprocess.Popen[bytes], bench: TrialBench) -> None:
    code = child.wait(timeout=240)
    assert code == 0, (bench.folder / "output.log").read_text(encoding="utf-8")[-3000:]


def event_kinds(run: Path) -> Counter[str]:
    return Counter(event.kind for event in iter_events(run))


def held(run: Path) -> list[dict[str, Any]]:
    """The records of a campaign in which every planned trial counts once, and whose lists of I/Os are whole."""
    files = turns_of(read_run(run))
    assert sorted(record["id"] for record in files.records) == sorted(trial.id for trial in files.planned)
    finished = Counter(event.text("turn") for event in iter_events(run) if event.kind == "turn_finished")
    assert set(finished.values()) == {1}
    for record in files.records:
        assert record["outcome"] == "passed", record["reasons"]
        seen = Observed()
        for line in gzip.decompress((run / record["raw"][0]["path"]).read_bytes()).splitlines():
            seen.take(json.loads(line))
        assert sorted(seen.oracle.writes) == list(range(1, WRITES + 1))
        assert (seen.untold, record["writes"]) == (0, WRITES)
        assert not seen.oracle.judge(seen.readings[1], "acknowledged", seen.readings[2])
    return list(files.records)


def await_event(run: Path, kind: str, count: int) -> None:
    end = time.monotonic() + 60
    while event_kinds(run)[kind] < count:
        assert time.monotonic() < end
        time.sleep(0.02)  # the run directory is the only sign there is


def await_load(bench: TrialBench, but: Path | None = None) -> Path:
    """Wait until a load is under way whose stream is another than `but`; its stream."""
    end = time.monotonic() + 60
    while True:
        for stream in (bench.folder / "memory").rglob("*.jsonl"):
            with suppress(FileNotFoundError):
                if stream != but and b'"kind": "io"' in stream.read_bytes():
                    return stream
        assert time.monotonic() < end
        time.sleep(0.02)  # as above


@pytest.mark.parametrize("seed", range(2))
def test_whatever_interrupts_a_campaign_every_trial_counts_once(run: Path, bench: TrialBench, seed: int) -> None:
    chance = random.Random(seed)
    # one reset: a second one in the same trial is a failure by rule
    troubles = chance.sample(["kill", "kill", "cut", "cut", "reset"], 5)
    child = start(run, bench)
    for trouble in troubles:
        # a moment that is drawn, not an event that is awaited
        time.sleep(chance.uniform(0.3, 1.5))
        if trouble == "kill":
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            child = start(run, bench)
        elif trouble == "cut":
            bench.cut(away=True)
            time.sleep(chance.uniform(0.1, 1.5))
            bench.cut(away=False)
        else:
            bench.reset()
    await_end(child, bench)
    held(run)


def test_a_trial_that_was_under_way_when_its_campaign_was_killed_is_made_again_alone(
    run: Path, bench: TrialBench
) -> None:
    child = start(run, bench)
    await_event(run, "block_started", 2)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    made = event_kinds(run)["turn_finished"]
    child = start(run, bench)
    await_end(child, bench)
    assert len(held(run)) == 6
    kinds = event_kinds(run)
    assert kinds["block_started"] == 6 + 1
    assert made == 1


def test_two_commands_on_one_run_make_each_trial_once(run: Path, bench: TrialBench) -> None:
    first = start(run, bench)
    await_event(run, "block_started", 1)
    second = start(run, bench)
    await_end(first, bench)
    await_end(second, bench)
    held(run)
    assert event_kinds(run)["block_started"] == 6
    assert "another process runs turns on" in (bench.folder / "output.log").read_text(encoding="utf-8")


def test_a_reset_that_was_not_the_fault_accuses_nobody_once(run: Path, bench: TrialBench) -> None:
    child = start(run, bench)
    await_load(bench)
    bench.reset()
    await_end(child, bench)
    held(run)
    (lost,) = (event for event in iter_events(run) if event.fields.get("lost"))
    assert lost.fields["lost"]["rebooted"] is True
    assert "the trial began on" in lost.text("message")


def test_a_bench_that_goes_down_in_the_same_trial_again_has_failed_it(run: Path, bench: TrialBench) -> None:
    child = start(run, bench)
    first_stream = await_load(bench)
    bench.reset()
    await_load(bench, but=first_stream)
    bench.reset()
    await_end(child, bench)
    files = turns_of(read_run(run))
    assert len(files.records) == len(files.planned)
    first = next(record for record in files.records if record["id"] == files.planned[0].id)
    assert first["outcome"] == "failed"
    assert "bench down: it went down by itself" in first["reasons"][0]
    assert {record["outcome"] for record in files.records if record is not first} == {"passed"}
