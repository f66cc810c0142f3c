# SPDX-License-Identifier: Apache-2.0
"""Switches between two launches on the virtual bench, asked of the kernel itself, and put back by the restore."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from storqual.inputs import load_inventory
from tests.support.live_bench import INVENTORY, REPOSITORY, Bench, powered_bench

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(1800)]

SCHEDULERS = ["none", "mq-deadline", "none", "mq-deadline"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of our own with the core and the guest's script on it."""
    with powered_bench("switching", tmp_path_factory.mktemp("switching")) as found:
        found.send(["-r", str(REPOSITORY / "library" / "module_utils" / "storqual_core")], "/root/trial")
        found.send([str(REPOSITORY / "tests" / "virtual" / "guest" / "switch_scheduler.py")], "/root/trial")
        yield found


def claim_of(adapter: str) -> dict[str, Any]:
    """The claim on the first drive of an adapter."""
    drive = load_inventory([INVENTORY]).benches["vbench"].adapters[adapter].claimed[0]
    return {name: getattr(drive, name) for name in ("wwn", "serial", "vendor", "model", "size")}


@pytest.mark.parametrize("adapter", ["fusion", "vscsi"])
def test_arms_that_differ_in_the_scheduler_alone_keep_their_requests(bench: Bench, adapter: str) -> None:
    before = bench.look()
    # a bench runs a batch of one name once
    asked = {"block": f"s01-{adapter}", "claim": claim_of(adapter), "schedulers": SCHEDULERS, "nr_requests": 16}
    said = bench.ask(f"cd /root/trial && echo {shlex.quote(json.dumps(asked))} | python3 switch_scheduler.py")
    *seen, end = [json.loads(line) for line in said.splitlines()]
    assert end["outcome"] == "done", end
    assert seen == [{"scheduler": scheduler, "nr_requests": 16} for scheduler in SCHEDULERS]
    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    assert bench.look() == before
