# SPDX-License-Identifier: Apache-2.0
"""sas3flash: a flash is believed only with its own line, and the SAS address must survive it."""

from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError, ToolError
from storqual_core.tools import sasflash
from storqual_core.tools.capabilities import FirmwareImage
from tests.support.replay import Call, Replay

FOLDER = Path(__file__).parent / "fixtures" / "sasflash"
SINGLE = Path(__file__).with_name("single_case")
LIST, LINKS = ((FOLDER / f"{name}.txt").read_text(encoding="utf-8") for name in ("list", "links"))
ALL = (SINGLE / "sasflash_all.txt").read_text(encoding="utf-8")
IMAGE = FirmwareImage("/x/fw.bin", "00", "16.00.01.00")
READ = Call("sas3flash -c 0 -list", LIST)
FLASH = "sas3flash -c 0 -o -f /x/fw.bin"
DONE = "Firmware Flash Successful.\nAdapter Successfully Reset.\nFinished Processing Commands Successfully.\n"


class OnlyThird(Replay):
    """A bench without sas2flash."""

    def __call__(self, argv: Any, **options: Any) -> Completed:
        """As the table, but one program is not there."""
        if argv[0] == "sas2flash":
            raise MissingToolError("`sas2flash` is not installed on this machine")
        return super().__call__(argv, **options)


def test_an_adapter_is_read_with_its_phys() -> None:
    replay = OnlyThird([Call("sas3flash -listall", ALL), READ, Call("sas3flash -c 0 -o -testlsall", LINKS)])
    (adapter,) = sasflash.read_facts(replay).adapters
    assert (adapter.index, adapter.model, adapter.serial) == ("sas3flash 0", "SAS9300-8i", "SV00000001")
    assert adapter.pci == "0000:3b:00.0"
    assert adapter.firmware == {
        "firmware": "15.00.02.00",
        "bios": "08.35.00.00",
        "nvdata": "0e.01.00.07",
        "nvdata.persistent": "0e.01.00.09",
    }
    assert [port.link for port in adapter.ports] == ["Link Up, 12 Gbps", "Link Down"]


def test_an_image_is_written_and_the_address_survives() -> None:
    replay = Replay([READ, Call(FLASH, DONE), READ])
    sasflash.download(replay, "sas3flash 0", IMAGE)
    replay.done()


@pytest.mark.parametrize(
    ("said", "after", "words"),
    [
        (
            "Finished Processing Commands Successfully.\nExiting SAS3Flash.\n",
            [],
            "did not accept /x/fw.bin: Finished",
        ),
        ("ERROR: Cannot downgrade NVDATA version\n", [], "Cannot downgrade"),
        (DONE, [LIST.replace("500605b-0-1111-2220", "0000000-0-0000-0000")], "its SAS Address is 0000000"),
        (DONE, ["no adapter\n"], "could not be read: no adapter"),
    ],
)
def test_a_flash_that_went_wrong_is_a_sentence(said: str, after: list[str], words: str) -> None:
    calls = [READ, Call(FLASH, said), *(Call(READ.line, text) for text in after)]
    with pytest.raises(ToolError, match=words):
        sasflash.download(Replay(calls), "sas3flash 0", IMAGE)


def test_a_part_that_is_not_flashed_alone_is_refused() -> None:
    nvdata = FirmwareImage("/x", "00", "1", "nvdata")
    assert sasflash.firmware_objections(Replay([]), "sas3flash 0", nvdata) == (
        "sas3flash 0 flashes firmware and bios by themselves, not nvdata",
    )
    assert sasflash.firmware_objections(Replay([]), "sas3flash 0", IMAGE) == ()


def test_what_runs_needs_nothing() -> None:
    assert sasflash.activation(Replay([READ]), "sas3flash 0", IMAGE) == "reboot"
    assert sasflash.activation(Replay([READ]), "sas3flash 0", FirmwareImage("/x", "00", "15.00.02.00")) == "none"


def test_no_adapter_is_no_error_and_other_text_is() -> None:
    assert sasflash.parse_list_all("No Avago SAS adapters found! Limited Command Set Available!\n") == ()
    with pytest.raises(ToolError, match="could not be listed: command not understood"):
        sasflash.parse_list_all("command not understood\n")


def test_na_is_no_serial_and_no_version() -> None:
    adapter = sasflash.parse_adapter(LIST.replace("SV00000001", "N/A").replace("08.35.00.00", "No Image"))
    assert (adapter.serial, "bios" in adapter.firmware) == ("", False)
    assert adapter.settings["Board Tracer Number"] == "N/A"


def test_an_option_rom_that_a_download_lost_is_told() -> None:
    image = FirmwareImage("/x/fw.bin", "00", "16.00.10.00")
    calls = [
        Call("sas3flash -c 0 -list", LIST),
        Call("sas3flash -c 0 -o -f /x/fw.bin", "Firmware Flash Successful.\n"),
        Call("sas3flash -c 0 -list", LIST.replace("08.35.00.00", "N/A")),
    ]
    (told,) = sasflash.download(Replay(calls), "sas3flash 0", image)
    assert "has no bios any more, it had 08.35.00.00" in told


def test_a_row_without_an_image_is_listed() -> None:
    text = (
        "Num   Ctlr            FW Ver        NVDATA        x86-BIOS         PCI Addr\n"
        "0  SAS2008(B2)     20.00.07.00    14.01.00.08      No Image      00:01:00:00\n"
        "1  SAS2308_2(D1)   20.00.07.00    14.01.00.06    07.39.02.00     00:02:00:00\n"
    )
    bios = [each.bios for each in sasflash.parse_list_all(text)]
    assert bios == ["No Image", "07.39.02.00"]
    # the number of a row that is not understood is enough to ask the adapter
    listed = sasflash.parse_list_all(text + "2  SAS2008(B2)  20.00\n")
    assert [(each.number, each.pci) for each in listed] == [("0", "0000:01:00.0"), ("1", "0000:02:00.0"), ("2", "")]
    with pytest.raises(ToolError, match="1 rows, none of which is understood"):
        sasflash.parse_list_all("2  SAS2008(B2)  20.00\n")


def test_several_adapters_in_one_text_and_another_commands_text_are_refused() -> None:
    with pytest.raises(ToolError, match="several adapters"):
        sasflash.parse_adapter(LIST + LIST)
    with pytest.raises(ToolError, match="the links could not be read"):
        sasflash.parse_links(LIST)


def test_a_build_for_sas1_chips_tells_no_board_and_names_its_option_rom_otherwise() -> None:
    text = (SINGLE / "sasflash_sas1.txt").read_text(encoding="utf-8")
    adapter = sasflash.parse_adapter(text)
    assert (adapter.model, adapter.pci, adapter.serial) == ("1068E(B3)", "0000:08:00.0", "")
    assert adapter.firmware == {
        "firmware": "01.33.00.00",
        "bios": "06.36.00.00",
        "efi": "03.10.00.00",
        "nvdata": "0x2d03",
        "nvdata.persistent": "0x2d04",
    }
