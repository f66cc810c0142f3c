# SPDX-License-Identifier: Apache-2.0
"""A kernel of a trial boot that hangs is ended without hands: by the watchdog, by a detector, by the ladder."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from storqual.bench.ladder import Recovery
from storqual.run import append_event, iter_events
from storqual.turns.bring_back import Hung, bring_back, means_of
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_state
from storqual.virtual_bench.qmp import converse
from storqual_core.provision.boot import WATCHDOG_S
from tests.support.driver_sources import driver_sources
from tests.support.live_bench import REPOSITORY, bench_here, discard, over_ssh, play
from tests.support.turn_records import REQUEST, plan_campaign

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(2400)]

INVENTORY = REPOSITORY / "inventories" / "virtual_debug"
BENCH = "vdebug"
PANIC = "sysctl -qw kernel.panic=0; (sleep 1; echo c > /proc/sysrq-trigger) >/dev/null 2>&1 & sleep 5"
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
WATCHDOG = "cd /sys/class/watchdog/watchdog0 && echo $(cat identity), $(cat timeout) s, $(cat state)"
DETECTORS = "sysctl -n kernel.panic kernel.softlockup_panic kernel.hung_task_panic kernel.panic_on_oops kernel.sysrq"


@pytest.fixture(scope="module")
def places() -> Iterator[BenchPlaces]:
    found = BenchPlaces.of(REPOSITORY / ".cache" / "bench" / "hangs")
    discard(found.state)
    run(found, "bench_up.yml")
    yield found
    discard(found.state)


def run(places: BenchPlaces, playbook: str, *words: object) -> str:
    log = places.state.parent / "hangs.log"
    code, output = play(log, INVENTORY, playbook, "-e", f"virtual_bench_state={places.state}", *words)
    assert code == 0, output[-3000:]
    return output


@pytest.fixture
def boot(places: BenchPlaces, tmp_path: Path) -> str:
    """The bench in a fresh trial boot; its id."""
    drop = tmp_path / "drop.yml"
    drop.write_text(f"name: t\ndescription: d\nos: {{cmdline: [storqual.n={time.time_ns()}]}}\n", encoding="utf-8")
    run(places, "provision.yml", "-e", f"drop={drop}", "-e", "prove_s=0")
    assert "storqual.trial=" in over_ssh(places.state, BENCH, "cat /proc/cmdline")
    return over_ssh(places.state, BENCH, BOOT_ID).strip()


def recovered(places: BenchPlaces, path: Path, boot: str, began: float) -> Recovery:
    """What the ladder makes of a bench that fell silent at `began`, in a run of its own."""
    setting = {"name": "boot.watchdog", "declared": None, "read_back": f"i6300ESB timer, {WATCHDOG_S} s"}
    started = {"bench": "vbench", "session": "s01", "boot_id": boot, "provisioned": {"settings": [setting]}}
    append_event(path, "session_started", started)
    here = replace(bench_here(places.state, BENCH, Path("p")), name="vbench", means=means_of(places))
    return bring_back(
        path,
        here,
        Hung("s01", "candidate", "s01-b001", "a-turn"),
        boot=boot,
        hangs=True,
        reason="it stopped answering",
        silent_s=time.monotonic() - began,
        console_mark=here.console_mark(),
        say=print,
    )


def start(places: BenchPlaces, line: str) -> float:
    """Have the bench run what hangs it, and when that was."""
    with suppress(AssertionError, subprocess.TimeoutExpired):
        over_ssh(places.state, BENCH, line, limit_s=15)
    return time.monotonic()


def test_a_trial_boot_has_its_watchdog_armed_and_its_detectors_set(places: BenchPlaces, boot: str) -> None:
    assert boot
    assert over_ssh(places.state, BENCH, WATCHDOG).strip() == f"i6300ESB timer, {WATCHDOG_S} s, active"
    assert over_ssh(places.state, BENCH, DETECTORS).split() == ["10", "1", "1", "1", "1"]


def test_a_spin_with_interrupts_off_is_ended_by_the_watchdog(places: BenchPlaces, boot: str, tmp_path: Path) -> None:
    module = driver_sources(tmp_path, ()).whole_module(REPOSITORY / "tests/virtual/guest/spin.c")
    over_ssh(places.state, BENCH, "cat > /root/spin.ko", data=module.read_bytes())
    path = plan_campaign(REQUEST, tmp_path / "runs")
    began = start(places, "insmod /root/spin.ko; sleep 5")
    recovery = recovered(places, path, boot, began)
    assert recovery.ended_by == "watchdog i6300ESB timer"
    assert time.monotonic() - began < 300
    [hung] = [event for event in iter_events(path) if event.kind == "bench_hung"]
    assert cast("float", hung.fields["seconds"]) < 300
    assert "storqual.trial=" not in over_ssh(places.state, BENCH, "cat /proc/cmdline")


def test_a_panic_that_nobody_ends_is_ended_by_the_watchdog_and_its_trace_is_kept(
    places: BenchPlaces, boot: str, tmp_path: Path
) -> None:
    path = plan_campaign(REQUEST, tmp_path / "runs")
    began = start(places, PANIC)
    recovery = recovered(places, path, boot, began)
    assert recovery.boot_id not in ("", boot)
    assert time.monotonic() - began < 300


def test_tasks_are_shown_over_the_keyboard_of_a_bench_that_answers_and_it_is_restarted(
    places: BenchPlaces, boot: str, tmp_path: Path
) -> None:
    path = plan_campaign(REQUEST, tmp_path / "runs")
    recovery = recovered(places, path, boot, time.monotonic())
    assert recovery.ended_by == "restart by the kernel"
    look = next(event for event in iter_events(path) if event.text("step") == "look")
    assert "sysrq: Show Blocked State" in look.text("evidence")


def test_a_bench_that_hangs_is_started_again_by_bench_up_and_ended_by_bench_down(places: BenchPlaces) -> None:
    before = over_ssh(places.state, BENCH, BOOT_ID)
    state = power_state(places)
    assert state is not None
    converse(Path(state.monitor), lambda monitor: monitor.ask("stop"))
    assert f"{BENCH} was on and did not answer, so its plug was pulled" in run(places, "bench_up.yml", "-v")
    assert over_ssh(places.state, BENCH, BOOT_ID) != before
    # and one whose kernel has stopped for good, which still computes
    start(places, f"sysctl -qw kernel.sysrq=1; {PANIC}")
    assert "Kernel panic" in places.console.read_text(encoding="utf-8", errors="replace")
    assert "the guest did not answer, so the plug was pulled" in run(places, "bench_down.yml", "-v")
    assert power_state(places) is None
    # the plug is pulled once
    assert "it was off" in run(places, "bench_down.yml", "-v")
