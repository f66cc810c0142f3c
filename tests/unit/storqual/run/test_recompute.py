# SPDX-License-Identifier: Apache-2.0
"""Samples held to their raw files: many of them in processes beside, and fio's result found the fast way."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual.run import read_run, recompute
from storqual.run.closing import close_run
from storqual.run.evidence import evidence_findings
from storqual.run.measurements import measurements
from storqual.run.recompute import MOST_TOLD, _alone
from storqual_core.measure.derive import SAMPLE_SCHEMA
from storqual_core.measure.fio_result import read_result
from tests.attacks.finished_run import SUITE
from tests.support.fake_fio import job, result
from tests.support.make_lab import KERNEL, OTHER, lab_hosts
from tests.support.simulated_campaign import Bench, Rates, drive, plan

DOUBLED = result(job()).replace('"error": 0', '"error": 0, "error": 0')


@pytest.mark.parametrize(
    ("output", "status"),
    [
        (result(job()), "ok"),
        ("fio: a note\n" + result(job()), "ok"),
        (result(job()) + result(job(ios=0)), "refused"),
        ("no result", "lost"),
        ('{"jobs": []}', "lost"),
        ("", "lost"),
    ],
)
def test_the_fast_way_finds_what_the_bench_finds(output: str, status: str) -> None:
    found = read_result(output, exit_status=0, asked_s=1.0, find=_alone)
    assert found == read_result(output, exit_status=0, asked_s=1.0)
    assert found.status == status


def test_what_only_the_bench_sees_is_read_as_it_does() -> None:
    """A key that stands twice makes the launch lost; the fast way would not see it, and is not the last word."""
    assert read_result(DOUBLED, exit_status=0, asked_s=1.0).status == "lost"
    assert read_result(DOUBLED, exit_status=0, asked_s=1.0, find=_alone).status == "ok"


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """A closed run of 16 launches."""
    path = plan(tmp_path, hosts=lab_hosts({"sym": 2}), suite=SUITE, baseline=KERNEL, candidate=OTHER)
    drive(path, Bench(Rates(noise=0.003)), close=False)
    close_run(path)
    return path


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
    found = evidence_findings(read_run(measured))
    assert f"samples.jsonl: and {1000 - MOST_TOLD} more findings of this kind" in found
