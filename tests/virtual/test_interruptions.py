# SPDX-License-Identifier: Apache-2.0
"""Kills, lost connections and resets at moments that nobody chose: nothing changes but the clock."""

import json
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from storqual.judge.verdict import judge_run
from tests.support.live_bench import (
    CAMPAIGNS,
    GATE,
    STATE,
    command,
    disconnect,
    drops,
    make_trouble,
    on_bench,
    power_fixture,
)

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(3600)]
gate_bench = power_fixture(GATE, STATE)

TROUBLES = ("kill", "disconnect", "disconnect", "reset", "reset")
MOST_STARTS = 12
PATIENCE_S = 1500

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")


def stored(run: Path) -> list[str]:
    """Ids of the samples of a run, in order."""
    file = run / "samples.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [json.loads(line)["id"] for line in lines]


def spooled(run: Path) -> set[str]:
    """Ids of the samples that the bench finished, from its own disk."""
    text = on_bench(f"cat /var/lib/storqual/spool/{run.name}/*.jsonl")
    records = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
    return {record["sample"]["id"] for record in records if record["kind"] == "sample"}


def planned(run: Path) -> set[tuple[str, str, int]]:
    blocks = [json.loads(path.read_text(encoding="utf-8")) for path in (run / "blocks").glob("*.json")]
    return {(one["arm"], one["point"], one["n"]) for block in blocks for one in block["turns"]}


def undecided(run: Path) -> set[str]:
    """The criteria of a run that did not pass, all of it where there is no verdict.

    A reset while a drop is provisioned may be a hang of that drop, for all that the judge knows.
    """
    file = run / "verdict.json"
    criteria = json.loads(file.read_text(encoding="utf-8"))["criteria"] if file.is_file() else [{"id": "all"}]
    passed = ("PASS", "SKIPPED")
    return {entry["id"] for entry in criteria if entry.get("outcome") not in passed} - {"bench answers"}


def interrupted(folder: Path, troubles: list[str], chance: random.Random) -> tuple[Path, int]:
    """A campaign that meets its troubles, is resumed whenever it ended, and comes to its end: run and exit code."""
    suite = folder / "interrupted.suite.yml"
    suite.write_text(SUITE, encoding="utf-8")
    argv = command(folder, *drops("even", "same", suite=suite, seed=chance.randrange(1000)), "--adapters", "vscsi")
    run: Path | None = None
    seen: list[str] = []
    code = -1
    with (folder / "output.log").open("ab") as log:
        for _ in range(MOST_STARTS):
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            while troubles and child.poll() is None:
                try:
                    # not an event that is awaited but a moment that is drawn
                    child.wait(timeout=chance.uniform(5.0, 40.0))
                except subprocess.TimeoutExpired:
                    make_trouble(troubles.pop(), child, chance)
            code = child.wait(timeout=PATIENCE_S)
            run = run or next((path.parent for path in folder.glob("[!.]*/run.json")), None)
            if run is None:
                continue
            now = stored(run)
            assert now[: len(seen)] == seen, "a stored sample changed"
            seen = now
            if code in (0, 2) and not troubles and not undecided(run):
                break
            argv = command(folder, "--resume", run.name)
    output = (folder / "output.log").read_text(encoding="utf-8", errors="replace")
    assert run is not None, output[-3000:]
    assert not troubles, output[-3000:]
    return run, code


@pytest.mark.parametrize("seed", CAMPAIGNS)
def test_nothing_changes_but_the_clock(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    troubles = chance.sample(TROUBLES, len(TROUBLES))
    run, code = interrupted(tmp_path, troubles, chance)
    output = (tmp_path / "output.log").read_text(encoding="utf-8", errors="replace")
    assert code in (0, 2), output[-3000:]
    assert not undecided(run), output[-3000:]
    assert max(Counter(stored(run)).values()) == 1
    assert set(stored(run)) == spooled(run)
    samples = [json.loads(line) for line in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    launches = [(sample["arm"], sample["point"], sample["n"]) for sample in samples]
    assert sorted(launches) == sorted(planned(run))
    assert {sample["status"] for sample in samples} == {"ok"}
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    again = judge_run(run)
    assert [one["outcome"] for one in again["criteria"]] == [one["outcome"] for one in verdict["criteria"]]


def test_five_minutes_without_a_connection_are_waited_out(tmp_path: Path) -> None:
    suite = tmp_path / "interrupted.suite.yml"
    suite.write_text(SUITE.replace("block: 45s", "block: 300s"), encoding="utf-8")
    argv = command(tmp_path, *drops("even", "same", suite=suite, seed=1), "--adapters", "vscsi")
    with (tmp_path / "output.log").open("ab") as log:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        while not any(path.read_bytes() for path in tmp_path.glob("*/samples.jsonl")):
            assert child.poll() is None
            time.sleep(0.5)  # the run directory is the only sign there is
        disconnect(300.0)
        code = child.wait(timeout=PATIENCE_S)
    output = (tmp_path / "output.log").read_text(encoding="utf-8", errors="replace")
    assert code == 0, output[-3000:]
    assert "does not answer" in output
    (run,) = (path.parent for path in tmp_path.glob("[!.]*/run.json"))
    events = [json.loads(line) for line in (run / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [event["kind"] for event in events].count("session_started") == 1
    assert sorted(stored(run)) == sorted(spooled(run))
    assert len(stored(run)) == len(planned(run)) == 40
