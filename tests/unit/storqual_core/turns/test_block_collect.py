# SPDX-License-Identifier: Apache-2.0
"""What the bench program spools is what the run directory takes in."""

import json
from pathlib import Path

import pytest

from storqual.run import read_samples
from storqual.run.collect import collect
from storqual_core.turns.batch_file import parse_batch
from storqual_core.turns.launch_runner import LaunchRunner
from tests.support.fake_fio import FileTargets, fake_fio, job, no_disks, result
from tests.support.make_run import make_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", finished=False)


def test_a_spool_is_collected_piece_by_piece_and_again(tmp_path: Path, run: Path) -> None:
    planned = json.loads(next((run / "blocks").glob("*.json")).read_text(encoding="utf-8"))
    name = "s99-b01"
    launches = [
        {
            **launch,
            "id": f"{name}/{launch['index']}",
            "drives": ["d0"],
            "request": {"fio": {"rw": "randread", "bs": 4096, "runtime_s": 1.0, "ramp_s": 0.0}},
        }
        for launch in planned["turns"][:3]
    ]
    targets = {"d0": {"claim": {}}, "d1": {"claim": {}}}
    planned.update(block=name, state_dir=str(tmp_path / "state"), targets=targets, idle_s=0.0, turns=launches)
    (run / "blocks" / f"{name}.json").write_text(json.dumps(planned), encoding="utf-8")
    (tmp_path / "out").write_text(result(job(drive="d0")), encoding="utf-8")
    block = parse_batch(json.dumps(planned))
    program = fake_fio(tmp_path, f"cat {tmp_path}/out")
    LaunchRunner(block, resolve=FileTargets(tmp_path), program=program, ledger=no_disks).run()
    text = block.spool.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    half = len(lines) // 2
    before = sum(1 for _ in read_samples(run))
    first = collect(run, name, "".join(lines[:half]))
    again = collect(run, name, text)
    assert first.new + again.new == 3
    assert (again.ended, again.of) == ("done", 3)
    assert sum(1 for _ in read_samples(run)) == before + 3
    assert collect(run, name, text).new == 0
    stored = [sample for sample in read_samples(run) if sample.block == name]
    assert all((run / raw.path).is_file() for sample in stored for raw in sample.raw)
    assert {sample.status for sample in stored} == {"ok"}
