# SPDX-License-Identifier: Apache-2.0
"""Tests that a report is audited before it is published: one that contradicts its data is put aside."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from storqual import report
from storqual.campaign.pipeline import publish
from storqual.judge.verdict import verdict_of
from storqual.report import build_report
from storqual.report.export import write_ocp
from storqual_core.kit.errors import StorqualError
from tests.support.make_run import make_run

pytestmark = pytest.mark.slow


def test_a_report_that_agrees_with_its_data_is_published(tmp_path: Path) -> None:
    done = publish(make_run(tmp_path, finished=False))
    claims = json.loads((done.run / "audit.json").read_text())["claims"]
    assert done.report.is_file()
    assert {claim["status"] for claim in claims} <= {"consistent", "rounding"}
    assert len(claims) > 50


def test_a_report_that_contradicts_its_data_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def falsified(run: Path, *words: Any) -> Path:
        page = build_report(run, *words)
        text = page.read_text(encoding="utf-8")
        changed = re.sub(r"Exit code \d", "Exit code 9", text)
        assert changed != text
        page.write_text(changed, encoding="utf-8")
        return page

    monkeypatch.setattr(report, "build_report", falsified)
    run = make_run(tmp_path, finished=False, noise=0.001)
    with pytest.raises(StorqualError, match=r"not published: 1 statements .*\n.*page.exit_code"):
        publish(run)
    assert (run / "report.refused.html").is_file()
    assert not (run / "report.html").exists()
    assert (run / "verdict.json").is_file()


_COUNTER = """
import atexit, json, os
import orjson, pydantic_core

found, standard, fast = [], json.decoder.JSONDecoder.raw_decode, pydantic_core.from_json
faster = orjson.loads


def by_standard(self, text, idx=0):
    value, end = standard(self, text, idx)
    found.append(value)
    return value, end


def by_pydantic(data, **options):
    found.append(fast(data, **options))
    return found[-1]


def by_orjson(data):
    found.append(faster(data))
    return found[-1]


def told():
    names = [one["id"] for one in found if isinstance(one, dict) and "primitives" in one and "id" in one]
    if names:
        with open(os.path.join(os.environ["COUNTED"], str(os.getpid())), "w") as file:
            file.write("".join(name + chr(10) for name in names))


json.decoder.JSONDecoder.raw_decode, pydantic_core.from_json = by_standard, by_pydantic
orjson.loads = by_orjson
atexit.register(told)
"""
"""Loaded by every Python of a publication at its start: notes the samples that any of them parses."""


def test_publishing_parses_each_sample_once_for_everything_and_once_for_the_audit(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", finished=False)
    hook, counted = tmp_path / "hook", tmp_path / "counted"
    hook.mkdir()
    counted.mkdir()
    (hook / "sitecustomize.py").write_text(_COUNTER, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{hook}:{os.environ.get('PYTHONPATH', '')}", "COUNTED": str(counted)}
    argv = [sys.executable, "-m", "storqual", "publish", str(run), "--json"]
    told = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert (run / "report.html").is_file(), told.stderr
    names = [name for file in counted.iterdir() for name in file.read_text(encoding="utf-8").splitlines()]
    samples = (run / "samples.jsonl").read_bytes().count(b"\n")
    assert Counter(Counter(names).values()) == {2: samples}


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
