# SPDX-License-Identifier: Apache-2.0
"""Points at which every launch would end with an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from storqual.inputs.inventory import Bench
from storqual.inputs.suite import Suite
from storqual.inputs.yaml_file import Keys, read_yaml
from storqual.plan.points import Pattern, points_of
from storqual.plan.settable import Facts

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
    claimed = {drive.id for alias in aliases for drive in bench.adapters[alias].claimed}
    told: list[dict[str, Any]] = [
        one for one in facts.get(bench.name, {}).get("drives") or () if one["id"] in claimed
    ]
    sizes = [(int((one.get("block") or {}).get("logical_block_size") or 0), str(one["id"])) for one in told]
    return max([one for one in sizes if one[0] > _SECTOR], default=(_SECTOR, ""))
