# SPDX-License-Identifier: Apache-2.0
"""Points that dd or sg_dd reads in fio's place: what they cannot do, and what nobody can judge there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.inputs.inventory import Bench
from storqual.inputs.suite import Suite, applies
from storqual.inputs.yaml_file import Document, read_yaml
from storqual.metrics import METRICS
from storqual.plan.fraction import Placed
from storqual.plan.points import Pattern
from storqual_core.turns.fio_job import COPIES

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
        for sentence in _objections(one.point.pattern)
    ):
        keys = ("workloads", workload)
        only = f"engine {engine} only does plain sequential reads of a drive"
        yield document.about(keys, f"workload {workload} cannot be measured: {only}, and {sentence}")
    for bench in (bench for bench in benches if bench.kind == "local"):
        engine = copied[0].point.pattern.values["engine"]
        yield f"{path}: engine {engine} needs drives, and {bench.name} has files: {_FILES}"
    yield from _criteria(suite, document, copied)


_FILES = "on a local bench fio sets the pace, which this program cannot do"


def _objections(pattern: Pattern) -> Iterator[str]:
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


def _criteria(suite: Suite, document: Document, copied: Sequence[Placed]) -> Iterator[str]:
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
