# SPDX-License-Identifier: Apache-2.0
"""A campaign of trials that is killed and whose bench is cut off, reset and hangs, at drawn moments."""

import gzip
import json
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest

from storqual.kinds.record import Observed
from storqual.run import iter_events, read_batch, read_run
from storqual.run.hangs import ANSWERS
from storqual.run.turns import turns_of
from storqual.virtual_bench.limits import declared_limits, read_limits
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_state
from storqual.virtual_bench.qmp import converse
from tests.support.live_bench import GATE, HANGS, LOOK, STATE, command, drops, make_trouble, over_ssh, power_fixture

NUMBER = int(os.environ.get("STORQUAL_TROUBLES", "4"))
"""How many hangs and cuts there are, of more trials than that; the campaign is killed once besides."""

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(6000 + 300 * NUMBER)]
gate_bench = power_fixture(GATE, STATE)

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
TROUBLES = ("disconnect", "reset", "panic", "halt", "disconnect")


def under_way(run: Path) -> tuple[str, int]:
    """The trial that has begun and has no record yet, and how many have none; no trial where none has begun."""
    events = list(iter_events(run))
    recorded = {event.text("turn") for event in events if event.kind == "turn_finished"}
    blocks = [event.text("block") for event in events if event.kind in ("block_started", "block_finished")]
    left = [turn.id for turn in turns_of(read_run(run)).planned if turn.id not in recorded]
    begun = [turn["id"] for turn in read_batch(run, blocks[-1])["turns"]] if len(blocks) % 2 else []
    return next((turn for turn in begun if turn in left), ""), len(left)


def campaign(folder: Path, seed: int) -> list[str]:
    """The command of a campaign of trials whose runs are in `folder`."""
    folder.mkdir()
    suite = folder / "interrupted.suite.yml"
    suite.write_text(SUITE.replace("mine}", f"mine, repeats: {NUMBER // 10 + 1}}}"), encoding="utf-8")
    return command(folder, *drops("bare", "bare_too", suite=suite, seed=seed), "--adapters", "vscsi")


def interrupted(folder: Path, seed: int, troubles: list[str], chance: random.Random) -> tuple[Path, list[str]]:
    """The run of a campaign that meets its troubles, each in another trial, and the trials that hung by them.

    It comes to its end by itself, but for its kill.
    """
    argv, hung = campaign(folder, seed), []
    run: Path | None = None
    met: set[str] = set()
    with (folder / "output.log").open("ab") as log:
        for _ in range(1 + troubles.count("kill")):
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            while child.poll() is None:
                time.sleep(0.5)  # the run directory is the only sign there is
                run = run or next((path.parent for path in folder.glob("[!.]*/run.json")), None)
                turn, left = under_way(run) if run and troubles else ("", 0)
                if not turn or turn in met:
                    continue
                met.add(turn)
                if chance.random() * left < len(troubles):
                    # not an event that is awaited but a moment that is drawn
                    time.sleep(chance.uniform(0.0, 20.0))
                    trouble = troubles.pop()
                    hung += [turn] if trouble in HANGS else []
                    print(f"{trouble} in {turn}", flush=True)
                    make_trouble(trouble, child, chance)
            assert run is not None
            argv = command(folder, "--resume", run.name)
    assert not troubles, (folder / "output.log").read_text(encoding="utf-8", errors="replace")[-3000:]
    return run, hung


def failures_after(run: Path, hung: Collection[str]) -> set[str]:
    """The trials that failed because their bench hung under their load; all others passed once, with whole lists."""
    files, events = turns_of(read_run(run)), list(iter_events(run))
    finished = Counter(event.text("turn") for event in events if event.kind == "turn_finished")
    assert finished == {trial.id: 1 for trial in files.planned}
    # one that came after its trial names none
    turns = (event.text("turn") for event in events if event.kind == "bench_hung")
    assert not Counter(filter(None, turns)) - Counter(hung)
    failed = {record["id"] for record in files.records if record["outcome"] != "passed"}
    for record in files.records:
        if record["id"] in failed & set(hung):
            assert record["reasons"][0].startswith(("hung", "panic")), record["reasons"]
            continue
        assert record["outcome"] == "passed", (record["id"], record["reasons"])
        seen = Observed()
        for line in gzip.decompress((run / record["raw"][0]["path"]).read_bytes()).splitlines():
            seen.take(json.loads(line))
        assert (seen.untold, len(seen.oracle.writes)) == (0, record["writes"])
    return failed


def judged(run: Path, without: Collection[str]) -> tuple[dict[str, str], dict[tuple[str, ...], str]]:
    """The outcomes of trials but for some, and those of criteria but for the ones that these are counted in."""
    files, verdict = turns_of(read_run(run)), json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    records = {record["id"]: record["outcome"] for record in files.records}
    assert len(records) == len(files.records) == len(files.planned)
    faults = {turn.point for turn in files.planned if turn.id in without}
    criteria = {
        (entry["id"], str(entry["adapter"]), str(entry["point"])): entry["outcome"]
        for entry in verdict["criteria"]
        if entry["id"] != ANSWERS and not any(fault in entry["id"] for fault in faults)
    }
    return {turn: outcome for turn, outcome in records.items() if turn not in without}, criteria


def test_every_trial_counts_once_and_the_lists_of_the_oracle_are_whole(tmp_path: Path) -> None:
    seed = int(os.environ.get("STORQUAL_LIVE_SEED", "1"))
    chance, before = random.Random(seed), over_ssh(STATE, "gatebench", LOOK)
    troubles = chance.sample(["kill", *(TROUBLES * NUMBER)[:NUMBER]], NUMBER + 1)
    run, hung = interrupted(tmp_path / "troubled", seed, troubles, chance)
    failed = failures_after(run, hung)
    # nothing of a fault that was cut short is left beneath the bench
    state = power_state(BenchPlaces.of(STATE))
    assert state is not None
    left: list[str] = []

    async def look(monitor: object) -> None:
        nodes = await monitor.ask("query-named-block-nodes", {"flat": True})  # type: ignore[attr-defined]
        left.extend(node["node-name"] for node in nodes if node["node-name"].endswith(("-faulty", "-logging")))
        assert await read_limits(monitor, state.bench) == declared_limits(state.bench)  # type: ignore[arg-type]

    converse(Path(state.monitor), look)
    assert not left
    assert over_ssh(STATE, "gatebench", LOOK) == before
    calm, _ = interrupted(tmp_path / "calm", seed, [], chance)
    verdict = json.loads((calm / "verdict.json").read_text(encoding="utf-8"))
    assert (verdict["outcome"], verdict["exit_code"]) == ("PASS", 0)
    (outcomes, criteria), expected = judged(run, failed), judged(calm, failed)
    # what failed in one arm alone is tried more often, in both
    added = outcomes.keys() - expected[0].keys()
    assert {turn.split(".")[0] for turn in added} <= {turn.split(".")[0] for turn in failed}
    assert {outcomes.pop(turn) for turn in added} <= {"passed"}
    assert (outcomes, criteria) == expected
