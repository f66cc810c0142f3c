# SPDX-License-Identifier: Apache-2.0
"""Each rule of the oracle has a test that fails without it: what may be found is as important as what may not."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.kinds.load_coverage import coverage_of, grown_memory, unreached
from storqual.kinds.oracle import Oracle, Violation
from storqual.kinds.trial_shown import not_reached, show_coverage
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


def kinds(violations: list[Violation]) -> list[tuple[str, int, int, int]]:
    return [(violation.kind, violation.sector, violation.sectors, violation.sequence) for violation in violations]


OLD_NEW = (write(1, 10, 2, 0, 5), write(2, 10, 2, 6, 9))


def test_the_last_acknowledged_write_is_what_must_be_there() -> None:
    assert oracle(*OLD_NEW).judge([(10, 2, "good", 2)], "acknowledged") == []


def test_an_older_write_where_a_newer_was_acknowledged_is_lost() -> None:
    violations = oracle(*OLD_NEW).judge([(10, 2, "good", 1)], "acknowledged")
    assert kinds(violations) == [("lost", 10, 2, 2)]
    assert (violations[0].found, violations[0].acknowledged, violations[0].flush) == (1, 9, None)


def test_a_loss_of_part_of_a_write_is_told_with_its_sectors() -> None:
    violations = oracle(*OLD_NEW).judge([(10, 1, "good", 2), (11, 1, "good", 1)], "acknowledged")
    assert kinds(violations) == [("lost", 11, 1, 2)]


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
        violations = made.judge([(10, 2, "good", 1)], "flushed")
        assert kinds(violations) == [("lost", 10, 2, 2)]
        assert violations[0].flush == 12

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
    violations = made.judge([(10, 2, "good", 1)], "acknowledged", [(10, 2, "good", 2)])
    assert kinds(violations) == [("stale", 10, 2, 2)]
    assert kinds(made.judge([(10, 2, "good", 1)], "acknowledged", [(10, 2, "good", 1)])) == [("lost", 10, 2, 2)]


def test_one_right_reading_of_many_tells_a_stale_read() -> None:
    old, new = [(10, 2, "good", 1)], [(10, 2, "good", 2)]
    assert kinds(oracle(*OLD_NEW).judge(old, "acknowledged", old, new)) == [("stale", 10, 2, 2)]
    assert kinds(oracle(*OLD_NEW).judge(old, "acknowledged", old, old)) == [("lost", 10, 2, 2)]


def test_a_sector_that_could_not_be_read_once_is_not_called_stale() -> None:
    violations = oracle(*OLD_NEW).judge([(10, 2, "unreadable", 0)], "acknowledged", [(10, 2, "good", 2)])
    assert kinds(violations) == [("unreadable", 10, 2, 2)]


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


ROWS = [["2^0", "start", "below", "direct", "aligned", "direct"], ["2^1", "end", "above", "uring", "huge", "sg10"]]
COMMANDS = [["2^0", "start", "unmap"]]


def coverage(*rows: list[object], problem: int = 0) -> dict[str, object]:
    oracle = Oracle()
    oracle.take([["w", 1, 10, 1, 0, 1, 0], ["w", 2, 20, 2, 2, 3, problem], ["w", 3, 10, 1, 4, 5, 0]])
    lacks = [{"kind": "lacks", "what": "read sg10", "why": "this is no SCSI drive"}]
    return coverage_of({"rows": ROWS, "commands": COMMANDS}, rows, lacks, oracle)


def test_a_level_counts_where_its_write_was_acknowledged_and_its_reads_were_right() -> None:
    made = coverage(
        [0, ROWS[0], 1, 1], [1, ["2^1", "end", "above", "uring", "huge", "direct"], 2, 0], [0, COMMANDS[0], 3, 1]
    )
    assert made["levels"]["size"] == {"2^0": [2, 2, 2], "2^1": [1, 1, 0]}
    assert made["levels"]["way"] == {"direct": [1, 1, 1], "uring": [1, 1, 0]}
    assert made["levels"]["read"] == {"direct": [1, 2, 1], "sg10": [1, 0, 0]}
    # the pairs of the first row and of the command; what was read wrongly covers none
    assert made["pairs"] == [18 - 1, 33 - 1]
    assert unreached(made) == [("read sg10", "this is no SCSI drive")]


def test_a_row_whose_write_failed_or_is_in_no_list_covers_nothing() -> None:
    made = coverage([1, ROWS[1], 2, 1], [0, ROWS[0], 77, 1], problem=5)
    assert made["pairs"][0] == 0
    assert ("size 2^1", "no row with it was acknowledged") in unreached(made)


def test_a_row_of_no_design_is_refused() -> None:
    with pytest.raises((KeyError, ValueError)):
        coverage([0, ["2^0", "start"], 1, 1])


def samples(step: int, *, noise: int = 0, once: int = 0, kind: int = 1, seed: int = 1) -> list[list[int]]:
    """Sixteen samples; `step` bytes for each batch, `once` somewhere, noise that comes and goes."""
    draw = random.Random(seed)
    made = []
    for number in range(16):
        sample = [100 * (number + 1), 25 << 20, 60 << 20]
        sample[kind] += number * step + draw.randint(-noise, noise) + (once if number > 6 else 0)
        made.append(sample)
    return made


@pytest.mark.parametrize(("kind", "step"), [(1, 3 << 10), (1, 100 << 10), (2, 25 << 10)])
def test_memory_that_grows_with_every_part_of_the_commands_is_a_leak(kind: int, step: int) -> None:
    sentence = grown_memory(samples(step, kind=kind, noise=512))
    assert f"{15 * step >> 10}"[:-1] in sentence
    assert "ordinary commands" in sentence


def test_a_leak_of_whole_slabs_is_seen_though_most_batches_show_none() -> None:
    made = samples(0)
    for number in (3, 7, 11, 14):
        for sample in made[number:]:
            sample[1] += 16 << 10
    assert grown_memory(made)


@pytest.mark.parametrize("seed", range(200))
def test_memory_that_comes_and_goes_or_grows_once_is_none(seed: int) -> None:
    draw = random.Random(seed)
    noise = {1: 20 << 10, 2: 400 << 10}
    for kind in (1, 2):
        once = draw.choice((0, 1 << 20, -(1 << 20)))
        assert grown_memory(samples(0, kind=kind, noise=draw.randint(0, noise[kind]), once=once, seed=seed)) == ""


def test_too_few_samples_show_nothing() -> None:
    assert grown_memory(samples(1 << 20)[:5]) == ""


def record(adapter: str, arm: str, made: dict[str, object]) -> dict[str, object]:
    return {"bench": "b", "adapter": adapter, "arm": arm, "coverage": {**made, "beside": ["burst 9 of 8"]}}


def test_the_report_shows_the_candidate_by_adapter_and_what_was_not_reached() -> None:
    good, poor = coverage([0, ROWS[0], 1, 1]), coverage()
    records = [record("one", "candidate", good), record("two", "candidate", poor), record("one", "baseline", poor)]
    (part,) = show_coverage(records)
    assert "one: 15 of 32 pairs" in part.sentences[0]
    assert any("burst 9 of 8" in sentence for sentence in part.sentences)
    assert part.folded[0].table.rows[0] == ("Size", "2^0", "1 / 1", "0 / 0")
    sentences = dict(not_reached(records))
    assert "read sg10" in sentences["Data on one"]
    assert "size 2^0" in sentences["Data on two"]
    assert list(show_coverage([{"bench": "b", "adapter": "one", "arm": "candidate"}])) == []
