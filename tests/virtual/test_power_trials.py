# SPDX-License-Identifier: Apache-2.0
"""Trials that take a bench's power by `storqual_power`: proven off, another boot, and which drive lost its power."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storqual.run import iter_events, read_run
from storqual.run.turns import turns_of
from tests.support.live_bench import BIN, GATE, REPOSITORY, discard, own_lab, play, qualified

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(5400)]

STATE = REPOSITORY / ".cache" / "bench" / "power"
SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
WAYS = {"power_cut": "power_removal", "bench_reset": "power_cycle", "bench_lost": "power_absence"}


def switch(lab: Path) -> dict[str, Any]:
    """The switch of the virtual bench as a backend of the lab's own."""
    words = [str(BIN / "storqual"), "bench", "switch", "--folder", str(STATE)]
    commands = {"on": [*words, "-i", str(lab), "on"], "off": [*words, "off"], "state": [*words, "state"]}
    return {"command": commands, "removes": "ac", "powers": ["bench"], "off_for": 5}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("power")
    discard(STATE)
    found = own_lab(folder, GATE, STATE, storqual_power=[switch(folder / "lab")])
    code, output = play(folder / "log", found, "bench_up.yml")
    assert code == 0, output[-3000:]
    yield found
    discard(STATE)


def test_each_fault_of_the_power_is_proven_off_and_ends_in_another_boot(lab: Path, tmp_path: Path) -> None:
    suite = tmp_path / "powers.suite.yml"
    suite.write_text(SUITE, encoding="utf-8")
    words = ["--candidate", "bare", "--suite", suite, "--adapters", "vscsi"]
    code, output, run = qualified(tmp_path, lab, *words)
    records = {record["fault"]: record for record in turns_of(read_run(run)).records}
    assert {fault: record["way"] for fault, record in records.items()} == WAYS, output[-3000:]
    for record in records.values():
        assert record["outcome"] == "passed", (record["id"], record["reasons"])
        # what a host keeps that emulates the drive is not lost with the bench's power
        assert record["drive_lost_power"] is False
        assert record["writes"] > 0
    switched = [event for event in iter_events(run) if event.kind == "power_switched"]
    boots = [event.text("boot_id") for event in switched]
    assert len(set(boots)) == len(WAYS), switched
    proofs = [event.text("answer") for event in iter_events(run) if event.kind == "power_step"]
    assert sum(answer.startswith("proven: it fell silent") for answer in proofs) == len(WAYS), proofs
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert (code, verdict["outcome"]) == (0, "PASS"), output[-3000:]
