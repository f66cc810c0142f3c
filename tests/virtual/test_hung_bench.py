# SPDX-License-Identifier: Apache-2.0
"""A virtual bench that hangs: bench_up starts it again instead of calling it on, bench_down does not wait for it."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_state
from storqual.virtual_bench.qmp import converse
from tests.support.live_bench import REPOSITORY, discard, over_ssh, play

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(2400)]

INVENTORY = REPOSITORY / "inventories" / "virtual_debug"
BENCH = "vdebug"
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
PANIC = "sysctl -qw kernel.panic=0 kernel.sysrq=1; (sleep 1; echo c > /proc/sysrq-trigger) >/dev/null 2>&1 &"


@pytest.fixture
def places() -> Iterator[BenchPlaces]:
    """A bench of one adapter that is on, and off in the end whatever it does."""
    found = BenchPlaces.of(REPOSITORY / ".cache" / "bench" / "hung")
    discard(found.state)
    switch(found, "bench_up.yml")
    yield found
    discard(found.state)


def switch(places: BenchPlaces, playbook: str) -> str:
    """What a playbook that powers the bench on or off prints."""
    log = places.state.parent / "hung.log"
    code, output = play(log, INVENTORY, playbook, "-v", "-e", f"virtual_bench_state={places.state}")
    assert code == 0, output[-3000:]
    return output


def test_a_bench_that_hangs_is_started_again_by_bench_up_and_ended_by_bench_down(places: BenchPlaces) -> None:
    before = over_ssh(places.state, BENCH, BOOT_ID)
    state = power_state(places)
    assert state is not None
    converse(Path(state.monitor), lambda monitor: monitor.ask("stop"))
    assert f"{BENCH} was on and did not answer, so its plug was pulled" in switch(places, "bench_up.yml")
    assert over_ssh(places.state, BENCH, BOOT_ID) != before
    # and one whose kernel has stopped for good, which still computes
    over_ssh(places.state, BENCH, PANIC)
    deadline = time.monotonic() + 120
    while "Kernel panic" not in places.console.read_text(encoding="utf-8", errors="replace"):
        assert time.monotonic() < deadline
        with suppress(TimeoutExpired, AssertionError):
            over_ssh(places.state, BENCH, "sleep 2", limit_s=5)
    assert "the guest did not answer, so the plug was pulled" in switch(places, "bench_down.yml")
    assert power_state(places) is None
    # the plug is pulled once
    assert "it was off" in switch(places, "bench_down.yml")
