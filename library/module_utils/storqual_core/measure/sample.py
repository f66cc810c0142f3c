# SPDX-License-Identifier: Apache-2.0
"""A finished launch as a line of the spool: the sample, and fio's own words beside it as evidence."""

from __future__ import annotations

import base64
import gzip
import hashlib
from typing import Any, Mapping, Sequence

from .batch_file import Block, Launch
from .fio_job import FioAsk
from .launch import Launched

_FOREIGN_PROCESSORS = 0.5
_FOREIGN_SHARE = 0.1
"""Of fio's own: its time is measured, the system's is sampled by the tick."""
_MORE_BYTES = 0.1
_MORE_IOS = 32
_SLOWER_CLOCK = 0.9
_SECTOR = 512


def environment_doubts(ask: FioAsk, targets: int, primitives: Mapping[str, Any]) -> list[str]:
    """Sentences about one launch on so many targets; none where nothing was counted."""
    wall, runtime = primitives.get("wall_ns"), primitives.get("runtime_ns")
    if not wall or not runtime:
        return []
    return [
        *_other_programs(primitives, wall, runtime),
        *_other_ios(ask, targets, primitives, wall, runtime),
        *_heat(primitives),
    ]


def _other_programs(primitives: Mapping[str, Any], wall: int, runtime: int) -> list[str]:
    """Programs beside fio and ours, by the time that the system spent outside of the kernel."""
    needed = ("stat_user_ticks", "tick_ns", "fio_user_ns")
    if any(name not in primitives for name in needed):
        return []
    ticks = primitives["stat_user_ticks"] + primitives.get("stat_nice_ticks", 0)
    fio = primitives["fio_user_ns"] / runtime
    others = (ticks * primitives["tick_ns"] - primitives.get("own_cpu_ns", 0)) / wall - fio
    if others <= max(_FOREIGN_PROCESSORS, _FOREIGN_SHARE * fio):
        return []
    return [f"another load on the bench: programs beside fio used {others:.2f} processors while it ran"]


def _other_ios(ask: FioAsk, targets: int, primitives: Mapping[str, Any], wall: int, runtime: int) -> list[str]:
    """I/O of somebody else on the launch's own drives. Buffered I/O is not counted by fio as the drives see it."""
    if not ask.direct or "disk_read_sectors" not in primitives:
        return []
    for way in ("read", "write"):
        moved = primitives.get(f"disk_{way}_sectors", 0) * _SECTOR / wall
        asked = primitives.get(f"{way}_bytes", 0) / runtime
        # what was outstanding at the window's ends, and a few more
        edge = (2 * ask.iodepth * ask.numjobs * targets + _MORE_IOS) * ask.bs / wall
        if moved - asked > max(_MORE_BYTES * asked, edge):
            told = f"the drives moved {1e3 * moved:.1f} MB/s in {way}s, fio {1e3 * asked:.1f}"
            return [f"another load on the bench: {told}"]
    return []


def _heat(primitives: Mapping[str, Any]) -> list[str]:
    """Processors that were slowed down."""
    said = []
    if primitives.get("thermal_throttles"):
        said.append(f"processors were slowed down for heat {primitives['thermal_throttles']} times while it ran")
    before, after = primitives.get("cpu_khz_before"), primitives.get("cpu_khz_after")
    if before and after and after < _SLOWER_CLOCK * before:
        said.append(f"the processors' clock fell from {before / 1e6:.2f} to {after / 1e6:.2f} GHz while it ran")
    return said


SCHEMA = "storqual.sample/1"
_WINDOW_TOLERANCE = 0.2
_LEVEL = 6


def evidence(text: str, ending: str) -> tuple[dict[str, str], str]:
    """A text as a piece of evidence: how a sample names it, and its bytes (gzip, without a time) in base64.

    It is named by the SHA-256 of the bytes as stored.
    """
    data = gzip.compress(text.encode("utf-8", "replace"), compresslevel=_LEVEL, mtime=0)
    digest = hashlib.sha256(data).hexdigest()
    return {"path": f"raw/{digest}.{ending}.gz", "sha256": digest}, base64.b64encode(data).decode("ascii")


def _head(block: Block, launch: Launch, start: str) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "id": f"{block.block}/{launch.index}",
        "bench": block.bench,
        "adapter": launch.adapter,
        "arm": launch.arm,
        "configuration": launch.configuration,
        "session": block.session,
        "block": block.block,
        "point": launch.point,
        "n": launch.n,
        "start": start,
    }


def make_sample(
    block: Block,
    launch: Launch,
    launched: Launched,
    *,
    start: str,
    seed: int,
    status: str,
    reason: str,
    suspect: Sequence[str],
    notes: Sequence[str],
    extra: Mapping[str, Any],
    beside: Sequence[tuple[str, str]] = (),
) -> tuple[dict[str, Any], dict[str, str]]:
    """The sample and its artifacts. `extra` are primitives that are not the launch's own: overhead, idle window.

    `beside` are texts (with their type) of other launches that the sample rests on.
    """
    result = launched.result
    doubts: list[str] = ([reason] if reason else []) + [*result.suspect, *suspect, *_window_doubt(launched, status)]
    if status == "ok" and launch.load is None and launch.file_system is None:
        counted = {**result.primitives, **launched.counted}
        doubts += environment_doubts(launch.fio, len(launch.drives), counted)
    artifacts: dict[str, str] = {}
    raw = []
    ending = "json" if result.version else "txt"
    texts = [(launched.output, ending), (launched.errors, "txt"), *((text, "log") for text in launched.logs.values())]
    texts += beside
    for text, kind in texts:
        if text:
            name, data = evidence(text, kind)
            raw.append(name)
            artifacts[name["path"]] = data
    runtime_ns = int(result.primitives.get("runtime_ns", 0))
    return {
        **_head(block, launch, start),
        "runtime_s": runtime_ns / 1e9,
        "status": status,
        "reason": reason,
        "series": {"iops": list(launched.series)},
        "primitives": {
            **result.primitives,
            "asked_runtime_ns": round(launch.fio.runtime_s * 1e9),
            "fio_wall_ns": launched.wall_ns,
            **launched.counted,
            **extra,
        },
        "suspect": doubts,
        "notes": [*result.notes, *notes],
        "seed": seed,
        "raw": raw,
    }, artifacts


def lost_sample(block: Block, launch: Launch, *, start: str, reason: str) -> dict[str, Any]:
    """The record of a launch that cannot be run any more, and why; it has no numbers."""
    return {
        **_head(block, launch, start),
        "runtime_s": 0.0,
        "status": "lost",
        "reason": reason,
        "series": {"iops": []},
        "primitives": {"asked_runtime_ns": round(launch.fio.runtime_s * 1e9)},
        "suspect": [reason],
        "notes": [],
        "seed": 0,
        "raw": [],
    }


def _window_doubt(launched: Launched, status: str) -> list[str]:
    """A sentence when the processor's window is not fio's."""
    wall, runtime = launched.counted.get("wall_ns"), launched.result.primitives.get("runtime_ns", 0)
    if status != "ok" or wall is None or abs(wall - runtime) <= max(_WINDOW_TOLERANCE * runtime, 1e8):
        return []
    return [f"the processor was watched for {wall / 1e9:.2f} s, fio measured for {runtime / 1e9:.2f} s"]
