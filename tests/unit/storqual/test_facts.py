# SPDX-License-Identifier: Apache-2.0
"""An inventory drafted from facts: readable, claims nothing, and device text is only text in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual.facts import draft_inventory
from storqual_core.bench_facts import read_facts
from storqual_core.guard_claims import claims_of_adapters
from storqual_core.identity_check import compare
from tests.bench_tree import STATE, BenchTree


class Loader(yaml.SafeLoader):
    """Ansible's tag for text that is no template."""


Loader.add_constructor("!unsafe", lambda loader, node: str(loader.construct_scalar(node)))


def drafted(facts: dict[str, Any]) -> dict[str, Any]:
    """The adapters of the drafted inventory, read back."""
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
    """A technician must not claim it by accident."""
    tree = BenchTree(tmp_path).adapter("0000:00:01.0", driver="virtio-pci")
    assert "# vda carries / and storqual's spool: never claim it" in draft_inventory(
        {"b": read_facts(tree.machine, state_dir=STATE)}
    )


@settings(deadline=None)
@given(st.text(alphabet=st.characters(min_codepoint=1, max_codepoint=255), min_size=1, max_size=24))
def test_whatever_a_drive_calls_itself_stays_its_name(text: str) -> None:
    """Quotes, colons, braces, escapes: read back, it is the same text, and no template."""
    facts = {"adapters": [], "drives": []}
    link = {"speed": "", "width": None, "speed_max": "", "width_max": None}
    adapter = {
        "pci": "0000:00:05.0",
        "vendor": "1000",
        "device": "0012",
        "driver": "x",
        "board": text,
        "subsystem": ":",
        "serial": "",
        "link": link,
    }
    drive = {
        "adapter": "0000:00:05.0",
        "name": "sda",
        "wwn": "",
        "serial": text,
        "vendor": text,
        "model": text,
        "revision": "",
        "size": 512,
        "rotation": None,
        "port": 0,
        "system": "",
    }
    found = drafted({**facts, "adapters": [adapter], "drives": [drive]})["x0"]
    assert (found["model"], found["drives"][0]["serial"], found["drives"][0]["model"]) == (text, text, text)
    draft = draft_inventory({"bench1": {**facts, "adapters": [adapter], "drives": [drive]}})
    assert ("!unsafe" in draft) == any(mark in text for mark in ("{{", "{%", "{#"))
