# SPDX-License-Identifier: Apache-2.0
"""Tests of storqual.report.svg: what is drawn is well-formed, escaped, and never anything that acts."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from storqual.report.svg import drawing, element, group, num, path, text

anything = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=30)


@pytest.mark.parametrize(
    ("value", "expected"), [(1.0, "1"), (0.04, "0"), (-0.04, "0"), (12.34, "12.3"), (-7.25, "-7.2"), (100, "100")]
)
def test_coordinates_are_short(value: float, expected: str) -> None:
    assert num(value) == expected


@given(label=anything, title=anything)
def test_any_text_stays_text_in_a_drawing(label: str, title: str) -> None:
    """A drive model is a label and nothing else; the picture parses as XML whatever it says."""
    picture = drawing("x", (10, 10), title, label, [text(0, 0, label), element("rect", {"class": label})])
    root = ET.fromstring(picture)  # noqa: S314 - own output
    assert [child.tag for child in root] == ["title", "desc", "text", "rect"]


def test_a_drawing_tells_what_it_shows() -> None:
    root = ET.fromstring(drawing("c1", (10, 20), "IOPS", "over block size", []))  # noqa: S314 - own output
    assert (root.get("role"), root.get("aria-labelledby"), root.get("viewBox")) == ("img", "c1-t c1-d", "0 0 10 20")
    assert [(child.tag, child.get("id"), child.text) for child in root] == [
        ("title", "c1-t", "IOPS"),
        ("desc", "c1-d", "over block size"),
    ]


@pytest.mark.parametrize("name", ["onclick", "OnLoad", "href", "src", "style", "xlink:href", 'x" y', ""])
def test_no_attribute_can_act(name: str) -> None:
    with pytest.raises(ValueError, match="no attribute of a chart"):
        element("rect", {name: "1"})


@pytest.mark.parametrize("name", ["script", "foreignObject", "a", "use", "image", "svg onload=x", ""])
def test_no_element_can_act(name: str) -> None:
    with pytest.raises(ValueError, match="no element of a chart"):
        element(name, {})


def test_children_that_are_markup_are_kept_and_texts_are_escaped() -> None:
    inner = element("b", {}, "<")
    assert element("g", {}, inner, "<i>") == Markup("<g><b>&lt;</b>&lt;i&gt;</g>")


def test_an_empty_group_is_nothing() -> None:
    assert group("x", {}, []) == ""
    assert path([]) == ""


def test_level_and_upright_lines_are_written_short() -> None:
    assert path([(0, 1), (5, 1), (9, 1), (9, 4), (10, 5), (10, 5)]) == "M0 1H9V4L10 5"
    assert path([(0, 0), (1, 0)], [(5, 5), (5, 6)], closed=True) == "M0 0H1ZM5 5V6Z"
