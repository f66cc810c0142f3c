# SPDX-License-Identifier: Apache-2.0
"""Links and error counters of drives as the SAS transport and the SCSI layer keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual_core.host.counters import hexadecimal, read_error_counters, read_link
from storqual_core.kit.machine import Machine
from tests.support.bench_tree import BenchTree

HOST = "/sys/devices/pci0000:00/0000:00:06.0/host2"


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A bench on which the test puts drives."""
    return BenchTree(tmp_path)


def drive(tree: BenchTree, name: str, ports: str, phys: dict[str, dict[str, str]]) -> Machine:
    """A disk behind these ports (`port-2:3`), whose last has these phys with their attributes."""
    place = f"{HOST}/{ports}"
    for phy, attributes in phys.items():
        for attribute, text in attributes.items():
            tree.write(f"{place}/{phy}/sas_phy/{phy}/{attribute}", f"{text}\n")
    tree.disk(name, f"{place}/end_device-2:3/target2:0:3/2:0:3:0")
    return tree.machine


def test_a_drive_of_a_sas_port_has_its_port_rate_and_width(tree: BenchTree) -> None:
    phy = {"negotiated_linkrate": "3.0 Gbit", "maximum_linkrate": "6.0 Gbit"}
    machine = drive(tree, "sda", "port-2:3", {"phy-2:3": phy})
    assert read_link(machine, "sda") == {"port": 3, "rate": "3.0 Gbit", "rate_max": "6.0 Gbit", "width": 1}


def test_behind_an_expander_the_port_is_the_adapters_and_the_rate_the_expanders(tree: BenchTree) -> None:
    machine = drive(
        tree, "sda", "port-2:0/expander-2:0/port-2:0:7", {"phy-2:0:7": {"negotiated_linkrate": "1.5 Gbit"}}
    )
    assert (read_link(machine, "sda")["port"], read_link(machine, "sda")["rate"]) == (0, "1.5 Gbit")


def test_a_wide_port_shows_every_rate_that_its_phys_have(tree: BenchTree) -> None:
    phys = {f"phy-2:{number}": {"negotiated_linkrate": f"{rate} Gbit"} for number, rate in enumerate("6633")}
    link = read_link(drive(tree, "sda", "port-2:0", phys), "sda")
    assert (link["rate"], link["width"]) == ("3 Gbit, 6 Gbit", 4)


def test_without_the_sas_transport_nothing_is_known(tree: BenchTree) -> None:
    tree.disk("sda", f"{HOST}/target2:0:3/2:0:3:0")
    for name in ("sda", "sdz"):
        assert read_link(tree.machine, name) == {"port": None, "rate": "", "rate_max": "", "width": None}
        assert read_error_counters(tree.machine, name) == {}


def test_error_counters_of_the_drive_and_of_all_its_phys(tree: BenchTree) -> None:
    phys = {f"phy-2:{number}": {"invalid_dword_count": "7", "phy_reset_problem_count": "?"} for number in range(2)}
    machine = drive(tree, "sda", "port-2:0", phys)
    tree.write(f"{HOST}/port-2:0/end_device-2:3/target2:0:3/2:0:3:0/ioerr_cnt", "0x1f\n")
    assert read_error_counters(machine, "sda") == {"ioerr_cnt": 31, "invalid_dword_count": 14}


@pytest.mark.parametrize(("text", "value"), [("0x1f", 31), ("12", 12), ("", None), ("0xzz", None)])
def test_counters_are_read_as_the_kernel_writes_them(text: str, value: int | None) -> None:
    """Hexadecimal with its sign; anything else is no number."""
    assert hexadecimal(text) == value
