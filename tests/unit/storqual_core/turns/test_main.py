# SPDX-License-Identifier: Apache-2.0
"""The program as a bench runs it: one file, started once, attached to, stopped, and started again."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from storqual.bench.program import build_program
from storqual_core.guard.claims import read_claims
from storqual_core.guard.file_targets import make_file
from storqual_core.turns import main
from tests.support.fake_fio import block_text, fake_fio, job, launch, result

pytestmark = pytest.mark.slow

SIZE = 1 << 20


class Bench:
    """A local bench with one claimed file, and the program as one file; its second fio waits while `hold` exists."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.program = program
        self.drive = str(self.state / "targets" / "d0")
        self.claim = {"claim": {"file": self.drive, "size": SIZE}}
        for claim in read_claims({self.drive: self.claim}):
            make_file(claim, str(self.state))
        (folder / "out").write_text(result(job(drive=self.drive)), encoding="utf-8")
        (folder / "bin").mkdir()
        self.hold = folder / "hold"
        later = f"while [ -e {self.hold} ] && [ $(wc -l < {folder}/pids) -gt 1 ]; do sleep 0.05; done"
        fake_fio(folder / "bin", f'echo "$$" >> {folder}/pids\n{later}\ncat {folder}/out')

    def block(self, name: str, launches: int, **fields: Any) -> Path:
        """A block file where a run puts it."""
        path = self.state / "spool" / "r1" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        listed = [launch(index, drives=[self.drive]) for index in range(launches)]
        targets = {self.drive: self.claim}
        path.write_text(block_text(self.state, listed, block=name, targets=targets, **fields), encoding="utf-8")
        return path

    def call(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(self.program), *map(str, words)],
            env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def lines(self, name: str) -> list[dict[str, Any]]:
        text = (self.state / "spool" / "r1" / f"{name}.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def until(self, name: str, kind: str) -> None:
        """Wait for a line of that kind."""
        until(lambda: any(line["kind"] == kind for line in self.lines(name)))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_program(tmp_path_factory.mktemp("program"))


@pytest.fixture
def bench(tmp_path: Path, program: Path) -> Iterator[Bench]:
    """A bench on which nothing runs when the test is over."""
    bench = Bench(tmp_path, program)
    yield bench
    for path in (bench.state / "spool" / "r1").glob("*.json"):
        if path.name != "progress.json":
            bench.call("stop", path)


def test_a_block_is_started_attached_to_stopped_and_finished(bench: Bench) -> None:
    first, second = bench.block("s01-b01", 4), bench.block("s01-b02", 1)
    bench.hold.touch()
    assert (bench.call("start", first).returncode, bench.lines("s01-b01")[0]["kind"]) == (0, "start")
    status = json.loads(bench.call("status", first).stdout)
    assert (status["running"], status["of"], status["end"]) == (True, 4, None)
    again = bench.call("start", first)
    assert (again.returncode, again.stdout) == (0, "batch s01-b01 is already running\n")
    taken = bench.call("start", second)
    assert taken.returncode == 2
    assert "held by run r1, measuring" in taken.stderr
    bench.until("s01-b01", "sample")
    assert bench.call("stop", first).returncode == 0
    done = [line["sample"]["id"] for line in bench.lines("s01-b01") if line["kind"] == "sample"]
    assert len(done) == 1
    assert bench.lines("s01-b01")[-1]["outcome"] == "stopped"
    bench.hold.unlink()
    assert bench.call("start", first).returncode == 0
    bench.until("s01-b01", "end")
    samples = [line["sample"]["id"] for line in bench.lines("s01-b01") if line["kind"] == "sample"]
    assert samples == [f"s01-b01/{index}" for index in range(4)]
    assert bench.lines("s01-b01")[-1]["outcome"] == "done"
    assert bench.call("start", second).returncode == 0
    status = json.loads(bench.call("status", first).stdout)
    assert (status["running"], status["samples"], status["end"]) == (False, 4, {"outcome": "done", "message": ""})


def test_a_killed_program_leaves_no_fio_and_goes_on(bench: Bench) -> None:
    """SIGKILL in the middle: no second fio beside an orphan, no sample twice."""
    block = bench.block("s01-b01", 3)
    bench.hold.touch()
    bench.call("start", block)
    pids = bench.folder / "pids"
    until(lambda: pids.exists() and len(pids.read_text(encoding="ascii").split()) == 2)
    holder = json.loads(bench.call("status", block).stdout)["holder"]
    os.kill(holder["pid"], signal.SIGKILL)
    until(lambda: not any(is_running(pid) for pid in pids.read_text(encoding="ascii").split()))
    bench.hold.unlink()
    assert bench.call("start", block).returncode == 0
    bench.until("s01-b01", "end")
    samples = [line["sample"]["id"] for line in bench.lines("s01-b01") if line["kind"] == "sample"]
    assert samples == [f"s01-b01/{index}" for index in range(3)]


def until(question: Callable[[], bool]) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + 20
    while not question():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid: str) -> bool:
    """Whether a process is there and not just waiting to be collected."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - one line
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_guard_refuses_before_fio_runs(bench: Bench) -> None:
    """Exit status 4 and the guard's sentence, from start itself."""
    (bench.state / "targets" / "d0").unlink()
    (bench.state / "targets" / "d0").write_bytes(b"somebody's data" * 1000)
    refused = bench.call("start", bench.block("s01-b01", 1))
    assert refused.returncode == 4
    assert "d0" in refused.stderr
    assert not (bench.folder / "pids").exists()
    assert bench.lines("s01-b01")[-1]["outcome"] == "refused"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 3, "usage: core.pyz start|run|status|stop BATCH.json"),
        (("measure", "x"), 3, "usage:"),
        (("start", "/no/such/block.json"), 3, "/no/such/block.json: cannot be read: No such file"),
        (("start", "/dev/null"), 3, "/dev/null: is not a batch file"),
    ],
)
def test_wrong_use_is_told_in_one_line(bench: Bench, words: tuple[str, ...], code: int, said: str) -> None:
    """Exit status 3 and no traceback."""
    ended = bench.call(*words)
    assert ended.returncode == code
    assert ended.stderr.startswith(said)
    assert ended.stderr.count("\n") == 1


def test_a_bench_without_fio_is_told_by_start(bench: Bench) -> None:
    shutil.rmtree(bench.folder / "bin")
    environment = {**os.environ, "PATH": str(bench.folder / "bin")}
    block = bench.block("s01-b01", 1)
    ended = subprocess.run(
        [sys.executable, str(bench.program), "start", str(block)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (2, "`fio` is not installed on this machine\n")


def test_a_program_that_does_not_say_that_it_began_is_ended(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it started: on a busy bench it would else begin later, and hold the bench with nobody there."""
    slow = tmp_path / "slow.py"
    begun = tmp_path / "begun"
    slow.write_text(
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(begun)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(main, "_systemd_runs", lambda: False)
    monkeypatch.setattr(main, "_READY_S", 3.0)
    code, message = main.start_batch(main.read_place(bench.block("s01-b01", 1)), slow)
    assert code == 2
    assert "did not start" in message
    for pid in begun.read_text(encoding="utf-8").split():
        until(lambda pid=pid: state_of(pid) in ("", "Z"))


def state_of(pid: str) -> str:
    """The letter of a process's state, empty for one that is gone."""
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    return ""
