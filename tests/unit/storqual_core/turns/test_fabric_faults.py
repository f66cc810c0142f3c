# SPDX-License-Identifier: Apache-2.0
"""Faults of a fabric: what each does, and that it is told only of what was seen."""

import json
from pathlib import Path
from typing import Any

import pytest

from storqual_core.host.sysfs import read_drives
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.tools.tc import Shaping, parse_shaping
from storqual_core.turns.drive_faults import Aim
from storqual_core.turns.fabric_faults import FABRIC_ACTS
from tests.support.bench_tree import BenchTree

FC_HOST = "/sys/class/fc_host/host9"
NETEM = {"kind": "netem", "options": {"limit": 1000, "loss-random": {"loss": 0.02}}, "packets": 120, "drops": 3}


def lun(tmp_path: Path) -> BenchTree:
    above = "virtual/net/fc0/ctlr_1"
    tree = BenchTree(tmp_path).scsi("sdk", above=above, hctl="9:0:0:0", serial="FCA0000001")
    tree.write("/sys/devices/virtual/net/fc0/ctlr_1/host9/scsi_host/host9/proc_name", "fcoe\n")
    tree.link("/sys/class/scsi_host/host9", "/sys/devices/virtual/net/fc0/ctlr_1/host9/scsi_host/host9")
    for name, value in {"link_failure_count": "0x1", "lip_count": "0xffffffffffffffff"}.items():
        tree.write(f"{FC_HOST}/statistics/{name}", value + "\n")
    tree.write(f"{FC_HOST}/issue_lip", "")
    return tree


class Interface:
    """tc, ip and ss of a bench whose interface counts what it is told to."""

    def __init__(self, **counts: int) -> None:
        self.counts, self.netem, self.asked, self.wrong = counts, False, [""], 7

    def __call__(self, argv: list[str], **_: Any) -> Completed:
        self.asked.append(" ".join(argv))
        out = ""
        if argv[:2] == ["tc", "qdisc"]:
            self.netem = argv[2] == "replace"
        elif argv[0] == "tc":
            out = json.dumps([{**NETEM, **self.counts}] if self.netem else [{"kind": "noqueue", "options": {}}])
        elif argv[:2] == ["ip", "netns"]:
            self.wrong += self.counts.get("wrong", 0)
            out = f"Ip: Forwarding\nIp: 1\nTcp: InSegs InCsumErrors\nTcp: 90 {self.wrong}\n"
        elif argv[:2] == ["ip", "-n"]:
            out = json.dumps([{"ifname": "iscsit0", "addr_info": [{"local": "10.53.0.2"}]}])
        elif argv[0] == "ip":
            out = json.dumps([{"dst": "10.53.0.2", "dev": "iscsi0"}])
        elif argv[0] == "ss":
            out = "ESTAB 0 0 10.53.0.1:50000 10.53.0.2:3260\n" * self.counts.get("sockets", 0)
        return Completed(tuple(argv), 0, out, "", 0.0)


def act(tree: BenchTree, name: str, runner: Interface | None = None) -> list[str]:
    """What the way tells, in order."""
    told: list[str] = []
    drive = next(each for each in read_drives(tree.machine) if each.name == "sdk")
    aim = Aim(tree.machine, runner or Interface(), drive, away_s=0.0, limit_s=0.2)
    FABRIC_ACTS[name](aim, lambda what, _sentence: told.append(what))
    return told


def test_a_lip_that_the_port_does_not_count_was_none(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="host9 counted no link event"):
        act(lun(tmp_path), "fc_lip")
    assert (tmp_path / FC_HOST.lstrip("/") / "issue_lip").read_text().strip() == "1"


@pytest.mark.parametrize(("way", "loss"), [("netem_loss", "2%"), ("netem_silence", "100%")])
def test_frames_that_were_to_be_lost_and_were_not_are_no_fault(tmp_path: Path, way: str, loss: str) -> None:
    """And the interface is as it was, whatever happened."""
    interface = Interface(drops=0)
    with pytest.raises(ToolError, match="fc0 did it to no frame"):
        act(lun(tmp_path), way, interface)
    assert not interface.netem
    interface = Interface(drops=3)
    assert act(lun(tmp_path / "again"), way, interface) == ["read_back", "shaped", "put_back"]
    assert f"tc qdisc replace dev fc0 root netem loss {loss}" in interface.asked
    assert not interface.netem


def test_late_frames_are_none_without_traffic_nor_wrong_bits_without_a_wrong_checksum(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="fc0 did it to no frame"):
        act(lun(tmp_path), "netem_delay", Interface(packets=0))
    assert "shaped" in act(lun(tmp_path / "again"), "netem_delay", Interface(packets=1, drops=0))
    with pytest.raises(ToolError, match="counted no wrong checksum"):
        act(session(tmp_path / "right"), "netem_corrupt", Interface())
    assert "counted" in act(session(tmp_path / "wrong"), "netem_corrupt", Interface(wrong=2))


def session(tmp_path: Path, state: str = "LOGGED_IN") -> BenchTree:
    tree = BenchTree(tmp_path).scsi("sdk", above="platform", hctl="6:0:0:0")
    # the session is between host and target
    place = f"{tmp_path}/sys/devices/platform/host6/session1"
    Path(place).mkdir()
    (Path(place).parent / "target6:0:0").rename(f"{place}/target6:0:0")
    device = "/sys/devices/platform/host6/session1/target6:0:0/6:0:0:0"
    for link in ("/sys/block/sdk", "/sys/class/block/sdk"):
        (tmp_path / link.lstrip("/")).unlink()
        tree.link(link, f"{device}/block/sdk")
    inner = tmp_path / f"{device}/block/sdk/device".lstrip("/")
    inner.unlink()
    tree.link(f"{device}/block/sdk/device", device)
    tree.write("/sys/class/iscsi_connection/connection1:0/address", "10.53.0.2\n")
    tree.write("/sys/class/iscsi_session/session1/state", state + "\n")
    return tree


def test_a_session_is_cut_by_the_connections_to_its_target(tmp_path: Path) -> None:
    interface = Interface(sockets=1)
    assert act(session(tmp_path), "socket_kill", interface) == ["cut", "back"]
    assert interface.asked[-1] == "ss -H -t -K dst 10.53.0.2"
    with pytest.raises(ToolError, match="found no connection"):
        act(session(tmp_path / "none"), "socket_kill", Interface(sockets=0))
    with pytest.raises(ToolError, match=r"did not connect to 10\.53\.0\.2 again"):
        act(session(tmp_path / "lost", "FAILED"), "socket_kill", Interface(sockets=1))


def test_the_link_of_a_target_is_up_again_also_where_nothing_logs_in_again(tmp_path: Path) -> None:
    interface = Interface()
    assert act(session(tmp_path), "target_link", interface) == ["link_down", "link_up", "back"]
    assert act(session(tmp_path / "flaps"), "target_link_flap") == [*("link_down", "link_up") * 5, "back"]
    assert [line for line in interface.asked if "link set" in line] == [
        f"ip -n target link set dev iscsit0 {state}" for state in ("down", "up")
    ]
    with pytest.raises(ToolError, match="did not connect again"):
        act(session(tmp_path / "lost", "FAILED"), "target_link", interface)
    assert interface.asked[-1].endswith(" up")


def test_a_target_that_ends_no_session_takes_them_again_and_is_no_fault(tmp_path: Path) -> None:
    tree = session(tmp_path)
    enable = tree.root / "sys/kernel/config/target/fc/t/tpgt_1/enable"
    mapping(tree, "fc-0", next(each for each in read_drives(tree.machine) if each.name == "sdk").identity.serial, 0)
    enable.write_text("1")
    with pytest.raises(ToolError, match="kept its session"):
        act(tree, "tpg_disable")
    assert enable.read_text().strip() == "1"


def test_the_interface_of_a_session_is_that_of_the_route(tmp_path: Path) -> None:
    interface = Interface(packets=1)
    act(session(tmp_path), "netem_delay", interface)
    assert "tc qdisc del dev iscsi0 root" in interface.asked


def mapping(tree: BenchTree, store: str, serial: str, number: int) -> Path:
    """A LUN in configfs, mapped for an initiator; the link that maps it."""
    core, group = f"/sys/kernel/config/target/core/iblock_0/{store}", "/sys/kernel/config/target/fc/t/tpgt_1"
    tree.write(f"{core}/wwn/vpd_unit_serial", f"T10 VPD Unit Serial Number: {serial}\n")
    tree.link(f"{group}/lun/lun_{number}/{store}", core)
    tree.link(f"{group}/acls/i/lun_{number}/lun_{number}", f"{group}/lun/lun_{number}")
    return tree.root / f"{group}/acls/i/lun_{number}/lun_{number}".lstrip("/")


def test_the_lun_of_the_drive_is_unmapped_and_no_other(tmp_path: Path) -> None:
    tree = lun(tmp_path)
    own, other = mapping(tree, "fc-0", "FCA0000001", 0), mapping(tree, "fc-1", "FCA0000002", 1)
    before, inode = own.resolve(), other.lstat().st_ino
    assert act(tree, "lun_unmap") == ["unmapped", "mapped", "back"]
    assert own.resolve() == before
    assert other.lstat().st_ino == inode


def test_a_lun_that_no_target_here_serves_cannot_be_unmapped(tmp_path: Path) -> None:
    tree = lun(tmp_path)
    mapping(tree, "fc-1", "FCA0000002", 1)
    with pytest.raises(ToolError, match="no target of this bench maps drive"):
        act(tree, "lun_unmap")


def test_the_answer_of_tc() -> None:
    other = {"kind": "fq_codel", "options": {}}
    assert parse_shaping(json.dumps([other, NETEM])) == Shaping(("limit", "loss-random"), 120, 3)
    assert parse_shaping(json.dumps([other])) is None
    for text in (
        "",
        "[]",
        "{",
        "[1]",
        '[{"kind": "netem"}]',
        '[{"kind": "netem", "options": {}, "packets": "x", "drops": 0}]',
    ):
        with pytest.raises(ToolError, match="no list of queueing disciplines"):
            parse_shaping(text)
