# SPDX-License-Identifier: Apache-2.0
"""One point measured again alone: the command, and the job that does what the bench did."""

from __future__ import annotations

import json
import shlex
from configparser import ConfigParser
from pathlib import Path

import pytest

from storqual.report.material import read_material
from storqual.report.parts.point import Repeat, repeats_of
from storqual_core.turns.fio_job import launch_seed
from tests.support.batches import launch_turn
from tests.support.judged_reports import QUICK, judged


def repeated(run: Path, targets: dict[str, object], **launch: object) -> Repeat:
    material = read_material(run)
    key, point = next(iter(material.points.items()))
    fio = {"rw": "randread", "bs": 4096, "iodepth": 8, "numjobs": 1, "ioengine": "libaio", "direct": 1}
    entry = {
        "adapter": key[1],
        "point": key[2],
        "n": 1,
        "drives": list(point.planned.drives),
        "fio": {**fio, "runtime_s": 2.0, "ramp_s": 0.5, "rwmixread": None, "zones": False, "options": {}},
        **launch,
    }
    block = {"bench": key[0], "targets": targets, "turns": [launch_turn("s01-b01", {"index": 0, **entry})]}
    for old in (run / "blocks").glob("*.json"):
        old.unlink()
    (run / "blocks").mkdir(exist_ok=True)
    (run / "blocks" / "s01-b01.json").write_text(json.dumps(block))
    return repeats_of(material)[key]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return judged(tmp_path, points=QUICK[:2], adapters=("sym",))


def read(job: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None)
    parser.read_string(job)
    return parser


def test_the_job_has_engine_seed_options_and_targets_of_the_first_launch(run: Path) -> None:
    job = read(repeated(run, {}).job)
    options = job["global"]
    assert [options[name] for name in ("rw", "bs", "iodepth", "ioengine", "direct")] == [
        "randread",
        "4096",
        "8",
        "libaio",
        "1",
    ]
    assert options["randseed"] == str(launch_seed(run.name, QUICK[0], 1))
    assert options["runtime"] == "2000ms"
    assert job["d0"]["filename"].startswith("/dev/disk/by-id/wwn-0x")
    assert "percentile_list" not in options


def test_a_job_that_writes_says_so_first_and_one_that_reads_is_held_to_it(run: Path) -> None:
    assert repeated(run, {}).job.startswith("# fio --readonly point.fio")
    fio = {"rw": "write", "bs": 4096, "iodepth": 1, "numjobs": 1, "ioengine": "libaio", "direct": 1, "runtime_s": 1.0}
    assert repeated(run, {}, fio=fio).job.startswith("# fio point.fio WRITES to its targets")


def test_what_another_program_read_is_told_as_its_commands(run: Path) -> None:
    fio = {"rw": "read", "bs": 2048, "ioengine": "sg_dd", "runtime_s": 2.0, "ramp_s": 0.5}
    first, second = repeated(run, {}, fio=fio, drives=["0x5000c50015eb0000", "b"]).job.splitlines()
    assert first.startswith(
        "timeout -s INT 2.5 sg_dd if=/dev/disk/by-id/wwn-0x5000c50015eb0000 of=/dev/null bs=512 bpt=4"
    )
    assert first.endswith(" &")
    assert " if=/dev/disk/by-id/b " in second


def test_a_file_is_named_by_its_path_with_its_size(run: Path) -> None:
    targets = {"t": {"claim": {"file": "/srv/targets/drive0", "size": 67108864}}}
    job = read(repeated(run, targets, drives=["t"]).job)
    assert job["d0"]["filename"] == "/srv/targets/drive0"
    assert job["d0"]["size"] == "67108864"


def test_the_command_names_the_point_and_its_adapter(run: Path) -> None:
    words = shlex.split(repeated(run, {}).command)
    assert words[:2] == ["storqual", "qualify"]
    assert words[-4:] == ["--adapters", "sym", "--point", QUICK[0]]


def test_a_launch_that_cannot_be_read_has_a_command_and_no_job(run: Path) -> None:
    found = repeated(run, {}, fio={"rw": "nonsense"})
    assert found.job == ""
    assert found.command
