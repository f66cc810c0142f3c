# SPDX-License-Identifier: Apache-2.0
"""A sample made again from its evidence: the same one, and another one for other evidence."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from storqual_core.turns.batch_file import Batch
from storqual_core.turns.derive import RECORD_SCHEMA, derive
from tests.support.fake_fio import launch
from tests.unit.storqual_core.turns.test_batch_run import Bench
from tests.unit.storqual_core.turns.test_latency_cap import LOAD, sample_of

pytestmark = pytest.mark.slow


def measured(batch: Batch) -> list[tuple[dict[str, Any], dict[str, Any], dict[str, str]]]:
    """Each spooled sample, its record, and the texts of its evidence by name."""
    return [
        (line["sample"], record, texts)
        for line in map(json.loads, batch.spool.read_text(encoding="utf-8").splitlines())
        if line["kind"] == "sample"
        for record, texts in [read_evidence(line["artifacts"])]
    ]


def read_evidence(artifacts: dict[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The record among the artifacts of a spooled sample, and all texts by name."""
    texts = {name: gzip.decompress(base64.b64decode(data)).decode() for name, data in artifacts.items()}
    (record,) = (json.loads(text) for name, text in texts.items() if name.endswith(".launch.gz"))
    return record, texts


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    """A block that was run with an idle window: a plain launch and one of an open loop."""
    bench = Bench(tmp_path)
    made = bench.block(
        launch(0), launch(1, fio={"options": {"rate_iops": "500", "rate_process": "poisson"}}), idle_s=0.05
    )
    assert bench.run(made).outcome == "done"
    return made


def test_a_sample_is_what_its_evidence_says(batch: Batch) -> None:
    for sample, record, texts in measured(batch):
        assert record["schema"] == RECORD_SCHEMA
        made = json.loads(json.dumps(derive(record, texts)))
        assert made == {name: value for name, value in sample.items() if name != "raw"}
        assert {"idle_wall_ns", "overhead_ns", "fio_wall_ns"} <= made["primitives"].keys()


def test_a_search_for_a_cap_is_derived_with_its_whole_curve(tmp_path: Path) -> None:
    sample = sample_of(tmp_path, LOAD)
    (block,) = (tmp_path / "state" / "spool" / "r1").glob("*.jsonl")
    (line,) = (one for one in map(json.loads, block.read_text().splitlines()) if one["kind"] == "sample")
    record, texts = read_evidence(line["artifacts"])
    made = json.loads(json.dumps(derive(record, texts)))
    assert made["primitives"]["load_steps"] == sample["primitives"]["load_steps"]
    assert made == {name: value for name, value in sample.items() if name != "raw"}


@pytest.mark.parametrize("change", ["output", "exit_status", "wall_ns", "asked_s", "in_time", "counters", "gone"])
def test_other_evidence_makes_another_sample(batch: Batch, change: str) -> None:
    sample, record, texts = measured(batch)[0]
    own = {name: value for name, value in sample.items() if name != "raw"}
    if change == "output":
        name = record["runs"][0]["output"]
        texts[name] = texts[name].replace('"total_ios": 1000', '"total_ios": 1001')
    elif change == "counters":
        counters = {"time_ns": 0, "cpu_count": 1}
        record["before"], record["after"] = counters, {**counters, "time_ns": 7}
    elif change == "gone":
        record["gone"] = True
    else:
        record["runs"][0][change] = {"in_time": False, "asked_s": 90.0}.get(change, 3)
    assert json.loads(json.dumps(derive(record, texts))) != own


def test_a_record_of_another_schema_is_refused(batch: Batch) -> None:
    _, record, texts = measured(batch)[0]
    with pytest.raises(ValueError, match=r"found schema 'storqual\.launch/1'"):
        derive({**record, "schema": "storqual.launch/1"}, texts)


@pytest.mark.parametrize("gone", ["runs", "launch", "before", "iops_logs", "schema"])
def test_a_record_that_is_not_whole_is_refused(batch: Batch, gone: str) -> None:
    _, record, texts = measured(batch)[0]
    del record[gone]
    with pytest.raises((KeyError, TypeError, ValueError)):
        derive(record, texts)
    with pytest.raises((KeyError, TypeError, ValueError)):
        derive({**record, "schema": "storqual.launch/9"}, texts)
