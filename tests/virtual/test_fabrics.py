# SPDX-License-Identifier: Apache-2.0
"""Fabrics of a virtual bench: all LUNs on their initiators, a guard that refuses, a slower port, faults that fire."""

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.run import read_run
from storqual.run.turns import turns_of
from tests.support.live_bench import REPOSITORY, over_ssh, power_fixture, put_guest, qualified, ran

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(5400)]

INVENTORY = REPOSITORY / "inventories" / "virtual_fabrics"
STATE = REPOSITORY / ".cache" / "bench" / "vfabric"
LUNS = {"pseudo/fcoe": 4, "pseudo/iscsi_tcp": 2, "pseudo/nvme_tcp": 2}


powered = power_fixture(INVENTORY, STATE)


def test_every_lun_is_on_the_initiator_of_its_fabric(tmp_path: Path) -> None:
    code, said = ran(tmp_path / "facts", "storqual", "facts", "-i", INVENTORY, "--json")
    assert code == 0, said[-2000:]
    facts: dict[str, Any] = json.loads(said)["vfabric"]
    adapters = [drive["adapter"] for drive in facts["drives"]]
    assert {name: adapters.count(name) for name in LUNS} == LUNS


REFUSED = {
    "reserved": "another host holds a reservation of it (Write Exclusive, key 0xabc of iqn.2026-11.storqual:other)",
    "mounted": "it holds a file system (ext4)",
    "copied": "2 devices of this bench answer to that name",
    "mapped": "LUN 0 (",
    "resized": "it says that it has 2147483648 bytes, the kernel has 1073741824",
    "led_elsewhere": "it leads to another LUN now",
}
"""What others do to a LUN, after the guard gave it out once, and why it does not again."""


def test_what_others_do_to_a_lun_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    said = ran(tmp_path / "inventory", "storqual", "inventory", "--json", "-i", INVENTORY)[1]
    put_guest(STATE, "vfabric")
    line = f"cd /root/trial && python3 guard_luns.py {' '.join(REFUSED)}"
    adapters = json.dumps(json.loads(said)["vfabric"]["adapters"]).encode()
    *states, last = map(json.loads, over_ssh(STATE, "vfabric", line, data=adapters, limit_s=900).splitlines())
    assert (last["said"], len(states)) == ([], len(REFUSED))
    for state, sentence in zip(states, REFUSED.values(), strict=True):
        assert (state["before"], state["written"]) == ([], {}), state
        assert any(sentence in reason for reason in state["said"]), state


def test_a_slower_port_fails_and_nothing_is_written_outside_claims(tmp_path: Path) -> None:
    words = ["--baseline", "installed", "--candidate", "slower_port", "--suite", "fabric-ports", "--adapters", "fc"]
    code, said, run = qualified(tmp_path, INVENTORY, *words)
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert (code, verdict["outcome"], verdict["sectors_written_outside_claims"]) == (1, "FAIL", 0), said[-3000:]
    assert "with no FC hardware" in (run / "report.html").read_text(encoding="utf-8")


def test_the_method_of_ports_and_cards_has_a_form_for_two_fc_ports(tmp_path: Path) -> None:
    words = ["--candidate", "installed", "--suite", "a6826a-port-scaling", "--profile", "two_ports"]
    code, said, run = qualified(tmp_path, INVENTORY, *words, "--adapters", "fc")
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert (code, verdict["coverage"]["planned"], verdict["coverage"]["measured"]) == (0, 24, 24), said[-3000:]
    assert "with no FC hardware" in (run / "report.html").read_text(encoding="utf-8")


def test_every_fault_of_a_fabric_fires(tmp_path: Path) -> None:
    words = ["--baseline", "installed", "--candidate", "stable", "--suite", "fabrics"]
    code, said, run = qualified(tmp_path, INVENTORY, *words)
    assert code in (0, 1, 2), said[-3000:]
    records = turns_of(read_run(run)).records
    assert {record["fault"] for record in records} >= {"frame_loss", "session_loss", "lun_unmapped"}
    void = [(record["fault"], record["reasons"]) for record in records if record["outcome"] == "void"]
    assert not void, said[-3000:]
    ended = over_ssh(STATE, "vfabric", "tc qdisc show | grep -c netem || true", limit_s=60).strip()
    assert ended == "0"
