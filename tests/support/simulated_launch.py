# SPDX-License-Identifier: Apache-2.0
"""A launch as its bench would have spooled it: fio's output and counters of chosen counts, and their sample."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from storqual_core.host.counters import ERROR_WORDS, CounterSnapshot, DiskCounters
from storqual_core.turns.batch_file import Batch, LaunchTurn, parse_batch
from storqual_core.turns.content import READBACK_SCHEMA
from storqual_core.turns.derive import result_of
from storqual_core.turns.launch import Launched
from storqual_core.turns.readback import NOT_LOOKED, Looked
from storqual_core.turns.sample import make_sample

_CLASSES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@lru_cache(maxsize=8)
def _parsed(text: str) -> Batch:
    return parse_batch(text)


def spooled_launch(
    block: Mapping[str, Any],
    index: int,
    start: str,
    series: Sequence[float],
    primitives: Mapping[str, Any],
    suspect: Sequence[str] = (),
    *,
    status: str = "ok",
    wrong_tail: bool = False,
) -> dict[str, Any]:
    """The spool's line of launch `index`: series and primitives are, but for rounding, those that are given.

    `status` is how fio ended: by itself, killed, or with an I/O error; that it did nothing or was short, its counts
    say. With `wrong_tail` the last sector of the block that is read back afterwards holds zeros.
    """
    parsed = _parsed(json.dumps(block))
    launch = next(one for one in parsed.launches if one.index == index)
    before, after = _counters(primitives, "")
    sample, artifacts = make_sample(
        parsed,
        launch,
        _launched(launch.fio.runtime_s, series, primitives, before, after, exit_status=_ENDED.get(status, 0)),
        start=start,
        seed=1,
        gone=False,
        reason="",
        suspect=suspect,
        notes=(),
        overhead_ns=int(primitives.get("overhead_ns", 0)),
        idle=_counters(primitives, "idle_"),
        looked=_readback(launch, wrong_tail=wrong_tail) if launch.readback_s and status == "ok" else NOT_LOOKED,
    )
    return {"kind": "sample", "sample": sample, "artifacts": artifacts}


def _readback(launch: LaunchTurn, *, wrong_tail: bool) -> Looked:
    """One block of the first drive, as the bench program keeps what it reads back."""
    sectors, address = launch.fio.bs // 512, 1 << 20
    runs: list[list[int | None]] = [[sectors, address, 7, 1]]
    wrong = []
    if wrong_tail:
        runs = [[sectors - 1, address, 7, 1], [1, None, None, 1]]
        tail = {"drive": launch.drives[0], "address": address + launch.fio.bs - 512, "bs": launch.fio.bs}
        wrong = [{**tail, "expected": "??" * 16 + "a5" * 496, "found": "00" * 512, "again": "the same"}]
    record = {
        "schema": READBACK_SCHEMA,
        "of": "read" if launch.fio.reads_only else "write",
        "drives": list(launch.drives),
        "blocks": [[0, address, 1, runs]],
        "wrong": wrong,
        "compared": min(sectors, 16),
        "took_ns": 1,
    }
    return Looked(json.dumps(record))


_ENDED = {"killed": -9, "io_error": 1}
"""The exit status of fio by the status of its launch."""


def _launched(
    asked_s: float,
    series: Sequence[float],
    primitives: Mapping[str, Any],
    before: CounterSnapshot,
    after: CounterSnapshot,
    *,
    exit_status: int,
) -> Launched:
    runtime_ns = int(primitives.get("runtime_ns", asked_s * 1e9))
    output = fio_output(primitives, runtime_ns)
    wall_ns = int(primitives.get("fio_wall_ns", runtime_ns))
    result = result_of(output, "", exit_status=exit_status, asked_s=asked_s, in_time=True, wall_ns=wall_ns)
    way = 1 if primitives.get("write_ios") else 0
    log = "".join(f"{1000 * (number + 1)}, {round(rate)}, {way}, 4096, 0\n" for number, rate in enumerate(series))
    return Launched(
        result, wall_ns, output, "", {}, exit_status, asked_s=asked_s, before=before, after=after, iops_logs=(log,)
    )


def fio_output(primitives: Mapping[str, Any], runtime_ns: int) -> str:
    """What fio 3 prints of one job with these counts."""
    milliseconds = round(runtime_ns / 1e6)

    def share(name: str) -> float:
        return 100.0 * float(primitives.get(name, 0)) / max(runtime_ns, 1)

    job: dict[str, Any] = {"jobname": "d0", "desc": "d0", "error": 0, "job_runtime": milliseconds}
    for way in ("read", "write"):
        ios = int(primitives.get(f"{way}_ios", 0))
        bins = dict(primitives.get(f"{way}_bins") or ({"1000": ios} if ios else {}))
        mean = float(primitives.get(f"{way}_lat_sum_ns", 1000 * ios)) / ios if ios else 0.0
        most = int(primitives.get(f"{way}_lat_max_ns", 0))
        job[way] = {
            "io_bytes": int(primitives.get(f"{way}_bytes", 4096 * ios)),
            "runtime": milliseconds if ios else 0,
            "total_ios": ios,
            "lat_ns": {"min": 0, "max": most, "mean": mean, "N": ios, "bins": bins},
        }
    job.update(usr_cpu=share("fio_user_ns"), sys_cpu=share("fio_system_ns"))
    job["ctx"] = int(primitives.get("fio_context_switches", 0))
    return json.dumps({"fio version": "fio-3.33", "jobs": [job]}) + "\n"


def _counters(primitives: Mapping[str, Any], prefix: str) -> tuple[CounterSnapshot, CounterSnapshot]:
    """Two readings that differ by the primitives with that prefix."""

    def reading(times: int) -> CounterSnapshot:
        def counted(name: str) -> int:
            return times * int(primitives.get(prefix + name, 0))

        disk = (counted(f"disk_{name}") for name in ("read_ios", "read_sectors", "write_ios", "write_sectors"))
        return CounterSnapshot(
            time_ns=counted("wall_ns"),
            cpu_count=2,
            ticks={name: counted(f"stat_{name}_ticks") for name in _CLASSES},
            context_switches=counted("context_switches"),
            interrupts=counted("interrupts"),
            cpuidle_ns=counted("cpuidle_ns"),
            adapter_interrupts=counted("adapter_interrupts"),
            disks={"d0": DiskCounters(*disk, in_flight=0)},
            errors={name: counted(f"error_{name}") for name in ERROR_WORDS if f"{prefix}error_{name}" in primitives},
        )

    return reading(0), reading(1)
