# SPDX-License-Identifier: Apache-2.0
"""Cells with planted curves, for tests of studies: equal arguments give equal launches."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from storqual.study.points import StudyPoint


def point(
    subject: str,
    workload: str,
    rate: float,
    *,
    launches: int = 5,
    noise: float = 0.005,
    size: int = 4096,
    busy: float = 10.0,
    varied: Mapping[str, Any] | None = None,
    drives: Sequence[str] = ("d0",),
    ports: int = 1,
    **factors: Any,
) -> StudyPoint:
    """A point of `subject` with `rate` IOPS and `busy` percent CPU of one processor, both with noise.

    `size` is the block size in bytes where it is no factor.
    """
    levels = {**factors, **(varied or {})}
    name = f"{workload}[{','.join(f'{key}={levels[key]}' for key in sorted(levels))}]"
    random = np.random.default_rng(zlib.crc32(f"{subject}/{name}".encode()))
    size = factors.get("bs", size)
    made = []
    for _ in range(launches):
        iops = rate * float(np.exp(random.normal(0, noise)))
        cpu = busy * float(np.exp(random.normal(0, noise)))
        made.append(
            {
                "iops": iops,
                "throughput_mb_s": iops * size / 1e6,
                "throughput_mib_s": iops * size / 2**20,
                "cpu_percent": cpu,
                "cpu_us_per_io": cpu * 1e4 / iops,
                "cpu_us_per_kib": cpu * 1e4 / (iops * size / 1024),
            }
        )
    return StudyPoint(
        subject=subject,
        bench="b1",
        adapter=subject,
        point=name,
        workload=workload,
        levels=levels,
        varied=tuple(sorted(varied or ())),
        pattern={"rw": "randread", "bs": size, **factors},
        drives=tuple(drives),
        ports=ports,
        launches=tuple(made),
    )


def swept(gain: float = 1.0) -> list[StudyPoint]:
    """A queue-depth sweep with a knee at 4; the second adapter takes `gain` times the CPU."""
    return [
        point(name, "depth", 100.0 * min(depth, 4), busy=busy * min(depth, 4), iodepth=depth)
        for name, busy in (("qla", 1.0), ("sym", gain))
        for depth in (1, 2, 4, 8, 16)
    ]
