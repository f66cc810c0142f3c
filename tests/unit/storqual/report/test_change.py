# SPDX-License-Identifier: Apache-2.0
"""Changes in the words of the field, and what counts as one measurement."""

from typing import Any

import pytest

from storqual.base.figures import DASH
from storqual.report.criterion import JudgedCriterion, ends_in_words, in_words, is_shown, once_each, says_nothing
from storqual.report.parts.criteria import changes_of, odd_launches, shown_beside
from storqual.report.view import PageLinks, Sites


def row(metric: str = "iops", shift: float | None = -9.9, index: int = 0, **fields: Any) -> JudgedCriterion:
    units = {"iops": "IOPS", "throughput_mb_s": "MB/s", "cpu_us_per_io": "us/IO", "latency_mean_us": "us"}
    entry = {
        "id": metric,
        "bench": "lab",
        "adapter": "hba",
        "point": "rand_read[bs=4k]",
        "metric": metric,
        "unit": units[metric],
        "better": "higher" if metric in ("iops", "throughput_mb_s") else "lower",
        "against": "baseline",
        "outcome": "PASS",
        "shift_percent": shift,
        "ci95_percent": None if shift is None else [shift - 0.5, shift + 0.5],
        "detectable_percent": 1.0,
        "required": True,
    }
    return JudgedCriterion(index, {**entry, **fields})


@pytest.mark.parametrize(
    ("metric", "shift", "words"),
    [
        ("cpu_us_per_io", -61.9, "61.9 % more CPU time per I/O"),
        ("cpu_us_per_io", 12.0, "12.0 % less CPU time per I/O"),
        ("iops", -9.9, "9.90 % fewer IOPS"),
        ("iops", 9.9, "9.90 % more IOPS"),
        ("throughput_mb_s", -2.5, "2.50 % less throughput"),
        ("latency_mean_us", -3.0, "3.00 % higher mean latency"),
        ("latency_mean_us", 3.0, "3.00 % lower mean latency"),
        ("iops", 0.001, "0.00 % change in IOPS"),
    ],
)
def test_a_change_is_told_as_what_the_metric_did(metric: str, shift: float, words: str) -> None:
    assert in_words(row(metric, shift)).text.replace("\u00a0", " ") == words


def test_an_interval_that_says_nothing_is_not_printed_as_numbers() -> None:
    wide = row("cpu_us_per_io", 10.5, ci95_percent=[-1477.0, 81.6], detectable_percent=539.0)
    assert says_nothing(wide)
    assert [end.text for end in ends_in_words(wide)] == [DASH, DASH]
    assert wide.detectable.text == DASH
    assert [end.text.replace("\u00a0", " ") for end in ends_in_words(row())] == ["10.4 % less", "9.40 % less"]


def test_iops_and_throughput_of_one_point_are_one_measurement_and_the_worse_one_stands() -> None:
    rows = [row("iops"), row("throughput_mb_s", index=1, outcome="FAIL"), row("latency_mean_us", index=2)]
    other = row("iops", index=3, point="rand_read[bs=64k]")
    assert [criterion.index for criterion in once_each([*rows, other])] == [1, 2, 3]


def test_a_failure_that_nobody_accepted_stands_before_a_waived_one() -> None:
    waived = row("iops", outcome="FAIL", waiver={"owner": "J. Ortega"})
    assert [
        criterion.index for criterion in once_each([waived, row("throughput_mb_s", index=1, outcome="FAIL")])
    ] == [1]


def test_a_shift_that_excludes_zero_has_a_line_though_it_decides_nothing() -> None:
    beside = row("cpu_us_per_io", -61.9, required=False)
    (line,) = shown_beside([row(), beside], ["lab"])
    text = "".join(map(str, line)).replace("\u00a0", " ")
    assert text == (
        "CPU time per I/O does not affect the outcome, but at 1 of 1 points its interval excludes zero: "
        "61.9 % more CPU time per I/O at hba rand_read[bs=4k]"
    )
    unsure = row("cpu_us_per_io", -61.9, required=False, ci95_percent=[-130.0, 4.0])
    assert not is_shown(unsure)
    assert shown_beside([row(), unsure], ["lab"]) == ()


def test_better_and_worse_are_sorted_by_effect() -> None:
    rows = [row("iops", shift, index, point=f"p{index}") for index, shift in enumerate((-1.0, 4.0, -8.0, 0.1, 9.0))]
    changes = changes_of(rows, ["lab"], PageLinks(Sites({}, {}, frozenset(range(5))), None))
    assert [change.where for change in changes.worse] == ["hba p2", "hba p0"]
    assert [change.where for change in changes.better] == ["hba p4", "hba p1"]
    assert str(changes.unchanged) == "1"


def test_an_odd_launch_is_named_beside_the_verdict_it_was_about() -> None:
    odd = {"sample": "s01-b01/3", "text": "launch 4 of the candidate made 92.8 % of the others"}
    lines = odd_launches([row(odd_launch=odd), row("throughput_mb_s", index=1, odd_launch=odd)], ["lab"])
    assert ["".join(map(str, line)) for line in lines] == [
        "hba rand_read[bs=4k] (PASS): one launch left out, launch 4 of the candidate made 92.8 % of the others"
    ]
