# SPDX-License-Identifier: Apache-2.0
"""sg_persist: keys are counted, every registration is told with its port, and what is cut is refused."""

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools.sg_persist import (
    Registrant,
    Reservations,
    parse_keys,
    parse_reservation,
    parse_status,
    read_reservations,
)
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

ASK = "sg_persist --no-inquiry --in --read-"
KIND = "Write Exclusive, registrants only"


def test_keys_with_and_without_the_lines_about_the_unit() -> None:
    assert parse_keys(fixture_text("sg_persist", "keys_two.txt")) == ("0x123abc", "0x123abd")
    assert parse_keys(fixture_text("sg_persist", "keys_none.txt")) == ()


def test_a_list_of_keys_that_is_cut_is_refused() -> None:
    text = fixture_text("sg_persist", "keys_two.txt")
    with pytest.raises(ToolError, match="2 keys follow, and prints 1"):
        parse_keys(text.rpartition("    0x")[0])


def test_the_reservation() -> None:
    held = parse_reservation(fixture_text("sg_persist", "reservation_held.txt"))
    assert held == Registrant("0x123abc", holder=True, kind=KIND)
    assert parse_reservation(fixture_text("sg_persist", "reservation_none.txt")) is None
    with pytest.raises(ToolError, match="not which"):
        parse_reservation("  PR generation=0x4, Reservation follows:\n    Key=0x123abc\n")


def test_registrations_by_fc_iscsi_and_sas() -> None:
    assert parse_status(fixture_text("sg_persist", "status_fc_and_iscsi.txt")) == (
        Registrant("0x123abc", "0x2100000e1e999999", holder=True, kind=KIND),
        Registrant("0x123abd", "iqn.2004-01.org.example:other"),
        Registrant("0x123abd", "0x5000c50000000009"),
    )
    assert parse_status(fixture_text("sg_persist", "status_none.txt")) == ()


@pytest.mark.parametrize(
    "name", ["21 00 00 0e 1e 99 99 99", " 00     21 00 00 0e 1e 99 99 99", "0000   21 00 00 0e-1e 99 99 99"]
)
def test_the_bytes_of_a_port_name_in_the_layouts_of_several_releases(name: str) -> None:
    text = fixture_text("sg_persist", "status_fc_and_iscsi.txt").replace(" 00     21 00 00 0e 1e 99 99 99", name)
    assert parse_status(text)[0].initiator == "0x2100000e1e999999"


def test_a_registration_that_is_cut_is_refused() -> None:
    with pytest.raises(ToolError, match="not whether it holds"):
        parse_status(fixture_text("sg_persist", "status_fc_and_iscsi.txt").partition("<<")[0])


def test_a_unit_attention_is_asked_again() -> None:
    replay = Replay(
        [Call(f"{ASK}keys /dev/sg1", rc=6), Call(f"{ASK}keys /dev/sg1", fixture_text("sg_persist", "keys_none.txt"))]
    )
    assert read_reservations(replay, "/dev/sg1") == Reservations()
    replay.done()


def test_keys_that_change_while_they_are_read_are_no_answer() -> None:
    replay = Replay(
        [
            Call(f"{ASK}keys /dev/sg1", fixture_text("sg_persist", "keys_two.txt")),
            Call(f"{ASK}reservation /dev/sg1", fixture_text("sg_persist", "reservation_none.txt")),
            Call(f"{ASK}full-status /dev/sg1", fixture_text("sg_persist", "status_none.txt")),
        ]
    )
    with pytest.raises(ToolError, match="changed while they were read"):
        read_reservations(replay, "/dev/sg1")
