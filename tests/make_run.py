# SPDX-License-Identifier: Apache-2.0
"""Complete run directories with chosen effects and failures, without a bench; equal arguments give equal bytes."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from storqual.store import sha256_of, write_bytes, write_json
from storqual.store.events import FIRST_DIGEST
from storqual.store.layout import dump_line
from storqual_core.quantities import format_size, parse_size

__all__ = ["SUITE", "Shape", "make_run"]

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

_BEGAN = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
_CPUS = 2
_TICK_NS = 10_000_000
_DRIVER = {"sym": "sym53c8xx", "mpt": "mptsas", "mega": "megaraid_sas"}


@dataclass(frozen=True)
class Shape:
    """What `make_run` builds; every field is an argument of it. Sizes in bytes, times in seconds."""

    run: str = "20261121T100000Z-synthetic-0001"
    bench: str = "vbench"
    kind: str = "virtual"
    adapters: Sequence[str] = ("sym", "mpt")
    points: Sequence[str] = POINTS
    suite: str = SUITE
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
    manifests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    statuses: Mapping[str, str] = field(default_factory=dict)
    """point, or adapter/point -> status of the candidate's samples there (refused, killed, short, io_error)."""
    missing: Sequence[str] = ()
    """point, or adapter/point: the candidate has no sample there."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """point, or adapter/point -> reason why it was not planned to be measured."""
    findings: Sequence[Mapping[str, Any]] = ()
    """Kernel-log findings of the first candidate session."""
    suspect: Mapping[str, str] = field(default_factory=dict)
    """point, or adapter/point -> why the candidate's samples there are suspect."""
    events: Sequence[Mapping[str, Any]] = ()
    """More events at the end, each with `kind`."""
    checks: Sequence[Mapping[str, Any]] = ()
    sectors_outside: int = 0
    settings: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """arm -> the `settings` of its provisioning record."""
    kernels: Mapping[str, str] = field(
        default_factory=lambda: {"baseline": "6.1.0-47-amd64", "candidate": "6.12.0-1-amd64"}
    )
    model: str = "ST336607LW"
    finished: bool = True


def make_run(folder: Path, **options: Any) -> Path:
    """Write `folder/<run id>/` as a finished campaign leaves it before judging; returns its path. See `Shape`."""
    shape = Shape(**options)
    path = folder / shape.run
    for name in ("inputs", "blocks", "raw"):
        (path / name).mkdir(parents=True, exist_ok=True)
    plan = _sessions(shape)
    samples = [sample for session in plan for sample in _samples(shape, session)]
    for sample in samples:
        raw = gzip.compress(json.dumps({"jobs": [], "sample": sample["id"]}).encode(), mtime=0)
        digest = sha256_of(raw)
        sample["raw"] = [{"path": f"raw/{digest}.json.gz", "sha256": digest}]
        write_bytes(path / "raw" / f"{digest}.json.gz", raw)
    write_bytes(path / "samples.jsonl", b"".join(dump_line(sample) for sample in samples))
    write_bytes(path / "checks.jsonl", b"".join(dump_line({"source": "pytest", **check}) for check in shape.checks))
    events = _events(shape, plan, samples)
    write_bytes(path / "events.jsonl", _chain(events))
    for session in plan:
        write_json(path / "blocks" / f"{session['blocks'][0]}.json", _block(shape, session))
    write_json(path / "run.json", _document(shape, path, plan, events))
    if shape.finished:
        from storqual.store import finish_run, read_run_json  # noqa: PLC0415 - reads what was just written

        finish_run(path)
        write_json(path / "run.json", {**read_run_json(path), "finished": _time(3600)})
    return path


def _time(seconds: float) -> str:
    return (_BEGAN + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _named(table: Mapping[str, Any] | Sequence[str], adapter: str, point: str) -> Any:
    """The entry for adapter/point, for the point, or for the adapter; None when there is none."""
    for name in (f"{adapter}/{point}", point, adapter):
        if name in table:
            return table[name] if isinstance(table, Mapping) else True
    return None


def _effect(shape: Shape, adapter: str, point: str) -> float:
    if callable(shape.effect):
        return shape.effect(adapter, point)
    if isinstance(shape.effect, Mapping):
        return float(_named(shape.effect, adapter, point) or 0.0)
    return float(shape.effect)


def _factors(point: str) -> tuple[str, dict[str, Any]]:
    """Workload and factors of a point's name."""
    workload, _, inside = point.rstrip("]").partition("[")
    factors: dict[str, Any] = {}
    for pair in filter(None, inside.split(",")):
        name, _, value = pair.partition("=")
        factors[name] = parse_size(value) if name == "bs" else int(value) if value.isdigit() else value
    return workload, factors


def _drive(adapter: str, number: int) -> str:
    return f"0x5000c500{sum(adapter.encode()):04x}{number:04x}"


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
    order = [(a, p) for a, p in order if _named(shape.skipped, a, p) is None]
    random.Random(f"{shape.seed}/{session['id']}").shuffle(order)
    number = int(session["id"][1:])
    for repeat in range(shape.launches):
        arms = session["arms"] if repeat % 2 == 0 else session["arms"][::-1]
        for adapter, point in order:
            for arm in arms:
                drives = [_drive(adapter, n) for n in range(int(_factors(point)[1].get("drives", 1)))]
                launches.append(
                    {
                        "index": len(launches),
                        "adapter": adapter,
                        "arm": arm,
                        "configuration": arm,
                        "point": point,
                        "n": (number - 1) * shape.launches + repeat + 1,
                        "drives": drives,
                        "fio": {"rw": "randread", "runtime_s": shape.runtime_s, "ramp_s": 0.5},
                    }
                )
    return launches


def _block(shape: Shape, session: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "schema": "storqual.block/1",
        "run": shape.run,
        "block": session["blocks"][0],
        "bench": shape.bench,
        "session": session["id"],
        "state_dir": "/var/lib/storqual",
        "targets": {},
        "idle_s": 1.0,
        "launches": _launches(shape, session),
    }


def _samples(shape: Shape, session: Mapping[str, Any]) -> list[dict[str, Any]]:
    random_source = random.Random(f"{shape.seed}/{session['id']}/noise")
    level = random_source.gauss(0.0, shape.session_effect)
    samples = []
    for launch in _launches(shape, session):
        candidate = launch["arm"] == shape.arms[1]
        if candidate and _named(shape.missing, launch["adapter"], launch["point"]):
            continue
        samples.append(_sample(shape, session, launch, level=level, random_source=random_source))
    return samples


def _sample(
    shape: Shape, session: Mapping[str, Any], launch: Mapping[str, Any], *, level: float, random_source: random.Random
) -> dict[str, Any]:
    adapter, point = launch["adapter"], launch["point"]
    candidate = launch["arm"] == shape.arms[1]
    workload, factors = _factors(point)
    status = (_named(shape.statuses, adapter, point) if candidate else None) or "ok"
    suspect = _named(shape.suspect, adapter, point) if candidate else None
    change = _effect(shape, adapter, point) if candidate else 0.0
    depth, drives, size = int(factors.get("iodepth", 1)), int(factors.get("drives", 1)), int(factors.get("bs", 4096))
    rate = 200.0 * drives * (1 + math.log2(depth)) / (1 + size / 262144)
    rate *= math.exp(level + random_source.gauss(0.0, shape.noise)) * (1 + change)
    fraction = {"ok": 1.0, "io_error": 1.0, "short": 0.5, "killed": 0.3, "refused": 0.0}[status]
    seconds = shape.runtime_s * fraction
    primitives = _primitives(shape, workload, rate, seconds, size=size, outstanding=depth * drives)
    if candidate:
        for name in ("fio_user_ns", "fio_system_ns"):
            primitives[name] = int(primitives[name] * (1 + shape.cpu_effect))
        primitives["cpuidle_ns"] -= int((primitives["fio_user_ns"] + primitives["fio_system_ns"]) * shape.cpu_effect)
    primitives["fio_errors"] = 1 if status == "io_error" else 0
    series = [rate * math.exp(random_source.gauss(0.0, shape.noise)) for _ in range(int(seconds))]
    start = (int(session["id"][1:]) - 1) * 120 + launch["index"] * 3.5
    return {
        "schema": "storqual.sample/1",
        "id": f"{session['blocks'][0]}/{launch['index']}",
        "bench": shape.bench,
        "adapter": adapter,
        "arm": launch["arm"],
        "configuration": launch["configuration"],
        "session": session["id"],
        "block": session["blocks"][0],
        "point": point,
        "n": launch["n"],
        "start": _time(start),
        "runtime_s": seconds,
        "status": status,
        "series": {"iops": [round(value, 3) for value in series]},
        "primitives": primitives,
        "suspect": [suspect] if suspect else [],
        "raw": [],
    }


def _primitives(
    shape: Shape, workload: str, rate: float, seconds: float, *, size: int, outstanding: int
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
        "asked_runtime_ns": int(shape.runtime_s * 1e9),
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


def _events(
    shape: Shape, plan: Sequence[Mapping[str, Any]], samples: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    facts = {"cpu": {"model": "QEMU Virtual CPU", "count": _CPUS}, "memory_bytes": 1 << 30, "accelerator": "tcg"}
    events: list[dict[str, Any]] = [
        {"time": _time(-60), "kind": "planned", "run": shape.run},
        {"time": _time(-50), "kind": "environment", "bench": shape.bench, "when": "before", "facts": facts},
    ]
    told = not shape.findings
    for number, session in enumerate(plan):
        block, arm = session["blocks"][0], session["arm"]
        common = {"bench": shape.bench, "session": session["id"]}
        boot = f"0000000{number}-0000-4000-8000-000000000000"
        begin = number * 120
        modules = {
            _DRIVER.get(alias, alias): {
                "srcversion": f"{sha256_of((alias + arm).encode())[:23].upper()}",
                "version": "1.0",
            }
            for alias in shape.adapters
        }
        events.append(
            {
                "time": _time(begin - 5),
                "kind": "session_started",
                **common,
                "boot_id": boot,
                "kernel": shape.kernels.get(arm, ""),
                "arm": arm,
                "provisioned": {"drivers": modules, "settings": list(shape.settings.get(arm, ()))},
            }
        )
        events.append({"time": _time(begin - 1), "kind": "block_started", **common, "block": block})
        findings = list(shape.findings) if not told and shape.arms[1] in session["arms"] else []
        told = told or bool(findings)
        disk = {"wwn": _drive(shape.adapters[0], 0), "claimed": True, "system": False}
        other = {"wwn": "0x5000c500ffff0001", "claimed": False, "system": False}
        disks = {
            "sda": {
                "wwn": None,
                "claimed": False,
                "system": True,
                "write_sectors_before": 0,
                "write_sectors_after": 800,
            },
            "sdb": {**disk, "write_sectors_before": 0, "write_sectors_after": 4096},
            "sdc": {
                **other,
                "write_sectors_before": 0,
                "write_sectors_after": shape.sectors_outside if number == 0 else 0,
            },
        }
        events.append(
            {
                "time": _time(begin + 100),
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
    events += [{"time": _time(3000), **event} for event in shape.events]
    events.append({"time": _time(3100), "kind": "environment", "bench": shape.bench, "when": "after", "facts": facts})
    events.append({"time": _time(3200), "kind": "restored", "bench": shape.bench})
    return events


def _chain(events: Sequence[Mapping[str, Any]]) -> bytes:
    previous = FIRST_DIGEST
    lines = []
    for event in events:
        line = dump_line({**event, "previous": previous})
        previous = sha256_of(line[:-1])
        lines.append(line)
    return b"".join(lines)


def _document(
    shape: Shape, path: Path, plan: Sequence[Mapping[str, Any]], events: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    inputs = {"suite": ("suite.yml", shape.suite)}
    arms = {}
    for arm in shape.arms:
        manifest = dict(
            shape.manifests.get(arm) or {"driver": {"kernel": {"package": f"linux-image-{shape.kernels[arm]}"}}}
        )
        # JSON is YAML 1.2
        inputs[arm] = (f"{arm}.drop.yml", json.dumps(manifest) + "\n")
        arms[arm] = {"drop": arm, "file": f"inputs/{arm}.drop.yml", "manifest": manifest}
    listed = {}
    for name, (file, text) in inputs.items():
        write_bytes(path / "inputs" / file, text.encode())
        listed[name] = {"file": f"inputs/{file}", "source": file, "sha256": sha256_of(text.encode())}
    for arm, entry in arms.items():
        entry["sha256"] = listed[arm]["sha256"]
    points = []
    for adapter in shape.adapters:
        for point in shape.points:
            workload, factors = _factors(point)
            points.append(
                {
                    "bench": shape.bench,
                    "adapter": adapter,
                    "point": point,
                    "workload": workload,
                    "factors": factors,
                    "drives": [_drive(adapter, number) for number in range(int(factors.get("drives", 1)))],
                    "varied": {},
                    "skipped": _named(shape.skipped, adapter, point) or "",
                }
            )
    adapters = {
        alias: {
            "model": f"{alias} adapter",
            "driver": _DRIVER.get(alias, alias),
            "pci": f"0000:00:{number + 5:02x}.0",
            "drives": [
                {"id": _drive(alias, n), "serial": f"{alias.upper()}{n:04d}", "model": shape.model, "size": 1 << 30}
                for n in range(4)
            ],
        }
        for number, alias in enumerate(shape.adapters)
    }
    suite_name = shape.run.split("-")[1]
    return {
        "schema": "storqual.run/1",
        "run": shape.run,
        "created": _time(-60),
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


def point_name(workload: str, **factors: Any) -> str:
    """The name of a point, for tests that build their own list."""
    inside = ",".join(
        f"{name}={format_size(value) if name == 'bs' else value}" for name, value in sorted(factors.items())
    )
    return f"{workload}[{inside}]"
