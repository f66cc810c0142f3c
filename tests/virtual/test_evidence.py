# SPDX-License-Identifier: Apache-2.0
"""Evidence beside the numbers, provoked on a live bench while the main job measures: a good number is not enough.

What an emulated bench cannot show is shown on files only: heat and clocks, errors on SAS links and time that a
hypervisor took (`tests/unit/storqual_core/turns/test_environment_doubts.py`, `tests/meta/test_gates_bite.py`).
"""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_bench import GATE, STATE, Finished, command, drops, finished, on_bench, power_fixture

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(1800)]
gate_bench = power_fixture(GATE, STATE)

DRIVE = "/dev/disk/by-id/wwn-0x5000c50067b10000"
READ = f"dd if={DRIVE} of=/dev/null bs=1M count=64 iflag=direct"
SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")


def disturbed(folder: Path, disturbance: str) -> Finished:
    """The main job, with a command line run on the bench as soon as the first sample is there."""
    suite = folder / "evidence.suite.yml"
    suite.write_text(SUITE, encoding="utf-8")
    argv = command(folder, *drops("even", "same", suite=suite), "--adapters", "vscsi")
    with (folder / "output.log").open("wb") as log:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        while not any(path.read_bytes() for path in folder.glob("*/samples.jsonl")):
            assert child.poll() is None, (folder / "output.log").read_text(errors="replace")[-3000:]
            time.sleep(0.3)  # the run directory is the only sign there is
        on_bench(disturbance)
        code = child.wait()
    return finished(code, folder)


def suspicions(done: Finished) -> list[str]:
    """Why samples of a run are suspect."""
    assert done.run is not None
    lines = (done.run / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    return [reason for line in lines for reason in json.loads(line)["suspect"]]


def measured(done: Finished) -> dict[str, Any]:
    """The one criterion that was measured."""
    (entry,) = (one for one in done.verdict["criteria"] if one["metric"] == "iops")
    return dict(entry)


@pytest.mark.parametrize(
    ("disturbance", "told"),
    [
        (f"sg_reset --device {DRIVE}", "kernel log"),
        # an operation code that no drive knows: the command ends with an error, and the number stays perfect
        (f"sg_raw {DRIVE} c1 00 00 00 00 00 || true", "error counters"),
    ],
    ids=["reset", "error"],
)
def test_what_the_kernel_says_of_the_drive_makes_an_error(tmp_path: Path, disturbance: str, told: str) -> None:
    """One reset, one failed command in the middle of a block: exit code 2, and the reason names it."""
    done = disturbed(tmp_path, disturbance)
    assert done.code == 2, done.output[-3000:]
    assert measured(done)["outcome"] == "ERROR"
    assert measured(done)["reason"].startswith(told)
    assert done.run is not None
    assert told in (done.run / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("disturbance", "told"),
    [
        ("timeout 12 sh -c 'while :; do :; done' >/dev/null 2>&1 &", "programs beside fio used"),
        (f"timeout 12 sh -c 'while :; do {READ}; done' >/dev/null 2>&1 &", "the drives moved"),
    ],
    ids=["processor", "drive"],
)
def test_another_load_on_the_bench_makes_samples_suspect(tmp_path: Path, disturbance: str, told: str) -> None:
    """The sample says what it was, and so does the evidence of the criterion."""
    done = disturbed(tmp_path, disturbance)
    assert any("another load on the bench" in reason and told in reason for reason in suspicions(done))
    assert any(told in line for line in measured(done)["evidence"])
