# SPDX-License-Identifier: Apache-2.0
"""The balanced fraction: no level is lost, and the choice depends on nothing but its arguments."""

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual.inputs import Suite, find_suite, load_suite
from storqual.plan.points import Placed, balanced_fraction, points_of, unseen_levels

pytestmark = pytest.mark.slow

LEVELS = {
    "bs": ["512", "4k", "64k", "1m"],
    "drives": [1, 2, 4, 8],
    "iodepth": [1, 4, 16, 64],
    "rwmixread": [30, 50, 70],
}


def suite_of(factors: dict[str, int], workloads: int) -> Suite:
    """A suite with so many workloads, each with the first so many levels of each factor."""
    listed = {name: LEVELS[name][:count] for name, count in factors.items()}
    return Suite.model_validate(
        {
            "workloads": {f"w{number}": {"rw": "randrw", "factors": listed} for number in range(workloads)},
            "criteria": [{"metric": "iops"}],
            "profiles": {"quick": {}},
        }
    )


def placed(suite: Suite, adapters: int) -> list[Placed]:
    return [Placed(f"a{number}", point, (0,)) for number in range(adapters) for point in points_of(suite)]


shapes = st.tuples(
    st.fixed_dictionaries({}, optional={name: st.integers(1, len(levels)) for name, levels in LEVELS.items()}),
    st.integers(1, 5),
    st.integers(1, 4),
)


@settings(deadline=None, max_examples=50)
@given(shapes, st.text(max_size=4))
def test_no_factor_level_is_lost(shape: tuple[dict[str, int], int, int], seed: str) -> None:
    factors, workloads, adapters = shape
    candidates = placed(suite_of(factors, workloads), adapters)
    count = max([workloads, adapters, *factors.values()])
    chosen = balanced_fraction(candidates, count, seed)
    assert unseen_levels(candidates, chosen) == []
    assert len(chosen) <= count
    assert len(set(chosen)) == len(chosen)


@settings(deadline=None, max_examples=30)
@given(shapes, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_changes_nothing(
    shape: tuple[dict[str, int], int, int], shuffler: st.DataObject
) -> None:
    """The same cells are measured in every campaign, so that a point has a history."""
    factors, workloads, adapters = shape
    candidates = placed(suite_of(factors, workloads), adapters)
    mixed = list(candidates)
    shuffler.shuffle(mixed)
    assert balanced_fraction(candidates, 6, "x") == balanced_fraction(mixed, 6, "x")


def test_more_cells_than_there_are_is_the_whole_matrix() -> None:
    candidates = placed(suite_of({"bs": 2}, 1), 1)
    assert set(balanced_fraction(candidates, 99, "x")) == set(candidates)


def test_quick_of_the_adapter_suite_is_balanced() -> None:
    suite = load_suite(find_suite("adapter"))
    quick = suite.profiles["quick"]
    assert quick.cells is not None
    assert quick.cells <= 20
    candidates = placed(suite, 3)
    chosen = balanced_fraction(candidates, quick.cells, "adapter/quick")
    assert unseen_levels(candidates, chosen) == []
    # three cells an adapter cannot show it four workloads
    on_adapters, wanted = (
        {(p.adapter, level) for p in cells_on_adapters for level in p.point.levels if level[0] != "workload"}
        for cells_on_adapters in (chosen, candidates)
    )
    assert on_adapters == wanted
    pairs = {pair for p in chosen for pair in itertools.combinations(p.point.levels, 2)}
    every = {pair for p in candidates for pair in itertools.combinations(p.point.levels, 2)}
    assert len(pairs) >= 0.8 * len(every), (len(pairs), len(every))
    for factor in ("adapter", "workload", "bs", "iodepth", "drives"):
        counts = Counter(level for p in chosen for name, level in p.levels if name == factor).values()
        assert max(counts) - min(counts) <= 2
