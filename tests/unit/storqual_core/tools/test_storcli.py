# SPDX-License-Identifier: Apache-2.0
"""storcli and perccli: facts, volumes, settings and images, and every way in which they say no."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import storcli, storcli2
from storqual_core.tools.capabilities import (
    AdapterFacts,
    DriveFacts,
    FirmwareImage,
    ToolFacts,
    VolumeFacts,
    VolumeRequest,
)
from tests.support.replay import Call, Replay

FOLDERS = Path(__file__).parent / "fixtures"
FIXTURES = FOLDERS / "storcli"
VOLUME = VolumeFacts("239", level="5")


def said(name: str) -> str:
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


DETAILED = said("volumes")
DETAILED_2 = (FOLDERS / "storcli2" / "volumes_4096.json").read_text(encoding="utf-8")


def operations(told: str, state: str = "Onln") -> str:
    """The detailed volume with these operations, and its third drive in this state."""
    return DETAILED.replace('"Rbld"', f'"{state}"').replace(
        '"OS Drive Name"', f'"Active Operations": "{told}", "OS Drive Name"'
    )


def answer(data: Mapping[str, object]) -> str:
    """What a controller answers with this data."""
    status = {"Controller": 0, "Status": "Success", "Description": "None"}
    return json.dumps({"Controllers": [{"Command Status": status, "Response Data": data}]})


@pytest.mark.parametrize(
    ("told", "progress"),
    [
        ("None", {}),
        ("Consistency Check (36%)", {"check": 36.0}),
        ("Background Initialization (0%)", {"initialise": 0.0}),
        ("Initialization (7%), Consistency Check", {"initialise": 7.0, "check": 0.0}),
        ("Reconstruction (2.5 %)", {"reshape": 2.5}),
        ("Polishing (9%)", {"Polishing": 9.0}),
    ],
)
def test_what_is_under_way_is_read_from_the_properties(told: str, progress: dict[str, float]) -> None:
    (volume,) = storcli.parse_volumes(operations(told))
    assert volume.progress == progress


@pytest.mark.parametrize(("state", "progress"), [("Rbld", {"rebuild": 0.0}), ("Cpybck", {"copyback": 0.0})])
def test_a_member_that_is_rebuilt_is_under_way_though_the_volume_does_nothing(
    state: str, progress: dict[str, float]
) -> None:
    (volume,) = storcli.parse_volumes(operations("None", state))
    assert (volume.progress, volume.members[2]) == (progress, "252:2")


def test_how_far_a_rebuild_is_is_asked_of_the_drives() -> None:
    """Drives of other volumes are not counted."""
    words = [f"/c0/v239 show {word}" for word in ("init", "bgi", "cc", "migrate")]
    answers = {word: (FOLDERS / "storcli" / f"{word}.json").read_text() for word in ("idle", "rebuild", "copyback")}
    calls = [Call("storcli64 /c0/vall show all J nolog", operations("None", "Rbld"))]
    calls += [Call(f"storcli64 {word} J nolog", answers["idle"]) for word in words]
    calls += [Call(f"storcli64 /c0/eall/sall show {word} J nolog", answers[word]) for word in ("rebuild", "copyback")]
    replay = Replay(calls)
    (volume,) = storcli.read_volumes(replay, "0")
    replay.done()
    assert volume.progress == {"rebuild": 41.0}


def test_a_volume_that_does_nothing_is_not_asked_again() -> None:
    replay = Replay([Call("storcli64 /c0/vall show all J nolog", operations("None"))])
    assert storcli.read_volumes(replay, "0")[0].progress == {}


@pytest.mark.parametrize("state", ["HSPShld", "DHSShld", "DHS"])
def test_a_spare_is_no_member_in_any_state(state: str) -> None:
    (volume,) = storcli.parse_volumes(DETAILED.replace('"DHS"', f'"{state}"'))
    assert (volume.members, volume.spares) == (("252:0", "252:1", "252:2"), ("252:3",))
    first = DETAILED_2.replace('"State": "Conf"', f'"State": "{state}"', 1)
    (volume,) = storcli2.parse_volumes(first)
    assert (volume.members, volume.spares) == ((), ("306:0",))


def test_a_drive_with_the_configuration_of_another_controller_is_not_free() -> None:
    row = '"EID:Slt": "252:9", "DID": 9, "State": "UGood", "DG": "F", "Size": "1 TB", "Model": "EXAMPLE"'
    (adapter,) = storcli.parse_adapters(of_drives(row))
    assert [drive.state for drive in adapter.drives] == ["UGood foreign"]
    assert adapter.drives[0].state not in storcli.FREE
    row = row.replace('"UGood"', '"UConf", "Status": "Good"')
    (adapter,) = storcli2.parse_adapters(of_drives(row))
    assert [drive.state for drive in adapter.drives] == ["UConf Good foreign"]
    assert adapter.drives[0].state not in storcli2.FREE


@pytest.mark.parametrize("tool", [storcli, storcli2])
def test_drives_are_read_from_the_short_list_too(tool: ModuleType) -> None:
    status = '"Status": "Good", ' if tool is storcli2 else ""
    row = f'"EID:Slt": "8:2", "State": "JBOD", {status}"DG": "-", "Med": "HDD", "Model": "EXAMPLE"'
    text = of_drives(row).replace('"PD LIST"', '"Drive Information"')
    with pytest.raises(ToolError, match="what it shows of the controller itself where its drives were asked for"):
        tool.parse_drives(text)
    text = text.replace('"Product Name"', '"Other Name"')
    (drive,) = tool.parse_drives(text)
    assert (drive.position, drive.state.split()[0], drive.model) == ("8:2", "JBOD", "EXAMPLE")
    with pytest.raises(ToolError, match="says nothing about drives"):
        tool.parse_drives(text.replace("Drive Information", "Drive Temperature").replace("EID:Slt", "Drive"))


@pytest.mark.parametrize(
    ("sectors", "more", "size", "sizes"),
    [
        ("0x74706db0", {}, 0x74706DB0 * 512, None),
        ("0x74706daf", {"Number of Blocks": 0x74706DAF}, 0x74706DB0 * 512, None),
        ("0x74706daf", {}, None, (0x74706DAF * 512, 0x74706DB0 * 512)),
    ],
)
def test_the_last_block_is_not_taken_for_the_number_of_blocks(
    sectors: str, more: dict[str, int], size: int | None, sizes: tuple[int, int] | None
) -> None:
    """Without the number beside it, an odd one can be either, and the size of the drive is one of two."""
    row = {"EID:Slt": " :2", "State": "JBOD", "DG": "-", "SeSz": "512B", "Model": "EXAMPLE"}
    told = {"Raw size": f"931.512 GB [{sectors} Sectors]", **more}
    data = {"Drive /c0/s2": [row], "Drive /c0/s2 - Detailed Information": {"Drive /c0/s2 Device attributes": told}}
    answer = {"Command Status": {"Controller": 0, "Status": "Success"}, "Response Data": data}
    (drive,) = storcli.parse_drives(json.dumps({"Controllers": [answer]}))
    assert (drive.position, drive.size, drive.size_range) == (":2", size, sizes)


def test_a_drive_without_a_place_is_told() -> None:
    (adapter,) = storcli.parse_adapters(of_drives('"Slot": "8:2", "State": "JBOD", "Model": "EXAMPLE"'))
    assert "lists a drive without its place" in adapter.drives[0].unread


def of_drives(row: str) -> str:
    return (
        '{"Controllers": [{"Command Status": {"Controller": 0, "Status": "Success"}, "Response Data": '
        f'{{"Product Name": "Example", "PD LIST": [{{{row}}}]}}}}]}}'
    )


@pytest.mark.parametrize(
    ("printed", "changed", "progress"),
    [
        ('"Status": "Online"', '"Status": "Rebuild"', {"rebuild": 0.0}),
        ('"OS Drive Name"', '"Morphing": "Yes", "OS Drive Name"', {"reshape": 0.0}),
        ('"OS Drive Name"', '"Morphing": "No", "OS Drive Name"', {}),
    ],
)
def test_the_successors_tell_what_is_under_way_in_other_words(
    printed: str, changed: str, progress: dict[str, float]
) -> None:
    (volume,) = storcli2.parse_volumes(DETAILED_2.replace(printed, changed))
    assert volume.progress == progress


def test_a_drive_that_cannot_be_used_has_failed() -> None:
    (volume,) = storcli2.parse_volumes(DETAILED_2.replace('"Status": "Online"', '"Status": "Unusbl"'))
    assert volume.failed == ("306:0",)


def test_an_overview_tells_the_serial_number_where_it_has_one() -> None:
    text = (FOLDERS / "storcli2" / "overview.json").read_text(encoding="utf-8")
    found: tuple[AdapterFacts, ...] = storcli2.parse_adapters(
        text.replace('"Ctrl"', '"SerialNumber": "EXS1    ", "Ctrl"')
    )
    assert {adapter.serial for adapter in found} == {"EXS1"}


def test_the_drives_of_hpe_controllers_are_under_another_name() -> None:
    """Their list of JBOD drives has columns of its own and no group."""
    drive = {"EID:Slt": "252:1", "State": "Onln", "DG": 0, "Size": "300.00 GB", "Med": "HDD", "Model": "EXAMPLE300"}
    data = {
        "Product Name": "HPE MR999i-x",
        "Virtual Drives": 1,
        "VD LIST": [{"DG/VD": "0/239", "TYPE": "RAID1", "State": "Optl", "Size": "1 TiB"}],
        "JBOD Drives": 1,
        "JBOD LIST": [{"ID": 1, "EID:Slt": "252:4", "State": "Onln", "Med": "HDD"}],
        "Physical Drives": 2,
        "Drive LIST": [drive, {**drive, "EID:Slt": "252:2"}],
    }
    (adapter,) = storcli.parse_adapters(answer(data))
    assert [drive.position for drive in adapter.drives] == ["252:1", "252:2", "252:4"]
    assert adapter.volumes[0].members == ("252:1", "252:2")


def test_a_volume_of_ir_firmware_has_its_number_and_no_group() -> None:
    drive = {"EID:Slt": " :0", "State": "Online", "DG": "-", "Med": "SSD", "Model": "EXAMPLE960"}
    row = {"VD": "3", "TYPE": "RAID1", "State": "Optl", "Cache": "NRWTD", "Size": "893.137 GB", "Name": ""}
    data = {"Product Name": "LSI9999-IR", "PD LIST": [drive, {"EID:Slt": " :1", "State": "UGood"}], "VD LIST": [row]}
    (adapter,) = storcli.parse_adapters(answer(data))
    (volume,) = adapter.volumes
    assert (volume.id, volume.level, volume.members) == ("3", "1", ())
    apart = {"/c0/v3": [row], "PDs for VD 3": [drive], "VD3 Properties": {"Number of Blocks": 1873035264}}
    (volume,) = storcli.parse_volumes(answer(apart))
    assert (volume.id, volume.size, volume.members) == ("3", 1873035264 * 512, (":0",))


def test_no_foreign_configuration_is_an_empty_list() -> None:
    assert storcli.parse_foreign(said("no_foreign")) == ()


def test_an_incomplete_foreign_configuration_is_there_and_not_importable() -> None:
    (row,) = storcli.parse_foreign(said("incomplete_foreign"))
    assert row["Importable"] == "no"


def test_a_foreign_configuration_is_listed() -> None:
    (row,) = storcli.parse_foreign(said("foreign"))
    assert (row["DG"], row["Importable"], row["Size"]) == ("0", "yes", "446.625 GB")
    with pytest.raises(ToolError, match="reports 2"):
        storcli.parse_volumes(said("foreign").replace('Drive Groups": 1', 'Drive Groups": 2'))


def test_what_is_no_answer_about_foreign_configurations_is_refused() -> None:
    with pytest.raises(ToolError, match="tells of no foreign configuration, nor of none"):
        storcli.parse_foreign(said("volumes"))


def test_what_is_counted_of_an_incomplete_foreign_configuration_is_kept() -> None:
    answer = {
        "Command Status": {"Controller": 0, "Status": "Failure", "Description": "Incomplete foreign configuration"},
        "Response Data": {"Total Foreign PDs": 7},
    }
    (row,) = storcli.parse_foreign(json.dumps({"Controllers": [answer]}))
    assert (row["Total foreign pds"], row["Importable"]) == ("7", "no")


@pytest.mark.parametrize(
    "counted", [{"Total Foreign PDs": 2}, {"Total Foreign PDs": 0, "Total Locked Foreign PDs": 1}]
)
def test_foreign_drives_that_are_counted_are_there_whatever_is_said(counted: dict[str, int]) -> None:
    def told(data: dict[str, int], description: str) -> str:
        status = {"Controller": 0, "Status": "Success", "Description": description}
        return json.dumps({"Controllers": [{"Command Status": status, "Response Data": data}]})

    (row,) = storcli.parse_foreign(told(counted, "Couldn't find any foreign Configuration"))
    assert (row["Total Foreign PDs"], row["Importable"]) == (str(counted["Total Foreign PDs"]), "no")
    none = dict.fromkeys(counted, 0)
    assert storcli.parse_foreign(told(none, "Operation on foreign configuration Succeeded")) == ()


ADAPTER = (FOLDERS / "storcli" / "show_all_in_text.txt").read_text(encoding="utf-8")
VOLUMES = (FOLDERS / "storcli" / "volumes_in_text.txt").read_text(encoding="utf-8")
DRIVES = (FOLDERS / "storcli" / "drives_in_text.txt").read_text(encoding="utf-8")
RULE = "-" * 24
REBUILD = (FOLDERS / "storcli" / "rebuild_in_text.txt").read_text(encoding="utf-8")


def test_a_controller_is_read_with_its_lists() -> None:
    (adapter,) = storcli.parse_adapters(ADAPTER)
    assert (adapter.index, adapter.model, adapter.serial) == ("0", "Example RAID 7", "EXT0001")
    assert (adapter.pci, adapter.health) == ("0000:5e:00.0", "Needs Attention")
    assert adapter.settings["Policies Table / Rebuild Rate"] == "30 %"
    assert adapter.settings["Flush Time(Default)"] == "4s"
    (volume,) = adapter.volumes
    assert (volume.name, volume.level, volume.failed) == ("two words", "1", ("252:1",))
    states = {drive.position: (drive.state, drive.model, drive.settings["Size"]) for drive in adapter.drives}
    assert states["252:1"] == ("Offln", "EXAMPLE SSD 850 1TB", "931.000 GB")
    assert states["252:2"] == ("UGood foreign", "EXAMPLE2000", "1.818 TB")


def test_volumes_and_drives_are_read_with_their_details() -> None:
    (volume,) = storcli.parse_volumes(VOLUMES)
    assert (volume.size, volume.strip, volume.device) == (1952448512 * 512, 65536, "/dev/sdk")
    assert (volume.members, volume.policies["disk_cache"]) == (("252:0", "252:1"), "default")
    first, second = storcli.parse_drives(DRIVES)
    assert (first.serial, first.wwn, first.size) == ("TSER0", "0x5000c50000000a00", 0x74706DB0 * 512)
    assert (second.serial, second.counters["Media Error Count"]) == ("TSER1", 3)
    spare = storcli2.parse_drives((FOLDERS / "storcli2" / "drives_in_text.txt").read_text(encoding="utf-8"))[1]
    assert (spare.position, spare.state, spare.model) == ("308:9", "GHS Good", "EXAMPLE MZQ 7680")


def test_volumes_of_the_successors_are_read() -> None:
    text = (FOLDERS / "storcli2" / "volumes_in_text.txt").read_text(encoding="utf-8")
    (volume,) = storcli2.parse_volumes(text)
    assert (volume.members, volume.size, volume.strip) == (("268:1", "268:0"), 468582400 * 4096, 65536)
    assert (volume.name, volume.level, volume.state, volume.device) == ("two words", "10", "Dgrd", "/dev/sdm")
    assert (volume.policies["read_policy"], volume.progress) == ("nora", {"rebuild": 0.0})


@pytest.mark.parametrize(
    ("parse", "text"),
    [(storcli.parse_adapters, ADAPTER), (storcli.parse_volumes, VOLUMES), (storcli.parse_drives, DRIVES)],
)
def test_blank_lines_that_a_copy_left_out_hide_nothing(parse: Callable[[str], object], text: str) -> None:
    assert parse(re.sub(r"\n{2,}", "\n", text)) == parse(text)


def test_rows_among_labelled_lines_are_refused() -> None:
    text = ADAPTER.replace("VD LIST :\n=======\n\n", "VD LIST :\n=======\nOf this group = 1\n")
    with pytest.raises(ToolError, match="lists drives or volumes under 'VD LIST', which is not known"):
        storcli.parse_adapters(text.replace("Virtual Drives = 1\n", ""))


def test_drive_groups_of_which_nothing_follows_are_refused() -> None:
    head = ADAPTER.partition("Virtual Drives = 1")[0]
    with pytest.raises(ToolError, match="reports drive groups and shows none"):
        storcli.parse_adapters(head)
    assert not storcli.parse_adapters(head.replace("Drive Groups = 1", "Drive Groups = 0"))[0].volumes


def test_a_topology_that_lost_its_leading_blanks_is_no_obstacle() -> None:
    rule = "-" * 40
    topology = f"{rule}\nDG Arr Row EID:Slot DID Type  State\n{rule}\n0 -   -   -        -   RAID1 Dgrd\n{rule}\n\n"
    text = ADAPTER.replace("Virtual Drives = 1", f"TOPOLOGY :\n========\n\n{topology}Virtual Drives = 1")
    (adapter,) = storcli.parse_adapters(text)
    assert adapter.volumes == storcli.parse_adapters(ADAPTER)[0].volumes


def test_what_needs_attention_is_told_with_an_overview() -> None:
    drive = "EID:Slt DID State\n{rule}\n98:7     12 Offln\n"
    text = (
        "Status = Success\nDescription = None\n\nNumber of Controllers = 1\n\nSystem Overview :\n===============\n"
        f"{RULE}\nCtl Model    Ports Hlth\n{RULE}\n  0 Example9     8 NdAtn\n{RULE}\n\n"
        "Need Attention :\n==============\n\nController 0 :\n============\n\n"
        f"{RULE}\n{drive.format(rule=RULE)}{RULE}\n"
    )
    (adapter,) = storcli.parse_adapters(text)
    assert (adapter.model, adapter.health) == ("Example9", "NdAtn")
    assert adapter.settings["Need Attention / 98:7"] == "Offln"
    with pytest.raises(ToolError, match="under 'Controller 0'"):
        storcli.parse_adapters(ADAPTER + text.partition("Need Attention :")[2])


def test_several_controllers_are_several_answers() -> None:
    second = ADAPTER.replace("Controller = 0", "Controller = 1").replace("EXT0001", "EXT0002")
    found = storcli.parse_adapters(ADAPTER + "\n" + second)
    assert [(adapter.index, adapter.serial) for adapter in found] == [("0", "EXT0001"), ("1", "EXT0002")]


def test_a_failure_is_told_with_its_reason() -> None:
    rows = "-" * 40 + "\nCtrl Status Property ErrMsg        ErrCd\n" + "-" * 40
    rows += "\n   0 Failed -        out of range    255\n" + "-" * 40 + "\n"
    text = f"Controller = 0\nStatus = Failure\nDescription = None\n\nDetailed Status :\n===============\n\n{rows}"
    with pytest.raises(ToolError, match=r"out of range \(code 255\)"):
        storcli.parse_adapters(text)
    assert storcli.parse_adapters("Status = Failure\nDescription = No Controller found\n") == ()


def test_a_list_without_a_title_is_one_of_drives() -> None:
    calls = [call(f"/c0/v239 show {word}", "idle") for word in ("init", "bgi", "cc", "migrate")]
    calls += [Call(f"storcli64 /c0/eall/sall show {word} J nolog", REBUILD) for word in ("rebuild", "copyback")]
    volume = storcli.VolumeFacts("239", members=("252:0", "252:2"))
    assert storcli.progress(Replay(calls), "0", volume) == {"rebuild": 8.0, "copyback": 8.0}


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (re.sub(r"(?m)(?<=\S) {2,}(?=\S)", " ", ADAPTER), "not in columns"),
        (ADAPTER[: ADAPTER.index("252:2")], "not whole"),
        (ADAPTER.replace("252:1     6 Offln", "252:1     6 Offln\n"), "not in columns"),
        (ADAPTER.replace("EXAMPLE2000", "EXAMPLE2000 with a name longer than its column"), "not whole"),
        (
            f"{ADAPTER}\nJBOD LIST :\n=========\n\n{RULE}\nID EID:Slt DID State\n{RULE}\n1 252:4 3 Onln\n{RULE}\n",
            "not in columns",
        ),
    ],
)
def test_a_table_that_is_not_whole_or_not_in_columns_is_refused(broken: str, complaint: str) -> None:
    with pytest.raises(ToolError, match=complaint):
        storcli.parse_adapters(broken)


def test_other_lines_are_kept() -> None:
    (adapter,) = storcli.parse_adapters(ADAPTER.replace("Drive Groups = 1", "A line of tomorrow\nDrive Groups = 1"))
    assert "A line of tomorrow" in adapter.settings.values()
