# SPDX-License-Identifier: Apache-2.0
"""systool: every device of a class under its name in sysfs; no secret is kept, and what is cut is refused."""

from pathlib import Path

import pytest
from hypothesis import given

from storqual_core.facts.bench_facts import read_facts
from storqual_core.kit.errors import ToolError
from storqual_core.tools.systool import parse_class, read_class
from tests.support.bench_tree import STATE
from tests.support.fabric_tree import FabricTree
from tests.support.mangle import mangled
from tests.support.replay import Call, Replay, Tools
from tests.support.tool_fixtures import fixture_text, fixture_texts

PORTS, SESSIONS = fixture_text("systool", "fc_host_two_ports.txt"), fixture_text("systool", "iscsi_session.txt")


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("fc_remote_ports.txt", ["rport-2:0-10", "rport-2:0-1", "rport-2:0-2"]),
        ("iscsi_connection.txt", ["connection12:0", "connection1:0"]),
        ("pci_bus.txt", ["0000:00"]),
        ("fc_host_names.txt", ["host2", "host3"]),
        ("enclosure_none.txt", []),
    ],
)
def test_a_device_has_the_name_that_the_kernel_has_for_it(file: str, names: list[str]) -> None:
    assert list(parse_class(fixture_text("systool", file))[1]) == names


def test_attributes_are_read_as_they_are_printed() -> None:
    port = read_class(Replay([Call("systool -c fc_host -v", PORTS)]), "fc_host")["host3"]
    assert (port["port_state"], port["symbolic_name"]) == ("Linkdown", 'Example "FC" 16 = HBA')
    assert (port["issue_lip"], port["system_hostname"], port["uevent"]) == (None, None, "")
    assert (port["Device"], port["device/uevent"]) == ("host3", "DEVTYPE=scsi_host")
    host = parse_class(fixture_text("systool", "scsi_host.txt"))[1]["host2"]
    assert host["zio_report"] == "Target: 0\n  Lun: 0\n\n  Lun: 1"
    behind = parse_class(fixture_text("systool", "enclosure_behind_pci.txt"))[1]["e0"]
    assert (behind["components"], behind["device/config"], behind["device/vendor"]) == ("2", None, "0x8086")


@pytest.mark.parametrize("name", ["username", "password", "username_in", "password_in"])
def test_no_secret_of_chap_is_kept(name: str) -> None:
    assert [device[name] for device in parse_class(SESSIONS)[1].values()] == [None, None]
    with pytest.raises(ToolError) as refused:
        parse_class(f'Class = "a"\n\n  Class Device = "b"\n    {name}   = "hidden')
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        PORTS + PORTS.partition("\n")[2],
        PORTS[: PORTS.rindex('"')],
        PORTS.replace("<store method only>", "<something else>"),
        PORTS.replace('path = "/sys', 'path = "sys'),
        PORTS.partition("\n")[2],
        PORTS.replace("    port_id ", "    node_name "),
        "a line\n" + PORTS,
    ],
)
def test_what_is_cut_or_comes_twice_is_refused(text: str) -> None:
    with pytest.raises(ToolError):
        parse_class(text)
    with pytest.raises(ToolError):
        read_class(Replay([Call("systool -c fc_host -v", SESSIONS)]), "fc_host")


@given(mangled(fixture_texts("systool")))
def test_no_attribute_of_any_text_is_one_that_is_not_in_it(text: str) -> None:
    try:
        _, devices = parse_class(text)
    except ToolError:
        return
    told = [value for attributes in devices.values() for value in attributes.values() if value]
    assert all(value in "\n".join(map(str.rstrip, text.splitlines())) for value in told)


def test_deep_facts_have_the_classes_of_fabrics_and_what_only_one_of_two_has(tmp_path: Path) -> None:
    tree = FabricTree(tmp_path).fc_port().remote_port()
    runner = Tools({"systool -c fc_host -v": PORTS, "systool -c fc_remote_ports -v": "Error opening class\n"})
    facts = read_facts(tree.machine, state_dir=STATE, runner=runner, deep=True)
    assert {name: list(devices) for name, devices in facts["classes"].items()} == {"fc_host": ["host2", "host3"]}
    told = [sentence for sentence in facts["unread"] if sentence.startswith("class ")]
    assert ["host3" in told[0], "fc_remote_ports" in told[1], len(told)] == [True, True, 2]
