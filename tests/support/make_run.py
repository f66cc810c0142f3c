# SPDX-License-Identifier: Apache-2.0
"""Complete run directories with chosen effects and failures, without a bench; equal arguments give equal bytes."""

import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.inputs import read_drop
from storqual.run import sha256_of, write_bytes, write_json
from storqual.run.closing import close_run
from storqual.run.layout import RUN_SCHEMA, dump_line
from tests.support.batches import launch_turn
from tests.support.sealed_run import chained, fio_of, lines_of, sealed
from tests.support.synthetic_shape import DRIVERS, Shape, drive_id, events_of, factors_of, named, primitives, time_at


def add_reference(path: Path, share: float) -> None:
    """Give a run a launch on a golden reference, and a history whose limits are 5 % around `share` of its IOPS."""
    document = json.loads((path / "run.json").read_text(encoding="utf-8"))
    document["benches"]["vbench"]["reference"] = "0x5"
    document["inputs"]["history"] = {"file": "inputs/history.json", "source": "runs", "sha256": "0" * 64}
    write_json(path / "run.json", document)
    lines = (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    sample = json.loads(lines[0])
    iops = sum(sample["primitives"].get(f"{way}_ios", 0) for way in ("read", "write")) / sample["runtime_s"]
    more = json.dumps({**sample, "id": "s01-b01/900", "point": "golden_reference"}, separators=(",", ":"))
    (path / "samples.jsonl").write_text("\n".join([*lines, more]) + "\n", encoding="utf-8")
    limits = {"bench": "vbench", "drive": "0x5", "low": 0.95 * share * iops, "high": 1.05 * share * iops}
    extract = {"schema": "storqual.history/1", "noise": [], "reference": [limits]}
    write_json(path / "inputs" / "history.json", extract)


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
    suite = re.sub(r"^name: .*$", f"name: {shape.run.split('-')[1]}", shape.suite, count=1, flags=re.MULTILINE)
    inputs = {"suite": ("suite.yml", suite), **({"gate": ("gate.yml", shape.gate)} if shape.gate else {})}
    inputs["inventory"] = ("inventory.json", json.dumps({shape.bench: {"kind": shape.kind}}))
    arms: dict[str, dict[str, Any]] = {}
    for arm in shape.arms:
        manifest = dict(
            shape.manifests.get(arm) or {"driver": {"kernel": {"package": f"linux-image-{shape.kernels[arm]}"}}}
        )
        # JSON is YAML 1.2
        inputs[arm] = (f"{arm}.drop.yml", json.dumps({"name": shape.drops.get(arm, arm), **manifest}) + "\n")
        arms[arm] = {"drop": shape.drops.get(arm, arm), "file": f"inputs/{arm}.drop.yml"}
    listed = {}
    for name, (file, text) in inputs.items():
        write_bytes(path / "inputs" / file, text.encode())
        listed[name] = {"file": f"inputs/{file}", "source": file, "sha256": sha256_of(text.encode())}
    for arm, entry in arms.items():
        drop, _ = read_drop(path / entry["file"])
        # a page can be made of a drop that no campaign would be planned with
        entry |= {"sha256": listed[arm]["sha256"], "manifest": drop.to_json() if drop else shape.manifests[arm]}
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
