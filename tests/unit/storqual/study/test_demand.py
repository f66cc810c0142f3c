# SPDX-License-Identifier: Apache-2.0
"""Tests of the ceiling: the least part limits, the rig is named when it may be the limit, HP's rows come out."""

from __future__ import annotations

import pytest

from storqual.statistics.estimates import Estimate
from storqual.study.demand import PathPart, ceiling, drives_part, link_part, share_of, slot_part

SLOT = slot_part(528e6, "66 MHz, 64 bit")
PORT = 200_000_000


def exactly(value: float) -> Estimate:
    """A published value: no interval."""
    return Estimate(value, None, None)


@pytest.mark.parametrize(
    ("megabytes", "ports", "both_ways", "percent", "lowest"),
    [
        (195, 1, False, 97.5, "link (1 port)"),
        (351, 1, True, 87.75, "link (1 port, both ways)"),
        (390, 2, False, 97.5, "link (2 ports)"),
        (368, 2, False, 92.0, "link (2 ports)"),
        (412, 2, True, 78.03, "slot"),
    ],
)
def test_the_a6826a_rows_against_their_true_ceiling(
    megabytes: int, ports: int, both_ways: bool, percent: float, lowest: str
) -> None:
    """Two ports both ways are limited by the PCI slot, as the paper's note says: they reach 78 % of it."""
    share = share_of(exactly(megabytes * 1e6), ceiling([SLOT, link_part(PORT, ports, both_ways=both_ways)]))
    assert share.percent.value == pytest.approx(percent, abs=0.01)
    assert share.lowest.name == lowest
    assert share.limited_by is None


def test_drives_that_give_all_they_have_are_named_as_the_limit() -> None:
    """Four drives of 100 MB/s behind an 800 MB/s link measure drives."""
    path = ceiling([link_part(800.0, 1), drives_part({f"drive{n}": 100.0 for n in range(4)})])
    share = share_of(Estimate(395.0, 390.0, 400.0), path)
    assert share.limited_by is not None
    assert share.sentence() == (
        "98.8 % of the ceiling (4 drives); the limit here is 4 drives, which is not what was tested."
    )


def test_a_result_that_may_have_reached_the_rig_says_so() -> None:
    path = ceiling([PathPart("slot", 100.0, rig=True), PathPart("link", 200.0, rig=False)])
    assert share_of(Estimate(93.0, 89.0, 97.0), path).limited_by is not None
    assert share_of(Estimate(93.0, 92.0, 94.0), path).limited_by is None
    assert share_of(exactly(94.9), path).sentence() == "94.9 % of the ceiling (slot)."


def test_the_adapters_own_link_is_no_fault_of_the_rig() -> None:
    """97.5 % of a port is what was tested."""
    assert share_of(exactly(195e6), ceiling([link_part(PORT, 1)])).limited_by is None


def test_a_path_without_parts_is_refused() -> None:
    for parts in ([], [PathPart("slot", 0.0, rig=True)], [PathPart("slot", float("nan"), rig=True)]):
        with pytest.raises(ValueError, match="limits above zero"):
            ceiling(parts)
    with pytest.raises(ValueError, match="expected one or more"):
        link_part(PORT, 0)
    with pytest.raises(ValueError, match="no drives"):
        drives_part({})
