# SPDX-License-Identifier: Apache-2.0
"""nvme-cli: the volatile write cache."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.kit.errors import ToolError
from storqual_core.tools import nvme
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

GET = "nvme get-feature /dev/nvme0 --feature-id=6"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("get-feature:0x06 (Volatile Write Cache), Current value:0x00000001\n", 1),
        ("get-feature:0x6 (Volatile Write Cache), Current value:0x000000\n", 0),
        ("get-feature:6 (Volatile Write Cache), Current value: 00000001\n", 1),
        ("warning: something\nget-feature:0x06 (Volatile Write Cache), Current value:0x00000000\n", 0),
    ],
)
def test_the_cache_is_read_in_the_spellings_of_its_releases(text: str, value: int) -> None:
    """1.x and 2.x print the number differently."""
    assert nvme.read_write_cache(Replay([Call(GET, text)]), "/dev/nvme0") == value


def test_a_controller_without_a_cache_is_said_to_have_none() -> None:
    replay = Replay([Call(GET, rc=2, stderr="NVMe status: Invalid Field in Command(0x4002)\n")])
    with pytest.raises(ToolError, match="no volatile write cache that can be read: NVMe status: Invalid Field"):
        nvme.read_write_cache(replay, "/dev/nvme0")


def test_the_cache_is_switched() -> None:
    replay = Replay([Call("nvme set-feature /dev/nvme0 --feature-id=6 --value=0")])
    nvme.write_write_cache(replay, "/dev/nvme0", 0)
    replay.done()


def test_a_refused_switch_is_a_failure() -> None:
    with pytest.raises(ToolError, match="could not be changed"):
        nvme.write_write_cache(
            Replay([Call("nvme set-feature /dev/nvme0 --feature-id=6 --value=1", rc=1)]), "/dev/nvme0", 1
        )


@given(st.text())
def test_other_text_is_a_sentence(text: str) -> None:
    try:
        nvme.parse_feature(text, 6)
    except ToolError:
        return
    assert "get-feature" in text.lower()


@pytest.mark.parametrize(
    ("name", "sector"), [("list_flat.json", 512), ("list_verbose.json", 4096), ("list_tree.json", 4096)]
)
def test_namespaces_are_listed_in_every_shape_of_the_list(name: str, sector: int) -> None:
    call = Call("nvme list --verbose --output-format=json", fixture_text("nvme", name))
    (found,) = nvme.read_namespaces(Replay([call]))
    assert (found.node, found.controller, found.sector) == ("/dev/nvme0n1", "nvme0", sector)
    assert (found.model, found.serial, found.firmware, found.size) == ("Example NVMe", "EXNV1", "FW1", 1048576)
    assert found.pci in ("", "0000:c1:00.0")


def test_a_machine_without_namespaces_has_none() -> None:
    for text in ('{"Devices": []}', "\n"):
        assert nvme.read_namespaces(Replay([Call("nvme list --verbose --output-format=json", text)])) == ()


def test_health_is_read_whatever_kind_of_number_is_printed() -> None:
    call = Call("nvme smart-log /dev/nvme0 --output-format=json", fixture_text("nvme", "smart_log.json"))
    log = nvme.read_smart_log(Replay([call]), "/dev/nvme0")
    assert log.values == {
        "critical_warning": 4,
        "critical_warning.ro": 1,
        "temperature": 300,
        "media_errors": 7,
        "data_units_read": 12,
        "power_on_hours": 99,
        "temperature_sensors.1": 301,
        "temperature_sensors.2": 302,
    }
    assert log.others == {"note": "1 234,5"}


def test_a_failed_or_foreign_answer_is_a_sentence() -> None:
    with pytest.raises(ToolError, match="no JSON object: Smart Log for"):
        nvme.parse_smart_log("Smart Log for NVME device:nvme0\nData Units Read : 12,5\n")
    with pytest.raises(ToolError, match="no SMART log: Devices"):
        nvme.parse_smart_log('{"Devices": []}')
    broken = Call("nvme smart-log /dev/nvme0 --output-format=json", stderr="it broke\n", rc=1)
    with pytest.raises(ToolError, match="health information of /dev/nvme0 cannot be read: it broke"):
        nvme.read_smart_log(Replay([broken]), "/dev/nvme0")
    with pytest.raises(ToolError, match="namespaces cannot be listed"):
        nvme.read_namespaces(Replay([Call("nvme list --verbose --output-format=json", rc=1)]))


def test_namespaces_in_a_shape_that_is_not_known_are_refused() -> None:
    text = fixture_text("nvme", "list_flat.json")
    assert nvme.parse_list(text.replace("DevicePath", "DEVICE PATH")) == nvme.parse_list(text)
    with pytest.raises(ToolError, match="a shape that is not known"):
        nvme.parse_list(text.replace('"DevicePath"', '"New Device Path"'))


def test_a_size_that_does_not_fit_its_number_is_not_known() -> None:
    """Early releases 2.x printed sizes and blocks with 32 bits: the blocks of 3.2 TB were those of 1.0 TB."""
    entry = {"NameSpace": "nvme0n1", "MaximumLBA": 2000409264, "SectorSize": 512, "UsedBytes": 0}

    def read(size: int, **other: int) -> nvme.Namespace:
        space = {**entry, "PhysicalSize": size, **other}
        return nvme.parse_list(json.dumps({"Devices": [{"Namespaces": [space]}]}))[0]

    for blocks in (1956266672, -1551816016):
        cut = read(-2147483648, MaximumLBA=blocks)
        assert (cut.size, cut.used) == (None, None)
    assert (read(1024209543168).size, read(1024209543168).used) == (1024209543168, 0)
    with pytest.raises(ToolError, match="two sizes of /dev/nvme0n1: 2017558528 bytes, and 2000409264 blocks of 512"):
        read(2017558528)


MARK = "nvme write-uncor /dev/nvme0n1 --start-block=20480 --block-count=7"


def test_a_namespace_that_is_held_is_marked_all_the_same() -> None:
    """The guard of the same trial is who holds it."""
    busy = Call(MARK, stderr="nvme0n1 is busy. Use the [--force] option to ignore that.\n", rc=1)
    replay = Replay([busy, Call(f"{MARK} --force")])
    nvme.write_uncorrectable(replay, "/dev/nvme0n1", 20480, 8)
    replay.done()


def test_a_controller_that_cannot_mark_blocks_is_a_sentence_and_is_not_forced() -> None:
    replay = Replay([Call(MARK, stderr="NVMe status: Invalid Command Opcode(0x1)\n", rc=1)])
    with pytest.raises(ToolError, match="cannot be marked as unreadable: NVMe status: Invalid Command Opcode"):
        nvme.write_uncorrectable(replay, "/dev/nvme0n1", 20480, 8)
    replay.done()


def controller(number: int, **others: str) -> dict[str, object]:
    about = {"Controller": f"nvme{number}", "SerialNumber": "EXNV1", "ModelNumber": "Example NVMe", "Firmware": "FW1"}
    return {**about, "Address": f"0000:0{number}:00.0", "Namespaces": [], "Paths": [], **others}


def shared(*controllers: dict[str, object]) -> nvme.Namespace:
    """The namespace of a subsystem, which stands beside its controllers."""
    one = {"NameSpace": "nvme4n1", "NSID": 1, "PhysicalSize": 1048576, "MaximumLBA": 256, "SectorSize": 4096}
    subsystem = {"Subsystem": "nvme-subsys4", "Controllers": list(controllers), "Namespaces": [one]}
    (found,) = nvme.parse_list(json.dumps({"Devices": [{"HostNQN": "nqn.example", "Subsystems": [subsystem]}]}))
    return found


def test_a_namespace_beside_its_only_controller_is_that_controllers() -> None:
    found = shared(controller(2))
    assert (found.model, found.serial, found.firmware) == ("Example NVMe", "EXNV1", "FW1")
    assert (found.node, found.controller, found.pci) == ("/dev/nvme4n1", "nvme2", "0000:02:00.0")


def test_the_address_of_a_controller_behind_a_network_is_no_pci_address() -> None:
    assert shared(controller(2, Address="traddr=192.0.2.7,trsvcid=4420", Transport="tcp")).pci == ""


def test_a_namespace_that_several_controllers_reach_has_what_they_say_alike() -> None:
    found = shared(controller(2), controller(3, Firmware="FW2"))
    assert (found.model, found.serial, found.size) == ("Example NVMe", "EXNV1", 1048576)
    assert (found.controller, found.pci, found.firmware) == ("", "", "")


def test_a_namespace_of_no_listed_controller_is_no_controllers() -> None:
    """What paths are joined to is named after the subsystem."""
    assert shared().controller == ""


def test_hidden_paths_of_a_multipath_namespace_are_none() -> None:
    """Releases 1.x list them beside the namespace, with sectors of one byte."""
    nodes = {"/dev/nvme7c3n1": 1, "/dev/nvme7c0n1": 1, "/dev/nvme7n1": 4096}
    listed = [{"NameSpace": 1, "DevicePath": node, "SectorSize": sector} for node, sector in nodes.items()]
    found = nvme.parse_list(json.dumps({"Devices": listed}))
    assert [(each.node, each.sector) for each in found] == [("/dev/nvme7n1", 4096)]
