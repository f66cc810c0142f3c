# SPDX-License-Identifier: Apache-2.0
"""Each rule of the oracle has a test that fails without it: what may be found is as important as what may not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.kinds.oracle import Oracle, Violation
from storqual_core.turns.integrity_load import OTHER_DATA
from storqual_core.turns.sectors import CODES


def write(sequence: int, sector: int, length: int, begin: int, end: int, problem: int = 0) -> list[object]:
    return ["w", sequence, sector, length, begin, end, problem]


def through(sequence: int, sector: int, length: int, begin: int, end: int) -> list[object]:
    return ["d", sequence, sector, length, begin, end, 0]


def flush(begin: int, end: int, problem: int = 0) -> list[object]:
    return ["f", 0, 0, 0, begin, end, problem]


def oracle(*ios: list[object]) -> Oracle:
    made = Oracle()
    made.take(ios)
    return made


def kinds(found: list[Violation]) -> list[tuple[str, int, int, int]]:
    return [(one.kind, one.sector, one.sectors, one.sequence) for one in found]


OLD_NEW = (write(1, 10, 2, 0, 5), write(2, 10, 2, 6, 9))


def test_the_last_acknowledged_write_is_what_must_be_there() -> None:
    assert oracle(*OLD_NEW).judge([(10, 2, "good", 2)], "acknowledged") == []


def test_an_older_write_where_a_newer_was_acknowledged_is_lost() -> None:
    found = oracle(*OLD_NEW).judge([(10, 2, "good", 1)], "acknowledged")
    assert kinds(found) == [("lost", 10, 2, 2)]
    assert (found[0].found, found[0].acknowledged, found[0].flush) == (1, 9, None)


def test_a_loss_of_part_of_a_write_is_told_with_its_sectors() -> None:
    found = oracle(*OLD_NEW).judge([(10, 1, "good", 2), (11, 1, "good", 1)], "acknowledged")
    assert kinds(found) == [("lost", 11, 1, 2)]


def test_what_was_there_before_the_trial_is_a_loss_too() -> None:
    assert kinds(oracle(*OLD_NEW).judge([(10, 2, "foreign", 0)], "acknowledged")) == [("lost", 10, 2, 2)]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("misdirected", "misdirected"),
        ("corrupted", "corrupted"),
        ("torn", "torn"),
        ("unreadable", "unreadable"),
        ("zero", "deallocated"),
    ],
)
def test_each_kind_of_damage_has_its_name(code: str, kind: str) -> None:
    assert kinds(oracle(*OLD_NEW).judge([(10, 2, code, 0)], "acknowledged")) == [(kind, 10, 2, 2)]


def test_a_failed_write_may_be_there_or_not_or_in_part() -> None:
    made = oracle(write(1, 10, 2, 0, 5), write(2, 10, 2, 6, 9, 5))
    for runs in ([(10, 2, "good", 1)], [(10, 2, "good", 2)], [(10, 1, "good", 2), (11, 1, "torn", 2)]):
        assert made.judge(runs, "acknowledged") == []


def test_a_failed_write_excuses_nothing_older_than_what_was_acknowledged_before_it() -> None:
    made = oracle(write(1, 10, 1, 0, 1), write(2, 10, 1, 2, 3), write(3, 10, 1, 4, 5, 5))
    assert kinds(made.judge([(10, 1, "good", 1)], "acknowledged")) == [("lost", 10, 1, 2)]


def test_a_failed_write_excuses_no_corruption() -> None:
    made = oracle(write(1, 10, 1, 0, 5), write(2, 10, 1, 6, 9, 5))
    assert kinds(made.judge([(10, 1, "corrupted", 0)], "acknowledged")) == [("corrupted", 10, 1, 1)]


def test_a_torn_sector_without_a_failed_write_is_a_violation() -> None:
    assert kinds(oracle(*OLD_NEW).judge([(10, 1, "torn", 2), (11, 1, "good", 2)], "acknowledged")) == [
        ("torn", 10, 1, 2)
    ]


def test_where_nothing_was_acknowledged_anything_may_be() -> None:
    assert oracle(write(1, 10, 1, 0, 5, 5)).judge([(10, 1, "corrupted", 0)], "acknowledged") == []


def test_a_write_that_was_under_way_when_telling_ended_may_be_there() -> None:
    assert oracle(*OLD_NEW).judge([(10, 2, "good", 3)], "acknowledged") == []


class TestLostCache:
    def test_an_unflushed_write_may_be_lost(self) -> None:
        assert oracle(*OLD_NEW).judge([(10, 2, "zero", 0)], "flushed") == []

    def test_a_flushed_write_may_not(self) -> None:
        made = oracle(*OLD_NEW, flush(10, 12))
        found = made.judge([(10, 2, "good", 1)], "flushed")
        assert kinds(found) == [("lost", 10, 2, 2)]
        assert found[0].flush == 12

    def test_a_flush_that_began_before_the_acknowledgement_covers_nothing(self) -> None:
        assert oracle(write(1, 10, 1, 0, 5), flush(4, 12)).judge([(10, 1, "zero", 0)], "flushed") == []

    def test_a_flush_that_failed_covers_nothing(self) -> None:
        assert oracle(write(1, 10, 1, 0, 5), flush(6, 12, 5)).judge([(10, 1, "zero", 0)], "flushed") == []

    def test_a_failed_write_is_not_made_safe_by_a_flush(self) -> None:
        made = oracle(write(1, 10, 1, 0, 5, 5), flush(6, 12))
        assert made.judge([(10, 1, "zero", 0)], "flushed") == []
        assert made.flushed(made.writes[1]) is None

    def test_a_write_through_needs_no_flush(self) -> None:
        assert kinds(oracle(through(1, 10, 1, 0, 5)).judge([(10, 1, "zero", 0)], "flushed")) == [
            ("deallocated", 10, 1, 1)
        ]

    def test_an_unflushed_write_over_a_flushed_one_may_be_there_but_nothing_older(self) -> None:
        made = oracle(write(1, 10, 1, 0, 1), write(2, 10, 1, 2, 3), flush(4, 5), write(3, 10, 1, 6, 7))
        assert made.judge([(10, 1, "good", 2)], "flushed") == []
        assert made.judge([(10, 1, "good", 3)], "flushed") == []
        assert kinds(made.judge([(10, 1, "good", 1)], "flushed")) == [("lost", 10, 1, 2)]


def test_what_is_right_when_read_again_was_read_stale() -> None:
    made = oracle(*OLD_NEW)
    found = made.judge([(10, 2, "good", 1)], "acknowledged", [(10, 2, "good", 2)])
    assert kinds(found) == [("stale", 10, 2, 2)]
    assert kinds(made.judge([(10, 2, "good", 1)], "acknowledged", [(10, 2, "good", 1)])) == [("lost", 10, 2, 2)]


def test_one_right_reading_of_many_tells_a_stale_read() -> None:
    old, new = [(10, 2, "good", 1)], [(10, 2, "good", 2)]
    assert kinds(oracle(*OLD_NEW).judge(old, "acknowledged", old, new)) == [("stale", 10, 2, 2)]
    assert kinds(oracle(*OLD_NEW).judge(old, "acknowledged", old, old)) == [("lost", 10, 2, 2)]


def test_a_sector_that_could_not_be_read_once_is_not_called_stale() -> None:
    found = oracle(*OLD_NEW).judge([(10, 2, "unreadable", 0)], "acknowledged", [(10, 2, "good", 2)])
    assert kinds(found) == [("unreadable", 10, 2, 2)]


def test_a_read_during_the_load_that_gave_other_data_is_kept() -> None:
    wrong = [["r", 0, 10 + at, 2, 3, 4 + at, OTHER_DATA[code]] for at, code in enumerate(CODES)]
    made = oracle(*wrong, ["r", 0, 12, 2, 3, 4, 0], ["r", 0, 14, 2, 3, 4, 5])
    kinds = ["stale", "misdirected", "torn", "corrupted", "lost", "deallocated"]
    assert made.wrong_reads == [(kind, 10 + at, 2, 4 + at) for at, kind in enumerate(kinds)]


def test_sectors_that_were_written_and_not_read_back_are_counted() -> None:
    assert oracle(*OLD_NEW).missing([(10, 1, "good", 2)]) == 1
    assert oracle(*OLD_NEW).missing([(10, 2, "good", 2)]) == 0


def test_a_write_that_is_told_twice_is_no_list() -> None:
    with pytest.raises(ValueError, match="second time"):
        oracle(write(1, 10, 1, 0, 1), write(1, 10, 1, 0, 1))


@given(st.lists(st.tuples(st.sampled_from("wdf"), st.integers(0, 5), st.integers(1, 3), st.booleans()), max_size=30))
def test_a_drive_that_keeps_all_it_acknowledged_is_never_accused(ios: list[tuple[str, int, int, bool]]) -> None:
    made, drive = Oracle(), {}
    for number, (kind, sector, length, fails) in enumerate(ios, start=1):
        made.take([[kind, number if kind != "f" else 0, sector, length, 2 * number, 2 * number + 1, 5 * fails]])
        if kind != "f" and not fails:
            drive.update(dict.fromkeys(range(sector, sector + length), number))
    runs = [(sector, 1, "good", number) for sector, number in drive.items()]
    assert made.judge(runs, "acknowledged") == []
    assert made.judge(runs, "flushed") == []
    # and one that loses any last write is always accused
    for sector, number in drive.items():
        assert made.judge([(sector, 1, "foreign", 0)], "acknowledged")[0].sequence == number
