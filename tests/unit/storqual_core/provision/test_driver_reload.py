# SPDX-License-Identifier: Apache-2.0
"""A driver that lets go of an adapter and takes it again."""

from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.provision.driver import bind_unbound, rebind
from tests.support.bench_tree import BenchTree

PCI = "0000:05:00.0"


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    made = BenchTree(tmp_path).adapter(PCI).scsi("sda", pci=PCI)
    for name in ("bind", "unbind"):
        made.write(f"/sys/bus/pci/drivers/sym53c8xx/{name}", "")
    made.write("/sys/bus/pci/drivers_probe", "")
    return made


def test_the_function_is_unbound_and_bound_and_its_drives_awaited(tree: BenchTree) -> None:
    rebind(tree.machine, PCI)
    folder = tree.root / "sys/bus/pci/drivers/sym53c8xx"
    assert [(folder / name).read_text() for name in ("unbind", "bind")] == [f"{PCI}\n"] * 2


def test_a_drive_that_does_not_come_back_is_named(tree: BenchTree) -> None:
    bind, real = tree.root / "sys/bus/pci/drivers/sym53c8xx/bind", tree.machine.names

    def names(path: str) -> list[str]:
        found = real(path)
        gone = bind.read_text() and path == "/sys/block"
        return [name for name in found if name != "sda"] if gone else found

    tree.machine.names = names  # type: ignore[method-assign]
    with pytest.raises(ToolError, match=r"1 drives did not come back within 0\.2 s: 0x5000c50000000001"):
        rebind(tree.machine, PCI, 0.2)


def test_an_adapter_without_a_driver_is_a_sentence_or_is_given_one(tree: BenchTree) -> None:
    """There is nothing that could let go; the kernel can be asked to look for a driver."""
    assert bind_unbound(tree.machine, [PCI, "0000:ff:00.0"]) == []
    (tree.root / f"sys/devices/pci0000:00/{PCI}/driver").unlink()
    with pytest.raises(ToolError, match="no driver is bound to the adapter"):
        rebind(tree.machine, PCI)
    assert bind_unbound(tree.machine, [PCI, "0000:ff:00.0"]) == [PCI]
    assert (tree.root / "sys/bus/pci/drivers_probe").read_text() == f"{PCI}\n"
