# SPDX-License-Identifier: Apache-2.0
"""storcli and perccli: facts, volumes, settings and images, and every way in which they say no."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import storcli
from storqual_core.tools.capabilities import (
    AdapterFacts,
    DriveFacts,
    FirmwareImage,
    ToolFacts,
    VolumeFacts,
    VolumeRequest,
)
from tests.support.replay import Call, Replay

if TYPE_CHECKING:
    from collections.abc import Callable

FIXTURES = Path(__file__).parent / "fixtures" / "storcli"
VOLUME = VolumeFacts("239", level="5")


def said(name: str) -> str:
    """A fixture."""
    return (FIXTURES / f"{name}.json").read_text(encoding="utf-8")


def call(words: str, answer: str = "done", rc: int = 0) -> Call:
    """One command of the tool, answered with a fixture."""
    return Call(f"storcli64 {words} J nolog", said(answer), rc=rc)


def facts() -> Any:
    """The facts of the fixtures' one controller."""
    calls = [
        call("/call show all", "show_all"),
        call("/c0/eall/sall show all", "drives"),
        call("/c0/sall show all", "refused", 13),
        call("/c0/vall show all", "volumes"),
        call("/c0/v239 show init", "init"),
        *(call(f"/c0/v239 show {words}", "idle") for words in ("bgi", "cc", "migrate")),
        *(call(f"/c0/eall/sall show {words}", words) for words in ("rebuild", "copyback")),
        call("/c0/fall show", "no_foreign"),
        call("/c0/bbu show all", "use_cv", 255),
        call("/c0/cv show all", "cachevault"),
    ]
    replay = Replay(calls)
    found = storcli.read_facts(replay)
    replay.done()
    return found


def test_a_controller_is_read_with_drives_volumes_and_what_is_under_way() -> None:
    found = facts()
    (adapter,) = found.adapters
    assert (adapter.index, adapter.model, adapter.serial) == ("0", "Example RAID 9", "EX0001")
    assert (adapter.pci, adapter.driver, adapter.health) == ("0000:3b:00.0", "megaraid_sas", "Needs Attention")
    assert adapter.firmware == {"firmware": "5.1.0", "bios": "7.1"}
    assert adapter.settings["A Section Of Tomorrow / Novelty"] == "yes"
    assert adapter.ports[0].wwn == "0x500062b200000010"
    assert (adapter.enclosures[0].position, adapter.enclosures[0].slots) == ("252", 8)
    (volume,) = adapter.volumes
    assert (volume.id, volume.name, volume.level, volume.strip) == ("239", "scratch", "5", 65536)
    assert (volume.members, volume.spares) == (("252:0", "252:1", "252:2"), ("252:3",))
    assert (volume.size, volume.device) == (3906469888 * 512, "/dev/sdf")
    assert volume.policies == {
        "read_policy": "nora",
        "write_policy": "awb",
        "io_policy": "cached",
        "disk_cache": "disable",
    }
    assert (volume.healthy, volume.progress) == (True, {"initialise": 12.0, "rebuild": 41.0})
    assert "a drive is in use (code 13)" in found.notes[0]


def test_drives_have_exact_sizes_or_none() -> None:
    (adapter,) = facts().adapters
    drives = {drive.position: drive for drive in adapter.drives}
    first, second = drives["252:0"], drives["252:1"]
    assert (first.wwn, first.serial, first.size) == ("0x5000c50000000001", "SER0", 0x74706DB0 * 512)
    assert first.counters == {"Media Error Count": 3, "Predictive Failure Count": 0, "Shield Counter": 0}
    assert (second.wwn, second.size) == ("", None)
    assert drives[":5"].state == "JBOD"
    answer = storcli.data_of(said("drives_without_enclosure"), "storcli")[0]
    (drive,) = storcli.drives_of(answer, lambda _row: "")
    assert (drive.position, drive.size) == (":7", 0x74706DB0 * 512)


def test_a_volume_leads_to_its_drives() -> None:
    """By WWN where the drive says one, else by serial."""
    replay = Replay(
        [
            call("/call show all", "show_all"),
            call("/c0/eall/sall show all", "drives"),
            call("/c0/sall show all", "drives_without_enclosure"),
            call("/c0/vall show all", "volumes"),
            *(call(f"/c0/v239 show {words}", "idle") for words in ("init", "bgi", "cc", "migrate")),
            *(call(f"/c0/eall/sall show {words}", words) for words in ("rebuild", "copyback")),
        ]
    )
    assert storcli.resolve(replay, "/dev/sdf") == ("0x5000c50000000001", "SER1", "0x5000c50000000003")


def test_no_controller_is_no_error() -> None:
    assert storcli.read_facts(Replay([call("/call show all", "none", 1)])).adapters == ()
    with pytest.raises(ToolError, match="storcli finds no controller 5"):
        storcli.read_versions(Replay([call("/c5 show all", "none", 1)]), "5")


def test_a_drive_that_does_not_answer_has_no_model() -> None:
    row = {"EID:Slt": "4:3", "DID": 10, "State": "Failed", "DG": 0, "Size": "2.727 TB", "Med": "HDD", "Model": "-"}
    status = {"Controller": 0, "Status": "Failure", "Detailed Status": [{"Drive": "/c0/e4/s3", "ErrCd": 45}]}
    answer = {"Command Status": status, "Response Data": {"Drive Information": [row]}}

    (drive,) = storcli.parse_drives(json.dumps({"Controllers": [answer]}))

    assert (drive.position, drive.state, drive.media, drive.model) == ("4:3", "Failed", "HDD", "")


def test_a_failure_with_data_is_read() -> None:
    (adapter,) = storcli.parse_adapters(said("half"))
    assert (adapter.model, adapter.serial) == ("Example RAID 9", "EX0001")


REQUEST = VolumeRequest("5", ("252:0", "252:1", "252:2"))
ALL = {"read_policy": "ra", "write_policy": "wt", "io_policy": "direct"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "type=raid5 size=all drives=252:0,252:1,252:2"),
        ({"strip": 65536, "name": "r5"}, "type=raid5 size=all name=r5 drives=252:0,252:1,252:2 strip=64"),
        ({"policies": ALL}, "type=raid5 size=all drives=252:0,252:1,252:2 wt ra direct"),
        (
            {"level": "10", "members": ("252:0", "252:1", "252:2", "252:3")},
            "type=raid10 size=all drives=252:0,252:1,252:2,252:3 PDperArray=2",
        ),
        (
            {"level": "50", "members": tuple(f"252:{slot}" for slot in range(6))},
            "type=raid50 size=all drives=252:0,252:1,252:2,252:3,252:4,252:5 PDperArray=3",
        ),
    ],
)
def test_a_volume_is_made_with_its_words_in_their_order(change: dict[str, Any], words: str) -> None:
    replay = Replay([call(f"/c0 add vd {words}")])
    storcli.create(replay, "0", VolumeRequest(**{**vars(REQUEST), **change}))
    replay.done()


def test_spares_are_added_after_the_volume() -> None:
    replay = Replay(
        [
            call("/c0 add vd type=raid5 size=all drives=252:0,252:1,252:2"),
            call("/c0/e252/s3 add hotsparedrive"),
            call("/c0/s5 add hotsparedrive"),
        ]
    )
    storcli.create(replay, "0", VolumeRequest(**{**vars(REQUEST), "spares": ("252:3", ":5")}))
    replay.done()


def test_what_cannot_be_made_is_refused_with_every_reason() -> None:
    request = VolumeRequest("50", ("252:0",), 1000, "a name", {"bitmap": "internal"})
    with pytest.raises(ToolError) as told:
        storcli.create(Replay([]), "0", request)
    for words in ("RAID 50 needs 6 members", "powers of two from 8k", "no bitmap", "names have up to 15"):
        assert words in str(told.value)
    odd = VolumeRequest("10", tuple("abcde"))
    assert "needs an even number of members" in storcli.objections(odd)[0]
    assert "make no RAID 7" in storcli.objections(VolumeRequest("7", ()))[0]


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda r: storcli.delete(r, "0", VOLUME), "/c0/v239 del force"),
        (lambda r: storcli.set_policy(r, "0", VOLUME, "disk_cache", "disable"), "/c0/v239 set pdcache=off"),
        (lambda r: storcli.set_policy(r, "0", VOLUME, "write_policy", "awb"), "/c0/v239 set wrcache=awb"),
        (lambda r: storcli.set_policy(r, "0", VOLUME, "name", "x"), "/c0/v239 set name=x"),
        (lambda r: storcli.set_policy(r, "0", VOLUME, "rebuild_rate", 60), "/c0 set rebuildrate=60"),
        (lambda r: storcli.initialise(r, "0", VOLUME, "full"), "/c0/v239 start init full force"),
        (lambda r: storcli.initialise(r, "0", VOLUME, "fast"), "/c0/v239 start init force"),
        (lambda r: storcli.download(r, "0", FirmwareImage("/f.rom", "")), "/c0 download file=/f.rom"),
        (
            lambda r: storcli.download(r, "0", FirmwareImage("/f.rom", "", component="bios")),
            "/c0 download bios file=/f.rom",
        ),
    ],
)
def test_a_change_is_one_command_and_believed_only_when_all_says_success(
    act: Callable[[Replay], None], words: str
) -> None:
    replay = Replay([call(words)])
    act(replay)
    replay.done()
    with pytest.raises(ToolError, match=r"a drive is in use \(code 13\); command: storcli64"):
        act(Replay([call(words, "refused", 13)]))
    with pytest.raises(ToolError, match="storcli ended with status 255"):
        act(Replay([call(words, rc=255)]))


@pytest.mark.parametrize(
    ("name", "value"), [("read_policy", "adaptive"), ("bitmap", "none"), ("interrupt_coalescing_depth", 4)]
)
def test_what_is_not_verified_is_not_tried(name: str, value: str | int) -> None:
    with pytest.raises(ToolError, match=r"knows no .*" + name):
        storcli.set_policy(Replay([]), "0", VOLUME, name, value)
    with pytest.raises(ToolError, match=f"how storcli sets {name} is not verified"):
        storcli.write_setting(Replay([]), "0", name, value)


def test_components_and_kinds_that_the_tool_does_not_have_are_refused() -> None:
    with pytest.raises(ToolError, match="downloads firmware, package, bios, efibios, not nvdata"):
        storcli.download(Replay([]), "0", FirmwareImage("/f", "", component="nvdata"))
    with pytest.raises(ToolError, match="initialises fast or full, not none"):
        storcli.initialise(Replay([]), "0", VOLUME, "none")


def test_settings_have_canonical_names_and_plain_numbers() -> None:
    found = storcli.read_settings(Replay([call("/c0 show all", "show_all")]), "0")
    assert found == {"rebuild_rate": 30, "interrupt_coalescing_depth": 16, "interrupt_coalescing_timeout": 50}


def test_an_image_that_waits_needs_a_reboot() -> None:
    image = FirmwareImage("/f.rom", "", version="5.2.0")
    calls = [call("/c0 show all", "show_all") for _ in range(3)]
    replay = Replay(calls)
    assert storcli.read_versions(replay, "0")["firmware.pending"] == "5.2.0"
    assert storcli.activation(replay, "0", image) == "reboot"
    assert storcli.activation(replay, "0", FirmwareImage("/f.rom", "", version="5.1.0")) == "none"


def test_a_volume_is_blocks_times_the_block_size_beside_them() -> None:
    (volume,) = storcli.parse_volumes(said("volume_of_4096"))
    assert (volume.size, volume.device) == (1543503872 * 4096, "")


def test_without_a_block_size_the_printed_size_tells_it() -> None:
    text = said("volume_of_4096").replace('"Block Size": "4 KB",', "").replace('"SeSz": "4 KB",', "")
    assert storcli.parse_volumes(text)[0].size == 1543503872 * 4096


def test_blocks_that_contradict_the_printed_size_are_refused() -> None:
    with pytest.raises(ToolError, match=r"1543503872 blocks are said to be 1.000 TB"):
        storcli.parse_volumes(said("volume_of_4096").replace("5.750 TB", "1.000 TB"))


def test_a_cachevault_is_asked_for_where_it_is_no_battery() -> None:
    (adapter,) = facts().adapters
    assert adapter.settings["Backup / Type"] == "CVPM05"
    assert adapter.settings["Foreign Configurations"] == "0"


@pytest.mark.parametrize("answer", ["use_cv", "volumes"])
def test_what_does_not_tell_of_a_battery_is_refused(answer: str) -> None:
    with pytest.raises(ToolError, match="does not tell what backs the cache"):
        storcli.parse_backup(said(answer))


def test_an_overview_is_read_as_what_it_is() -> None:
    (adapter,) = storcli.parse_adapters(said("overview"))
    assert (adapter.index, adapter.model, adapter.health) == ("0", "ExampleRAID9", "Opt")
    with pytest.raises(ToolError, match="reports 2"):
        storcli.parse_adapters(said("overview").replace('Controllers": 1', 'Controllers": 2'))


def test_a_short_list_of_volumes_is_read() -> None:
    (volume,) = storcli.parse_volumes(said("volumes_short"))
    assert (volume.id, volume.level, volume.name) == ("239", "5", "scratch")
    low, high = volume.size_range or (0, 0)
    assert low < 3906469888 * 512 < high < low + 2**33


@pytest.mark.parametrize(
    ("parse", "answer"),
    [
        (storcli.parse_volumes, "done"),
        (storcli.parse_volumes, "foreign"),
        (storcli.parse_volumes, "drives"),
        (storcli.parse_adapters, "volumes"),
        (storcli.parse_adapters, "drives"),
        (storcli.parse_adapters, "foreign"),
    ],
)
def test_the_answer_to_another_command_is_refused(parse: Callable[[str], Any], answer: str) -> None:
    with pytest.raises(ToolError, match="says nothing about"):
        parse(said(answer))


def test_another_number_of_drives_than_it_says_is_refused() -> None:
    text = said("show_all").replace('"PD LIST":', '"Physical Drives": 9, "PD LIST":')
    with pytest.raises(ToolError, match=r"storcli reports 9 \(Physical Drives\) and lists"):
        storcli.parse_adapters(text)


def test_names_are_read_in_any_case() -> None:
    text = said("show_all").replace("PD LIST", "Pd List").replace("Serial Number", "SERIAL NUMBER")
    assert storcli.parse_adapters(text)[0].drives == storcli.parse_adapters(said("show_all"))[0].drives
    assert storcli.parse_adapters(text)[0].serial == "EX0001"


def test_a_member_that_tells_no_name_is_not_lost() -> None:
    behind = [DriveFacts("252:0", wwn="0x5000c50000000001"), DriveFacts("252:1")]
    volume = VolumeFacts("1", members=("252:0", "252:1"), device="/dev/sdf")
    adapter = AdapterFacts("0", drives=tuple(behind), volumes=(volume,))
    assert storcli.drives_behind(ToolFacts((adapter,)), "/dev/sdf") == ("0x5000c50000000001", "252:1")


@pytest.mark.parametrize(
    ("cache", "policies"),
    [
        ("RFWBD", {"read_policy": "ra", "write_policy": "awb", "io_policy": "direct"}),
        ("RAWBD", {"read_policy": "ra", "write_policy": "awb", "io_policy": "direct"}),
        ("RaWTD", {"write_policy": "wt", "io_policy": "direct"}),
    ],
)
def test_policies_of_every_release_are_read(cache: str, policies: dict[str, str]) -> None:
    (volume,) = storcli.parse_volumes(said("volumes_short").replace("NRWTC", cache))
    assert volume.policies == policies


@pytest.mark.parametrize("state", ["Failed", "Offln", "Msng"])
def test_a_member_that_failed_is_told(state: str) -> None:
    (volume,) = storcli.parse_volumes(said("volumes").replace('"Rbld"', f'"{state}"'))
    assert (volume.failed, volume.members) == (("252:2",), ("252:0", "252:1", "252:2"))


def test_every_section_of_what_backs_the_cache_is_kept() -> None:
    more = '"Firmware_Status": [{"Property": "Replacement required", "Value": "Yes"}], "Cachevault_Info": ['
    text = said("cachevault").replace('"Cachevault_Info": [', more)
    found = storcli.parse_backup(text)
    assert {**storcli.parse_backup(said("cachevault")), "Firmware_Status / Replacement required": "Yes"} == found


def test_the_first_releases_tell_the_place_of_a_controller_in_three_numbers() -> None:
    numbers = {"PCI Slot": "N/A", "PCI Bus Number": 17, "PCI Device Number": 0, "PCI Function Number": 1}
    answer = {"Command Status": {"Controller": 0, "Status": "Success"}}
    told: dict[str, Any] = {**answer, "Response Data": {"Product Name": "Example", **numbers}}
    assert storcli.parse_adapters(json.dumps({"Controllers": [told]}))[0].pci == "0000:11:00.1"
    told["Response Data"]["PCI Bus Number"] = "N/A"
    assert storcli.parse_adapters(json.dumps({"Controllers": [told]}))[0].pci == ""


def test_an_overview_lists_controllers_of_every_firmware() -> None:
    """Adapters without MegaRAID firmware stand in a list of their own, with their place."""
    overview = json.loads(said("overview"))
    data = overview["Controllers"][0]["Response Data"]
    data["Number of Controllers"] = 2
    data["IT System Overview"] = [{"Ctl": 1, "Model": "HBA 9400-8i", "PCI Address": "00:5e:00:00"}]
    mega, plain = storcli.parse_adapters(json.dumps(overview))
    assert (plain.index, plain.model, plain.pci) == ("1", "HBA 9400-8i", "0000:5e:00.0")
    del data["System Overview"]
    with pytest.raises(ToolError, match="reports 2 controllers and lists 1"):
        storcli.parse_adapters(json.dumps(overview))
    data["Number of Controllers"] = 1
    assert storcli.parse_adapters(json.dumps(overview)) == (plain,)
    assert mega.index != plain.index
