# SPDX-License-Identifier: Apache-2.0
"""What is not as it could be on a fabric: a sentence each, in a preflight and in deep facts, and no refusal."""

from pathlib import Path
from typing import Any

import pytest

from storqual_core.facts.bench_facts import read_facts
from storqual_core.facts.conditions import fabric_conditions, read_conditions
from storqual_core.facts.preflight import compare
from tests.support.bench_tree import STATE
from tests.support.fabric_tree import INITIATOR, LUN, TARGET, FabricTree, fc_bench
from tests.support.replay import Tools

PORT = f"FC port {INITIATOR} of 0000:00:05.0: "
OTHER = LUN[:-1] + "d"


@pytest.fixture
def tree(tmp_path: Path) -> FabricTree:
    """One LUN through one port of 16 Gbit, all well."""
    return fc_bench(tmp_path)


def told(tree: FabricTree) -> list[str]:
    return list(fabric_conditions(read_facts(tree.machine, state_dir=STATE, runner=Tools({}))))


def test_a_fabric_that_is_well_says_nothing(tree: FabricTree) -> None:
    tree.nvme_fabric(("tcp", "traddr=192.0.2.1,trsvcid=4420", "optimized")).session()
    tree.remote_port("rport-2:0-2", wwpn="0x2100000e1e000009", roles="FCP Initiator", target=-1)
    assert told(tree) == []


def test_a_target_without_a_target_id_is_told_with_what_helps(tree: FabricTree) -> None:
    tree.remote_port("rport-2:0-3", wwpn="0x5006016900000001", roles="FCP Target, FCP Initiator", target=-1)
    (sentence,) = told(tree)
    assert sentence.startswith(f"{PORT}remote port 0x5006016900000001 (rport-2:0-3) says that it is a target")
    assert "log in again" in sentence


def test_a_slow_port_and_one_that_is_not_online(tmp_path: Path) -> None:
    tree = FabricTree(tmp_path)
    tree.adapter(driver="qla2xxx", pci_class="0x0c0400")
    tree.fc_port(speed="4 Gbit").fc_port(3, wwpn="0x2100000e1e000002", state="Linkdown", speed="unknown")
    assert told(tree) == [
        f"{PORT}its link runs at 4 Gbit, it could run at 16 Gbit",
        "FC port 0x2100000e1e000002 of 0000:00:05.0: it is Linkdown, not Online",
    ]


def test_a_remote_port_a_session_and_a_controller_that_are_gone(tree: FabricTree) -> None:
    tree.remote_port("rport-2:0-3", wwpn="0x5006016900000001", state="Blocked", target=4)
    tree.session(state="FAILED").nvme_fabric(("tcp", "traddr=192.0.2.1", "optimized"), state="connecting")
    assert told(tree) == [
        f"{PORT}remote port 0x5006016900000001 (rport-2:0-3) is Blocked, not Online",
        "iSCSI session1 to iqn.2003-01.org.example:t1: its state is FAILED",
        "NVMe controller nvme0 of nqn.2014-08.org.example:s1: its state is connecting",
    ]


def test_a_lun_with_fewer_paths_than_others_of_its_target(tree: FabricTree) -> None:
    tree.remote_port("rport-2:0-2", wwpn="0x5006016800000001", target=1)
    tree.lun("sdb", through="rport-2:0-2", hctl="2:0:1:0")
    tree.lun("sdc", hctl="2:0:0:1", wwn=OTHER, serial="APM2")
    assert told(tree) == [f"LUN {OTHER}: 1 path to it is there, 2 to LUN {LUN} of the same target"]
    # another array has its own number of paths
    tree.remote_port("rport-2:0-4", wwpn="0x50060e8000000001", target=2)
    tree.lun("sdd", through="rport-2:0-4", hctl="2:0:2:0", wwn=LUN[:-1] + "e", serial="H1")
    assert len(told(tree)) == 1


def test_a_lun_of_which_no_path_is_optimized(tree: FabricTree) -> None:
    tree.lun("sdb", hctl="2:0:0:1", wwn=OTHER, serial="APM2", access="standby")
    assert told(tree) == [f"LUN {OTHER}: no path to it is optimized, they are standby"]


def test_a_preflight_tells_the_ports_of_its_adapters_alone(tmp_path: Path) -> None:
    tree = fc_bench(tmp_path)
    tree.adapter("0000:00:06.0", driver="lpfc", pci_class="0x0c0400")
    tree.fc_port(7, wwpn="0x1000000e1e000007", above="pci0000:00/0000:00:06.0", state="Linkdown")
    tree.remote_port("rport-2:0-3", wwpn=TARGET[:-1] + "7", target=-1)
    facts = read_facts(tree.machine, state_dir=STATE, runner=Tools({}))
    found = read_conditions(facts, ["0000:00:05.0"], tree.machine, Tools({}))
    assert len(found.conditions) == 1
    assert "no target id" in found.conditions[0]
    deep = read_facts(tree.machine, state_dir=STATE, runner=Tools({}), deep=True)
    assert len(deep["conditions"]) == 2


ROUTE = {"initiator": INITIATOR, "target": TARGET}
DRIVE = {"wwn": LUN, "serial": "APM1", "model": "VRAID", "size": "20MiB"}


def differences(tree: FabricTree, **drive: Any) -> list[str]:
    adapters = {"fc0": {"driver": "qla2xxx", "pci": "0000:00:05.0", "drives": [{**DRIVE, **drive}]}}
    return compare(read_facts(tree.machine, state_dir=STATE, runner=Tools({})), adapters)


def test_declared_paths_are_compared_with_those_that_are_there(tree: FabricTree) -> None:
    assert differences(tree, port=ROUTE) == []
    # Ansible makes a number of an unquoted WWPN
    assert differences(tree, port={"initiator": int(INITIATOR, 16), "target": "50:06:01:60:00:00:00:01"}) == []
    lost = {"initiator": INITIATOR, "target": "0x5006016800000001"}
    (sentence,) = differences(tree, port=ROUTE, paths=[lost])
    assert f"the path from {INITIATOR} to 0x5006016800000001 is not there; its paths are {INITIATOR}" in sentence


def test_a_path_that_the_inventory_does_not_name_is_a_difference_where_it_names_any(tree: FabricTree) -> None:
    tree.remote_port("rport-2:0-2", wwpn="0x5006016800000001", target=1)
    tree.lun("sdb", through="rport-2:0-2", hctl="2:0:1:0").stacked("dm-3", ["sda", "sdb"], uuid=f"mpath-3{LUN[2:]}")
    assert differences(tree, port=0) == []
    (sentence,) = differences(tree, port=ROUTE)
    assert f"also reached from {INITIATOR} to 0x5006016800000001, LUN 0" in sentence


def test_a_lun_that_two_adapters_reach_is_on_the_one_that_declares_it(tree: FabricTree) -> None:
    """Whichever of them the kernel found first."""
    tree.adapter("0000:00:06.0", driver="lpfc", pci_class="0x0c0400")
    tree.fc_port(3, wwpn="0x1000000e1e000002", above="pci0000:00/0000:00:06.0", driver="lpfc")
    tree.remote_port("rport-3:0-1", wwpn="0x5006016800000001").lun("sdb", through="rport-3:0-1", hctl="3:0:0:0")
    tree.stacked("dm-3", ["sda", "sdb"], uuid=f"mpath-3{LUN[2:]}")
    route = {"initiator": "0x1000000e1e000002", "target": "0x5006016800000001"}
    adapters = {
        "fc0": {"driver": "qla2xxx", "pci": "0000:00:05.0", "drives": []},
        "fc1": {
            "driver": "lpfc",
            "pci": "0000:00:06.0",
            "drives": [{**DRIVE, "port": route, "paths": [{**ROUTE, "adapter": "fc0"}]}],
        },
    }
    assert compare(read_facts(tree.machine, state_dir=STATE, runner=Tools({})), adapters) == []
