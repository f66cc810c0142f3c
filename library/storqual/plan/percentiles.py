# SPDX-License-Identifier: Apache-2.0
"""Percentiles that no launch of a plan can give: too few I/Os, known beforehand where the rate of the drives is.

A percentile needs `FEWEST_BEYOND` I/Os beyond it, in the launches of an arm in one session together
(`metrics/latency.py`). How fast a real drive is nobody knows before it was measured; a paced or an emulated one and a
load at a fixed rate have a rate that is declared.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from storqual.inputs.inventory import Drive
from storqual.inputs.suite import Suite, applies
from storqual.metrics.latency import FEWEST_BEYOND
from storqual.plan.bench_plan import BenchPlan

_PERCENTILE = re.compile(r"(?:read_|write_)?latency_p([0-9.]+)_us\Z")


def fewest_ios(metric: str) -> int | None:
    """How many I/Os the percentile of that metric needs; None for a metric that is no percentile."""
    found = _PERCENTILE.match(metric)
    # the product is rounded: 1 - 0.9999 is a little less than 0.0001
    return None if found is None else math.ceil(round(FEWEST_BEYOND / (1 - float(found[1]) / 100), 6))


def unsupported(plan: BenchPlan, suite: Suite) -> Iterator[tuple[int, str]]:
    """Required percentiles with too few I/Os whatever the drop does: number of the criterion, and a sentence."""
    asked = [(number, one, fewest) for number, one in suite.numbered if (fewest := fewest_ios(one.metric))]
    most = _most_ios(plan) if asked else {}
    for number, criterion, fewest in asked:
        short = [
            (most[point.adapter, point.point], f"{point.adapter}/{point.point}")
            for point in plan.points
            if not point.skipped and applies(criterion, point.workload, point.factors, point.adapter)
            if most.get((point.adapter, point.point), math.inf) < fewest
        ]
        if short and criterion.is_required(plan.bench.kind):
            ios, worst = min(short)
            others = f" (and at {len(short) - 1} more points)" if len(short) > 1 else ""
            sentence = (
                f"{criterion.metric} needs {fewest:,} I/Os of each arm in a session, and at {worst}{others} the "
                f"launches planned make at most {ios:,.0f}: lengthen `runtime`, raise `launches`, or ask for a lower "
                "percentile"
            )
            yield number, sentence


def _most_ios(plan: BenchPlan) -> Mapping[tuple[str, str], float]:
    """The most I/Os that an arm's launches in one session can make, in the session with the fewest, by point."""
    drives = {drive.id: drive for adapter in plan.bench.adapters.values() for drive in adapter.drives}
    made: defaultdict[tuple[str, str], defaultdict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
    for batch in plan.batches:
        for launch in batch["launches"]:
            ios = _rate(launch, drives) * float(launch["fio"]["runtime_s"])
            made[launch["adapter"], launch["point"]][batch["session"], launch["arm"]] += ios
    return {point: min(sums.values()) for point, sums in made.items()}


def _rate(launch: Mapping[str, Any], drives: Mapping[str, Drive]) -> float:
    """I/Os per second that a launch cannot exceed; infinite where nothing declares a rate."""
    fio = launch["fio"]
    jobs = len(launch["drives"]) * int(fio["numjobs"])
    fixed = float(fio["options"].get("rate_iops") or math.inf) * jobs
    # a volume is no drive of the inventory
    limits = (_limit(drives[name], int(fio["bs"])) if name in drives else math.inf for name in launch["drives"])
    return min(fixed, sum(limits))


def _limit(drive: Drive, block_size: int) -> float:
    """I/Os per second of a drive that is emulated with a limit; infinite for any other."""
    virtual = drive.virtual
    if virtual is None:
        return math.inf
    by_bandwidth = math.inf if virtual.bandwidth is None else virtual.bandwidth / block_size
    return min(virtual.iops or math.inf, by_bandwidth)
