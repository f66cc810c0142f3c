# SPDX-License-Identifier: Apache-2.0
"""The roles of adapters: asked only when something is declared, and what they leave for the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plays.stub import play

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.plays


def test_nvram_is_set_in_one_call_and_leaves_what_the_driver_must_do(tmp_path: Path) -> None:
    answer = {"settings": [{"name": "nvram.execution_throttle"}], "drift": ["d"], "throttle": {"fc0": 32}}
    variables = {"hba_nvram_settings": {"fc0": {"execution_throttle": 32}}, "hba_nvram_adapters": {"fc0": {}}}
    played = play(tmp_path, "hba_nvram", variables, {"hba_nvram": [answer]}, report="hba_nvram_report")
    assert played.code == 0, played.output
    (asked,) = played.asked("hba_nvram")
    assert (asked["nvram"], asked["start_driver"]) == ({"fc0": {"execution_throttle": 32}}, True)
    assert played.facts == answer


def test_options_and_throttles_are_one_call(tmp_path: Path) -> None:
    variables = {"adapter_queue_options": {"m": {"p": 1}}, "adapter_queue_throttle": {"fc0": 32}}
    answer = {"settings": [{"name": "driver.options.m.p"}], "drift": []}
    played = play(tmp_path, "adapter_queue", variables, {"adapter_queue": [answer]}, report="adapter_queue_report")
    assert played.code == 0, played.output
    (asked,) = played.asked("adapter_queue")
    assert (asked["options"], asked["throttle"]) == ({"m": {"p": 1}}, {"fc0": 32})
    assert played.facts["settings"] == answer["settings"]


def test_nothing_declared_is_no_call_unless_an_earlier_step_may_have_left_something(tmp_path: Path) -> None:
    for role in ("hba_nvram", "adapter_queue"):
        played = play(tmp_path, role, {}, {role: [{}]}, report=f"{role}_report")
        assert played.code == 0, played.output
        assert played.calls == []
        assert played.facts["drift"] == []
    played = play(tmp_path, "adapter_queue", {"adapter_queue_as_found": True}, {"adapter_queue": [{}]})
    assert len(played.asked("adapter_queue")) == 1
