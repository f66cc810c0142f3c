# SPDX-License-Identifier: Apache-2.0
"""storcli and its successors: what drives are to a volume, what is under way on it, and what is foreign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import storcli, storcli2
from storqual_core.tools.capabilities import AdapterFacts
from tests.support.replay import Call, Replay

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

FIXTURES = Path(__file__).parent / "fixtures"


def said(name: str) -> str:
    """A fixture of storcli."""
    return (FIXTURES / "storcli" / f"{name}.json").read_text(encoding="utf-8")


DETAILED = said("volumes")
DETAILED_2 = (FIXTURES / "storcli2" / "volumes_4096.json").read_text(encoding="utf-8")


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
    answers = {word: (FIXTURES / "storcli" / f"{word}.json").read_text() for word in ("idle", "rebuild", "copyback")}
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
    row = '"EID:Slt": "8:2", "State": "JBOD", "Status": "Good", "DG": "-", "Med": "HDD", "Model": "EXAMPLE"'
    text = of_drives(row).replace('"PD LIST"', '"Drive Information"')
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


def test_a_drive_without_a_place_is_refused() -> None:
    with pytest.raises(ToolError, match="lists a drive without its place"):
        storcli.parse_adapters(of_drives('"Slot": "8:2", "State": "JBOD", "Model": "EXAMPLE"'))


def of_drives(row: str) -> str:
    """A controller with one drive."""
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
    text = (FIXTURES / "storcli2" / "overview.json").read_text(encoding="utf-8")
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
    with pytest.raises(ToolError, match="does not tell whether there is a foreign configuration"):
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
