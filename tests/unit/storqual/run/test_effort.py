# SPDX-License-Identifier: Apache-2.0
"""Time left counts what is still to come: sessions with packages and boots, batches, the way back."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from click.testing import CliRunner

from storqual.cli.playbook.next import next_command
from storqual.run.effort import TimeLeft
from tests.support.make_lab import KERNEL, OTHER, lab_hosts
from tests.support.simulated_campaign import plan

if TYPE_CHECKING:
    from pathlib import Path

_LEFT = re.compile(r"about (\d+) min left$")


def planned(folder: Path) -> Path:
    hosts = lab_hosts({"sym": 2, "mpt": 2}, kind="hardware")
    return plan(folder, hosts=hosts, baseline=KERNEL, candidate=OTHER)


def test_a_session_that_is_prepared_tells_the_time_with_packages_boots_and_restore(tmp_path: Path) -> None:
    run = planned(tmp_path)
    expected = json.loads((run / "run.json").read_text(encoding="utf-8"))["plan"]
    ended = CliRunner().invoke(next_command, [str(run), "--bench", "b1", "--boot-id", "x", "--json"])
    told = json.loads(ended.output)["told"]
    assert told.startswith("b1 | session ")
    assert "packages, settings, boots" in told
    (minutes,) = _LEFT.findall(told)
    sessions = sum(session["bench"] == "b1" for session in expected["sessions"])
    needed = sessions * expected["effort"]["b1"]["session_s"] + expected["effort"]["b1"]["restore_s"]
    assert int(minutes) * 60 >= needed - 30
    assert expected["effort"]["b1"]["restore_s"] > 0


def test_the_way_back_is_told_as_what_is_left_when_nothing_more_is_measured(tmp_path: Path) -> None:
    left = TimeLeft(planned(tmp_path), "b1")
    left._after_s = 300.0
    assert left.told("the bench is put back", over=True) == "b1 | the bench is put back | about 5 min left"
    assert (left.seconds() or 0) > 300
