"""A new owner ends what an earlier reservation left running; with real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import storqual_core
from storqual_core.kit.lease import VARIABLE
from storqual_core.turns.main import main

_ROOT = str(Path(storqual_core.__file__).parent.parent)
_WRITER = Path(__file__).with_suffix(".writer").read_text(encoding="utf-8")
UNTIL = "2099-01-01T00:00:00+00:00"


def ask(state: Path, capsys: pytest.CaptureFixture[str], act: str, **more: object) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["lease", str(state), json.dumps({"act": act, "bench": "bench01", **more})]) == 0
    return dict(json.loads(capsys.readouterr().out))


def reserve(state: Path, capsys: pytest.CaptureFixture[str], who: str, run: str) -> dict[str, Any]:
    owner = {"who": who, "where": "lab", "why": "test", "until": UNTIL, "run": run, "since": ""}
    return ask(state, capsys, "reserve", owner=owner)


class Writer:
    """A process that holds the bench and writes, under a reservation."""

    def __init__(self, state: Path, target: Path, number: int, *, mode: str = "batch", run: str = "r1") -> None:
        self.target = target
        argv = [sys.executable, "-c", _WRITER.format(root=_ROOT), str(state), str(target), mode, run]
        environment = {**os.environ, **({VARIABLE: f"{number}@{state}"} if number else {})}
        self.process = subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE)
        end = time.monotonic() + 30
        while not (target.exists() and target.stat().st_size):
            assert self.process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)

    def grows(self) -> bool:
        before = self.target.stat().st_size
        time.sleep(0.3)
        return self.target.stat().st_size > before


@pytest.fixture
def writers() -> Iterator[list[Writer]]:
    started: list[Writer] = []
    yield started
    for one in started:
        for number in (signal.SIGCONT, signal.SIGKILL):
            one.process.send_signal(number)
        one.process.wait()
        one.process.stderr.close()  # type: ignore[union-attr]


def lapse(state: Path, number: int) -> None:
    os.utime(state / f"lease.{number}", (time.time() - 3600, time.time() - 3600))


@pytest.mark.parametrize("stopped", [False, True])
def test_what_a_lapsed_reservation_left_running_is_ended_with_its_children(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], writers: list[Writer], *, stopped: bool
) -> None:
    state, target = tmp_path / "state", tmp_path / "target"
    number = reserve(state, capsys, "ann", "r1")["lease"]["number"]
    writers.append(Writer(state, target, number, mode="fio"))
    if stopped:
        writers[0].process.send_signal(signal.SIGSTOP)
    assert "ann" in reserve(state, capsys, "bob", "r2")["refused"]
    lapse(state, number)
    answer = reserve(state, capsys, "bob", "r2")
    # the writer, its child that writes on its own, and mostly what that one runs
    assert len(answer["ended"]) >= 2
    size = target.stat().st_size
    writers[0].process.wait(10)
    time.sleep(0.3)
    assert target.stat().st_size == size


def test_an_owner_that_was_stopped_and_goes_on_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], writers: list[Writer]
) -> None:
    """Between two commands it holds nothing; the next one is refused."""
    state, target = tmp_path / "state", tmp_path / "target"
    number = reserve(state, capsys, "ann", "r1")["lease"]["number"]
    # its number is in a control process, where nobody of the bench sees it
    code = f"import os, sys; sys.stdin.read(1); os.environ[{VARIABLE!r}] = {f'{number}@{state}'!r};"
    argv = [sys.executable, "-c", code + _WRITER.format(root=_ROOT), str(state), str(target), "commands", "r1"]
    owner = subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert owner.stdin is not None
    owner.send_signal(signal.SIGSTOP)
    lapse(state, number)
    reserve(state, capsys, "bob", "r2")
    owner.send_signal(signal.SIGCONT)
    _, said = owner.communicate(b"x", timeout=30)
    assert owner.returncode != 0
    assert b"counts no longer" in said
    assert b"bob" in said
    assert not target.exists()


def test_the_batch_of_a_campaign_that_is_resumed_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], writers: list[Writer]
) -> None:
    state = tmp_path / "state"
    number = reserve(state, capsys, "ann", "r1")["lease"]["number"]
    writers.append(Writer(state, tmp_path / "target", number))
    answer = reserve(state, capsys, "ann", "r1")
    assert answer["lease"]["number"] > number
    assert not answer["ended"]
    assert writers[0].grows()


def test_what_runs_under_no_reservation_is_nobodys_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], writers: list[Writer]
) -> None:
    state = tmp_path / "state"
    writers.append(Writer(state, tmp_path / "target", 0, run="by hand"))
    answer = reserve(state, capsys, "bob", "r2")
    assert "by hand" in answer["refused"]
    assert answer["waits"]
    assert writers[0].grows()
    assert ask(state, capsys, "read")["lease"]["owner"] is None


def test_what_is_no_request_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for request in ("", "[]", "{}", '{"act": "dance"}', '{"act": "reserve", "owner": {}}'):
        assert main(["lease", str(tmp_path), request]) == 3
        assert "lease" in capsys.readouterr().err
