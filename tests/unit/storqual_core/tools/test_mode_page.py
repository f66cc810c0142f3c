# SPDX-License-Identifier: Apache-2.0
"""Mode-page bytes: reading a field, setting it, planning one MODE SELECT."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.kit.settings import SETTINGS, ModeField, find
from storqual_core.tools.sg3 import check_page, get_field, plan_page, put_field

CACHING = bytes.fromhex("8812 0400 ffff 0000 ffff ffff 9020 0000 0000 0000".replace(" ", ""))
FIELDS = [
    setting.field for setting in SETTINGS.values() if setting.field is not None and setting.field.protocol is None
]


def wce(value: int) -> dict[str, tuple[ModeField, int]]:
    """What a plan takes for WCE."""
    return {"WCE": (find("drive", "WCE").field, value)}


def test_fields_are_read_where_the_standard_puts_them() -> None:
    """A caching page as a drive answers it: write cache on, 32 segments, pre-fetch up to 65535 blocks."""
    read = {
        name: get_field(CACHING, find("drive", name).field) for name in ("WCE", "RCD", "NCS", "DPTL", "DRA", "FSW")
    }
    assert read == {"WCE": 1, "RCD": 0, "NCS": 32, "DPTL": 0xFFFF, "DRA": 0, "FSW": 1}


@given(st.binary(min_size=60, max_size=60), st.sampled_from(FIELDS), st.data())
def test_setting_a_field_changes_it_and_no_other_bit(page: bytes, field: ModeField, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, (1 << field.length) - 1))
    changed = put_field(page, field, value)
    assert get_field(changed, field) == value
    assert put_field(changed, field, get_field(page, field)) == page


def test_a_value_that_does_not_fit_is_refused() -> None:
    """It would spill into the neighbouring field."""
    with pytest.raises(ValueError, match="1 bits"):
        put_field(CACHING, find("drive", "WCE").field, 2)


def test_a_plan_carries_only_the_bits_that_change() -> None:
    plan = plan_page(CACHING, b"\x88\x12" + b"\xff" * 18, wce(0))
    assert plan.mask == b"\x00\x00\x04" + bytes(17)
    assert plan.contents[2] == 0
    assert not plan.unchangeable


def test_several_fields_of_a_page_are_one_plan() -> None:
    wanted = {name: (find("drive", name).field, value) for name, value in {"WCE": 0, "DRA": 1, "NCS": 7}.items()}
    plan = plan_page(CACHING, b"\x88\x12" + b"\xff" * 18, wanted)
    assert {place for place, byte in enumerate(plan.mask) if byte} == {2, 12, 13}
    assert get_field(plan.contents, find("drive", "NCS").field) == 7


def test_a_plan_without_difference_is_empty() -> None:
    assert plan_page(CACHING, bytes(20), wce(1)).empty


def test_a_field_that_the_drive_fixes_is_named() -> None:
    assert plan_page(CACHING, bytes(20), wce(0)).unchangeable == ("WCE",)
    assert plan_page(CACHING, b"", wce(0)).unchangeable == ("WCE",)


def test_a_partly_changeable_field_takes_what_its_bits_allow() -> None:
    """Of eight bits of NCS only the lowest may change: 33 for 32 is possible, 7 is not."""
    mask = b"\x88\x12" + bytes(11) + b"\x01" + bytes(6)
    field = find("drive", "NCS").field
    assert not plan_page(CACHING, mask, {"NCS": (field, 33)}).unchangeable
    assert plan_page(CACHING, mask, {"NCS": (field, 7)}).unchangeable == ("NCS",)


@pytest.mark.parametrize(
    ("data", "subpage", "sentence"),
    [
        (b"", 0, "only 0 bytes"),
        (b"\x0a\x0a" + bytes(10), 0, "answered with page 0x0a"),
        (b"\x88\x12" + bytes(4), 0, "6 of 20 bytes"),
        (b"\xc8\x02\x00\x04" + bytes(4), 1, "subpage 0x02"),
        (b"\x88\x12" + bytes(18), 1, "not its subpage"),
    ],
)
def test_an_answer_that_is_not_the_page_is_refused(data: bytes, subpage: int, sentence: str) -> None:
    """Bytes of another page would be read as settings."""
    with pytest.raises(ToolError, match=sentence):
        check_page(data, 0x08, subpage)


def test_bytes_beyond_the_page_are_cut_off() -> None:
    assert check_page(CACHING + b"\xff\xff", 0x08, 0) == CACHING


@given(st.binary(max_size=40), st.sampled_from([0x08, 0x0A, 0x19]), st.integers(0, 2))
def test_no_answer_gives_anything_but_a_page_or_a_sentence(data: bytes, page: int, subpage: int) -> None:
    try:
        checked = check_page(data, page, subpage)
        for field in FIELDS:
            get_field(checked, field)
    except ToolError:
        return


def test_a_field_of_parallel_scsi_is_not_read_from_a_sas_port_page() -> None:
    sas_port = bytes.fromhex("990e 0600 07d0 2710 0000 0000 0000 0000".replace(" ", ""))
    assert get_field(sas_port, find("drive", "ITNLT").field) == 2000
    with pytest.raises(ToolError, match="protocol 6's, the field 1's"):
        get_field(sas_port, find("drive", "STT").field)


def test_a_page_that_ends_before_the_field_is_a_sentence() -> None:
    """SCSI-2 drives have shorter pages."""
    with pytest.raises(ToolError, match="has 12 bytes, the field needs 14"):
        get_field(bytes.fromhex("880a") + bytes(10), find("drive", "NCS").field)
