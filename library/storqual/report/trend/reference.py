# SPDX-License-Identifier: Apache-2.0
"""A bench's golden reference drive over time: nothing that is qualified changes it, so what moves it is the bench."""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import fmean, median
from typing import TYPE_CHECKING

from storqual.history.reference import readings_of
from storqual.report.trend.series import FEWEST, Level, Series
from storqual.statistics.control import individuals
from storqual.store import read_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storqual.report.trend.read import PastRun

__all__ = ["reference_series"]


def reference_series(runs: Sequence[PastRun]) -> tuple[Series, ...]:
    """A series for every bench and reference drive that at least two campaigns have readings of.

    Only runs on benches with a reference have their samples read. A campaign's value is the mean of its readings, as
    deviation from the median campaign.
    """
    found: defaultdict[tuple[str, str], dict[str, tuple[PastRun, list[float]]]] = defaultdict(dict)
    for run in runs:
        if any(bench.get("reference") for bench in (run.document.get("benches") or {}).values()):
            for reading in readings_of(read_run(run.path)):
                place = found[reading.bench, reading.drive].setdefault(run.name, (run, []))
                place[1].append(math.log(reading.iops))
    made = []
    for (bench, drive), campaigns in found.items():
        if len(campaigns) < FEWEST:
            continue
        usual = median(fmean(values) for _, values in campaigns.values())
        levels = tuple(
            Level(run, 100 * math.expm1(fmean(values) - usual), len(values)) for run, values in campaigns.values()
        )
        made.append(Series(bench, drive, "golden reference", levels, individuals([one.percent for one in levels])))
    return tuple(made)
