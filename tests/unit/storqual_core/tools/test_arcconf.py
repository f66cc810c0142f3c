# SPDX-License-Identifier: Apache-2.0
"""arcconf: the last line decides."""

from dataclasses import replace
from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import arcconf
from storqual_core.tools.capabilities import AdapterFacts, FirmwareImage, VolumeRequest
from tests.support.replay import Call, Replay

FIXTURES = Path(__file__).parent / "fixtures" / "arcconf"
SINGLE = Path(__file__).with_name("single_case")
CONFIG = (FIXTURES / "getconfig.txt").read_text(encoding="utf-8")
DONE = "\nCommand completed successfully.\n"
LIST = "Controllers found: 1\n   Controller 1:             : Optimal, Slot 8, HBA, SmartX, CSN0001, 500\n" + DONE
TASK = Path(__file__).with_suffix(".task").read_text(encoding="utf-8")
READ = [Call("arcconf GETCONFIG 1 AL", CONFIG), Call("arcconf GETSTATUS 1", TASK + DONE)]


def test_a_controller_is_read_with_what_is_under_way() -> None:
    facts = arcconf.read_facts(Replay([Call("arcconf LIST", LIST), *READ]))
    (adapter,) = facts.adapters
    assert (adapter.index, adapter.serial, adapter.pci) == ("1", "CSN0001", "0000:af:00.0")
    assert adapter.firmware == {"firmware": "4.21 (7)", "bios": "4.20 (1)"}
    assert [(drive.position, drive.serial, drive.media) for drive in adapter.drives] == [
        ("0 0", "DSN0001", "HDD"),
        ("0 1", "DSN0002", "SSD"),
    ]
    (volume,) = adapter.volumes
    assert (volume.members, volume.level, volume.strip) == (("0 0", "0 1"), "1", 65536)
    assert (volume.progress, volume.healthy) == ({"rebuild": 7.0}, False)
    assert volume.policies == {"read_policy": "ra", "write_policy": "wt"}
    assert facts.notes == ("a line of another release",)


def test_nothing_under_way_leaves_a_volume_well() -> None:
    replay = Replay([READ[0], Call("arcconf GETSTATUS 1", "Controllers found: 1\n" + DONE)])
    assert [volume.healthy for volume in arcconf.read_volumes(replay, "1")] == [True]


def test_no_controller_is_no_error() -> None:
    assert arcconf.parse_list("Controllers found: 0\n" + DONE) == ()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "The requested feature is not supported on this controller.\n\nCommand aborted.",
            "feature is not supported",
        ),
        ("", "said nothing"),
        (CONFIG[:400], "could not be read"),
    ],
)
def test_what_was_not_completed_is_a_sentence(said: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        arcconf.parse_config(said, "1")


def test_an_image_is_written_and_waits_for_a_boot() -> None:
    image = FirmwareImage("/x/as.ufi", "00", "4.30")
    line = "arcconf ROMUPDATE 1 /x/as.ufi NOPROMPT"
    arcconf.download(Replay([Call(line, DONE, rc=1)]), "1", image)
    assert arcconf.activation(Replay([]), "1", image) == "reboot"
    with pytest.raises(ToolError, match="was not accepted by controller 1"):
        arcconf.download(Replay([Call(line, "Command aborted.\n")]), "1", image)
    versions = Replay([Call("arcconf GETCONFIG 1 AD", CONFIG)])
    assert arcconf.read_versions(versions, "1")["firmware"] == "4.21 (7)"


def test_a_volume_is_made_and_its_policies_set() -> None:
    line = "arcconf CREATE 1 LOGICALDRIVE NAME scratch STRIPESIZE 64 MAX 1 0 0 0 1 NOPROMPT"
    request = VolumeRequest(level="1", members=("0 0", "0 1"), strip=65536, name="scratch")
    replay = Replay([Call(line, DONE)])
    arcconf.create(replay, "1", request)
    replay.done()
    with pytest.raises(ToolError, match="hot spares of a new volume is not verified"):
        arcconf.create(Replay([]), "1", replace(request, spares=("0 2",)))
    volume = arcconf.parse_config(CONFIG, "1").adapters[0].volumes[0]
    cache = "arcconf SETCACHE 1 LOGICALDRIVE 0 {} noprompt"
    for name, value, mode in (("write_policy", "wb", "wb"), ("read_policy", "nora", "roff")):
        arcconf.set_policy(Replay([Call(cache.format(mode), DONE)]), "1", volume, name, value)
    with pytest.raises(ToolError, match="how arcconf sets io_policy"):
        arcconf.set_policy(Replay([]), "1", volume, "io_policy", "direct")


def test_a_volume_is_deleted_only_with_words_that_the_tool_shows() -> None:
    volume = arcconf.parse_config(CONFIG, "1").adapters[0].volumes[0]
    usage = Call("arcconf DELETE", "Usage: DELETE <Controller#> LOGICALDRIVE <LogDrive#> [noprompt]")
    replay = Replay([usage, Call("arcconf DELETE 1 LOGICALDRIVE 0 NOPROMPT", DONE)])
    arcconf.delete(replay, "1", volume)
    replay.done()
    with pytest.raises(ToolError, match="does not show how a logical drive is deleted"):
        arcconf.delete(Replay([Call("arcconf DELETE", "?")]), "1", volume)


def test_progress_is_that_of_the_volume() -> None:
    volume = arcconf.parse_config(CONFIG, "1").adapters[0].volumes[0]
    assert arcconf.progress(Replay([READ[1]]), "1", volume) == {"rebuild": 7.0}
    assert arcconf.progress(Replay([READ[1]]), "1", replace(volume, id="3")) == {}


SMARTRAID = (Path(__file__).parent / "fixtures" / "arcconf" / "smartraid.txt").read_text(encoding="utf-8")


def smartraid() -> AdapterFacts:
    return arcconf.parse_config(SMARTRAID).adapters[0]


def test_a_level_is_its_number_and_labels_of_smartraid_are_read() -> None:
    (volume,) = smartraid().volumes
    assert (volume.id, volume.level, volume.name, volume.device) == ("1", "6", "scratch", "/dev/sdd")
    assert volume.wwn == "0x600508b1001c0102030405060708090a"
    assert (volume.policies, volume.strip) == ({"write_policy": "wb"}, 131072)


def test_members_under_array_physical_device_information_are_told_apart_by_place() -> None:
    (volume,) = smartraid().volumes
    assert (volume.members, volume.failed, volume.healthy) == (("0 4", "0 5", "6"), ("6",), False)


def test_an_address_with_the_domain_and_the_versions_are_read() -> None:
    adapter = smartraid()
    assert (adapter.pci, adapter.driver, adapter.driver_version) == ("0000:3b:00.0", "smartpqi", "2.1.20-035")
    assert adapter.firmware == {"firmware": "5.21[0]"}
    assert [port.wwn for port in adapter.ports] == ["0x50000d1e00abcd00"]


def test_a_wwn_that_is_the_controllers_own_is_no_drives() -> None:
    assert [drive.wwn for drive in smartraid().drives] == ["", "0x5002538e00000001"]


def test_a_size_without_total_is_an_interval_that_holds_the_drives() -> None:
    first = smartraid().drives[0]
    low, high = first.size_range or (0, 0)
    assert low <= 480103981056 <= high


def test_media_is_unknown_where_nothing_says_it() -> None:
    assert [drive.media for drive in smartraid().drives] == ["", ""]
    spinning = SMARTRAID.replace("Not Applicable\n      ----", "7200 RPM\n      ----")
    assert arcconf.parse_config(spinning).adapters[0].drives[0].media == "HDD"


def test_labels_of_a_phy_are_not_the_drives() -> None:
    first = smartraid().drives[0]
    assert first.state == "Online"
    assert first.settings["Device Phy Information / Phy #0: State"] == "Enabled"


@pytest.mark.parametrize("said", ["Logical device number 0", "Logical Device number 0", "Logical drive number 0"])
def test_a_volume_is_found_under_every_name(said: str) -> None:
    text = CONFIG.replace("Logical device number 0", said)
    assert len(arcconf.parse_config(text).adapters[0].volumes) == 1


def test_another_number_of_volumes_than_it_says_is_refused() -> None:
    for other in ("2/0/0", "0/0/0"):
        with pytest.raises(ToolError, match="volumes and lists 1"):
            arcconf.parse_config(SMARTRAID.replace("1/0/0", other))
    (adapter,) = arcconf.parse_config(
        SMARTRAID.replace("Logical Device number 1", "Volume 1").replace("1/0/0", "x")
    ).adapters
    (odd,) = adapter.volumes
    assert (odd.members, odd.healthy, len(adapter.drives)) == ((), None, 2)
    assert "under 'Volume 1'" in odd.unread


def test_a_drive_under_another_heading_is_told() -> None:
    text = CONFIG.replace("      Device #1", "      Disk 1")
    (adapter,) = arcconf.parse_config(text).adapters
    assert [drive.serial for drive in adapter.drives if not drive.unread] == ["DSN0001"]
    # what may be a drive is told, and the volume does not lose the member of that serial number
    assert any("'Reported Channel,Device(T:L)' under 'Disk 1'" in why for why in adapter.unreadable())
    assert adapter.volumes[0].members == ("0 0", "DSN0002")


@pytest.mark.parametrize("text", [LIST, TASK + DONE], ids=["LIST", "GETSTATUS"])
def test_the_answer_to_another_command_is_no_configuration(text: str) -> None:
    with pytest.raises(ToolError, match="not an answer to GETCONFIG"):
        arcconf.parse_config(text)


def test_a_configuration_is_no_list_of_tasks_and_no_list_of_controllers() -> None:
    with pytest.raises(ToolError, match="not an answer to GETSTATUS"):
        arcconf.parse_tasks(CONFIG)
    with pytest.raises(ToolError, match="says that it found 1 controllers and lists 0"):
        arcconf.parse_list(CONFIG)


@pytest.mark.parametrize(
    ("operation", "percent", "task"),
    [
        ("Build/Verify with fix", "90", {"initialise": 90.0}),
        ("Verify without fix", "12.5 %", {"check": 12.5}),
        ("Reconfiguration", "3", {"reshape": 3.0}),
        ("Something new", "3", {"something new": 3.0}),
    ],
)
def test_a_task_is_not_idle_in_any_spelling(operation: str, percent: str, task: dict[str, float]) -> None:
    text = f"Logical Device : 2\n  Current Operation : {operation}\n  Percentage Complete : {percent}\n"
    assert arcconf.parse_tasks("Logical Device Task:\n  " + text + DONE) == {"2": task}


def test_a_task_of_no_volume_is_refused() -> None:
    with pytest.raises(ToolError, match=r"a task \(rebuild\)"):
        arcconf.parse_tasks("Logical Device Task:\n  Current operation : Rebuild\n" + DONE)


def test_a_rule_after_the_last_line_is_no_error() -> None:
    rule = "-" * 70 + "\n"
    assert arcconf.parse_tasks(TASK + DONE + rule) == {"0": {"rebuild": 7.0}}
    assert arcconf.parse_config(CONFIG + rule).adapters


def test_a_state_that_tells_how_far_it_is() -> None:
    text = SMARTRAID.replace(": Optimal\n   Size", ": Degraded, Rebuilding ( Rebuild : 38 % )\n   Size")
    (volume,) = arcconf.parse_config(text).adapters[0].volumes
    assert (volume.progress, volume.healthy) == ({"rebuild": 38.0}, False)


def test_a_segment_that_is_missing_is_no_member_without_a_name() -> None:
    text = (
        "Controllers found: 1\nLogical device information\nLogical device number 0\n"
        "   Logical device name : old\n   RAID level : 1\n"
        "   Status of logical device : Degraded\n   Dedicated Hot-Spare : 0,12\n   Dedicated Hot-Spare : 0,13\n"
        "   Logical device segment information\n"
        "   Segment 0 : Present (2861588MB, SATA, HDD, Channel:0, Device:10)      DSN0001\n"
        "   Segment 1 : Missing\n" + DONE
    )
    (volume,) = arcconf.parse_config(text).adapters[0].volumes
    assert (volume.members, volume.failed, volume.healthy) == (("0 10",), (), False)
    assert volume.spares == ("0 12", "0 13")
    assert volume.settings["Logical device segment information: Segment 1"] == "Missing"


def test_members_of_a_serveraid_stand_in_one_line_and_okay_is_well() -> None:
    text = (
        "Controllers found: 1\nController information\n   Controller Status : Okay\n   Controller Model : IBM X 6\n"
        "   Logical drives/Offline/Critical : {}/0/0\nLogical drive information\nLogical drive number 1\n"
        "   RAID level : 1\n   Status of logical drive : Okay\n   Drive(s) (Channel,Device) : 1,0 1,1\n" + DONE
    )
    (volume,) = arcconf.parse_config(text.format(1)).adapters[0].volumes
    assert (volume.members, volume.healthy) == (("1 0", "1 1"), True)
    with pytest.raises(ToolError, match="says that it has 2 volumes and lists 1"):
        arcconf.parse_config(text.format(2))


def test_a_drive_that_does_not_answer_has_no_size_and_no_serial_is_unknown() -> None:
    text = SMARTRAID.replace("Total Size                           : 457862 MB", "Total Size : 0 MB")
    adapter = arcconf.parse_config(text.replace(": CSN0002", ": Unknown")).adapters[0]
    assert (adapter.drives[1].size, adapter.drives[1].size_range, adapter.serial) == (None, None, "")


def test_no_operation_under_no_task_is_idle_and_another_is_refused() -> None:
    text = "Controllers found: 1\n\nCurrent operation              : {}\n"
    assert arcconf.parse_tasks(text.format("None") + DONE) == {}
    with pytest.raises(ToolError, match="an operation stands under no task"):
        arcconf.parse_tasks(text.format("Rebuild") + DONE)


def test_a_list_within_an_object_ends_where_the_object_goes_on() -> None:
    listed = "   Attached Cables\n      Cable 0 : CN0\n"
    for before in ("   Controller Model ", "   Driver  "):
        adapter = arcconf.parse_config(SMARTRAID.replace(before, listed + before, 1)).adapters[0]
        assert (adapter.model, adapter.driver_version) == ("SmartX 3154", "2.1.20-035")
        assert adapter.settings["Attached Cables: Cable 0"] == "CN0"


def test_members_of_a_serveraid_stand_in_the_order_of_their_stripes() -> None:
    text = (SINGLE / "arcconf_short.txt").read_text(encoding="utf-8")
    (volume,) = arcconf.parse_config(text + DONE).adapters[0].volumes
    assert (volume.members, volume.healthy) == (("0 2", "0 0", "1 3"), True)


@pytest.mark.parametrize(("share", "policy"), [("0 percent", "wt"), ("90 percent", "wb"), ("100 percent", "wb")])
def test_a_share_of_no_writes_is_write_through(share: str, policy: str) -> None:
    rule = "   --------------------------------------------------------\n"
    told = f"{rule}   Cache Properties\n{rule}   Write Cache Percentage : {share}\n"
    at = SMARTRAID.index("   PCI Address")
    text = SMARTRAID[:at] + SMARTRAID[at:].replace("\n   ---", f"\n{told}   ---", 1)
    assert arcconf.parse_config(text).adapters[0].volumes[0].policies["write_policy"] == policy


ENCLOSURE = (SINGLE / "arcconf_enclosure.txt").read_text(encoding="utf-8")


def test_an_enclosure_is_told_and_other_devices_are_kept() -> None:
    text = SMARTRAID.replace("\n\n\nCommand completed", f"\n{ENCLOSURE}\n\nCommand completed")
    adapter = arcconf.parse_config(text).adapters[0]
    assert [(each.position, each.vendor, each.model) for each in adapter.enclosures] == [("2 0", "ACME", "BP 8")]
    assert adapter.settings["device 2 0: Status of Enclosure Services Device: Speaker status"] == "Not Available"
    assert adapter.settings["device 0: Backplane ID"] == "7"
    assert adapter.drives == arcconf.parse_config(SMARTRAID).adapters[0].drives


@pytest.mark.parametrize("label", ["Transfer Speed", "Negotiated Transfer Speed"])
def test_a_name_that_an_expander_lends_is_no_sata_drive_s(label: str) -> None:
    text = SMARTRAID.replace("\n\n\nCommand completed", f"\n{ENCLOSURE}\n\nCommand completed")
    text = text.replace("5002538E00000001", "53CE5A0000000001")
    for speed, wwn in (("SATA 6.0 Gb/s", ""), ("SAS 12.0 Gb/s", "0x53ce5a0000000001")):
        told = text.replace("      Device #5\n", f"      Device #5\n         {label} : {speed}\n")
        assert arcconf.parse_config(told).adapters[0].drives[1].wwn == wwn


def test_a_member_on_a_backplane_is_found_by_its_place() -> None:
    text = SMARTRAID.replace("Enclosure 1, Slot 1(", "Backplane 0, Slot 1(")
    text = text.replace(
        "Device 5                                   : Present (457862MB", "Device 9 : Present (457862MB"
    )
    text = text.replace("Connector:CN0, Enclosure:1, Slot:1) SAME", "Connector:CN0, Backplane:0, Slot:1) SAME")
    assert arcconf.parse_config(text).adapters[0].volumes[0].members[1] == "0 5"


def test_a_name_that_the_phy_s_other_end_lends_is_no_sata_drive_s() -> None:
    """A build that does not tell the controller's own name tells it of each phy that is attached to it."""
    text = (SINGLE / "arcconf_attached_phy.txt").read_text(encoding="utf-8")
    assert arcconf.parse_config(text).adapters[0].drives[0].wwn == ""
    own = text.replace("name                    : 50000D1101D8A111", "name                    : 5000C50000000011")
    assert arcconf.parse_config(own).adapters[0].drives[0].wwn == "0x5000c50000000011"


def test_a_channel_ends_the_device_of_the_channel_before() -> None:
    text = (SINGLE / "arcconf_several.txt").read_text(encoding="utf-8")
    (adapter,) = arcconf.parse_config(text + DONE).adapters
    assert [(each.position, each.vendor) for each in adapter.enclosures] == [("device 6", "ACME")]
    channels = {name: value for name, value in adapter.settings.items() if name.startswith("channel")}
    assert channels == {"channel 0: Transfer Speed": "Ultra160", "channel 1: Transfer Speed": "Ultra320"}
    assert not any("Ultra" in value for name, value in adapter.settings.items() if name.startswith("device"))


def test_a_drive_on_a_connector_is_no_member_in_an_enclosure_of_the_same_numbers() -> None:
    text = (FIXTURES / "connector.txt").read_text(encoding="utf-8")
    (volume,) = arcconf.parse_config(text + DONE).adapters[0].volumes
    assert volume.members == ("DSN0001", "0 5")


def test_what_a_lane_is_plugged_into_lends_no_drive_its_name() -> None:
    lane = """   --------------------------------------------------------
   Lane SAS Phy Information
   --------------------------------------------------------
      SAS Address                           : 50000D1700000010
      Attached SAS Address                  : 5000C50011110002
"""
    before = CONFIG.replace(
        "\n   --------------------------------------------------------\n   Controller Ver", "\n{}", 1
    )
    text = before.replace(
        "{}", lane + "   --------------------------------------------------------\n   Controller Ver"
    )
    (adapter,) = arcconf.parse_config(text).adapters
    assert adapter.drives[0].wwn == "0x5000c50011110001"
    assert [port.wwn for port in adapter.ports] == ["0x50000d1700000010"]
    assert adapter.settings["Lane SAS Phy Information: Attached SAS Address"] == "5000C50011110002"


def test_that_there_is_none_of_something_is_kept_and_heads_nothing() -> None:
    rule = "      ----------------------------------------------------------------\n"
    said = f"{rule}      Device Phy Information\n{rule}         No Phy information available\n"
    text = CONFIG.replace("      Device #1\n", f"{said}      Device #1\n")
    facts = arcconf.parse_config(text)
    first, second = facts.adapters[0].drives
    assert first.settings["Device Phy Information"] == "No Phy information available"
    assert second == arcconf.parse_config(CONFIG).adapters[0].drives[1]
    # where no title stands before it, the labels behind it are still the object's own
    alone = arcconf.parse_config(CONFIG.replace("   Controller Model  ", "   No battery\n   Controller Model  "))
    assert (alone.adapters[0].model, alone.adapters[0].settings["Note"]) == ("SmartX 1100", "No battery")


CONNECTORS = Path(__file__).with_suffix(".connectors").read_text(encoding="utf-8")


def test_connectors_after_the_devices_are_the_controller_s() -> None:
    text = CONFIG.replace("\n\n\nCommand completed", f"\n{CONNECTORS}\n\nCommand completed")
    text = text.replace("5000C50011110001", "50000D1700000011")
    (adapter,) = arcconf.parse_config(text).adapters
    assert [port.wwn for port in adapter.ports] == ["0x50000d1700000010"]
    assert adapter.settings["Connector information: Connector #0: SAS Address"] == "50000D1700000010"
    # the name that it lends a drive is not the drive's
    assert adapter.drives[0].wwn == ""
    assert arcconf.parse_config(text.replace(CONNECTORS, "")).adapters[0].drives[0].wwn == "0x50000d1700000011"


def test_connectors_within_the_controller_do_not_end_it() -> None:
    version = "   --------------------------------------------------------\n   Controller Version Information"
    (adapter,) = arcconf.parse_config(CONFIG.replace(version, f"{CONNECTORS}{version}")).adapters
    assert adapter.firmware == {"firmware": "4.21 (7)", "bios": "4.20 (1)"}
    assert [port.wwn for port in adapter.ports] == ["0x50000d1700000010"]


@pytest.mark.parametrize(
    ("kind", "size"), [("State of the bay : Online", "Total Capacity"), ("Device is a Storage Class Memory", "Size")]
)
def test_a_device_that_may_be_a_drive_and_does_not_say_so_is_told(kind: str, size: str) -> None:
    text = CONFIG.replace("Device is a Hard drive", kind, 1).replace("  Total Size  ", f"  {size}  ")
    odd, sound = arcconf.parse_config(text).adapters[0].drives
    assert "lists device #0 and no kind that is understood: " in odd.unread
    assert (sound.serial, sound.unread) == ("DSN0002", "")


TEXT = (SINGLE / "arcconf_backup_unit.txt").read_text(encoding="utf-8")
BATTERY, UNIT, GREEN = (
    "Controller Battery Information",
    "Controller Cache Backup Unit Information",
    "Green Backup Information",
)


def health(title: str, lines: str, *, status: str = "Optimal", temperature: str = "42 C/ 107 F (Normal)") -> str:
    """What is told of the health of a controller with these lines."""
    text = TEXT.format(status=status, temperature=temperature, title=title, lines=lines)
    return str(arcconf.parse_config(text).adapters[0].health)


@pytest.mark.parametrize(
    ("title", "lines"),
    [
        (BATTERY, "Status : Optimal\n   Over temperature : No\n   Capacity remaining : 100 percent"),
        (BATTERY, "Status : Not Installed"),
        ("Controller ZMM Information", "Status : ZMM Optimal"),
        ("Controller ZMM Information", "Status : ZMM not installed"),
        (UNIT, "Overall Backup Unit Status : Ready\n   Non-Volatile Storage Status : Ready"),
        (UNIT, "Overall Backup Unit Status : Ready\n   Supercap Status : Ready"),
        (UNIT, "Overall Backup Unit Status : Not Present"),
        ("Supercap Information", "Health : 94 percent\n   Learn Status : Idle"),
        ("Supercap Information", "Learn Status : In Progress"),
        ("Cache Properties", "Cache Status : Ok\n   Cache State : Enabled"),
        ("Cache Properties", "Cache Status : Not Configured"),
        (GREEN, "Backup Power Status : Ok\n   Hardware Error : No Error\n   Health Status : 88 percent"),
        ("Cache Properties", "Status : Temporarily Disabled by its owner"),
    ],
)
def test_a_controller_whose_parts_are_well_is_told_by_its_own_status(title: str, lines: str) -> None:
    assert health(title, lines) == "Optimal"
    assert health(title, lines, status="Degraded") == "Degraded"


@pytest.mark.parametrize(
    ("title", "lines", "told"),
    [
        (BATTERY, "Status : Failed", "Status: Failed"),
        (BATTERY, "Status : Charging", "Status: Charging"),
        (BATTERY, "Status : Optimal\n   Over temperature : Yes", "Over temperature: Yes"),
        ("Controller ZMM Information", "Status : ZMM failed", "Status: ZMM failed"),
        (UNIT, "Overall Backup Unit Status : Not Ready", "Overall Backup Unit Status: Not Ready"),
        (UNIT, "Supercap Status : Fatal", "Supercap Status: Fatal"),
        ("Supercap Information", "Status : Failed", "Status: Failed"),
        (GREEN, "Backup Power Status : Not Fully Charged", "Backup Power Status: Not Fully Charged"),
        (GREEN, "Hardware Error : Over Voltage", "Hardware Error: Over Voltage"),
        (BATTERY, "Status : Optimal\n   Status : Failed", "Status #2: Failed"),
        ("Cache Properties", "Cache Status : Permanently Disabled", "Cache Status: Permanently Disabled"),
    ],
)
def test_what_is_wrong_beside_a_status_that_is_well_is_told(title: str, lines: str, told: str) -> None:
    assert health(title, lines) == f"{title}: {told}"


@pytest.mark.parametrize("temperature", ["99 C/ 210 F (Abnormal)", "77 C/ 170 F (Too High)"])
def test_a_controller_that_is_too_hot_is_told(temperature: str) -> None:
    assert health(BATTERY, "Status : Optimal", temperature=temperature) == f"Temperature: {temperature}"


@pytest.mark.parametrize("temperature", ["Not Supported", "-4 C/ 25 F (Normal)", "34 C/ 93 F"])
def test_a_controller_without_a_word_of_its_temperature_is_well(temperature: str) -> None:
    assert health(BATTERY, "Status : Optimal", temperature=temperature) == "Optimal"


def test_all_that_is_wrong_is_told_at_once() -> None:
    told = health(BATTERY, "Status : Failed", status="Failed", temperature="99 C/ 210 F (Abnormal)")
    assert told.split("; ") == [
        "Controller Status: Failed",
        f"{BATTERY}: Status: Failed",
        "Temperature: 99 C/ 210 F (Abnormal)",
    ]
