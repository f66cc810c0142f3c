# SPDX-License-Identifier: Apache-2.0
"""arcconf: the last line decides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import arcconf
from storqual_core.tools.capabilities import AdapterFacts, FirmwareImage, VolumeRequest
from tests.support.replay import Call, Replay

CONFIG = (Path(__file__).parent / "fixtures" / "arcconf" / "getconfig.txt").read_text(encoding="utf-8")
DONE = "\nCommand completed successfully.\n"
LIST = "Controllers found: 1\n   Controller 1:             : Optimal, Slot 8, HBA, SmartX, CSN0001, 500\n" + DONE
TASK = """Controllers found: 1
Logical device Task:
   Logical device                 : 0
   Current operation              : Rebuild
   Percentage complete            : 7
Logical device Task:
   Current operation              : None
"""
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
    assert (adapter.pci, adapter.driver, adapter.driver_version) == ("0000:3b:00.0", "smartpqi", "Linux 2.1.20-035")
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
    with pytest.raises(ToolError, match="under 'Volume 1'"):
        arcconf.parse_config(SMARTRAID.replace("Logical Device number 1", "Volume 1").replace("1/0/0", "x"))


def test_a_drive_under_another_heading_is_refused() -> None:
    with pytest.raises(ToolError, match="'Reported Channel,Device' under"):
        arcconf.parse_config(SMARTRAID.replace("      Device #4", "      Disk 4"))


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
        assert (adapter.model, adapter.driver_version) == ("SmartX 3154", "Linux 2.1.20-035")
        assert adapter.settings["Attached Cables: Cable 0"] == "CN0"


def test_members_of_a_serveraid_stand_in_the_order_of_their_stripes() -> None:
    text = """Controllers found: 1
Controller information
   Controller Status : Optimal
   Controller Model : IBM X 8
   Logical devices/Failed/Degraded : 1/0/0
Logical device information
Logical device number 4
   RAID level : 5
   Status of logical device : Optimal
   Stripe order (Channel,Device) : 0,2 0,0 1,3
"""
    (volume,) = arcconf.parse_config(text + DONE).adapters[0].volumes
    assert (volume.members, volume.healthy) == (("0 2", "0 0", "1 3"), True)


@pytest.mark.parametrize(("share", "policy"), [("0 percent", "wt"), ("90 percent", "wb"), ("100 percent", "wb")])
def test_a_share_of_no_writes_is_write_through(share: str, policy: str) -> None:
    rule = "   --------------------------------------------------------\n"
    told = f"{rule}   Cache Properties\n{rule}   Write Cache Percentage : {share}\n"
    at = SMARTRAID.index("   PCI Address")
    text = SMARTRAID[:at] + SMARTRAID[at:].replace("\n   ---", f"\n{told}   ---", 1)
    assert arcconf.parse_config(text).adapters[0].volumes[0].policies["write_policy"] == policy
