# SPDX-License-Identifier: Apache-2.0
"""The tree of a log (RFC 6962): the hash of an entry, and the root that a proof of inclusion leads to."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def leaf_hash(record: bytes) -> bytes:
    """The hash of an entry."""
    return hashlib.sha256(b"\0" + record).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two subtrees."""
    return hashlib.sha256(b"\1" + left + right).digest()


def root_of(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """The root of a tree of `size` entries whose entry `index` has the hash `leaf`, by its proof of inclusion.

    Raises ValueError for an entry outside the tree, and for a path that is longer or shorter than that of this entry.
    """
    if not 0 <= index < size:
        raise ValueError(f"entry {index} is outside a tree of {size} entries")
    root, last = leaf, size - 1
    for sibling in path:
        if last == 0:
            raise ValueError("the proof of inclusion is too long")
        if index % 2 or index == last:
            root = node_hash(sibling, root)
            while index % 2 == 0:
                # the last subtree of a level without a sibling: it moves up as it is
                index, last = index // 2, last // 2
        else:
            root = node_hash(root, sibling)
        index, last = index // 2, last // 2
    if last:
        raise ValueError("the proof of inclusion is too short")
    return root
