# SPDX-License-Identifier: Apache-2.0
"""A campaign of trials that is killed, disconnected and reset at drawn moments: every trial counts once."""

import gzip
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from storqual.kinds.record import Observed
from storqual.run import iter_events, read_run
from storqual.run.turns import turns_of
from storqual.virtual_bench.limits import declared_limits, read_limits
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_state, reset
from storqual.virtual_bench.qmp import converse
from tests.support.live_bench import STATE, command, drops, powered

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(3600)]

SUITE = """\
loads: {mine: {region: 1MiB, time: 1.5s}}
trials:
  - {fault: drive_unplug, load: mine}
  - {fault: write_error, load: mine, away: 0.5s}
  - {fault: slow_drive, load: mine}
  - {fault: adapter_removal, load: mine}
  - {fault: scheduler_change, load: mine, away: 0.5s}
"""
TROUBLES = ("kill", "kill", "disconnect", "reset")
MOST_STARTS = 10
PATIENCE_S = 1500


@pytest.fixture(scope="module", autouse=True)
def gate_bench() -> Iterator[None]:
    with powered():
        yield


def cable(*, up: bool) -> None:
    state = power_state(BenchPlaces.of(STATE))
    assert state is not None
    converse(Path(state.monitor), lambda monitor: monitor.ask("set_link", {"name": "network", "up": up}))


def make(trouble: str, child: subprocess.Popen[bytes], chance: random.Random) -> None:
    if trouble == "kill":
        os.killpg(child.pid, signal.SIGKILL)
    elif trouble == "disconnect":
        cable(up=False)
        try:
            time.sleep(chance.uniform(1.0, 30.0))  # the time without a cable is the trouble itself
        finally:
            cable(up=True)
    else:
        reset(BenchPlaces.of(STATE))


def under_way(run: Path | None) -> bool:
    """Whether a trial has begun and has no record yet."""
    kinds = Counter(event.kind for event in iter_events(run)) if run is not None else Counter()
    return kinds["block_started"] > kinds["block_finished"]


def interrupted(folder: Path, troubles: list[str], chance: random.Random) -> Path:
    """The run of a campaign that meets its troubles in trials and is gone on with until it ends by itself."""
    suite = folder / "interrupted.suite.yml"
    suite.write_text(SUITE, encoding="utf-8")
    seed = chance.randrange(1000)
    argv = command(folder, *drops("bare", "bare_too", suite=suite, seed=seed), "--adapters", "vscsi")
    run: Path | None = None
    with (folder / "output.log").open("ab") as log:
        for _ in range(MOST_STARTS):
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            while child.poll() is None:
                run = run or next((path.parent for path in folder.glob("[!.]*/run.json")), None)
                time.sleep(0.2)  # the run directory is the only sign there is
                if troubles and under_way(run):
                    # not an event that is awaited but a moment that is drawn
                    time.sleep(chance.uniform(0.0, 6.0))
                    make(troubles.pop(), child, chance)
            code = child.wait(timeout=PATIENCE_S)
            assert run is not None
            if code in (0, 1) and not troubles:
                return run
            argv = command(folder, "--resume", run.name)
    raise AssertionError((folder / "output.log").read_text(encoding="utf-8", errors="replace")[-3000:])


def test_every_trial_counts_once_and_the_lists_of_the_oracle_are_whole(tmp_path: Path) -> None:
    chance = random.Random(int(os.environ.get("STORQUAL_LIVE_SEED", "1")))
    run = interrupted(tmp_path, chance.sample(TROUBLES, len(TROUBLES)), chance)
    output = (tmp_path / "output.log").read_text(encoding="utf-8", errors="replace")
    files = turns_of(read_run(run))
    finished = Counter(event.text("turn") for event in iter_events(run) if event.kind == "turn_finished")
    assert finished == {trial.id: 1 for trial in files.planned}, output[-3000:]
    assert len(files.records) == len(files.planned)
    for record in files.records:
        assert record["outcome"] == "passed", (record["id"], record["reasons"])
        seen = Observed()
        for line in gzip.decompress((run / record["raw"][0]["path"]).read_bytes()).splitlines():
            seen.take(json.loads(line))
        assert (seen.untold, len(seen.oracle.writes)) == (0, record["writes"])
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert (verdict["outcome"], verdict["exit_code"]) == ("PASS", 0)
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
