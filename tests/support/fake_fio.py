# SPDX-License-Identifier: Apache-2.0
"""A stand-in for fio that answers at once with a recorded result, and blocks for tests that need no device."""

import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storqual_core.guard.writes import DisksReading
from storqual_core.turns.batch_file import Batch, parse_batch
from storqual_core.turns.fio_job import FioTarget
from storqual_core.turns.targets import HeldTargets
from tests.support.batches import launch_batch


def job(
    *,
    name: str = "d0",
    drive: str = "0x5000c50015ea71a0",
    ios: int = 1000,
    runtime_ms: int = 1000,
    error: int = 0,
    bins: Mapping[str, int] | None = None,
    way: str = "read",
    **fields: Any,
) -> dict[str, Any]:
    """One job of fio 3's result, with one direction at work."""
    idle = {"io_bytes": 0, "runtime": 0, "total_ios": 0, "lat_ns": {"min": 0, "max": 0, "mean": 0.0, "N": 0}}
    busy = {
        "io_bytes": ios * 4096,
        "runtime": runtime_ms,
        "total_ios": ios,
        "lat_ns": {
            "min": 100_000,
            "max": 900_000,
            "mean": 250_000.0,
            "N": ios,
            "bins": dict(bins) if bins is not None else {"250880": ios},
        },
    }
    return {
        "jobname": name,
        "desc": drive,
        "error": error,
        "read": busy if way == "read" else idle,
        "write": busy if way == "write" else idle,
        "trim": idle,
        "job_runtime": runtime_ms,
        "usr_cpu": 10.0,
        "sys_cpu": 20.0,
        "ctx": ios,
        **fields,
    }


def result(*jobs: Mapping[str, Any], version: str = "fio-3.33") -> str:
    return json.dumps({"fio version": version, "jobs": list(jobs)}, indent=2) + "\n"


def fake_fio(folder: Path, script: str) -> str:
    """A program called fio whose body is `script` (sh); it answers `--version` by itself."""
    path = folder / "fio"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo fio-3.33 && exit 0\n{script}\n', encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def launch(index: int, **fields: Any) -> dict[str, Any]:
    """One launch of a block file; `fio` fields are given as `fio={...}`."""
    fio = {"rw": "randread", "bs": 4096, "iodepth": 4, "numjobs": 1, "runtime_s": 1.0, "ramp_s": 0.0}
    return {
        "index": index,
        "adapter": "sym",
        "arm": "baseline",
        "configuration": "baseline",
        "point": "rand_read[bs=4k]",
        "n": index + 1,
        "drives": ["d0"],
        "switch": [],
        **fields,
        "fio": {**fio, **fields.get("fio", {})},
    }


def block_text(state_dir: Path, launches: Sequence[Mapping[str, Any]], **fields: Any) -> str:
    """A block file over the targets `d0` and `d1`."""
    whole = {
        "run": "r1",
        "block": "s01-b01",
        "bench": "bench",
        "session": "s01",
        "state_dir": str(state_dir),
        "targets": {"d0": {"claim": {}}, "d1": {"claim": {}}},
        "idle_s": 0.0,
        **fields,
    }
    return json.dumps(launch_batch(launches, **whole))


def make_block(state_dir: Path, launches: Sequence[Mapping[str, Any]], **fields: Any) -> Batch:
    return parse_batch(block_text(state_dir, launches, **fields))


class FileTargets:
    """Holds plain files as the targets `d0` and `d1`, in place of the guard."""

    def __init__(self, folder: Path, size: int = 1 << 20) -> None:
        self.paths = {name: folder / name for name in ("d0", "d1")}
        for path in self.paths.values():
            path.write_bytes(b"\x5a" * size)
        self.size = size

    @contextmanager
    def __call__(self, batch: Batch) -> Iterator[HeldTargets]:
        yield HeldTargets(
            {name: FioTarget(name, str(path), 0, self.size, is_file=True) for name, path in self.paths.items()}
        )


def no_disks(**_: object) -> DisksReading:
    return DisksReading("boot", {})


def spooled(batch: Batch, kind: str = "sample") -> list[dict[str, Any]]:
    """The spool's lines of one kind; of samples, the samples."""
    lines = [json.loads(line) for line in batch.spool.read_text(encoding="utf-8").splitlines()]
    return [line["sample"] if kind == "sample" else line for line in lines if line["kind"] == kind]
