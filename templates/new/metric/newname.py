# SPDX-License-Identifier: Apache-2.0
"""newname: the slowest second of a launch as a share of its median second."""

import statistics

from storqual.metrics.metric import Measured, Metric, UnavailableError, Value

_FEWEST_SECONDS = 2


def _slowest_second(measured: Measured) -> Value:
    seconds = [float(value) for value in measured.series.get("iops") or ()]
    if len(seconds) < _FEWEST_SECONDS:
        raise UnavailableError(f"{len(seconds)} seconds of I/O were recorded, {_FEWEST_SECONDS} are needed")
    level = statistics.median(seconds)
    if level <= 0:
        raise UnavailableError("no I/O completed during most of the launch")
    return Value(100.0 * min(seconds) / level)


METRIC = Metric("newname", "Slowest second", "%", "higher", ("iops",), "ratio", _slowest_second)
