# SPDX-License-Identifier: Apache-2.0
"""Suites: what cannot be answered is an error before a bench is touched."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from storqual.inputs import find_suite, load_suite
from storqual.inputs.product import criteria_at
from storqual_core.kit.errors import BadInputError

GOOD = Path(__file__).with_suffix(".good").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Point:
    """The least that a point is."""

    workload: str
    adapter: str = "sym"
    factors: dict[str, Any] = field(default_factory=dict)


def write(folder: Path, text: str) -> Path:
    path = folder / "x.suite.yml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, text: str) -> str:
    """What is said of a suite, without the folder."""
    with pytest.raises(BadInputError) as caught:
        load_suite(write(folder, text))
    return "\n".join(problem.replace(f"{folder}/", "") for problem in caught.value.problems)


def test_the_suite_of_the_project_is_good() -> None:
    suite = load_suite(find_suite("adapter"))
    factors = {
        name: set(levels) for workload in suite.workloads.values() for name, levels in workload.factors.items()
    }
    assert {"read", "write", "randread", "randwrite"} == {workload.rw for workload in suite.workloads.values()}
    assert (3, 2, {1, 4}) == (len(factors["bs"]), len(factors["iodepth"]), factors["drives"])


def test_full_asks_for_tails_and_stalls_and_quick_keeps_its_criteria() -> None:
    """`full` has the time for them; two seconds of `quick` hold neither a p99 nor a stall."""
    suite = load_suite(find_suite("adapter"))
    point = Point("rand_write", factors={"bs": 4096, "drives": 4, "iodepth": 8})
    asked = {
        name: {one.id: one for one in criteria_at(suite, point, name, {}, "hardware")} for name in ("quick", "full")
    }
    required = {name: {one.metric for one in found.values() if one.required} for name, found in asked.items()}
    assert required["full"] - required["quick"] == {"latency_p99_us", "longest_stall_s", "dips_per_min"}
    assert set(asked["quick"]) == {"iops", "throughput_mb_s", "cpu_us_per_io", "latency_mean_us"}
    informative = {"interrupts_per_io", "adapter_interrupts_per_io", "cycles_per_io"}
    assert {one.metric for one in asked["full"].values() if not one.required} >= informative
    # an emulation is SKIPPED, for it has no cycles to count
    assert asked["full"]["cycles_per_io"].hardware_only
    assert not asked["full"]["cpu_us_per_io"].hardware_only
    assert (asked["full"]["p99"].margin, asked["full"]["p99"].indifference) == (0.25, 0.1)
    # fewer I/Os than a percentile needs: one at a time, or large ones of a slow drive
    for size, depth in ((4096, 1), (262144, 8)):
        slow = Point("rand_write", factors={"bs": size, "drives": 4, "iodepth": depth})
        assert "p99" not in {one.id for one in criteria_at(suite, slow, "full", {}, "hardware")}


def test_a_criterion_of_an_unknown_profile_is_an_error(tmp_path: Path) -> None:
    text = GOOD.replace("against: baseline}", "against: baseline, profiles: fulll}")
    assert "unknown profile 'fulll'" in problems(tmp_path, text)
    assert "did you mean" in problems(tmp_path, text)


def test_a_suite_under_a_profile_keeps_the_positions_of_its_criteria(tmp_path: Path) -> None:
    text = GOOD.replace("against: baseline}", "against: baseline, profiles: full}")
    suite = load_suite(write(tmp_path, text))
    assert [(number, one.name) for number, one in suite.under("quick").numbered] == [(1, "floor")]
    assert [(number, one.name) for number, one in suite.numbered] == [(0, "iops"), (1, "floor")]


def test_a_name_comes_from_the_file(tmp_path: Path) -> None:
    """`x.suite.yml` is suite x."""
    assert load_suite(write(tmp_path, GOOD)).name == "x"


def test_criteria_inherit_from_the_profile(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, GOOD))
    at = {"bs": 65536, "drives": 1}
    found = criteria_at(suite, Point("seq_read", factors=at), "quick", {}, "hardware")
    assert [(criterion.id, criterion.margin, criterion.indifference, criterion.min) for criterion in found] == [
        ("iops", 0.08, 0.02, None),
        ("floor", 0.08, 0.02, 100.0),
    ]
    assert [c.id for c in criteria_at(suite, Point("seq_read", factors={"bs": 4096}), "full", {}, "hardware")] == [
        "iops"
    ]
    assert [c.id for c in criteria_at(suite, Point("rand_write", factors={"bs": 4096}), "full", {}, "hardware")] == [
        "iops"
    ]


def test_a_criterion_of_a_narrow_margin_narrows_its_zone(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, GOOD.replace("against: baseline}", "against: baseline, margin: 2%}")))
    criterion = criteria_at(suite, Point("seq_read"), "quick", {}, "hardware")[0]
    assert (criterion.margin, criterion.indifference) == (0.02, 0.01)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    json.loads(Path(__file__).with_name("suite_mistakes.json").read_text(encoding="utf-8")),
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_what_cannot_be_answered_is_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    assert said in problems(tmp_path, GOOD.replace(old, new, 1))


def test_a_metric_of_reads_does_not_fit_writes(tmp_path: Path) -> None:
    text = GOOD.replace(
        "metric: iops, against: baseline", "metric: read_iops, against: baseline, workloads: rand_write"
    )
    assert "read_iops needs reads, and the workloads of this criterion only write" in problems(tmp_path, text)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("metric: iops", "metric: iosp").replace("bs: 64k}", "bs: 8k}").replace("seq_*", "sq_*")
    assert len(problems(tmp_path, text.replace("cells: 4", "cells: 1")).splitlines()) == 3
