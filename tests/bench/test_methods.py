# SPDX-License-Identifier: Apache-2.0
"""Physics on the virtual bench: what the methods find where the truth is known beforehand."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from storqual.study.reading import cells_of_runs
from storqual.study.scale import growths
from tests.live_bench import BIN, REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(3600)]

INVENTORY = REPOSITORY / "inventories" / "virtual_methods"

CHANNELS = """\
name: channels
defaults: {engine: libaio, direct: true, numjobs: 1, iodepth: 8}
workloads:
  reads: {rw: read, bs: 64k, factors: {ports: [1, 2], drives_per_port: [2]}}
criteria:
  - {id: errors, metric: io_errors_per_tb, against: absolute, max: 0}
studies: [scaling, ceiling]
profiles:
  quick: {cells: all, adapters: 1, runtime: 2s, ramp: 500ms, launches: 4}
"""


def ran(folder: Path, program: str, *words: object) -> tuple[int, str]:
    """Exit code and output of a command, by a file: an SSH master that stays behind would hold a pipe."""
    log = folder / "command.log"
    with log.open("wb") as stream:
        ended = subprocess.run(
            [str(BIN / program), *map(str, words)],
            cwd=REPOSITORY,
            env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            timeout=1800,
            check=False,
        )
    return ended.returncode, log.read_text(encoding="utf-8", errors="replace")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for runs, with the bench of the methods powered on."""
    folder = tmp_path_factory.mktemp("runs")
    code, output = ran(folder, "ansible-playbook", "-i", INVENTORY, REPOSITORY / "playbooks" / "bench_up.yml")
    assert code == 0, output
    try:
        yield folder
    finally:
        code, output = ran(folder, "ansible-playbook", "-i", INVENTORY, REPOSITORY / "playbooks" / "bench_down.yml")
    assert code == 0, output


def test_two_channels_scale_to_twice_one(runs: Path, tmp_path: Path) -> None:
    """Throttled drives behind a card of two channels: the second channel gives as much as the first."""
    suite = tmp_path / "channels.suite.yml"
    suite.write_text(CHANNELS, encoding="utf-8")
    words = ("-i", INVENTORY, "--candidate", "stable", "--suite", suite, "--adapters", "sym", "--runs", runs)
    code, output = ran(runs, "storqual", "qualify", *words)
    assert code == 0, output
    (run,) = [made.parent for made in runs.glob("*/run.json")]
    (growth,) = [one for one in growths(cells_of_runs([run])) if one.line.along == "ports"]
    second = growth.found.levels[-1]
    assert second.at == 2
    assert second.efficiency.value == pytest.approx(1.0, abs=0.05)
    assert growth.found.linear_to == 2
