# SPDX-License-Identifier: Apache-2.0
"""Run directories of many benches and points, and what judging them costs in seconds and memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from storqual.judge.verdict import judge_run
from storqual.run.layout import dump_line
from tests.support.make_run import make_run

BINS = 60


@dataclass(frozen=True)
class Cost:
    """Seconds of processor and of clock, and the largest resident size, of judging so many samples."""

    samples: int
    processor_s: float
    clock_s: float
    megabytes: float


def make_large_run(folder: Path, benches: int, points: int, sessions: int, seed: int = 1) -> Path:
    """A run of `benches` x `points` cells, one launch in each of `sessions` sessions per arm; quiet, no effect."""
    path = make_run(folder, noise=0.003)
    document = json.loads((path / "run.json").read_text(encoding="utf-8"))
    sample = json.loads((path / "samples.jsonl").read_text(encoding="utf-8").splitlines()[0])
    sample["primitives"]["read_bins"] = {str(1000 * edge): 50 for edge in range(1, BINS)}
    sample["series"] = {"iops": [1000.0] * 5}
    names = [f"bench{number:03d}" for number in range(benches)]
    places = [f"rand_read[bs=4k,drives=1,iodepth={depth}]" for depth in range(1, points + 1)]
    first = document["plan"]["points"][0]
    document["benches"] = dict.fromkeys(names, next(iter(document["benches"].values())))
    document["plan"]["points"] = [{**first, "bench": name, "point": place} for name in names for place in places]
    (path / "run.json").write_text(json.dumps(document), encoding="utf-8")
    rng = np.random.default_rng(seed)
    with (path / "samples.jsonl").open("wb") as file:
        for number in range(2 * sessions):
            session, arm = f"s{number:02d}", ("baseline", "candidate")[number % 2]
            for name in names:
                ios = np.round(6000 * np.exp(rng.normal(0, 0.003, points))).astype(int).tolist()
                for index, place in enumerate(places):
                    counts = {"read_ios": ios[index], "read_bytes": ios[index] * 4096}
                    line = {
                        **sample,
                        "id": f"{session}-{name}/{index}",
                        "bench": name,
                        "arm": arm,
                        "session": session,
                        "block": f"{session}-{name}",
                        "point": place,
                        "primitives": {**sample["primitives"], **counts},
                    }
                    file.write(dump_line(line))
    return path


def judging_cost(benches: int, points: int, sessions: int = 1) -> Cost:
    """Judge such a run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = make_large_run(Path(folder), benches, points, sessions)
        argv = [sys.executable, "-m", "tests.error_rates.large_run", str(path)]
        answer = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout
    return Cost(samples=2 * sessions * benches * points, **json.loads(answer))


def main() -> None:
    """Judge the run directory that is named and print what it cost."""
    began, used = time.monotonic(), time.process_time()
    judge_run(Path(sys.argv[1]))
    cost = {
        "processor_s": time.process_time() - used,
        "clock_s": time.monotonic() - began,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
    }
    print(json.dumps(cost))


if __name__ == "__main__":
    main()
