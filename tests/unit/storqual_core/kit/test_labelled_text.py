# SPDX-License-Identifier: Apache-2.0
"""Labels in any spelling, and printed sizes as what they can mean."""

from __future__ import annotations

import pytest

from storqual_core.kit.labelled_text import Fields, printed_size, size_range


@pytest.mark.parametrize(
    ("printed", "base", "true"),
    [
        ("960 GB", 1000, 960197124096),
        ("1.2 TB", 1000, 1200243695616),
        ("1.9 TB", 1000, 1920383410176),
        ("146 GB", 1000, 146815737856),
        ("457862 MB", 1024, 480103981056),
        ("447.1 GB", 1024, 480103981056),
        ("9.095 TiB", 1000, 10000831348736),
    ],
)
def test_a_rounded_size_is_an_interval_that_contains_the_true_size(printed: str, base: int, true: int) -> None:
    found = size_range(printed, base=base)
    assert found is not None
    assert found[0] <= true <= found[1]


def test_a_rounded_size_is_no_wider_than_its_last_digit() -> None:
    assert size_range("960 GB", base=1000) == (959 * 10**9, 961 * 10**9)
    assert size_range("1.2 TB", base=1000) == (11 * 10**11, 13 * 10**11)


@pytest.mark.parametrize("text", ["", "N/A", "12", "1,2 TB", "457 862 MB", "GB", "1e3 GB"])
def test_what_is_no_size_is_none(text: str) -> None:
    assert printed_size(text, base=1024) is None
    assert size_range(text, base=1024) is None


@pytest.mark.parametrize(
    "label",
    [
        "Reported Channel,Device(T:L)",
        "Reported Channel,Device",
        "REPORTED CHANNEL, DEVICE",
        "reported-channel device",
    ],
)
def test_a_label_is_found_in_any_spelling(label: str) -> None:
    assert Fields({label: "0,4"}).get("Reported Channel,Device(T:L)") == "0,4"


def test_a_label_that_comes_twice_keeps_both_values() -> None:
    fields = Fields()
    fields.add("Size", "1 GB")
    fields.add("SIZE", "2 GB")
    fields.add("Size", "3 GB")
    assert fields.get("size") == "1 GB"
    assert fields.printed() == {"Size": "1 GB", "SIZE": "2 GB", "Size #2": "3 GB"}
    assert fields.without("size") == {"Size #2": "3 GB"}
