# SPDX-License-Identifier: Apache-2.0
"""Order of firmware versions: which may replace which. Vendors' tools refuse some downgrades, and allow others."""

from __future__ import annotations

import re
from typing import Sequence

__all__ = ["compare", "order_problem", "same_version"]

_RUN = re.compile(r"(\d+)")


def _parts(version: str) -> tuple[list[str], list[int]]:
    """What stands between the numbers, and the numbers."""
    words = _RUN.split(version.strip().lower())
    return words[::2], [int(number) for number in words[1::2]]


def same_version(one: str, other: str) -> bool:
    """Whether two texts name one version: equal but for case, leading zeros of a number, and blanks around."""
    return _parts(one) == _parts(other)


def compare(one: str, other: str) -> int | None:
    """-1, 0 or 1 as `one` is older, equal or newer; None when the two are not numbered alike (`2B3Q`, `GPK2`)."""
    (words, numbers), (others, other_numbers) = _parts(one), _parts(other)
    if words != others:
        length = min(len(words), len(others)) - 1
        dotted = all(set(word) <= set(".-") for word in (*words, *others))
        if not dotted or not length or numbers[:length] == other_numbers[:length]:
            return None
    return (numbers > other_numbers) - (numbers < other_numbers)


def _allows(allowed: str, version: str) -> bool:
    """`26.00` allows `26.00` and `26.00.03.00`, not `26.001`."""
    if same_version(allowed, version):
        return True
    return version.strip().lower().startswith(allowed.strip().lower() + ".")


def order_problem(found: str, wanted: str, allowed: Sequence[str] | None) -> str:
    """Why `wanted` may not replace `found`; empty when it may. `allowed`: the versions that a drop says it may.

    Without such a list only a newer version replaces an older one: a downgrade is possible, but it is somebody's
    decision, and so is a step between versions whose order nobody can tell.
    """
    if allowed is not None:
        if any(_allows(each, found) for each in allowed):
            return ""
        return f"it runs {found}, and {wanted} may replace only {', '.join(allowed)}; add it to `from` if it may"
    order = compare(found, wanted)
    if order == -1:
        return ""
    told = {None: "is not numbered like", 0: "is the same as", 1: "is newer than"}[order]
    return f"it runs {found}, which {told} {wanted}; name {found} in `from` if that step is meant"
