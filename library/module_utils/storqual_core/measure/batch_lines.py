# SPDX-License-Identifier: Apache-2.0
"""The first and the last line of a block's spool, and the lines of the kernel's log between."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Mapping

from ..guard.writes import Reading, end_line
from ..host.counters import adapter_vectors, ticks_are_measured
from ..host.kernel_log import KernelLog, Record, texts
from ..host.log_findings import Finding, find_all
from ..host.log_rule import Rule
from .batch_file import Block, Launch
from .fio_job import FioTarget
from .targets import Place


@dataclass(frozen=True)
class BlockEnd:
    """How a block ended: done, refused (by the guard), stopped (and why) or lost (the bench was reset)."""

    outcome: str
    message: str

    @property
    def exit_code(self) -> int:
        """The bench program's exit status."""
        return {"done": 0, "lost": 0, "refused": 4}.get(self.outcome, 2)


class LogReport:
    """What the kernel said since it was last asked: spool lines, and sentences that put a sample in doubt."""

    def __init__(self, lines: list[dict[str, Any]], doubts: list[str]) -> None:
        self.lines = lines
        self.doubts = doubts


def now() -> str:
    """The time as spools have it: ISO, UTC, milliseconds."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def start_of(
    block: Block,
    *,
    time: str,
    boot: str,
    fio: str,
    samples_before: int,
    log: KernelLog,
    targets: Mapping[str, FioTarget],
    places: Mapping[str, Place],
    disks: Reading,
) -> dict[str, Any]:
    """The spool's first line: which bench, boot and tools, which nodes, every disk's written sectors."""
    kernel = platform.release()
    addresses = sorted({address for place in places.values() for address in place.adapters})
    return {
        "kind": "start",
        "run": block.run,
        "block": block.block,
        "bench": block.bench,
        "session": block.session,
        "time": time,
        "boot_id": boot,
        "kernel": kernel,
        "fio": fio,
        "python": platform.python_version(),
        "pid": os.getpid(),
        "samples_before": samples_before,
        "kernel_log": log.reason or log.marker_reason,
        "ticks_are_measured": ticks_are_measured(kernel),
        "targets": {name: target.node for name, target in targets.items()},
        "interrupts": {address: list(adapter_vectors([address])) for address in addresses},
        "disks": disks.record(),
    }


def end_of(
    outcome: str,
    message: str,
    *,
    boot: str,
    log: KernelLog,
    lost_drives: Mapping[str, str],
    overhead_s: float,
    disks: tuple[Reading, Reading] | None,
    claimed: set[str],
) -> dict[str, Any]:
    """The spool's last line: how the block ended, and what was written to every disk of the bench meanwhile."""
    line: dict[str, Any] = {
        "kind": "end",
        "outcome": outcome,
        "message": message,
        "time": now(),
        "boot_id": boot,
        "lost_drives": dict(lost_drives),
        "kernel_log_overflows": log.overflowed,
        "kernel_log_reason": log.reason,
        "overhead_s": overhead_s,
    }
    if disks is not None:
        line["disks"] = end_line(disks[0], disks[1], claimed)
    return line


def report_log(log: KernelLog, launch: Launch | None, time: str, rules: tuple[Rule, ...] = ()) -> LogReport:
    """The kernel's log since the last call; `launch` is what ran meanwhile, if anything did.

    `rules` are the bench's own.
    """
    overflows = log.overflowed
    records = log.read()
    findings = find_all((record.text for record in records if record.from_kernel), rules)
    doubts = [finding.sentence() for finding in findings]
    if log.overflowed != overflows:
        doubts.append("kernel log: it overflowed, some of its lines were never read")
    return LogReport([_log_line(records, findings, launch, time)] if records else [], doubts)


def _log_line(records: list[Record], findings: list[Finding], launch: Launch | None, time: str) -> dict[str, Any]:
    where = {} if launch is None else {"launch": launch.index, "adapter": launch.adapter, "point": launch.point}
    return {
        "kind": "log",
        "launch": None if launch is None else launch.index,
        "kernel_log": texts(records),
        "findings": [
            {
                "kind": finding.kind,
                "line": finding.lines[0],
                "lines": list(finding.lines),
                "count": finding.count,
                "time": time,
                **where,
            }
            for finding in findings
        ],
    }
