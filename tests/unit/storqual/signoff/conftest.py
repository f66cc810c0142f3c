# SPDX-License-Identifier: Apache-2.0
"""A judged run and two people; each test gets its own copy of the run."""

import shutil
from pathlib import Path

import pytest

from storqual.judge.verdict import judge_run
from tests.support.make_run import make_run
from tests.support.signing import NOW, Person, make_person, sign, write_keys
from tests.support.synthetic_shape import POINTS

GATE = "name: release\nsignatures: [technician, release-manager]\n"
CHECK = {"id": "cabling", "outcome": "PASS", "reason": "every drive is at its port"}
FEW = {"noise": 0.003, "points": POINTS[:2], "adapters": ("sym",), "checks": [CHECK]}


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Person, Person]:
    folder = tmp_path_factory.mktemp("people")
    return make_person(folder, "Pat", "technician"), make_person(folder, "Rene", "release-manager", pem=True)


@pytest.fixture(scope="session")
def keys(people: tuple[Person, Person]) -> Path:
    return write_keys(people[0].key.parent, *people)


@pytest.fixture(scope="session")
def _judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = make_run(tmp_path_factory.mktemp("judged"), gate=GATE, **FEW)
    assert judge_run(run)["exit_code"] == 0
    return run


@pytest.fixture
def run(_judged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_judged, tmp_path / "runs" / _judged.name))


@pytest.fixture(scope="session")
def _signed(
    _judged: Path, people: tuple[Person, Person], keys: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    run = Path(shutil.copytree(_judged, tmp_path_factory.mktemp("signed") / _judged.name))
    sign(run, people[0], keys, ssh=True)
    assert sign(run, people[1], keys, now=NOW.replace(hour=19)).missing == ()
    return run


@pytest.fixture
def signed(_signed: Path, tmp_path: Path) -> Path:
    """The same run, signed by the technician with ssh-keygen and by the release manager with an envelope."""
    return Path(shutil.copytree(_signed, tmp_path / "signed" / _signed.name))
