# SPDX-License-Identifier: Apache-2.0
"""The sweep on the virtual bench, against what the kernel's own tracepoint says went to the host.

A coverage table that the load writes itself would be right whatever was sent. So the lengths, addresses, commands and
FUA bits are looked for where the kernel hands them to the driver.
"""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from storqual.bench.program import build_program
from storqual.run import read_run
from storqual.run.turns import turns_of
from tests.support.live_bench import INVENTORY, Bench, bench_here, powered_bench
from tests.support.planted_driver import SUITE
from tests.support.turn_records import REQUEST, drive, plan_campaign
from tests.support.wire import Dispatched, recorded, unseen

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(3600)]

WRITES = (0x2A, 0x8A)
SELDOM = {
    "write6": 0x0A,
    "write12": 0xAA,
    "write_verify10": 0x2E,
    "write_verify16": 0x8E,
    "write_same10": 0x41,
    "write_same16": 0x93,
    "unmap": 0x42,
    "read6": 0x08,
    "read12": 0xA8,
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with powered_bench("wire", tmp_path_factory.mktemp("wire")) as found:
        yield found


def swept(
    folder: Path,
    state: Path,
    ask: Callable[[str], str],
    adapter: str,
    inventory: Path = INVENTORY,
    host: str = "vbench",
) -> tuple[dict[str, Any], list[list[Any]], list[Dispatched]]:
    """The record of a sweep, its I/Os, and what went to the hosts meanwhile."""
    suite = folder / "wire.suite.yml"
    text = SUITE.read_text(encoding="utf-8")
    suite.write_text(f"{text}  wire: {{faults: [integrity], time: 2s, sessions: 2}}\n", encoding="utf-8")
    words: dict[str, Any] = {"suite": str(suite), "profile": "wire", "adapters": (adapter,)}
    run = plan_campaign(replace(REQUEST, inventories=(inventory,), baseline="", **words), folder / "runs")
    program = build_program()
    here = bench_here(state, host, program)
    put = partial(here.connection.put, program.read_bytes(), here.program)
    commands = recorded(ask, lambda: drive(run, here, provision=put) and None)
    (record,) = turns_of(read_run(run)).records
    ios: list[list[Any]] = []
    for raw in record["raw"]:
        with gzip.open(run / raw["path"] if isinstance(raw, dict) else run / raw, "rt") as lines:
            ios += [io for line in map(json.loads, lines) if line["kind"] == "io" for io in line["ios"]]
    return dict(record), ios, commands


def check(record: dict[str, Any], ios: list[list[Any]], commands: list[Dispatched], hctl: str, block: int) -> None:
    """What was acknowledged went out, as it was told."""
    assert record["outcome"] == "passed", record["reasons"]
    own = [one for one in commands if one.hctl == hctl]
    longest = max(one.blocks for one in own if one.code in WRITES)
    # a write that is no longer than a request is one command, whichever way it took
    told = {(io[2] // block, io[3] // block) for io in ios if io[0] in "wd" and not io[6] and io[2] >> 48 == 0}
    short = [write for write in told if write[1] <= min(longest, 256)]
    assert len(short) > 500
    missing = unseen(short, own, (*WRITES, *SELDOM.values()))
    # a mapping writes whole pages, and the cache may join neighbours: those are few
    assert len(missing) < 0.25 * len(short), missing[:20]
    assert {127, 128, 129, 255, 256, 257} <= {one.blocks for one in own if one.code in WRITES}
    assert any(one.segments > 8 for one in own if one.code in WRITES)
    for name, code in SELDOM.items():
        counts = record["coverage"]["levels"]["command"].get(name, [0, 0, 0])
        assert bool(counts[1]) == any(one.code == code for one in own), name


def test_what_a_sweep_says_it_sent_went_to_the_host(bench: Bench, tmp_path: Path) -> None:
    record, ios, commands = swept(tmp_path, bench.state, bench.ask, "vscsi")
    disk = bench.ask(f"basename $(dirname $(dirname $(grep -l {record['drive'][2:]} /sys/block/sd*/device/wwid)))")
    hctl = bench.ask(f"basename $(readlink /sys/block/{disk.strip()}/device)").strip()
    check(record, ios, commands, hctl, 1)
    fua = bench.ask(f"cat /sys/block/{disk.strip()}/queue/fua").strip() == "1"
    through = [io for io in ios if io[0] == "d" and not io[6] and io[2] >> 48 == 0]
    own = [one for one in commands if one.hctl == hctl and one.fua]
    assert bool(own) == fua
    assert not fua or len(own) >= len(through) * 0.9
