# SPDX-License-Identifier: Apache-2.0
"""A publish, or a judge, that is killed at any moment: the same command comes to the same end afterwards."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign import publication
from storqual.campaign.pipeline import publish
from storqual.cli.playbook.record import record
from storqual.judge.verdict import judge_run
from storqual.run import append_check, read_run, write_bytes
from storqual.run.evidence import evidence_findings
from storqual.signoff.findings import published_findings
from tests.attacks.finished_run import GATE, SUITE, copy_of
from tests.support.make_lab import KERNEL, OTHER, lab_hosts
from tests.support.simulated_campaign import Bench, Rates, drive, plan

pytestmark = pytest.mark.slow

MOMENTS = 30


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was measured to its end and not published."""
    folder = tmp_path_factory.mktemp("measured")
    gate = folder / "gate.yml"
    gate.write_text(GATE, encoding="utf-8")
    path = plan(folder, hosts=lab_hosts({"sym": 2}), suite=SUITE, baseline=KERNEL, candidate=OTHER, gate=gate)
    drive(path, Bench(Rates(noise=0.003)), close=False)
    record(path, "restored", {"bench": "b1"})
    return path


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hand-written checks and the log, without a process for each of them."""

    def checks(run: Path, only: object) -> int:
        assert only is None
        for name in ("one", "two"):
            append_check(run, {"id": name, "outcome": "PASS", "source": "pytest"})
        return 2

    def log(run: Path) -> Path:
        outcome = json.loads((run / "verdict.json").read_bytes())["outcome"]
        for name in ("junit.xml", "pytest.html"):
            write_bytes(run / name, outcome.encode())
        return run / "pytest.html"

    monkeypatch.setattr(publication, "run_checks", checks)
    monkeypatch.setattr(publication, "publish_log", log)
    monkeypatch.setattr(publication, "publish_suites", lambda _run, only: 0 if only is None else 1)


def killed_at(step: int, work: Callable[[], object]) -> int:
    """Do `work` in a process that is gone at its `step`th moment, before or after it waits for the disk.

    How many moments there were.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        done, wait = [0], os.fsync

        def count() -> None:
            done[0] += 1
            if done[0] == step:
                os.write(writer, b"%d" % done[0])
                os._exit(9)

        def between(handle: int) -> None:
            count()
            wait(handle)
            count()

        os.fsync = between
        try:
            work()
        finally:
            os.write(writer, b"%d" % done[0])
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as said:
        return int(said.read())


def state(run: Path) -> dict[str, Any]:
    """What a run holds in the end; times apart."""
    opened = read_run(run)
    verdict = json.loads((run / "verdict.json").read_bytes())
    assert evidence_findings(opened) == []
    assert list(published_findings(opened)) == []
    checks = {one.id: one.outcome for one in opened.checks}
    return {
        "files": sorted(
            str(path.relative_to(run)) for path in run.rglob("*") if path.is_file() and path.name[0] != "."
        ),
        "samples": (run / "samples.jsonl").read_bytes(),
        "run.json": {**json.loads((run / "run.json").read_bytes()), "versions": 0},
        "verdict": {**verdict, "as_of": "", "inputs": {**verdict["inputs"], "events.jsonl": "", "checks.jsonl": ""}},
        "checks": checks,
    }


def own_copy(run: Path, folder: Path) -> Path:
    copy = copy_of(run, folder)
    for path in copy.glob("*.jsonl"):
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
    return copy


def test_a_publish_that_was_killed_is_done_again_to_the_same_end(measured: Path, tmp_path: Path) -> None:
    whole = own_copy(measured, tmp_path / "whole")
    publish(whole)
    expected = state(whole)
    assert expected["verdict"]["outcome"] == "PASS"
    steps = killed_at(0, lambda: publish(own_copy(measured, tmp_path / "counted")))
    assert steps >= MOMENTS
    for step in random.Random(16).sample(range(1, steps + 1), MOMENTS):
        run = own_copy(measured, tmp_path / f"at{step}")
        assert killed_at(step, lambda: publish(run)) == step  # noqa: B023 - called before the next turn
        publish(run)
        assert state(run) == expected, step


def test_a_judge_that_was_killed_is_done_again_to_the_same_end(measured: Path, tmp_path: Path) -> None:
    whole = own_copy(measured, tmp_path / "whole")
    publish(whole)
    stricter = tmp_path / "stricter.suite.yml"
    stricter.write_text(SUITE.replace("max: 1s", "max: 1us"), encoding="utf-8")
    steps = killed_at(0, lambda: judge_run(own_copy(whole, tmp_path / "counted"), suite=stricter))
    for step in range(1, steps + 1):
        run = own_copy(whole, tmp_path / f"at{step}")
        assert killed_at(step, lambda: judge_run(run, suite=stricter)) == step  # noqa: B023 - as above
        assert judge_run(run, suite=stricter)["outcome"] == "FAIL"
        assert len(list((run / "judgements").glob("*/verdict.json"))) == 1
        assert [event.kind for event in read_run(run).events][-1] == "judged"
        assert state(run)["verdict"]["outcome"] == "PASS"
