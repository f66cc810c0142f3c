# SPDX-License-Identifier: Apache-2.0
"""What no single trial shows: memory that grows with each fault, and residuals, compared between the arms.

A trial's own noise may take or give some memory, so growth counts where most trials of a fault show it: the exact
lower bound of their share must be above one half. Residuals are a driver's word on how much less came than was asked
for; some drivers never tell, and that is known where the baseline does not either.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from storqual.robustness.confidence import lower_bound
from storqual.run.records import TRIALS

MEMORY, RESIDUAL = "memory", "residual"
"""Names of the checks: `memory.<fault>` and `residual`, each of one adapter."""
LEAK_BYTES = 256 << 10
"""A trial that leaves so much more memory in slabs than it found may show a leak."""
_LEAST_TRIALS = 5
"""Fewer trials cannot show that most of all would grow, at 95 %."""
_MOST_SHARE = 0.5


def lasting_checks(records: Sequence[Mapping[str, Any]], *, bench: str) -> Iterator[dict[str, Any]]:
    """The checks of memory (of each fault with trials enough) and of residuals (of each adapter that has them)."""
    for (fault, adapter), arms in _by_arm(records, "fault", "adapter").items():
        checked = _memory({arm: _growths(listed) for arm, listed in arms.items()})
        if checked is not None:
            yield _check(f"{MEMORY}.{fault}", bench, adapter, checked)
    for (adapter,), arms in _by_arm(records, "adapter").items():
        checked = _residual({arm: _residuals(listed) for arm, listed in arms.items()})
        if checked is not None:
            yield _check(RESIDUAL, bench, adapter, checked)


def _by_arm(
    records: Iterable[Mapping[str, Any]], *names: str
) -> Mapping[tuple[str, ...], Mapping[str, list[Mapping[str, Any]]]]:
    """Records of trials that are not void, by these fields and then by arm."""
    found: defaultdict[tuple[str, ...], defaultdict[str, list[Mapping[str, Any]]]]
    found = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record["outcome"] != "void":
            found[tuple(str(record[name]) for name in names)][record["arm"]].append(record)
    return found


def _check(name: str, bench: str, adapter: str, checked: tuple[str, str]) -> dict[str, Any]:
    outcome, reason = checked
    return {
        "id": name,
        "bench": bench,
        "adapter": adapter,
        "outcome": outcome,
        "reason": reason,
        "source": TRIALS,
    }


def _growths(records: Iterable[Mapping[str, Any]]) -> list[int]:
    """By how many bytes each trial left slabs larger than it found them."""
    told = [record.get("slab_bytes", {}) for record in records]
    return [slabs["after"] - slabs["before"] for slabs in told if slabs.get("after") and slabs.get("before")]


def _memory(arms: Mapping[str, Sequence[int]]) -> tuple[str, str] | None:
    tested = arms.get("candidate", ())
    if len(tested) < _LEAST_TRIALS:
        return None
    grown = {arm: sum(growth > LEAK_BYTES for growth in growths) for arm, growths in arms.items()}
    failed = sum(growth > LEAK_BYTES for growth in tested)
    said = (
        f"after {failed} of {len(tested)} trials slabs had grown by more than {LEAK_BYTES >> 10} KiB, "
        f"by {statistics.median(tested) / 1024:.0f} KiB in the median"
    )
    if lower_bound(failed, len(tested)) <= _MOST_SHARE:
        return "PASS", said
    others = arms.get("baseline", ())
    if others and lower_bound(grown["baseline"], len(others)) > _MOST_SHARE:
        return "PASS", f"known, the baseline's memory grows too: {said}"
    return "FAIL", f"memory leak: {said}"


def _residuals(records: Iterable[Mapping[str, Any]]) -> list[tuple[int, int, int]]:
    """What was asked, given and received of each command that ended short and was answered."""
    return [
        (told["asked"], told["given"], told["received"])
        for record in records
        for told in record.get("residual", {}).values()
        if "received" in told
    ]


def _residual(arms: Mapping[str, Sequence[tuple[int, int, int]]]) -> tuple[str, str] | None:
    wrong = {arm: [one for one in told if one[2] != one[1]] for arm, told in arms.items()}
    tested = arms.get("candidate", ())
    if not tested:
        return None
    if not wrong["candidate"]:
        return "PASS", f"{len(tested)} of {len(tested)} commands that ended short were told with what they read"
    asked, given, received = wrong["candidate"][0]
    said = (
        f"after {len(wrong['candidate'])} of {len(tested)} commands the driver told other lengths than what was "
        f"read: {asked} bytes were asked for, the drive gave {given}, the driver told {received}"
    )
    if wrong.get("baseline"):
        return "PASS", f"known, the baseline's driver does so too: {said}"
    return "FAIL", f"wrong residual: {said}"
