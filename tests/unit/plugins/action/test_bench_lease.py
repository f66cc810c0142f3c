# SPDX-License-Identifier: Apache-2.0
"""A bench that is off, such as a virtual one before its campaign, is queued for on the control node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storqual_core.kit.lease import LeaseBook
from tests.support.make_run import make_run
from tests.unit.plugins.action.test_recovering_action import NEW, play

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.plays


def test_a_bench_that_is_off_is_queued_for_and_not_asked(tmp_path: Path) -> None:
    run, queue = make_run(tmp_path / "run"), tmp_path / "queue"
    task = {"bench_lease": {"run": str(run), "queue": str(queue), "wait": "", "only_queue": True}}
    result = play(tmp_path, task, back=NEW, up=False)
    assert (result["failed"], result["lease"]) == (False, "")
    owner = LeaseBook(queue).read().owner
    assert owner is not None
    assert (owner.run, result["queued"].partition("@")[2]) == (run.name, str(queue))
    assert not (tmp_path / "logins").exists()
