# SPDX-License-Identifier: Apache-2.0
"""The recorder as a process, against servers and programs that play a console: cut, flooded, hostile, typed at."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from storqual.base import child
from storqual.base.console_log import EXPECTED, gaps, read_recording
from storqual.console.console import Console
from storqual.console.recording import Recording
from storqual.console.sources import Telnet
from storqual.inputs.console_way import ConsoleWay, IpmiSol, SshConsole
from storqual_core.kit.errors import BadInputError, ToolError
from tests.support.played_console import LIMIT_S, ConsoleServer, until

CANARY = "canary-7Qx-console"


def test_what_is_said_is_kept_with_its_time(console: Console, server: ConsoleServer) -> None:
    assert console.start(server.way, run="r1")
    server.say(b"[    0.0] Linux version 6.1\r\nlogin: ")
    until(lambda: "login: " in console.text_since(0))
    lines = [line for line in read_recording(console.recording.read()) if line.data.startswith(b"[")]
    assert lines[0].data == b"[    0.0] Linux version 6.1\r"
    assert abs(time.time() - time.mktime(time.strptime(lines[0].at[:19], "%Y-%m-%dT%H:%M:%S")) + time.timezone) < 60
    status = console.status()
    assert status["connected"]
    assert status["run"] == "r1"


def test_it_outlives_whoever_started_it(console: Console, server: ConsoleServer) -> None:
    """It has a session of its own, so that a terminal or a campaign that is ended does not take it along."""
    starter = (
        "import sys\nfrom storqual.console.console import Console\n"
        "from storqual.inputs.console_way import ConsoleWay\n"
        f"Console('vbench').start(ConsoleWay(telnet='127.0.0.1:{server.port}')); sys.stdout.write('ok')"
    )
    done = child.run(child.python("-c", starter), capture_output=True, text=True, timeout=60, start_new_session=True)
    assert done.stdout == "ok", done.stderr
    order = console.running()
    assert order is not None
    assert os.getsid(order["pid"]) == order["pid"]
    server.say(b"still here\n")
    until(lambda: "still here" in console.text_since(0))


def test_there_is_one_recorder(console: Console, server: ConsoleServer) -> None:
    assert console.start(server.way)
    order = console.running()
    assert not console.start(server.way)
    assert console.running() == order
    with pytest.raises(BadInputError, match="vbench stop"):
        console.start(ConsoleWay(telnet="127.0.0.1:1"))
    assert console.stop()
    assert not console.stop()
    assert console.running() is None


def test_a_pidfile_of_another_process_of_the_same_number_is_no_recorder(console: Console) -> None:
    console.places.folder.mkdir(parents=True)
    console.places.pidfile.write_text(f'{{"pid": {os.getpid()}, "start_ticks": 1, "way": {{}}, "words": "x"}}')
    assert console.running() is None
    assert not console.stop()


def test_a_cut_is_a_gap_and_it_is_soon_back(console: Console, server: ConsoleServer) -> None:
    console.start(server.way)
    server.say(b"before\n")
    until(lambda: "before" in console.text_since(0))
    server.cut()
    assert server.listens.wait(15.0)
    server.say(b"after\n")
    until(lambda: "after" in console.text_since(0))
    lines = list(read_recording(console.recording.read()))
    assert len(gaps(lines)) == 1
    texts = [line.text for line in lines]
    between = texts[texts.index("before") + 1 : texts.index("after")]
    assert any(text.startswith("gap: ") for text in between)
    assert any("connected after" in text for text in between)


def test_a_console_that_is_away_is_one_gap_however_often_it_is_tried(console: Console) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = int(reserved.getsockname()[1])
    console.start(ConsoleWay(telnet=f"127.0.0.1:{port}"))
    until(lambda: console.status()["away_s"] > 2.0)
    assert len(gaps(read_recording(console.recording.read()))) == 1
    assert not console.status()["connected"]
    with pytest.raises(ToolError, match="not connected"):
        console.sysrq("w")


def test_telnet_options_are_refused_once_and_are_no_text(console: Console) -> None:
    server = ConsoleServer(
        b"\xff\xfb\x01\xff\xfb\x03\xff\xfd\x18" + b"\xff\xfa\x18\x01\xff\xf0" + b"a\xff\xffb\n\xff\xfb\x01"
    )
    try:
        console.start(server.way)
        until(lambda: b"a\xffb" in console.recording.read())
        until(lambda: len(server.typed) >= 9)
        assert server.typed == b"\xff\xfe\x01\xff\xfe\x03\xff\xfc\x18"
    finally:
        server.close()


def test_a_command_of_telnet_may_come_in_pieces() -> None:
    whole = b"x\xff\xfb\x01y\xff\xfa\x18abc\xff\xf0z\xff\xff."
    telnet = Telnet()
    parts = [telnet.take(bytes([byte])) for byte in whole]
    assert b"".join(text for text, _ in parts) == b"xyz\xff."
    assert b"".join(answer for _, answer in parts) == b"\xff\xfe\x01"


def test_sysrq_is_a_break_and_its_letter(console: Console, server: ConsoleServer) -> None:
    console.start(server.way)
    assert server.listens.wait(LIMIT_S)
    until(lambda: console.status()["connected"])
    console.sysrq("w")
    until(lambda: server.typed.endswith(b"w"))
    assert server.typed == b"\xff\xf3w"
    console.send_break()
    until(lambda: server.typed == b"\xff\xf3w\xff\xf3")
    notes = [line.text for line in read_recording(console.recording.read()) if line.mark == "-"]
    assert notes[-2:] == ["typed: BREAK w", "typed: BREAK"]
    for wrong in ("ww", "", "\n", "ä"):
        with pytest.raises(ToolError, match="letter"):
            console.sysrq(wrong)


def test_binary_and_hostile_bytes_are_kept(console: Console, server: ConsoleServer) -> None:
    console.start(server.way)
    hostile = bytes(number for number in range(255) if number != 10)
    server.say(b"<" + hostile + b">\n")
    until(lambda: b"<" + hostile + b">" in console.recording.read())
    (line,) = (line for line in read_recording(console.recording.read()) if line.data.startswith(b"<"))
    assert line.text.isprintable()


def test_a_flood_keeps_the_beginning_and_the_end_and_says_what_is_missing(tmp_path: Path) -> None:
    recording = Recording(tmp_path, segment=1000)
    lines = [f"2026-11-26T20:00:00.000Z | line {number:04d}\n".encode() for number in range(1000)]
    for at in range(0, 1000, 7):
        recording.append(b"".join(lines[at : at + 7]))
    kept = list(read_recording(recording.read()))
    assert recording.mark() == sum(map(len, lines))
    assert len(recording.read()) < 8 * 1000
    assert (kept[0].text, kept[-1].text) == ("line 0000", "line 0999")
    (missing,) = (line for line in kept if line.mark == "-")
    said = [line for line in kept if line.mark == "|"]
    assert int(missing.text.split()[0]) == sum(map(len, lines)) - len(said) * len(lines[0])


def test_a_place_in_a_recording_stays_what_it_is(tmp_path: Path) -> None:
    recording = Recording(tmp_path, segment=200)
    recording.append(b"2026-11-26T20:00:00.000Z | one\n")
    mark = recording.mark()
    for _ in range(100):
        recording.append(b"2026-11-26T20:00:00.000Z | more\n")
    end = recording.mark()
    recording.append(b"2026-11-26T20:00:00.000Z | last\n")
    assert recording.read(end) == b"2026-11-26T20:00:00.000Z | last\n"
    assert recording.read(0, mark) == b"2026-11-26T20:00:00.000Z | one\n"
    assert b"one" not in recording.read(mark)
    assert recording.read(10**9) == b""


def test_a_flood_does_not_stop_it(console: Console, server: ConsoleServer) -> None:
    console.start(server.way)
    line = b"flood " * 20 + b"\n"
    for _ in range(200):
        server.say(line * 100)
    server.say(b"\0" * 300000 + b"\nthe end\n")
    until(lambda: "the end" in console.text_since(max(0, console.mark() - 4096)))
    assert console.status()["connected"]


def test_a_window_is_noted_beforehand(console: Console, server: ConsoleServer) -> None:
    console.start(server.way)
    console.expect("sysrq_panic of trial t1", 60)
    console.expect_no_longer()
    notes = [line.text for line in read_recording(console.recording.read()) if line.mark == "-"]
    assert any(text.startswith(EXPECTED) and text.endswith("sysrq_panic of trial t1") for text in notes)


def test_the_end_is_noted_and_what_was_kept_stays(console: Console, server: ConsoleServer) -> None:
    console.start(server.way)
    server.say(b"no end of line")
    until(lambda: "no end of line" in console.text_since(0))
    console.stop()
    until(lambda: not server.listens.is_set())
    mark = console.mark()
    console.start(server.way)
    server.say(b"second\n")
    until(lambda: "second" in console.text_since(mark))
    texts = [line.text for line in read_recording(console.recording.read())]
    assert any(text.startswith("recording ends") for text in texts)
    assert "no end of line" in texts


def test_a_recorder_that_was_killed_leaves_what_it_kept(console: Console, server: ConsoleServer) -> None:
    console.start(server.way)
    server.say(b"first\n")
    until(lambda: "first" in console.text_since(0))
    order = console.running()
    assert order is not None
    os.kill(order["pid"], signal.SIGKILL)
    child.await_end(order["pid"], order["start_ticks"], LIMIT_S)
    assert console.running() is None
    assert console.start(server.way)
    assert "first" in console.text_since(0)


_SOL = Path(__file__).with_suffix(".sol").read_text(encoding="utf-8")


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of ipmitool and ssh; where it writes how it was called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("ipmitool", "ssh"):
        (programs / name).write_text(_SOL.format(python=sys.executable))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("STORQUAL_PLAYED", str(tmp_path / "played"))
    return tmp_path / "played"


def test_serial_over_lan_is_ipmitool_with_a_quiet_input_and_its_password_in_the_environment(
    console: Console, played: Path
) -> None:
    way = ConsoleWay(ipmi_sol=IpmiSol(host="bmc07.lab", user="storqual", password=CANARY, cipher=3))
    seen: list[bytes] = []
    watching = threading.Event()

    def watch() -> None:
        while not watching.is_set():
            for process in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    seen.append((process / "cmdline").read_bytes())
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        console.start(way)
        until(lambda: "SOL Session operational" in console.text_since(0))
        console.sysrq("q")
        until(lambda: gaps(read_recording(console.recording.read())))
    finally:
        watching.set()
        watcher.join()
    assert "typed b'\\r~Bq'" in console.text_since(0)
    first, second = played.read_text().splitlines()[:2]
    assert first == f"-I lanplus -E -U storqual -H bmc07.lab -p 623 -C 3 sol deactivate | {CANARY}"
    assert second.endswith(f"sol activate | {CANARY}")
    (gap, *_) = gaps(read_recording(console.recording.read()))
    assert "ended with 7: SOL session closed by BMC" in gap.text
    assert not any(CANARY.encode() in line for line in seen)
    for file in console.places.folder.rglob("*"):
        assert not file.is_file() or CANARY.encode() not in file.read_bytes()


def test_a_program_of_a_console_ends_with_its_recorder(console: Console, played: Path) -> None:
    del played
    console.start(ConsoleWay(ssh=SshConsole(host="port7@console1.lab")))
    until(lambda: "SOL Session operational" in console.text_since(0))
    order = console.running()
    assert order is not None
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(order["pid"])], capture_output=True, text=True, check=True
    )
    (program,) = map(int, listed.stdout.split())
    ticks = child.ticks_of_start(program)
    assert ticks is not None
    os.kill(order["pid"], signal.SIGKILL)
    assert child.await_end(program, ticks, LIMIT_S)


def test_a_program_that_is_missing_is_one_sentence(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BadInputError, match="install ipmitool"):
        console.start(ConsoleWay(ipmi_sol=IpmiSol(host="bmc", user="u")))


def test_a_template_is_no_password(console: Console, played: Path) -> None:
    del played
    with pytest.raises(BadInputError, match="IPMI_PASSWORD"):
        console.start(ConsoleWay(ipmi_sol=IpmiSol(host="bmc", user="u", password="{{ " + CANARY + " }}")))


def test_nobody_is_asked_where_nothing_records(console: Console) -> None:
    assert console.status() == {"bench": "vbench", "recording": False, "mark": 0}
    for act in (lambda: console.sysrq("w"), console.send_break, lambda: console.expect("x", 1)):
        with pytest.raises(ToolError, match="vbench start"):
            act()
