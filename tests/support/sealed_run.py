# SPDX-License-Identifier: Apache-2.0
"""A run's files made to agree again after a test wrote samples, batches or events as it wants them.

Each sample gets fio's output and a record that it is derived from, each batch its digest, and the chain its links.
"""

import base64
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from storqual.run import sha256_of, write_bytes, write_json
from storqual.run.closing import close_run, plan_digest
from storqual.run.collect import batch_digest
from storqual.run.events import FIRST_DIGEST
from storqual.run.layout import dump_line
from storqual_core.turns.batch_file import SCHEMA
from storqual_core.turns.derive import SAMPLE_SCHEMA
from tests.support.synthetic_shape import factors_of, spooled_launch

_AGAIN = ("closed", "judged", "published")


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def chained(path: Path, events: Iterable[Mapping[str, Any]]) -> None:
    previous, text = FIRST_DIGEST, b""
    for event in events:
        head = {"time": event.get("time"), "kind": event.get("kind")}
        line = dump_line({**head, **event, "previous": previous})
        previous, text = sha256_of(line[:-1]), text + line
    write_bytes(path, text)


def fio_of(point: str, runtime_s: float) -> dict[str, Any]:
    workload, factors = factors_of(point)
    rw = {"rand": "rand", "seq_": ""}.get(workload[:4], "rand") + ("write" if "write" in workload else "read")
    bs, iodepth = int(factors.get("bs") or 4096), int(factors.get("iodepth") or 1)
    return {"rw": rw, "bs": bs, "iodepth": iodepth, "runtime_s": runtime_s, "ramp_s": 0.5}


def sealed(run: Path, *, close: bool = True) -> Path:
    """Make the run whole again over what its samples, batches and events say now; returns it."""
    samples = lines_of(run / "samples.jsonl")
    by_batch: dict[str, list[dict[str, Any]]] = {}
    for sample in samples:
        by_batch.setdefault(str(sample["block"]), []).append(sample)
    shutil.rmtree(run / "raw", ignore_errors=True)
    (run / "raw").mkdir()
    made: dict[str, bytes] = {}
    for name, listed in by_batch.items():
        block = _block_of(run, name, listed)
        write_json(run / "blocks" / f"{name}.json", block)
        made |= {sample["id"]: _line(run, block, sample) for sample in listed}
    write_bytes(run / "samples.jsonl", b"".join(made[sample["id"]] for sample in samples))
    digests = {name: [sha256_of(made[sample["id"]][:-1]) for sample in listed] for name, listed in by_batch.items()}
    document = json.loads((run / "run.json").read_bytes())
    files = {path.name: sha256_of(path.read_bytes()) for path in sorted((run / "blocks").iterdir())}
    events = [event for event in lines_of(run / "events.jsonl") if event["kind"] not in _AGAIN]
    for event in events:
        if event["kind"] == "planned":
            event |= {"plan_sha256": plan_digest(document), "blocks": files}
        elif event["kind"] == "block_started":
            event["file_sha256"] = files[f"{event['block']}.json"]
        elif event["kind"] == "block_finished":
            told = digests.get(event["block"], [])
            event |= {"samples": len(told), "sha256": batch_digest(told)}
    chained(run / "events.jsonl", events)
    if close:
        close_run(run)
    return run


def _block_of(run: Path, name: str, samples: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The file of a batch, whose launches are those of the samples; the others stay."""
    path = run / "blocks" / f"{name}.json"
    block: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {"turns": []}
    launches = {int(launch["index"]): launch for launch in block["turns"]}
    for sample in samples:
        index = int(sample["id"].rpartition("/")[2])
        asked = sample["primitives"].get("asked_runtime_ns", 2_000_000_000) / 1e9
        before = launches.get(index, {})
        launches[index] = {
            "kind": "launch",
            **before,
            "index": index,
            "id": f"{name}/{index}",
            **{key: sample[key] for key in ("adapter", "arm", "configuration", "point", "n")},
            "drives": before.get("drives") or ["d0"],
            "request": before.get("request") or {"fio": fio_of(sample["point"], asked)},
        }
        block |= {key: sample[key] for key in ("bench", "session", "block")}
    drives = {drive for launch in launches.values() for drive in launch["drives"]}
    return {
        "schema": SCHEMA,
        "spool": "durable",
        "run": json.loads((run / "run.json").read_bytes())["run"],
        "state_dir": "/var/lib/storqual",
        "idle_s": 1.0,
        **block,
        "targets": {drive: {} for drive in sorted(drives)},
        "turns": [launches[index] for index in sorted(launches)],
    }


def _line(run: Path, block: Mapping[str, Any], sample: Mapping[str, Any]) -> bytes:
    """The line of a sample as it is derived; its evidence is written to raw/."""
    if sample["status"] == "lost":
        asked = {"asked_runtime_ns": sample["primitives"].get("asked_runtime_ns", 2_000_000_000)}
        lost = {"schema": SAMPLE_SCHEMA, "series": {"iops": []}, "primitives": asked, "raw": [], "runtime_s": 0.0}
        return dump_line({**sample, **lost})
    spooled = spooled_launch(
        block,
        int(sample["id"].rpartition("/")[2]),
        str(sample["start"]),
        sample["series"].get("iops") or [],
        sample["primitives"],
        sample.get("suspect") or (),
        status=str(sample["status"]),
    )
    for path, data in spooled["artifacts"].items():
        (run / path).write_bytes(base64.b64decode(data))
    return dump_line(spooled["sample"])
