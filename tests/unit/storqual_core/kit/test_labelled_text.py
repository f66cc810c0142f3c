# SPDX-License-Identifier: Apache-2.0
"""Labels in any spelling, and printed sizes as what they can mean."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.kit.labelled_text import (
    Fields,
    as_int,
    as_list,
    as_mapping,
    as_text,
    find_objects,
    printed_size,
    size_range,
    the_object,
)


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
        *("Reported Channel,Device(T:L)", "Reported Channel,Device", "REPORTED CHANNEL, DEVICE"),
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


NOTE = "WARNING: the database is old"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_notes_around_the_object_are_kept_apart() -> None:
    found, rest = find_objects(f'{NOTE}\n{{"a": 1}}\nlast words {{here}}\n')
    assert found == [{"a": 1}]
    assert rest.split("\n") == [NOTE, "", "", "last words {here}", ""]


def test_the_object_with_a_key_is_found_among_others() -> None:
    assert the_object('{"note": 1}\n{"Devices": []}', "nvme", "Devices") == {"Devices": []}
    with pytest.raises(ToolError, match="no JSON object with 'Devices'"):
        the_object('{"note": 1}', "nvme", "Devices")


def test_no_object_is_a_sentence_with_what_was_said() -> None:
    with pytest.raises(ToolError, match="storcli2 printed no JSON object: syntax error"):
        the_object("\nsyntax error, unexpected TOKEN\n", "storcli2")
    with pytest.raises(ToolError, match=r"it ends before it is whole, after '."):
        the_object('{"a": 1, "b"', "smartctl")
    with pytest.raises(ToolError, match="nothing"):
        the_object("", "smartctl")


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.text(max_size=20), st.integers(0, 200))
def test_any_cut_and_any_note_is_an_object_or_a_sentence(body: dict[str, object], note: str, cut: int) -> None:
    text = note + "\n" + json.dumps(body)
    found, _ = find_objects(text)
    assert body in found or "{" in note
    with suppress(ToolError):
        assert isinstance(the_object(text[:cut], "tool"), dict)


@given(VALUES)
def test_readers_of_values_take_everything(value: object) -> None:
    assert isinstance(as_mapping(value), dict)
    assert isinstance(as_list(value), list)
    assert isinstance(as_text(value), str)
    assert as_int(value) is None or isinstance(as_int(value), int)


def test_numbers_are_read_in_every_spelling_but_a_localised_one() -> None:
    assert [as_int(value) for value in (7, 7.0, "7", " 7.0 ", "-3")] == [7, 7, 7, 7, -3]
    assert [as_int(value) for value in (True, 7.5, "7,0", "1 000", "", "0x7", None, "9" * 5000)] == [None] * 8
