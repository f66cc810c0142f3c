# SPDX-License-Identifier: Apache-2.0
"""Points at which every launch would end with an error, with fio or with a copy program in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.inputs.inventory import Bench
from storqual.inputs.suite import Suite, applies
from storqual.inputs.yaml_file import Document, Keys, read_yaml
from storqual.metrics import METRICS
from storqual.plan.fraction import Placed
from storqual.plan.points import Pattern, points_of
from storqual.plan.settable import Facts
from storqual_core.turns.fio_job import COPIES

_SECTOR = 512
"""The smallest logical block of any drive (bytes)."""

_SCSI = "sg"
_FILE_SYSTEMS = ("xfs", "ext4")


def launch_problems(
    suite: Suite, path: Path, chosen: Sequence[tuple[Bench, Sequence[str]]], facts: Facts
) -> Iterator[str]:
    """What of a suite's points fio would refuse; how long a logical block is, facts know."""
    document = read_yaml(path)
    block, where = max((_largest_block(bench, aliases, facts) for bench, aliases in chosen), default=(_SECTOR, ""))
    told: dict[tuple[Keys, str], None] = {}
    for point in points_of(suite):
        # what a copy program cannot do is told with the other things that it cannot
        if point.pattern["engine"] in COPIES:
            continue
        size = int(point.pattern.values["bs"])
        if size % block and (point.pattern["direct"] or point.pattern["engine"] == _SCSI):
            buffered = "" if point.pattern["engine"] == _SCSI else ", or `direct: false`"
            told[_keys(suite, point.workload, "bs"), _unaligned(size, block, where) + buffered] = None
        files = _not_drives(point.pattern, chosen) if point.pattern["engine"] == _SCSI else ""
        if files:
            sentence = f"engine sg sends SCSI commands to drives, and {files}; use libaio or psync"
            told[_keys(suite, point.workload, "engine"), sentence] = None
    for keys, sentence in told:
        yield document.about(keys, sentence)


def _unaligned(size: int, block: int, where: str) -> str:
    has = f", because drive {where} has logical blocks of that size" if where else ""
    return f"a block size of {size} bytes cannot be used with direct I/O; use a multiple of {block}{has}"


def _not_drives(pattern: Pattern, chosen: Sequence[tuple[Bench, Sequence[str]]]) -> str:
    """Why the targets are files; empty where they are drives or volumes."""
    target = str(pattern["target"])
    if target.startswith(_FILE_SYSTEMS):
        return f"target {target} is a file"
    local = [bench.name for bench, _ in chosen if bench.kind == "local"]
    return f"{local[0]} has files" if local else ""


def _keys(suite: Suite, workload: str, name: str) -> Keys:
    """Where a parameter of a workload was written."""
    declared = suite.workloads[workload]
    if name in declared.factors:
        return ("workloads", workload, "factors", name)
    return ("defaults", name) if getattr(declared, name) is None else ("workloads", workload, name)


def _largest_block(bench: Bench, aliases: Sequence[str], facts: Facts) -> tuple[int, str]:
    """The largest logical block of the drives under test that the bench told, and its drive."""
    claimed = {drive.id for alias in aliases for drive in bench.adapters[alias].claimed}
    told: list[dict[str, Any]] = [
        one for one in facts.get(bench.name, {}).get("drives") or () if one["id"] in claimed
    ]
    sizes = [(int((one.get("block") or {}).get("logical_block_size") or 0), str(one["id"])) for one in told]
    return max([one for one in sizes if one[0] > _SECTOR], default=(_SECTOR, ""))


_UNTOLD = frozenset(
    {f"{way}_{name}" for way in ("read", "write") for name in ("lat_sum_ns", "lat_max_ns", "bins")}
    | {"iops", "fio_user_ns", "fio_system_ns", "fio_context_switches", "load_steps", "open_loop"}
)
"""Primitives and series of fio that a copy program has no word for."""


def copy_problems(suite: Suite, path: Path, placed: Sequence[Placed], benches: Sequence[Bench]) -> Iterator[str]:
    """What of the points with a copy program cannot be measured, and criteria there that it cannot answer."""
    copied = [one for one in placed if one.point.pattern.values.get("engine") in COPIES]
    if not copied:
        return
    document = read_yaml(path)
    for workload, engine, sentence in dict.fromkeys(
        (one.point.workload, str(one.point.pattern.values["engine"]), sentence)
        for one in copied
        for sentence in _beyond_copying(one.point.pattern)
    ):
        keys = ("workloads", workload)
        only = f"engine {engine} only does plain sequential reads of a drive"
        yield document.about(keys, f"workload {workload} cannot be measured: {only}, and {sentence}")
    for bench in (bench for bench in benches if bench.kind == "local"):
        engine = copied[0].point.pattern.values["engine"]
        yield f"{path}: engine {engine} needs drives, and {bench.name} has files: {_FILES}"
    yield from _untold_criteria(suite, document, copied)


_FILES = "on a local bench fio sets the pace, which this program cannot do"


def _beyond_copying(pattern: Pattern) -> Iterator[str]:
    """What a pattern asks beyond sequential reads of drives, one at a time."""
    values: Mapping[str, Any] = pattern.values
    if values["rw"] != "read":
        yield f"rw is {values['rw']}"
    for name in ("iodepth", "numjobs"):
        if values[name] != 1:
            yield f"{name} is {values[name]}"
    if values["direct"] is not True:
        yield "direct is false"
    if values["target"] not in ("raw", "volume"):
        yield f"target is {values['target']}"
    if values["bs"] % 512:
        yield f"bs is {values['bs']}, which is not a multiple of 512"
    if values["rate_iops"] is not None or pattern.load is not None:
        yield "its load is regulated"
    if pattern.options:
        yield f"it has fio options ({', '.join(sorted(pattern.options))})"


def _untold_criteria(suite: Suite, document: Document, copied: Sequence[Placed]) -> Iterator[str]:
    """Criteria on what these programs do not tell: latency, seconds, fio's own time."""
    for number, criterion in suite.numbered:
        metric = METRICS.get(criterion.metric)
        if metric is None or not any(set(need.split("|")) <= _UNTOLD for need in metric.needs):
            continue
        for one in copied:
            point = one.point
            if applies(criterion, point.workload, dict(point.factors), one.adapter):
                engine = point.pattern.values["engine"]
                untold = f"engine {engine} does not report {criterion.name}, which is judged at {point.name}"
                remedy = (
                    "use IOPS, throughput or CPU time per I/O, or limit the criterion to engines of fio with `at`"
                )
                yield document.about(("criteria", number), f"{untold}; {remedy}")
                break
