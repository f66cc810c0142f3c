# SPDX-License-Identifier: Apache-2.0
"""What was not tested, as prominent as what was: points and levels left out, adapters, tails, faults, endurance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from storqual.base.factor_names import level_text
from storqual.metrics import METRICS
from storqual.plan.points import points_of
from storqual.report.criterion import Criterion, place_name
from storqual.report.figures import count, seconds
from storqual.report.material import Material, measure
from storqual.report.view import KeyValue, Phrase
from storqual.run.turns import turns_of

_MOST_NAMED = 12
_TAIL = ("_p99", "_max_")


def untested(material: Material, required: Sequence[Criterion], benches: Sequence[str]) -> tuple[KeyValue, ...]:
    """Each thing that a reader might believe tested and was not; with several `benches` each adapter with its own."""
    told = [KeyValue("Adapters", tuple(_adapters(material, benches)))]
    if material.points:
        told = [
            KeyValue("Points of the suite", _points(material)),
            KeyValue("Levels", tuple(_levels(material))),
            *told,
            KeyValue("Tail latency", tuple(_tail(required))),
            KeyValue("Cost per I/O", _apart(_cost(material, required, benches))),
            KeyValue("Steady state", _apart(_steady(material))),
            KeyValue("Endurance", tuple(_endurance(material))),
        ]
    told += [KeyValue(name, (sentence,)) for name, sentence in turns_of(material.run).absent()]
    return tuple(one for one in told if one.values)


def suite_points(material: Material) -> int | None:
    """The points of the whole suite on all adapters under test; None where the suite cannot be read any more."""
    if material.suite is None:
        return None
    every = len(points_of(material.suite))
    return every * len({key[:2] for key in material.points})


def _points(material: Material) -> Phrase:
    whole = suite_points(material)
    measured = (material.verdict.get("coverage") or {}).get("measured")
    if whole is None or not isinstance(measured, int) or measured >= whole:
        return ()
    return (
        count(whole - measured, "count:points:left"),
        " of ",
        count(whole, "count:points:suite"),
        f" of suite {material.run.suite.name} on these adapters; profile {material.run.suite.profile} asks for ",
        count((material.verdict.get("coverage") or {}).get("planned"), "verdict:/coverage/planned"),
    )


def _levels(material: Material) -> Iterator[str]:
    """Workloads and levels of the suite at which nothing at all was measured."""
    if material.suite is None:
        return
    seen: dict[str, dict[str, set[Any]]] = {}
    for data in material.points.values():
        if any(data.good(arm) for arm in material.arms):
            factors = seen.setdefault(data.planned.workload, {})
            for name, level in data.planned.factors.items():
                factors.setdefault(name, set()).add(level)
    lacking = [name for name in material.suite.workloads if name not in seen]
    for name, workload in material.suite.workloads.items():
        levels = [
            level_text(factor, level)
            for factor, listed in workload.factors.items()
            for level in listed
            if name in seen and level not in seen[name].get(factor, ())
        ]
        lacking += [f"{name} with {' or '.join(levels)}"] if levels else []
    if lacking:
        yield _listed(lacking)


def _adapters(material: Material, benches: Sequence[str]) -> Iterator[str]:
    """Adapters of a bench that are not under test."""
    tested = material.tested
    left = [
        f"{place_name(benches, bench, alias)} ({_described(adapter)})"
        for bench, entry in material.run.benches.items()
        for alias, adapter in (entry.get("adapters") or {}).items()
        if (bench, alias) not in tested
    ]
    if left:
        yield _listed(left)


def _apart(sentences: Iterator[str]) -> Phrase:
    """Several statements as one phrase; a phrase prints its parts without anything between."""
    joined = "; ".join(sentences)
    return (joined,) if joined else ()


def _described(adapter: Mapping[str, Any]) -> str:
    return str(adapter.get("model") or adapter.get("driver") or "not described")


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (" and others" if rest > 0 else "")


def _tail(required: Sequence[Criterion]) -> Iterator[str]:
    if not any(mark in row.text("metric") for row in required for mark in _TAIL):
        yield "no required criterion is about a percentile of latency"


def _cost(material: Material, required: Sequence[Criterion], benches: Sequence[str]) -> Iterator[str]:
    costs = [name for name in METRICS if name.startswith(("cpu_", "cycles_"))]
    if not any(row.text("metric") in costs for row in required):
        yield f"{measure('cpu_us_per_io').label} does not affect the outcome"
    starts = ((event.bench, event.fields.get("start")) for event in material.events if event.kind == "block_finished")
    reasons = {bench: start.get("no_cycles") for bench, start in starts if start}
    for bench in benches:
        if reasons.get(bench):
            where = f" on {bench}" if len(benches) > 1 else ""
            yield f"{measure('cycles_per_io').label} were not counted{where}: {reasons[bench]}"


def _steady(material: Material) -> Iterator[str]:
    """Benches whose drives were not brought to a steady state before the first launch, as SNIA's PTS has it."""
    if any(str(bench.get("kind")) == "local" for bench in material.run.benches.values()):
        return
    done: dict[str, Mapping[str, Any]] = {
        str(entry.get("bench")): entry.get("report") or {} for entry in material.document.get("preconditioned") or ()
    }
    if any(report.get("as_found") for report in done.values()):
        yield "disks were measured as they were found: SNIA's PTS requires a steady state for flash only"
    if not all(_settled(done.get(name) or {}) for name in material.run.benches):
        yield (
            "drives were measured as they were found: not purged, preconditioned or brought to a steady "
            "state as SNIA's"
            " PTS requires for solid state drives"
        )


def _settled(report: Mapping[str, Any]) -> bool:
    """Whether the flash drives of a bench came to a steady state; so it is where it has only disks."""
    if report.get("as_found") and not any(report.get(stage) for stage in ("purge", "fill", "steady")):
        return True
    return bool((report.get("steady") or {}).get("steady"))


def _endurance(material: Material) -> Iterator[Any]:
    longest = max((launch.runtime_s for data in material.points.values() for launch in data.every()), default=0.0)
    if longest > 0:
        yield "no launch ran longer than "
        yield seconds(round(longest), "count:longest-launch")
