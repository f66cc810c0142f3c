# SPDX-License-Identifier: Apache-2.0
"""Physics on the virtual bench: the bench program on a drive whose service time is known finds what arithmetic says.

The drive is the kernel's scsi_debug: each command takes the same time, and a fixed number are served at once. So
IOPS are outstanding I/Os / service time up to that number, and response times are outstanding I/Os / IOPS beyond it.
"""

import io
import json
import statistics
import subprocess
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from storqual.metrics import METRICS, Primitives, Value
from storqual.statistics.scaling import scaling
from storqual_core.turns.fio_job import FioTarget, build_argv, read_ask
from storqual_core.turns.launch import read_steps
from tests.support.fake_fio import launch_batch
from tests.support.live_bench import REPOSITORY, STATE, powered

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(3000)]

SERVICE_NS = 40_000_000
SERVED = 16
PLATEAU = SERVED * 1e9 / SERVICE_NS
TOLERANCE = 0.05
"""Of the emulator: what it adds to a service time of 40 ms."""
SEARCHED = 0.03
"""Of a search for a load beside the drive's own plateau, measured in the same block."""
PAIRS = 21
SPIN_US = 4000
THINK_US = 24_000
"""Longer than the spin by more than a processor is ever taken away: fio 3.33 sleeps on and on after a longer spin."""


@pytest.fixture(scope="module", autouse=True)
def gate_bench() -> Iterator[None]:
    """The gate bench, powered on for this module, with the core and the guest's scripts on it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(REPOSITORY / "library" / "module_utils" / "storqual_core", arcname="storqual_core")
        archive.add(REPOSITORY / "tests" / "virtual" / "guest" / "physics.py", arcname="physics.py")
    with powered():
        ask("rm -rf /root/trial && mkdir /root/trial && tar -C /root/trial -xf -", packed.getvalue())
        yield


def ask(line: str, data: bytes) -> str:
    """What a command line prints on the bench."""
    ended = subprocess.run(
        ["ssh", "-F", STATE / "ssh_config", "gatebench", line],
        input=data,
        capture_output=True,
        timeout=1500,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode(errors="replace")[-3000:]
    return ended.stdout.decode()


@dataclass(frozen=True)
class Measured:
    """The samples of a block, and the results of fio alone beside them."""

    samples: list[dict[str, Any]]
    bare: list[dict[str, Any]]

    def values(self, metric: str) -> list[float]:
        found = []
        for sample in self.samples:
            assert sample["status"] == "ok", sample
            value = METRICS[metric].value(Primitives(sample["primitives"], sample["series"]))
            assert isinstance(value, Value), value
            found.append(value.value)
        return found


def launch(index: int, depth: int, *, seconds: float = 3.0, **fields: Any) -> dict[str, Any]:
    fio = {"rw": "randread", "bs": 4096, "iodepth": depth, "numjobs": 1, "ioengine": "libaio", "direct": 1}
    times = {"runtime_s": seconds, "ramp_s": 0.5}
    return {
        "index": index,
        "adapter": "debug",
        "arm": "candidate",
        "configuration": "candidate",
        "point": f"rand_read[iodepth={depth}]",
        "n": index + 1,
        "drives": ["d0"],
        "switch": [],
        **fields,
        "fio": {**fio, **times, **fields.get("fio", {})},
    }


def measure(
    launches: list[dict[str, Any]],
    *,
    delay_ns: int = SERVICE_NS,
    idle_s: float = 0.0,
    background: float = 0.0,
    bare: Mapping[int, list[list[str]]] | None = None,
) -> Measured:
    """Run them as one block on the bench; `bare` are commands before a launch, `DRIVE` in them is its node."""
    names = {"run": "physics", "block": "s01-b01", "bench": "gatebench", "session": "s01"}
    block = launch_batch(
        launches, **names, state_dir="/root/trial/state", idle_s=idle_s, targets={"d0": {"claim": {}}}
    )
    asked = {"delay_ns": delay_ns, "queue": SERVED, "background": background, "block": block}
    asked["bare"] = bare or {}
    said = ask("cd /root/trial && python3 physics.py", json.dumps(asked).encode())
    lines = [json.loads(line) for line in said.splitlines()]
    assert lines[-1]["outcome"] == "done", lines[-1]
    return Measured(
        [one["sample"] for one in lines if "sample" in one], [one["bare"] for one in lines if "bare" in one]
    )


def bare_fio(number: int, launched: dict[str, Any]) -> list[str]:
    """The fio of a launch as somebody runs it by hand, before or after it.

    The same job: fio's defaults (its random map, its account of the disk, a process in place of a thread) cost 1.3 %
    of the IOPS on an emulated processor, and are nothing that a bench program adds.
    """
    problems: list[str] = []
    ask = read_ask(launched["fio"], "fio", problems)
    assert ask is not None, problems
    words = build_argv(ask, [FioTarget("d0", "DRIVE")], seed=number + 1, log_prefix=f"/root/trial/bare/{number:02d}")
    return [*words, f"--output=/root/trial/bare/{number:02d}.json"]


def test_the_bench_program_adds_nothing_to_what_fio_measures() -> None:
    """Alternating pairs of fio alone and fio run by storqual: medians within 1 %; overhead per launch below 0.5 s."""
    launches, bare = [], {}
    for pair in range(PAIRS):
        # every second pair has fio alone after the launch: before the next one
        due = [pair] if pair % 2 == 0 else []
        due = [pair - 1, *due] if pair % 2 == 0 and pair else due
        bare[pair] = [bare_fio(number, launch(number, 4, seconds=2.0)) for number in due]
        launches.append(launch(pair, 4, seconds=2.0))
    found = measure(launches, delay_ns=10_000_000, bare=bare)
    own = found.values("iops")
    alone = [result["jobs"][0]["read"]["iops"] for result in found.bare]
    assert len(own) == len(alone) == PAIRS
    overheads = [sample["primitives"]["overhead_ns"] / 1e9 for sample in found.samples]
    print(
        f"\nmedian IOPS by storqual / alone: {statistics.median(own):.2f} / {statistics.median(alone):.2f}; "
        f"overhead of a launch: median {statistics.median(overheads):.3f} s, largest {max(overheads):.3f} s"
    )
    assert statistics.median(own) / statistics.median(alone) == pytest.approx(1.0, abs=0.01)
    assert statistics.median(overheads) < 0.5


def test_iops_follow_depth_over_service_time_up_to_the_knee() -> None:
    depths = [1, 2, 4, 8, 16, 32, 64] * 3
    found = measure([launch(index, depth) for index, depth in enumerate(depths)])
    rates: defaultdict[float, list[float]] = defaultdict(list)
    for depth, iops in zip(depths, found.values("iops"), strict=True):
        rates[float(depth)].append(iops)
    print("\n" + "; ".join(f"{depth:g}: {statistics.median(launches):.1f}" for depth, launches in rates.items()))
    for depth, launches in rates.items():
        expected = min(depth, SERVED) * 1e9 / SERVICE_NS
        assert statistics.median(launches) == pytest.approx(expected, rel=TOLERANCE), depth
    curve = scaling(rates)
    assert curve.shape == "knee"
    assert curve.linear_to == SERVED
    assert curve.knee is not None
    assert curve.knee.value == pytest.approx(SERVED, rel=TOLERANCE)
    straight = scaling({depth: launches for depth, launches in rates.items() if depth <= SERVED})
    assert straight.shape == "straight"


def test_a_search_for_a_latency_cap_returns_the_analytic_load() -> None:
    """Beyond the knee the response time is load / plateau (Little), and the plateau is served at once / service time.

    The plateau that the search is held against is the drive's own in the same block: an emulator that is slow for a
    minute is no fault of the search.
    """
    caps_ms = (60, 100, 200)
    searches = [
        {"cap_ns": cap * 1_000_000, "share_ppm": 0, "by": "iodepth", "least": 1, "most": 1024} for cap in caps_ms
    ]
    searched = [launch(index, 1, load=search) for index, search in enumerate(searches)]
    flat = [launch(len(caps_ms) + more, 64) for more in range(3)]
    found = measure([*searched, *flat])
    found, plain = Measured(found.samples[: len(caps_ms)], []), Measured(found.samples[len(caps_ms) :], [])
    loads, rates = found.values("load_at_cap"), found.values("iops_at_cap")
    plateau = statistics.median(plain.values("iops"))
    print(
        "\n"
        + "; ".join(
            f"{cap} ms: load {load:.1f}, {rate:.1f} IOPS"
            for cap, load, rate in zip(caps_ms, loads, rates, strict=True)
        )
        + f"; plateau {plateau:.1f} IOPS"
    )
    for sample in found.samples:
        steps = read_steps(sample["primitives"]["load_steps"], 0)
        print("; ".join(f"{one.load}: {one.rate:.1f} IOPS, {one.response_ns / 1e6:.1f} ms" for one in steps))
    assert plateau == pytest.approx(PLATEAU, rel=TOLERANCE)
    for cap, load, rate in zip(caps_ms, loads, rates, strict=True):
        assert load == pytest.approx(plateau * cap / 1e3, rel=SEARCHED)
        assert rate == pytest.approx(plateau, rel=SEARCHED)


@pytest.mark.parametrize("background", [0.0, 0.15], ids=["idle", "background"])
def test_service_demand_of_a_load_of_known_cost(background: float) -> None:
    """Fio spins after each I/O: the demand is higher by what that took; what something else uses is subtracted.

    What it took is in the account that the kernel keeps of fio's own threads. It is 4 ms on an idle processor; with
    something else on the only one, fio spins for 4 ms of the clock on its wall and has less of the processor in them.
    """
    # without a ramp: with a think time fio 3.33 counts the I/Os of the ramp as well
    spin = {"ramp_s": 0.0, "options": {"thinktime": str(THINK_US), "thinktime_spin": str(SPIN_US)}}
    rest = {"ramp_s": 0.0, "options": {"thinktime": str(THINK_US)}}
    kinds = [spin, rest, rest, spin] * 3
    launches = [launch(index, 1, seconds=5.0, fio=kind) for index, kind in enumerate(kinds)]
    found = measure(launches, delay_ns=8_000_000, idle_s=10.0, background=background)
    told = []
    for metric in ("cpu_us_per_io", "fio_cpu_us_per_io"):
        costs = found.values(metric)
        spun, rested = (
            statistics.median([cost for cost, kind in zip(costs, kinds, strict=True) if kind is which])
            for which in (spin, rest)
        )
        print(f"\n{metric}: spinning {spun:.0f} us, not {rested:.0f}, difference {spun - rested:.0f} of {SPIN_US}")
        told.append(spun - rested)
    system, own = told
    assert system == pytest.approx(own, rel=TOLERANCE)
    assert SPIN_US * (1 - 2 * background) * (1 - TOLERANCE) < own < SPIN_US * 1.2
