# SPDX-License-Identifier: Apache-2.0
"""dd and sg_dd in fio's place: real ones on files, what they said as evidence, and ends that are no measurement."""

from __future__ import annotations

import json
import signal
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storqual_core.host.counters import Meter
from storqual_core.kit.errors import BadInputError
from storqual_core.turns.batch_run import StopRequestedError
from storqual_core.turns.copy_program import beside_the_counters, run_program
from storqual_core.turns.copy_result import COPY_PROGRAMS, Copies, Copy, copies_result
from storqual_core.turns.derive import derive
from storqual_core.turns.fio_job import FioAsk, FioTarget, read_ask
from storqual_core.turns.launch import Launched, scratch_folder
from storqual_core.turns.targets import HeldTargets
from tests.support.fake_fio import launch
from tests.support.tool_fixtures import fixture_text
from tests.unit.storqual_core.turns.test_batch_run import Bench
from tests.unit.storqual_core.turns.test_derive import read_evidence

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAMS = ("dd", "sg_dd")
TOLD = {name: fixture_text(name, "asked_and_interrupted.txt") for name in PROGRAMS}


NOTHING_MORE = TOLD["dd"].replace("301734", "70891").replace("301733", "70890").replace("617949184", "145182720")


def ask(program: str, **fields: Any) -> FioAsk:
    """Reads of 2 KiB by a program, for a second."""
    problems: list[str] = []
    read = read_ask({"rw": "read", "bs": 2048, "ioengine": program, "runtime_s": 1.0, **fields}, "fio", problems)
    assert read is not None, problems
    return read


def sparse(path: Path, size: int = 1 << 36) -> FioTarget:
    """A file that no launch comes to the end of."""
    with path.open("wb") as file:
        file.truncate(size)
    return FioTarget(path.name, str(path), 0, size, is_file=True)


def run(wanted: FioAsk, *targets: FioTarget, stopping: Callable[[], bool] = lambda: False) -> Launched:
    """One launch."""
    with scratch_folder() as folder:
        return run_program(
            wanted, targets, seed=1, folder=folder, meter=Meter(), tick=lambda _: None, stopping=stopping
        )


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_two_drives_are_read_for_the_time_that_is_asked_and_the_ramp_is_left_out(
    program: str, tmp_path: Path
) -> None:
    targets = [sparse(tmp_path / "a"), replace(sparse(tmp_path / "b"), offset=4096)]
    launched = run(ask(program, runtime_s=0.6, ramp_s=1.5), *targets)
    result = launched.result
    assert (result.status, result.reason) == ("ok", "")
    assert len(result.jobs_ios) == 2
    assert result.primitives["read_ios"] == sum(result.jobs_ios) > 0
    assert result.primitives["read_bytes"] == 2048 * result.primitives["read_ios"]
    assert launched.copies is not None
    told = [COPY_PROGRAMS[program].parse(one.said).summaries[-1] for one in launched.copies.ended]
    assert 0.54e9 < result.primitives["runtime_ns"] < max(one.time_ns[1] for one in told) - 1.4e9
    assert launched.counted["wall_ns"] > 0.54e9
    assert launched.series == []
    assert "lat" not in "".join(result.primitives)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_sample_is_derived_from_what_the_program_printed(program: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    fio = {"rw": "read", "bs": 512, "ioengine": program, "runtime_s": 1.0, "ramp_s": 0.0, "iodepth": 1}
    block = bench.block(launch(0, fio=fio))
    held = HeldTargets({"d0": sparse(tmp_path / "d0")})
    assert bench.run(block, resolve=lambda _: nullcontext(held)).outcome == "done"
    lines = map(json.loads, block.spool.read_text(encoding="utf-8").splitlines())
    (line,) = (one for one in lines if one["kind"] == "sample")
    record, texts = read_evidence(line["artifacts"])
    own = {name: value for name, value in line["sample"].items() if name != "raw"}
    assert json.loads(json.dumps(derive(record, texts))) == own
    (name,) = (one["said"] for one in record["runs"][0]["copies"])
    assert own["status"] == "ok"
    assert texts[name].count("records in") == 2
    texts[name] = texts[name].replace("+0 records in", "7+0 records in")
    assert json.loads(json.dumps(derive(record, texts))) != own


@pytest.mark.slow
def test_what_ends_before_the_launch_does_is_short(tmp_path: Path) -> None:
    launched = run(ask("sg_dd"), sparse(tmp_path / "a"), sparse(tmp_path / "small", 1 << 20))
    assert launched.result.status == "short"
    assert "sg_dd on small reached the end of its data" in launched.result.reason


@pytest.mark.slow
def test_a_program_that_cannot_read_is_refused_with_its_words(tmp_path: Path) -> None:
    launched = run(ask("dd"), FioTarget("gone", str(tmp_path / "gone")))
    assert launched.result.status == "refused"
    assert "No such file" in launched.result.reason


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_launch_ends_where_interruptions_are_ignored(program: str, tmp_path: Path) -> None:
    """As in a shell's background; what ignores SIGINT hands that on to what it starts."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        launched = run(ask(program), sparse(tmp_path / "a"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert launched.in_time
    assert launched.result.status == "ok"


@pytest.mark.slow
def test_a_stop_ends_the_program(tmp_path: Path) -> None:
    with pytest.raises(StopRequestedError):
        run(ask("sg_dd", runtime_s=60.0), sparse(tmp_path / "a"), stopping=lambda: True)


def judged(program: str, said: str, exit_status: int = -signal.SIGINT, **asked: Any) -> tuple[str, str]:
    """Status and reason of one process that said this."""
    copies = Copies(program, 2048, (Copy("d0", said, exit_status),))
    result = copies_result(copies, **{"asked_s": 1.0, "in_time": True, **asked})
    return result.status, result.reason


@pytest.mark.parametrize("program", PROGRAMS)
def test_counts_between_the_two_summaries_are_the_launch(program: str) -> None:
    result = copies_result(Copies(program, 2048, (Copy("d0", TOLD[program], -2),)), asked_s=1.0, in_time=True)
    reads, runtime = {"dd": (230843, 1054772000), "sg_dd": (94208, 1126641000)}[program]
    assert (result.status, result.primitives["read_ios"]) == ("ok", reads)
    assert result.primitives["runtime_ns"] == pytest.approx(runtime, abs=1000)


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        (("d0", "d0"), "ok", ""),
        (("301734+0 records in", "301734+1 records in"), "lost", "less than it asked for"),
        (("301734+0 records in", "301735+0 records in"), "lost", "301735 records in and 301733 out"),
        (("617949184 bytes", "617949185 bytes"), "lost", "other bytes"),
        (("70891+0 records in\n", ""), "lost", "cut"),
        (("copied, 1.41643 s", "copied, 1.16 s"), "short", "0.798 of 1 s"),
    ],
)
def test_a_summary_that_contradicts_itself_is_no_measurement(
    change: tuple[str, str], status: str, reason: str
) -> None:
    found = judged("dd", TOLD["dd"].replace(*change))
    assert found[0] == status
    assert reason in found[1]


@pytest.mark.parametrize(
    ("program", "said", "exit_status", "status", "reason"),
    [
        ("sg_dd", TOLD["sg_dd"].replace("at 181.42", "at 171.42"), -2, "lost", "other bytes"),
        ("sg_dd", TOLD["sg_dd"].replace("524280", "524281"), -2, "lost", "do not fit"),
        ("dd", TOLD["dd"], 0, "short", "reached the end of its data"),
        ("dd", TOLD["dd"], 1, "io_error", "exit status 1"),
        ("dd", TOLD["dd"], -9, "killed", "signal 9"),
        ("dd", fixture_text("dd", "read_error.txt"), 1, "io_error", "Input/output error"),
        ("dd", "", -2, "lost", "told its counts 0 times"),
        ("dd", NOTHING_MORE, -2, "refused", "read nothing"),
    ],
)
def test_an_end_that_is_not_the_launchs_is_told(
    program: str, said: str, exit_status: int, status: str, reason: str
) -> None:
    found = judged(program, said, exit_status)
    assert found[0] == status
    assert reason in found[1]


def test_a_program_that_does_not_end_is_given_up() -> None:
    assert judged("dd", TOLD["dd"], in_time=False)[0] == "killed"


def test_a_time_too_coarse_for_the_launch_is_suspect() -> None:
    copies = Copies("sg_dd", 2048, (Copy("d0", TOLD["sg_dd"], -2),))
    assert copies_result(copies, asked_s=1.0, in_time=True).suspect == ()
    long = TOLD["dd"].replace("0.361658 s", "3000.1 s").replace("1.41643 s", "3001.11 s")
    (doubt,) = copies_result(Copies("dd", 2048, (Copy("d0", long, -2),)), asked_s=1.0, in_time=True).suspect
    assert "too coarsely" in doubt


@pytest.mark.parametrize(
    ("program", "sectors", "doubted", "noted"),
    [("dd", 4000, False, False), ("dd", 2000, True, False), ("dd", 0, True, False), ("sg_dd", 0, False, True)],
)
def test_reads_are_held_to_the_counters_of_the_drives(program: str, sectors: int, doubted: bool, noted: bool) -> None:
    told = {"wall_ns": 10**9, "runtime_ns": 10**9, "read_bytes": 2_048_000, "disk_read_sectors": sectors}
    doubts, notes = beside_the_counters(ask(program), 1, told)
    assert (bool(doubts), bool(notes)) == (doubted, noted)


def test_a_drive_without_counters_is_noted() -> None:
    assert beside_the_counters(ask("dd"), 1, {})[1]


@pytest.mark.parametrize(
    "fields",
    [
        {"rw": "write"},
        {"rw": "randread"},
        {"iodepth": 2},
        {"numjobs": 2},
        {"direct": 0},
        {"bs": 700},
        {"options": {"rate_iops": 5}},
        {"fallback": [{"ioengine": "psync"}]},
    ],
)
def test_anything_but_sequential_reads_is_refused(fields: dict[str, Any]) -> None:
    problems: list[str] = []
    wanted = {"rw": "read", "bs": 2048, "ioengine": "dd", "runtime_s": 1.0, **fields}
    assert read_ask(wanted, "fio", problems) is None
    assert problems[0].startswith("fio: dd: ")


def test_a_copy_never_writes_whoever_asks() -> None:
    with pytest.raises(BadInputError, match="only reads in sequence"):
        run(replace(ask("dd"), rw="write"))
