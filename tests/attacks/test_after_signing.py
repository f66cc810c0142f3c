# SPDX-License-Identifier: Apache-2.0
"""Somebody who can write to a run tampers with it after it was signed: nothing of the written list goes unseen."""

import gzip
import random
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from storqual.judge.verdict import judge_run
from storqual.report import build_report
from storqual.signoff.verify import Verification, verify_run
from tests.attacks.after import KINDS, Attack
from tests.support.make_run import make_run
from tests.support.signing import NOW, Person, make_person, sign, write_keys
from tests.support.synthetic_shape import POINTS

pytestmark = pytest.mark.slow

EACH = 8
"""Drawings of each kind."""
GATE = "name: release\nsignatures: [technician, release-manager]\n"
CHECK = {"id": "cabling", "outcome": "PASS", "reason": "every drive is at its port"}
POLICY = "require:\n  - roles: [technician, release-manager]\n"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Person, Person]:
    folder = tmp_path_factory.mktemp("people")
    return make_person(folder, "Pat", "technician"), make_person(folder, "Rene", "release-manager")


@pytest.fixture(scope="module")
def keys(people: tuple[Person, Person]) -> Path:
    path = write_keys(people[0].key.parent, *people)
    path.write_text(path.read_text(encoding="utf-8") + POLICY, encoding="utf-8")
    return path


def signed_run(folder: Path, people: tuple[Person, Person], keys: Path, seed: int) -> Path:
    """A run with a report, a check, a packed file and an empty folder, signed in both ways."""
    shape = {"noise": 0.003, "points": POINTS[:2], "adapters": ("sym",), "checks": [CHECK], "seed": seed}
    run = make_run(folder, gate=GATE, run=f"20261121T100000Z-synthetic-000{seed}", **shape)
    (run / "inputs" / "none").mkdir(parents=True)
    (run / "inputs" / "kept.json.gz").write_bytes(gzip.compress(b'{"fio": 1}' * 50, mtime=0))
    assert judge_run(run)["exit_code"] == 0
    build_report(run)
    sign(run, people[0], keys, ssh=True)
    sign(run, people[1], keys, now=NOW.replace(hour=19))
    return run


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory, people: tuple[Person, Person], keys: Path) -> Attack:
    folder = tmp_path_factory.mktemp("signed")
    stranger = make_person(folder, "Sam", "release-manager")
    runs = [signed_run(folder / str(seed), people, keys, seed) for seed in (1, 2)]
    return Attack(runs[0], runs[1], stranger)


def verified(run: Path, keys: Path) -> Verification:
    return verify_run(run, keys, as_of=NOW + timedelta(hours=2), allow_virtual=True)


def test_the_runs_are_released(attacked: Attack, keys: Path) -> None:
    for run in (attacked.run, attacked.other):
        found = verified(run, keys)
        assert (found.problems, found.exit_code, found.annex) == ((), 0, ())


def test_there_are_five_hundred_of_them() -> None:
    assert len(KINDS) * EACH >= 500


@pytest.mark.parametrize("name", KINDS)
def test_it_is_seen(attacked: Attack, keys: Path, tmp_path: Path, name: str) -> None:
    """Each drawing: the run is not valid, or what was added stands among what came after signing."""
    unseen = []
    for number in range(EACH):
        run = tmp_path / str(number) / attacked.run.name
        shutil.copytree(attacked.run, run)
        KINDS[name](Attack(run, attacked.other, attacked.stranger), random.Random(f"{name}/{number}"))
        found = verified(run, keys)
        if found.exit_code == 0 and not found.annex:
            unseen.append(number)
    assert unseen == []
