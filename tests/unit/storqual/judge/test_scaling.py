# SPDX-License-Identifier: Apache-2.0
"""Curves as criteria: linear as far as asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storqual.judge.verdict import judge_run
from tests.support.make_run import make_run

LEVELS = (1, 2, 4, 8)
SUITE = """\
name: scaling
workloads:
  rand_read: {rw: randread, bs: 64k, iodepth: 16, factors: {drives: [1, 2, 4, 8]}}
criteria:
  - {metric: throughput_mb_s, against: baseline, required: false}
  - {id: scales, metric: throughput_mb_s, against: scaling, over: drives, linear_to: LIMIT, margin: 5%}
profiles:
  quick: {cells: all, runtime: 2s, ramp: 500ms, sessions: 8, margin: 8%, indifference: 2%}
"""


def verdict(folder: Path, limit: int, knee: float, *, noise: float = 0.004) -> dict[str, Any]:
    """The verdict of a run whose throughput is linear up to `knee` drives and level beyond."""

    def effect(_adapter: str, point: str) -> float:
        drives = int(point.partition("drives=")[2].rstrip("]"))
        return min(drives, knee) / drives - 1

    path = make_run(
        folder,
        adapters=("sym",),
        points=[f"rand_read[drives={level}]" for level in LEVELS],
        suite=SUITE.replace("LIMIT", str(limit)),
        effect=effect,
        sessions=8,
        noise=noise,
    )
    return judge_run(path)


def scales(found: dict[str, Any]) -> dict[str, Any]:
    """The only scaling criterion."""
    (one,) = (entry for entry in found["criteria"] if entry["id"] == "scales")
    return dict(one)


@pytest.mark.parametrize(
    ("limit", "knee", "outcome"), [(4, 8.0, "PASS"), (4, 4.0, "PASS"), (8, 4.0, "FAIL"), (8, 6.0, "FAIL")]
)
def test_linear_as_far_as_asked_passes_and_no_farther(tmp_path: Path, limit: int, knee: float, outcome: str) -> None:
    one = scales(verdict(tmp_path, limit, knee))
    assert (one["outcome"], one["point"]) == (outcome, f"rand_read[drives={limit}]")
    assert one["against"] == "scaling"
    if outcome == "FAIL":
        assert one["ci95_percent"][1] < -5


def test_what_noise_hides_is_not_decided(tmp_path: Path) -> None:
    assert scales(verdict(tmp_path, 8, 8.0, noise=0.1))["outcome"] == "INCONCLUSIVE"
