# SPDX-License-Identifier: Apache-2.0
"""A campaign on a bench that only exists here: its blocks run, its boots change, its control node may be killed."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from storqual.campaign import Provision, Stop
from storqual.campaign.next_step import next_command
from storqual.cli.playbook.record import record
from storqual.plan.make import plan_run
from storqual.run import append_event, collect, read_batch
from storqual.run.closing import close_run
from storqual_core.host.counters import ERROR_WORDS, CounterSnapshot, DiskCounters
from storqual_core.turns.batch_file import Batch, LaunchTurn, parse_batch
from storqual_core.turns.content import READBACK_SCHEMA
from storqual_core.turns.derive import result_of
from storqual_core.turns.launch import Launched
from storqual_core.turns.readback import NOT_LOOKED, Looked
from storqual_core.turns.sample import make_sample
from tests.support.make_lab import make_lab
from tests.support.make_run import primitives
from tests.support.streamed_turns import run_streamed

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


Measure = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]
"""From a block and a launch of it to what the sample has besides its names: series and primitives."""


class KilledError(Exception):
    """The control node's process is gone."""


def counted(_block: Mapping[str, Any], _launch: Mapping[str, Any]) -> dict[str, Any]:
    """One I/O: for campaigns in which nobody asks how fast it was."""
    return {"series": {}, "primitives": {"read_ios": 1}}


@dataclass(frozen=True)
class Rates:
    """Launches of 1000 IOPS with a spread, less `losses` of the candidate at points that hold a text.

    A launch measured again would give the same again: its rate follows from its names alone.
    """

    noise: float = 0.005
    losses: Mapping[str, float] = field(default_factory=dict)
    session_noise: float = 0.0
    seed: int = 1

    def __call__(self, block: Mapping[str, Any], launch: Mapping[str, Any]) -> dict[str, Any]:
        names = f"{self.seed}/{launch['point']}/{launch['adapter']}/{launch['arm']}/{launch['n']}"
        source = random.Random(names)
        boot = random.Random(f"{self.seed}/{block['session'].partition('.')[0]}").gauss(0.0, self.session_noise)
        rate = 1000.0 * math.exp(source.gauss(0.0, self.noise) + boot)
        if launch["arm"] == "candidate":
            rate *= 1 - sum(loss for text, loss in self.losses.items() if text in launch["point"])
        fio = launch["request"]["fio"]
        seconds = float(fio["runtime_s"])
        workload = "write" if "write" in fio["rw"] else "read"
        counts = primitives(workload, rate, seconds, asked=seconds, size=fio["bs"], outstanding=fio["iodepth"])
        return {"series": {"iops": [rate] * int(seconds)}, "primitives": {**counts, "fio_errors": 0}}


@dataclass
class Bench:
    """What a bench keeps: its boot, and the spools on its disk. Nobody tells it anything twice."""

    measure: Measure = counted
    boot: int = 1
    spools: dict[str, list[str]] = field(default_factory=dict)
    ran_in: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    @property
    def boot_id(self) -> str:
        """What `next` is told."""
        return f"boot-{self.boot}"

    def run(self, block: dict[str, Any], launches: int | None = None) -> None:
        """Run a block, or only so many launches of it before the bench is reset."""
        assert block["block"] not in self.spools, "a second program beside the first"
        self.ran_in[block["session"]].add(self.boot)
        lines: list[dict[str, Any]] = [{"kind": "start", "boot_id": self.boot_id, "kernel": "x"}]
        lines += [self._spooled(block, launch) for launch in block["turns"][:launches]]
        if launches is None:
            lines.append({"kind": "end", "outcome": "done", "message": "", "disks": {}})
        self.spools[block["block"]] = [json.dumps(line) + "\n" for line in lines]

    def reset(self) -> None:
        """A new boot; the disk is as it was."""
        self.boot += 1

    def _spooled(self, block: dict[str, Any], launch: dict[str, Any]) -> dict[str, Any]:
        """A finished record, with evidence where somebody may judge it; launches follow each other by a second."""
        second = sum(len(lines) for lines in self.spools.values()) + launch["index"]
        start = f"2026-11-21T{10 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"
        measured = self.measure(block, launch)
        if self.measure is not counted:
            series = measured["series"].get("iops") or []
            suspect = measured.get("suspect", ())
            wrong_tail = bool(measured.get("wrong_tail"))
            return spooled_launch(
                block, launch["index"], start, series, measured["primitives"], suspect, wrong_tail=wrong_tail
            )
        sample = {
            "id": f"{block['block']}/{launch['index']}",
            **{name: block[name] for name in ("bench", "session", "block")},
            **{name: launch[name] for name in ("adapter", "arm", "configuration", "point", "n")},
            "start": start,
            "runtime_s": 2.0,
            "status": "ok",
            "suspect": [],
            "raw": [],
            **measured,
        }
        return {"kind": "sample", "sample": sample}


def plan(folder: Path, **options: Any) -> Path:
    """A planned run of one bench, b1."""
    path = plan_run(make_lab(folder, **options), folder / "runs").path
    assert path is not None
    return path


def steady(_chance: float) -> bool:
    """Nothing ever goes wrong."""
    return False


def drive(  # noqa: PLR0912 - each thing that may go wrong is a branch
    path: Path,
    bench: Bench,
    happens: Callable[[float], bool] = steady,
    source: Any = None,
    *,
    close: bool = True,
) -> Stop:
    """Control the bench until it stops; `happens(share)` says whether something goes wrong at this moment."""

    def perhaps_killed() -> None:
        if happens(0.08):
            raise KilledError

    while True:
        step = next_command(path, "b1", boot_id=bench.boot_id)
        perhaps_killed()
        if isinstance(step, Stop):
            if close:
                close_run(path)
            return step
        if isinstance(step, Provision):
            if step.session.boot == "always":
                bench.reset()
            perhaps_killed()
            fields = {"bench": "b1", "session": step.session.id, "boot_id": bench.boot_id}
            record(path, "session_started", fields)
            continue
        if not step.resume:
            append_event(path, "block_started", {"bench": "b1", "session": step.session, "block": step.batch})
            perhaps_killed()
        if run_streamed(path, step.batch):
            continue
        lost = None
        if step.batch not in bench.spools:
            if bench.boot_id != step.boot_id:
                lost = "the bench was booted before the block began"
            else:
                block = read_batch(path, step.batch)
                fails = happens(0.15)
                bench.run(block, source.randrange(len(block["turns"]) + 1) if fails else None)
                if fails:
                    bench.reset()
                perhaps_killed()
        text = "".join(bench.spools.get(step.batch, []))
        if '"kind": "end"' not in text and lost is None:
            lost = "the bench was reset"
        collect(path, step.batch, text, lost=lost)
        if happens(0.05):
            bench.reset()
