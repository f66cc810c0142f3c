# SPDX-License-Identifier: Apache-2.0
"""Names of drives come out the same however they are spelt, and device text is kept byte for byte."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core.host.identity import (
    designators,
    normalise_wwn,
    printed_wwn,
    same_text,
    unit_serial,
    wwn_of_page,
    wwn_of_wwid,
)
from tests.support.bench_tree import designator, vpd_page

NAA = bytes.fromhex("5000c50015ea71a0")
LONG = bytes.fromhex("600508b1001c7e1d4b3c5f6a7b8c9d0e")


@pytest.mark.parametrize(
    ("written", "expected"), json.loads(Path(__file__).with_name("wwn_spellings.json").read_text(encoding="utf-8"))
)
def test_one_spelling_for_one_name(written: str, expected: str) -> None:
    assert normalise_wwn(written) == expected
    assert normalise_wwn(expected) == expected


@pytest.mark.parametrize("text", ["/dev/sda", "0x5000c500", "0x5000c50015ea71ag", "uuid.1234", "eui.12", "naa."])
def test_what_is_no_wwn_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        normalise_wwn(text)


def test_the_best_designator_of_the_logical_unit_is_its_name() -> None:
    """NAA before EUI before T10, the unit before its port and its target, long before short."""
    page = vpd_page(
        0x83,
        designator(1, b"SEAGATE ST336607LW      3JA0", code=2)
        + designator(2, bytes.fromhex("0025385b71b00daa"))
        + designator(3, NAA)
        + designator(3, LONG)
        + designator(3, bytes.fromhex("5000c50099999999"), association=1),
    )
    assert wwn_of_page(page) == "0x" + LONG.hex()


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (designator(3, NAA), "0x5000c50015ea71a0"),
        (designator(2, bytes.fromhex("0025385b71b00daa")), "eui.0025385b71b00daa"),
        (designator(10, b"\x10\x00" + bytes(range(16))), "uuid.00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (designator(8, b"naa.5000c50015ea71a0\0\0", code=3), "0x5000c50015ea71a0"),
        (designator(1, b"QEMU    disk1  \0", code=2), "t10.qemu    disk1"),
        (designator(0, b"whatever", code=2), ""),
        (designator(3, bytes(8)), ""),
        (designator(3, NAA, association=2), ""),
    ],
)
def test_each_kind_of_designator(entry: bytes, expected: str) -> None:
    assert wwn_of_page(vpd_page(0x83, entry)) == expected


@pytest.mark.parametrize("text", ["nvme.1b36-4e564d31-51454d55-00000001", "", "eui.0000000000000000", "naa.zz"])
def test_a_name_that_the_kernel_made_up_is_no_wwn(text: str) -> None:
    """It would only repeat the serial, and zeros name every drive."""
    assert wwn_of_wwid(text) == ""


@pytest.mark.parametrize("text", ["N/A", "0000000000000000", "****************", "", "5000C500", "0x00"])
def test_what_a_tool_prints_for_no_name_is_none(text: str) -> None:
    assert printed_wwn(text) == ""
    assert printed_wwn("5000C500-15EA71A0") == "0x5000c50015ea71a0"


def test_a_serial_keeps_its_bytes_and_loses_only_what_trails() -> None:
    assert unit_serial(vpd_page(0x80, b"  A\x1b[1m\xff  \0\0")) == "  A\x1b[1m\xff"
    assert unit_serial(vpd_page(0x83, b"A")) == ""
    assert unit_serial(b"") == ""


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_no_page_makes_the_parsers_fail(page: bytes) -> None:
    assert isinstance(designators(page), list)
    assert isinstance(wwn_of_page(page), str)
    assert isinstance(unit_serial(page), str)
    assert isinstance(wwn_of_page(b"\x00\x83\x00\x40" + page), str)


@settings(deadline=None)
@given(st.binary(max_size=20))
def test_text_is_the_same_when_its_bytes_are(data: bytes) -> None:
    read = data.rstrip(b" \0").decode("latin-1")
    assert same_text(read, read)
    assert same_text(data.decode("utf-8", "surrogateescape"), read)
    assert not same_text(read + "x", read)
