# SPDX-License-Identifier: Apache-2.0
"""A panic leaves its trace in the report: with a console, one that is cut, an empty pstore, or pstore alone."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from storqual.console.console import Console
from storqual.console.kept import begin, keep
from storqual.inputs.console_way import ConsoleWay
from storqual.report import build_report
from storqual.run import append_event
from storqual.virtual_bench.places import BenchPlaces
from tests.support.judged_reports import QUICK, judged
from tests.support.live_bench import GATE, STATE, play, power_fixture

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(3600)]
gate_bench = power_fixture(GATE, STATE)

PLACES = BenchPlaces.of(STATE)
NUMBER = int(os.environ.get("STORQUAL_PANICS", "4"))
KINDS = {
    "console": {"console", "pstore"},
    "console that is cut": {"pstore"},
    "empty pstore": {"console"},
    "pstore alone": {"pstore"},
}
"""Which sources have the trace."""
CRASH = b"sysrq: Trigger a crash"


def relay(server: socket.socket) -> None:
    """A console server before the serial line, which loses its connection as soon as the kernel panics."""
    with suppress(OSError):
        while True:
            peer, _ = server.accept()
            with peer, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
                line.connect(str(PLACES.serial))
                seen = b""
                while CRASH not in seen and (data := line.recv(4096)):
                    seen = seen[-len(CRASH) :] + data
                    peer.sendall(data)


@contextmanager
def recorded(kind: str, run: Path) -> Iterator[Console | None]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=relay, args=(server,), daemon=True).start()
        telnet = f"127.0.0.1:{server.getsockname()[1]}" if kind == "console that is cut" else ""
        console = Console("gatebench", None if telnet else PLACES)
        if kind == "pstore alone":
            yield None
            return
        begin(run, console, ConsoleWay(telnet=telnet) if telnet else ConsoleWay(virtual=True))
        try:
            yield console
        finally:
            console.stop()


@pytest.mark.parametrize("number", range(NUMBER))
def test_a_panic_leaves_its_trace_in_the_report(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    kind, sources = list(KINDS.items())[number % len(KINDS)]
    run = judged(tmp_path, points=QUICK[:1], bench="gatebench")
    append_event(run, "resumed", {})
    words = {
        "state": str(STATE) if "console" in sources else "",
        "forget": "/sys/fs/pstore/* /var/lib/systemd/pstore/*" if kind == "empty pstore" else "",
        "kept": str(tmp_path / "looked.json"),
    }
    with recorded(kind, run) as console:
        playbook, home = str(Path(__file__).with_suffix(".yml")), str(tmp_path / "state")
        code, output = play(tmp_path / "log", GATE, playbook, "-e", json.dumps(words), XDG_STATE_HOME=home)
        assert code == 0, output[-3000:]
        gaps = keep(run, console)["gaps"] if console else 0
    looked = json.loads((tmp_path / "looked.json").read_text(encoding="utf-8"))
    append_event(run, "kernel_panic", {"bench": "gatebench", "text": looked["panic"], "sources": looked["sources"]})
    report = build_report(run).read_text(encoding="utf-8")
    had = {name for name, trace in looked["sources"].items() if trace}
    print(f"{kind}: {', '.join(sorted(had))}, {gaps} gaps")
    assert "Kernel panic - not syncing: sysrq triggered crash" in report
    assert "its trace was in" in report
    assert had >= sources if kind == "console that is cut" else had == sources
    assert gaps >= 1 if kind == "console that is cut" else gaps == 0
