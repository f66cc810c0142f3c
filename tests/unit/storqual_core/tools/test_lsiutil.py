# SPDX-License-Identifier: Apache-2.0
"""lsiutil: ports, boards, settings, and one word of a page in NVRAM."""

from contextlib import suppress
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
    return (FIXTURES / f"{name}.txt").read_text()


def page(timeout: int = 0x10, *, flags: int = 1) -> str:
    """The coalescing page with another time-out."""
    return text_of("page").replace("00000010", f"{timeout:08x}").replace("0004 : 00000001", f"0004 : {flags:08x}")


def test_ports_and_boards_meet_in_facts() -> None:
    calls = [Call("lsiutil", text_of("table")), Call("lsiutil -b", text_of("boards"))]
    for port in (1, 2):
        calls += [Call(f"lsiutil -p{port} -i -s", text_of("display")), Call(f"lsiutil -p{port} -a 25,2,0,0", "")]
    facts = lsiutil.read_facts(Replay(calls))
    assert [(each.index, each.pci, each.model, each.firmware["firmware"]) for each in facts.adapters] == [
        ("1", "0000:c1:00.0", "HBA 0000-16i", "20.00.07.00"),
        ("2", "0000:3b:00.0", "HBA0000", "14.00.01.00"),
    ]
    assert facts.notes[0] == "a line of a newer build"
    assert facts.notes[1:] == tuple(f"port {port}: lsiutil shows no power page" for port in (1, 2))
    assert facts.adapters[0].settings["Device Missing I/O Delay"] == "7 seconds"
    assert facts.adapters[0].settings["Persistent mapping 0"].startswith("Entry 0 is Bus 0 Target 3")


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
    with pytest.raises(ToolError, match="no firmware version"):
        lsiutil.read_versions(Replay([Call("lsiutil -p1 -a 1,0", text_of("table"))]), "1")


@given(st.lists(st.one_of(st.sampled_from(POOL), st.text()), max_size=30), st.integers(0, 2000))
def test_any_text_is_read_or_refused(lines: list[str], cut: int) -> None:
    text = "\n".join(lines)[:cut]
    with suppress(ToolError):
        assert all(len(port.version) == 11 for port in lsiutil.parse_ports(text))
    with suppress(ToolError):
        assert all(len(pci) >= 12 for pci, _, _ in lsiutil.parse_boards(text).values())
    assert isinstance(lsiutil.parse_notes(text), tuple)
    with suppress(ToolError):
        assert lsiutil.parse_settings(text).keys() <= lsiutil.SETTINGS.keys()
    with suppress(ToolError):
        assert lsiutil.parse_versions(text)["firmware"]
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


def test_disks_hidden_behind_volumes_delays_and_mappings_are_shown() -> None:
    shown = lsiutil.parse_display(text_of("display"))
    assert [(each.position, each.media, each.state) for each in shown.drives] == [
        ("0:0:0", "Disk", ""),
        ("0:8:0", "EnclServ", ""),
        ("0:1", "PhysDisk 0", "hidden"),
        ("0:9", "PhysDisk 1", "hidden"),
    ]
    last = shown.drives[-1]
    assert (last.vendor, last.model, last.revision, last.wwn) == (
        *("EXAMPLE", "EX373455SS", "S52A", "0x5000c50000000002"),
    )
    sata = lsiutil.parse_display(text_of("display").replace("EXAMPLE  EX3", "ATA      EX3")).drives[-1]
    assert (sata.wwn, sata.settings) == ("", {"SASAddress": "5000c50000000002", "PhyNum": "0"})
    assert shown.settings["Device Missing Report Delay"] == "5 seconds"
    assert shown.settings["Persistent mapping"] == "Enabled"
    assert len(shown.mappings) == 1


def test_the_power_page_is_read() -> None:
    power = lsiutil.parse_power(text_of("power"))
    assert (power["CurrentPowerMode"], power["IOC temperature"]) == ("0x48", "56 Celsius")
    assert "Board temperature" not in power


@pytest.mark.parametrize("name", ["table", "boards", "page"])
def test_the_output_of_another_command_is_no_display_and_no_power_page(name: str) -> None:
    with pytest.raises(ToolError, match="neither settings nor devices"):
        lsiutil.parse_display(text_of(name))
    with pytest.raises(ToolError, match="no power page"):
        lsiutil.parse_power(text_of(name))


def test_another_number_of_ports_than_it_says_is_refused() -> None:
    with pytest.raises(ToolError, match="found 3 ports and lists 2"):
        lsiutil.parse_ports(text_of("table").replace("2 MPT Ports", "3 MPT Ports"))
    with pytest.raises(ToolError, match="does not say how many"):
        lsiutil.parse_ports("nothing of the kind")


def test_a_board_without_a_name_is_not_lost() -> None:
    line = "ioc0              0  193   0   HBA 0000-16i     03-00000-00000   SYN0000001"
    assert lsiutil.parse_boards(text_of("boards").replace(line, "ioc0  0  193   0"))["ioc0"] == (
        "0000:c1:00.0",
        "",
        "",
    )
    assert lsiutil.parse_boards(text_of("boards") + "half a row\n") == lsiutil.parse_boards(text_of("boards"))
    heading = text_of("boards").splitlines()[0]
    with pytest.raises(ToolError, match="a board that is not understood"):
        lsiutil.parse_boards(f"{heading}\nhalf a row\n")


def test_a_port_whose_name_has_blanks_keeps_it() -> None:
    text = """1 MPT Port found

     Port Name         Chip Vendor/Type/Rev    MPT Rev  Firmware Rev  IOC
 1.  Scsi Port 0       LSI Logic 53C1030 B2      102      01032700     0
"""
    (port,) = lsiutil.parse_ports(text)
    assert (port.name, port.chip, port.version) == ("Scsi Port 0", "LSI Logic 53C1030 B2", "01.03.39.00")
