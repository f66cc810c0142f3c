# SPDX-License-Identifier: Apache-2.0
"""Reads through the page cache: what a sequential launch reads a second time comes from memory, not from a drive."""

from __future__ import annotations

from typing import Sequence

from .fio_job import FioAsk, FioTarget
from .fio_result import FioResult

__all__ = ["read_again"]


def read_again(ask: FioAsk, targets: Sequence[FioTarget], result: FioResult) -> list[str]:
    """What puts a buffered sequential read in doubt: fio began anew at the start of its targets."""
    size = sum(target.size for target in targets)
    if ask.direct or ask.rw != "read" or not size:
        return []
    times = int(result.primitives.get("read_bytes", 0)) / size
    if times <= 1.0:
        return []
    return [f"all of its targets was read {times:.1f} times through the page cache: part of it came from memory"]
