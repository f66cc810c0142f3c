# SPDX-License-Identifier: Apache-2.0
"""Which firmware version may replace which."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.provision.firmware.subject import compare, order_problem, same_version


@pytest.mark.parametrize(
    ("one", "other", "order"),
    [
        ("27.00.00.00", "28.00.00.00", -1),
        ("16.00.10.00", "16.00.9.00", 1),
        ("07.00.01.00", "7.0.1.0", 0),
        ("5.2-0 (19109)", "5.2-0 (19204)", -1),
        ("2B3QEXM7", "2B4QEXM7", -1),
        ("2B3Q", "GPK2", None),
        ("26.00", "26.00.00.00", None),
        ("26.00", "27.00.00.00", -1),
        ("a", "b", None),
        ("1.0rc1", "1.0", None),
    ],
)
def test_versions_are_ordered_where_they_are_numbered_alike(one: str, other: str, order: int | None) -> None:
    assert compare(one, other) == order
    assert compare(other, one) == (None if order is None else -order)


@pytest.mark.parametrize(
    ("found", "wanted", "allowed", "words"),
    [
        ("27.00", "28.00", None, ""),
        ("28.00", "27.00", None, "newer than 27.00; name 28.00 in `from`"),
        ("28.00", "28.00", None, "the same as"),
        ("GPK2", "2B3Q", None, "not numbered like"),
        ("28.00", "27.00", ["28.00"], ""),
        ("28.00.03.00", "27.00", ["28.00"], ""),
        ("28.001", "27.00", ["28.00"], "may replace only 28.00"),
        ("26.00", "28.00", ["27.00", "27.50"], "may replace only 27.00, 27.50"),
    ],
)
def test_a_step_needs_a_newer_version_or_somebody_who_allows_it(
    found: str, wanted: str, allowed: list[str] | None, words: str
) -> None:
    told = order_problem(found, wanted, allowed)
    assert (told == "") == (words == "")
    assert words in told


@given(st.text(), st.text())
def test_any_texts_can_be_compared(one: str, other: str) -> None:
    assert compare(one, other) in (-1, 0, 1, None)
    assert same_version(one, other) == same_version(other, one)
    assert same_version(one, one)
