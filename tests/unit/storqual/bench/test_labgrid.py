# SPDX-License-Identifier: Apache-2.0
"""The place of a bench in labgrid is acquired and released with its reservation, by labgrid's own programs."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storqual.bench.labgrid import PlaceBook, acquired_for, release_place
from storqual.bench.lease import RefusedError, Waiting, new_owner, reserve
from storqual.inputs.labgrid import LabgridPlace
from storqual_core.kit.errors import EXIT_BENCH_LOST, StorqualError
from storqual_core.kit.lease import LeaseBook
from tests.support.power_services import FileSwitch, LabgridLab, labgrid_lab, python_environment

ME = getpass.getuser()
OWNER = new_owner("campaign r1", 60.0, run="r1")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """labgrid is no dependency of this project."""
    return python_environment(tmp_path_factory.mktemp("labgrid"), "labgrid==26.0.1")


@pytest.fixture(scope="module")
def lab(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabgridLab]:
    with labgrid_lab(FileSwitch.made(tmp_path_factory.mktemp("lab")), programs) as running:
        yield running


@pytest.fixture(autouse=True)
def found(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """labgrid-client is where storqual looks for it."""
    if "lab" in request.fixturenames:
        monkeypatch.setenv("PATH", str(request.getfixturevalue("programs")), prepend=":")


def book_of(lab: LabgridLab, folder: Path, run: str = "r1") -> PlaceBook:
    """The place under a reservation of its own in `folder`."""
    lease = LeaseBook(folder).reserve(new_owner(f"campaign {run}", 60.0, run=run), take=True)
    return PlaceBook(LabgridPlace(place="bench1", coordinator=lab.coordinator), folder, lease.number)


def acquire(book: PlaceBook, *, wait_s: float = 0.0, say: object = None, take: bool = False) -> None:
    waiting = Waiting(wait_s, say or (lambda _line: None), look=book.look, look_s=0.1)
    reserve(book, "bench01", OWNER, waiting, take=take)


def token_of(lab: LabgridLab, user: str) -> str:
    """The first reservation of a user."""
    part = lab.client("reservations").partition(f"/{user}\n")[2]
    return part.split()[1]


@pytest.mark.long
def test_a_place_is_acquired_for_a_reservation_and_released_for_no_other(lab: LabgridLab, tmp_path: Path) -> None:
    killed, book = book_of(lab, tmp_path / "queue"), None
    acquire(killed)
    assert lab.holder == ME
    # its campaign was killed: the next one has the place, and what the former one releases late is not its own
    book = book_of(lab, tmp_path / "queue", "r2")
    acquire(book)
    release_place(tmp_path / "queue", killed.number)
    assert lab.holder == ME
    release_place(tmp_path / "queue", book.number)
    assert (lab.holder, acquired_for(tmp_path / "queue")) == ("", {})


@pytest.mark.long
def test_a_place_that_its_user_has_acquired_himself_is_used_and_not_released(lab: LabgridLab, tmp_path: Path) -> None:
    lab.client("acquire")
    book = book_of(lab, tmp_path / "queue")
    acquire(book)
    book.release()
    assert lab.holder == ME
    lab.client("release")


@pytest.mark.long
def test_a_place_that_somebody_else_holds_is_refused_or_waited_for_in_order(lab: LabgridLab, tmp_path: Path) -> None:
    lab.client("acquire", user="ann")
    book, said = book_of(lab, tmp_path / "queue"), []
    with pytest.raises(RefusedError, match="ann") as refused:
        acquire(book)
    assert refused.value.exit_code == 4

    def hear(line: str) -> None:
        said.append(line)
        lab.client("reserve", "name=bench1", "--prio", "1", user="bob")
        lab.client("release", user="ann")
        # before us: it was kept for him
        lab.client("acquire", user="bob")
        with pytest.raises(RefusedError, match="bob"):
            acquire(book)
        lab.client("release", user="bob")
        with pytest.raises(RefusedError, match="bob"):
            acquire(book)
        lab.client("cancel-reservation", token_of(lab, "bob"))

    acquire(book, wait_s=120.0, say=hear)
    assert ["ann" in line for line in said] == [True]
    assert lab.holder == ME
    book.release()
    assert lab.holder == ""
    # nothing of ours is left in its queue
    assert lab.client("reservations") == ""


@pytest.mark.long
def test_a_person_takes_a_place_from_whoever_holds_it(lab: LabgridLab, tmp_path: Path) -> None:
    lab.client("acquire", user="ann")
    book = book_of(lab, tmp_path / "queue")
    acquire(book, take=True)
    assert lab.holder == ME
    book.release()
    assert lab.holder == ""


@pytest.mark.long
def test_a_reservation_that_was_taken_acquires_nothing(lab: LabgridLab, tmp_path: Path) -> None:
    late = book_of(lab, tmp_path / "queue")
    book_of(lab, tmp_path / "queue", "r2")
    with pytest.raises(RefusedError, match=str(late.number)):
        acquire(late)
    assert lab.holder == ""


@pytest.mark.long
def test_a_place_whose_exporter_is_gone_is_refused_and_not_kept(lab: LabgridLab, tmp_path: Path) -> None:
    # the last one: the exporter stays away
    acquire(book_of(lab, tmp_path / "queue"))
    lab.stop_exporter()
    for run in ("resumed", "new"):
        with pytest.raises(RefusedError, match="labpc/bench1/") as refused:
            acquire(book_of(lab, tmp_path / "queue", run))
        assert refused.value.exit_code == EXIT_BENCH_LOST
        assert (lab.holder, acquired_for(tmp_path / "queue")) == ("", {})


@pytest.mark.parametrize("said", ["", "Place 'bench1':", "acquired: \x1b[31m"])
def test_what_is_no_answer_of_labgrid_acquires_nothing(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "labgrid-client"
    program.write_text(f"#!{sys.executable}\nprint({said!r})\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    lease = LeaseBook(tmp_path / "queue").reserve(OWNER)
    with pytest.raises(StorqualError):
        acquire(PlaceBook(LabgridPlace(place="bench1"), tmp_path / "queue", lease.number))
    assert acquired_for(tmp_path / "queue") == {}
