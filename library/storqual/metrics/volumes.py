# SPDX-License-Identifier: Apache-2.0
"""What an I/O of a volume costs the drives behind it."""

from __future__ import annotations

from storqual.metrics.metric import Measured, Metric, UnavailableError, Value

__all__ = ["VOLUMES"]


def _members_per_io(measured: Measured) -> Value:
    """I/Os that the members completed for each that the volume completed, both counted by the kernel in one window.

    A small write costs 4 on RAID 5 and 2 on RAID 1 and 10, a read 1 (Patterson, Gibson, Katz 1988, tables 2 to 5).
    """
    asked = sum(float(measured.primitives.get(f"disk_{way}_ios", 0)) for way in ("read", "write"))
    if asked <= 0:
        raise UnavailableError("the volume completed no I/O")
    done = sum(float(measured.primitives.get(f"member_{way}_ios", 0)) for way in ("read", "write"))
    return Value(done / asked)


VOLUMES: tuple[Metric, ...] = (
    Metric(
        "member_ios_per_io",
        "Member I/Os per I/O",
        "IO/IO",
        "lower",
        ("member_read_ios|member_write_ios", "disk_read_ios|disk_write_ios"),
        "ratio",
        _members_per_io,
    ),
)
