# SPDX-License-Identifier: Apache-2.0
"""A hand-written check: each test gives an outcome, and in a run a criterion of its verdict.

A failed assertion is FAIL, any other exception ERROR, `pytest.skip` SKIPPED.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from storqual.run import Sample


def test_every_adapter_has_a_drive_that_may_be_tested(bench: Mapping[str, Any]) -> None:
    """For a bench that answers now, or for each bench of a run."""
    for alias, adapter in bench["adapters"].items():
        assert any(drive.get("claim") for drive in adapter["drives"]), f"no drive of {alias} is claimed"


@pytest.mark.points(workload="*")
def test_no_second_of_a_launch_is_empty(candidate: Sequence[Sample]) -> None:
    """At each point of a run; without a run there is nothing to check."""
    for sample in candidate:
        assert min(sample.series["iops"]) > 0, f"{sample.id} did nothing for a second"
