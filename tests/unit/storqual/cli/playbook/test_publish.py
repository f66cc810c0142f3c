# SPDX-License-Identifier: Apache-2.0
"""Tests of what publishing reads, and that it says what each command says by itself."""

import json
import os
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest

from storqual.campaign.pipeline import publish
from storqual.judge.verdict import verdict_of
from storqual.report import build_report
from storqual.report.export import write_ocp
from tests.support.make_run import make_run

pytestmark = pytest.mark.slow

_COUNTER = Path(__file__).with_name("test_publish.counter").read_text(encoding="utf-8")
"""Loaded by every Python of a publication at its start: notes the samples that any of them parses."""


def test_publishing_parses_each_sample_once(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", finished=False)
    hook, counted = tmp_path / "hook", tmp_path / "counted"
    hook.mkdir()
    counted.mkdir()
    (hook / "sitecustomize.py").write_text(_COUNTER, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{hook}:{os.environ.get('PYTHONPATH', '')}", "COUNTED": str(counted)}
    argv = [sys.executable, "-m", "storqual", "publish", str(run), "--json"]
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert (run / "report.html").is_file(), ended.stderr
    names = [name for file in counted.iterdir() for name in file.read_text(encoding="utf-8").splitlines()]
    samples = (run / "samples.jsonl").read_bytes().count(b"\n")
    assert Counter(Counter(names).values()) == {1: samples}


def test_what_is_published_is_what_each_command_says_by_itself(tmp_path: Path) -> None:
    """Reading samples once for everything changes no number of any file."""
    run = make_run(tmp_path, finished=False, noise=0.003)
    publish(run)
    files = {name: (run / name).read_bytes() for name in ("report.html", "ocp.jsonl")}
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    again = verdict_of(run, as_of=datetime.fromisoformat(verdict["as_of"]))
    assert again == {**verdict, "inputs": again["inputs"]}
    build_report(run)
    write_ocp(run)
    assert {name: (run / name).read_bytes() for name in files} == files
