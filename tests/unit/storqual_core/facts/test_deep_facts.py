# SPDX-License-Identifier: Apache-2.0
"""What tools add to a fact set: joined to the kernel's facts, and never a stop."""

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storqual_core.facts import tool_facts
from storqual_core.facts.bench_facts import environment_of, read_facts
from storqual_core.kit.errors import ToolError
from storqual_core.provision import nvram
from storqual_core.tools.capabilities import (
    AdapterFacts,
    DriveFacts,
    EnclosureFacts,
    PortFacts,
    ToolFacts,
    VolumeFacts,
)
from tests.support.bench_tree import STATE, BenchTree
from tests.support.replay import Tools
from tests.support.tool_fixtures import fixture_text

PCI = "0000:3b:00.0"
WWN = "0x5000c50000000001"
ANSWERS = {
    "dmidecode -t slot": fixture_text("dmidecode", "slots.txt"),
    "lspci -D -vvv": fixture_text("lspci", "verbose.txt"),
    "lsscsi -g": fixture_text("lsscsi", "g.txt"),
    "sg_inq /dev/sg1": fixture_text("sg3", "inquiry.txt"),
    "sdparm --all --long /dev/sg0": fixture_text("sdparm", "long.txt"),
    "smartctl --json -a /dev/sda": fixture_text("smartctl", "scsi.json"),
    "nvme smart-log /dev/nvme0n1 --output-format=json": fixture_text("nvme", "smart_log.json"),
    "nvme list --verbose --output-format=json": fixture_text("nvme", "list_tree.json"),
    "lspci -D -vmmkn": fixture_text("lspci", "records.txt"),
    "smartctl --json --scan": fixture_text("smartctl", "scan.json"),
    "smartctl --json -a -d megaraid,8 /dev/bus/0": fixture_text("smartctl", "ata.json"),
    "smartctl --json -a -d megaraid,9 /dev/bus/0": fixture_text("smartctl", "open_failed.json"),
}


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """An adapter in a slot with one drive, and an NVMe drive."""
    tree = BenchTree(tmp_path).adapter(PCI, driver="mpt3sas").scsi("sda", pci=PCI)
    tree.adapter("0000:00:09.0", driver="nvme", pci_class="0x010802").nvme()
    tree.write("/sys/bus/pci/slots/7/address", "0000:00:09\n")
    tree.link("/sys/class/scsi_host/host2", f"/sys/devices/pci0000:00/{PCI}/host2/scsi_host/host2")
    tree.write(f"/sys/devices/pci0000:00/{PCI}/host2/scsi_host/host2/device/nvram", b"\x01\x02\x03")
    return tree


def read(tree: BenchTree, runner: Tools) -> dict[str, Any]:
    """The deep fact set, as JSON carries it."""
    found = json.loads(json.dumps(read_facts(tree.machine, state_dir=STATE, runner=runner, deep=True)))
    assert isinstance(found, dict)
    return found


def test_adapters_get_slot_serial_vital_product_data_and_errors(tree: BenchTree) -> None:
    """The label of the slot is the firmware's where it has one, else the kernel's name of it."""
    nvme, sas = read(tree, Tools(ANSWERS))["adapters"]
    assert (nvme["slot"], sas["slot"]) == ("7", "PCIe Slot 2")
    assert (sas["serial"], sas["vpd"]["V3"]) == ("EX0001", "16.00.01.00")
    assert "UESta UnsupReq" in sas["pci_errors"]
    assert sas["nvram"]["sha256"] == hashlib.sha256(b"\x01\x02\x03").hexdigest()


def test_drives_get_mode_pages_and_health(tree: BenchTree) -> None:
    nvme, sda = (drive for drive in read(tree, Tools(ANSWERS))["drives"] if drive["name"] != "vda")
    assert sda["mode_pages"]["WCE"] == {"value": 0, "changeable": True, "default": 1, "saved": 0}
    assert (sda["health"]["passed"], sda["health"]["hours"]) == (True, 1234)
    assert sda["health"]["counters"]["grown_defects"] == 3
    assert (nvme["health"]["passed"], nvme["health"]["temperature"]) == (False, 27)
    assert nvme["namespace"] == {"controller": "nvme0", "used": None, "sector": 4096}


def test_without_smartctl_the_log_pages_count_errors_and_the_drive_tells_its_size(tree: BenchTree) -> None:
    answers = {
        "sg_logs -a /dev/sg0": fixture_text("sg3", "logs_all.txt"),
        "sg_readcap --long /dev/sg0": fixture_text("sg3", "readcap_long.txt"),
    }
    drive = next(drive for drive in read(tree, Tools(answers))["drives"] if drive["name"] == "sda")
    assert drive["health"]["counters"]["write.total_uncorrected_errors"] == 1
    assert drive["capacity"] == {"size": 1000204886016, "block": 512, "physical_block": 4096}


def test_disks_behind_a_controller_are_asked_one_by_one(tree: BenchTree) -> None:
    facts = read(tree, Tools(ANSWERS))
    (hidden,) = facts["hidden_drives"]
    assert (hidden["kind"], hidden["serial"], hidden["health"]["passed"]) == ("megaraid,8", "EXSER2", False)
    assert [sentence.partition(":")[0] for sentence in facts["unread"]] == ["/dev/bus/0 megaraid,9"]


def test_every_pci_function_is_listed_and_a_link_that_sysfs_lacks_is_filled_in(tree: BenchTree) -> None:
    """Old kernels show no link."""
    facts = read(tree, Tools(ANSWERS))
    assert [(each["address"], each["class"]) for each in facts["pci"]] == [(PCI, "0107"), ("0001:00:1f.2", "0106")]
    assert facts["adapters"][1]["link"] == {"speed": "5GT/s", "width": 4, "speed_max": "8GT/s", "width_max": 8}


def test_without_sdparm_pages_and_masks_are_read_as_bytes(tree: BenchTree) -> None:
    masks = {
        "0x8,0x0": "88 12 04 00 00 00 00 00 00 00 00 00 20 00 00 00 00 00 00 00",
        "0xa,0x0": "8a 0a 00 00 00 00 00 00 00 00 00 00",
    }
    answers = {
        "sg_modes -a /dev/sg0": fixture_text("sg3", "modes.txt"),
        **{f"sg_modes -R --control=1 --page={place} /dev/sg0": mask for place, mask in masks.items()},
    }
    facts = read(tree, Tools(answers))
    (sda,) = (drive for drive in facts["drives"] if drive["name"] == "sda")
    fields = sda["mode_pages"]
    assert (fields["WCE"], fields["DRA"]) == ({"value": 1, "changeable": True}, {"value": 0, "changeable": True})
    assert (fields["RCD"], fields["D_SENSE"]) == (
        {"value": 0, "changeable": False},
        {"value": 0, "changeable": False},
    )
    assert "AWRE" not in fields


def test_of_a_page_without_a_mask_nothing_is_said_of_changes(tree: BenchTree) -> None:
    answers = {"sg_modes -a /dev/sg0": fixture_text("sg3", "modes.txt")}
    (sda,) = (drive for drive in read(tree, Tools(answers))["drives"] if drive["name"] == "sda")
    assert sda["mode_pages"]["WCE"] == {"value": 1}


def test_devices_that_are_no_disks_are_listed(tree: BenchTree) -> None:
    """With the serial number that the kernel does not keep."""
    devices = read(tree, Tools(ANSWERS))["devices"]
    assert [(device["kind"], device["model"], device["serial"]) for device in devices] == [
        ("enclosu", "JBOD 24", "ENC0001"),
        ("cd/dvd", "DVD", ""),
    ]


def test_a_tool_that_fails_leaves_a_sentence_and_one_that_is_missing_nothing(tree: BenchTree) -> None:
    runner = Tools({**ANSWERS, "lspci -D -vvv": ""})
    runner.broken = {"smartctl"}
    facts = read(tree, runner)
    assert facts["unread"] == [
        "PCI functions: lspci shows no PCI function: it printed nothing",
        f"{WWN}: `smartctl` did not end within 120 s",
        "disks behind controllers: `smartctl` did not end within 120 s",
    ]
    assert read(tree, Tools({}))["unread"] == []


def test_a_drive_of_an_old_kernel_is_named_by_its_pages(tmp_path: Path) -> None:
    """Before 3.15 the kernel does not keep them."""
    tree = BenchTree(tmp_path).adapter().scsi("sda", wwn="", serial="")
    answers = {"sg_vpd -HHH --page=0x83 /dev/sg0": fixture_text("sg3", "page_0x83.hex")}
    (sda,) = (drive for drive in read(tree, Tools(answers))["drives"] if drive["name"] == "sda")
    assert (sda["id"], sda["wwn"]) == ("0x5000c500deadbeef", "0x5000c500deadbeef")
    facts = read(tree, Tools(answers))
    assert facts["adapters"][0]["drives"] == ["0x5000c500deadbeef"]


SAID = AdapterFacts(
    index="0",
    model="Example RAID",
    serial="VENDOR1",
    pci=PCI.upper(),
    firmware={"firmware": "16.00", "bios": "8.37"},
    health="Optimal",
    settings={"rebuildrate": "30"},
    drives=(DriveFacts("252:0", serial="M0"), DriveFacts("252:1", wwn="0x5000c50000000099")),
    volumes=(VolumeFacts("0/239", wwn=WWN, level="1", state="Optl", size=1 << 30, members=("252:0", "252:1")),),
    enclosures=(EnclosureFacts("252", slots=8),),
)


@pytest.fixture
def vendor(tree: BenchTree, monkeypatch: pytest.MonkeyPatch) -> list[AdapterFacts]:
    """A vendor tool that is installed in its own folder, and what it says."""
    said = [SAID]
    tool = SimpleNamespace(PROGRAMS=("acmecli64", "acmecli"), read_facts=lambda _: ToolFacts(tuple(said), ("?",)))
    absent = SimpleNamespace(PROGRAMS=("nobody",), read_facts=lambda _: pytest.fail("not installed"))
    monkeypatch.setattr(tool_facts, "TOOLS", {"acme": lambda: tool, "absent": lambda: absent, "other": lambda: len})
    tree.write("/opt/MegaRAID/storcli/acmecli", "")
    return said


def test_a_vendor_tool_is_joined_by_address(tree: BenchTree, vendor: list[AdapterFacts]) -> None:
    facts = read(tree, Tools({}))
    _, sas = facts["adapters"]
    assert (sas["serial"], sas["firmware"], sas["versions"]["bios"]) == ("VENDOR1", "16.00", "8.37")
    assert (sas["health"], sas["tools"]) == ("Optimal", ["acme"])
    assert sas["nvram"]["of"] == "the image that the driver shows"
    (volume,) = facts["volumes"]
    assert (volume["node"], volume["level"], volume["adapter"]) == ("/dev/sda", "1", PCI)
    assert volume["members"] == ["M0", "0x5000c50000000099"]
    assert facts["enclosures"][0]["slots"] == 8
    assert facts["tool_facts"]["acme"]["notes"] == ["?"]
    assert facts["tools"]["acmecli"]["path"] == "/opt/MegaRAID/storcli/acmecli"


def test_a_tool_that_tells_no_address_is_joined_by_what_is_unique(
    tree: BenchTree, vendor: list[AdapterFacts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By serial number, or by the name of a port; else it is kept, and joined to nothing."""
    host = f"/sys/devices/pci0000:00/{PCI}/host2"
    tree.write("/sys/class/fc_host/host2/port_name", "0x21000024ff000001\n")
    vendor[0] = AdapterFacts(index="1", model="FC", ports=(PortFacts("1", wwn="0x21000024ff000001"),))
    tree.write(f"{host}/scsi_host/host2/proc_name", "qla2xxx\n")
    assert read(tree, Tools({}))["adapters"][1]["tools"] == ["acme"]
    vendor[0] = AdapterFacts(index="1", model="FC", serial="UNKNOWN")
    facts = read(tree, Tools({}))
    assert "tools" not in facts["adapters"][1]
    assert facts["tool_facts"]["acme"]["adapters"][0]["serial"] == "UNKNOWN"


def test_settings_stand_for_an_nvram_whose_image_nobody_shows(
    tree: BenchTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.root / f"sys/devices/pci0000:00/{PCI}/host2/scsi_host/host2/device/nvram").unlink()
    values = {"interrupt_coalescing_depth": 4}
    tool = SimpleNamespace(
        SETTINGS={},
        read_settings=lambda _runner, index: values if index == "1" else {},
        read_facts=lambda _: ToolFacts((AdapterFacts(index="1", pci=PCI),)),
    )
    monkeypatch.setattr(nvram, "TOOLS", {"lsiutil": lambda: tool})
    first = read(tree, Tools({}))["adapters"][1]["nvram"]
    assert (first["of"], first["tool"], first["settings"]) == ("the settings", "lsiutil", values)
    values["interrupt_coalescing_depth"] = 8
    assert read(tree, Tools({}))["adapters"][1]["nvram"]["sha256"] != first["sha256"]


def test_a_vendor_tool_that_fails_is_a_sentence(tree: BenchTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts of the kernel stand."""

    def fails(runner: Any) -> ToolFacts:
        raise ToolError("acmecli printed no JSON object: segmentation fault")

    tool = SimpleNamespace(PROGRAMS=("acmecli",), read_facts=fails)
    monkeypatch.setattr(tool_facts, "TOOLS", {"acme": lambda: tool})
    tree.write("/usr/local/bin/acmecli", "")
    facts = read(tree, Tools({}))
    assert facts["unread"] == ["acme: acmecli printed no JSON object: segmentation fault"]
    assert len(facts["adapters"]) == 2


def test_the_fingerprint_is_the_same_however_deep_one_looked(tree: BenchTree) -> None:
    adapters = {"sas": {"pci": PCI, "drives": [{"wwn": WWN}]}}
    shallow = environment_of(read_facts(tree.machine, state_dir=STATE, runner=Tools({})), adapters)
    deep = environment_of(read_facts(tree.machine, state_dir=STATE, runner=Tools({}), deep=True), adapters)
    assert shallow == deep
