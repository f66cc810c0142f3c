# SPDX-License-Identifier: Apache-2.0
"""Service demand and percent of the ceiling of every point, in the units of the papers as well as our own."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import special

from storqual.analysis.ceiling import Part, Share, ceiling, drives_part, link_part, share_of, slot_part
from storqual.analysis.estimates import Estimate, log_levels
from storqual.formulas import MB, MIB, service_demand_percent_thousandths
from storqual.study.cells import Cell

__all__ = ["Ceilings", "Demand", "Reached", "demands", "reached"]

Ceilings = Mapping[tuple[str, str], Mapping[str, Any]]
"""(bench, adapter) -> the inventory's `ceiling`: bytes per second of `slot` and of one port's `link`."""


@dataclass(frozen=True)
class Demand:
    """Means of one point: MB/s (10^6 bytes), CPU in percent of all processors, and what a KiB and an I/O cost.

    `cpu_reach` is half of the 95 % interval of the CPU's mean, in its unit; None for one launch. `us_per_kib` counts
    processor time of all CPUs; `percent_thousandths` is CPU percent per thousand KiB/s, the unit of the A7173A paper.
    """

    cell: Cell
    throughput_mb_s: float
    cpu_percent: float
    cpu_reach: float | None
    us_per_kib: float
    us_per_io: float
    percent_thousandths: float


@dataclass(frozen=True)
class Reached:
    """A point's throughput as share of what its path carries at most."""

    cell: Cell
    throughput_mb_s: float
    ceiling_mb_s: float
    share: Share


def demands(cells: Sequence[Cell]) -> list[Demand]:
    """Service demand of every point whose CPU time is known."""
    found = []
    for cell in cells:
        means = [cell.mean(name) for name in ("throughput_mb_s", "cpu_percent", "cpu_us_per_kib", "cpu_us_per_io")]
        known = [mean for mean in means if mean is not None]
        if len(known) == len(means) and known[0] > 0:
            thousandths = service_demand_percent_thousandths(known[1], known[0] * MB / MIB)
            reach = _reach(cell.values("cpu_percent"))
            found.append(Demand(cell, known[0], known[1], reach, known[2], known[3], thousandths))
    return found


def _reach(values: Sequence[float]) -> float | None:
    """Half of the 95 % interval of a mean. Not of logarithms: CPU above the idle bench's may be next to nothing."""
    if len(values) < 2:
        return None
    return float(special.stdtrit(len(values) - 1, 0.975)) * statistics.stdev(values) / math.sqrt(len(values))


def reached(cells: Sequence[Cell], ceilings: Ceilings) -> list[Reached]:
    """Percent of the ceiling, where the inventory knows a part of the path.

    The drives are a part as soon as one drive alone was measured with the same workload and block size.
    """
    alone = {
        (cell.subject, cell.workload, cell.pattern.get("bs"), cell.drives[0]): cell.mean("throughput_mb_s")
        for cell in cells
        if len(cell.drives) == 1
    }
    found = []
    for cell in cells:
        values = cell.values("throughput_mb_s")
        known = ceilings.get((cell.bench, cell.adapter)) or {}
        parts = _parts(cell, known)
        each = {
            drive: alone.get((cell.subject, cell.workload, cell.pattern.get("bs"), drive)) for drive in cell.drives
        }
        first = next((value for value in each.values() if value), None)
        if parts and first and len(cell.drives) > 1:
            told = "one drive alone, times their number"
            parts.append(drives_part({drive: value or first for drive, value in each.items()}, told))
        if not parts or not values or min(values) <= 0:
            continue
        path = ceiling(parts)
        data = log_levels({1.0: values})
        measured: Estimate = data.estimate(data.mean[0], 1 / data.count[0]).exp()
        found.append(Reached(cell, measured.value, path.limit, share_of(measured, path)))
    return found


def _parts(cell: Cell, known: Mapping[str, Any]) -> list[Part]:
    both_ways = str(cell.pattern.get("rw")) in ("rw", "randrw")
    parts = []
    if known.get("slot"):
        parts.append(slot_part(float(known["slot"]) / MB, "inventory"))
    if known.get("link"):
        parts.append(link_part(float(known["link"]) / MB, cell.ports, both_ways=both_ways, told="inventory"))
    return parts
