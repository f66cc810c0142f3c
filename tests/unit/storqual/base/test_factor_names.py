# SPDX-License-Identifier: Apache-2.0
"""Levels as people say them."""

from __future__ import annotations

import pytest

from storqual.base.factor_names import together


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ({"bs": 4096, "iodepth": 16}, "4 KiB, QD 16"),
        ({"direct": False, "target": "xfs"}, "buffered, XFS"),
        ({"direct": True, "target": "raw"}, "direct, drive"),
        ({"drives": 1, "ports": 2}, "1 drive, 2 ports"),
        ({"drive.WCE": 0}, "drive.WCE=0"),
    ],
    ids=["sizes", "file-system", "drive", "counts", "setting"],
)
def test_a_workload_with_its_levels_reads_as_a_person_would_say_it(levels: dict[str, object], said: str) -> None:
    assert together("reads", levels.items()) == f"reads, {said}"
