# SPDX-License-Identifier: Apache-2.0
"""Complete run directories with chosen effects and failures, without a bench; equal arguments give equal bytes."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from storqual.run import sha256_of, write_bytes, write_json
from storqual.run.closing import close_run
from storqual.run.layout import RUN_SCHEMA, dump_line
from storqual_core.kit.quantities import format_size, parse_size
from tests.support.batches import launch_turn
from tests.support.sealed_run import chained, fio_of, lines_of, sealed
from tests.support.synthetic_events import events_of

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


Effect = float | Mapping[str, float] | Callable[[str, str], float]
"""Change of the candidate (-0.05 is 5 % slower): for all, by adapter or point, or of (adapter, point)."""

SUITE = """\
name: synthetic
description: what the tests of the harness judge
workloads:
  rand_read:
    rw: randread
    factors: {bs: [4k, 64k], drives: [1, 4], iodepth: [1, 16]}
  seq_write:
    rw: write
    factors: {bs: [64k], drives: [1, 4], iodepth: [16]}
criteria:
  - {metric: iops, against: baseline, required: true}
  - {metric: cpu_us_per_io, against: baseline, required: false, margin: 20%}
profiles:
  quick: {cells: all, runtime: 2s, ramp: 500ms, sessions: 4, launches: 1, margin: 8%, indifference: 2%}
"""

POINTS = (
    "rand_read[bs=4k,drives=1,iodepth=1]",
    "rand_read[bs=4k,drives=4,iodepth=16]",
    "rand_read[bs=64k,drives=4,iodepth=16]",
    "seq_write[bs=64k,drives=4,iodepth=16]",
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
    """The name of a point, for tests that build their own list."""
    inside = ",".join(
        f"{name}={format_size(value) if name == 'bs' else value}" for name, value in sorted(factors.items())
    )
    return f"{workload}[{inside}]"


def make_run(folder: Path, **options: Any) -> Path:
    """Write `folder/<run id>/` as a finished campaign leaves it before judging; returns its path. See `Shape`."""
    shape = Shape(**options)
    path = folder / shape.run
    for name in ("inputs", "blocks", "raw"):
        (path / name).mkdir(parents=True, exist_ok=True)
    plan = _sessions(shape)
    samples = [sample for session in plan for sample in _samples(shape, session)]
    write_bytes(path / "samples.jsonl", b"".join(dump_line(sample) for sample in samples))
    write_bytes(path / "checks.jsonl", b"".join(dump_line({"source": "pytest", **check}) for check in shape.checks))
    events = events_of(shape, plan, samples)
    chained(path / "events.jsonl", events)
    for session in plan:
        write_json(path / "blocks" / f"{session['blocks'][0]}.json", _block(shape, session))
    write_json(path / "run.json", _document(shape, path, plan, events))
    sealed(path, close=False)
    if shape.finished:
        from storqual.run import finish_run, read_run_json  # noqa: PLC0415 - reads what was just written

        finish_run(path)
        write_json(path / "run.json", {**read_run_json(path), "finished": time_at(3600)})
        close_run(path)
        *events, closed = lines_of(path / "events.jsonl")
        chained(path / "events.jsonl", [*events, {**closed, "time": time_at(3700)}])
    return path


def _effect(shape: Shape, adapter: str, point: str) -> float:
    if callable(shape.effect):
        return shape.effect(adapter, point)
    if isinstance(shape.effect, Mapping):
        return float(named(shape.effect, adapter, point) or 0.0)
    return float(shape.effect)


def _sessions(shape: Shape) -> list[dict[str, Any]]:
    """The sessions in order, A B B A A B B A ...; one with both arms for an interleaved design."""
    first, second = shape.arms
    if shape.design == "interleaved":
        orders: list[tuple[str, ...]] = [(first, second)]
    else:
        orders = [(arm,) for _ in range((shape.sessions + 3) // 4) for arm in (first, second, second, first)]
        orders = orders[: shape.sessions]
    return [
        {
            "id": f"s{number:02d}",
            "bench": shape.bench,
            "arm": arms[0],
            "configuration": arms[0],
            "change": "reboot" if shape.design == "sessions" else "instant",
            "boot": "always" if number > 1 and shape.design == "sessions" else "if_needed",
            "arms": list(arms),
            "blocks": [f"s{number:02d}-b01"],
        }
        for number, arms in enumerate(orders, start=1)
    ]


def _launches(shape: Shape, session: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The launches of a session's only block."""
    launches = []
    order = [(adapter, point) for adapter in shape.adapters for point in shape.points]
    order = [(a, p) for a, p in order if named(shape.skipped, a, p) is None]
    random.Random(f"{shape.seed}/{session['id']}").shuffle(order)
    number = int(session["id"][1:])
    for repeat in range(shape.launches):
        arms = session["arms"] if repeat % 2 == 0 else session["arms"][::-1]
        for adapter, point in order:
            for arm in arms:
                drives = [drive_id(adapter, n) for n in range(int(factors_of(point)[1].get("drives", 1)))]
                launches.append(
                    {
                        "index": len(launches),
                        "adapter": adapter,
                        "arm": arm,
                        "configuration": arm,
                        "point": point,
                        "n": (number - 1) * shape.launches + repeat + 1,
                        "drives": drives,
                        "fio": fio_of(point, shape.runtime_s),
                    }
                )
    return launches


def _block(shape: Shape, session: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "schema": "storqual.block/3",
        "run": shape.run,
        "block": session["blocks"][0],
        "bench": shape.bench,
        "session": session["id"],
        "state_dir": "/var/lib/storqual",
        "targets": {},
        "idle_s": 1.0,
        "spool": "durable",
        "turns": [launch_turn(session["blocks"][0], launch) for launch in _launches(shape, session)],
    }


def _samples(shape: Shape, session: Mapping[str, Any]) -> list[dict[str, Any]]:
    random_source = random.Random(f"{shape.seed}/{session['id']}/noise")
    level = random_source.gauss(0.0, shape.session_effect)
    samples = []
    for launch in _launches(shape, session):
        if launch["arm"] in shape.missing_in and named(shape.missing, launch["adapter"], launch["point"]):
            continue
        samples.append(_sample(shape, session, launch, level=level, random_source=random_source))
    return samples


def _sample(
    shape: Shape, session: Mapping[str, Any], launch: Mapping[str, Any], *, level: float, random_source: random.Random
) -> dict[str, Any]:
    adapter, point = launch["adapter"], launch["point"]
    candidate = launch["arm"] == shape.arms[1]
    workload, factors = factors_of(point)
    status = (named(shape.statuses, adapter, point) if candidate else None) or "ok"
    suspect = named(shape.suspect, adapter, point) if candidate else None
    change = _effect(shape, adapter, point) if candidate else 0.0
    depth, drives, size = int(factors.get("iodepth", 1)), int(factors.get("drives", 1)), int(factors.get("bs", 4096))
    rate = 200.0 * drives * (1 + math.log2(depth)) / (1 + size / 262144)
    rate *= math.exp(level + random_source.gauss(0.0, shape.noise)) * (1 + change)
    fraction = {"ok": 1.0, "io_error": 1.0, "short": 0.5, "killed": 0.3, "refused": 0.0, "lost": 0.0}[status]
    seconds = shape.runtime_s * fraction
    counts = primitives(workload, rate, seconds, asked=shape.runtime_s, size=size, outstanding=depth * drives)
    if candidate:
        for name in ("fio_user_ns", "fio_system_ns"):
            counts[name] = int(counts[name] * (1 + shape.cpu_effect))
        counts["cpuidle_ns"] -= int((counts["fio_user_ns"] + counts["fio_system_ns"]) * shape.cpu_effect)
    counts["fio_errors"] = 1 if status == "io_error" else 0
    series = [rate * math.exp(random_source.gauss(0.0, shape.noise)) for _ in range(int(seconds))]
    start = (int(session["id"][1:]) - 1) * 120 + launch["index"] * 3.5
    return {
        "schema": "storqual.sample/3",
        "id": f"{session['blocks'][0]}/{launch['index']}",
        "bench": shape.bench,
        "adapter": adapter,
        "arm": launch["arm"],
        "configuration": launch["configuration"],
        "session": session["id"],
        "block": session["blocks"][0],
        "point": point,
        "n": launch["n"],
        "start": time_at(start),
        "runtime_s": seconds,
        "status": status,
        "series": {"iops": [round(value, 3) for value in series]},
        "primitives": counts,
        "suspect": [suspect] if suspect else [],
        "raw": [],
    }


def _document(
    shape: Shape, path: Path, plan: Sequence[Mapping[str, Any]], events: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    inputs = {"suite": ("suite.yml", shape.suite), **({"gate": ("gate.yml", shape.gate)} if shape.gate else {})}
    arms = {}
    for arm in shape.arms:
        manifest = dict(
            shape.manifests.get(arm) or {"driver": {"kernel": {"package": f"linux-image-{shape.kernels[arm]}"}}}
        )
        # JSON is YAML 1.2
        inputs[arm] = (f"{arm}.drop.yml", json.dumps(manifest) + "\n")
        arms[arm] = {"drop": shape.drops.get(arm, arm), "file": f"inputs/{arm}.drop.yml", "manifest": manifest}
    listed = {}
    for name, (file, text) in inputs.items():
        write_bytes(path / "inputs" / file, text.encode())
        listed[name] = {"file": f"inputs/{file}", "source": file, "sha256": sha256_of(text.encode())}
    for arm, entry in arms.items():
        entry["sha256"] = listed[arm]["sha256"]
    points = []
    for adapter in shape.adapters:
        for point in shape.points:
            workload, factors = factors_of(point)
            points.append(
                {
                    "bench": shape.bench,
                    "adapter": adapter,
                    "point": point,
                    "workload": workload,
                    "factors": factors,
                    "drives": [drive_id(adapter, number) for number in range(int(factors.get("drives", 1)))],
                    "varied": {},
                    "skipped": named(shape.skipped, adapter, point) or "",
                }
            )
    adapters = {
        alias: {
            "model": f"{alias} adapter",
            "driver": DRIVERS.get(alias, alias),
            "pci": f"0000:00:{number + 5:02x}.0",
            "drives": [
                {"id": drive_id(alias, n), "serial": f"{alias.upper()}{n:04d}", "model": shape.model, "size": 1 << 30}
                for n in range(4)
            ],
        }
        for number, alias in enumerate(shape.adapters)
    }
    suite_name = shape.run.split("-")[1]
    return {
        "schema": RUN_SCHEMA,
        "run": shape.run,
        "created": time_at(-60),
        "finished": None,
        "inventories": ["inventories/virtual"],
        "inputs": listed,
        "suite": {
            "name": suite_name,
            "profile": shape.profile,
            "file": "inputs/suite.yml",
            "sha256": listed["suite"]["sha256"],
        },
        "arms": arms,
        "configurations": {arm: {"arm": arm, "settings": {}} for arm in shape.arms},
        "benches": {
            shape.bench: {
                "kind": shape.kind,
                "state_dir": "/var/lib/storqual",
                "adapters": adapters,
                "environment": {},
            }
        },
        "plan": {
            "seed": shape.seed,
            "design": shape.design,
            "points": points,
            "sessions": list(plan),
            "launches": shape.launches,
            "runtime_s": shape.runtime_s,
            "ramp_s": 0.5,
            "expected_seconds": 300.0,
            "margin": 0.08,
            "indifference": 0.02,
        },
        "provision": {},
        "versions": {"storqual": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"},
    }
