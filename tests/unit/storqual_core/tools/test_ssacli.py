# SPDX-License-Identifier: Apache-2.0
"""ssacli: the indented tree, its errors, and commands that are believed only when text and status agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import ssacli
from storqual_core.tools.capabilities import FirmwareImage, VolumeRequest
from tests.support.replay import Call, Replay

TREE = (Path(__file__).parent / "fixtures" / "ssacli" / "config_detail.txt").read_text(encoding="utf-8")
ALL = "ssacli ctrl all show config detail"
ONE = "ssacli ctrl slot=3 show config detail"


def test_the_tree_is_read_whole() -> None:
    facts = ssacli.read_facts(Replay([Call(ALL, TREE)]))
    (adapter,) = facts.adapters
    assert (adapter.index, adapter.model, adapter.serial) == ("3", "Smart Array X400", "XSN0001")
    assert (adapter.pci, adapter.driver, adapter.firmware) == ("0000:5e:00.0", "hpsa", {"firmware": "4.10-0"})
    assert adapter.health == "Battery/Capacitor Status: Failed (Replace Batteries)"
    assert adapter.settings["Primary Boot Volume"] == "None"
    assert "Location" not in adapter.settings
    assert [drive.position for drive in adapter.drives] == ["1I:1:1", "1I:1:2", "1I:1:3", "1I:1:4"]
    first = adapter.drives[0]
    assert (first.wwn, first.serial, first.model, first.revision) == (
        "0x5000c50011110001",
        "DSN0001",
        "EG0300XXXXX",
        "HPD1",
    )
    assert (first.size, adapter.drives[1].wwn) == (300 * 10**9, "")
    assert [port.wwn for port in adapter.ports] == ["0x5001438011112200", ""]
    assert [(cage.position, cage.slots, cage.state) for cage in adapter.enclosures] == [("1I:1", 4, "OK")]
    assert "a line of another release" in facts.notes
    assert any(note.startswith("FIRMWARE UPGRADE REQUIRED") for note in facts.notes)


def test_volumes_tell_what_is_under_way() -> None:
    one, two = ssacli.read_volumes(Replay([Call(ONE, TREE)]), "3")
    assert (one.id, one.level, one.members, one.spares) == ("1", "1", ("1I:1:1", "1I:1:2"), ("1I:1:3",))
    assert (one.size, one.strip, one.device) == (100 * 2**30, 128 * 1024, "/dev/sdx")
    assert (one.progress, one.healthy, one.policies) == (
        {"rebuild": 32.0},
        False,
        {"write_policy": "wb", "disk_cache": "disable"},
    )
    assert (two.level, two.progress, two.healthy) == ("10", {"initialise": 12.0}, False)
    assert two.policies["write_policy"] == "wt"


def test_no_controller_is_no_error_and_an_error_is_a_sentence() -> None:
    assert ssacli.parse_controllers("\nError: No controllers detected.\n").adapters == ()
    with pytest.raises(ToolError, match=r"identified by slot, or by the words on the next line"):
        ssacli.parse_controllers(
            "Error: The controller must be identified by slot,\n       or by the words on the next line\n"
        )


def test_an_interim_recovery_is_no_rebuild() -> None:
    text = (
        "Smart Array E1 in Slot 0\n\n   array A\n\n      logicaldrive 1 (136.7 GB, RAID 5, Interim Recovery Mode)\n"
    )
    (volume,) = ssacli.parse_controllers(text).adapters[0].volumes
    assert (volume.level, volume.healthy, volume.progress) == ("5", False, {})


def test_a_volume_is_made_with_words_that_the_help_shows() -> None:
    """The strip is only a manual's word, so the tool is asked first."""
    request = VolumeRequest(level="10", members=("1I:1:1", "1I:1:2"), strip=65536)
    made = "ssacli ctrl slot=3 create type=ld drives=1I:1:1,1I:1:2 raid=1+0 ss=64 forced"
    replay = Replay([Call("ssacli help create", "[drives=...] [raid=...] [ss=8|16|32|64]"), Call(made)])
    ssacli.create(replay, "3", request)
    replay.done()
    with pytest.raises(ToolError, match="does not know ss"):
        ssacli.create(Replay([Call("ssacli help create", "nothing")]), "3", request)
    with pytest.raises(
        ToolError, match="write_policy, name, the initialisation full of a new volume is not verified"
    ):
        ssacli.create(
            Replay([]), "3", replace(request, policies={"write_policy": "wt"}, name="x", initialisation="full")
        )


@pytest.mark.parametrize(("stdout", "rc"), [("Error: This operation is not supported\n", 0), ("", 1)])
def test_a_refusal_is_seen_in_text_or_status(stdout: str, rc: int) -> None:
    (volume,) = ssacli.parse_controllers(TREE).adapters[0].volumes[:1]
    with pytest.raises(ToolError, match="the controller in slot 3 refused"):
        ssacli.delete(Replay([Call("ssacli ctrl slot=3 ld 1 delete forced", stdout, rc=rc)]), "3", volume)


def test_a_component_flashes_the_only_controller() -> None:
    image = FirmwareImage("/x/CP1.scexe", "00", "4.20-0")
    run = "sh /x/CP1.scexe -s -f"
    ssacli.download(Replay([Call(run, rc=1)]), "3", image)
    with pytest.raises(ToolError, match="status 3: it failed, or the version is older"):
        ssacli.download(Replay([Call(run, rc=3)]), "3", image)
    second = TREE + "\nSmart Array X401 in Slot 5\n"
    assert "another one in slot 5" in ssacli.firmware_objections(Replay([Call(ALL, second)]), "3", image)[0]
    assert ssacli.firmware_objections(Replay([Call(ALL, TREE)]), "3", image) == ()


def test_a_block_device_is_resolved_to_its_drives() -> None:
    """WWN where there is one, else serial; spares too."""
    assert ssacli.resolve(Replay([Call(ALL, TREE)]), "/dev/sdx") == ("0x5000c50011110001", "DSN0002", "DSN0003")
    assert ssacli.resolve(Replay([Call(ALL, TREE)]), "/dev/sda") == ()


def test_a_missing_controller_is_an_error() -> None:
    """Slots are not numbered from 0."""
    with pytest.raises(ToolError, match="no controller in slot 4"):
        ssacli.read_versions(Replay([Call("ssacli ctrl slot=4 show config detail", TREE)]), "4")


SHORT = (Path(__file__).parent / "fixtures" / "ssacli" / "config_short.txt").read_text(encoding="utf-8")


def test_an_array_of_the_short_form_has_members() -> None:
    (adapter,) = ssacli.parse_controllers(SHORT).adapters
    (volume,) = adapter.volumes
    assert (adapter.index, adapter.serial) == ("1", "PSN0001")
    assert (volume.level, volume.members, volume.spares) == ("1", ("1I:1:1", "1I:1:2"), ("1I:1:3",))
    assert [drive.state for drive in adapter.drives] == ["OK", "Predictive Failure", "OK", "OK"]
    assert adapter.drives[3].media == "SATA"
    low, high = adapter.drives[0].size_range or (0, 0)
    assert low <= 960197124096 <= high


def test_a_remark_in_brackets_is_no_part_of_a_revision() -> None:
    text = TREE.replace(
        "Firmware Revision: HPD1", "Firmware Revision: HPD5 (FW update is recommended to minimum: HPDA)"
    )
    (adapter,) = ssacli.parse_controllers(text).adapters
    assert adapter.drives[0].revision == "HPD5"
    assert "recommended" in adapter.drives[0].settings["Firmware Revision"]


def test_a_chassis_without_a_slot_is_an_adapter() -> None:
    text = "\nMSA1500 CS in MY STORAGE\n\n   array A\n\n      logicaldrive 1 (1.2 TB, RAID 5, OK)\n"
    (adapter,) = ssacli.parse_controllers(text).adapters
    assert (adapter.index, adapter.model, len(adapter.volumes)) == ("MY STORAGE", "MSA1500 CS", 1)


@pytest.mark.parametrize("volume", ["", "      logicaldrive 1 (279.4 GB, RAID 1, OK)\n"])
def test_an_array_that_failed_is_a_volume_in_a_failed_state(volume: str) -> None:
    text = (
        "Smart Array P1 in Slot 2\n\n   array A (Failed)\n\n" + volume + "\n"
        "      physicaldrive 1I:1:1 (port 1I:box 1:bay 1, SAS, 300 GB, Failed)\n"
    )
    (found,) = ssacli.parse_controllers(text).adapters[0].volumes
    assert (found.state, found.healthy, found.members) == ("Failed", False, ("1I:1:1",))


def test_a_name_that_the_controller_lends_is_no_drive_s() -> None:
    for lent in ("5001438011112205", "3001438011112205"):
        (adapter,) = ssacli.parse_controllers(TREE.replace("5000C50011110001", lent)).adapters
        assert adapter.drives[0].wwn == ""


def test_a_model_of_one_word_is_the_model() -> None:
    text = SHORT + "\n      physicaldrive 1I:1:4\n         Port: 1I\n         Model: MB1000EBZQB\n"
    drive = ssacli.parse_controllers(text).adapters[0].drives[3]
    assert (drive.vendor, drive.model) == ("", "MB1000EBZQB")


def test_a_section_of_another_release_changes_nothing_before_it() -> None:
    text = SHORT + "\n   Backup Module 3\n      Size: 4 GB\n      Status: Failed\n"
    facts = ssacli.parse_controllers(text)
    assert facts.adapters == ssacli.parse_controllers(SHORT).adapters
    assert "Backup Module 3: Status: Failed" in facts.notes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   physicaldrive 1I:1:1 (port 1I:box 1:bay 1, 300 GB): OK\n",
        "ssacli 6.15\n",
        SHORT + "\n   disk 1I:1:5\n      Rotational Speed: 10000\n",
    ],
    ids=["nothing", "drives of nobody", "another command", "a drive under another heading"],
)
def test_what_would_be_lost_is_refused(text: str) -> None:
    with pytest.raises(ToolError):
        ssacli.parse_controllers(text)


def test_status_lines_of_older_commands_are_read() -> None:
    text = (
        "Smart Array P1 in Slot 2\n   logicaldrive 1 (136.7 GB, RAID 1): OK\n"
        "   physicaldrive 1I:1:1 (port 1I:box 1:bay 1, 146 GB): Failed\n"
    )
    (adapter,) = ssacli.parse_controllers(text).adapters
    assert [(volume.level, volume.state) for volume in adapter.volumes] == [("1", "OK")]
    assert [(drive.state, drive.size) for drive in adapter.drives] == [("Failed", 146 * 10**9)]


def test_the_node_is_read_with_the_mount_points_in_its_line() -> None:
    text = TREE.replace("Disk Name: /dev/sdx", "Disk Name: /dev/sdx          Mount Points: None")
    assert ssacli.parse_controllers(text).adapters[0].volumes[0].device == "/dev/sdx"


def test_a_list_within_a_volume_ends_where_the_volume_goes_on() -> None:
    listed = "         Disk Partition Information\n            Partition   1: Basic, 1024 MiB, /boot\n"
    text = TREE.replace("         Logical Drive Label: SCRATCH\n", f"{listed}         Logical Drive Label: SCRATCH\n")
    facts = ssacli.parse_controllers(text)
    assert facts.adapters == ssacli.parse_controllers(TREE).adapters
    assert "Disk Partition Information: Partition   1: Basic, 1024 MiB, /boot" in facts.notes


def test_an_array_accelerator_is_no_array_and_a_share_of_no_writes_is_write_through() -> None:
    text = TREE.replace("         Caching:  Enabled", "         Array Accelerator: Enabled")
    for label in ("Cache Ratio: 25% Read / 75% Write", "Accelerator Ratio: 25% Read / 75% Write"):
        (volume, _) = (
            ssacli.parse_controllers(text.replace("Cache Ratio: 25% Read / 75% Write", label)).adapters[0].volumes
        )
        assert (volume.wwn, volume.policies["write_policy"]) == ("0x600508b1001c48afdd414eb0f3000001", "wb")
    text = text.replace("Cache Ratio: 25% Read / 75% Write", "Accelerator Ratio: 100% Read / 0% Write")
    assert ssacli.parse_controllers(text).adapters[0].volumes[0].policies["write_policy"] == "wt"
