# SPDX-License-Identifier: Apache-2.0
"""What a sweep reached is counted by acknowledged rows, and a leak is growth in every part of the commands."""

from __future__ import annotations

import random

import pytest

from storqual.kinds.load_coverage import coverage_of, grown_memory, unreached
from storqual.kinds.oracle import Oracle
from storqual.kinds.sweep_shown import not_reached, show_coverage

ROWS = [
    ["2^0", "start", "below", "direct", "aligned", "direct"],
    ["2^1", "end", "above", "uring", "huge", "sg10"],
]
COMMANDS = [["2^0", "start", "unmap"]]


def coverage(*told: list[object], problem: int = 0) -> dict[str, object]:
    oracle = Oracle()
    oracle.take([["w", 1, 10, 1, 0, 1, 0], ["w", 2, 20, 2, 2, 3, problem], ["w", 3, 10, 1, 4, 5, 0]])
    lacks = [{"kind": "lacks", "what": "read sg10", "why": "this is no SCSI drive"}]
    return coverage_of({"rows": ROWS, "commands": COMMANDS}, told, lacks, oracle)


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
    told = grown_memory(samples(step, kind=kind, noise=512))
    assert f"{15 * step >> 10}"[:-1] in told
    assert "ordinary commands" in told


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
    told = dict(not_reached(records))
    assert "read sg10" in told["Data on one"]
    assert "size 2^0" in told["Data on two"]
    assert list(show_coverage([{"bench": "b", "adapter": "one", "arm": "candidate"}])) == []
