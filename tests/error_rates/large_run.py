# SPDX-License-Identifier: Apache-2.0
"""Run directories of many benches and points, and what judging them costs in seconds and memory."""

import gzip
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from storqual.judge.verdict import judge_run
from storqual.run import append_event, sha256_of
from storqual.run.closing import close_run, plan_digest
from storqual.run.layout import RUN_SCHEMA, dump_line, write_json
from storqual.run.records import NAMES
from storqual_core.host.counters import CLASSES, CounterSnapshot, DiskCounters
from storqual_core.turns.derive import RECORD_SCHEMA, SAMPLE_SCHEMA, derive, dump_snapshot
from tests.support.make_run import make_run

BINS = 60


@dataclass(frozen=True)
class Cost:
    """Seconds of processor and of clock, and the largest resident size, of judging so many samples."""

    samples: int
    processor_s: float
    clock_s: float
    megabytes: float


def make_large_run(
    folder: Path, benches: int, points: int, sessions: int, seed: int = 1, *, close: bool = True
) -> Path:
    """A run of `benches` x `points` cells, one launch in each of `sessions` sessions per arm; quiet, no effect.

    It is whole: each sample has what fio prints (8 KB) and its record as evidence, and the run is closed over them
    unless it is to be published, which closes it.
    """
    path = make_run(folder, noise=0.003)
    shutil.rmtree(path / "raw")
    shutil.rmtree(path / "blocks")
    for name in ("raw", "blocks"):
        (path / name).mkdir()
    document = json.loads((path / "run.json").read_text(encoding="utf-8"))
    names = [f"bench{number:03d}" for number in range(benches)]
    places = [f"rand_read[bs=4k,drives=1,iodepth={depth}]" for depth in range(1, points + 1)]
    first = document["plan"]["points"][0]
    document["schema"] = RUN_SCHEMA
    document["benches"] = dict.fromkeys(names, next(iter(document["benches"].values())))
    document["plan"]["points"] = [{**first, "bench": name, "point": place} for name in names for place in places]
    (path / "run.json").write_text(json.dumps(document), encoding="utf-8")
    events: list[dict[str, Any]] = []
    rng = np.random.default_rng(seed)
    with (path / "samples.jsonl").open("wb") as file:
        for number in range(2 * sessions):
            session, arm = f"s{number:02d}", ("baseline", "candidate")[number % 2]
            for name in names:
                block = {"run": document["run"], "bench": name, "session": session, "block": f"{session}-{name}"}
                same = {"adapter": first["adapter"], "arm": arm, "configuration": arm, "n": number + 1}
                launches = [
                    {"index": index, "id": f"{block['block']}/{index}", "point": place, **same}
                    for index, place in enumerate(places)
                ]
                write_json(path / "blocks" / f"{block['block']}.json", {**block, "turns": launches})
                own = {key: value for key, value in block.items() if key != "run"}
                events.append({"kind": "block_started", **own})
                ios = np.round(6000 * np.exp(rng.normal(0, 0.003, points))).astype(int).tolist()
                for launch in launches:
                    head = {**own, **{key: value for key, value in launch.items() if key != "index"}}
                    file.write(_with_evidence(path, document["run"], head, ios[launch["index"]]))
    (path / "events.jsonl").unlink()
    append_event(path, "planned", {"run": document["run"], "plan_sha256": plan_digest(document), "blocks": {}})
    for event in events:
        append_event(path, event.pop("kind"), event)
    if close:
        close_run(path)
    return path


_PRINTED = json.dumps(
    {
        "fio version": "fio-3.33",
        "jobs": [
            {
                "jobname": "d0",
                "desc": "d0",
                "error": 0,
                "job options": {f"option {number}": "x" * 20 for number in range(40)},
                "read": {
                    "io_bytes": 4096,
                    "total_ios": 123456789,
                    "runtime": 5000,
                    "lat_ns": {
                        "mean": 998500.5,
                        "max": 2000000,
                        "N": 50 * (BINS - 1),
                        "percentile": {f"{share / 2:.6f}": 1000 * share for share in range(2, 200, 2)},
                        "bins": {str(1000 * edge): 50 for edge in range(1, BINS)},
                    },
                },
                "write": {"io_bytes": 0, "total_ios": 0, "runtime": 0, "lat_ns": {"mean": 0.0, "N": 0}},
                "trim": {"io_bytes": 0, "total_ios": 0, "runtime": 0, "lat_ns": {"mean": 0.0, "N": 0}},
                "job_runtime": 5000,
                "usr_cpu": 3.5,
                "sys_cpu": 11.25,
                "ctx": 6000,
                "latency_us": {str(number): 0.01 for number in range(40)},
            }
        ],
    },
    indent=2,
)
_READING = CounterSnapshot(
    0, 2, dict.fromkeys(CLASSES, 0), 0, 0, 0, 0, {"d0": DiskCounters(0, 0, 0, 0, 0)}, own_cpu_ns=0
)
_LATER = CounterSnapshot(
    5_000_000_000,
    2,
    dict.fromkeys(CLASSES, 100),
    9000,
    8000,
    7_000_000_000,
    6000,
    {"d0": DiskCounters(6, 6, 0, 0, 0)},
)


def _with_evidence(path: Path, run: str, head: Mapping[str, Any], ios: int) -> bytes:
    """The line of one sample; its evidence is written to raw/."""
    output = _PRINTED.replace("123456789", str(ios)).replace('"io_bytes": 4096', f'"io_bytes": {4096 * ios}')
    raw = []

    def kept(text: str, ending: str) -> str:
        data = gzip.compress(text.encode(), 1, mtime=0)
        name = {"path": f"raw/{sha256_of(data)}.{ending}.gz", "sha256": sha256_of(data)}
        (path / name["path"]).write_bytes(data)
        raw.append(name)
        return name["path"]

    process = {"load": None, "output": kept(output, "json"), "errors": "", "exit_status": 0, "in_time": True}
    record = {
        "schema": RECORD_SCHEMA,
        "run": run,
        "launch": {
            "schema": SAMPLE_SCHEMA,
            **{name: head[name] for name in (*NAMES, "n")},
            "start": "2026-11-21T10:00:00Z",
        },
        "runs": [{**process, "wall_ns": 6_000_000_000, "asked_s": 5.0}],
        "chosen": 0,
        "search": None,
        "asked_s": 5.0,
        "arrivals_per_s": None,
        "log_ms": 1000,
        "iops_logs": ["".join(f"{1000 * second}, {ios // 5}, 0, 4096, 0\n" for second in range(1, 6))],
        "tick_ns": 10_000_000,
        "before": dump_snapshot(_READING),
        "after": dump_snapshot(_LATER),
        "idle": [dump_snapshot(_READING), dump_snapshot(_LATER)],
        "overhead_ns": 60_000_000,
        "gone": False,
        "reason": "",
        "suspect": [],
        "notes": [],
        "seed": 1,
    }
    kept(json.dumps(record, separators=(",", ":")), "launch")
    return dump_line({**derive(record, {raw[0]["path"]: output}), "raw": raw})


def judging_cost(benches: int, points: int, sessions: int = 1) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        path = make_large_run(Path(folder), benches, points, sessions)
        argv = [sys.executable, "-m", "tests.error_rates.large_run", str(path)]
        answer = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout
    return Cost(samples=2 * sessions * benches * points, **json.loads(answer))


def main() -> None:
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
