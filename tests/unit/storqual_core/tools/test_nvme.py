# SPDX-License-Identifier: Apache-2.0
"""nvme-cli: the volatile write cache."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.facts.bench_facts import read_facts
from storqual_core.kit.errors import ToolError
from storqual_core.tools import nvme
from storqual_core.tools.capabilities import FirmwareImage
from tests.support.bench_tree import STATE
from tests.support.fabric_tree import FabricTree
from tests.support.replay import Call, Replay, Tools
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


def test_the_cache_is_switched_or_the_refusal_is_told() -> None:
    command = "nvme set-feature /dev/nvme0 --feature-id=6 --value="
    replay = Replay([Call(f"{command}0"), Call(f"{command}1", rc=1)])
    nvme.write_write_cache(replay, "/dev/nvme0", 0)
    with pytest.raises(ToolError, match="could not be changed"):
        nvme.write_write_cache(replay, "/dev/nvme0", 1)


@given(st.text())
def test_other_text_is_a_sentence(text: str) -> None:
    try:
        nvme.parse_feature(text, 6)
    except ToolError:
        return
    assert "get-feature" in text.lower()


@pytest.mark.parametrize(
    ("name", "sector"),
    [("list_flat.json", 512), ("list_verbose.json", 4096), ("list_tree.json", 4096), ("list_paths.json", 4096)],
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
    two = read(2017558528)
    assert (two.node, two.size, two.used) == ("/dev/nvme0n1", None, None)
    assert "two sizes of /dev/nvme0n1: 2017558528 bytes, and 2000409264 blocks of 512" in two.unread


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


DEVICE = "/dev/nvme0"
IMAGE = FirmwareImage("/x/fw.bin", "00", "B2", activation="reset")
DOWN = Call(f"nvme fw-download {DEVICE} --fw=/x/fw.bin", "Firmware download success\n")


def flashed_controller(*, oacs: int = 0x4, slots: int = 3, read_only: bool = True, at_once: bool = True) -> Call:
    body = {"fr": "A1      ", "oacs": oacs, "frmw": slots << 1 | read_only | at_once << 4}
    return Call(f"nvme id-ctrl {DEVICE} --output-format=json", json.dumps(body))


def slots(active: int = 1, following: int = 0, **more: Any) -> Call:
    body = {"Active Firmware Slot (afi)": active | following << 4, "Firmware Rev Slot 1": "16688 (A1      )", **more}
    return Call(f"nvme fw-log {DEVICE} --output-format=json", json.dumps({"nvme0": body}))


def commit(slot: int, action: int, said: str = "Success committing firmware action:1 slot:3\n", rc: int = 0) -> Call:
    return Call(f"nvme fw-commit {DEVICE} --slot={slot} --action={action}", said, rc=rc)


def test_the_image_goes_beside_the_running_one() -> None:
    replay = Replay([slots(), flashed_controller(), DOWN, commit(3, 1)])
    (seen,) = nvme.download(replay, DEVICE, IMAGE)
    assert "committed to slot 3 (Success committing firmware" in seen
    replay.done()
    # release 3 says nothing
    replay = Replay([slots(active=3), flashed_controller(), DOWN, commit(2, 1, "")])
    assert nvme.download(replay, DEVICE, IMAGE)[0].endswith("committed to slot 2 (no message)")
    replay = Replay([slots(), flashed_controller(slots=1, read_only=False), DOWN, commit(1, 3)])
    nvme.download(replay, DEVICE, FirmwareImage("/x/fw.bin", "00", "B2", activation="none"))
    replay.done()


@pytest.mark.parametrize(
    ("calls", "image", "words"),
    [
        ([slots(), flashed_controller(), Call(DOWN.line, rc=1)], IMAGE, "did not accept /x/fw.bin"),
        ([slots(), flashed_controller(), DOWN, commit(3, 1, "", 7)], IMAGE, "did not commit /x/fw.bin to slot 3"),
        (
            [slots(), flashed_controller(), DOWN, commit(3, 1, "odd\n")],
            IMAGE,
            "did not commit /x/fw.bin to slot 3: odd",
        ),
    ],
)
def test_what_cannot_be_is_a_sentence(calls: list[Call], image: FirmwareImage, words: str) -> None:
    replay = Replay(list(calls))
    with pytest.raises(ToolError, match=words):
        nvme.download(replay, DEVICE, image)
    replay.done()


@pytest.mark.parametrize(
    ("able", "activation", "words"),
    [
        (flashed_controller(oacs=0), "reset", "takes no firmware"),
        (flashed_controller(slots=1), "reset", "no firmware slot that may be written"),
        (flashed_controller(at_once=False), "none", "declare `activation: reset`"),
    ],
    ids=["commands", "slots", "reset"],
)
def test_what_a_controller_cannot_do_is_told_before_anything_is_sent(able: Call, activation: str, words: str) -> None:
    """Its Identify data say so."""
    image = FirmwareImage("/x", "00", "B2", activation=activation)
    (told,) = nvme.firmware_objections(Replay([able]), DEVICE, image)
    assert words in told
    assert nvme.firmware_objections(Replay([flashed_controller()]), DEVICE, image) == ()


def test_what_waits_for_a_reset_is_told() -> None:
    look = [flashed_controller(), slots(following=2, **{"Firmware Rev Slot 2": "B2"})]
    assert nvme.read_versions(Replay(look), DEVICE) == {"firmware": "A1", "firmware.pending": "B2"}
    assert nvme.read_versions(Replay([flashed_controller(), slots(following=1)]), DEVICE) == {"firmware": "A1"}
    assert (
        nvme.read_versions(Replay([flashed_controller(), slots(following=3)]), DEVICE)["firmware.pending"] == "slot 3"
    )


def test_a_reset_starts_the_image() -> None:
    assert nvme.activation(Replay([flashed_controller()]), DEVICE, IMAGE) == "reset"
    assert (
        nvme.activation(Replay([flashed_controller()]), DEVICE, FirmwareImage("/x", "00", "A1", activation="reset"))
        == "none"
    )
    assert nvme.activation(Replay([]), DEVICE, FirmwareImage("/x", "00", "B2")) == "none"
    nvme.activate(Replay([Call(f"nvme reset {DEVICE}")]), DEVICE, IMAGE)
    with pytest.raises(ToolError, match="could not be reset to start B2"):
        nvme.activate(Replay([Call(f"nvme reset {DEVICE}", rc=1)]), DEVICE, IMAGE)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["fr", "oacs", "frmw", "nvme0"]) | st.text(), inner)
    ),
    max_leaves=8,
)


@given(json_values.map(json.dumps) | st.text())
def test_other_output_is_a_sentence(text: str) -> None:
    for parse in (nvme.parse_controller, nvme.parse_slots):
        try:
            parse(text)
        except ToolError:
            continue


def test_slots_that_are_counted_from_nought_are_those_from_one() -> None:
    """As the first releases printed them, with the empty ones."""
    body = {"Active Firmware Slot (afi)": 2, "Firmware Rev Slot 0": "1 (OLD)", "Firmware Rev Slot 1": "2 (NEW)"}
    empty = {"Firmware Rev Slot 2": "0 ()", "Firmware Rev Slot 3": "0 (........)"}
    slots = nvme.parse_slots(json.dumps({"nvme0": {**body, **empty}}))
    assert (slots.active, dict(slots.revisions)) == (2, {1: "OLD", 2: "NEW"})


def test_controllers_are_those_of_their_subsystem_in_either_form() -> None:
    asked = Replay([Call("nvme list-subsys --output-format=json", fixture_text("nvme", "subsystems_by_host.json"))])
    one, two = "nqn.2014-08.org.example:one", "nqn.2014-08.org.example:two"
    assert nvme.read_subsystems(asked) == {one: {"nvme1", "nvme2"}, two: set()}
    former = nvme.parse_subsystems(fixture_text("nvme", "subsystems_former_release.json"))
    assert former == {one: {"nvme1", "nvme2"}, "nqn.2014-08.org.example:gone": set()}
    for nothing in ("", "[]\n"):
        assert nvme.read_subsystems(Replay([Call("nvme list-subsys --output-format=json", nothing)])) == {}


@pytest.mark.parametrize(
    "text",
    [
        fixture_text("nvme", "subsystems_by_host.json")[:-40],
        fixture_text("nvme", "subsystems_by_host.json").replace('"Name":"nvme1"', '"Other":"nvme1"'),
        fixture_text("nvme", "subsystems_by_host.json").replace('"NQN":"nqn', '"Other":"nqn'),
        fixture_text("nvme", "subsystems_former_release.json").replace('"NQN"', '"Other"'),
        '{"Devices": []}',
        "Failed to scan topology",
    ],
)
def test_subsystems_that_are_not_whole_are_refused(text: str) -> None:
    with pytest.raises(ToolError):
        nvme.parse_subsystems(text)


def test_controllers_that_nvme_and_the_kernel_do_not_both_have_are_told(tmp_path: Path) -> None:
    tree = FabricTree(tmp_path)
    tree.nvme_fabric(("tcp", "traddr=192.0.2.1,trsvcid=4420", "optimized"), ("tcp", "traddr=192.0.2.2", "optimized"))
    line = "nvme list-subsys --output-format=json"
    (kernel,) = read_facts(tree.machine, state_dir=STATE, runner=Tools({}))["nvme_subsystems"]
    names = [each["name"] for each in kernel["controllers"]]
    for listed, problems in ((names, 0), (names[:1], 1)):
        paths = [{"Name": name} for name in listed]
        answer = json.dumps({"Subsystems": [{"NQN": kernel["nqn"], "Paths": paths}]})
        facts = read_facts(tree.machine, state_dir=STATE, runner=Tools({line: answer}), deep=True)
        assert len([told for told in facts["unread"] if told.startswith("NVMe subsystems")]) == problems
