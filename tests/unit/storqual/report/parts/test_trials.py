# SPDX-License-Identifier: Apache-2.0
"""Trials in a report: what the first screen counts, and which adapters were under test."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from storqual.report.material import Material
from storqual.report.parts.first_screen import untested
from storqual.report.parts.trials import trials_of

TRIALS = [
    {"session": "s01", "adapter": "sym", "fault": "read_error"},
    {"session": "s01", "adapter": "fusion", "fault": "read_error"},
]
RUN: Any = SimpleNamespace(
    document={"plan": {"trials": TRIALS, "left_out": ["host_reset on sym: no way"]}},
    sessions=[SimpleNamespace(id="s01", bench="b1")],
    events=(),
    benches={"b1": {"adapters": {name: {"model": name.upper()} for name in ("sym", "fusion", "nvme")}}},
)


def record(adapter: str, outcome: str, recovery: float | None) -> dict[str, Any]:
    return {
        "id": f"read_error.{adapter}.1.1.baseline",
        "fault": "read_error",
        "adapter": adapter,
        "arm": "baseline",
        "outcome": outcome,
        "recovery_s": recovery,
        "reasons": ["why"],
        "timeline": [],
    }


def test_the_first_screen_counts_failures_among_proven_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    void = [record("sym", "void", 9.0)] * 2
    records = [record("sym", "passed", 1.25), *void, record("fusion", "failed", 3.5)]
    monkeypatch.setattr("storqual.report.parts.trials.read_trials", lambda _: SimpleNamespace(records=records))
    monkeypatch.setattr("storqual.report.parts.trials.repeat_command", lambda _run, trial: f"again {trial}")
    found = trials_of(RUN)
    assert found is not None
    assert [(name, value) for name, value, _ in found.figures] == [
        ("Failed trials", "1 of 2"),
        ("Faults", "1"),
        ("Worst recovery", "3.5 s"),
    ]
    assert "(fault not proven): 2" in found.figures[0][2]
    assert found.left_out == ("host_reset on sym: no way",)


def test_adapters_under_test_are_those_of_the_trials() -> None:
    material = Material(RUN, {}, "", {}, (), None, 0)
    assert material.tested == (("b1", "fusion"), ("b1", "sym"))
    told = {one.name: one.values for one in untested(material, [], ["b1"])}
    assert told["Adapters"] == ("nvme (NVME)",)
    assert "Performance" in told
