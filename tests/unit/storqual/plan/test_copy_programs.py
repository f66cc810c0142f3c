# SPDX-License-Identifier: Apache-2.0
"""Points of dd and sg_dd: what they cannot do or answer is told before a bench is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.plan import make_plan
from storqual_core.kit.errors import BadInputError
from tests.support.make_lab import lab_hosts, make_lab

ERRORS = {"metric": "io_errors_per_tb", "against": "absolute", "max": 0}


def suite(workload: dict[str, Any], *criteria: dict[str, Any]) -> dict[str, Any]:
    return {
        "workloads": {"reads": {"rw": "read", "factors": {"engine": ["libaio", "dd", "sg_dd"]}, **workload}},
        "criteria": list(criteria or (ERRORS,)),
        "profiles": {"quick": {"cells": "all", "file": "24MiB", "runtime": "1s", "ramp": "0s", "launches": 2}},
    }


def planned(folder: Path, wanted: dict[str, Any]) -> list[str]:
    """The engines of the launches."""
    lab = make_lab(folder, hosts=lab_hosts({"sym": 1}), suite=json.dumps(wanted), baseline=None, candidate={})
    return sorted({one["request"]["fio"]["ioengine"] for batch in make_plan(lab).batches for one in batch["turns"]})


def test_sequential_reads_are_planned(tmp_path: Path) -> None:
    criteria = ({"metric": name, "against": "absolute", "min": 1} for name in ("iops", "throughput_mb_s"))
    assert planned(tmp_path, suite({}, ERRORS, *criteria)) == ["dd", "libaio", "sg_dd"]


@pytest.mark.parametrize(
    ("workload", "reason"),
    [
        ({"rw": "write"}, "rw is write"),
        ({"rw": "randread"}, "rw is randread"),
        ({"iodepth": 4}, "iodepth is 4"),
        ({"numjobs": 2}, "numjobs is 2"),
        ({"direct": False}, "direct is false"),
        ({"bs": 1000}, "which is not a multiple of 512"),
        ({"rate_iops": 50}, "regulated"),
        ({"options": {"norandommap": 0}}, "it has fio options (norandommap)"),
        ({"target": "xfs"}, "target is xfs"),
    ],
)
def test_what_they_cannot_do_is_refused(tmp_path: Path, workload: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInputError) as told:
        planned(tmp_path, suite(workload))
    assert reason in str(told.value)
    assert "engine dd only does plain sequential reads of a drive" in str(told.value)


def test_sgp_dd_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="sgp_dd reports the end of a launch as an error"):
        planned(tmp_path, suite({"factors": {"engine": ["sgp_dd"]}}))


@pytest.mark.parametrize("metric", ["latency_p99_us", "read_latency_mean_us", "longest_stall_s", "fio_cpu_us_per_io"])
def test_a_criterion_on_what_they_do_not_tell_is_refused(tmp_path: Path, metric: str) -> None:
    limit = {"metric": metric, "against": "absolute", "max": 5}
    with pytest.raises(
        BadInputError, match=f"engine dd does not report {metric}, which is judged at reads.engine=dd."
    ):
        planned(tmp_path, suite({}, limit))
    assert planned(tmp_path, suite({}, {**limit, "at": {"engine": "libaio"}}))
