# SPDX-License-Identifier: Apache-2.0
"""mvcli and mnv_cli: records between noise, one card each."""

from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError, ToolError
from storqual_core.tools import mvcli
from storqual_core.tools.capabilities import FirmwareImage, VolumeRequest
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

FOLDER = Path(__file__).parent / "fixtures" / "mvcli"
VD, NVME = ((FOLDER / f"{name}.txt").read_text(encoding="utf-8") for name in ("vd", "nvme_hba"))


class NoFirst(Replay):
    """A bench without mvcli."""

    def __call__(self, argv: Any, **options: Any) -> Completed:
        """As the table, but one program is not there."""
        if argv[0] == "mvcli":
            raise MissingToolError("`mvcli` is not installed on this machine")
        return super().__call__(argv, **options)


def test_volumes_are_read_from_between_the_noise() -> None:
    """Sizes count in powers of 1024; a rebuild and a degraded volume are not well."""
    one, two = mvcli.read_volumes(Replay([Call("mvcli info -o vd", VD)]), "mvcli")
    assert (one.id, one.level, one.strip, one.size) == ("0", "1", 65536, 457862 << 20)
    assert (one.members, one.progress, one.healthy) == (("0", "1"), {"rebuild": 17.0}, False)
    assert (two.state, two.healthy) == ("degraded", False)
    _, notes = mvcli.parse_records(VD)
    assert notes == ("cli :error opening SG device /dev/sg9: No such device", "SG driver version 3.5.36.")


def test_cards_of_the_nvme_tool_are_counted_until_it_complains() -> None:
    calls = [
        Call("mnv_cli 0 info -o hba", NVME),
        Call("mnv_cli 0 info -o pd", ""),
        Call("mnv_cli 0 info -o vd", ""),
        Call("mnv_cli 1 info -o hba", "", "no such controller\n", 1),
    ]
    replay = NoFirst(calls)
    (card,) = mvcli.read_facts(replay).adapters
    replay.done()
    assert (card.index, card.pci, card.firmware) == ("mnv_cli 0", "0000:3b:00.0", {"firmware": "1.0.0.1060"})
    assert [port.link for port in card.ports] == ["4x", "2x"]


def test_a_card_is_flashed_by_the_tool_that_is_known_to() -> None:
    image = FirmwareImage("/x/fw.bin", "00", "1.0.0.1070")
    line = "mnv_cli 0 flash -o hba -t raw -f /x/fw.bin"
    mvcli.download(Replay([Call(line, "Flash NVMe Controller firmware success\n")]), "mnv_cli 0", image)
    with pytest.raises(ToolError, match="bad image"):
        mvcli.download(Replay([Call(line, "bad image\n")]), "mnv_cli 0", image)
    assert "not verified" in mvcli.firmware_objections(Replay([]), "mvcli", image)[0]
    assert mvcli.firmware_objections(Replay([]), "mnv_cli 0", image) == ()
    assert mvcli.read_versions(Replay([Call("mnv_cli 0 info -o hba", NVME)]), "mnv_cli 0") == {
        "firmware": "1.0.0.1060"
    }


def test_a_volume_is_made_and_seen_to_be_gone() -> None:
    replay = Replay([Call("mvcli create -o vd -r 1 -d 0,1 -n scratch -b 64", "Create VD successfully.\n")])
    mvcli.create(replay, "mvcli", VolumeRequest("1", ("0", "1"), strip=65536, name="scratch"))
    replay.done()
    volume = mvcli.read_volumes(Replay([Call("mvcli info -o vd", VD)]), "mvcli")[0]
    gone = Replay(
        [Call("mvcli delete -o vd -i 0"), Call("mvcli info -o vd", VD.replace("id:                  0", "id: 7"))]
    )
    mvcli.delete(gone, "mvcli", volume)
    with pytest.raises(ToolError, match="is still there: the tool may have asked"):
        mvcli.delete(Replay([Call("mvcli delete -o vd -i 0"), Call("mvcli info -o vd", VD)]), "mvcli", volume)
    with pytest.raises(ToolError, match="cannot be told RAID 5 of a new volume"):
        mvcli.create(Replay([]), "mvcli", VolumeRequest("5", ("0", "1", "2")))
    with pytest.raises(ToolError, match="refused: Invalid PD id"):
        mvcli.create(
            Replay([Call("mvcli create -o vd -r 0 -d 9", "SG driver version 3\nInvalid PD id\n")]),
            "mvcli",
            VolumeRequest("0", ("9",)),
        )


def test_volumes_that_would_be_lost_are_refused() -> None:
    text = fixture_text("mvcli", "vd.txt")
    with pytest.raises(ToolError, match="is told, and 2 are listed"):
        mvcli.parse_volumes(text.replace("# of VD:       2", "# of VD:       3"))
    with pytest.raises(ToolError, match="the record of a card where that of a volume"):
        mvcli.parse_volumes(fixture_text("mvcli", "nvme_hba.txt"))


def test_a_task_under_a_label_that_is_not_known_is_no_health() -> None:
    text = fixture_text("mvcli", "vd.txt").replace("BGA status:          running", "Task:   running")
    assert mvcli.parse_volumes(text)[0].healthy is False


PROGRESS = "BGA progress:        Rebuilding is running in 21%"


def test_a_volume_of_the_nvme_tool_has_members_a_strip_and_what_is_under_way() -> None:
    text = fixture_text("mvcli", "nvme_vd.txt")
    (volume,) = mvcli.parse_volumes(text)
    assert (volume.members, volume.strip, volume.healthy) == (("0", "1"), 128 * 1024, False)
    assert (volume.progress, volume.settings["pd count"]) == ({"rebuild": 21.0}, "2")
    low, high = volume.size_range or (0, 0)
    assert low <= 480103981056 <= high
    (volume,) = mvcli.parse_volumes(text.replace(PROGRESS, "").replace("Degrade", "Functional"))
    assert (volume.progress, volume.healthy) == ({}, True)


def test_drives_have_their_names_and_a_size_that_holds_the_true_one() -> None:
    text = (
        "Adapter:             0\nPD ID:               0\nType:                SATA PD\nSize:                458 G\n"
        "model:               EXAMPLE480\nSerial:              DSN0001\nSSD Type:            SSD\n"
        "WWN:                 5000000000000001\nPD status:           online\n\n"
        "PD ID:               1\nModel:               EXAMPLE960\nSector Size:         512 bytes\n"
        "LBA:                 1875385008\nSize:                894 GB\nStatus:              Idle\n\n"
        "Total # of PD:       2\n"
    )
    sata, nvme = mvcli.parse_drives(text)
    assert (sata.wwn, sata.serial, sata.media, sata.state) == ("0x5000000000000001", "DSN0001", "SSD", "online")
    assert (sata.size_range, sata.settings["type"]) == ((457 << 30, 459 << 30), "SATA PD")
    assert (nvme.size, nvme.size_range, nvme.state) == (1875385008 * 512, None, "Idle")
    with pytest.raises(ToolError, match="the record of a volume where that of a drive"):
        mvcli.parse_drives(fixture_text("mvcli", "nvme_vd.txt"))
    with pytest.raises(ToolError, match="of two drives"):
        mvcli.parse_drives(
            text.replace("PD ID:               1\n", "").replace("# of PD:       2", "# of PD:       1")
        )


def test_a_card_has_its_serial_and_the_model_that_it_is_sold_by() -> None:
    text = "Adapter ID: 0\nProduct: 1b4b-9230\nSerialNo: CSN0001\nModelNumber: Mirroring Kit\n"
    (card,) = mvcli.parse_cards(text)
    assert (card.serial, card.model) == ("CSN0001", "Mirroring Kit")


SATA_CARD = (
    "controller ID:                          0\nProduct:                             1b4b-9230\n"
    "Firmware version:                    2.3.99.1010\nHBA info image health:               Healthy\n"
)


def test_a_sata_card_begins_with_the_id_of_its_controller() -> None:
    (card,) = mvcli.parse_cards(f"Welcome to RAID Command Line Interface.\n\n> info -o hba\n\n{SATA_CARD}\n> exit\n")
    assert (card.model, card.firmware) == ("1b4b-9230", {"firmware": "2.3.99.1010"})
    assert card.settings["hba info image health"] == "Healthy"


def test_labels_of_what_has_no_id_are_refused_and_noise_is_none() -> None:
    with pytest.raises(ToolError, match="a listing without the id of what it lists: Card, Product"):
        mvcli.parse_cards(SATA_CARD.replace("controller ID", "Card"))
    noise = (
        "ls: cannot access '/dev/sd*'\ncli :error opening SG device /dev/sg0\nCLI Version: 4.1   RaidAPI Version: 5\n"
    )
    assert mvcli.parse_cards(noise) == ()


def test_each_drive_keeps_the_adapter_in_front_of_its_id() -> None:
    text = "Adapter: 0\nPD ID: 0\nmodel: EXAMPLE480\n\nAdapter: 1\nPD ID: 0\nmodel: EXAMPLE480\n\nTotal # of PD: 2\n"
    assert [drive.settings["adapter"] for drive in mvcli.parse_drives(text)] == ["0", "1"]


def test_a_volume_that_can_be_used_and_is_degraded_is_not_well() -> None:
    text = "id: 0\nstatus: functional\nRAID mode: RAID1\nPD RAID setup: 0 1\nBGA status: not running\nVD status: {}\n"
    (degraded,) = mvcli.parse_volumes(text.format("degraded"))
    (optimal,) = mvcli.parse_volumes(text.format("optimal"))
    assert (degraded.state, degraded.healthy) == ("degraded", False)
    assert (optimal.state, optimal.healthy) == ("functional", True)


def test_a_second_card_is_told() -> None:
    replay = Replay(
        [
            Call("mvcli info -o hba", SATA_CARD + SATA_CARD.replace("ID:                          0", "ID: 1")),
            Call("mvcli info -o pd", ""),
            Call("mvcli info -o vd", ""),
            Call("mnv_cli 0 info -o hba", "", "no such controller\n", 1),
        ]
    )
    assert mvcli.read_facts(replay).notes == ("mvcli lists 2 cards, of which the first is read",)


def test_a_label_without_a_colon_is_the_drive_s() -> None:
    drive = "PD ID:                        {0}\nModel:  ACME {0}\nSMART Critical                {1}\n\n"
    text = drive.format(0, "No") + drive.format(1, "Yes")
    drives = mvcli.parse_drives(text)
    assert [each.settings["smart critical"] for each in drives] == ["No", "Yes"]
    # in front of the first record it is noise, and alone it is no listing that lacks an id
    noise = "SMART Critical                No"
    assert mvcli.parse_records(f"{noise}\n{text}")[1] == mvcli.parse_records(noise)[1] == (noise,)
