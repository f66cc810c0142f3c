# SPDX-License-Identifier: Apache-2.0
"""Tests of what is said of the places of cards: their own slots, and what they share."""

from __future__ import annotations

from typing import Any

import pytest

from storqual.study.findings import placement_advice, shared_advice


@pytest.mark.parametrize(
    ("slot", "link", "ports", "said"),
    [
        (133e6, 80e6, 2, "feeds 1 of 2 ports at full rate"),
        (1e9, 300e6, 2, "feeds all 2 ports at full rate"),
        (133e6, 320e6, 1, "no port runs at full rate"),
    ],
)
def test_slots_are_told_by_what_their_ports_need(slot: float, link: float, ports: int, said: str) -> None:
    declared = {"ceiling": {"slot": slot, "link": link}, "drives": [{"port": port} for port in range(ports)]}
    assert said in " ".join(placement_advice("sym", declared, {}))


def test_a_link_below_its_best_is_told() -> None:
    found = {"link": {"speed": "8.0 GT/s", "speed_max": "8.0 GT/s", "width": "4", "width_max": "8"}}
    assert list(placement_advice("sas0", {}, found)) == [
        "sas0: its PCI link runs at width 4, the card can 8: another slot may give more."
    ]


def card(pci: str, *bridges: tuple[str, str, int | None], root: str = "0000:00", **more: Any) -> dict[str, Any]:
    """What a bench says of an adapter with eight lanes of 8 GT/s, behind these bridges."""
    above = [{"pci": address, "speed": speed, "width": width} for address, speed, width in bridges]
    link = {"speed": "8.0 GT/s PCIe", "width": 8}
    return {"pci": pci, "root": root, "link": link, "bridges": above, "numa_node": 0, **more}


ROOT_PORT = ("0000:00:03.0", "8.0 GT/s PCIe", 8)
WIDE_PORT = ("0000:00:03.0", "8.0 GT/s PCIe", 16)
DOWN = (("0000:02:08.0", "8.0 GT/s PCIe", 8), ("0000:02:09.0", "8.0 GT/s PCIe", 8))


def test_cards_behind_a_port_that_carries_less_than_they_do_are_told_to_part() -> None:
    found = {"sas0": card("0000:03:00.0", ROOT_PORT, DOWN[0]), "sas1": card("0000:04:00.0", ROOT_PORT, DOWN[1])}
    roots, shared = shared_advice("b1", found)
    assert roots == "b1: of 2 tested cards 2 are behind PCI root 0000:00 of NUMA node 0 (sas0, sas1)."
    assert shared == (
        "b1: sas0, sas1 share PCI bridge 0000:00:03.0 (8.0 GT/s x8, 7877 MB/s), less than their own links together "
        "(sas0 7877, sas1 7877 MB/s): put one behind another root port."
    )


def test_a_port_that_carries_all_of_its_cards_is_told_as_that() -> None:
    found = {"sas0": card("0000:03:00.0", WIDE_PORT), "sas1": card("0000:04:00.0", WIDE_PORT)}
    _, told = shared_advice("b1", found)
    assert told.endswith("x16, 15754 MB/s), enough for what their own links carry (sas0 7877, sas1 7877 MB/s).")


def test_of_several_shared_links_the_narrowest_is_told_once() -> None:
    narrow = ("0000:01:00.0", "8.0 GT/s PCIe", 4)
    found = {name: card(f"0000:0{bus}:00.0", WIDE_PORT, narrow) for bus, name in ((3, "sas0"), (4, "sas1"))}
    _, told = shared_advice("b1", found)
    assert "share PCI bridge 0000:01:00.0 (8.0 GT/s x4, 3938 MB/s), less than" in told


def test_cards_behind_roots_of_their_own_share_nothing() -> None:
    found = {
        "sas0": card("0000:03:00.0", ROOT_PORT),
        "sas1": card("0000:83:00.0", ("0000:80:01.0", "8.0 GT/s PCIe", 8), root="0000:80", numa_node=1),
    }
    (told,) = shared_advice("b1", found)
    assert told == (
        "b1: of 2 tested cards 1 is behind PCI root 0000:00 of NUMA node 0 (sas0), "
        "1 is behind PCI root 0000:80 of NUMA node 1 (sas1)."
    )


def test_functions_of_one_card_are_one_card() -> None:
    found = {"fc0": card("0000:03:00.0", ROOT_PORT), "fc1": card("0000:03:00.1", ROOT_PORT)}
    assert list(shared_advice("b1", found)) == []
    found["sas0"] = card("0000:04:00.0", ROOT_PORT)
    assert "of 2 tested cards 2 are behind PCI root 0000:00 of NUMA node 0 (fc0/fc1, sas0)" in " ".join(
        shared_advice("b1", found)
    )


def test_a_bus_without_links_is_divided_and_an_unknown_link_is_told() -> None:
    bus = ("0000:00:1e.0", "", None)
    old = {"link": {"speed": "", "width": None}}
    found = {name: card(f"0000:05:0{slot}.0", bus, **old) for slot, name in ((1, "scsi0"), (2, "scsi1"))}
    assert "scsi0, scsi1 share the bus behind PCI bridge 0000:00:1e.0: all" in " ".join(shared_advice("b1", found))
    found = {"sas0": card("0000:03:00.0", ROOT_PORT), "sas1": card("0000:04:00.0", ROOT_PORT, **old)}
    assert "the link of sas1 is not known" in " ".join(shared_advice("b1", found))


def test_nothing_is_said_of_what_shows_no_links_and_no_bridges() -> None:
    """As the emulated adapters, which all sit on the first bus; and runs of before, which have no such record."""
    plain = {"link": {"speed": "", "width": None}}
    found = {name: card(f"0000:00:0{slot}.0", **plain) for slot, name in ((4, "sym"), (5, "fusion"))}
    assert list(shared_advice("b1", found)) == []
    assert list(shared_advice("b1", {"sym": {}, "fusion": {"link": {}}})) == []
