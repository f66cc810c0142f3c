# SPDX-License-Identifier: Apache-2.0
"""The power switch of a virtual bench that hangs: its QEMU runs, and its guest answers nobody."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storqual.virtual_bench import power
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import PowerState, power_off, power_on, power_state
from tests.support.fake_qemu import bench_of_three_drives

BENCH = bench_of_three_drives()


@pytest.fixture
def places(tmp_path: Path) -> BenchPlaces:
    """A state folder."""
    found = BenchPlaces.of(str(tmp_path / "bench"))
    found.state.mkdir()
    found.console.write_text("login:", encoding="utf-8")
    return found


@pytest.fixture
def qemu(places: BenchPlaces) -> Iterator[subprocess.Popen[bytes]]:
    """A process in the place of QEMU, idle as that of a guest that hangs, and what is remembered of it."""
    process = subprocess.Popen(["sleep", "600"])
    assert remember(places, process.pid).pid == process.pid
    yield process
    process.kill()
    process.wait()


def remember(places: BenchPlaces, pid: int, boot_id: str = "b" * 36) -> PowerState:
    """The state of a bench that was powered on before."""
    ticks = power._start_ticks(pid)
    assert ticks is not None
    state = PowerState(
        pid=pid,
        start_ticks=ticks,
        port=1,
        monitor=str(places.state / "monitor"),
        acceleration="tcg",
        reason="",
        image="",
        since="",
        ssh_s=1.0,
        ready_s=1.0,
        boot_id=boot_id,
        kernel="6.1",
        drives_seen=3,
        attempts=1,
        description=BENCH.plain(),
    )
    return power._keep(places, state)


def answering(monkeypatch: pytest.MonkeyPatch, *, answers: bool) -> None:
    """Let the guest answer each login, or none."""
    monkeypatch.setattr(power, "logs_in", lambda *_: answers)
    monkeypatch.setattr(power, "_LOOK_S", 0.01)
    monkeypatch.setattr(power, "_HUNG_S", 0.2)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, places: BenchPlaces) -> Iterator[list[int]]:
    """Process ids of QEMUs that power-on started in place of the one that hung."""
    processes: list[subprocess.Popen[bytes]] = []

    def spawn(*_: Any) -> tuple[PowerState, float]:
        processes.append(subprocess.Popen(["sleep", "600"]))
        listed.append(processes[-1].pid)
        return remember(places, processes[-1].pid), time.monotonic()

    listed: list[int] = []
    monkeypatch.setattr(power, "ensure_image", lambda _say: SimpleNamespace())
    monkeypatch.setattr(power, "prepare_overlay", lambda *_: None)
    monkeypatch.setattr(power, "prepare_drives", lambda *_: None)
    monkeypatch.setattr(power, "_spawn", spawn)
    monkeypatch.setattr(power, "_boot", lambda _places, state, *_: state)
    yield listed
    for process in processes:
        process.kill()
        process.wait()


def test_the_plug_of_a_bench_that_does_not_answer_is_pulled_without_waiting_for_its_shutdown(
    places: BenchPlaces, qemu: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, answers=False)
    monkeypatch.setattr(power, "converse", lambda *_: pytest.fail("a guest that hangs was asked to shut down"))
    assert power_off(places) == (True, "the guest did not answer, so the plug was pulled")
    assert qemu.wait(5) < 0
    assert power_state(places) is None


def test_a_bench_that_answers_is_asked_to_shut_down(
    places: BenchPlaces, qemu: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, answers=True)
    monkeypatch.setattr(power, "converse", lambda *_: qemu.terminate() or qemu.wait())
    assert power_off(places) == (True, "the guest shut down")


def test_a_bench_that_answers_stays_on_as_it_is(
    places: BenchPlaces, qemu: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    answering(monkeypatch, answers=True)
    state, changed = power_on(places, BENCH)
    assert (state.pid, changed, started) == (qemu.pid, False, [])


def test_a_bench_that_is_on_and_hangs_is_started_again_and_said(
    places: BenchPlaces, qemu: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    answering(monkeypatch, answers=False)
    said: list[str] = []
    state, changed = power_on(places, BENCH, say=said.append)
    assert changed
    assert [state.pid] == started
    assert qemu.wait(5) < 0
    assert "vbench was on and did not answer, so its plug was pulled" in said


def test_a_bench_whose_start_was_interrupted_and_that_never_came_up_is_started_again(
    places: BenchPlaces, qemu: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    remember(places, qemu.pid, boot_id="")

    def boot(_places: BenchPlaces, state: PowerState, *_: Any) -> PowerState:
        if state.pid == qemu.pid:
            raise power.BootFailedError("vbench did not answer SSH within 180 s")
        return state

    monkeypatch.setattr(power, "_boot", boot)
    state, changed = power_on(places, BENCH)
    assert (changed, [state.pid]) == (True, started)


def test_a_bench_that_boots_by_itself_is_waited_for(
    places: BenchPlaces, qemu: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    answering(monkeypatch, answers=True)
    looks: list[int] = []

    def logs_in(*_: Any) -> bool:
        looks.append(1)
        with places.console.open("a", encoding="utf-8") as console:
            console.write("booting\n")
        return len(looks) > 60

    monkeypatch.setattr(power, "logs_in", logs_in)
    state, changed = power_on(places, BENCH)
    assert (asdict(state)["pid"], changed, started) == (qemu.pid, False, [])
