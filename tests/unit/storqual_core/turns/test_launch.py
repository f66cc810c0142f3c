# SPDX-License-Identifier: Apache-2.0
"""One launch with the real fio on a file: counted, watched, ended for certain."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storqual_core.host.counters import Meter
from storqual_core.kit.errors import ToolError
from storqual_core.turns.batch_run import StopRequestedError
from storqual_core.turns.derive import parse_log
from storqual_core.turns.fio_job import FioProcess, FioTarget, read_ask
from storqual_core.turns.launch import Launched, run_fio, scratch_folder
from tests.support.fake_fio import fake_fio, job, result

pytestmark = pytest.mark.slow

SIZE = 1 << 20
BLOCK = 4096


@pytest.fixture
def target(tmp_path: Path) -> FioTarget:
    """A file of one MiB with something in it."""
    path = tmp_path / "d0"
    path.write_bytes(b"\xa5" * SIZE)
    return FioTarget("d0", str(path), 0, SIZE, is_file=True)


def run(target: FioTarget, *, stopping: Callable[[], bool] = lambda: False, **fields: Any) -> Launched:
    """Run fio on `target`; `program` and `grace_s` are for the runner, the rest for fio."""
    ways = {name: fields.pop(name) for name in ("program", "grace_s") if name in fields}
    ask = {"rw": "randread", "bs": BLOCK, "ioengine": "psync", "direct": 0, "runtime_s": 1.0, **fields}
    problems: list[str] = []
    read = read_ask(ask, "fio", problems)
    assert read is not None, problems
    meter = Meter()
    with scratch_folder() as folder:
        try:
            return run_fio(
                read, [target], seed=5, folder=folder, meter=meter, tick=lambda _: None, stopping=stopping, **ways
            )
        finally:
            meter.close()
            assert not fio_processes(folder)


def fio_processes(folder: Path) -> list[str]:
    """Processes that work in `folder`."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if place.resolve() == folder.resolve():
                found.append(place.parent.name)
        except OSError:
            continue
    return found


def test_a_launch_is_counted_and_its_window_is_fios(target: FioTarget) -> None:
    """A rated run after a long ramp: I/Os, series and the processor's window agree with each other."""
    launched = run(target, runtime_s=1.6, ramp_s=1.5, options={"rate_iops": 400})
    assert (launched.result.status, launched.result.reason) == ("ok", "")
    assert launched.result.primitives["read_ios"] == pytest.approx(640, rel=0.1)
    assert launched.series == [pytest.approx(400, rel=0.15)] * 2
    # with the ramp in it the window would be twice as long; a busy machine lengthens it by a part of that
    assert 1.0e9 < launched.counted["wall_ns"] < 2.8e9
    assert launched.wall_ns > 3.0e9
    assert launched.output.startswith("{")


def test_a_file_target_never_grows(target: FioTarget) -> None:
    launched = run(target, rw="write", bs=262144, runtime_s=0.3)
    assert launched.result.primitives["write_bytes"] > SIZE
    assert Path(target.node).stat().st_size == SIZE


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """By itself fio would make one: then it would write where nothing is claimed."""
    launched = run(FioTarget("d0", str(tmp_path / "new"), 0, SIZE, is_file=True), rw="write", runtime_s=0.2)
    assert (launched.result.status, launched.counted, list(launched.series)) == ("io_error", {}, [])
    assert not (tmp_path / "new").exists()


def test_a_killed_fio_is_killed_and_nothing_else(target: FioTarget) -> None:
    for number, said in ((signal.SIGTERM, "a signal after"), (signal.SIGKILL, "SIGKILL; it left no result")):
        ended = threading.Event()
        killer = threading.Thread(target=kill_at_work, args=(target, number, ended))
        killer.start()
        launched = run(target, runtime_s=60.0)
        ended.set()
        killer.join()
        assert launched.result.status == "killed"
        assert said in launched.result.reason


def kill_at_work(target: FioTarget, number: signal.Signals, ended: threading.Event) -> None:
    """Send `number` to the fio that this process has started, once it reads its target."""
    while not ended.wait(0.01):
        for place in Path("/proc").glob("[0-9]*/stat"):
            try:
                words = place.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
                if int(words[1]) == os.getpid() and reads(place.parent, target):
                    os.kill(int(place.parent.name), number)
                    return
            except (OSError, IndexError):
                continue


def reads(process: Path, target: FioTarget) -> bool:
    """Whether a process has its target open and has read from it many times."""
    opened = {str(link.readlink()) for link in (process / "fd").iterdir()}
    counted = dict(line.split(": ") for line in (process / "io").read_text(encoding="ascii").splitlines())
    return target.node in opened and int(counted["rchar"]) > 100 * BLOCK


def test_a_fio_that_does_not_end_is_given_up(tmp_path: Path, target: FioTarget) -> None:
    program = fake_fio(tmp_path, "trap '' TERM\nsleep 60 & wait\nsleep 60")
    began = time.monotonic()
    launched = run(target, program=program, runtime_s=0.1, grace_s=0.3)
    assert time.monotonic() - began < 15
    assert launched.result.status == "killed"
    assert launched.result.reason.startswith("storqual gave up on fio")


def test_a_stop_ends_fio_at_once(target: FioTarget) -> None:
    began = time.monotonic()
    with pytest.raises(StopRequestedError):
        run(target, runtime_s=30.0, stopping=lambda: time.monotonic() - began > 0.2)
    assert time.monotonic() - began < 10


def test_a_refused_job_is_refused(tmp_path: Path, target: FioTarget) -> None:
    """As fio does with a mounted device: exit status 0, error 0, nothing done."""
    (tmp_path / "out").write_text(result(job(ios=0, runtime_ms=0)), encoding="utf-8")
    launched = run(target, program=fake_fio(tmp_path, f"cat {tmp_path}/out"))
    assert launched.result.status == "refused"


def test_a_missing_fio_is_a_missing_tool(target: FioTarget, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="nofio` cannot be started"):
        run(target, program=str(tmp_path / "nofio"))


PARENT = """
import sys, time
from pathlib import Path
from storqual_core.turns.fio_job import FioProcess
fio = FioProcess(["sh", "-c", "echo $$; exec sleep 60"], Path(sys.argv[1]))
time.sleep(60)
"""


def test_a_killed_bench_program_takes_its_fio_with_it(tmp_path: Path) -> None:
    """SIGKILL cannot be caught, so the kernel is asked to pass it on."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)])
    pid = int(awaited(lambda: (tmp_path / "output").read_text(encoding="ascii").strip()))
    assert Path(f"/proc/{pid}").exists()
    parent.kill()
    parent.wait()
    awaited(lambda: not Path(f"/proc/{pid}").exists() or state_of(pid) == "Z")


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def awaited(question: Callable[[], Any], seconds: float = 10.0) -> Any:
    """The first true answer to `question`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            answer = question()
        except OSError:
            answer = None
        if answer:
            return answer
        time.sleep(0.02)
    pytest.fail("it did not happen")


def test_waiting_ends_when_the_last_process_is_gone(tmp_path: Path) -> None:
    """A child that outlives fio's first process is still fio: the next launch must not begin."""
    with FioProcess(["sh", "-c", "sleep 0.6 & exit 3"], tmp_path) as fio:
        assert not fio.wait(0.2)
        assert fio.wait(5.0)
        ended = fio.collect()
    assert ended.exit_status == 3
    assert ended.wall_ns > 0.5e9


def test_merged_percentiles_are_those_of_all_completions(target: FioTarget) -> None:
    """Two jobs' bins, added, against fio's own record of every I/O: equal within one bin (1/64 of an octave)."""
    launched = run(target, numjobs=2, runtime_s=0.6, logs=["lat"], log_ms=0, options={"rate_iops": 3000})
    raw = sorted(
        value
        for name, text in launched.logs.items()
        if name.startswith("log_lat.")
        for _, value, _ in parse_log(text)
    )
    bins = {int(edge): count for edge, count in launched.result.primitives["read_bins"].items()}
    assert len(raw) == sum(bins.values()) == launched.result.primitives["read_ios"] > 1000
    assert sum(raw) == pytest.approx(launched.result.primitives["read_lat_sum_ns"], rel=1e-3)
    for share in (0.5, 0.9, 0.99, 0.999):
        rank = max(int(share * len(raw)) - 1, 0)
        seen = 0
        for edge in sorted(bins):
            seen += bins[edge]
            if seen > rank:
                break
        assert edge == pytest.approx(raw[rank], rel=1 / 64)
