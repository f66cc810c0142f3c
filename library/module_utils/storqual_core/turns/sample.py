# SPDX-License-Identifier: Apache-2.0
"""Lines of a spool: a finished launch as a sample, with fio's own words beside it, and the kernel's log."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from typing import Any, Mapping, Sequence

from ..host.counters import TICK_NS, CounterSnapshot
from ..host.kernel_log import Finding, KernelLog, LogRule, Record, errors_of, find_all, texts
from .batch_file import Batch, LaunchTurn
from .derive import RECORD, RECORD_SCHEMA, SAMPLE_SCHEMA, derive, dump_snapshot
from .fio_job import FioAsk
from .launch import Curve, Launched, arrivals_per_s
from .readback import NOT_LOOKED, Looked

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
    return [*_other_programs(primitives), *_other_ios(ask, targets, primitives, wall, runtime), *_heat(primitives)]


def _other_programs(primitives: Mapping[str, Any]) -> list[str]:
    """Programs beside fio and ours, by the time that the system spent outside of the kernel."""
    needed = ("wall_ns", "runtime_ns", "stat_user_ticks", "tick_ns", "fio_user_ns")
    if not all(name in primitives for name in needed) or not primitives["wall_ns"] or not primitives["runtime_ns"]:
        return []
    wall, runtime = primitives["wall_ns"], primitives["runtime_ns"]
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
        fio_rate = primitives.get(f"{way}_bytes", 0) / runtime
        # what was outstanding at the window's ends, and a few more
        edge = (2 * ask.iodepth * ask.numjobs * targets + _MORE_IOS) * ask.bs / wall
        if moved - fio_rate > max(_MORE_BYTES * fio_rate, edge):
            sentence = f"the drives moved {1e3 * moved:.1f} MB/s in {way}s, fio {1e3 * fio_rate:.1f}"
            return [f"another load on the bench: {sentence}"]
    return []


def _heat(primitives: Mapping[str, Any]) -> list[str]:
    doubts = []
    if primitives.get("thermal_throttles"):
        doubts.append(f"processors were slowed down for heat {primitives['thermal_throttles']} times while it ran")
    before, after = primitives.get("cpu_khz_before"), primitives.get("cpu_khz_after")
    if before and after and after < _SLOWER_CLOCK * before:
        doubts.append(f"the processors' clock fell from {before / 1e6:.2f} to {after / 1e6:.2f} GHz while it ran")
    return doubts


_WINDOW_TOLERANCE = 0.2
_LEVEL = 6


def evidence(text: str, ending: str) -> tuple[dict[str, str], str]:
    """A text as a piece of evidence: how a sample names it, and its bytes (gzip, without a time) in base64.

    It is named by the SHA-256 of the bytes as stored.
    """
    data = gzip.compress(text.encode("utf-8", "replace"), compresslevel=_LEVEL, mtime=0)
    digest = hashlib.sha256(data).hexdigest()
    return {"path": f"raw/{digest}.{ending}.gz", "sha256": digest}, base64.b64encode(data).decode("ascii")


def _head(batch: Batch, launch: LaunchTurn, start: str) -> dict[str, Any]:
    return {
        "schema": SAMPLE_SCHEMA,
        "id": launch.id,
        "bench": batch.bench,
        "adapter": launch.adapter,
        "arm": launch.arm,
        "configuration": launch.configuration,
        "session": batch.session,
        "block": batch.block,
        "point": launch.point,
        "n": launch.n,
        "start": start,
    }


def make_sample(
    batch: Batch,
    launch: LaunchTurn,
    launched: Launched,
    *,
    start: str,
    seed: int,
    gone: bool,
    reason: str,
    suspect: Sequence[str],
    notes: Sequence[str],
    overhead_ns: int,
    idle: tuple[CounterSnapshot, CounterSnapshot] | None = None,
    curve: Curve | None = None,
    looked: Looked = NOT_LOOKED,
) -> tuple[dict[str, Any], dict[str, str]]:
    """The sample and its artifacts: what fio wrote, and the record that the sample is derived from.

    `gone` says that a drive of the launch is no longer there. `idle` are the counters around the idle bench, `curve`
    is the search that the launch stands for, `looked` what was read back after it.
    """
    result = launched.result
    status = "lost" if gone else result.status
    doubts: list[str] = ([reason] if reason else []) + [
        *result.suspect,
        *suspect,
        *_window_doubt(launched, status),
        *looked.doubts,
    ]
    beside: list[str] = []
    if status == "ok" and launch.load is None and launch.file_system is None:
        counted = {**result.primitives, **launched.counted}
        others = _other_programs(counted)
        beside = others if launch.paced_iops else []
        doubts += [
            doubt for doubt in environment_doubts(launch.fio, len(launch.drives), counted) if doubt not in beside
        ]
    kept = _Kept()
    runs, chosen = _runs(launched, curve, kept)
    for text in launched.logs.values():
        kept.add(text, "log")
    record = {
        "schema": RECORD_SCHEMA,
        "run": batch.run,
        "launch": _head(batch, launch, start),
        "runs": runs,
        "chosen": chosen,
        "search": None if curve is None else curve.search_fields(),
        "asked_s": launch.fio.runtime_s,
        "arrivals_per_s": arrivals_per_s(launch.fio, len(launch.drives)),
        "log_ms": launched.log_ms,
        "iops_logs": list(launched.iops_logs),
        "tick_ns": TICK_NS,
        "before": dump_snapshot(launched.before),
        "after": dump_snapshot(launched.after),
        "idle": None if idle is None else [dump_snapshot(snapshot) for snapshot in idle],
        "overhead_ns": overhead_ns,
        "gone": gone,
        "reason": reason,
        "suspect": doubts,
        "notes": [*result.notes, *notes],
        "data": {"readback": kept.add(looked.text, "readback"), "reason": looked.reason},
        "seed": seed,
        # what puts it in doubt unless it kept its pace, which follows from its series
        **({"paced": {"iops": launch.paced_iops, "beside": beside}} if launch.paced_iops else {}),
    }
    sample = derive(record, kept.texts)
    kept.add(json.dumps(record, separators=(",", ":"), allow_nan=False), RECORD)
    return {**sample, "raw": kept.named}, kept.artifacts


class _Kept:
    """The evidence of a launch: how the sample names it, its bytes, and each text by the name that it has there."""

    def __init__(self) -> None:
        self.named: list[dict[str, str]] = []
        self.artifacts: dict[str, str] = {}
        self.texts: dict[str, str] = {}

    def add(self, text: str, ending: str) -> str:
        """Keep a text; its name, empty for an empty one."""
        if not text:
            return ""
        name, data = evidence(text, ending)
        if name["path"] not in self.artifacts:
            self.named.append(name)
        self.artifacts[name["path"]] = data
        self.texts[name["path"]] = text
        return name["path"]


def _runs(launched: Launched, curve: Curve | None, kept: _Kept) -> tuple[list[dict[str, Any]], int]:
    """Each fio process of a launch for its record, and which of them stands for it: the others wrote no log."""
    every = [(None, launched)] if curve is None else list(curve.runs)
    chosen = next(number for number, (_, process) in enumerate(every) if process is launched)
    listed: list[dict[str, Any]] = []
    for load, process in every:
        listed.append(
            {
                "load": load,
                "output": kept.add(process.output, "json" if process.result.version else "txt"),
                "errors": kept.add(process.errors, "txt") if process is launched else "",
                "exit_status": process.exit_status,
                "in_time": process.in_time,
                "wall_ns": process.wall_ns,
                "asked_s": process.asked_s,
            }
        )
    return listed, chosen


def lost_sample(batch: Batch, launch: LaunchTurn, *, start: str, reason: str) -> dict[str, Any]:
    """The record of a launch that cannot be run any more, and why; it has no numbers."""
    return {
        **_head(batch, launch, start),
        "runtime_s": 0.0,
        "status": "lost",
        "reason": reason,
        "series": {"iops": []},
        "primitives": {"asked_runtime_ns": round(launch.fio.runtime_s * 1e9)},
        "suspect": [reason],
        "notes": [],
        "data": {"reason": reason},
        "seed": 0,
        "raw": [],
    }


def _window_doubt(launched: Launched, status: str) -> list[str]:
    wall, runtime = launched.counted.get("wall_ns"), launched.result.primitives.get("runtime_ns", 0)
    if status != "ok" or wall is None or abs(wall - runtime) <= max(_WINDOW_TOLERANCE * runtime, 1e8):
        return []
    return [f"the processor was watched for {wall / 1e9:.2f} s, fio measured for {runtime / 1e9:.2f} s"]


class LogReport:
    """What the kernel said since it was last asked: spool lines, and sentences that put a sample in doubt."""

    def __init__(self, lines: list[dict[str, Any]], doubts: list[str]) -> None:
        self.lines = lines
        self.doubts = doubts


def report_log(log: KernelLog, launch: LaunchTurn | None, time: str, rules: tuple[LogRule, ...] = ()) -> LogReport:
    """The kernel's log since the last call; `launch` is what ran meanwhile, if anything did.

    `rules` are the bench's own.
    """
    overflows = log.overflowed
    records = log.read()
    findings = find_all((record.text for record in records if record.from_kernel), rules)
    doubts = [finding.sentence() for finding in errors_of(findings)]
    if log.overflowed != overflows:
        doubts.append("kernel log: it overflowed, some of its lines were never read")
    return LogReport([_log_line(records, findings, launch, time)] if records else [], doubts)


def _log_line(records: list[Record], findings: list[Finding], launch: LaunchTurn | None, time: str) -> dict[str, Any]:
    where = {} if launch is None else {"launch": launch.index, "adapter": launch.adapter, "point": launch.point}
    return {
        "kind": "log",
        "launch": None if launch is None else launch.index,
        "kernel_log": texts(records),
        "findings": [
            {
                "kind": finding.kind,
                "severity": finding.severity,
                "line": finding.lines[0],
                "lines": list(finding.lines),
                "count": finding.count,
                "time": time,
                **where,
            }
            for finding in findings
        ],
    }
