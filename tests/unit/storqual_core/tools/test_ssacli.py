# SPDX-License-Identifier: Apache-2.0
"""ssacli: the indented tree, its errors, and commands that are believed only when text and status agree."""

from dataclasses import replace
from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import ssacli
from storqual_core.tools.capabilities import FirmwareImage, VolumeRequest
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

TREE = fixture_text("ssacli", "config_detail.txt")
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
        *("0x5000c50011110001", "DSN0001", "EG0300XXXXX", "HPD1"),
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
    for printed, well in (("Detected", False), ("None", True)):
        text = TREE.replace("Parity Initialization Status: In Progress", f"Unrecoverable Media Errors: {printed}")
        assert ssacli.parse_controllers(text).adapters[0].volumes[1].healthy is well
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


SHORT = fixture_text("ssacli", "config_short.txt")


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
    ["", "   physicaldrive 1I:1:1 (port 1I:box 1:bay 1, 300 GB): OK\n", "ssacli 6.15\n"],
    ids=["nothing", "drives of nobody", "another command"],
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


SCSI = Path(__file__).with_suffix(".scsi").read_text(encoding="utf-8")


@pytest.mark.parametrize("indent", ["      ", "         "], ids=["beside the volume", "below the volume"])
def test_drives_of_padded_columns_are_drives_members_and_spares(indent: str) -> None:
    (adapter,) = ssacli.parse_controllers(SCSI.format(indent=indent)).adapters
    assert [(drive.position, drive.state, drive.media, drive.size) for drive in adapter.drives] == [
        ("1:0", "Failed", "Parallel SCSI", None),
        ("2:1", "Rebuilding", "Parallel SCSI", 36_400_000_000),
        ("1:5", "OK", "Parallel SCSI", 72_800_000_000),
    ]
    (volume,) = adapter.volumes
    assert (volume.members, volume.spares, volume.progress) == (("1:0", "2:1"), ("1:5",), {"rebuild": 26.0})


@pytest.mark.parametrize(
    ("line", "name", "why"),
    [
        ("      physicaldrive 1I:1:9 / SAS, 300 GB\n", "1I:1:9 / SAS, 300 GB", "listed 'physicaldrive 1I:1:9 / SAS"),
        (
            "\n   disk 1I:1:5\n      Rotational Speed: 10000\n",
            "disk 1I:1:5",
            "'Rotational Speed' under 'disk 1I:1:5'",
        ),
    ],
)
def test_a_drive_that_is_not_understood_does_not_hide_the_others(line: str, name: str, why: str) -> None:
    *others, odd = ssacli.parse_controllers(SHORT + line).adapters[0].drives
    assert tuple(others) == ssacli.parse_controllers(SHORT).adapters[0].drives
    assert odd.position == name
    assert why in odd.unread


def test_a_drive_below_a_heading_of_another_release_is_of_no_array() -> None:
    text = SHORT.replace("   Unassigned\n", "   Reserved Drives\n")
    assert ssacli.parse_controllers(text).adapters == ssacli.parse_controllers(SHORT).adapters


SINGLE = Path(__file__).with_name("single_case")
CARD = (SINGLE / "ssacli_expander.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("label", ["WWID", "Name Of Tomorrow"])
def test_a_name_that_an_expander_lends_is_no_sata_drive_s(label: str) -> None:
    (adapter,) = ssacli.parse_controllers(CARD.replace("WWID", label, 1)).adapters
    assert [drive.wwn for drive in adapter.drives] == ["", "0x5000c50000000041"]


def test_a_card_of_another_maker_is_not_of_hpe_and_what_is_told_around_it_is_kept() -> None:
    (adapter,) = ssacli.parse_controllers(CARD).adapters
    assert (adapter.vendor, ssacli.parse_controllers(SHORT).adapters[0].vendor) == ("MSCC", "HPE")
    assert [port.name for port in adapter.ports] == ["CN1"]
    assert adapter.settings["port CN1: Port Mode"] == "Mixed"
    assert adapter.settings["port CN1: Managed Cable Serial Number"] == "CSN0001"
    assert adapter.enclosures[-1].position == "SEP (Vendor ID MSCC, Model Smart Adapter) 379"
    assert ssacli.parse_controllers(TREE).adapters[0].settings["sensor 0: Location"] == "ASIC"


WARNING = """
Warning: Unrecoverable Media Errors Detected on Drives during previous Rebuild
or Background Surface Analysis (ARM) scan. Backup and Restore are recommended. The
following logical drives are affected{}

"""


@pytest.mark.parametrize("end", [": 2", "."])
@pytest.mark.parametrize("word", ["Warning", "Note"])
@pytest.mark.parametrize(
    "before", ["   Bus Interface: PCI\n", "         Strip Size: 128 KB\n", "      physicaldrive 1I:1:2\n"]
)
def test_a_warning_in_between_takes_nothing_with_it(before: str, word: str, end: str) -> None:
    text = TREE.replace(before, WARNING.format(end).replace("Warning", word) + before, 1)
    facts = ssacli.parse_controllers(text)
    assert facts.adapters == ssacli.parse_controllers(TREE).adapters
    assert f"following logical drives are affected{end}" in facts.notes
    without_a_blank_line = text.replace(f"affected{end}\n\n", f"affected{end}\n")
    assert ssacli.parse_controllers(without_a_blank_line).adapters == facts.adapters
    unknown = TREE.replace("   Bus Interface: PCI\n", "A sentence of tomorrow\n   Bus Interface: PCI\n", 1)
    with pytest.raises(ToolError, match="stands under 'A sentence of tomorrow'"):
        ssacli.parse_controllers(unknown)


def test_members_that_failed_are_told_of_their_volume() -> None:
    text = (SINGLE / "ssacli_failed_members.txt").read_text(encoding="utf-8")
    (volume,) = ssacli.parse_controllers(text).adapters[0].volumes
    assert (volume.members, volume.failed, volume.spares) == (("1I:1:1", "1I:1:2"), ("1I:1:2",), ("1I:1:3",))


def test_a_volume_whose_heading_is_not_understood_is_not_taken_for_its_array() -> None:
    text = (SINGLE / "ssacli_new_heading.txt").read_text(encoding="utf-8")
    with pytest.raises(ToolError, match="'Fault Tolerance' under 'Volume Of Tomorrow: 1'"):
        ssacli.parse_controllers(text)
    assert ssacli.parse_controllers(text.replace("Volume Of Tomorrow", "Logical Drive")).adapters[0].volumes


def test_trouble_of_a_controller_is_told_under_any_label() -> None:
    text = "Smart Array P222 in Slot 4\n   Controller Status: OK\n   Module Status: Temporarily Disabled\n"
    assert ssacli.parse_controllers(text).adapters[0].health == "Module Status: Temporarily Disabled"


VOLUME_OF_TOMORROW = Path(__file__).with_suffix(".tomorrow").read_text(encoding="utf-8")


@pytest.mark.parametrize("label", ["Fault Tolerance: 1", "Disk Name: /dev/sda", "Mount Points: /srv 50.0 GB"])
@pytest.mark.parametrize("heading", ["Volume: 1", "Volume 1"])
def test_a_volume_under_a_heading_that_is_not_known_is_refused(label: str, heading: str) -> None:
    with pytest.raises(ToolError, match="not a known drive or volume"):
        ssacli.parse_controllers(VOLUME_OF_TOMORROW.format(label).replace("Volume: 1", heading))


def test_a_volume_in_short_under_another_word_does_not_hide_the_others() -> None:
    adapter = ssacli.parse_controllers(SHORT + "\n      pooleddrive 1 (50 GB, RAID 1, OK)\n").adapters[0]
    *others, odd = adapter.volumes
    assert tuple(others) == ssacli.parse_controllers(SHORT).adapters[0].volumes
    assert (odd.id, odd.healthy) == ("1", None)
    assert "'pooleddrive 1 (50 GB, RAID 1, OK)', which is not understood" in odd.unread
    assert adapter.unreadable() == [f"volume 1: {odd.unread}"]


def test_a_volume_below_an_array_that_is_called_otherwise_is_refused() -> None:
    """Its members would be lost with the array."""
    text = VOLUME_OF_TOMORROW.format("Fault Tolerance: 1").replace("Volume: 1", "Logical Drive: 1")
    assert ssacli.parse_controllers(text).adapters[0].volumes
    with pytest.raises(ToolError, match="'Logical Drive: 1' under 'Pool: A'"):
        ssacli.parse_controllers(text.replace("Array: A", "Pool: A"))


def test_what_stands_below_a_heading_that_is_not_known_is_not_the_controller_s() -> None:
    text = SHORT + "\n   Backup Module: 3\n      Size: 4 GB\n"
    facts = ssacli.parse_controllers(text)
    assert facts.adapters == ssacli.parse_controllers(SHORT).adapters
    assert facts.notes[-2:] == ("Backup Module: 3", "Backup Module: 3: Size: 4 GB")


def test_a_status_without_its_controller_is_read() -> None:
    (adapter,) = ssacli.parse_controllers("\n   Controller Status: OK\n   Cache Status: Failed\n").adapters
    assert (adapter.index, adapter.model, adapter.health) == ("", "", "Cache Status: Failed")
    with pytest.raises(ToolError, match="names no controller"):
        ssacli.parse_controllers("   Controller Status: OK\n   Serial Number: SN1\n")


def test_a_sentence_that_was_wrapped_at_the_margin_is_one_value() -> None:
    told = "   Bus Interface: PCI\n"
    wrapped = (
        "   Cache Status Details: The cache could not write\nall: 3 blocks wait until its\nmodule is replaced.\n"
    )
    before, after = (ssacli.parse_controllers(text) for text in (TREE, TREE.replace(told, wrapped + told, 1)))
    details = "The cache could not write all: 3 blocks wait until its module is replaced."
    settings = dict(after.adapters[0].settings)
    assert settings.pop("Cache Status Details") == details
    assert replace(after.adapters[0], settings=settings) == before.adapters[0]
    assert after.notes == before.notes


@pytest.mark.parametrize("line", ["array B", "Error: it stopped.", "unassigned", "Warning: the cache is hot"])
def test_a_line_at_the_margin_that_begins_something_is_no_rest_of_a_value(line: str) -> None:
    text = f"Smart Array P222 in Slot 4\n   Cache Status: OK\n{line}\n"
    if line.startswith("Error"):
        with pytest.raises(ToolError, match="it stopped"):
            ssacli.parse_controllers(text)
    else:
        assert ssacli.parse_controllers(text).adapters[0].settings["Cache Status"] == "OK"


def test_a_size_that_is_not_understood_stays_as_it_was_printed() -> None:
    volume = ssacli.parse_controllers(TREE).adapters[0].volumes[0]
    printed = TREE.partition("Logical Drive: 1")[2].partition("Size: ")[2].splitlines()[0]
    odd = ssacli.parse_controllers(TREE.replace(f"Size: {printed}", "Size: many GB")).adapters[0].volumes[0]
    assert ("Size" in volume.settings, odd.size, odd.settings["Size"]) == (False, None, "many GB")


def test_what_stands_behind_the_slot_is_kept() -> None:
    (adapter,) = ssacli.parse_controllers("Smart HBA H7 in Slot 0 (Embedded) (HBA Mode) (sn: PSN0003 )\n").adapters
    assert (adapter.index, adapter.serial, adapter.settings) == ("0", "PSN0003", {"Remarks": "Embedded, HBA Mode"})
    assert ssacli.parse_controllers("Smart Array 7i in Slot 0      ()\n").adapters[0].settings == {}


def test_an_enclosure_in_one_line_is_an_enclosure() -> None:
    text = (
        "Smart Array P222 in Slot 4\n\n   SEP (Vendor ID ACME, Model Cage 8) 380 (WWID: 500143800000000F)\n"
        "   Expander 381 (WWID: 5001438000000010, Port: 1I, Box: 2)\n"
    )
    (adapter,) = ssacli.parse_controllers(text).adapters
    sep, expander = adapter.enclosures
    assert (sep.vendor, sep.model) == ("ACME", "Cage 8")
    assert (expander.position, expander.model) == ("1I:2", "Expander 381")
    assert adapter.settings["Expander 381: WWID"] == "5001438000000010"
    assert len(adapter.settings) == 4


def test_a_header_that_comes_again_is_of_the_same_controller() -> None:
    drive = "   physicaldrive {0} (port {0}, SAS, 300 GB, OK)\n"
    text = "".join(f"Smart HBA H7 in Slot 0 (Embedded)\n\n{drive.format(place)}\n" for place in ("1I:1:1", "1I:1:2"))
    (adapter,) = ssacli.parse_controllers(text).adapters
    assert (adapter.index, [each.position for each in adapter.drives]) == ("0", ["1I:1:1", "1I:1:2"])
    for other in (
        "Smart HBA H7 in Slot 3",
        "Smart HBA H9 in Slot 0 (Embedded)",
        "Smart HBA H7 in Slot 0 (sn: PSN0004)",
    ):
        pair = ssacli.parse_controllers(f"{text}{other}\n\n{drive.format('2I:1:1')}").adapters
        assert [len(each.drives) for each in pair] == [2, 1]


def test_a_header_that_comes_again_ends_the_array() -> None:
    text = (
        "Smart Array P7 in Slot 1\n\n   array A\n      physicaldrive 1I:1:1 (port 1I:box 1:bay 1, SAS, 300 GB, OK)\n"
        "      logicaldrive 1 (279.4 GB, RAID 0, OK)\n"
        "Smart Array P7 in Slot 1\n\n   physicaldrive 1I:1:2 (port 1I:box 1:bay 2, SAS, 300 GB, OK)\n"
    )
    (adapter,) = ssacli.parse_controllers(text).adapters
    assert [volume.members for volume in adapter.volumes] == [("1I:1:1",)]


def test_a_spare_tells_which_drive_it_stands_for_and_its_volume_is_not_well() -> None:
    drive = "      physicaldrive 1I:1:{0} (port 1I:box 1:bay {0}, SAS, 300 GB, {1})\n"
    text = (
        "Smart Array P7 in Slot 1\n\n   array A (SAS, Unused Space: 0 MB)\n"
        "      logicaldrive 1 (279.4 GB, RAID 1, OK)\n"
        + drive.format(1, "{}")
        + drive.format(2, "OK")
        + drive.format(3, "OK, active spare for 1I:1:1")
    )
    (adapter,) = ssacli.parse_controllers(text.format("Failed")).adapters
    (volume,) = adapter.volumes
    assert (volume.spares, volume.failed, volume.state, volume.healthy) == (("1I:1:3",), ("1I:1:1",), "OK", False)
    assert [each.settings.get("Drive Type") for each in adapter.drives] == [None, None, "active spare for 1I:1:1"]
    assert ssacli.parse_controllers(text.format("OK")).adapters[0].volumes[0].healthy is True


def test_a_text_that_stands_further_in_as_a_whole_is_read() -> None:
    for by in ("    ", "\t"):
        moved = "".join(by + line if line.strip() else line for line in TREE.splitlines(keepends=True))
        assert ssacli.parse_controllers(moved) == ssacli.parse_controllers(TREE)


def test_an_expander_card_has_a_box_and_no_port() -> None:
    text = (
        "Smart Array P7 in Slot 1\n   Expander 250 \n      Device Number: 250\n      WWID: 5001438000000020\n"
        "      Box: 1\n      Vendor ID: ACME\n"
        "   ACME Expander Card SEP 248 \n      Device Number: 248\n      Box: 2\n      Model: ACME EXP\n"
        "   Internal Drive Cage at Port 2I, Box 3 (Index 1), OK\n   Internal Drive Cage at Port 1I, Box 4\n"
        "   SEP (Vendor ID ACME, Model  CAGE 8 ) 249 (WWID: 5001438000000021)\n"
    )
    (adapter,) = ssacli.parse_controllers(text).adapters
    assert [(each.position, each.model, each.state) for each in adapter.enclosures] == [
        ("Expander 250", "Expander 250", ""),
        ("ACME Expander Card SEP 248", "ACME EXP", ""),
        ("2I:3", "Internal Drive Cage", "OK"),
        ("1I:4", "Internal Drive Cage", ""),
        ("SEP (Vendor ID ACME, Model  CAGE 8 ) 249", "CAGE 8", ""),
    ]
    (odd,) = ssacli.parse_controllers(text.replace("      Box: 1\n", "      Box: 1\n      Way: 2C\n")).adapters
    assert "only part of where 'Expander 250' is" in odd.enclosures[0].state
    assert odd.enclosures[1:] == adapter.enclosures[1:]


def test_a_problem_above_the_labels_is_the_controller_s_health() -> None:
    text = (
        "Smart Array P7 in Slot 1\n\n"
        "CACHE STATUS PROBLEM DETECTED: The cache of this controller has a problem.\n"
        "                               Please replace the cache.\n\n"
        "   Slot: 1\n   Serial Number: PSN0005\n   Controller Status: OK\n   Cache Status: OK\n"
    )
    (adapter,) = ssacli.parse_controllers(text).adapters
    told = "The cache of this controller has a problem. Please replace the cache."
    assert (adapter.serial, adapter.health) == ("PSN0005", f"CACHE STATUS PROBLEM DETECTED: {told}")
    assert adapter.settings["CACHE STATUS PROBLEM DETECTED"] == told
    # with a blank line behind it and without
    assert ssacli.parse_controllers(text) == ssacli.parse_controllers(text.replace("cache.\n\n", "cache.\n"))


def test_a_cache_that_nothing_uses_is_no_trouble() -> None:
    text = "Smart Array P7 in Slot 1\n   Controller Status: OK\n   Cache Status: {}\n"
    told = {
        said: ssacli.parse_controllers(text.format(said)).adapters[0].health for said in ("Not Configured", "Failed")
    }
    assert told == {"Not Configured": "OK", "Failed": "Cache Status: Failed"}


def test_what_is_listed_before_a_controller_is_named_is_refused() -> None:
    head, _, rest = SHORT.partition("\n   Array")
    with pytest.raises(ToolError, match="names no controller before it lists: logicaldrive 1"):
        ssacli.parse_controllers(f"   Array{rest}\n\n{SHORT}")
    assert ssacli.parse_controllers(f"Warning: a note.\n\n{head}\n   Array{rest}").adapters
