# SPDX-License-Identifier: Apache-2.0
"""What limits each point, as far as the run knows: a fixed rate, drives, slot, link, processors, the time of one I/O.

A part is the limit from 95 % of it on (no link reaches its line rate), processors from 90 %. Where nothing that is on
record is reached, the limit is not known, and the shares are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from storqual.base.formulas import MB
from storqual.plan.points import points_of
from storqual.report.figures import Figure, count, percent, quantity
from storqual.report.material import Material
from storqual.report.view import Cell, Phrase
from storqual.run.files import read_object
from storqual.run.layout import INPUTS
from storqual.run.measurements import PointData, PointKey
from storqual.study.demand import NEAR
from storqual_core.kit.errors import BadInputError

_BUSY = 0.90
_KEPT = 0.99
"""A fixed rate is the limit when this much of it was served."""


@dataclass(frozen=True)
class Limit:
    """What limits a point in a word or two, and how that is known; `what` is empty where nothing was measured."""

    what: str
    why: Phrase


@dataclass(frozen=True)
class _Part:
    """A part of the path: its name, the share of it that was used, and how that is told."""

    name: str
    share: float
    told: Phrase
    from_share: float = NEAR

    @property
    def reached(self) -> bool:
        """Whether it is the limit."""
        return self.share >= self.from_share


@dataclass(frozen=True)
class _Means:
    """Means of an arm at a point: I/Os per second, MB/s, percent of all processors, latency in us."""

    iops: float | None
    mb_s: float | None
    cpu: float | None
    latency_us: float | None


NOTHING = Limit("", ())


def limits_of_points(material: Material) -> Mapping[PointKey, Limit]:
    """The limit of each point, in the arm that is qualified."""
    patterns = {}
    if material.suite is not None and material.suite.workloads:
        patterns = {
            (point.workload, frozenset(point.factors)): point.pattern.values for point in points_of(material.suite)
        }
    paces = _paces(material)
    alone = {
        (key[:2], _line(data), data.planned.drives[0]): single.iops
        for key, data in material.points.items()
        if len(data.planned.drives) == 1 and (single := _means(data)).iops
    }
    found = {}
    for key, data in material.points.items():
        planned = data.planned
        pattern = {**patterns.get((planned.workload, frozenset(planned.factors.items())), {}), **planned.factors}
        each = [alone.get((key[:2], _line(data), drive)) for drive in planned.drives]
        found[key] = _limit(material, data, pattern, paces.get(key[0], {}), each)
    return found


def _line(data: PointData) -> tuple[str, tuple[tuple[str, object], ...]]:
    """What a point has in common with the one that uses a single drive."""
    rest = sorted((name, level) for name, level in data.planned.factors.items() if name not in ("drives", "ports"))
    return data.planned.workload, (*rest, *sorted(data.planned.varied.items()))


def _means(data: PointData) -> _Means:
    launches = data.good("candidate") or data.good("baseline")

    def mean(name: str) -> float | None:
        values = [value for value in (launch.number(name) for launch in launches) if value is not None]
        return fmean(values) if values else None

    return _Means(mean("iops"), mean("throughput_mb_s"), mean("cpu_percent"), mean("latency_mean_us"))


def _limit(
    material: Material,
    data: PointData,
    pattern: Mapping[str, Any],
    paces: Mapping[str, Mapping[str, Any]],
    alone: Sequence[float | None],
) -> Limit:
    means = _means(data)
    if means.iops is None:
        return NOTHING
    parts = list(_parts(material, data, means, pattern, paces))
    reached = next((part for part in parts if part.reached), None)
    if reached is not None:
        return Limit(reached.name, reached.told)
    outstanding = int(pattern.get("iodepth") or 0) * int(pattern.get("numjobs") or 1)
    if outstanding == 1:
        time: Phrase = ()
        if means.latency_us is not None:
            time = (" of ", quantity(means.latency_us, "us", f"samples:limit:{data.planned.point}"))
        told: Phrase = (
            "one I/O is outstanding per drive: its mean time",
            *time,
            " sets the rate; where that time is spent ",
        )
        return Limit("latency", (*told, "is not known"))
    known = [one for one in alone if one]
    if len(alone) > 1 and known:
        most = fmean(known) * len(alone)
        if means.iops >= NEAR * most:
            times = count(len(alone), "count:drives")
            share = _percent(means.iops / most, data)
            return Limit("drives", (share, " of ", times, " times what one drive gives alone"))
    kind = material.run.benches[data.planned.bench].get("kind")
    listed: list[Cell] = [cell for part in parts for cell in ("; ", *part.told)][1:]
    if not listed:
        listed = ["nothing about drives, link or processors was recorded"]
    if kind == "virtual":
        listed.append("; otherwise an emulated bench is limited by the emulator")
    return Limit("not known", tuple(listed))


def _parts(
    material: Material,
    data: PointData,
    means: _Means,
    pattern: Mapping[str, Any],
    paces: Mapping[str, Mapping[str, Any]],
) -> Iterator[_Part]:
    """The parts of the path that the run knows, those that are certain first."""
    planned = data.planned
    bench = material.run.benches[planned.bench]
    drives = planned.drives
    if pattern.get("rate_iops") and means.iops:
        asked = float(pattern["rate_iops"]) * len(drives)
        share = means.iops / asked
        yield _Part("load", share, (_percent(share, data), " of the fixed rate that was asked for"), _KEPT)
    emulated = "emulated drives" if bench.get("kind") == "virtual" else "pace of files"
    for name, unit, used in (("iops", "IOPS", means.iops), ("bandwidth", "bandwidth", _bytes(means.mb_s))):
        granted = [float(paces.get(drive, {}).get(name) or 0) for drive in drives]
        if used and granted and all(granted):
            share = used / sum(granted)
            told = f" of the {unit} that the {emulated} {'are' if emulated.endswith('drives') else 'is'} granted"
            yield _Part(emulated, share, (_percent(share, data), told))
    adapter = (bench.get("adapters") or {}).get(planned.adapter) or {}
    ceiling = adapter.get("ceiling") or {}
    ports = {drive.get("port") for drive in adapter.get("drives") or () if drive.get("id") in drives}
    ways = 2 if pattern.get("rw") in ("rw", "randrw") else 1
    for name, carried in (("slot", 1), ("link", max(1, len(ports)) * ways)):
        if ceiling.get(name) and means.mb_s is not None:
            share = means.mb_s * MB / (float(ceiling[name]) * carried)
            yield _Part(name, share, (_percent(share, data), f" of what the {name} carries"))
    if means.cpu is not None:
        busy = means.cpu / 100
        yield _Part("processors", busy, ("the processors are ", _percent(busy, data), " busy"), _BUSY)


def _percent(share: float, data: PointData) -> Figure:
    return percent(round(100 * share, 1), f"samples:limit:{data.planned.point}", signed=False)


def _bytes(mb_s: float | None) -> float | None:
    return None if mb_s is None else mb_s * MB


def _paces(material: Material) -> dict[str, dict[str, Mapping[str, Any]]]:
    """What drives are granted that are emulated, or files with a pace: by bench and drive, as the inventory says it.

    A candidate that changes a limit has its own.
    """
    try:
        inventory = read_object(material.run.path, f"{INPUTS}/{material.run.input_file('inventory').name}")
    except (BadInputError, OSError, ValueError):
        return {}
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name in material.run.benches:
        adapters = (inventory.get(name) or {}).get("adapters") or {}
        listed = {
            str(drive.get("file") or drive.get("wwn") or drive.get("serial")): drive.get("virtual")
            or drive.get("paced")
            for adapter in adapters.values()
            for drive in adapter.get("drives") or ()
        }
        spec = ((material.document.get("provision") or {}).get(name) or {}).get("candidate") or {}
        changed = (spec.get("virtual") or {}).get("iops_limit") or {}
        found[name] = {
            drive: {**granted, **({"iops": changed[drive]} if drive in changed else {})}
            for drive, granted in listed.items()
            if granted
        }
    return found
