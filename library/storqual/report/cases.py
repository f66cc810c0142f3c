# SPDX-License-Identifier: Apache-2.0
"""The test cases of junit.xml: which criteria each stands for, how it is called, and how it ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MOST_ITEMS = 10_000
"""Above it a case stands for a workload: pytest keeps every one in memory, and a reader reads none of them."""
_RANK = ("ERROR", "FAIL", "INCONCLUSIVE", "MARGINAL", "PASS", "SKIPPED")


def named_cases(criteria: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """The cases of a verdict in their order, each with its criteria and a name that no other one has."""
    groups = _by_point(criteria) if len(criteria) <= MOST_ITEMS else _by_workload(criteria)
    seen: defaultdict[str, int] = defaultdict(int)
    for name, members in groups:
        seen[name] += 1
        what, at, place = name.partition("@")
        yield name if seen[name] == 1 else f"{what}#{seen[name]}{at}{place}", members


def worst_of(criteria: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return min(criteria, key=lambda entry: _RANK.index(entry["outcome"]))


def is_accepted(criteria: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a case fails, and every failure in it is waived."""
    failed = [entry for entry in criteria if entry["outcome"] == "FAIL"]
    return worst_of(criteria)["outcome"] == "FAIL" and all(entry.get("waiver") for entry in failed)


def _by_point(criteria: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Each criterion by itself, called `metric@adapter/point`; the bench in front where there are several."""
    several = len({entry.get("bench") for entry in criteria}) > 1
    for entry in criteria:
        # a check is known by its id: several of them may have no metric, no adapter and no point
        what = entry.get("metric") or entry["id"]
        place = "/".join(str(entry[part]) for part in ("adapter", "point") if entry.get(part))
        bench = f"{entry['bench']}:" if several and entry.get("bench") else ""
        yield _neutral(f"{what}@{bench}{place}" if place or bench else str(what)), [entry]


def _by_workload(criteria: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    groups: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for entry in criteria:
        workload = str(entry.get("point") or "").partition("[")[0]
        what = entry.get("metric") or entry["id"]
        groups[_neutral(f"{what}@{entry.get('adapter') or ''}/{workload}")].append(entry)
    yield from groups.items()


def _neutral(name: str) -> str:
    """A name that is text everywhere: pytest-html writes ids into the page as they are."""
    return "".join(letter if letter.isalnum() or letter in "@/[]=,._-:%# " else "_" for letter in name)
