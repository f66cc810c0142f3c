# SPDX-License-Identifier: Apache-2.0
"""A proof of inclusion leads to the root of its tree, and no other entry, place, size or path does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.witness.merkle import leaf_hash, root_of
from tests.support.rekor_log import tree_path, tree_root


@st.composite
def entries(draw: st.DrawFn) -> tuple[list[bytes], int]:
    """A tree of any size up to 200, and the place of one of its entries."""
    size = draw(st.integers(1, 200))
    return [b"record %d" % number for number in range(size)], draw(st.integers(0, size - 1))


def proves(root: bytes, leaf: bytes, index: int, size: int, path: list[bytes]) -> bool:
    try:
        return root_of(leaf, index, size, path) == root
    except ValueError:
        return False


@given(entries())
def test_each_entry_of_a_tree_is_proven(tree: tuple[list[bytes], int]) -> None:
    records, index = tree
    assert root_of(leaf_hash(records[index]), index, len(records), tree_path(index, records)) == tree_root(records)


@given(entries(), st.data())
def test_a_proof_is_of_its_entry_and_place_only(tree: tuple[list[bytes], int], data: st.DataObject) -> None:
    records, index = tree
    root, leaf, path = tree_root(records), leaf_hash(records[index]), tree_path(index, records)
    assert not proves(root, leaf_hash(records[index] + b"!"), index, len(records), path)
    other = data.draw(st.integers(-1, len(records) + 1).filter(lambda one: one != index))
    assert not proves(root, leaf, other, len(records), path)
    assert not proves(root, leaf, index, len(records), [*path, leaf])
    for number in range(len(path)):
        assert not proves(root, leaf, index, len(records), path[:number] + path[number + 1 :])
        assert not proves(root, leaf, index, len(records), [*path[:number], bytes(32), *path[number + 1 :]])


def test_an_inner_node_is_no_entry() -> None:
    records = [b"a", b"b", b"c", b"d"]
    inside = leaf_hash(b"a") + leaf_hash(b"b")
    assert not proves(tree_root(records), leaf_hash(inside), 0, 2, [tree_root(records[2:])])


@pytest.mark.parametrize(("size", "index"), [(0, 0), (1, 1), (1, -1), (1 << 62, 1 << 62)])
def test_what_is_outside_a_tree_has_no_proof(size: int, index: int) -> None:
    with pytest.raises(ValueError, match="is outside a tree"):
        root_of(bytes(32), index, size, [])


def test_the_largest_trees_have_paths_of_their_length() -> None:
    with pytest.raises(ValueError, match="too short"):
        root_of(bytes(32), (1 << 63) - 2, (1 << 63) - 1, [bytes(32)])
    with pytest.raises(ValueError, match="too long"):
        root_of(bytes(32), 0, 2, [bytes(32)] * 2)
