# SPDX-License-Identifier: Apache-2.0
"""A launch becomes one fio command line that fio itself accepts."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from storqual_core.turns.fio_job import (
    PASSED,
    FioAsk,
    FioTarget,
    Variant,
    build_argv,
    launch_seed,
    read_ask,
    time_limit_s,
)

# engines list them only where they have them, and `--cmdhelp=all` lists `blockalign` by its short name
OF_SOME_ENGINES = {"blockalign", "hipri", "registerfiles", "fixedbufs", "sqthread_poll", "sqthread_poll_cpu"} | {
    "nonvectored",
    "nowait",
}
ASK = {"rw": "randread", "bs": 4096, "iodepth": 4, "numjobs": 2, "runtime_s": 2.0, "ramp_s": 0.5}


def ask(**fields: Any) -> FioAsk:
    problems: list[str] = []
    read = read_ask({**ASK, **fields}, "fio", problems)
    assert problems == []
    assert read is not None
    return read


def argv(*targets: FioTarget, **fields: Any) -> list[str]:
    return build_argv(ask(**fields), targets or (FioTarget("0x5", "/dev/sda"),), seed=7, log_prefix="/x/log")


def test_a_launch_is_one_process_with_one_section_per_drive() -> None:
    """The whole command line, so that a change of any option is a decision and not an accident."""
    assert argv(
        FioTarget("0x5000c50015ea71a0", "/dev/sda", 1048576, 1071644672),
        FioTarget("/t/b:c", "/t/b:c", 0, 4096, is_file=True),
    ) == [
        "fio",
        "--output-format=json+",
        *("--eta=never", "--readonly", "--name=global", "--rw=randread", "--bs=4096", "--ioengine=libaio"),
        *("--direct=1", "--iodepth=4", "--numjobs=2", "--thread=1", "--time_based=1", "--runtime=2000ms"),
        *("--ramp_time=500ms", "--group_reporting=0", "--disk_util=0", "--norandommap=1", "--randseed=7"),
        *("--lat_percentiles=1", "--clat_percentiles=0"),
        "--percentile_list=50:90:95:99:99.5:99.9:99.95:99.99:99.999:99.9999",
        *("--fallocate=none", "--allow_file_create=0", "--write_iops_log=/x/log", "--per_job_logs=1"),
        *("--log_avg_msec=1000", "--name=d0", "--description=0x5000c50015ea71a0", "--filename=/dev/sda"),
        *("--offset=1048576", "--size=1071644672", "--name=d1", "--description=/t/b:c"),
        "--filename=/t/b\\:c",
        "--size=4096",
    ]


@pytest.mark.parametrize("rw", ["write", "randwrite", "rw", "randrw", "trim"])
def test_only_reading_is_declared_read_only(rw: str) -> None:
    """Fio refuses writes under --readonly, so a write workload must not carry it and a read workload must."""
    assert "--readonly" not in argv(rw=rw)
    assert "--readonly" in argv(rw="read")


def test_options_come_last_so_that_a_suite_decides() -> None:
    line = argv(options={"norandommap": 0, "rate_process": "poisson", "rate_iops": 500})
    assert line.index("--norandommap=0") > line.index("--norandommap=1")
    assert {"--rate_process=poisson", "--rate_iops=500"} <= set(line)


def test_the_same_launch_of_both_arms_does_the_same_io() -> None:
    assert launch_seed("r", "p", 1) == launch_seed("r", "p", 1)
    assert len({launch_seed("r", "p", 1), launch_seed("r", "p", 2), launch_seed("r", "q", 1)}) == 3


def test_a_fallback_is_only_what_was_declared() -> None:
    """Engine and page cache can fall back, nothing else."""
    declared = ask(fallback=[{"ioengine": "psync", "direct": 0}])
    assert declared.variants == (Variant("libaio", 1), Variant("psync", 0))
    assert ask().variants == (Variant("libaio", 1),)
    assert declared.using(Variant("psync", 0)).ioengine == "psync"


def test_latency_and_histogram_logs_are_asked_for_by_name() -> None:
    line = argv(logs=["iops", "lat", "hist"], log_ms=500)
    assert {"--write_lat_log=/x/log", "--write_hist_log=/x/log", "--log_hist_msec=500", "--log_avg_msec=500"} <= set(
        line
    )


@pytest.mark.parametrize(
    ("fields", "said"), json.loads(Path(__file__).with_name("fio_mistakes.json").read_text(encoding="utf-8"))
)
def test_what_cannot_be_used_is_named(fields: dict[str, Any], said: str) -> None:
    problems: list[str] = []
    assert read_ask({**ASK, **fields}, "fio", problems) is None
    assert problems[0].startswith(said)


def test_all_problems_are_told_at_once() -> None:
    problems: list[str] = []
    read_ask({**ASK, "rw": "x", "bs": -1, "options": {"filename": "y"}}, "fio", problems)
    assert len(problems) == 3
    assert read_ask("fio", "fio", problems) is None


def test_fio_knows_every_option_that_may_be_passed() -> None:
    known = subprocess.run(["fio", "--cmdhelp=all"], capture_output=True, text=True, check=True).stdout
    names = {line.split(":")[0].strip() for line in known.splitlines()}
    for engine in ("libaio", "io_uring"):
        own = subprocess.run(["fio", f"--enghelp={engine}"], capture_output=True, text=True, check=True).stdout
        names |= {line.split(":")[0].strip() for line in own.splitlines()}
    assert names >= PASSED - OF_SOME_ENGINES


def test_fio_accepts_the_command_line(tmp_path: Path) -> None:
    """Parsed by fio itself, nothing run."""
    target = tmp_path / "a file: with #;$jobnum"
    target.write_bytes(b"\0" * 65536)
    line = argv(FioTarget("x", str(target), 0, 65536, is_file=True), options={"rate_iops": 100}, logs=["iops", "lat"])
    ended = subprocess.run([*line, "--parse-only"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_launch_is_given_up_long_after_it_should_have_ended() -> None:
    """Time for error recovery is left: killing fio in it would hide what happened."""
    assert time_limit_s(ask(runtime_s=60.0, ramp_s=2.0)) > 60 + 2 + 60


def test_with_zones_each_job_has_its_own_part() -> None:
    """A target of a megabyte for three jobs of 4 KiB blocks: 85 blocks each, one after the other."""
    line = argv(FioTarget("0x5", "/dev/sda", 1048576, 1048576), zones=True, numjobs=3)
    zone = 85 * 4096
    assert line[-3:] == ["--offset=1048576", f"--size={zone}", f"--offset_increment={zone}"]
    assert 3 * zone <= 1048576


def test_fio_accepts_zones(tmp_path: Path) -> None:
    """The words are checked by fio itself."""
    target = tmp_path / "target"
    target.write_bytes(bytes(65536))
    line = argv(FioTarget("x", str(target), 0, 65536, is_file=True), zones=True, numjobs=4)
    ended = subprocess.run([*line, "--parse-only"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
