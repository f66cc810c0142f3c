# SPDX-License-Identifier: Apache-2.0
"""What a bench shows: a door that says SSH's name, a login that works, a console that grows."""

import math
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from storqual.bench.reboot import Boot
from storqual.power.watch import BenchWatch

BOOT = "0c7f4a0e-0f5c-4a39-9d0c-2c7a4a3d8a11"

SSH = Path(__file__).with_suffix(".ssh").read_text(encoding="utf-8")


class Door:
    """Says SSH's name to whoever knocks, while it is open."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    def shut(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()


@pytest.fixture
def door() -> Iterator[Door]:
    made = Door()
    yield made
    if made._thread.is_alive():
        made.shut()


@pytest.fixture
def bench(tmp_path: Path, door: Door) -> Path:
    program = tmp_path / "ssh"
    program.write_text(SSH.format(python=sys.executable, folder=str(tmp_path)), encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "config").write_text(f"hostname 127.0.0.1\nport {door.port}\n", encoding="utf-8")
    (tmp_path / "answer").write_text(f"{BOOT}\n6.1.0-47-amd64\n", encoding="utf-8")
    return tmp_path


class Recorded:
    """A recorded console: its text, and what the recorder noted in between."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def sysrq(self, letter: str) -> None:
        raise AssertionError(letter)

    def mark(self) -> int:
        return len(self.parts)

    def text_since(self, mark: int) -> str:
        return "".join(part for part in self.parts[mark:] if not part.startswith("note: "))


def watch_of(bench: Path, now: list[float], console: Recorded | None = None) -> BenchWatch:
    return BenchWatch(lambda *given: [str(bench / "ssh"), *given], "bench01", console=console, clock=lambda: now[0])


def test_a_bench_that_answers_shows_its_boot_and_how_long_it_is_up(bench: Path) -> None:
    now = [100.0]
    watch = watch_of(bench, now)
    assert watch.last_sign_s() == math.inf
    assert watch.boot() == Boot(BOOT, "6.1.0-47-amd64")
    assert watch.uptime_s() == 77.5
    now[0] = 130.0
    assert watch.last_sign_s() == 30.0


def test_a_server_that_lets_nobody_in_is_a_sign_of_life_and_no_boot(bench: Path) -> None:
    (bench / "answer").unlink()
    watch = watch_of(bench, [100.0])
    assert watch.boot() is None
    assert watch.uptime_s() is None
    assert watch.last_sign_s() == 0.0


def test_a_login_that_takes_longer_than_usual_is_given_more_time(
    bench: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a bench that boots beside others: given up each time at the same moment, none would ever end."""
    monkeypatch.setattr("storqual.power.watch._LOGIN_S", 1.5)
    (bench / "slow").touch()
    watch = BenchWatch(lambda *given: [str(bench / "ssh"), *given], "bench01")
    looks = [watch.boot() for _ in range(4)]
    assert looks[0] is None
    assert looks[-1] == Boot(BOOT, "6.1.0-47-amd64")


def test_nobody_logs_in_where_no_server_says_its_name(bench: Path, door: Door) -> None:
    door.shut()
    watch = watch_of(bench, [100.0])
    assert watch.boot() is None
    assert watch.last_sign_s() == math.inf
    assert all("-G" in line for line in (bench / "asked").read_text(encoding="utf-8").splitlines())


def test_half_an_answer_is_no_boot(bench: Path) -> None:
    (bench / "answer").write_text(BOOT[:20], encoding="utf-8")
    assert watch_of(bench, [100.0]).boot() is None


def test_what_a_bench_says_on_its_console_is_a_sign_of_life_and_what_the_recorder_notes_is_none(
    bench: Path, door: Door
) -> None:
    door.shut()
    console, now = Recorded(), [100.0]
    console.parts.append("login:\n")
    watch = watch_of(bench, now, console)
    assert watch.boot() is None
    assert watch.last_sign_s() == math.inf
    console.parts.append("note: the line was lost\n")
    watch.boot()
    assert watch.last_sign_s() == math.inf
    console.parts.append("Linux version 6.1\n")
    now[0] = 110.0
    watch.boot()
    assert watch.last_sign_s() == 0.0
    # a virtual bench's file that begins anew
    del console.parts[1:]
    now[0] = 150.0
    watch.boot()
    assert watch.last_sign_s() == 0.0


def test_a_connection_of_an_earlier_boot_is_not_used(bench: Path) -> None:
    watch_of(bench, [100.0]).boot()
    for line in (bench / "asked").read_text(encoding="utf-8").splitlines():
        assert "ControlPath=none" in line
