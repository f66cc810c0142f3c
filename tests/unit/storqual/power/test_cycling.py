# SPDX-License-Identifier: Apache-2.0
"""The power of a named bench: each step is an event of the run, and what is told has both sides."""

from pathlib import Path

import pytest

from storqual.power.cycling import BenchPower, cycle_bench, reached, usual_boot_limit_s
from storqual.power.switch import SwitchState
from storqual.run import append_event, iter_events
from tests.support.make_run import make_run
from tests.support.simulated_power import BOOT_LIMIT_S, LyingBackend, SimulatedBench


def power_of(bench: SimulatedBench, **lies: object) -> BenchPower:
    return BenchPower("bench01", [LyingBackend(bench, **lies)], bench, BOOT_LIMIT_S, bench.clock)  # type: ignore[arg-type]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = make_run(tmp_path)
    append_event(made, "resumed", {})
    return made


def test_a_cycle_is_in_the_events_of_its_run_step_by_step(run: Path) -> None:
    bench = SimulatedBench(hung=True)
    outcome = cycle_bench(power_of(bench), "hangs since 21:04", run=run)
    assert reached("cycle", outcome)
    events = [event for event in iter_events(run) if event.kind.startswith("power_")]
    steps, (last,) = events[:-1], events[-1:]
    assert [event.text("answer") for event in steps] == [step.answer for step in outcome.steps]
    assert {event.bench for event in events} == {"bench01"}
    assert (last.kind, last.text("reason"), last.text("state")) == ("power_switched", "hangs since 21:04", "on")
    assert last.fields["proven"] is True
    assert outcome.boot is not None
    assert last.text("boot_id") == outcome.boot.boot_id


def test_what_a_backend_says_and_what_the_bench_shows_stand_in_one_line() -> None:
    bench, lines = SimulatedBench(), list[str]()
    power_of(bench, says=SwitchState.ON).switch("off", "", say=lines.append)
    assert any("ipmi, state: on" in line and "nothing has answered for" in line for line in lines)


def test_a_cycle_without_a_new_boot_has_not_reached_it(run: Path) -> None:
    bench = SimulatedBench()
    outcome = cycle_bench(power_of(bench, off_does_nothing=True, on_does_nothing=True), "", run=run)
    assert not reached("cycle", outcome)
    assert outcome.state == SwitchState.ON
    last = list(iter_events(run))[-1]
    assert "boot_id" not in last.fields


@pytest.mark.parametrize("action", ["state", "on", "off"])
def test_other_actions_are_recorded_as_well(run: Path, action: str) -> None:
    bench = SimulatedBench()
    outcome = power_of(bench).switch(action, "", run=run)
    assert reached(action, outcome)
    last = list(iter_events(run))[-1]
    assert (last.text("action"), last.text("state")) == (action, "off" if action == "off" else "on")
    assert bench.runs == (action != "off")


def test_a_boot_may_take_half_as_long_again_as_is_usual() -> None:
    assert usual_boot_limit_s("hardware", 100.0) == 150.0
    assert usual_boot_limit_s("hardware") == 360.0
    assert usual_boot_limit_s("virtual") >= 300.0
