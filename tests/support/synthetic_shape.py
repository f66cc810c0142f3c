# SPDX-License-Identifier: Apache-2.0
"""What a synthetic run is to be like, and the names that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from storqual_core.kit.quantities import format_size, parse_size

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
    """Workload and factors of a point's name."""
    workload, _, inside = point.rstrip("]").partition("[")
    factors: dict[str, Any] = {}
    for pair in filter(None, inside.split(",")):
        name, _, value = pair.partition("=")
        factors[name] = parse_size(value) if name == "bs" else int(value) if value.isdigit() else value
    return workload, factors


def drive_id(adapter: str, number: int) -> str:
    """The WWN of a drive."""
    return f"0x5000c500{sum(adapter.encode()):04x}{number:04x}"


def point_name(workload: str, **factors: Any) -> str:
    """The name of a point, for tests that build their own list."""
    inside = ",".join(
        f"{name}={format_size(value) if name == 'bs' else value}" for name, value in sorted(factors.items())
    )
    return f"{workload}[{inside}]"
