# SPDX-License-Identifier: Apache-2.0
"""Commands that only read runs leave nothing in one: no index, no page, no file that was there and is gone again."""

from pathlib import Path

import pytest

from storqual.cli import main
from storqual.judge.verdict import judge_run
from storqual.report import build_report
from storqual.run.closing import close_run
from storqual.run.evidence import record_published
from storqual.signoff.manifest import look
from tests.support.make_run import make_run
from tests.support.signing import Person, make_person, sign, write_keys
from tests.support.synthetic_shape import POINTS

pytestmark = pytest.mark.slow

SHAPE = {"noise": 0.003, "points": POINTS[:1]}
READERS = {
    "history of all": "history {runs} --json",
    "a test plan": "report {run} --test-plan {other}/plan.html",
    "trend": "report {runs} --trend {other}/trend.html",
    "compare": "compare {run}",
    "audit": "audit {run}",
    "events": "events {run}",
    "export": "export {run} --format criteria-csv -o {other}/criteria.csv",
    "verify": "verify {run} --keys {keys}",
    "judge by the same rules": "judge {run}",
    "report of a signed run": "report {run} --summary {other}/summary.html",
}
INTO_THE_RUN = {
    "history": "history {run}",
    "history below": "history {run}/raw",
    "extract": "history {runs} --extract {run}/noise.json",
    "trend": "report {runs} --trend {run}/trend.html",
    "summary": "report {run} --summary {run}/annex/summary.html",
    "export": "export {run} --format criteria-csv -o {run}/raw/criteria.csv",
    "waive": "waive {run} -o {run}/waivers.yml",
}


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    return make_person(tmp_path_factory.mktemp("person"), "Rene", "release-manager")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, person: Person) -> Path:
    run = make_run(tmp_path_factory.mktemp("runs"), **SHAPE)
    close_run(run)
    judge_run(run)
    build_report(run)
    record_published(run)
    sign(run, person, write_keys(person.key.parent, person))
    return run


def called(words: str, run: Path, other: Path, person: Person) -> object:
    places = {"run": run, "runs": run.parent, "other": other, "keys": person.key.with_name("keys.yml")}
    with pytest.raises(SystemExit) as ended:
        main(words.format(**places).split())
    return ended.value.code


@pytest.mark.parametrize("name", READERS)
def test_a_reader_writes_nothing_into_a_run(name: str, run: Path, person: Person, tmp_path: Path) -> None:
    before = look(run)
    assert called(READERS[name], run, tmp_path, person) in (0, 1, 2)
    assert look(run) == before


@pytest.mark.parametrize("name", INTO_THE_RUN)
def test_no_answer_is_written_into_a_run(name: str, run: Path, person: Person, tmp_path: Path) -> None:
    before = look(run)
    assert called(INTO_THE_RUN[name], run, tmp_path, person) == 3
    assert look(run) == before
