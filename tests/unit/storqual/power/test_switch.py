# SPDX-License-Identifier: Apache-2.0
"""Power is believed only with evidence, whatever backends say."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual.power.switch import PowerOutcome, SwitchState, cycle, read_power, switch_off, switch_on
from tests.support.simulated_power import BOOT_LIMIT_S, BOOT_S, LyingBackend, SimulatedBench

ON, OFF, UNKNOWN = SwitchState


def cycled(bench: SimulatedBench, *backends: LyingBackend) -> PowerOutcome:
    return cycle(
        backends, bench, off_for_s=None, boot_limit_s=BOOT_LIMIT_S, tell=lambda _step: None, clock=bench.clock
    )


def switched_on(bench: SimulatedBench, *backends: LyingBackend) -> PowerOutcome:
    return switch_on(backends, bench, boot_limit_s=BOOT_LIMIT_S, tell=lambda _step: None, clock=bench.clock)


def switched_off(bench: SimulatedBench, *backends: LyingBackend) -> PowerOutcome:
    return switch_off(backends, bench, tell=lambda _step: None, clock=bench.clock)


def was_read(bench: SimulatedBench, *backends: LyingBackend) -> PowerOutcome:
    return read_power(backends, bench, tell=lambda _step: None, clock=bench.clock)


def outlet(bench: SimulatedBench, **faults: object) -> LyingBackend:
    return LyingBackend(bench, "pdu", tuple(range(len(bench.outlets))), off_for_s=30.0, **faults)  # type: ignore[arg-type]


LIES: dict[str, dict[str, object]] = {
    "silent for 60 s": {"silent_until": 1060.0},
    "times out": {"dead": True},
    "answers success and does nothing": {"off_does_nothing": True, "on_does_nothing": True},
    "switches off and never on": {"on_does_nothing": True},
    "says on when off": {"says": ON},
    "says off when on": {"says": OFF},
    "says off when on, and does nothing": {"says": OFF, "off_does_nothing": True, "on_does_nothing": True},
    "takes 11 s to obey": {"delay_s": 11.0},
    "cycles on on": {"on_cycles": True},
    "fails after it worked": {"fails_after": True},
}


@pytest.mark.parametrize("hung", [False, True])
@pytest.mark.parametrize("lie", LIES)
def test_a_bench_behind_a_controller_that_lies_comes_back_by_its_outlet(lie: str, hung: bool) -> None:
    bench = SimulatedBench(hung=hung)
    outcome = cycled(bench, LyingBackend(bench, **LIES[lie]), outlet(bench))  # type: ignore[arg-type]
    assert outcome.boot is not None
    assert outcome.boot == bench.boot()
    assert bench.boots > 1
    assert outcome.proven


@pytest.mark.parametrize("lie", ["silent for 60 s", "says on when off", "says off when on", "takes 11 s to obey"])
def test_one_controller_that_lies_but_obeys_is_enough(lie: str) -> None:
    bench = SimulatedBench(hung=True)
    outcome = cycled(bench, LyingBackend(bench, **LIES[lie]))  # type: ignore[arg-type]
    assert outcome.boot == bench.boot()


def test_a_cycle_of_a_bench_that_hangs_takes_less_than_three_minutes_with_an_honest_controller() -> None:
    bench = SimulatedBench(hung=True)
    assert cycled(bench, LyingBackend(bench)).boot is not None
    assert bench.now - 1000.0 < BOOT_S + 60.0


def test_on_is_sent_after_an_off_that_reported_an_error() -> None:
    bench = SimulatedBench(hung=True)
    backend = outlet(bench, fails_after=True)
    assert cycled(bench, backend).boot is not None
    assert backend.asked.index("off") < backend.asked.index("on")


def test_on_is_sent_after_an_off_that_nobody_answered() -> None:
    bench = SimulatedBench()
    outcome = cycled(bench, LyingBackend(bench, mute=True), outlet(bench))
    assert outcome.boot == bench.boot() is not None
    orders = [(step.backend, step.action) for step in outcome.steps if step.action in ("off", "on") and step.backend]
    assert ("ipmi", "on") in orders
    assert ("pdu", "off") not in orders[: orders.index(("ipmi", "on"))]


def test_a_bench_whose_switching_on_was_lost_is_switched_on_again() -> None:
    bench = SimulatedBench(hung=True)
    assert cycled(bench, LyingBackend(bench, lost=1)).boot == bench.boot() is not None


def test_off_is_not_proven_while_a_backend_says_on() -> None:
    bench = SimulatedBench()
    outcome = switched_off(bench, LyingBackend(bench, says=ON))
    assert not bench.runs
    assert (outcome.state, outcome.proven) == (UNKNOWN, False)
    assert "ipmi says on; nothing has answered" in outcome.conclusion


def test_off_is_sent_to_a_bench_that_hangs_behind_a_controller_that_says_off() -> None:
    bench = SimulatedBench(hung=True)
    switched_off(bench, LyingBackend(bench, says=OFF))
    assert not bench.runs


def test_a_bench_with_one_dead_outlet_of_two_is_not_said_to_be_off() -> None:
    bench = SimulatedBench(outlets=[True, True])
    outcome = switched_off(bench, outlet(bench, dead_outlets=(1,)))
    assert (outcome.state, outcome.proven) == (ON, True)
    assert bench.answers


def test_a_bench_left_soft_off_behind_its_outlet_is_switched_on_by_the_controller() -> None:
    """The controller hangs until its own power was cut, and the bench does not start by itself."""
    bench = SimulatedBench(hung=True, automatic=False)
    controller = LyingBackend(bench, dead=True)

    def revive() -> None:
        controller.dead = False

    cut = bench.set_outlets

    def cut_and_revive(chosen: list[int], *, on: bool) -> None:
        cut(chosen, on=on)
        revive()

    bench.set_outlets = cut_and_revive  # type: ignore[method-assign]
    outcome = cycled(bench, controller, outlet(bench))
    assert outcome.boot == bench.boot() is not None
    # while the boot is waited for, not when it has not come
    assert not any("no new boot within" in step.answer for step in outcome.steps)


def test_off_is_waited_for_and_a_pause_is_made_before_on() -> None:
    bench = SimulatedBench()
    sent: dict[str, float] = {}

    class Timed(LyingBackend):
        def _switch(self, *, on: bool) -> None:
            sent["on" if on else "off"] = bench.now
            super()._switch(on=on)

    cycled(bench, Timed(bench, off_for_s=30.0))
    assert sent["on"] - sent["off"] >= 20.0 + 30.0


@pytest.mark.parametrize("lie", [*LIES, "honest"])
def test_on_sends_nothing_to_a_bench_that_answers(lie: str) -> None:
    bench = SimulatedBench()
    backend = LyingBackend(bench, **LIES.get(lie, {}))  # type: ignore[arg-type]
    outcome = switched_on(bench, backend, outlet(bench))
    assert (outcome.state, outcome.proven, backend.asked) == (ON, True, [])
    assert bench.cuts_of_a_healthy_bench == 0


def test_on_waits_for_a_bench_that_is_booting() -> None:
    bench = SimulatedBench(booted_at=990.0)
    backend = LyingBackend(bench, on_cycles=True)
    assert switched_on(bench, backend).boot == bench.boot() is not None
    assert backend.asked == []


def test_on_switches_on_what_is_off_by_the_second_backend() -> None:
    bench = SimulatedBench(soft=False)
    first, second = LyingBackend(bench, on_does_nothing=True), LyingBackend(bench, "redfish")
    outcome = switched_on(bench, first, second)
    assert outcome.boot == bench.boot() is not None


def test_on_sends_nothing_to_a_bench_that_is_said_to_be_on_and_shows_both() -> None:
    bench = SimulatedBench(hung=True)
    backend = LyingBackend(bench)
    outcome = switched_on(bench, backend)
    assert (outcome.state, outcome.proven, backend.asked) == (UNKNOWN, False, [])
    assert "ipmi says on" in outcome.conclusion
    assert "nothing has answered" in outcome.conclusion


def test_unknown_is_not_off() -> None:
    bench = SimulatedBench(hung=True)
    outcome = was_read(bench, outlet(bench), LyingBackend(bench, dead=True))
    assert (outcome.state, outcome.proven) == (UNKNOWN, False)


def test_a_bench_that_boots_is_not_off_when_its_console_shows_it() -> None:
    bench = SimulatedBench(booted_at=999.0, console=True)
    outcome = was_read(bench, LyingBackend(bench, says=OFF))
    assert (outcome.state, outcome.proven) == (ON, True)


def test_a_bench_that_is_off_is_said_to_be_off_after_twenty_seconds_of_silence() -> None:
    bench = SimulatedBench(soft=False)
    outcome = was_read(bench, LyingBackend(bench))
    assert (outcome.state, outcome.proven) == (OFF, True)
    assert bench.now >= 1020.0


def test_a_boot_from_before_that_answers_again_is_not_taken_for_a_new_one() -> None:
    """The network was away when the cycle began, so nobody knew which boot ran."""
    bench = SimulatedBench()
    away_until = bench.now + 90.0
    answers = bench.boot
    bench.boot = lambda: answers() if bench.now >= away_until else None  # type: ignore[method-assign]
    outcome = cycled(bench, LyingBackend(bench, off_does_nothing=True, on_does_nothing=True))
    assert outcome.boot is None
    assert bench.boots == 1


def test_every_order_and_every_answer_is_a_step_with_what_the_bench_showed() -> None:
    bench = SimulatedBench()
    told = []
    outcome = cycle(
        [LyingBackend(bench)], bench, off_for_s=None, boot_limit_s=BOOT_LIMIT_S, tell=told.append, clock=bench.clock
    )
    assert tuple(told) == outcome.steps
    actions = [(step.backend, step.action) for step in told]
    assert actions.index(("ipmi", "state")) < actions.index(("ipmi", "off")) < actions.index(("ipmi", "on"))
    before = [step for step in told[: actions.index(("ipmi", "on"))] if step.backend == "ipmi"]
    assert (before[-1].action, before[-1].answer) == ("state", "off")
    assert all(step.evidence for step in told)


FAULTS = st.fixed_dictionaries(
    {},
    optional={
        "silent_until": st.sampled_from([1030.0, 1060.0]),
        "dead": st.booleans(),
        "off_does_nothing": st.booleans(),
        "on_does_nothing": st.booleans(),
        "says": st.sampled_from([ON, OFF, UNKNOWN]),
        "delay_s": st.sampled_from([1.0, 11.0]),
        "on_cycles": st.booleans(),
        "fails_after": st.booleans(),
    },
)
BENCHES = st.builds(
    SimulatedBench,
    outlets=st.sampled_from([[True], [True, True]]),
    soft=st.booleans(),
    hung=st.booleans(),
    automatic=st.booleans(),
    console=st.booleans(),
    booted_at=st.sampled_from([0.0, 970.0, 999.0]),
)
OPERATIONS: dict[str, Callable[..., PowerOutcome]] = {
    "state": was_read,
    "on": switched_on,
    "off": switched_off,
    "cycle": cycled,
}


def undecidable(bench: SimulatedBench, lies: dict[str, object]) -> bool:
    """A bench that runs in silence behind a controller that says off: nothing on the control node can tell."""
    quiet = bench.hung or (not bench.console and bench.booted_at + BOOT_S > bench.now)
    return bench.runs and quiet and lies.get("says") == OFF


@settings(max_examples=300, deadline=None)
@given(bench=BENCHES, lies=FAULTS, dead=st.booleans(), name=st.sampled_from(list(OPERATIONS)))
def test_no_state_is_said_to_be_proven_that_is_not_so(
    bench: SimulatedBench, lies: dict[str, object], dead: bool, name: str
) -> None:
    if undecidable(bench, lies) and name != "cycle":
        return
    dead_outlets = (1,) if dead and len(bench.outlets) > 1 else ()
    backends = (LyingBackend(bench, **lies), outlet(bench, dead_outlets=dead_outlets))  # type: ignore[arg-type]
    outcome = OPERATIONS[name](bench, *backends)
    if outcome.proven and outcome.state == OFF:
        assert not bench.runs
    if outcome.proven and outcome.state == ON:
        assert bench.runs
    if outcome.boot is not None:
        assert outcome.boot == bench.boot()


@settings(max_examples=300, deadline=None)
@given(bench=BENCHES, lies=FAULTS, first=st.booleans())
def test_a_power_cycle_leaves_no_bench_dark_while_one_backend_works(
    bench: SimulatedBench, lies: dict[str, object], first: bool
) -> None:
    """Whatever the other one is like, first or second."""
    good = outlet(bench)
    bench.automatic = True
    liar = LyingBackend(bench, **lies)  # type: ignore[arg-type]
    outcome = cycled(bench, *((good, liar) if first else (liar, good)))
    assert outcome.boot is not None
    bench.passes(4 * BOOT_S)
    assert bench.runs
    assert bench.answers


@settings(max_examples=200, deadline=None)
@given(lies=FAULTS, console=st.booleans())
def test_on_never_cycles_a_healthy_bench(lies: dict[str, object], console: bool) -> None:
    bench = SimulatedBench(console=console)
    switched_on(bench, LyingBackend(bench, **lies), outlet(bench))  # type: ignore[arg-type]
    bench.passes(60.0)
    assert (bench.cuts_of_a_healthy_bench, bench.boots) == (0, 1)
