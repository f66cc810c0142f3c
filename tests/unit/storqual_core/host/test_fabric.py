# SPDX-License-Identifier: Apache-2.0
"""Fabrics as the transport classes of the kernel show them: ports, sessions, subsystems, paths of a drive."""

import json
from pathlib import Path
from typing import Any

import pytest

from storqual_core.facts.bench_facts import read_facts
from storqual_core.host.counters import Meter, path_counts, read_error_counters
from storqual_core.host.fabric import (
    fabric_of,
    fc_bytes_per_second,
    path_disks,
    portal,
    read_drive_paths,
    read_fc_port,
)
from storqual_core.host.identity import declared_address
from storqual_core.host.sysfs import read_adapters, read_drives
from storqual_core.turns import derive
from tests.support.bench_tree import STATE
from tests.support.fabric_tree import INITIATOR, LUN, TARGET, FabricTree, fc_bench


def facts_of(tree: FabricTree) -> dict[str, Any]:
    def runner(argv: list[str], **_: Any) -> Any:
        raise AssertionError(f"{argv} was run")

    found: dict[str, Any] = json.loads(json.dumps(read_facts(tree.machine, state_dir=STATE, runner=runner)))
    return found


def drive(facts: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in facts["drives"] if each["name"] == name)


def test_an_fc_port_is_a_fact_of_its_host(tmp_path: Path) -> None:
    tree = fc_bench(tmp_path)
    vport = {"port_name": "2101000e1e000001", "node_name": "0x2001000e1e000001", "vport_state": "Active"}
    tree.text_files("/sys/class/fc_vports/vport-2:0-0", vport)
    tree.text_files("/sys/class/fc_vports/vport-22:0-0", vport)
    (adapter,) = facts_of(tree)["adapters"]
    port = adapter["hosts"][0]["fc_port"]
    assert {name: port[name] for name in ("port_name", "node_name", "port_id", "state", "speed", "fabric_name")} == {
        "port_name": INITIATOR,
        "node_name": "0x2000000e1e000001",
        "port_id": "0x010200",
        "state": "Online",
        "speed": "16 Gbit",
        "fabric_name": "0x100000051e000001",
    }
    assert port["npiv"] == [{"port_name": "0x2101000e1e000001", "node_name": "0x2001000e1e000001", "state": "Active"}]
    # the driver keeps no counter of lost signals, which is not zero of them
    assert port["statistics"] == {
        "link_failure_count": 2,
        "loss_of_sync_count": 0,
        "invalid_tx_word_count": 0,
        "invalid_crc_count": 1,
    }
    assert port["remote_ports"] == [
        {
            "name": "rport-2:0-1",
            "port_name": TARGET,
            "node_name": "0x5006017000000001",
            "port_id": "0x010300",
            "roles": "FCP Target",
            "state": "Online",
            "target_id": 0,
            "dev_loss_tmo": 30,
            "fast_io_fail_tmo": "off",
        }
    ]


def test_a_host_that_is_no_fc_port_has_none(tmp_path: Path) -> None:
    tree = FabricTree(tmp_path)
    tree.scsi_host(4, "pci0000:00/0000:00:05.0", "sym53c8xx")
    assert read_fc_port(tree.machine, "host4") is None


def test_a_luns_path_names_both_ports_its_lun_and_its_alua_state(tmp_path: Path) -> None:
    tree = fc_bench(tmp_path)
    tree.remote_port("rport-2:0-2", wwpn="0x5006016800000001", target=1)
    tree.lun("sdb", through="rport-2:0-2", hctl="2:0:1:7", access="active/non-optimized", preferred="0")
    tree.stacked("dm-3", ["sda", "sdb"], uuid=f"mpath-3{LUN[2:]}")
    facts = facts_of(tree)
    assert drive(facts, "sda")["paths"] == [
        {
            "device": "sda",
            "fabric": "fc",
            "through": "rport-2:0-1",
            "lun": "0",
            "initiator": INITIATOR,
            "target": TARGET,
            "portal": "",
            "state": "Online",
            "access": "active/optimized",
            "preferred": True,
        }
    ]
    (other,) = drive(facts, "sdb")["paths"]
    assert (other["target"], other["lun"]) == ("0x5006016800000001", "7")
    assert (other["access"], other["preferred"]) == ("active/non-optimized", False)
    assert drive(facts, "sdb")["multipath"] == "dm-3"
    # both are on the adapter of the port that reaches them
    assert {drive(facts, name)["adapter"] for name in ("sda", "sdb")} == {"0000:00:05.0"}


def test_the_software_initiator_of_fcoe_is_one_adapter_whatever_card_its_ports_use(tmp_path: Path) -> None:
    """One port is on a veth, one on an e1000, whose PCI function is no adapter of storage."""
    tree = FabricTree(tmp_path)
    tree.adapter("0000:00:04.0", driver="e1000", pci_class="0x020000")
    tree.fc_port(2, above="virtual/net/fi/ctlr_0", driver="fcoe")
    other = {"wwpn": "0x2100000e1e000002", "above": "pci0000:00/0000:00:04.0/net/eth1/ctlr_1"}
    tree.fc_port(3, driver="fcoe", **other)
    tree.remote_port().lun("sda").remote_port("rport-3:0-1", wwpn="0x5006016100000001").lun(
        "sdb", through="rport-3:0-1", hctl="3:0:0:0"
    )
    (adapter,) = read_adapters(tree.machine)
    assert (adapter.identity.pci, adapter.driver, adapter.module) == ("pseudo/fcoe", "fcoe", "fcoe")
    assert [host["host"] for host in adapter.hosts] == ["host2", "host3"]
    assert {each.adapter for each in read_drives(tree.machine) if each.transport == "scsi"} == {"pseudo/fcoe"}
    assert declared_address({"driver": "fcoe"}) == "pseudo/fcoe"
    assert declared_address({"driver": "fcoe", "pci": "04:00.0"}) == "0000:04:00.0"
    assert declared_address({"driver": "qla2xxx"}) == ""


def test_an_iscsi_session_is_told_without_its_passwords(tmp_path: Path) -> None:
    tree = FabricTree(tmp_path)
    tree.session().lun("sda", through="session1", hctl="3:0:0:4", access="")
    facts = facts_of(tree)
    (session,) = facts["iscsi_sessions"]
    assert (session["host"], session["state"], session["recovery_tmo"]) == ("host3", "LOGGED_IN", "120")
    assert session["connections"][0]["data_digest"] == "CRC32C"
    assert "chap" not in json.dumps(facts)
    (path,) = drive(facts, "sda")["paths"]
    assert (path["initiator"], path["target"], path["portal"], path["lun"]) == (
        *("iqn.2004-01.org.example:bench", "iqn.2003-01.org.example:t1", "192.0.2.1:3260", "4"),
    )
    assert (path["access"], path["preferred"]) == ("", None)
    assert [adapter["pci"] for adapter in facts["adapters"]] == ["pseudo/iscsi_tcp"]
    assert drive(facts, "sda")["adapter"] == "pseudo/iscsi_tcp"


def test_an_ipv6_portal_has_brackets() -> None:
    address = {"address": "2001:db8::1", "port": "3260", "persistent_address": "", "persistent_port": ""}
    assert portal(address) == "[2001:db8::1]:3260"
    assert portal({**address, "address": "", "persistent_address": "192.0.2.7"}) == "192.0.2.7:3260"


def test_a_namespace_over_tcp_has_a_path_through_each_controller(tmp_path: Path) -> None:
    tree = FabricTree(tmp_path)
    tree.nvme_fabric(
        ("tcp", "traddr=192.0.2.1,trsvcid=4420,src_addr=192.0.2.9", "optimized"),
        ("tcp", "traddr=192.0.2.2,trsvcid=4420", "inaccessible"),
    )
    facts = facts_of(tree)
    (subsystem,) = facts["nvme_subsystems"]
    assert (subsystem["nqn"], subsystem["policy"]) == ("nqn.2014-08.org.example:s1", "numa")
    controller = subsystem["controllers"][1]
    assert (controller["transport"], controller["ctrl_loss_tmo"], controller["reconnect_delay"]) == ("tcp", 600, 10)
    assert controller["fast_io_fail_tmo"] is None
    assert [
        (path["device"], path["through"], path["target"], path["access"]) for path in drive(facts, "nvme0n1")["paths"]
    ] == [
        ("nvme0c0n1", "nvme0", "192.0.2.1:4420", "optimized"),
        ("nvme0c1n1", "nvme1", "192.0.2.2:4420", "inaccessible"),
    ]
    assert drive(facts, "nvme0n1")["adapter"] == "pseudo/nvme_tcp"


def test_nvme_over_fc_belongs_to_the_adapter_of_its_port(tmp_path: Path) -> None:
    tree = fc_bench(tmp_path)
    address = f"traddr=nn-0x5006017000000001:pn-{TARGET},host_traddr=nn-0x2000000e1e000001:pn-{INITIATOR}"
    tree.nvme_fabric(("fc", address, "optimized"))
    assert drive(facts_of(tree), "nvme0n1")["adapter"] == "0000:00:05.0"


def test_a_bench_without_a_fabric_has_no_paths(tmp_path: Path) -> None:
    tree = FabricTree(tmp_path)
    tree.adapter().scsi("sda").nvme()
    facts = facts_of(tree)
    assert (facts["iscsi_sessions"], facts["nvme_subsystems"]) == ([], [])
    assert [each["paths"] for each in facts["drives"]] == [[]] * 3
    assert [fabric_of(tree.machine, name) for name in ("sda", "nvme0n1", "vda")] == ["", "", ""]


def test_what_a_fabric_is_called(tmp_path: Path) -> None:
    tree = fc_bench(tmp_path)
    tree.session().lun("sdb", through="session1", hctl="3:0:0:0").nvme_fabric(("tcp", "traddr=192.0.2.1", ""))
    assert [fabric_of(tree.machine, name) for name in ("sda", "sdb", "nvme0n1")] == ["fc", "iscsi", "nvme"]


def test_half_a_tree_is_read_all_the_same(tmp_path: Path) -> None:
    """A remote port that goes away between two reads leaves names without attributes."""
    tree = fc_bench(tmp_path)
    (tree.root / "sys/class/fc_remote_ports/rport-2:0-1").unlink()
    (path,) = read_drive_paths(tree.machine, "sda", "2:0:0:0")
    assert (path["initiator"], path["target"], path["state"]) == (INITIATOR, "", "")


@pytest.mark.parametrize(
    ("speed", "megabytes"), json.loads(Path(__file__).with_name("fc_speeds.json").read_text(encoding="utf-8"))
)
def test_what_a_port_carries_follows_from_its_speed_and_its_line_code(speed: str, megabytes: float | None) -> None:
    carried = fc_bytes_per_second(speed)
    assert carried is None if megabytes is None else carried == pytest.approx(megabytes * 1e6, rel=0.002)


def test_counters_of_the_fc_port_are_error_counters_of_its_drives_and_counted_once(tmp_path: Path) -> None:
    tree = fc_bench(tmp_path)
    tree.lun("sdb", hctl="2:0:0:1", wwn=LUN[:-1] + "d", serial="APM2")
    assert read_error_counters(tree.machine, "sda") == {
        "link_failure_count": 2,
        "loss_of_sync_count": 0,
        "invalid_tx_word_count": 0,
        "invalid_crc_count": 1,
    }
    meter = Meter(tree.root)
    meter.aim({name: tree.root / "sys/block" / name for name in ("sda", "sdb")}, ())
    assert meter.snapshot().errors["link_failure_count"] == 2
    meter.close()


@pytest.fixture
def paths(tmp_path: Path) -> FabricTree:
    """A LUN of two paths with dm-multipath on top, one of a single path, an NVMe namespace of two controllers."""
    tree = FabricTree(tmp_path).fc_port().remote_port().session()
    tree.lun("sda").lun("sdb", through="session1", hctl="3:0:0:0").lun("sdc", hctl="2:0:0:1", serial="APM2")
    tree.stacked("dm-0", ["sda", "sdb"], title="mpatha", uuid="mpath-1")
    tree.stacked("dm-1", ["sda", "sdb"], title="striped", uuid="LVM-1")
    return tree.nvme_fabric(*(("tcp", f"traddr=192.0.2.{at},trsvcid=4420", "optimized") for at in (7, 8)))


def test_the_disks_of_paths_are_named_by_their_ends(paths: FabricTree) -> None:
    iscsi = "iqn.2004-01.org.example:bench to 192.0.2.1:3260"
    assert path_disks(paths.machine, "dm-0") == {f"{INITIATOR} to {TARGET}": "sda", iscsi: "sdb"}
    assert [path_disks(paths.machine, name) for name in ("dm-1", "sdc", "sda")] == [{}, {}, {}]
    hidden = path_disks(paths.machine, "nvme0n1")
    assert {name[-14:]: disk for name, disk in hidden.items()} == {
        "192.0.2.7:4420": "nvme0c0n1",
        "192.0.2.8:4420": "nvme0c1n1",
    }


def test_the_window_of_a_launch_has_what_each_path_carried(paths: FabricTree) -> None:
    paths.write("/proc/stat", "cpu  1 0 1 40 0 0 0 0 0 0\ncpu0 1 0 1 40 0 0 0 0 0 0\nctxt 1\nbtime 1\nintr 1\n")
    meter = Meter(Path(paths.machine.path("/")))
    meter.aim({"lun": Path(paths.machine.path("/sys/block/dm-0"))}, [])
    columns = "{} 0 {} 0 {} 0 {} 0 0 0 0"
    paths.write("/sys/block/sda/stat", columns.format(10, 80, 5, 40))
    paths.write("/sys/block/sdb/stat", columns.format(1, 8, 0, 0))
    before = meter.snapshot()
    paths.write("/sys/block/sda/stat", columns.format(40, 320, 5, 40))
    meter.close()
    after = meter.snapshot()
    ends = f"{INITIATOR} to {TARGET}"
    counts = path_counts(before, after)
    assert (counts["path_ios"][ends], counts["path_bytes"][ends], sum(counts["path_ios"].values())) == (
        30,
        240 * 512,
        30,
    )
    # a path that went back began anew, and one that went is no count of the others
    assert path_counts(after, before) == {}
    assert path_counts(before, after._replace(paths=dict(list(after.paths.items())[:1]))) == {}
    kept = derive._snapshot(json.loads(json.dumps(derive.dump_snapshot(after))))
    assert kept is not None
    assert kept.paths == after.paths
