# SPDX-License-Identifier: Apache-2.0
"""Third-party programs on a live bench: SCSI conformance, one that hangs, one that restarts the bench under it.

The same kernel twice: what is known in the baseline is known in the candidate, and a hang does not end the campaign.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_bench import drops, on_bench, powered, qualify

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(5400)]

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
# what the `check` of blktests prints: one test that passes, one that was not run
CHECK = Path(__file__).with_suffix(".check").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One campaign of all programs in both arms."""
    folder = tmp_path_factory.mktemp("external")
    suite = folder / "outside.suite.yml"
    suite.write_text(SUITE, encoding="utf-8")
    with powered():
        on_bench(CHECK)
        done = qualify(folder / "runs", *drops("bare", "bare_too", suite=suite), "--adapters", "vscsi")
        assert done.run is not None, done.output
        assert done.code == 0, done.output
        yield done.run


def record(run: Path, program: str, arm: str) -> dict[str, Any]:
    return dict(json.loads((run / "turns" / f"{program}.vscsi.1.{arm}.json").read_text(encoding="utf-8")))


def told_by(found: dict[str, Any]) -> list[list[str]]:
    return [test[:2] for test in found["tests"]]


@pytest.mark.parametrize("arm", ["baseline", "candidate"])
def test_every_program_was_run_and_each_hang_is_a_result_with_the_bench_recovered(run: Path, arm: str) -> None:
    restart, hang = record(run, "restart", arm), record(run, "hang", arm)
    assert told_by(restart) == [["begins", "passed"], ["(program)", "hung"]]
    assert "the drive was stamped again" in restart["recovered"]
    assert told_by(hang) == [["first", "passed"], ["(program)", "hung"]]
    assert "answers: nothing had to be brought back" in hang["recovered"]
    block, scsi = record(run, "block", arm), record(run, "scsi", arm)
    assert told_by(block) == [["block/001", "passed"], ["block/002", "skipped"]]
    assert (scsi["outcome"], scsi["problems"]) == ("ended", [])
    assert len(scsi["tests"]) > 3


def test_a_hang_in_both_arms_is_a_criterion_that_is_known(run: Path) -> None:
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    found = {one["id"]: one for one in verdict["criteria"]}
    for program in ("hang", "restart"):
        assert found[f"external.{program}/(program)"]["outcome"] == "PASS"
        assert "2 hung" in found[f"external.{program}"]["reason"]
    assert verdict["sectors_written_outside_claims"] == 0
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Hung in both arms: 1" in page
