# SPDX-License-Identifier: Apache-2.0
"""Samples held to their raw files: many of them in processes beside, and fio's result found the fast way."""

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

from storqual.base.files import OpenFolder
from storqual.run import read_run, recompute, sha256_of
from storqual.run.closing import close_run
from storqual.run.evidence import evidence_findings
from storqual.run.layout import dump_line
from storqual.run.measurements import measurements
from storqual.run.recompute import MOST_FINDINGS, RECORD_END, _alone, evidence_problem, is_made_again
from storqual_core.turns.derive import SAMPLE_SCHEMA, derive
from storqual_core.turns.fio_result import find_document
from tests.attacks.finished_run import SUITE
from tests.support.fake_fio import job, result
from tests.support.make_lab import KERNEL, OTHER, lab_hosts
from tests.support.simulated_campaign import Bench, Rates, drive, plan

DOUBLED = ('"error": 0', '"error": 0, "error": 0')


@pytest.mark.parametrize("more", ["", '"time": "10:00:00", ', '"a:b": {"c": ["d:e", {"\\n": ":"}]}, '])
def test_the_fast_way_finds_what_the_bench_finds(more: str) -> None:
    output = result(job()).replace('"error": 0', f'{more}"error": 0')
    assert _alone(output)[0] == find_document(output)[0]


@pytest.mark.parametrize(
    "output",
    [
        "fio: a note\n" + result(job()),
        result(job()) + result(job(ios=0)),
        result(job()).replace(*DOUBLED),
        # the colon that the dropped pair takes along, written as an escape
        result(job()).replace('"error": 0', '"error": 0, "error": 0, "note": "\\u003a"'),
        result(job()).replace('"error": 0', '"error": NaN'),
        "no result",
        '{"jobs": []}',
        "",
    ],
)
def test_the_fast_way_leaves_to_the_bench_s_reader_what_is_no_plain_result(output: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        _alone(output)


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """A closed run of 16 launches."""
    path = plan(tmp_path, hosts=lab_hosts({"sym": 2}), suite=SUITE, baseline=KERNEL, candidate=OTHER)
    drive(path, Bench(Rates(noise=0.003)), close=False)
    close_run(path)
    return path


def test_a_line_that_follows_from_its_raw_files_is_proven_the_fast_way(measured: Path) -> None:
    """Otherwise judging costs twice as much."""
    lines = (measured / "samples.jsonl").read_bytes().splitlines()
    raw, name = OpenFolder(measured, "raw"), read_run(measured).name
    assert [is_made_again(raw, name, line) for line in lines] == [True] * 16


def test_nothing_that_differs_is_proven_the_fast_way(measured: Path) -> None:
    name, folder = read_run(measured).name, OpenFolder(measured, "raw")
    line = (measured / "samples.jsonl").read_bytes().splitlines()[0]
    first = json.loads(line)["raw"][0]
    assert not is_made_again(folder, "another", line)
    assert not is_made_again(folder, name, line[:-1] + b" }")
    assert not is_made_again(folder, name, line.replace(b'"interrupts":', b'"interrupts":1'))
    assert not is_made_again(folder, name, line.replace(first["sha256"].encode(), b"0" * 64))
    assert not is_made_again(folder, name, line.replace(b'"path":"raw/', b'"path":"raw/../raw/'))
    assert not is_made_again(folder, name, b"{}")
    (measured / first["path"]).write_bytes(b"")
    assert not is_made_again(folder, name, line)
    (measured / first["path"]).unlink()
    assert not is_made_again(folder, name, line)


def replaced(run: Path, file: dict[str, str], *change: str) -> None:
    text = gzip.decompress((run / file["path"]).read_bytes()).decode()
    assert change[0] in text
    data = gzip.compress(text.replace(*change).encode())
    path = file["path"].replace(file["sha256"], sha256_of(data))
    (run / path).write_bytes(data)
    file.update(path=path, sha256=sha256_of(data))


def test_a_number_past_64_bits_in_a_record_is_read_the_slow_way_as_it_stands_there(measured: Path) -> None:
    name = read_run(measured).name
    sample = json.loads((measured / "samples.jsonl").read_bytes().splitlines()[0])
    record = next(file for file in sample["raw"] if file["path"].endswith(RECORD_END))
    replaced(measured, record, f'"seed":{sample["seed"]}', f'"seed":{1 << 64}')
    for seed in (1 << 64, float(1 << 64)):
        line = dump_line({**sample, "seed": seed}).rstrip()
        assert not is_made_again(OpenFolder(measured, "raw"), name, line)
    assert not evidence_problem(measured, name, {**sample, "seed": 1 << 64})


def with_log(run: Path, log: str) -> dict[str, Any]:
    """The first sample, its record with that log of I/Os per second."""
    sample: dict[str, Any] = json.loads((run / "samples.jsonl").read_bytes().splitlines()[0])
    record = next(file for file in sample["raw"] if file["path"].endswith(RECORD_END))
    logs = json.loads(gzip.decompress((run / record["path"]).read_bytes()))["iops_logs"]
    now, then = (f'"iops_logs":{json.dumps(entries, separators=(",", ":"))}' for entries in (logs, [log] * len(logs)))
    replaced(run, record, now, then)
    return sample


def test_a_number_that_no_launch_has_is_told_and_raises_nothing(measured: Path) -> None:
    name = read_run(measured).name
    sample = with_log(measured, f"1000, {'9' * 400}, 0, 4096\n")
    assert not is_made_again(OpenFolder(measured, "raw"), name, dump_line(sample).rstrip())
    problem = evidence_problem(measured, name, sample)
    assert "cannot be derived from its raw files (OverflowError" in problem


def test_no_number_at_all_does_not_stand_for_an_infinite_one(measured: Path) -> None:
    """Text of JSON has no infinity, and some writers make null of it."""
    name = read_run(measured).name
    sample = with_log(measured, f"1, {'9' * 308}, 0, 4096\n" * 2)
    texts = {file["path"]: gzip.decompress((measured / file["path"]).read_bytes()).decode() for file in sample["raw"]}
    record = next(json.loads(text) for path, text in texts.items() if path.endswith(RECORD_END))
    made = {**derive(record, texts), "raw": sample["raw"]}
    assert math.isinf(made["series"]["iops"][0])
    made["series"]["iops"] = [None if math.isinf(rate) else rate for rate in made["series"]["iops"]]
    assert not is_made_again(OpenFolder(measured, "raw"), name, dump_line(made).rstrip())
    assert "found series" in evidence_problem(measured, name, made)


def test_a_key_that_stands_twice_in_the_raw_output_is_found(measured: Path) -> None:
    """Which value is meant is not known: the bench's reader says lost, so the sample may not say ok."""
    run = read_run(measured)
    line = (measured / "samples.jsonl").read_bytes().splitlines()[0]
    sample = json.loads(line)
    (output,) = (file for file in sample["raw"] if file["path"].endswith(".json.gz"))
    (record,) = (file for file in sample["raw"] if file["path"].endswith(RECORD_END))
    before = output["path"]
    replaced(measured, output, *DOUBLED)
    replaced(measured, record, before, output["path"])
    assert not is_made_again(OpenFolder(measured, "raw"), run.name, dump_line(sample).rstrip())
    findings = evidence_problem(measured, run.name, sample)
    assert 'its raw files say "lost"' in findings


def test_processes_beside_find_what_one_finds(measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recompute, "_FEW", 3)
    monkeypatch.setattr(recompute, "_CHUNK", 2)
    assert evidence_findings(read_run(measured)) == []
    samples = measured / "samples.jsonl"
    samples.write_bytes(samples.read_bytes().replace(b'"interrupts":', b'"interrupts":1'))
    check = measurements(read_run(measured), {}, evidence=True).evidence
    assert check is not None
    beside = check.findings
    monkeypatch.setattr(recompute, "_FEW", 1000)
    alone = measurements(read_run(measured), {}, evidence=True).evidence
    assert alone is not None
    assert beside == alone.findings
    assert len(beside) == 16


def test_a_thousand_findings_are_counted_and_not_all_told(measured: Path) -> None:
    samples = measured / "samples.jsonl"
    line = samples.read_bytes().splitlines(keepends=True)[0].replace(SAMPLE_SCHEMA.encode(), b"storqual.sample/9")
    lines = [line.replace(b'/0"', b'/%d"' % number, 1) for number in range(100, 1100)]
    samples.write_bytes(b"".join(lines))
    findings = evidence_findings(read_run(measured))
    assert f"samples.jsonl: and {1000 - MOST_FINDINGS} more findings of this kind" in findings
