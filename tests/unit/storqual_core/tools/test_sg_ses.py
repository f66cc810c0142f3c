# SPDX-License-Identifier: Apache-2.0
"""sg_ses: one element, one object, whatever page it is told on and wherever its line is broken.

`join.txt`, `join_filter.txt` and the pages were decoded by sg_ses 1.46 from pages that were written for this test;
`join_1.34.txt` has the layout of former releases.
"""

import re
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import sg_ses
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text, fixture_texts

JOIN, CONFIGURATION = fixture_text("sg_ses", "join.txt"), fixture_text("sg_ses", "page_cf.txt")


def by_name(text: str) -> dict[str, sg_ses.ShelfElement]:
    return {element.name or element.where: element for element in sg_ses.parse_elements(text).elements}


def test_slots_name_their_drives_and_their_faults() -> None:
    found = by_name(JOIN)
    slots = [element for element in found.values() if element.is_slot]
    assert [(slot.slot, slot.sas_address, slot.status) for slot in slots] == [
        (0, "5000c50015ea0001", "OK"),
        (1, "5000c50015ea0005", "OK"),
        (2, "5000c50015ea0009", "Critical"),
        (3, "", "Not installed"),
    ]
    assert [slot.complaints for slot in slots] == [(), (), ("status Critical", "fault sensed"), ()]
    assert [slot.flags["ident"] for slot in slots] == [0, 1, 0, 0]


def test_supplies_fans_and_temperatures_are_read_and_an_absent_sensor_is_no_reading() -> None:
    found = by_name(JOIN)
    assert found["PSU B"].complaints == ("status Critical", "fail", "ac fail")
    assert (found["Fan 1"].speed, found["Fan 2"].complaints) == (20000, ("status Critical", "fail"))
    assert [found[name].temperature for name in ("Temp Intake", "Temp Missing", "Temp Exhaust")] == [25, None, 65]
    assert found["PSU B"].where == "power supply 1 (PSU B)"
    # each type begins with an element for the type itself, of which nothing is monitored here
    assert len(found) == 20


def test_a_zero_of_an_element_that_is_not_monitored_is_no_reading() -> None:
    found = by_name(fixture_text("sg_ses", "join_1.34.txt"))
    assert (found["Temp"].status, found["Temp"].temperature) == ("Unsupported", None)
    assert by_name(JOIN.replace("Temperature=25 C", "Temperature=0 C"))["Temp Intake"].temperature == 0


def test_a_former_release_is_read() -> None:
    """Without the number of the type; the first of two phys has no device."""
    found = by_name(fixture_text("sg_ses", "join_1.34.txt"))
    assert (found["Slot 01"].sas_address, found["Slot 01"].slot) == ("5000c50015ea0002", 0)
    assert found["Slot 01"].flags["fault reqstd"] == 1
    assert found["Slot 02"].complaints == ("status Noncritical", "predicted failure")
    assert found["PS 1"].complaints == ("status Critical", "ac fail")
    assert len({(element.type_index, element.index) for element in found.values()}) == len(found) == 4


def test_pages_by_themselves_tell_their_part() -> None:
    status = sg_ses.parse_elements(fixture_text("sg_ses", "page_es.txt")).elements
    joined = sg_ses.parse_elements(JOIN).elements
    assert [(each.kind, each.index, each.status, each.flags) for each in status] == [
        (each.kind, each.index, each.status, each.flags) for each in joined
    ]
    additional = sg_ses.parse_elements(fixture_text("sg_ses", "page_aes.txt")).elements
    assert [each.sas_address for each in additional] == [each.sas_address for each in joined if each.is_slot]
    filtered = sg_ses.parse_elements(fixture_text("sg_ses", "join_filter.txt")).elements
    assert [(each.complaints, each.temperature) for each in filtered] == [
        (each.complaints, each.temperature) for each in joined
    ]


def test_another_number_of_elements_than_the_configuration_tells_is_said_and_hides_nothing() -> None:
    calls = [Call("sg_ses --page=cf /dev/sg3", CONFIGURATION), Call("sg_ses --join /dev/sg3", JOIN)]
    whole = sg_ses.read_shelf(Replay(calls), "/dev/sg3")
    assert (whole.id, whole.vendor, whole.model, whole.notes) == ("5000ccab05001000", "EXAMPLE", "SHELF24", ())
    cut = JOIN[: JOIN.index("Fan 3 [")] + JOIN[JOIN.index("[3,-1]") :]
    calls = [Call("sg_ses --page=cf /dev/sg3", CONFIGURATION), Call("sg_ses --join /dev/sg3", cut)]
    found = sg_ses.read_shelf(Replay(calls), "/dev/sg3")
    assert found.notes == ("sg_ses reports 3 elements of the type Cooling and lists 2",)
    assert len(found.elements) == 19


def test_a_slot_with_fewer_phys_than_it_counts_names_no_drive() -> None:
    odd = JOIN.replace(
        "number of phys: 1, not all phys: 0, device slot number: 0", "number of phys: 2, device slot number: 0"
    )
    found = sg_ses.parse_elements(odd)
    assert [each.sas_address for each in found.elements if each.is_slot] == [
        "",
        "5000c50015ea0005",
        "5000c50015ea0009",
        "",
    ]
    assert found.notes == ("Array device slot 0: sg_ses reports 2 phys and lists 1",)


def test_an_element_in_an_unknown_state_is_told_and_so_are_its_neighbours() -> None:
    odd = JOIN.replace("Swap=0, status: Critical", "Swap=0, status: Melting", 1)
    found = [element for element in sg_ses.parse_elements(odd).elements if element.is_slot]
    assert found[2].complaints == ("status Melting", "fault sensed")
    assert len(found) == 4


@pytest.mark.parametrize(
    "text",
    ["", "sg_ses failed: Invalid opcode\n", CONFIGURATION, fixture_text("sg3", "logs_all.txt"), "{}"],
    ids=["nothing", "failure", "configuration", "log pages", "json"],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="printed no element of a shelf"):
        sg_ses.parse_elements(text)


def test_two_elements_in_one_place_are_refused() -> None:
    with pytest.raises(ToolError, match="two elements in one place: Power supply 1"):
        sg_ses.parse_elements(JOIN.replace("PSU A [1,0]", "PSU A [1,1]"))


STATUS, ADDITIONAL = fixture_text("sg_ses", "page_es.txt"), fixture_text("sg_ses", "page_aes.txt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            JOIN.replace("PSU B [1,1]  Element type: Power supply\n", ""),
            "two elements below one heading: Power supply 0",
        ),
        (STATUS.replace("Element 0 descriptor:\n", "", 1), "two elements below one heading: Array device slot -1"),
        (ADDITIONAL.replace("Element index: 0", "Component: 0"), "an element without its heading: number of phys: 1"),
        (
            STATUS.replace("    Element type: Array device slot, sub", "    Array device slot, sub"),
            "without its type",
        ),
    ],
)
def test_lines_of_an_element_are_never_given_to_another(text: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        sg_ses.parse_elements(text)


def test_a_configuration_without_its_counts_is_refused() -> None:
    with pytest.raises(ToolError, match="no whole configuration"):
        sg_ses.parse_configuration(CONFIGURATION.replace("number of possible elements: 4", ""))


def test_a_shelf_that_refuses_is_a_sentence_and_news_of_a_reset_is_asked_again() -> None:
    line = "sg_ses --page=cf /dev/sg3"
    with pytest.raises(ToolError, match=r"the shelf at /dev/sg3 cannot be read: .*illegal request"):
        sg_ses.read_shelf(Replay([Call(line, rc=5, stderr="illegal request")]), "/dev/sg3")
    calls = [Call(line, rc=6), Call(line, CONFIGURATION), Call("sg_ses --join /dev/sg3", JOIN)]
    assert sg_ses.read_shelf(Replay(calls), "/dev/sg3").id == "5000ccab05001000"


def test_a_port_is_a_drives_when_both_names_are_of_its_four() -> None:
    assert sg_ses.same_port("5000c50015ea0001", "0x5000c50015ea0000")
    assert sg_ses.same_port("5000c500a1b2c3d5", "0x5000c500a1b2c3d7")
    assert not sg_ses.same_port("5000c50015ea0005", "0x5000c50015ea0000")
    assert not sg_ses.same_port("", "")
    assert not sg_ses.same_port("5000c50015ea0001", "naa.1")


def wrapped(text: str, width: int, *, breaks: bool) -> str:
    """The lines of fields of a text wrapped at blanks, with an indent; headings stay."""
    lines = []
    for line in text.splitlines():
        # headings are not wrapped: what is below them could not be told from them
        if ("=" not in line and ": " not in line) or re.search("Element (?:type|index)|descriptor", line):
            lines.append(line)
        else:
            indent = re.match(r" *", line)[0]  # type: ignore[index] # it always matches
            lines += textwrap.wrap(
                line,
                max(width, len(indent) + 12),
                subsequent_indent=indent + ("  " if breaks else ""),
                break_long_words=False,
                break_on_hyphens=False,
            )
    return "\n".join(lines) + "\n"


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from([text for text in fixture_texts("sg_ses") if "Configuration diagnostic" not in text]),
    st.integers(10, 120),
    st.booleans(),
)
def test_elements_are_the_same_at_every_width(text: str, width: int, breaks: bool) -> None:
    right, found = sg_ses.parse_elements(text), sg_ses.parse_elements(wrapped(text, width, breaks=breaks))
    assert [
        (e.where, e.status, e.slot, e.sas_address, e.temperature, e.speed, e.complaints) for e in found.elements
    ] == [(e.where, e.status, e.slot, e.sas_address, e.temperature, e.speed, e.complaints) for e in right.elements]
