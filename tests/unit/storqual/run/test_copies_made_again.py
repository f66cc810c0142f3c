# SPDX-License-Identifier: Apache-2.0
"""Samples of dd and sg_dd in a run directory come out of what these programs printed, and out of nothing else."""

from __future__ import annotations

import base64
import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from pydantic_core import to_json

from storqual.base.files import OpenFolder
from storqual.run.recompute import evidence_problem, is_made_again
from storqual_core.turns.targets import HeldTargets
from tests.support.fake_fio import launch
from tests.unit.storqual_core.turns.test_batch_run import Bench
from tests.unit.storqual_core.turns.test_copy_program import PROGRAMS, sparse

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_sample_of_a_copy_program_is_made_again_and_a_changed_one_is_found(program: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    block = bench.block(launch(0, fio={"rw": "read", "bs": 512, "ioengine": program, "iodepth": 1}))
    held = HeldTargets({"d0": sparse(tmp_path / "d0")})
    assert bench.run(block, resolve=lambda _: nullcontext(held)).outcome == "done"
    lines = map(json.loads, block.spool.read_text(encoding="utf-8").splitlines())
    (line,) = (one for one in lines if one["kind"] == "sample")
    sample = line["sample"]
    (tmp_path / "raw").mkdir()
    for path, data in line["artifacts"].items():
        (tmp_path / path).write_bytes(base64.b64decode(data))
    assert sample["status"] == "ok"
    assert is_made_again(OpenFolder(tmp_path, "raw"), block.run, to_json(sample))
    assert evidence_problem(tmp_path, block.run, sample) == ""
    sample["primitives"]["read_ios"] += 1
    assert not is_made_again(OpenFolder(tmp_path, "raw"), block.run, to_json(sample))
    assert "read_ios" in evidence_problem(tmp_path, block.run, sample)
