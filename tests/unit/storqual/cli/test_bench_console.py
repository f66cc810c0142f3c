# SPDX-License-Identifier: Apache-2.0
"""`storqual bench console`: record, show, type, and what a person is told who cannot."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storqual.cli import main
from storqual.console.console import Console
from storqual.run import iter_events
from tests.support.make_run import make_run
from tests.support.played_console import ConsoleServer, until

CANARY = "canary-7Qx-command"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConsoleServer]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    one = ConsoleServer()
    yield one
    Console("vbench").stop()
    one.close()


@pytest.fixture
def lab(tmp_path: Path, server: ConsoleServer) -> Path:
    hosts = tmp_path / "hosts.yml"
    variables = {"storqual_kind": "hardware", "storqual_adapters": {"sas0": {"model": "x"}}}
    described = {**variables, "storqual_console": {"telnet": f"127.0.0.1:{server.port}"}}
    hosts.write_text(json.dumps({"benches": {"hosts": {"vbench": described, "bare": variables}}}))
    return hosts


def called(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "console", *words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_a_console_is_recorded_shown_typed_at_and_left(
    lab: Path, server: ConsoleServer, capsys: pytest.CaptureFixture[str]
) -> None:
    here = ("-i", str(lab))
    assert json.loads(called(capsys, "vbench", "start", *here, "--json")[1])["started"]
    server.say(b"\x1b[31m[    0.0] Linux version 6.1\x1b[0m\r\n\x07odd\n")
    until(lambda: "odd" in Console("vbench").text_since(0))
    code, out, _ = called(capsys, "vbench", *here)
    assert code == 0
    assert "\x1b" not in out
    assert out.splitlines()[-2].endswith("| [    0.0] Linux version 6.1")
    assert out.splitlines()[-1].endswith("| \\x07odd")
    assert called(capsys, "vbench", "sysrq", "w", *here)[0] == 0
    until(lambda: server.typed == b"\xff\xf3w")
    status = json.loads(called(capsys, "vbench", "status", *here, "--json")[1])
    assert (status["recording"], status["connected"]) == (True, True)
    assert json.loads(called(capsys, "vbench", "stop", *here, "--json")[1])["stopped"]
    code, _, err = called(capsys, "vbench", "sysrq", "w", *here)
    assert code == 2
    assert "storqual bench console vbench start" in err


def test_a_bench_without_a_console_and_no_bench_are_told(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = called(capsys, "bare", "start", "-i", str(lab))
    assert code == 3
    assert "storqual_console" in err
    assert called(capsys, "nobody", "start", "-i", str(lab))[0] == 3
    assert called(capsys, "vbench", "start")[0] == 3
    assert called(capsys, "vbench", "sysrq", "-i", str(lab))[0] == 2


def described(monkeypatch: pytest.MonkeyPatch, console: object, kind: str = "hardware") -> None:
    text = json.dumps({"kind": kind, "console": console, "virtual_state": ""})
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_playbook_describes_the_bench_and_the_run_gets_its_part(
    server: ConsoleServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "runs", finished=False)
    words = ("--run", str(run), "--described", "--json")
    way: dict[str, Any] = {"telnet": f"127.0.0.1:{server.port}"}
    described(monkeypatch, way)
    assert called(capsys, "vbench", "start", *words)[0] == 0
    server.say(b"during the campaign\n")
    until(lambda: "during the campaign" in Console("vbench").text_since(0))
    described(monkeypatch, way)
    answer = json.loads(called(capsys, "vbench", "stop", *words)[1])
    assert (run / answer["recording"]["path"]).is_file()
    assert Console("vbench").running() is None


def test_a_description_that_is_wrong_is_told_without_its_password(
    server: ConsoleServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del server
    described(monkeypatch, {"ipmi_sol": {"host": "bmc", "password": CANARY}})
    code, out, err = called(capsys, "vbench", "start", "--described", "--json")
    assert code == 3
    assert "user" in err
    assert CANARY not in out + err


def test_a_console_that_is_lost_is_a_note_in_the_run_and_no_reason_to_judge_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "runs", finished=False)
    described(monkeypatch, {"ipmi_sol": {"host": "bmc", "password": CANARY}})
    assert called(capsys, "vbench", "stop", "--run", str(run), "--described", "--json")[0] == 0
    (*_, note) = (event.text("text") for event in iter_events(run) if event.kind == "note")
    assert note.startswith("the recorded console was not taken into the run: ")
    assert CANARY not in note
