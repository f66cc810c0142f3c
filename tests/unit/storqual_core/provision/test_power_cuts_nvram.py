# SPDX-License-Identifier: Apache-2.0
"""The plug is pulled between any two side effects of writing an EEPROM; the next run has the driver read it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.provision import driver
from storqual_core.provision.driver import note_starts, pending_starts
from storqual_core.provision.nvram import NvramBench
from tests.support.fake_eeprom import Chip, factory_image, fit
from tests.support.power_cut import Mains, every_cut
from tests.unit.storqual_core.provision.test_nvram import PCI, Lab

WANTED = {"dc390": {"host_scsi_id": 6}}


class CutChip(Chip):
    """A chip whose every word is a side effect of its own; a word that was erased and not written holds ones."""

    mains: Mains | None = None

    def _program(self, operation: tuple[int, ...], address: int, data: list[int]) -> None:
        if self.mains is not None:
            self.mains.effect()
        super()._program(operation, address, data)


class CutLab(Lab):
    """A bench whose plug can be pulled; to start the driver is a side effect, too."""

    chip: CutChip
    mains: Mains | None = None

    def supplied_by(self, mains: Mains) -> None:
        """From here on the plug can be pulled."""
        self.mains = self.chip.mains = mains

    def plug_in(self) -> CutChip:
        self.mains = self.chip.mains = None
        return self.chip

    def start(self, _machine: Any, pci: str) -> None:
        """The driver starts, if there is power."""
        if self.mains is not None:
            self.mains.effect()
        super().start(_machine, pci)

    @property
    def bench(self) -> NvramBench:
        """What the code under test is given."""
        if self.mains is None:
            return super().bench
        return replace(super().bench, runner=self.mains.runner(self.machines))


def cut_provision(lab: CutLab, mains: Mains) -> None:
    """What is cut: one call of the module."""
    lab.supplied_by(mains)
    lab.provide(WANTED)


def provide_or_restore_first(lab: Lab) -> dict[str, Any]:
    """The next run; where a word is half written it says what a person must do, and that is done."""
    try:
        return lab.provide(WANTED)
    except ToolError as problem:
        words = str(problem)
    assert "playbooks/restore.yml writes the saved image back" in words
    lab.put_back()
    return lab.provide(WANTED)


@pytest.mark.parametrize("loses_memory", [False, True], ids=["program dies", "power is lost"])
def test_the_driver_has_the_declared_id_after_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loses_memory: bool
) -> None:
    cuts = 0
    for lab in every_cut(tmp_path, lambda root: CutLab(root, fit(monkeypatch, CutChip())), cut_provision):
        cuts += 1
        chip = lab.plug_in()
        if loses_memory:
            chip.enabled = False
            chip.deselect()
            lab.machines.tree.write("/proc/sys/kernel/random/boot_id", "another-boot\n")
            lab.start(None, PCI)
        said = provide_or_restore_first(lab)
        assert [(entry["read_back"], entry["proven"]) for entry in said["settings"]] == [(6, True)]
        assert lab.lines[-1].endswith("SCSI ID 6"), f"cut {cuts}: {lab.lines}"
        lab.put_back()
        assert chip.words == list(factory_image().words)
        assert lab.lines[-1].endswith("SCSI ID 7")
        assert sorted(path.name for path in (lab.machines.root / "state").iterdir()) == ["lock", "saved.json"]
    assert cuts > 8


def test_a_cut_restore_is_finished_by_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def changed(root: Path) -> CutLab:
        lab = CutLab(root, fit(monkeypatch, CutChip()))
        lab.provide(WANTED)
        return lab

    def work(lab: CutLab, mains: Mains) -> None:
        lab.supplied_by(mains)
        lab.put_back()

    for lab in every_cut(tmp_path, changed, work):
        chip = lab.plug_in()
        lab.put_back()
        assert chip.words == list(factory_image().words)
        assert lab.lines[-1].endswith("SCSI ID 7")


def test_an_adapter_that_was_left_without_its_driver_is_given_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program died between unbinding and binding; the kernel is asked to look for a driver."""
    lab = Lab(tmp_path / "bench", fit(monkeypatch, Chip()))
    root = lab.machines.root
    (root / "state").mkdir()
    note_starts(lab.machines.machine, lab.state, [PCI])
    link = root / f"sys/devices/pci0000:00/{PCI}/driver"
    link.unlink()
    written = []

    def probe(path: Any, value: object) -> None:
        written.append((str(path).removeprefix(str(root)), value))
        lab.machines.tree.link(f"/sys/devices/pci0000:00/{PCI}/driver", "/sys/bus/pci/drivers/am53c974")

    monkeypatch.setattr(driver, "write_attribute", probe)
    assert lab.provide(WANTED)["settings"][0]["proven"]
    assert written == [("/sys/bus/pci/drivers_probe", PCI)]
    assert not pending_starts(lab.machines.machine, lab.state)
