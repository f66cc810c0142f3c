# SPDX-License-Identifier: Apache-2.0
"""lsscsi: columns of fixed width."""

import pytest
from hypothesis import given

from storqual_core.kit.errors import ToolError
from storqual_core.tools import lsscsi
from tests.support.mangle import mangled
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text, fixture_texts


def test_every_device_is_read() -> None:
    found = lsscsi.read_devices(Replay([Call("lsscsi -g", fixture_text("lsscsi", "g.txt"))]))
    assert found == (
        lsscsi.ScsiDevice("0:0:0:0", "disk", "EXAMPLE", "ST TWO WORDS", "0007", "/dev/sda", "/dev/sg0"),
        lsscsi.ScsiDevice("0:0:8:0", "enclosu", "EXAMPLE", "JBOD 24", "1.02", "", "/dev/sg1"),
        lsscsi.ScsiDevice("2:2:0:0", "cd/dvd", "EXAMPLE", "DVD", "2.5+", "/dev/sr0", "/dev/sg2"),
        lsscsi.ScsiDevice("N:0:1:1", "disk", "", "Example SSD 1TB__1", "", "/dev/nvme0n1", ""),
    )


def test_the_transport_of_every_device_is_read() -> None:
    assert lsscsi.read_transports(Replay([Call("lsscsi -t", fixture_text("lsscsi", "t.txt"))])) == {
        "0:0:0:0": "sas:0x5000c50015ea0001",
        "0:0:8:0": "sas:0x500c0ff0afe43400",
        "2:0:0:0": "usb: 1-1.3:1.2",
        "3:0:0:0": "",
        "4:0:0:1": "fc:0x21000024ff000001,0x010b00",
        "5:0:0:0": "iqn.2003-01.org.example:sn.4ab1b4c0ffee,t,0x1",
        "6:0:0:0": "sata:5000c50015ea0009",
        "N:0:1:1": "pcie 0x144d:0xa801",
    }
    assert lsscsi.parse_transports("") == {}


@pytest.mark.parametrize(
    "text", ["[0:0:0:0]    disk    sas:0x5 /dev/sda\n" * 2, "lsscsi: not found\n", "[0:0:0:0]\n"]
)
def test_transports_that_are_none_or_come_twice_are_refused(text: str) -> None:
    with pytest.raises(ToolError):
        lsscsi.parse_transports(text)


@given(mangled(fixture_texts("lsscsi")))
def test_no_transport_of_any_text_is_of_a_device_that_is_not_in_it(text: str) -> None:
    try:
        found = lsscsi.parse_transports(text)
    except ToolError:
        return
    assert all(f"[{path}]" in text and transport in text for path, transport in found.items())


def test_another_line_is_refused() -> None:
    with pytest.raises(ToolError, match="'lsscsi: command not found' where a device was expected"):
        lsscsi.parse_devices("lsscsi: command not found\n")


@given(mangled(fixture_texts("lsscsi")))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        devices = lsscsi.parse_devices(text)
    except ToolError:
        return
    # each line that begins as a device is one, whether it is understood or not
    assert len(devices) >= sum(line.startswith("[") for line in text.splitlines())
    assert len(devices) <= sum(bool(line.strip()) for line in text.splitlines())


def test_a_path_that_fills_its_column_is_read() -> None:
    (found,) = lsscsi.parse_devices("[2:0:0:49409]wlun    EXAMPLE  ARRAY            0001  -          /dev/sg7\n")
    assert (found.path, found.kind, found.vendor, found.generic) == ("2:0:0:49409", "wlun", "EXAMPLE", "/dev/sg7")


@pytest.mark.parametrize("end", ["", "  ", "  -", "  -          -", "  -          -               -"])
def test_a_device_without_a_node_is_read(end: str) -> None:
    (found,) = lsscsi.parse_devices(f"[4:0:9:0]    process EXAMPLE  CONSOLE          1.01{end}\n")
    assert (found.kind, found.revision, found.node, found.generic) == ("process", "1.01", "", "")


def test_a_size_behind_the_nodes_is_no_node() -> None:
    line = "[4:0:1:0]    disk    EXAMPLE  ST TWO WORDS     0007  /dev/sda   /dev/sg0   2.00TB\n"
    (found,) = lsscsi.parse_devices(line)
    assert (found.node, found.generic) == ("/dev/sda", "/dev/sg0")
