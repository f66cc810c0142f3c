# SPDX-License-Identifier: Apache-2.0
"""The harness itself stays out of the way of what it measures."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storqual.store import Run

MOST_OVERHEAD_S = {"virtual": 0.5, "hardware": 0.15, "local": 0.15}
"""Seconds for each sample beyond fio's own process time; an emulated processor is about ten times slower."""


def test_the_bench_program_adds_little_to_fio(run: Run, bench: Mapping[str, Any]) -> None:
    """The median launch costs hardly more than fio itself."""
    seconds = [
        sample.primitives["overhead_ns"] / 1e9
        for sample in run.samples
        if sample.bench == bench["name"] and "overhead_ns" in sample.primitives
    ]
    if not seconds:
        pytest.skip("no launch was finished on this bench")
    assert statistics.median(seconds) <= MOST_OVERHEAD_S[bench["kind"]]
