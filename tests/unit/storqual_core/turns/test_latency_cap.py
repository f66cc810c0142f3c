# SPDX-License-Identifier: Apache-2.0
"""A launch that goes to a latency cap, on a fio that stands for a device of fixed service time."""

import json
import math
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.metrics import METRICS, Primitives, Unavailable, Value
from storqual_core.kit.errors import BadInputError
from storqual_core.turns.batch_file import parse_batch
from storqual_core.turns.launch import MOST_STEPS, LoadStep, at_response, next_load, read_steps, response_ns
from storqual_core.turns.launch_runner import LaunchRunner
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
DEVICE = Path(__file__).with_suffix(".device").read_text(encoding="utf-8")


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


MS = 1e6


def device(load: int, *, service_ns: float, width: int, noise: float = 0.0) -> LoadStep:
    """A launch on a device that serves `width` I/Os at once, each in `service_ns`."""
    rate = min(load, width) / service_ns * 1e9 * math.exp(random.Random(load).gauss(0.0, noise))
    return LoadStep(load, rate, load / rate * 1e9)


def search(cap_ns: float, *, most: int = 4096, **kind: float) -> list[LoadStep]:
    steps: list[LoadStep] = []
    load = next_load(steps, cap_ns, least=1, most=most)
    while load is not None:
        assert load not in {step.load for step in steps}, "a launch twice"
        steps.append(device(load, **kind))  # type: ignore[arg-type]
        load = next_load(steps, cap_ns, least=1, most=most)
    return steps


@pytest.mark.parametrize("cap_ms", [8, 20, 100])
@pytest.mark.parametrize(("service_ms", "width"), [(1.0, 4), (4.0, 32), (0.1, 1), (0.25, 8)])
def test_the_cap_is_where_littles_law_puts_it(cap_ms: float, service_ms: float, width: int) -> None:
    steps = search(cap_ms * MS, service_ns=service_ms * MS, width=width)
    found = at_response(steps, cap_ms * MS)
    assert found is not None
    rate = width / service_ms * 1000
    assert found[0] == pytest.approx(rate, rel=1e-9)
    assert found[1] == pytest.approx(cap_ms / 1000 * rate, rel=1e-6)
    assert len(steps) <= 13


def test_noise_of_a_percent_moves_the_answer_by_a_percent() -> None:
    steps = search(100 * MS, service_ns=MS, width=4, noise=0.01)
    found = at_response(steps, 100 * MS)
    assert found is not None
    assert found[0] == pytest.approx(4000, rel=0.03)
    assert len(steps) < MOST_STEPS


def test_a_cap_that_cannot_be_reached_ends_at_the_most() -> None:
    steps = search(100 * MS, most=64, service_ns=MS, width=4)
    assert max(step.load for step in steps) == 64
    assert at_response(steps, 100 * MS) is None


def test_a_cap_below_the_shortest_response_is_one_launch() -> None:
    steps = search(0.5 * MS, service_ns=MS, width=4)
    assert [step.load for step in steps] == [1]
    assert at_response(steps, 0.5 * MS) is None


def test_rates_at_other_response_times_are_read_off_the_same_curve() -> None:
    steps = [LoadStep(4, 4000.0, 1.0 * MS), LoadStep(8, 4400.0, 2.0 * MS), LoadStep(16, 4400.0, 4.0 * MS)]
    assert at_response(steps, 1.5 * MS) == (4200.0, 6.0)
    assert at_response(steps, 4.0 * MS) == (4400.0, 16.0)
    assert at_response(steps, 0.5 * MS) is None
    assert at_response(steps, 5.0 * MS) is None


@given(
    st.lists(st.tuples(st.floats(1.0, 1e7), st.floats(1e3, 1e10)), max_size=40),
    st.floats(1e3, 1e10),
    st.integers(1, 64),
    st.integers(64, 4096),
)
def test_any_device_whatever_it_answers_ends_the_search(
    answers: list[tuple[float, float]], cap_ns: float, least: int, most: int
) -> None:
    """Each load is tried once, inside its limits, and there are so many launches at most."""
    steps: list[LoadStep] = []
    load = next_load(steps, cap_ns, least=least, most=most)
    while load is not None:
        assert least <= load <= most
        assert load not in {step.load for step in steps}
        rate, response = answers[len(steps)] if len(steps) < len(answers) else (1000.0, load * 1e6)
        steps.append(LoadStep(load, rate, response))
        load = next_load(steps, cap_ns, least=least, most=most)
    assert len(steps) <= MOST_STEPS


def test_percentiles_of_a_launch_come_from_its_bins() -> None:
    bins = {"1000": 98, "9000": 2}
    assert response_ns(100, 116_000, bins, 0) == 1160.0
    assert response_ns(100, 116_000, bins, 980_000) == 1000.0
    assert response_ns(100, 116_000, bins, 990_000) == 9000.0
    assert response_ns(101, 116_000, bins, 990_000) is None
    assert response_ns(0, 0, {}, 0) is None


@pytest.mark.parametrize("entry", [{}, {"load": 1, "ios": 0, "runtime_ns": 1, "lat_sum_ns": 0}, {"load": "x"}])
def test_steps_that_are_none_are_an_error(entry: dict[str, object]) -> None:
    with pytest.raises((KeyError, ValueError)):
        read_steps([entry], 0)
