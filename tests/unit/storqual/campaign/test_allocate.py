# SPDX-License-Identifier: Apache-2.0
"""Which points get the next pairs."""

from hypothesis import given
from hypothesis import strategies as st

from storqual.campaign.until_decided import SHORTEST_BATCH_S, Want, allocate, funded

NO_LIMIT = float("inf")


def test_with_time_for_all_every_point_gets_a_pair() -> None:
    wants = [Want(name, units, 40) for name, units in (("a", 1), ("b", 30), ("c", 4))]
    given_ = allocate(wants, unit_s=15.0, longest_s=600.0, left_s=NO_LIMIT)
    assert given_ == {"a": 1, "c": 1, "b": 1}


def test_a_single_point_gets_a_block_worth_asking_for() -> None:
    assert allocate([Want("a", 40, 40)], unit_s=5.0, longest_s=600.0, left_s=NO_LIMIT) == {"a": 6}
    assert allocate([Want("a", 4, 40)], unit_s=5.0, longest_s=600.0, left_s=NO_LIMIT) == {"a": 2}
    assert allocate([Want("a", 40, 3)], unit_s=5.0, longest_s=600.0, left_s=NO_LIMIT) == {"a": 3}


def test_with_too_little_time_the_nearest_decisions_are_finished() -> None:
    wants = [Want("far", 50, 60), Want("near", 2, 60), Want("middle", 6, 60)]
    assert [want.key for want in funded(wants, 10.0, 100.0)] == ["near", "middle"]
    assert set(allocate(wants, unit_s=10.0, longest_s=600.0, left_s=100.0)) == {"near", "middle"}


def test_a_pair_longer_than_the_longest_block_is_a_block_of_its_own() -> None:
    assert allocate([Want("a", 5, 5)], unit_s=700.0, longest_s=600.0, left_s=NO_LIMIT) == {"a": 1}


def test_what_may_have_no_more_gets_no_more() -> None:
    assert allocate([Want("a", 5, 0)], unit_s=5.0, longest_s=600.0, left_s=NO_LIMIT) == {}
    assert allocate([Want("a", 5, 5)], unit_s=5.0, longest_s=600.0, left_s=4.9) == {}


WANTS = st.lists(st.tuples(st.integers(1, 200), st.integers(0, 60)), max_size=40)


@given(WANTS, st.floats(0.5, 100.0), st.floats(1.0, 2000.0), st.floats(0.0, 5000.0))
def test_limits_hold_whatever_is_wanted(
    wanted: list[tuple[int, int]], unit_s: float, longest_s: float, left_s: float
) -> None:
    wants = [Want(number, units, left) for number, (units, left) in enumerate(wanted)]
    given_ = allocate(wants, unit_s=unit_s, longest_s=longest_s, left_s=left_s)
    total = sum(given_.values()) * unit_s
    assert total <= left_s + 1e-9
    assert total <= max(longest_s, unit_s) + 1e-9
    assert total <= max(SHORTEST_BATCH_S, unit_s * len(wants)) + unit_s * len(wants)
    assert all(pairs <= wants[key].left for key, pairs in given_.items())
    assert bool(given_) == (left_s >= unit_s and any(want.left for want in wants))
