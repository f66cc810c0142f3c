# SPDX-License-Identifier: Apache-2.0
"""A driver that lets go of an adapter and takes it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual_core.errors import ToolError
from storqual_core.pci_rebind import rebind
from tests.bench_tree import BenchTree

PCI = "0000:05:00.0"


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """An adapter with one drive."""
    made = BenchTree(tmp_path).adapter(PCI).scsi("sda", pci=PCI)
    for name in ("bind", "unbind"):
        made.write(f"/sys/bus/pci/drivers/sym53c8xx/{name}", "")
    return made


def test_the_function_is_unbound_and_bound_and_its_drives_awaited(tree: BenchTree) -> None:
    """Here they never went."""
    rebind(PCI, tree.machine)
    folder = tree.root / "sys/bus/pci/drivers/sym53c8xx"
    assert [(folder / name).read_text() for name in ("unbind", "bind")] == [f"{PCI}\n"] * 2


def test_a_drive_that_does_not_come_back_is_named(tree: BenchTree) -> None:
    """After three minutes."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    def clock() -> float:
        return now[0]

    # the drive goes with the binding
    bind, real = tree.root / "sys/bus/pci/drivers/sym53c8xx/bind", tree.machine.names

    def names(path: str) -> list[str]:
        found = real(path)
        gone = bind.read_text() and path == "/sys/block"
        return [name for name in found if name != "sda"] if gone else found

    tree.machine.names = names  # type: ignore[method-assign]
    with pytest.raises(ToolError, match="0x5000c50000000001 did not come back; power-cycle the bench"):
        rebind(PCI, tree.machine, clock=clock, sleep=sleep)
    assert now[0] >= 180


def test_an_adapter_without_a_driver_is_a_sentence(tmp_path: Path) -> None:
    """There is nothing that could let go."""
    with pytest.raises(ToolError, match="has no driver that could let go of it"):
        rebind(PCI, BenchTree(tmp_path).machine)
