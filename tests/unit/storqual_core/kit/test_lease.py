"""The reservation of a bench: who has it, who waits, and which commands count."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lease import (
    LAPSE_S,
    VARIABLE,
    LeaseBook,
    LeaseLostError,
    Out,
    OutOfServiceError,
    Owner,
    ReservedError,
)
from storqual_core.kit.lock import hold_lock


def owner(who: str, run: str = "", until: str = "2099-01-01T00:00:00+00:00", where: str = "lab1") -> Owner:
    return Owner(who, where, f"{who} measures", until, run)


@pytest.fixture
def book(tmp_path: Path) -> LeaseBook:
    return LeaseBook(tmp_path, name="bench01", boot_time=lambda: 0.0)


def age(folder: Path, number: int, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(folder / f"lease.{number}", (then, then))


def test_a_second_one_learns_who_has_the_bench_where_why_and_until_when(book: LeaseBook) -> None:
    book.reserve(owner("ann", run="r1"))
    with pytest.raises(ReservedError) as refused:
        book.reserve(owner("bob", run="r2"))
    for word in ("bench01", "ann", "lab1", "ann measures", "2099-01-01"):
        assert word in str(refused.value)
    assert refused.value.exit_code == 4


def test_numbers_only_grow_also_over_a_lost_file(book: LeaseBook, tmp_path: Path) -> None:
    numbers = []
    for run in ("r1", "r2", "r3"):
        numbers.append(book.reserve(owner("ann", run=run)).number)
        book.release(numbers[-1])
    (tmp_path / "lease.json").unlink()
    numbers.append(LeaseBook(tmp_path, clock=lambda: time.time() + 60).reserve(owner("ann", run="r4")).number)
    assert numbers == sorted(set(numbers))


def test_a_lapsed_one_may_be_taken_and_a_renewed_one_may_not(book: LeaseBook, tmp_path: Path) -> None:
    number = book.reserve(owner("ann", run="r1")).number
    age(tmp_path, number, LAPSE_S - 5)
    with pytest.raises(ReservedError):
        book.reserve(owner("bob", run="r2"))
    age(tmp_path, number, LAPSE_S + 5)
    lease = book.read()
    assert lease.owner is None
    assert lease.lapsed is not None
    assert lease.lapsed.who == "ann"
    book.renew(number)
    assert book.read().owner is not None
    age(tmp_path, number, LAPSE_S + 5)
    assert book.reserve(owner("bob", run="r2")).number > number
    with pytest.raises(LeaseLostError, match="bob"):
        book.renew(number)


def test_a_bench_that_was_down_is_kept_until_its_owner_can_have_renewed(tmp_path: Path) -> None:
    number = LeaseBook(tmp_path).reserve(owner("ann", run="r1")).number
    age(tmp_path, number, 3600)
    booted = LeaseBook(tmp_path, boot_time=lambda: time.time() - 60)
    assert booted.read().owner is not None
    assert LeaseBook(tmp_path, boot_time=lambda: time.time() - LAPSE_S - 60).read().owner is None


def test_a_persons_reservation_ends_with_its_time(tmp_path: Path) -> None:
    book = LeaseBook(tmp_path, clock=lambda: 1000.0)
    book.reserve(owner("ann", until="1970-01-01T00:20:00+00:00"))
    assert book.read().owner is not None
    assert LeaseBook(tmp_path, clock=lambda: 1201.0).read().owner is None


def test_the_queue_is_served_in_its_order_and_forgets_who_gave_up(book: LeaseBook, tmp_path: Path) -> None:
    number = book.reserve(owner("ann", run="r1")).number
    tickets = [book.ticket() for _ in range(3)]
    for place, ticket in enumerate(tickets, start=1):
        with pytest.raises(ReservedError) as refused:
            book.reserve(owner("bob", run=f"q{ticket}"), ticket=ticket)
        assert refused.value.place == place
    book.release(number)
    with pytest.raises(ReservedError):
        book.reserve(owner("bob", run="late"))
    with pytest.raises(ReservedError) as refused:
        book.reserve(owner("bob", run="q2"), ticket=tickets[1])
    assert refused.value.place == 2
    os.utime(tmp_path / "queue" / f"{tickets[0]}.json", (1, 1))
    lease = book.reserve(owner("bob", run="q2"), ticket=tickets[1])
    assert [ticket for ticket, _ in lease.waiting] == [tickets[2]]


def test_taking_names_whom_it_was_taken_from_and_ends_his_commands(
    book: LeaseBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = book.reserve(owner("ann")).number
    taken = book.reserve(owner("bob"), take=True)
    assert "ann" in taken.former
    monkeypatch.setenv(VARIABLE, f"{number}@{tmp_path}")
    with pytest.raises(LeaseLostError, match="bob measures"), hold_lock(tmp_path, "r1", "test"):
        pass
    monkeypatch.setenv(VARIABLE, f"{taken.number}@{tmp_path}")
    with hold_lock(tmp_path, "r1", "test"):
        pass


def test_without_a_number_nothing_is_written_on_a_bench_that_somebody_has(book: LeaseBook, tmp_path: Path) -> None:
    number = book.reserve(owner("ann", run="r1")).number
    with pytest.raises(ReservedError, match="ann"), hold_lock(tmp_path, "r1", "test"):
        pass
    book.release(number)
    with hold_lock(tmp_path, "r1", "test"):
        pass


def test_a_number_of_another_bench_is_none(book: LeaseBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number = book.reserve(owner("ann", run="r1")).number
    monkeypatch.setenv(VARIABLE, f"{number}@/var/lib/other")
    with pytest.raises(ReservedError), hold_lock(tmp_path, "r1", "test"):
        pass


def test_out_of_service_until_it_is_put_back_or_its_time_is_over(book: LeaseBook, tmp_path: Path) -> None:
    book.take_out(Out("drive 3 fails", "ann on lab1", "2026-11-27T00:00:00+00:00", "2099-01-01T00:00:00+00:00"))
    with pytest.raises(OutOfServiceError, match="drive 3 fails") as refused:
        book.reserve(owner("bob", run="r1"))
    assert refused.value.exit_code == 5
    with pytest.raises(OutOfServiceError), hold_lock(tmp_path, "r1", "test"):
        pass
    # who repairs it has it all the same
    book.release(book.reserve(owner("ann"), take=True).number)
    assert LeaseBook(tmp_path, clock=lambda: 5e9).read().out is None
    assert "drive 3 fails" in str(book.put_back())
    book.reserve(owner("bob", run="r1"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "storqual.lease/1", "number": "x"}'])
def test_what_cannot_be_read_may_be_somebodys(book: LeaseBook, tmp_path: Path, text: str) -> None:
    (tmp_path / "lease.json").write_text(text)
    refused: list[Callable[[], object]] = [
        book.read,
        lambda: book.reserve(owner("ann")),
        lambda: book.refuse_others(0),
    ]
    for call in refused:
        with pytest.raises(StorqualError, match="cannot be read"):
            call()
