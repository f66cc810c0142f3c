# SPDX-License-Identifier: Apache-2.0
"""What is not well around the drives: told in sentences, and no reason to refuse."""

import os
from pathlib import Path
from typing import Any

import pytest

from storqual_core.facts.bench_facts import read_facts
from storqual_core.facts.conditions import Conditions, read_conditions, read_paths, read_shelves
from storqual_core.facts.preflight import Request, examine
from tests.support.bench_tree import STATE, BenchTree
from tests.support.replay import Tools
from tests.support.tool_fixtures import fixture_text

PCI = "0000:3b:00.0"
JOIN, CONFIGURATION = fixture_text("sg_ses", "join.txt"), fixture_text("sg_ses", "page_cf.txt")
SHELF = {"sg_ses --page=cf /dev/sg30": CONFIGURATION, "sg_ses --join /dev/sg30": JOIN}
MAP = (
    "data (35000c50015ea0000) dm-1 EXAMPLE,DISK9\nsize=20M features='0' hwhandler='0' wp=rw\n"
    "`-+- policy='service-time 0' prio=1 status=active\n"
    "  |- 2:0:0:0 sda 8:16 active ready running\n  `- 3:0:0:0 sdb 8:32 failed faulty offline\n"
)


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """Two drives in a shelf; the address of the first one's port differs from its WWN in the last digit."""
    tree = BenchTree(tmp_path).adapter(PCI, driver="mpt3sas")
    tree.scsi("sda", pci=PCI, wwn="0x5000c50015ea0000", serial="A1")
    tree.scsi("sdb", pci=PCI, wwn="0x5000c50099990000", serial="A2")
    tree.scsi("sdd", pci=PCI, wwn="0x5000c50015ea0008", serial="A4")
    tree.write("/sys/class/scsi_generic/sg30/device/type", "13\n")
    tree.write("/sys/class/scsi_generic/sg0/device/type", "0\n")
    return tree


def facts_of(tree: BenchTree, runner: Tools, **options: Any) -> dict[str, Any]:
    return read_facts(tree.machine, state_dir=STATE, runner=runner, **options)


def test_a_slot_names_its_drive_and_what_is_not_well_is_said(tree: BenchTree) -> None:
    runner = Tools(SHELF)
    found = read_conditions(facts_of(tree, runner), [PCI], tree.machine, runner)
    assert found.conditions == [
        "shelf 5000ccab05001000, slot 2 (Slot 03) with drive 0x5000c50015ea0008: status Critical, fault sensed",
        "shelf 5000ccab05001000, power supply 1 (PSU B): status Critical, fail, ac fail",
        "shelf 5000ccab05001000, cooling 1 (Fan 2): status Critical, fail",
        "shelf 5000ccab05001000, temperature sensor 2 (Temp Exhaust): status Noncritical, ut failure",
    ]
    assert found.unread == []


def test_the_kernels_link_from_a_slot_names_a_drive_that_its_address_does_not(tree: BenchTree) -> None:
    """A SATA drive has the address of the expander's port."""
    tree.write("/sys/class/enclosure/2:0:9:0/id", "0x5000ccab05001000\n")
    tree.write("/sys/class/enclosure/2:0:9:0/Slot 03/slot", "2\n")
    place = tree.root / "sys/class/enclosure/2:0:9:0/Slot 03/device"
    os.symlink("../../../devices/2:0:1:0", place)  # noqa: PTH211 - a link that leads nowhere in this tree
    text = JOIN.replace("0x5000c50015ea0009", "0x5000ccab05001009")
    runner = Tools({**SHELF, "sg_ses --join /dev/sg30": text})
    facts = facts_of(tree, runner)
    assert facts["enclosures"][0]["slots"] == {"2": "2:0:1:0"}
    (shelf,) = read_shelves(facts, tree.machine, runner, Conditions())
    slots = {element["slot"]: element["drive"] for element in shelf["elements"] if element["slot"] is not None}
    assert slots[2] == "0x5000c50099990000"


def test_a_shelf_that_two_nodes_lead_to_is_told_once_and_one_that_fails_is_a_sentence(tree: BenchTree) -> None:
    tree.write("/sys/class/scsi_generic/sg31/device/type", "13\n")
    answers = {line.replace("sg30", node): text for node in ("sg30", "sg31") for line, text in SHELF.items()}
    reading = Conditions()
    assert len(read_shelves(facts_of(tree, Tools({})), tree.machine, Tools(answers), reading)) == 1
    answers["sg_ses --join /dev/sg31"] = "nonsense"
    assert len(read_shelves(facts_of(tree, Tools({})), tree.machine, Tools(answers), reading)) == 1
    assert reading.unread == ["shelf /dev/sg31: sg_ses printed no element of a shelf: nonsense"]


def test_a_path_that_does_not_work_is_said_with_its_drive(tree: BenchTree) -> None:
    tree.stacked("dm-1", ["sda", "sdb"], title="data", uuid="mpath-35000c50015ea0000")
    tree.scsi("sdx", pci=PCI, wwn="0x5000c50000000003", serial="A3")
    runner = Tools({"multipath -ll": MAP})
    facts = facts_of(tree, runner)
    found = read_conditions(facts, [PCI], tree.machine, runner)
    both = ("0x5000c50015ea0000", "0x5000c50099990000")
    assert found.conditions == [
        # they have different WWNs: the map was made of the paths of two drives
        f"multipath map data leads to 2 drives: {', '.join(both)}",
        f"drive {', '.join(both)}: 1 of 2 paths of data do not work (sdb is failed faulty offline)",
    ]
    runner = Tools({"multipath -ll": MAP.replace("sdb 8:32", "sdx 8:48")})
    (each,) = read_paths(facts, tree.machine, runner, reading := Conditions())
    assert "multipath lists sda, sdx, the kernel's dm-1 is made of sda, sdb" in reading.conditions[0]
    assert [path["usable"] for path in each["paths"]] == [True, False]


def test_multipath_is_not_asked_on_a_bench_without_maps(tree: BenchTree) -> None:
    assert read_paths(facts_of(tree, Tools({})), tree.machine, Tools({"multipath -ll": "odd"}), Conditions()) == []


def test_deep_facts_have_shelves_and_paths(tree: BenchTree) -> None:
    tree.stacked("dm-1", ["sda"], title="data", uuid="mpath-35000c50015ea0000")
    only = MAP.replace("  `- 3:0:0:0 sdb 8:32 failed faulty offline\n", "")
    facts = facts_of(tree, Tools({**SHELF, "multipath -ll": only}), deep=True)
    assert [element["temperature"] for element in facts["shelves"][0]["elements"] if "Temp" in element["name"]] == [
        25,
        None,
        65,
    ]
    assert facts["multipath"][0]["drives"] == ["0x5000c50015ea0000"]
    assert {drive["name"]: drive.get("position") for drive in facts["drives"] if drive["transport"] == "scsi"} == {
        "sda": "slot 0 of shelf 5000ccab05001000",
        "sdb": None,
        "sdd": "slot 2 of shelf 5000ccab05001000",
    }
    assert len(facts["conditions"]) == 4


def test_a_preflight_of_a_run_says_it_and_passes(tree: BenchTree) -> None:
    drive = {"wwn": "0x5000c50015ea0000", "serial": "A1", "vendor": "SEAGATE", "model": "ST336607LW", "size": "20MiB"}
    adapters = {"sas": {"driver": "mpt3sas", "pci": PCI, "drives": [{**drive, "claim": True}]}}
    request = {"adapters": adapters, "state_dir": STATE}
    runner = Tools(SHELF)
    found = examine(Request(**request, logs=True), machine=tree.machine, runner=runner)
    assert (found.exit_code, len(found.conditions)) == (0, 5)
    assert found.conditions[-1].startswith("no watchdog")
    assert examine(Request(**request), machine=tree.machine, runner=runner).conditions == []
