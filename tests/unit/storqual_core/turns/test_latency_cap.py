# SPDX-License-Identifier: Apache-2.0
"""A launch that goes to a latency cap, on a fio that stands for a device of fixed service time."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from storqual.metrics import METRICS, Primitives, Unavailable, Value
from storqual_core.kit.errors import BadInputError
from storqual_core.turns.batch_file import parse_batch
from storqual_core.turns.launches import LaunchRunner
from tests.support.fake_fio import (
    FileTargets,
    block_text,
    fake_fio,
    job,
    launch,
    make_block,
    no_disks,
    result,
    spooled,
)
from tests.unit.storqual_core.turns.test_batch_run import Bench

LOAD = {"cap_ns": 20_000_000, "share_ppm": 0, "by": "iodepth", "least": 1, "most": 1024}
DEVICE = """\
import json, sys
words = dict(word[2:].split("=", 1) for word in sys.argv[1:] if "=" in word)
load = int(words[BY])
rate, seconds = min(load, 4) * 1000.0, int(words["runtime"][:-2]) / 1e3
response, ios = load / rate, int(min(load, 4) * 1000.0 * seconds)
# at the end all that is outstanding has the time of the last of it
mean = response * (1 + response / 2 / seconds) if DRAINS else response
body = json.loads(open(OUT).read())
side = body["jobs"][0]["read"]
side["total_ios"], side["io_bytes"], side["runtime"] = ios, ios * 4096, int(seconds * 1000)
side["lat_ns"].update(N=ios, mean=mean * 1e9, bins={str(int(response * 1e9)): ios})
print(json.dumps(body))
"""


def sample_of(folder: Path, load: dict[str, Any], after: str = "", *, drains: bool = False) -> dict[str, Any]:
    """The sample of one launch on a device that serves four at once, a millisecond each."""
    (folder / "out").write_text(result(job(drive="d0")), encoding="utf-8")
    text = DEVICE.replace("BY", repr(load["by"])).replace("OUT", repr(str(folder / "out")))
    text = text.replace("DRAINS", repr(drains))
    (folder / "device.py").write_text(text, encoding="utf-8")
    bench = Bench(folder)
    program = fake_fio(folder, f'{after}exec {sys.executable} -S {folder}/device.py "$@"')
    block = make_block(folder / "state", [launch(0, load=load)])
    end = LaunchRunner(
        block, resolve=FileTargets(folder), program=program, ledger=no_disks, runner=bench.command
    ).run()
    assert end.outcome == "done", end.message
    (found,) = spooled(block)
    return found


def value(sample: dict[str, Any], metric: str) -> Value | Unavailable:
    """A metric of a spooled sample."""
    return METRICS[metric].value(Primitives(sample["primitives"], sample["series"]))


def test_the_sample_holds_the_whole_curve_and_the_cap_is_the_analytic_one(tmp_path: Path) -> None:
    """4000 IOPS, and 80 outstanding at 20 ms; its own counts are those of the highest load within the cap."""
    sample = sample_of(tmp_path, LOAD)
    steps = sample["primitives"]["load_steps"]
    assert sample["status"] == "ok"
    assert [step["load"] for step in steps][:2] == [1, 4]
    assert len(sample["raw"]) == len(steps) + 1
    assert value(sample, "iops_at_cap") == Value(pytest.approx(4000.0), "closed loop, mean response time")
    assert value(sample, "load_at_cap") == Value(pytest.approx(80.0, rel=1e-3), "closed loop, mean response time")
    at_8 = value(sample, "iops_at_8ms")
    assert isinstance(at_8, Value)
    assert at_8.value == pytest.approx(4000.0)
    assert sample["primitives"]["read_lat_sum_ns"] / sample["primitives"]["read_ios"] <= LOAD["cap_ns"]


def test_what_fio_adds_when_a_launch_ends_is_small_beside_the_launch(tmp_path: Path) -> None:
    """With 800 outstanding in 1 s it would be a tenth; launches near the cap are longer, others are not."""
    sample = sample_of(tmp_path, {**LOAD, "cap_ns": 200_000_000}, drains=True)
    found = value(sample, "load_at_cap")
    assert isinstance(found, Value)
    assert found.value == pytest.approx(800.0, rel=0.011)
    lengths = {step["load"]: step["runtime_ns"] / 1e9 for step in sample["primitives"]["load_steps"]}
    assert lengths[1] == 1.0
    assert max(lengths.values()) == pytest.approx(10.0)


def test_processes_are_raised_in_the_same_way(tmp_path: Path) -> None:
    sample = sample_of(tmp_path, {**LOAD, "by": "numjobs", "share_ppm": 990_000})
    found = value(sample, "load_at_cap")
    assert isinstance(found, Value)
    assert found.value == pytest.approx(80.0, rel=1e-2)
    assert found.source == "closed loop, p99 response time"


def test_a_cap_beyond_the_most_load_has_no_value_and_says_why(tmp_path: Path) -> None:
    sample = sample_of(tmp_path, {**LOAD, "most": 16})
    assert [step["load"] for step in sample["primitives"]["load_steps"]][-1] == 16
    assert value(sample, "iops_at_cap") == Unavailable(
        "20 ms is not reached: 4 ms at load 16, the highest load that was planned"
    )


def test_a_step_that_goes_wrong_makes_the_sample_wrong(tmp_path: Path) -> None:
    """A killed fio in the middle of the ladder is no curve."""
    kill = f'n=$(cat {tmp_path}/n 2>/dev/null || echo 0); echo $((n+1)) > {tmp_path}/n; [ "$n" = 2 ] && kill -9 $$\n'
    sample = sample_of(tmp_path, LOAD, kill)
    assert sample["status"] == "killed"
    assert len(sample["primitives"]["load_steps"]) == 3
    assert isinstance(value(sample, "iops_at_cap"), Unavailable)


@pytest.mark.parametrize(
    "wrong",
    [{"by": "bs"}, {"least": 0}, {"least": 9, "most": 3}, {"cap_ns": "20ms"}, {"share_ppm": 1_000_000}, {"more": 1}],
)
def test_a_load_that_makes_no_sense_is_refused_before_anything_runs(tmp_path: Path, wrong: dict[str, Any]) -> None:
    text = block_text(tmp_path, [launch(0, load={**LOAD, **wrong})])
    with pytest.raises(BadInputError, match=r"turns\[0\]: load"):
        parse_batch(text)
    assert json.loads(text)
