# SPDX-License-Identifier: Apache-2.0
"""An inventory drafted from facts: readable, claims nothing, and device text is only text in it."""

import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual.bench.draft import draft_inventory
from storqual.inputs.lab import inventory_from_hostvars
from storqual_core.facts.bench_facts import read_facts
from storqual_core.facts.preflight import compare
from storqual_core.guard.claims import claims_of_adapters
from tests.support.bench_tree import STATE, BenchTree
from tests.support.fabric_tree import INITIATOR, LUN, TARGET, FabricTree, fc_bench
from tests.support.replay import Tools


class Loader(yaml.SafeLoader):
    """Ansible's tag for text that is no template."""


Loader.add_constructor("!unsafe", lambda loader, node: str(loader.construct_scalar(node)))


def drafted(facts: dict[str, Any]) -> dict[str, Any]:
    document = yaml.load(draft_inventory({"bench1": facts}), Loader=Loader)  # noqa: S506 - a SafeLoader
    return dict(document["benches"]["hosts"]["bench1"]["storqual_adapters"])


def test_the_draft_describes_the_bench_and_claims_nothing(tmp_path: Path) -> None:
    """What was read is what the preflight would find."""
    tree = BenchTree(tmp_path).adapter().scsi("sda").scsi("sdb", wwn="", serial="SER2")
    tree.adapter("0000:00:09.0", driver="nvme", pci_class="0x010802").nvme()
    facts = read_facts(tree.machine, state_dir=STATE)
    adapters = drafted(facts)
    assert list(adapters) == ["sym53c8xx0", "nvme0"]
    assert claims_of_adapters(adapters) == ()
    assert compare(facts, adapters) == []
    for adapter in adapters.values():
        for drive in adapter["drives"]:
            drive["claim"] = True
    assert [claim.id for claim in claims_of_adapters(adapters)] == [
        "0x5000c50000000001",
        "SER2",
        "eui.0011223344556677",
    ]


def test_the_disk_of_the_machine_itself_carries_a_warning(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter("0000:00:01.0", driver="virtio-pci")
    assert "# vda carries / and storqual's spool: never claim it" in draft_inventory(
        {"b": read_facts(tree.machine, state_dir=STATE)}
    )


ADAPTER = json.loads(Path(__file__).with_name("drafted_adapter.json").read_text(encoding="utf-8"))
DRIVE = json.loads(Path(__file__).with_name("drafted_drive.json").read_text(encoding="utf-8"))


def bench(*drives: dict[str, Any], **adapter: Any) -> dict[str, Any]:
    return {"adapters": [{**ADAPTER, **adapter}], "drives": [{**DRIVE, **drive} for drive in drives], "volumes": []}


def accepted(facts: dict[str, Any]) -> dict[str, Any]:
    """The adapters of the draft, once the loader of inventories has taken it."""
    document = yaml.load(draft_inventory({"bench1": facts}), Loader=Loader)  # noqa: S506 - a SafeLoader
    hosts = document["benches"]["hosts"]
    inventory_from_hostvars(hosts)
    return dict(hosts["bench1"]["storqual_adapters"])


@settings(deadline=None)
@given(st.text(alphabet=st.characters(min_codepoint=1, max_codepoint=255), min_size=1, max_size=24))
def test_whatever_a_drive_calls_itself_stays_its_name(text: str) -> None:
    """Quotes, colons, braces, escapes: read back, it is the same text, and no template.

    A text that no inventory can hold (control characters, blanks alone) is a comment; that drive cannot be claimed.
    """
    facts = bench({"serial": text, "vendor": text, "model": text}, board=text)
    found = accepted(facts)["x0"]
    draft = draft_inventory({"bench1": facts})
    if not text.strip() or any(ord(character) < 32 or ord(character) == 127 for character in text):
        assert found["drives"] == []
        assert "# sda has control characters in its name, so it cannot be claimed:" in draft
        return
    assert (found["model"], found["drives"][0]["serial"], found["drives"][0]["model"]) == (text, text, text)
    assert ("!unsafe" in draft) == any(mark in text for mark in ("{{", "{%", "{#"))


def test_what_no_inventory_can_name_is_a_comment() -> None:
    facts = bench(
        {"wwn": "0x5000c50000000001"},
        {"name": "sdb", "serial": ""},
        {"name": "sdc", "wwn": "0x5000c50000000001"},
        {"name": "sdd", "wwn": "0x5000c50000000002"},
    )
    assert [drive["wwn"] for drive in accepted(facts)["x0"]["drives"]] == ["0x5000c50000000001"]
    draft = draft_inventory({"bench1": facts})
    assert "# sdb reports neither WWN nor serial number, so it cannot be claimed:" in draft
    assert "# sdc has a name of a drive above (another path, another namespace), so it cannot be claimed:" in draft
    assert draft.count("claim: false") == 4


def test_what_a_technician_must_know_stands_beside_it() -> None:
    link = {"speed": "5.0 GT/s", "width": 4, "speed_max": "8.0 GT/s", "width_max": 8}
    volume = {"kind": "controller", "node": "/dev/sda", "name": "0/239", "level": "1", "members": ["M0", "M1"]}
    facts = bench(
        {"position": "252:4", "health": {"passed": False}},
        slot="riser 1",
        tools=["storcli"],
        versions={"firmware": "16.00", "bios": "8.37"},
        link=link,
    )
    draft = draft_inventory({"bench1": {**facts, "volumes": [volume]}})
    for line in (
        'slot: "riser 1"',
        'tool: "storcli"',
        "# found with firmware 16.00, bios 8.37",
        "# its link runs at 5.0 GT/s x4, it could run at 8.0 GT/s x8",
        "# volume 0/239 (RAID 1) of M0, M1",
        "# sda reports that it is failing",
        'position: "252:4"',
    ):
        assert line in draft, line
    assert accepted({**facts, "volumes": [volume]})["x0"]["drives"][0]["position"] == "252:4"


def two_fabrics(root: Path) -> FabricTree:
    """Two FC adapters, each with a port on a fabric of its own, and two LUNs through both."""
    tree = fc_bench(root)
    tree.adapter("0000:00:06.0", driver="qla2xxx", pci_class="0x0c0400")
    tree.fc_port(3, wwpn="0x2100000e1e000002", above="pci0000:00/0000:00:06.0")
    tree.remote_port("rport-3:0-1", wwpn="0x5006016800000001")
    tree.lun("sdb", through="rport-3:0-1", hctl="3:0:0:0")
    tree.lun("sdc", hctl="2:0:0:1", wwn=LUN[:-1] + "d", serial="APM2")
    tree.lun("sdd", through="rport-3:0-1", hctl="3:0:0:1", wwn=LUN[:-1] + "d", serial="APM2")
    return tree


def test_a_lun_is_drafted_once_with_all_of_its_paths_and_the_bench_agrees(tmp_path: Path) -> None:
    facts = read_facts(two_fabrics(tmp_path).machine, state_dir=STATE, runner=Tools({}))
    text = draft_inventory({"bench01": facts})
    adapters = drafted(facts)
    assert [[drive["wwn"] for drive in adapter["drives"]] for adapter in adapters.values()] == [
        [LUN, LUN[:-1] + "d"],
        [],
    ]
    drive = adapters["qla2xxx0"]["drives"][0]
    assert drive["port"] == {"initiator": INITIATOR, "target": TARGET}
    assert drive["paths"] == [
        {"initiator": "0x2100000e1e000002", "target": "0x5006016800000001", "adapter": "qla2xxx1"}
    ]
    assert f"# port {INITIATOR} Online, 16 Gbit" in text
    # two disks of one name are told apart from a copy by multipath alone
    twice = "drives of this bench have"
    assert [sentence for sentence in compare(facts, adapters) if twice not in sentence] == []


def test_software_initiators_are_drafted_without_an_address(tmp_path: Path) -> None:
    tree = FabricTree(tmp_path)
    tree.session().lun("sda", through="session1", hctl="3:0:0:0")
    tree.session(2, host=4, address="192.0.2.2").lun("sdb", through="session2", hctl="4:0:0:0")
    tree.nvme_fabric(("tcp", "traddr=192.0.2.1,trsvcid=4420", "optimized"))
    facts = read_facts(tree.machine, state_dir=STATE, runner=Tools({}))
    adapters = drafted(facts)
    assert [adapter["model"] for adapter in adapters.values()] == [
        "software initiator iscsi_tcp",
        "software initiator nvme_tcp",
    ]
    iscsi, space = adapters["iscsi_tcp0"]["drives"][0], adapters["nvme_tcp0"]["drives"][0]
    assert (iscsi["port"]["target"], iscsi["paths"][0]["target"]) == ("192.0.2.1:3260", "192.0.2.2:3260")
    inventory_from_hostvars({"b1": {"storqual_kind": "hardware", "storqual_adapters": adapters}})
    assert space["port"] == {"initiator": "nqn.2014-08.org.example:bench", "target": "192.0.2.1:4420"}
    assert all("drives of this bench have" in sentence for sentence in compare(facts, adapters))
