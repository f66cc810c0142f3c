# SPDX-License-Identifier: Apache-2.0
"""The power switch of a virtual bench that hangs: its QEMU runs, and its guest answers nobody."""

import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from storqual.base import child
from storqual.base.console_log import panic_text
from storqual.cli.bench import bench_command
from storqual.virtual_bench import boot, power
from storqual.virtual_bench.boot import mark, written_since
from storqual.virtual_bench.places import BenchPlaces, socket_folder
from storqual.virtual_bench.power import PowerState, power_off, power_on, power_state, switch_on
from tests.support.fake_qemu import bench_of_three_drives, bench_with_targets_apart

BENCH = bench_of_three_drives()


@pytest.fixture
def places(tmp_path: Path) -> BenchPlaces:
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


def test_a_guest_that_takes_five_seconds_to_say_its_name_is_up(
    places: BenchPlaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of many on a machine of few processors."""
    monkeypatch.setattr(boot, "ssh_answers", lambda _address, limit_s: limit_s >= 5.0)
    monkeypatch.setattr(boot, "_ask", lambda *_: (0.0, ["b" * 36, "6.1.0", "0"]))
    began = time.monotonic()
    booted = boot.wait_for_boot(
        "bench",
        ssh_config=places.ssh_config,
        port=1,
        log=places.console,
        since=0,
        began=began,
        drives=0,
        limit_s=8.0,
        running=lambda: True,
    )
    assert booted.kernel == "6.1.0"


def remember(places: BenchPlaces, pid: int, boot_id: str = "b" * 36) -> PowerState:
    """The state of a bench that was powered on before."""
    ticks = child.ticks_of_start(pid)
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

    def spawn(at: BenchPlaces, *rest: Any) -> tuple[PowerState, float]:
        assert rest[3:] == (() if at == places else (socket_folder(places.state),))
        processes.append(subprocess.Popen(["sleep", "600"]))
        listed.append(processes[-1].pid)
        return remember(at, processes[-1].pid), time.monotonic()

    listed: list[int] = []
    monkeypatch.setattr(power, "ensure_image", lambda _say, _flavour: SimpleNamespace())
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


def test_the_switch_starts_a_bench_that_is_off_and_waits_for_nothing(
    places: BenchPlaces, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(power, "_boot", lambda *_: pytest.fail("the switch waited for a boot"))
    monkeypatch.setattr(power, "logs_in", lambda *_: pytest.fail("the switch asked the guest"))
    assert switch_on(places, BENCH)
    state = power_state(places)
    assert state is not None
    assert [state.pid] == started


def test_the_switch_leaves_a_bench_that_is_on_as_it_is(
    places: BenchPlaces, qemu: subprocess.Popen[bytes], started: list[int]
) -> None:
    assert not switch_on(places, BENCH)
    assert started == []
    assert qemu.poll() is None


def test_a_power_cut_leaves_targets_on_that_are_apart_and_they_end_with_their_bench(
    places: BenchPlaces, qemu: subprocess.Popen[bytes], started: list[int]
) -> None:
    power.start_targets(places, bench_with_targets_apart())
    assert [state.pid for state in power.guests(places)] == [qemu.pid, started[0]]
    power_off(places, graceful=False, targets=False)
    power.start_targets(places, bench_with_targets_apart())
    assert [state.pid for state in power.guests(places)] == [started[1]]
    assert power_off(places) == (True, "it was off, and the plug of its targets was pulled")
    assert power.guests(places) == []


def test_a_bench_that_does_not_start_leaves_no_targets_on(
    places: BenchPlaces, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def boot(*_: object) -> PowerState:
        raise power.BootFailedError("it did not answer SSH")

    power.start_targets(places, bench_with_targets_apart())
    monkeypatch.setattr(power, "_boot", boot)
    with pytest.raises(power.BootFailedError):
        power_on(places, BENCH)
    assert (len(started), power.guests(places)) == (3, [])


def test_the_switch_is_a_program_that_says_the_state_and_cuts_the_power(
    places: BenchPlaces, qemu: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(power, "logs_in", lambda *_: pytest.fail("a power cut asked the guest"))

    def switch(action: str) -> str:
        done = CliRunner().invoke(bench_command, ["switch", "--folder", str(places.state), action])
        assert done.exit_code == 0, done.output
        return done.output

    assert switch("state") == "on\n"
    assert switch("off") == "off\n"
    assert qemu.wait(10) != 0
    assert switch("state") == "off\n"


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


PANIC = Path(__file__).with_suffix(".panic").read_text(encoding="utf-8")


def test_a_panic_is_told_with_the_trouble_before_it_and_to_its_end() -> None:
    text = panic_text(PANIC)
    assert text.splitlines()[0].endswith("unknown-block(0,0): error -6")
    assert text.splitlines()[-1].endswith("]---")
    assert "mounted filesystem" not in text
    assert "Linux version" not in text


def test_a_panic_that_reboots_before_its_end_is_told_as_far_as_it_goes() -> None:
    """With panic=10 the log may simply stop."""
    cut = PANIC.partition("[    6.7]")[0]
    assert panic_text(cut).splitlines()[-1].endswith("Call Trace:")


def test_the_last_of_two_panics_counts() -> None:
    text = panic_text(PANIC + PANIC.replace("VFS: Unable to mount root fs", "Fatal exception"))
    assert text.count("not syncing") == text.count("Fatal exception") == 2


def test_a_quiet_console_has_no_panic() -> None:
    assert panic_text("[    0.0] Linux version 6.1\nlogin:") == ""


def test_the_log_is_read_from_the_mark_on(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    assert mark(log) == 0
    assert written_since(log, 0) == ""
    log.write_bytes(b"before\r\n")
    start = mark(log)
    with log.open("ab") as handle:
        handle.write(b"\x1b[0;32m  OK  \x1b[0m after\r\n\x1b[K[*  ] waiting\rdone\r\n")
    assert written_since(log, start) == "  OK   after\ndone\n"


@given(noise=st.binary(max_size=400))
def test_any_bytes_can_be_on_a_console(tmp_path_factory: object, noise: bytes) -> None:
    text = noise.decode("utf-8", "replace")
    assert isinstance(panic_text(text), str)


@given(noise=st.text(max_size=200))
def test_escape_sequences_do_not_hide_a_panic(noise: str) -> None:
    text = f"{noise}\n[ 1.0] Kernel panic - not syncing: Attempted to kill init!\n"
    assert "Attempted to kill init" in panic_text(text)
