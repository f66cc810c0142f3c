# SPDX-License-Identifier: Apache-2.0
"""What a synthetic run is like, what happened in it, and each of its launches as its bench would have spooled it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from storqual.run import sha256_of
from storqual_core.host.counters import ERROR_WORDS, CounterSnapshot, DiskCounters
from storqual_core.kit.quantities import format_size, parse_size
from storqual_core.turns.batch_file import Batch, LaunchTurn, parse_batch
from storqual_core.turns.content import READBACK_SCHEMA
from storqual_core.turns.derive import result_of
from storqual_core.turns.launch import Launched
from storqual_core.turns.readback import NOT_LOOKED, Looked
from storqual_core.turns.sample import make_sample

Effect = float | Mapping[str, float] | Callable[[str, str], float]
"""Change of the candidate (-0.05 is 5 % slower): for all, by adapter or point, or of (adapter, point)."""

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")

POINTS = (
    *("rand_read[bs=4k,drives=1,iodepth=1]", "rand_read[bs=4k,drives=4,iodepth=16]"),
    *("rand_read[bs=64k,drives=4,iodepth=16]", "seq_write[bs=64k,drives=4,iodepth=16]"),
)

BEGAN = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
CPUS = 2
DRIVERS = {"sym": "sym53c8xx", "mpt": "mptsas", "mega": "megaraid_sas"}


@dataclass(frozen=True)
class Shape:
    """What `make_run` builds; every field is an argument of it. Sizes in bytes, times in seconds."""

    run: str = "20261121T100000Z-synthetic-0001"
    bench: str = "vbench"
    kind: str = "virtual"
    adapters: Sequence[str] = ("sym", "mpt")
    points: Sequence[str] = POINTS
    suite: str = SUITE
    gate: str = ""
    """The text of the gate policy; none was given when it is empty."""
    profile: str = "quick"
    design: str = "sessions"
    sessions: int = 4
    launches: int = 1
    runtime_s: float = 2.0
    effect: Effect = 0.0
    cpu_effect: float = 0.0
    session_effect: float = 0.0
    noise: float = 0.01
    seed: int = 1
    arms: tuple[str, str] = ("baseline", "candidate")
    drops: Mapping[str, str] = field(default_factory=dict)
    """arm -> the name of its drop; the arm's own name without it."""
    manifests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    statuses: Mapping[str, str] = field(default_factory=dict)
    """point, or adapter/point -> status of the candidate's samples there (refused, killed, short, io_error)."""
    missing: Sequence[str] = ()
    """point, or adapter/point: an arm of `missing_in` has no sample there."""
    missing_in: Sequence[str] = ("candidate",)
    skipped: Mapping[str, str] = field(default_factory=dict)
    """point, or adapter/point -> reason why it was not planned to be measured."""
    findings: Sequence[Mapping[str, Any]] = ()
    """Kernel-log findings of the first candidate session."""
    suspect: Mapping[str, str] = field(default_factory=dict)
    """point, or adapter/point -> why the candidate's samples there are suspect."""
    events: Sequence[Mapping[str, Any]] = ()
    """More events at the end, each with `kind`."""
    before_last: Sequence[Mapping[str, Any]] = ()
    """More events before the last session."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """More of what the bench said of itself, before and after."""
    checks: Sequence[Mapping[str, Any]] = ()
    sectors_outside: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    """What error counters of the first drive of the first adapter did in the first session."""
    smart: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {})
    """Errors that that drive had on record before and after."""
    logs: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {})
    """What drives told of themselves before and after, by drive."""
    settings: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """arm -> the `settings` of its provisioning record."""
    kernels: Mapping[str, str] = field(
        default_factory=lambda: {"baseline": "6.1.0-47-amd64", "candidate": "6.12.0-1-amd64"}
    )
    model: str = "ST336607LW"
    finished: bool = True


def time_at(seconds: float) -> str:
    """The time so many seconds after the first session began, as ISO 8601."""
    return (BEGAN + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def named(table: Mapping[str, Any] | Sequence[str], adapter: str, point: str) -> Any:
    """The entry for adapter/point, for the point, or for the adapter; None when there is none."""
    for name in (f"{adapter}/{point}", point, adapter):
        if name in table:
            return table[name] if isinstance(table, Mapping) else True
    return None


def factors_of(point: str) -> tuple[str, dict[str, Any]]:
    workload, _, inside = point.rstrip("]").partition("[")
    factors: dict[str, Any] = {}
    for pair in filter(None, inside.split(",")):
        name, _, value = pair.partition("=")
        factors[name] = parse_size(value) if name == "bs" else int(value) if value.isdigit() else value
    return workload, factors


def drive_id(adapter: str, number: int) -> str:
    return f"0x5000c500{sum(adapter.encode()):04x}{number:04x}"


def point_name(workload: str, **factors: Any) -> str:
    inside = ",".join(
        f"{name}={format_size(value) if name == 'bs' else value}" for name, value in sorted(factors.items())
    )
    return f"{workload}[{inside}]"


_CPUS = 2
_TICK_NS = 10_000_000


def primitives(
    workload: str, rate: float, seconds: float, *, asked: float, size: int, outstanding: int
) -> dict[str, Any]:
    """Counts of one launch that follow from its rate: Little's law for latency, 150 us of CPU per I/O."""
    ios = int(rate * seconds)
    way = "write" if "write" in workload else "read"
    latency = int(outstanding / rate * 1e9) if ios else 0
    wall = int((seconds or 0.05) * 1e9)
    busy = min(int(ios * 150_000), int(0.9 * wall * _CPUS))
    ticks = wall * _CPUS // _TICK_NS
    counts: dict[str, Any] = {
        f"{way}_ios": ios,
        f"{way}_bytes": ios * size,
        f"{way}_lat_sum_ns": latency * ios,
        f"{way}_lat_max_ns": latency * 4,
        f"{way}_bins": _bins(latency, ios),
        "runtime_ns": int(seconds * 1e9),
        "asked_runtime_ns": int(asked * 1e9),
        "fio_wall_ns": int((seconds + 0.9) * 1e9),
        "overhead_ns": 60_000_000,
        "fio_user_ns": busy // 5,
        "fio_system_ns": busy * 3 // 5,
        "fio_context_switches": ios,
        "cpu_count": _CPUS,
        "wall_ns": wall,
        "tick_ns": _TICK_NS,
        "cpuidle_ns": wall * _CPUS - busy - int(0.01 * wall),
        "interrupts": ios + 100,
        "adapter_interrupts": ios,
        "context_switches": 2 * ios + 200,
        f"disk_{way}_sectors": ios * size // 512,
        f"disk_{way}_ios": ios,
        "idle_wall_ns": 1_000_000_000,
        "idle_cpuidle_ns": int((1 - 0.005) * _CPUS * 1e9),
    }
    split = {
        "user": busy // 5,
        "nice": 0,
        "system": busy * 3 // 5,
        "irq": 0,
        "softirq": busy // 5,
        "steal": 0,
        "iowait": 0,
    }
    for name, nanoseconds in split.items():
        counts[f"stat_{name}_ticks"] = nanoseconds // _TICK_NS
        counts[f"idle_stat_{name}_ticks"] = 0
    counts["stat_idle_ticks"] = ticks - sum(counts[f"stat_{name}_ticks"] for name in split)
    counts["idle_stat_idle_ticks"] = 1_000_000_000 * _CPUS // _TICK_NS
    return counts


def _bins(latency: int, ios: int) -> dict[str, int]:
    """A small histogram around the mean: 90 %, 9 % at twice, the rest at four times the latency."""
    most, some = int(ios * 0.9), int(ios * 0.09)
    bins = {latency: most, latency * 2: some, latency * 4: ios - most - some}
    return {str(nanoseconds): count for nanoseconds, count in bins.items() if count}


def events_of(
    shape: Shape, plan: Sequence[Mapping[str, Any]], samples: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """All events of a run in order, without the chain."""
    facts = {"cpu": {"model": "QEMU Virtual CPU", "count": CPUS}, "memory_bytes": 1 << 30, "accelerator": "tcg"}
    facts.update(shape.environment)
    drive = drive_id(shape.adapters[0], 0)
    records: list[dict[str, Any]] = [{"smart": {drive: dict(look)}} if look else {} for look in shape.smart]
    records = [
        {**record, **({"logs": dict(told)} if told else {})} for record, told in zip(records, shape.logs, strict=True)
    ]
    events: list[dict[str, Any]] = [
        {"time": time_at(-60), "kind": "planned", "run": shape.run, "plan_sha256": "", "blocks": {}},
        {
            "time": time_at(-50),
            "kind": "environment",
            "bench": shape.bench,
            "when": "before",
            "facts": facts,
            **records[0],
        },
    ]
    told = not shape.findings
    for number, session in enumerate(plan):
        block, arm = session["blocks"][0], session["arm"]
        common = {"bench": shape.bench, "session": session["id"]}
        boot = f"0000000{number}-0000-4000-8000-000000000000"
        begin = number * 120
        modules = {
            DRIVERS.get(alias, alias): {
                "srcversion": f"{sha256_of((alias + arm).encode())[:23].upper()}",
                "version": "1.0",
            }
            for alias in shape.adapters
        }
        if number == len(plan) - 1:
            events += [{"time": time_at(begin - 6), **event} for event in shape.before_last]
        events.append(
            {
                "time": time_at(begin - 5),
                "kind": "session_started",
                **common,
                "boot_id": boot,
                "kernel": shape.kernels.get(arm, ""),
                "arm": arm,
                "provisioned": {"drivers": modules, "settings": list(shape.settings.get(arm, ()))},
            }
        )
        events.append({"time": time_at(begin - 1), "kind": "block_started", **common, "block": block})
        findings = list(shape.findings) if not told and shape.arms[1] in session["arms"] else []
        told = told or bool(findings)
        disk = {"wwn": drive_id(shape.adapters[0], 0), "claimed": True, "system": ""}
        other = {"wwn": "0x5000c500ffff0001", "claimed": False, "system": ""}
        disks = {
            "sda": {
                "wwn": None,
                "claimed": False,
                "system": "/",
                "write_sectors_before": 0,
                "write_sectors_after": 800,
            },
            "sdb": {
                **disk,
                "write_sectors_before": 0,
                "write_sectors_after": 4096,
                **({"errors": dict(shape.errors)} if shape.errors and number == 0 else {}),
            },
            "sdc": {
                **other,
                "write_sectors_before": 0,
                "write_sectors_after": shape.sectors_outside if number == 0 else 0,
            },
        }
        events.append(
            {
                "time": time_at(begin + 100),
                "kind": "block_finished",
                **common,
                "block": block,
                "outcome": "done",
                "message": "",
                "samples": sum(sample["block"] == block for sample in samples),
                "boot_id": boot,
                "start": {"boot_id": boot, "kernel": shape.kernels.get(arm, ""), "fio": "fio-3.33"},
                "end": {"outcome": "done", "disks": disks, "overhead_s": 0.5},
                "findings": findings,
                "kernel_log": None,
            }
        )
    events += [{"time": time_at(3000), **event} for event in shape.events]
    events.append(
        {
            "time": time_at(3100),
            "kind": "environment",
            "bench": shape.bench,
            "when": "after",
            "facts": facts,
            **records[1],
        }
    )
    if not any(event["kind"] == "restore_failed" for event in shape.events):
        events.append({"time": time_at(3200), "kind": "restored", "bench": shape.bench})
    return events


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
