# SPDX-License-Identifier: Apache-2.0
"""The table at the end of a look at many benches."""

from __future__ import annotations

from storqual.drift import drift_table


def test_every_bench_has_a_row() -> None:
    """One as declared, one that is not, one that nobody saw; in the order of names."""
    found = {"bench02": ["d1 drive.WCE: 1, declared 0", "d1 drive.DRA: 0, declared 1"], "bench01": []}
    assert drift_table(found, {"bench010": "no route to host\nsecond line"}) == [
        "drift: 1 of 3 benches differ from what is declared, 1 could not be looked at",
        "bench     state",
        "bench01   as declared",
        "bench010  not looked at: no route to host",
        "bench02   2 differences",
        "            d1 drive.WCE: 1, declared 0",
        "            d1 drive.DRA: 0, declared 1",
    ]


def test_what_a_drive_says_cannot_act_on_the_terminal() -> None:
    """An escape sequence in a model name is shown, not obeyed."""
    assert drift_table({"b": ["\x1b[2J drive.WCE"]}, {})[-1].endswith("\\x1b[2J drive.WCE")
