# SPDX-License-Identifier: Apache-2.0
"""The role restore: when it boots, and when it has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plays.stub import play

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.plays

NOTHING = {"restored": True, "reboot": False, "power_cycle": False, "run": "", "settings": [], "steps": []}


def test_a_bench_on_its_own_kernel_is_put_back_without_a_boot(tmp_path: Path) -> None:
    answers = {"bench_restore": [{**NOTHING, "changed": True, "run": "r1"}], "bench_reboot": [{}]}
    played = play(tmp_path, "restore", {"restore_state_dir": "/s"}, answers, report="restore_report")
    assert played.code == 0, played.output
    assert played.order == ["bench_restore"]
    assert played.asked("bench_restore")[0]["state_dir"] == "/s"
    assert played.facts["run"] == "r1"


def test_a_bench_on_another_kernel_is_booted_and_then_put_back(tmp_path: Path) -> None:
    first = {**NOTHING, "changed": True, "restored": False, "reboot": True}
    answers = {
        "bench_restore": [first, {**NOTHING, "changed": True, "run": "r1"}],
        "bench_reboot": [{"changed": True}],
    }
    played = play(tmp_path, "restore", {}, answers, report="restore_report")
    assert played.code == 0, played.output
    assert played.order == ["bench_restore", "bench_reboot", "bench_restore"]
    assert played.facts["restored"]


def test_a_former_kernel_that_does_not_come_up_is_a_failure(tmp_path: Path) -> None:
    """It booted, and still another kernel runs."""
    answers = {"bench_restore": [{**NOTHING, "restored": False, "reboot": True}], "bench_reboot": [{"changed": True}]}
    played = play(tmp_path, "restore", {}, answers)
    assert played.code == 2
    assert "its former kernel is not the default" in played.output


def test_check_mode_of_a_restore_boots_nothing(tmp_path: Path) -> None:
    """It says that it would."""
    answers = {
        "bench_restore": [{**NOTHING, "restored": False, "reboot": True, "changed": True}],
        "bench_reboot": [{}],
    }
    played = play(tmp_path, "restore", {}, answers, check=True)
    assert played.code == 0, played.output
    assert all(check for _, _, check in played.calls)
