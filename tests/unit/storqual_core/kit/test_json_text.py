# SPDX-License-Identifier: Apache-2.0
"""JSON in what a tool printed."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.kit.labelled_text import as_int, as_list, as_mapping, as_text, find_objects, the_object

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
    with pytest.raises(ToolError, match=r'printed no JSON object: \{"a": 1, "b"'):
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
