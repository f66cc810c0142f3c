# SPDX-License-Identifier: Apache-2.0
"""What is switched off is the drive's own phys, bay or slot, and is switched on again whatever happens meanwhile."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from storqual_core.host.sysfs import read_drives
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.turns import bench_faults as module
from storqual_core.turns.bench_faults import ACTS, MEMORY
from storqual_core.turns.drive_faults import Aim
from tests.support.bench_tree import STATE, BenchTree

A, B = "0x5000c50000000001", "0x5000c50000000002"
PCI = "0000:00:05.0"
PORT = f"/sys/devices/pci0000:00/{PCI}/host2/port-2:0"
BAY = "/sys/class/enclosure/2:0:9:0/Slot 04"
SLOT = "/sys/bus/pci/slots/3"
SWITCHES = {
    "sas_phy_off": (f"{PORT}/phy-2:0/sas_phy/phy-2:0/enable", "1", "0"),
    "bay_power_off": (f"{BAY}/power_status", "on", "off"),
    "slot_power_off": (f"{SLOT}/power", "1", "0"),
}


def unused(argv: Sequence[str], **_: object) -> Completed:
    return Completed(tuple(argv), 0, "", "", 0.0)


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """Two drives of one adapter, the first on a SAS port, in a bay of an enclosure; the adapter in a slot."""
    tree = BenchTree(tmp_path).adapter(PCI).scsi("sda", hctl="2:0:0:0", wwn=A, serial="S1")
    tree.scsi("sdb", hctl="2:0:1:0", wwn=B, serial="S2")
    link(tree, "sda", f"{PORT}/end_device-2:0")
    for path, on, _ in SWITCHES.values():
        tree.write(path, f"{on}\n")
    tree.link(f"{BAY}/device", tree.machine.real("/sys/block/sda/device"))
    tree.write(f"{SLOT}/address", PCI.rpartition(".")[0] + "\n")
    return tree


def link(tree: BenchTree, name: str, place: str) -> None:
    """Have the kernel's link of a drive lead through `place`, as that of a drive on a SAS port does."""
    block = Path(tree.machine.path(f"/sys/block/{name}"))
    target, real = Path(tree.machine.path(f"{place}/block/{name}")), block.resolve()
    shutil.copytree(real, target, symlinks=True)
    (target / "device").unlink()
    (target / "device").symlink_to(real / "device")
    block.unlink()
    block.symlink_to(f"../{place.removeprefix('/sys/')}/block/{name}")


def aim_at(tree: BenchTree) -> Aim:
    drive = next(one for one in read_drives(tree.machine) if one.id == A)
    return Aim(tree.machine, unused, drive, 0.0, 0.3, state_dir=STATE)


def kernel(tree: BenchTree, monkeypatch: pytest.MonkeyPatch, place: str, *, goes: bool = True) -> list[str]:
    """A kernel in which `place` goes when something is switched off; what was written, and whether it was known."""
    written: list[str] = []
    here, aside = Path(tree.machine.path(place)), Path(tree.machine.path("/aside"))

    def write(path: Path | str, value: object) -> None:
        known = Path(tree.machine.path(f"{STATE}/{MEMORY}")).exists()
        written.append(f"{str(path).removeprefix(tree.machine.root)} {value}{'' if known else ' unknown'}")
        off = str(value) in ("0", "off")
        if goes and off and here.is_symlink():
            here.rename(aside)
        elif not off and aside.is_symlink():
            aside.rename(here)

    monkeypatch.setattr(module, "write_attribute", write)
    return written


PLACES: dict[str, Callable[[Aim], str]] = {
    "sas_phy_off": lambda aim: f"/sys/dev/block/{aim.drive.number}",
    "bay_power_off": lambda aim: f"/sys/dev/block/{aim.drive.number}",
    "slot_power_off": lambda aim: f"/sys/bus/pci/devices/{aim.drive.adapter}",
}


@pytest.mark.parametrize("way", SWITCHES)
def test_a_switch_is_remembered_first_thrown_and_thrown_back(
    tree: BenchTree, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    aim, told = aim_at(tree), list[str]()
    written = kernel(tree, monkeypatch, PLACES[way](aim))
    ACTS[way](aim, lambda seen, _text: told.append(seen))
    path, on, off = SWITCHES[way]
    assert written == [f"{path} {off}", f"{path} {on}"]
    assert told == ["switched_off", "gone", "back"]
    assert not Path(tree.machine.path(f"{STATE}/{MEMORY}")).exists()


@pytest.mark.parametrize("way", SWITCHES)
def test_what_does_not_go_is_no_proof_and_is_switched_on_all_the_same(
    tree: BenchTree, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    aim, told = aim_at(tree), list[str]()
    written = kernel(tree, monkeypatch, PLACES[way](aim), goes=False)
    with pytest.raises(ToolError, match="did not go"):
        ACTS[way](aim, lambda seen, _text: told.append(seen))
    assert told == ["switched_off"]
    assert written[-1] == f"{SWITCHES[way][0]} {SWITCHES[way][1]}"


def test_a_switch_that_stays_off_is_remembered(tree: BenchTree, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, value: object) -> None:
        if value == "1":
            raise ToolError(f"the kernel refused {value!r} for {path}")

    monkeypatch.setattr(module, "write_attribute", refuse)
    with pytest.raises(ToolError, match="refused '1'"):
        ACTS["sas_phy_off"](aim_at(tree), lambda *_: None)
    assert tree.machine.text(f"{STATE}/{MEMORY}") == f"1 {SWITCHES['sas_phy_off'][0]}"


@pytest.mark.parametrize(
    ("way", "gone", "why"),
    [
        ("sas_phy_off", f"{PORT}", "is on no SAS link"),
        ("bay_power_off", BAY, "no enclosure has a power switch"),
        ("slot_power_off", f"{SLOT}/power", "no power switch for the slot"),
    ],
)
def test_a_bench_without_the_switch_is_told(
    tree: BenchTree, monkeypatch: pytest.MonkeyPatch, way: str, gone: str, why: str
) -> None:
    written = kernel(tree, monkeypatch, "/nothing")
    if way == "sas_phy_off":
        monkeypatch.setattr(module, "read_phys", lambda *_: [])
    else:
        place = Path(tree.machine.path(gone))
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    with pytest.raises(ToolError, match=why):
        ACTS[way](aim_at(tree), lambda *_: None)
    assert not written
