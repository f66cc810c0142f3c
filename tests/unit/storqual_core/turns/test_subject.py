# SPDX-License-Identifier: Apache-2.0
"""Whom a fault may reach, and the drive of a turn: opened past the page cache, and opened anew."""

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from storqual_core.guard.claims import Claim
from storqual_core.host.reach import beside_on_link
from storqual_core.host.sysfs import read_drives
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import GuardRefusalError
from storqual_core.turns.subject import HeldDevice, aimed_at, refuse_beyond
from tests.support.bench_tree import BenchTree, claim
from tests.support.fabric_tree import FabricTree
from tests.support.paths import Paths, two_paths

PCI, OTHER = "0000:00:05.0", "0000:00:06.0"
A, B, C = (f"0x5000c5000000000{number}" for number in (1, 2, 3))


def blkid(argv: Sequence[str], **_: object) -> Completed:
    return Completed(tuple(argv), 2, "", "", 0.0)


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """Two drives on one bus and a third on a second bus of the adapter."""
    tree = BenchTree(tmp_path).adapter(PCI).adapter(OTHER, driver="mptsas")
    tree.scsi("sda", hctl="2:0:0:0", wwn=A, serial="S1").scsi("sdb", hctl="2:0:1:0", wwn=B, serial="S2")
    return tree.scsi("sdc", hctl="2:1:0:0", wwn=C, serial="S3")


def claims(*wwns: str) -> list[Claim]:
    return [claim(wwn=wwn, serial=f"S{wwn[-1]}") for wwn in wwns]


def ask(tree: BenchTree, claimed: Sequence[Claim], scope: str, adapter: str = PCI) -> list[str]:
    return refuse_beyond(tree.machine, claimed, drive=A, adapter=adapter, scope=scope, runner=blkid)


@pytest.mark.parametrize(
    ("scope", "touched"), [("drive", [A]), ("target", [A]), ("bus", [A, B]), ("adapter", [A, B, C])]
)
def test_each_scope_reaches_its_drives(tree: BenchTree, scope: str, touched: list[str]) -> None:
    assert ask(tree, claims(A, B, C), scope) == touched


def test_an_unclaimed_drive_on_the_bus_refuses_a_reset_of_the_bus_but_none_of_the_drive(tree: BenchTree) -> None:
    assert ask(tree, claims(A, C), "drive") == [A]
    with pytest.raises(GuardRefusalError, match=f"{B}: it is not claimed, and a fault of the bus"):
        ask(tree, claims(A, C), "bus")


def test_a_fault_on_the_path_of_the_benchs_own_disk_is_refused_even_when_the_disk_is_claimed(tree: BenchTree) -> None:
    tree.mount(tree.machine.text("/sys/block/sdb/dev"), "/boot")
    with pytest.raises(GuardRefusalError, match=f"{B}: it carries /boot, and a fault of the adapter"):
        ask(tree, claims(A, B, C), "adapter")
    assert ask(tree, claims(A, B, C), "drive") == [A]


def test_a_fault_of_the_benchs_own_disk_alone_is_refused_too(tree: BenchTree) -> None:
    tree.mount(tree.machine.text("/sys/block/sda/dev"), "/")
    with pytest.raises(GuardRefusalError, match=f"{A}: it carries /, and a fault of the drive would reach it"):
        ask(tree, claims(A, B, C), "drive")


def test_a_fault_of_the_driver_reaches_every_adapter_of_its_module_and_no_other(tree: BenchTree) -> None:
    second, foreign = "0x5000c50000000004", "0x5000c50000000005"
    tree.adapter("0000:00:07.0").scsi("sdd", pci="0000:00:07.0", hctl="3:0:0:0", wwn=second, serial="S4")
    tree.scsi("sde", pci=OTHER, hctl="4:0:0:0", wwn=foreign, serial="S5")
    assert ask(tree, claims(A, B, C, second), "driver") == [A, B, C, second]
    with pytest.raises(GuardRefusalError, match=f"{second}: it is not claimed, and a fault of the driver"):
        ask(tree, claims(A, B, C), "driver")
    tree.mount(tree.machine.text("/sys/block/sdd/dev"), "/")
    with pytest.raises(GuardRefusalError, match=f"{second}: it carries /, and a fault of the driver"):
        ask(tree, claims(A, B, C, second), "driver")
    assert ask(tree, claims(A, B, C), "adapter") == [A, B, C]


def test_a_mounted_drive_behind_the_adapter_refuses_a_reset_of_the_adapter(tree: BenchTree) -> None:
    tree.mount(tree.machine.text("/sys/block/sdc/dev"), "/data")
    with pytest.raises(GuardRefusalError, match="mounted on /data"):
        ask(tree, claims(A, B, C), "adapter")


def test_a_drive_behind_another_adapter_is_no_aim(tree: BenchTree) -> None:
    with pytest.raises(GuardRefusalError, match=f"it is behind {PCI}, {OTHER} is under test"):
        ask(tree, claims(A, B, C), "drive", adapter=OTHER)


def test_a_drive_that_is_not_there_is_no_aim(tree: BenchTree) -> None:
    with pytest.raises(GuardRefusalError, match="not on the bench"):
        refuse_beyond(tree.machine, [], drive="0x5000c500000000ff", adapter=PCI, scope="drive", runner=blkid)


def test_a_claim_that_does_not_fit_the_drive_is_refused(tree: BenchTree) -> None:
    with pytest.raises(GuardRefusalError, match="serial"):
        ask(tree, [claim(wwn=A, serial="OTHER")], "drive")


@pytest.fixture
def shared(tree: BenchTree) -> BenchTree:
    """The first drive is reached by the other adapter as well, as sdd, and its multipath device is on top."""
    tree.scsi("sdd", pci=OTHER, hctl="4:0:0:0", wwn=A, serial="S1")
    return two_paths(tree, "sda", "sdd")


def lose(tree: BenchTree, claimed: Sequence[Claim], adapter: str = PCI, drive: str = A) -> list[str]:
    return refuse_beyond(
        tree.machine, claimed, drive=drive, adapter=adapter, scope="path", state_dir="/s", runner=Paths(tree)
    )


def test_a_path_is_aimed_at_through_the_adapter_under_test_and_reaches_no_other_drive(shared: BenchTree) -> None:
    for adapter, name in ((PCI, "sda"), (OTHER, "sdd")):
        assert lose(shared, claims(A), adapter) == [A]
        aimed = aimed_at(read_drives(shared.machine), A, adapter)
        assert aimed is not None
        assert aimed.name == name
    assert aimed_at(read_drives(shared.machine), "0x5", PCI) is None


SPACE = "uuid.11111111-2222-3333-4444-555555555555"


def unreserved(argv: Sequence[str], **_: object) -> Completed:
    report = '{"gen":0,"rtype":0,"regctl":0,"ptpls":0,"regctls":[]}'
    return Completed(tuple(argv), 0, report if "resv-report" in argv else "", "", 0.0)


@pytest.mark.parametrize("ports", [1, 2])
def test_the_controllers_of_a_namespace_are_its_paths_though_it_is_one_disk(tmp_path: Path, ports: int) -> None:
    portals = [("tcp", f"traddr=192.0.2.{number},trsvcid=4420", "optimized") for number in range(1, ports + 1)]
    tree = FabricTree(tmp_path).nvme_fabric(*portals)
    wanted = [claim(wwn=SPACE, serial="NV1", vendor="", model="Linux")]
    said = []
    try:
        refuse_beyond(
            tree.machine,
            wanted,
            drive=SPACE,
            adapter="pseudo/nvme_tcp",
            scope="path",
            state_dir="/var/lib/storqual",
            runner=unreserved,
        )
    except GuardRefusalError as problem:
        said = [str(problem)]
    assert ["no path beside the one" in text for text in said] == [True] * (ports == 1), said


def test_the_only_path_to_a_drive_is_never_lost(shared: BenchTree) -> None:
    with pytest.raises(GuardRefusalError, match=f"{B}: it has no path beside the one through {PCI}"):
        lose(shared, claims(A, B), drive=B)


def test_a_path_without_a_map_on_top_is_never_lost(tree: BenchTree) -> None:
    tree.scsi("sdd", pci=OTHER, hctl="4:0:0:0", wwn=A, serial="S1")
    with pytest.raises(GuardRefusalError, match="2 devices of this bench answer to that name"):
        lose(tree, claims(A))


def test_a_path_of_a_drive_that_is_used_or_not_claimed_is_never_lost(shared: BenchTree) -> None:
    with pytest.raises(GuardRefusalError, match="it is not claimed, and a fault of the path would reach it"):
        lose(shared, claims(B))
    shared.mount(shared.machine.text("/sys/class/block/dm-7/dev"), "/data")
    with pytest.raises(GuardRefusalError, match="mounted on /data"):
        lose(shared, claims(A))


PORT, CARD = "0000:00:1c.0", "0000:3b:00.0"


@pytest.fixture
def express(tree: BenchTree) -> BenchTree:
    """A card of two functions below a port of its own; drive D is behind the first."""
    below(tree, PORT, "0x060400", "/sys/devices/pci0000:00")
    for function in ("0000:3b:00.0", "0000:3b:00.1"):
        below(tree, function, "0x010700")
    return tree.scsi("sdd", pci=f"{PORT}/{CARD}", hctl="5:0:0:0", wwn=D, serial="S4")


D, E = "0x5000c50000000004", "0x5000c50000000005"


def below(tree: BenchTree, pci: str, kind: str, place: str = f"/sys/devices/pci0000:00/{PORT}") -> None:
    tree.write(f"{place}/{pci}/class", f"{kind}\n")
    tree.link(f"/sys/bus/pci/devices/{pci}", f"{place}/{pci}")


def report(tree: BenchTree, *claimed: str) -> list[str]:
    return refuse_beyond(
        tree.machine, claims(*claimed), drive=D, adapter=CARD, scope="link", state_dir="/s", runner=blkid
    )


def test_an_error_of_the_link_reaches_what_is_below_the_same_port_and_nothing_else(express: BenchTree) -> None:
    assert report(express, D) == [D]
    assert beside_on_link(express.machine, CARD) == [CARD, "0000:3b:00.1"]
    below(express, "0000:3c:00.0", "0x010400")
    express.scsi("sde", pci=f"{PORT}/0000:3c:00.0", hctl="6:0:0:0", wwn=E, serial="S5")
    assert report(express, D, E) == [D, E]
    with pytest.raises(GuardRefusalError, match=f"{E}: it is not claimed, and a fault of the link would reach it"):
        report(express, D)


def test_an_error_of_the_link_is_refused_where_the_benchs_own_disk_is_below_the_same_port(express: BenchTree) -> None:
    below(express, "0000:3c:00.0", "0x010400")
    express.scsi("sde", pci=f"{PORT}/0000:3c:00.0", hctl="6:0:0:0", wwn=E, serial="S5")
    express.mount(express.machine.text("/sys/block/sde/dev"), "/")
    with pytest.raises(GuardRefusalError, match=f"{E}: it carries /, and a fault of the link would reach it"):
        report(express, D, E)


@pytest.mark.parametrize(
    ("pci", "kind"), [("0000:3d:00.0", "0x020000"), ("0000:3d:00.0", "0x010700"), ("0000:3b:00.2", "0x020000")]
)
def test_an_error_of_the_link_is_refused_where_it_would_reach_anything_that_is_not_tested(
    express: BenchTree, pci: str, kind: str
) -> None:
    """A network card, an adapter without drives, and the network function of a card that has both."""
    below(express, pci, kind)
    with pytest.raises(GuardRefusalError, match=f"PCI function {pci}: it is no adapter under test"):
        report(express, D)


def test_an_adapter_on_the_root_bus_shares_no_link(tree: BenchTree) -> None:
    assert beside_on_link(tree.machine, PCI) == [PCI]
    assert ask(tree, claims(A, B, C), "link") == [A, B, C]


def test_a_fault_of_an_adapter_without_hardware_reaches_its_drives_and_asks_for_their_claims(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter(PCI).debug_host()
    for number, (name, wwn) in enumerate((("sda", A), ("sdb", B))):
        tree.scsi(name, above="pseudo_0/adapter0", hctl=f"2:0:{number}:0", wwn=wwn, serial=f"S{wwn[-1]}")
    assert ask(tree, claims(A, B), "adapter", "pseudo/adapter0") == [A, B]
    with pytest.raises(GuardRefusalError, match=f"{B}: it is not claimed, and a fault of the adapter"):
        ask(tree, claims(A), "adapter", "pseudo/adapter0")
    with pytest.raises(GuardRefusalError, match=f"it is behind pseudo/adapter0, {PCI} is under test"):
        ask(tree, claims(A, B), "drive")


class Holds:
    """Stands for the guard: counts holds, refuses as often as it is told to."""

    def __init__(self, node: Path) -> None:
        self.node, self.refusals, self.held, self.taken = node, 0, 0, 0

    @contextmanager
    def __call__(self) -> Iterator[dict[str, str]]:
        if self.refusals:
            self.refusals -= 1
            raise GuardRefusalError(["it is not there"])
        self.held += 1
        self.taken += 1
        try:
            yield {"drive": str(self.node)}
        finally:
            self.held -= 1


@pytest.fixture
def holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Holds:
    monkeypatch.setattr("storqual_core.turns.subject._AGAIN_S", 0.01)
    # a file system of memory has no direct I/O
    monkeypatch.setattr(os, "O_DIRECT", 0)
    node = tmp_path / "drive"
    node.write_bytes(bytes(4096))
    return Holds(node)


def test_a_drive_that_went_is_held_again_before_anybody_uses_it(holds: Holds) -> None:
    told: list[str] = []
    device = HeldDevice("drive", holds, told.append)
    device.use()
    device.done(errno.ENXIO)
    assert device.lost
    holds.refusals = 2
    assert os.pread(device.use(), 1, 0) == b"\0"
    device.done(0)
    assert (holds.taken, holds.held, told) == (2, 1, ["gone", "opened again"])


def test_an_error_of_a_drive_that_is_there_is_no_loss(holds: Holds) -> None:
    device = HeldDevice("drive", holds)
    device.use()
    device.done(errno.EIO)
    assert not device.lost
    assert holds.taken == 1


def test_it_is_not_let_go_while_somebody_uses_it(holds: Holds) -> None:
    device = HeldDevice("drive", holds)
    device.use()
    assert not device.close(0.05)
    assert holds.held == 1
    device.done(0)
    assert device.close(1)
    assert holds.held == 0


def test_who_waits_for_a_lost_drive_is_let_go_when_it_is_given_up(holds: Holds) -> None:
    device = HeldDevice("drive", holds)
    device.use()
    device.done(errno.ENODEV)
    holds.refusals = 10**9
    waiting = threading.Thread(target=device.use, daemon=True)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    device.give_up()
    waiting.join(10)
    assert not waiting.is_alive()


def test_a_hold_that_is_refused_at_first_opens_nothing(holds: Holds) -> None:
    holds.refusals = 1
    with pytest.raises(GuardRefusalError):
        HeldDevice("drive", holds)
    assert holds.held == 0
