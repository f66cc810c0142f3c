# SPDX-License-Identifier: Apache-2.0
"""lsiutil: ports, boards, settings, and one word of a page in NVRAM."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import lsiutil
from tests.support.replay import Call, Replay

FIXTURES = Path(__file__).parent / "fixtures" / "lsiutil"
POOL = [line for path in sorted(FIXTURES.glob("*.txt")) for line in path.read_text().splitlines()]
READ = "lsiutil -p1 -a 9,1,1,0,n,,0"


def text_of(name: str) -> str:
    """One synthetic output."""
    return (FIXTURES / f"{name}.txt").read_text()


def page(timeout: int = 0x10, *, flags: int = 1) -> str:
    """The coalescing page with another time-out."""
    return text_of("page").replace("00000010", f"{timeout:08x}").replace("0004 : 00000001", f"0004 : {flags:08x}")


def test_ports_and_boards_meet_in_facts() -> None:
    facts = lsiutil.read_facts(Replay([Call("lsiutil", text_of("table")), Call("lsiutil -b", text_of("boards"))]))
    assert [(each.index, each.pci, each.model, each.firmware["firmware"]) for each in facts.adapters] == [
        ("1", "0000:c1:00.0", "HBA 0000-16i", "20.00.07.00"),
        ("2", "0000:3b:00.0", "HBA0000", "14.00.01.00"),
    ]
    assert facts.notes == ("a line of a newer build",)


def test_an_old_release_is_read_too() -> None:
    text = text_of("old")
    (port,) = lsiutil.parse_ports(text)
    assert (port.number, port.name, port.version) == ("1", "ioc0", "00.25.47.00")
    assert lsiutil.parse_boards(text) == {"ioc0": ("0000:01:00.1", "SYN0", "")}
    assert lsiutil.parse_versions(text) == {"firmware": "00.25.47.00", "bios": "6.22.03.00"}
    assert lsiutil.parse_settings(text) == {
        "interrupt_coalescing_timeout": 16,
        "interrupt_coalescing_depth": 4,
        "sata_queue_depth": 8,
    }


def test_coalescing_is_read_from_nvram() -> None:
    replay = Replay([Call(READ, page()), Call("lsiutil -p1 -i -s", text_of("old"))])
    assert lsiutil.read_settings(replay, "1") == {
        "interrupt_coalescing_timeout": 16,
        "interrupt_coalescing_depth": 0xF4,
        "sata_queue_depth": 8,
    }


def test_one_word_is_changed_by_the_recorded_dialogue() -> None:
    replay = Replay(
        [
            Call(READ, page()),
            Call(READ, page()),
            Call(READ, page()),
            Call("lsiutil -p1 -a 9,1,1,0,y,0008,00000020,,y,,0", "Changes have been written\n"),
            Call(READ, page(0x20)),
        ]
    )
    lsiutil.write_setting(replay, "1", "interrupt_coalescing_timeout", 0x20)
    replay.done()


def test_an_old_word_that_is_not_as_expected_stops_the_write() -> None:
    """Somebody else changed it meanwhile."""
    replay = Replay([Call(READ, page(0x99))])
    with pytest.raises(ToolError, match="00000099 where 00000010 was expected: nothing was written"):
        lsiutil.write_word(replay, "1", (1, 1), 0x08, 0x10, 0x20)
    replay.done()


@pytest.mark.parametrize(("said", "left"), [("Changes have been written\n", 0x10), ("ERROR: write failed\n", 0x20)])
def test_a_write_that_is_not_there_is_told(said: str, left: int) -> None:
    calls = [Call(READ, page()), Call("lsiutil -p1 -a 9,1,1,0,y,0008,00000020,,y,,0", said), Call(READ, page(left))]
    with pytest.raises(ToolError, match="word 0008 at"):
        lsiutil.write_word(Replay(calls), "1", (1, 1), 0x08, 0x10, 0x20)


def test_what_is_not_known_is_not_written() -> None:
    assert "extended page" in lsiutil.objection(Replay([]), "1", "sata_queue_depth", 16)
    off = Replay([Call(READ, page(flags=0))])
    assert "menu 10" in lsiutil.objection(off, "1", "interrupt_coalescing_timeout", 16)
    assert "no room" in lsiutil.objection(Replay([Call(READ, page())]), "1", "interrupt_coalescing_depth", 300)
    with pytest.raises(ToolError, match="extended page"):
        lsiutil.write_setting(Replay([]), "1", "sata_queue_depth", 16)


def test_a_port_that_is_not_there_is_told() -> None:
    text = "ERROR:  No such port.  Valid ports are:\n" + text_of("table")
    with pytest.raises(ToolError, match="No such port"):
        lsiutil.read_versions(Replay([Call("lsiutil -p1 -a 1,0", text)]), "1")
    with pytest.raises(ToolError, match="no firmware version of port 1"):
        lsiutil.read_versions(Replay([Call("lsiutil -p1 -a 1,0", text_of("table"))]), "1")


@given(st.lists(st.one_of(st.sampled_from(POOL), st.text()), max_size=30), st.integers(0, 2000))
def test_any_text_is_read_or_refused(lines: list[str], cut: int) -> None:
    text = "\n".join(lines)[:cut]
    assert all(len(port.version) == 11 for port in lsiutil.parse_ports(text))
    assert all(len(pci) >= 12 for pci, _, _ in lsiutil.parse_boards(text).values())
    assert isinstance(lsiutil.parse_notes(text), tuple)
    assert lsiutil.parse_settings(text).keys() <= lsiutil.SETTINGS.keys()
    assert isinstance(lsiutil.parse_versions(text), dict)
    try:
        words = lsiutil.parse_page(text)
    except ToolError:
        return
    assert all(0 <= word <= 0xFFFFFFFF for word in words.values())


def test_recorded_outputs_are_read(transcripts: Path) -> None:
    folder = transcripts / "lsiutil"
    old = (folder / "1.62_sas6ir_settings.txt").read_text()
    assert lsiutil.parse_settings(old)["interrupt_coalescing_timeout"] == 16
    assert lsiutil.parse_boards(old)["ioc0"][0] == "0000:01:00.0"
    boards = lsiutil.parse_boards((folder / "1.70_board_name_with_space.txt").read_text())
    assert boards["ioc1"][:2] == ("0000:65:00.0", "HBA 9400-8i")
    full = (folder / "1.70_sas9207-8i_full.txt").read_text()
    assert lsiutil.parse_versions(full)["firmware"] == "20.00.07.00"
    written = lsiutil.parse_page((folder / "1.72_hba330_nvram_page_write.txt").read_text())
    assert (len(written), written[0x08]) == (18, 0x04)
