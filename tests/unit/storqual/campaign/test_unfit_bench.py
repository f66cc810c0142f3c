# SPDX-License-Identifier: Apache-2.0
"""A bench that no campaign should rely on: a drive of it fails, or its golden reference left its limits."""

from pathlib import Path

import pytest

from storqual.campaign.unfit_bench import unfit_reasons
from storqual.run import append_event, read_run
from tests.support.make_run import add_reference, make_run


@pytest.mark.parametrize(
    ("looks", "unfit"),
    [
        ([True, True], False),
        ([True, False], True),
        # one that was exchanged, or that the tool misread
        ([False, True], False),
        ([False, None], True),
        ([None], False),
    ],
)
def test_a_drive_that_says_at_last_that_it_fails_makes_its_bench_unfit(
    tmp_path: Path, looks: list[bool | None], unfit: bool
) -> None:
    path = make_run(tmp_path, finished=False)
    for passed in looks:
        fields = {"bench": "vbench", "when": "after", "facts": {}, "logs": {"0x5": {"passed": passed}}}
        append_event(path, "environment", fields)
    append_event(path, "environment", {**fields, "bench": "another", "logs": {"0x6": {"passed": False}}})
    reasons = unfit_reasons(read_run(path), "vbench")
    assert ["0x5" in reason for reason in reasons] == [True] * unfit


@pytest.mark.parametrize(("share", "unfit"), [(1.0, False), (0.9, True), (1.1, True)])
def test_a_reference_that_left_its_limits_makes_its_bench_unfit(tmp_path: Path, share: float, unfit: bool) -> None:
    path = make_run(tmp_path, noise=0.003)
    add_reference(path, share)
    assert len(unfit_reasons(read_run(path), "vbench")) == unfit
    assert unfit_reasons(read_run(path), "another") == []
