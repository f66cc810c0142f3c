# SPDX-License-Identifier: Apache-2.0
"""Tests of limits in percent of a published figure: the figure's own unit, its source, and what cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual.inputs import load_suite
from storqual.inputs.effective import effective
from storqual_core.kit.errors import BadInputError

SUITE = """\
workloads: {{iops_1k: {{rw: read, bs: 1k, factors: {{ports: [1, 2]}}}}}}
criteria:
  - {{{criterion}}}
profiles: {{quick: {{}}}}
{more}
"""


def suite(folder: Path, criterion: str, more: str = "") -> Path:
    """A suite with one criterion."""
    path = folder / "p.suite.yml"
    path.write_text(SUITE.format(criterion=criterion, more=more), encoding="utf-8")
    return path


def test_a_limit_is_that_share_of_the_figure(tmp_path: Path) -> None:
    """70,100 IOPS of two ports: 90 % are 63,090, and the source names report and page."""
    loaded = load_suite(
        suite(tmp_path, 'metric: iops, against: published, reference: "a6826a:iops.read[2]", min: 90 %')
    )
    found = effective(loaded.criteria[0], loaded.profiles["quick"], "hardware")
    assert (found.min, found.max) == (pytest.approx(63090.0), None)
    assert "A6826A" in found.source
    assert "p. 2" in found.source


def test_a_label_may_hold_blanks(tmp_path: Path) -> None:
    reference = '"a6826a:sd.throughput[single read 4KB]"'
    loaded = load_suite(
        suite(tmp_path, f"metric: throughput_mb_s, against: published, reference: {reference}, max: 100 %")
    )
    assert effective(loaded.criteria[0], loaded.profiles["quick"], "hardware").max == pytest.approx(130.0)


@pytest.mark.parametrize(
    ("criterion", "said"),
    [
        (
            'metric: iops, against: published, reference: "a6826a:iops.raed[2]", min: 90 %',
            "did you mean 'iops.read'?",
        ),
        (
            'metric: iops, against: published, reference: "a6826:iops.read[2]", min: 90 %',
            "unknown published report 'a6826'",
        ),
        ('metric: iops, against: published, reference: "a6826a:throughput.read[2]", min: 90 %', "a figure of iops"),
        ('metric: iops, against: published, reference: "a6826a:iops.read[2]", min: 5000', "percent of the published"),
        ('metric: iops, against: published, reference: "a6826a:iops.read[2]"', "`min` or `max` in percent"),
        ('metric: iops, against: absolute, reference: "a6826a:iops.read[2]", min: 90 %', "`against: published`"),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_line(tmp_path: Path, criterion: str, said: str) -> None:
    with pytest.raises(BadInputError) as raised:
        load_suite(suite(tmp_path, criterion))
    assert said in str(raised.value)
    assert "p.suite.yml:3: " in str(raised.value)


def test_an_unknown_published_report_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="expected one of a6826a"):
        load_suite(suite(tmp_path, "metric: iops, against: baseline", "published: [a6827a]"))
