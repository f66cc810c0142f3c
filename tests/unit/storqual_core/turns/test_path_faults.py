# SPDX-License-Identifier: Apache-2.0
"""A path is lost when the kernel no longer uses it, whatever took it away, and the last one is left alone."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from storqual_core.host.sysfs import read_drives
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.turns import path_faults
from storqual_core.turns.drive_faults import Aim
from storqual_core.turns.path_faults import PATH_ACTS
from tests.support.bench_tree import BenchTree
from tests.support.fabric_tree import LUN, FabricTree
from tests.support.paths import Paths, two_paths

A = "0x5000c50000000001"
FIRST, SECOND = "20:00:02:00:00:00:00:02", "20:00:02:00:00:00:01:02"
STORE = "/sys/kernel/config/target/core/iblock_0/fc-0"


def brought(aim: Aim, way: str = "path_offline") -> list[str]:
    told: list[str] = []
    PATH_ACTS[way](aim, lambda seen, _text: told.append(seen))
    return told


def writing(monkeypatch: pytest.MonkeyPatch, effect: Callable[[Path, str], object]) -> None:
    """A kernel that takes every value, and does `effect` with it."""
    monkeypatch.setattr(path_faults, "write_attribute", lambda path, value: effect(Path(path), str(value)))


@pytest.fixture
def path(tmp_path: Path) -> tuple[BenchTree, Aim]:
    """A drive of two paths under its multipath device; dmsetup tells what the state of each path says."""
    tree = BenchTree(tmp_path).adapter("0000:00:05.0").scsi("sda", hctl="2:0:0:0", wwn=A, serial="S1")
    two_paths(tree.scsi("sdc", hctl="3:0:0:0", wwn=A, serial="S1"))
    drive = next(one for one in read_drives(tree.machine) if one.name == "sda")
    return tree, Aim(tree.machine, Paths(tree), drive, away_s=0.0, limit_s=0.2)


def test_a_path_is_lost_and_used_again(path: tuple[BenchTree, Aim]) -> None:
    assert brought(path[1], "path_offline") == ["path_lost", "path_back"]
    assert path[0].machine.text("/sys/block/sda/device/state") == "running"


def test_a_path_that_the_kernel_goes_on_with_is_no_loss_and_is_running_again(
    path: tuple[BenchTree, Aim], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    writing(monkeypatch, lambda _path, value: written.append(value))
    with pytest.raises(ToolError, match="did not let go of path sda"):
        brought(path[1], "path_offline")
    assert written == ["offline", "running"]


def test_a_path_that_is_not_used_again_is_told_as_lost_alone(
    path: tuple[BenchTree, Aim], monkeypatch: pytest.MonkeyPatch
) -> None:
    writing(monkeypatch, lambda place, value: value == "offline" and place.write_text(value))
    told: list[str] = []
    with pytest.raises(ToolError, match="path sda was not used again"):
        PATH_ACTS["path_offline"](path[1], lambda seen, _text: told.append(seen))
    assert told == ["path_lost"]


def test_the_last_active_path_is_left_alone(path: tuple[BenchTree, Aim]) -> None:
    path[0].write("/sys/block/sdc/device/state", "offline\n")
    with pytest.raises(ToolError, match="1 paths of dm-7 are active: without sda there would be none"):
        brought(path[1], "path_offline")


def test_a_drive_under_no_map_has_no_path_to_lose(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter("0000:00:05.0").scsi("sda", hctl="2:0:0:0", wwn=A, serial="S1")
    with pytest.raises(ToolError, match="sda is under no multipath device"):
        brought(Aim(tree.machine, Paths(tree), read_drives(tree.machine)[0], away_s=0.0, limit_s=0.2))


def state_of(port: int) -> str:
    return f"{STORE}/alua/port{port}/alua_access_state"


@pytest.fixture
def lun(tmp_path: Path) -> tuple[FabricTree, Aim]:
    """A LUN of four paths, two through each of two target ports, which its own kernel serves."""
    tree = FabricTree(tmp_path)
    for host in (2, 3):
        tree.fc_port(host, wwpn=f"0x200002000000{host:02x}01", above=f"virtual/net/fc{host}/ctlr_{host}")
        for number, target in enumerate((FIRST, SECOND)):
            rport = f"rport-{host}:0-{number}"
            tree.remote_port(rport, wwpn=f"0x{target.replace(':', '')}", target=number)
            tree.lun("sd" + "abcd"[2 * (host - 2) + number], through=rport, hctl=f"{host}:0:{number}:0")
    two_paths(tree, "sda", "sdb", "sdc", "sdd")
    tree.write(f"{STORE}/wwn/vpd_unit_serial", "T10 VPD Unit Serial Number: APM1\n")
    for port, target in enumerate((FIRST, SECOND)):
        place = f"/sys/kernel/config/target/fc/{target}/tpgt_1/lun/lun_0"
        tree.write(f"{place}/alua_tg_pt_gp", f"TG Port Alias: port{port}\nTG Port Group ID: {port + 1}\n")
        tree.link(f"{place}/fc-0", STORE)
        tree.write(state_of(port), f"{port}\n")
    drive = next(each for each in read_drives(tree.machine) if each.name == "sda")
    return tree, Aim(tree.machine, Paths(tree), drive, away_s=0.0, limit_s=0.2)


def answering(tree: FabricTree, lost: Sequence[str]) -> Callable[[Path, str], object]:
    """A kernel whose paths `lost` go as soon as a state is unavailable."""

    def write(path: Path, value: str) -> None:
        path.write_text(value)
        for name in lost:
            tree.write(f"/sys/block/{name}/device/state", "offline\n" if value == "3" else "running\n")

    return write


def test_an_unavailable_target_port_takes_all_paths_through_it(
    lun: tuple[FabricTree, Aim], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, aim = lun
    assert aim.drive.id == LUN
    writing(monkeypatch, answering(tree, ["sda", "sdc"]))
    assert brought(aim, "alua_unavailable") == ["unavailable", "path_lost", "path_back"]
    assert [tree.machine.text(state_of(port)) for port in (0, 1)] == ["0", "1"]


def test_a_target_port_that_one_initiator_goes_on_with_is_not_lost_and_is_put_back(
    lun: tuple[FabricTree, Aim], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, aim = lun
    writing(monkeypatch, answering(tree, ["sda"]))
    with pytest.raises(ToolError, match="did not let go of path sda"):
        brought(aim, "alua_unavailable")
    assert tree.machine.text(state_of(0)) == "0"


def test_the_target_port_that_all_paths_lead_through_is_left_alone(lun: tuple[FabricTree, Aim]) -> None:
    tree, aim = lun
    for name in ("sdb", "sdd"):
        tree.write(f"/sys/block/{name}/device/state", "offline\n")
    with pytest.raises(ToolError, match="2 paths of dm-7 are active"):
        brought(aim, "alua_unavailable")
    assert tree.machine.text(state_of(0)) == "0"


def test_a_lun_of_an_array_has_no_state_that_could_be_changed_here(lun: tuple[FabricTree, Aim]) -> None:
    tree, aim = lun
    tree.write(f"{STORE}/wwn/vpd_unit_serial", "T10 VPD Unit Serial Number: OTHER\n")
    with pytest.raises(ToolError, match=f"does not serve {LUN} in this kernel"):
        brought(aim, "alua_unavailable")


class Links:
    """ip of a bench whose NVMe controllers are live while the link of their target is up."""

    def __init__(self, tree: FabricTree, controller: str = "nvme0", *, address: str = "192.0.2.1") -> None:
        self.tree, self.controller, self.address = tree, controller, address
        self.asked: list[str] = []

    def __call__(self, argv: Sequence[str], **_: object) -> Completed:
        self.asked.append(" ".join(argv))
        if argv[-1] in ("up", "down"):
            state = "live" if argv[-1] == "up" else "connecting"
            self.tree.write(f"/sys/class/nvme/{self.controller}/state", f"{state}\n")
        ports = [{"ifname": "lo", "addr_info": []}, {"ifname": "nvmet0", "addr_info": [{"local": self.address}]}]
        return Completed(tuple(argv), 0, json.dumps(ports), "", 0.0)


@pytest.fixture
def namespace(tmp_path: Path) -> tuple[FabricTree, Aim]:
    portals = [f"traddr=192.0.2.{number},trsvcid=4420" for number in (1, 2)]
    tree = FabricTree(tmp_path).nvme_fabric(*(("tcp", portal, "optimized") for portal in portals))
    drive = next(each for each in read_drives(tree.machine) if each.transport == "nvme")
    return tree, Aim(tree.machine, Links(tree), drive, away_s=0.0, limit_s=0.2)


ANA = "/sys/kernel/config/nvmet/ports/{}/ana_groups/1/ana_state"


@pytest.fixture
def served(namespace: tuple[FabricTree, Aim]) -> tuple[FabricTree, Aim]:
    """The namespace, which a target of its own kernel serves by two ports."""
    for port in (1, 2):
        namespace[0].write(f"/sys/kernel/config/nvmet/ports/{port}/addr_traddr", f"192.0.2.{port}\n")
        namespace[0].write(ANA.format(port), "optimized\n")
    return namespace


def access_follows(tree: FabricTree, path: Path, value: str) -> None:
    """An initiator that is told of the port with the first address."""
    path.write_text(value)
    if path.parts[-4] == "1":
        tree.write("/sys/class/nvme/nvme0/nvme0c0n1/ana_state", value + "\n")


def test_a_port_that_gives_no_access_to_a_namespace_takes_its_path(
    served: tuple[FabricTree, Aim], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, aim = served
    writing(monkeypatch, lambda path, value: access_follows(tree, path, value))
    assert brought(aim, "ana_inaccessible") == ["unavailable", "path_lost", "path_back"]
    assert [tree.machine.text(ANA.format(port)) for port in (1, 2)] == ["optimized", "optimized"]


def test_an_initiator_that_is_not_told_goes_on_and_the_port_gives_access_again(
    served: tuple[FabricTree, Aim], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, aim = served
    writing(monkeypatch, lambda path, value: path.write_text(value))
    with pytest.raises(ToolError, match="did not let go of path nvme0n1"):
        brought(aim, "ana_inaccessible")
    assert tree.machine.text(ANA.format(1)) == "optimized"


def test_a_namespace_of_an_array_or_with_no_other_path_is_left_alone(served: tuple[FabricTree, Aim]) -> None:
    tree, aim = served
    tree.write("/sys/class/nvme/nvme1/nvme0c1n1/ana_state", "inaccessible\n")
    with pytest.raises(ToolError, match="1 paths of nvme0n1 are active"):
        brought(aim, "ana_inaccessible")
    tree.write("/sys/kernel/config/nvmet/ports/1/addr_traddr", "192.0.2.9\n")
    with pytest.raises(ToolError, match=r"192\.0\.2\.1 is no port of a target in this kernel"):
        brought(aim, "ana_inaccessible")


def test_a_link_of_a_target_takes_the_controller_behind_it_and_comes_up_again(
    namespace: tuple[FabricTree, Aim],
) -> None:
    told = brought(namespace[1], "target_link_down")
    assert told == ["link_down", "path_lost", "link_up", "path_back"]


def test_a_link_that_no_controller_misses_is_up_again_and_no_loss(namespace: tuple[FabricTree, Aim]) -> None:
    tree, aim = namespace
    links = Links(tree, "nvme9")
    with pytest.raises(ToolError, match="did not let go of path nvme0n1"):
        brought(replace(aim, runner=links), "target_link_down")
    assert links.asked[-1] == "ip -n target link set dev nvmet0 up"


def test_a_target_that_is_not_in_this_kernel_has_no_link_to_take_down(namespace: tuple[FabricTree, Aim]) -> None:
    tree, aim = namespace
    links = Links(tree, address="192.0.2.77")
    with pytest.raises(ToolError, match=r"names no interface with 192\.0\.2\.1"):
        brought(replace(aim, runner=links), "target_link_down")
    assert not [line for line in links.asked if "link set" in line]
