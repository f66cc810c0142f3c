# SPDX-License-Identifier: Apache-2.0
"""Trials that take the power of a bench: what is reported is what was so, whatever the backends say."""

from pathlib import Path
from typing import cast

import pytest

from storqual.bench.follow import Connection, ConnectionLostError
from storqual.kinds.record import DRIVE_KEPT_POWER, DRIVE_LOST_POWER
from storqual.power.cycling import BenchPower
from storqual.run import append_event, iter_events
from storqual.turns.acts import POWER_WAYS, PowerReach, longest_cycle_s
from storqual_core.data.faults import POWER, WAYS
from storqual_core.kit.errors import ToolError
from tests.support.make_run import make_run
from tests.support.simulated_power import BOOT_LIMIT_S, BOOT_S, LyingBackend, SimulatedBench


class Link:
    """Enough of a connection: the boot that a simulated bench answers from."""

    def __init__(self, bench: SimulatedBench) -> None:
        self.bench, self.cuts = bench, 0

    def boot_id(self, *, limit_s: float = 0.0) -> str:
        boot = self.bench.boot()
        if boot is None:
            raise ConnectionLostError(f"no answer within {limit_s:g} s")
        return boot.boot_id

    def cut(self) -> None:
        self.cuts += 1


@pytest.fixture
def bench() -> SimulatedBench:
    bench = SimulatedBench(outlets=[True, True])
    bench.passes(BOOT_S)
    return bench


def take(
    tmp_path: Path,
    bench: SimulatedBench,
    backends: list[LyingBackend],
    *,
    way: str = "power_removal",
    shelf: str = "bench",
    away_s: float = 0.0,
    emulated: bool = False,
) -> list[str]:
    """What was reported of a trial that takes the power."""
    reported: list[str] = []
    power = BenchPower("bench01", backends, bench, BOOT_LIMIT_S, bench.clock)
    run = make_run(tmp_path)
    append_event(run, "resumed", {})
    reach = PowerReach(
        *(run, power, cast("Connection", Link(bench)), shelf, away_s, emulated),
        lambda seen, _text: reported.append(seen),
    )
    POWER_WAYS[way](reach)
    return reported


def outlets(bench: SimulatedBench, **more: object) -> LyingBackend:
    return LyingBackend(bench, "pdudaemon", (0, 1), removes="ac", off_for_s=30.0, **more)  # type: ignore[arg-type]


def test_outlets_take_the_power_of_the_bench_and_of_a_drive_in_it(tmp_path: Path, bench: SimulatedBench) -> None:
    assert take(tmp_path, bench, [outlets(bench)]) == ["power_off", DRIVE_LOST_POWER, "other_boot"]
    assert (bench.cuts_of_a_healthy_bench, bench.runs) == (1, True)


def test_a_backend_that_takes_no_power_of_drives_is_asked_only_after_those_that_do(
    tmp_path: Path, bench: SimulatedBench
) -> None:
    controller = LyingBackend(bench)
    assert DRIVE_LOST_POWER in take(tmp_path, bench, [controller, outlets(bench)])
    assert "off" not in controller.asked


def test_a_bench_that_stays_off_behind_its_outlets_is_switched_on_by_its_controller(
    tmp_path: Path, bench: SimulatedBench
) -> None:
    bench.automatic = False
    assert "other_boot" in take(tmp_path, bench, [LyingBackend(bench), outlets(bench)])
    assert bench.runs


@pytest.mark.parametrize(("powers", "lost"), [(("bench",), False), (("bench", "shelf1"), True)])
def test_a_drive_of_a_shelf_loses_power_where_the_backend_powers_that_shelf(
    tmp_path: Path, bench: SimulatedBench, powers: tuple[str, ...], lost: bool
) -> None:
    seen = take(tmp_path, bench, [outlets(bench, powers=powers)], shelf="shelf1")
    assert (DRIVE_LOST_POWER in seen, DRIVE_KEPT_POWER in seen) == (lost, not lost)


def test_an_emulated_drive_never_loses_power(tmp_path: Path, bench: SimulatedBench) -> None:
    assert DRIVE_KEPT_POWER in take(tmp_path, bench, [outlets(bench)], emulated=True)


def test_power_that_was_not_taken_proves_nothing(tmp_path: Path, bench: SimulatedBench) -> None:
    liar = outlets(bench, off_does_nothing=True, on_does_nothing=True)
    reported: list[str] = []
    with pytest.raises(ToolError, match="no new boot"):
        reported += take(tmp_path, bench, [liar])
    assert not reported


def test_a_cut_by_a_backend_that_does_not_remove_power_is_none(tmp_path: Path, bench: SimulatedBench) -> None:
    dead = outlets(bench, off_does_nothing=True, on_does_nothing=True)
    with pytest.raises(ToolError, match="no backend that removes"):
        take(tmp_path, bench, [dead, LyingBackend(bench)])
    with pytest.raises(ToolError, match="`storqual_power`"):
        take(tmp_path / "none", bench, [LyingBackend(bench)])


def test_a_bench_that_is_lost_stays_without_power_for_as_long_as_the_trial_says(
    tmp_path: Path, bench: SimulatedBench
) -> None:
    began = bench.now
    take(tmp_path, bench, [outlets(bench)], way="power_absence", away_s=300.0)
    assert bench.now - began > 300.0
    (run,) = tmp_path.iterdir()
    steps = [event for event in iter_events(run) if event.kind == "power_step"]
    assert {"on", "off"} <= {event.text("action") for event in steps}


def test_a_trial_waits_for_as_long_as_the_backends_may_take(bench: SimulatedBench) -> None:
    power = BenchPower("bench01", [outlets(bench), LyingBackend(bench)], bench, BOOT_LIMIT_S, bench.clock)
    assert longest_cycle_s(power, 0.0) > 2 * BOOT_LIMIT_S + 30.0
    assert longest_cycle_s(power, 600.0) > 1200.0


def test_every_way_of_the_power_is_in_the_table_and_the_other_way_round() -> None:
    assert {name for name, (_, way) in WAYS.items() if way.where == POWER} == set(POWER_WAYS)
