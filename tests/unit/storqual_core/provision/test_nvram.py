# SPDX-License-Identifier: Apache-2.0
"""NVRAM of adapters: refused, written, read by the driver, put back."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storqual_core.kit.errors import BadInputError, GuardRefusalError, ToolError
from storqual_core.kit.lock import read_saved
from storqual_core.kit.results import PartialError
from storqual_core.provision import nvram
from storqual_core.provision.nvram import NvramBench, NvramRequest, provision_nvram, reported_id, restore_nvram
from storqual_core.provision.restore import remembered
from storqual_core.tools.capabilities import AdapterFacts, Spelling, ToolFacts
from tests.support.adapter_bench import AdapterBench
from tests.support.fake_eeprom import Chip, factory_image, fit

PCI = "0000:00:08.0"
WWN = "0x5000e0c001010000"
ADAPTERS = {"dc390": {"pci": PCI, "driver": "am53c974"}}


class Lab:
    """A DC-390 with its chip; the driver reads it whenever it starts, and says so in the kernel's log."""

    def __init__(self, root: Path, chip: Chip) -> None:
        self.machines = AdapterBench(root)
        self.machines.adapter(PCI, "am53c974", vendor="0x1022", device="0x2020")
        self.machines.drive("sda", PCI, 0, WWN)
        self.chip = chip
        self.state = str(root / "state")
        self.lines: list[str] = []
        self.started: list[str] = []
        self.start(None, PCI)

    def start(self, _machine: Any, pci: str) -> None:
        self.started.append(pci)
        identity = self.chip.words[32] & 0xFF
        self.lines.append(f"[ 1.0] am53c974 {pci}: esp0: is a AM53C974, 40 MHz (ccf=0), SCSI ID {identity}")

    @property
    def bench(self) -> NvramBench:
        """What the code under test is given."""
        return NvramBench(self.machines, self.machines.machine, self.start, lambda: list(self.lines))

    def provide(self, nvram: dict[str, Any], adapters: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        return provision_nvram(NvramRequest(nvram, adapters or ADAPTERS, self.state, "r1", **more), self.bench)

    def put_back(self, alias: str = "dc390") -> Any:
        """What a restore does for an adapter, from the memory alone."""
        saved = read_saved(self.machines.root / "state")
        assert saved is not None
        values, known = remembered(saved.values, "nvram")[alias], saved.values[f"adapter@{alias}"]
        outcome = restore_nvram(alias, known, values, self.bench, self.state, check=False)
        return SimpleNamespace(
            steps=outcome.steps,
            read_back={
                f"adapter@{alias}": known,
                **{f"{entry.name}@{alias}": entry.read_back for entry in outcome.settings},
            },
        )


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A card as it is shipped."""
    return Lab(tmp_path, fit(monkeypatch, Chip()))


def test_an_id_is_written_and_the_driver_starts_with_it(lab: Lab) -> None:
    """The kernel's log is the proof; the second time nothing is done."""
    first = lab.provide({"dc390": {"host_scsi_id": 6, "max_tags": 16}})
    assert first["changed"]
    assert first["drift"] == ["dc390 nvram.host_scsi_id: 7, declared 6", "dc390 nvram.max_tags: 32, declared 16"]
    own, tags = first["settings"]
    assert (own["before"], own["read_back"], own["proven"]) == (7, 6, True)
    assert own["proof"] == "the driver started with SCSI id 6 (kernel log) (spelling: live)"
    assert (tags["read_back"], tags["proven"]) == (16, None)
    assert "no drive behind it takes tagged commands" in tags["proof"]
    assert lab.started == [PCI, PCI]
    second = lab.provide({"dc390": {"host_scsi_id": 6, "max_tags": 16}})
    assert (second["changed"], second["steps"], second["drift"]) == (False, [], [])
    assert second["settings"][0]["proven"] is True
    assert lab.started == [PCI, PCI]


@pytest.mark.parametrize(("depth", "proven"), [(16, True), (30, False)])
def test_tags_are_shown_by_a_drive_that_takes_them(lab: Lab, depth: int, proven: bool) -> None:
    lab.machines.set_queue("sda", depth, "simple")
    (entry,) = lab.provide({"dc390": {"max_tags": 16}})["settings"]
    assert entry["proven"] is proven


def test_what_the_driver_does_not_read_is_not_in_effect(lab: Lab) -> None:
    """A read-back alone would lie."""
    (entry,) = lab.provide({"dc390": {"scsi_parity": 0}})["settings"]
    assert (entry["read_back"], entry["proven"]) == (0, False)
    assert "am53c974 does not read" in entry["proof"]


def test_a_log_that_forgot_shows_nothing(lab: Lab) -> None:
    lab.lines.clear()
    (entry,) = lab.provide({"dc390": {"host_scsi_id": 7}})["settings"]
    assert entry["proven"] is None


def test_without_a_start_the_driver_still_has_the_old_id(lab: Lab) -> None:
    (entry,) = lab.provide({"dc390": {"host_scsi_id": 6}}, start_driver=False)["settings"]
    assert (entry["read_back"], entry["proven"]) == (6, False)
    assert lab.started == [PCI]


def test_check_mode_touches_nothing(lab: Lab) -> None:
    result = lab.provide({"dc390": {"host_scsi_id": 6}}, check=True)
    assert result["changed"]
    assert result["diff"] == {"before": "dc390 nvram.host_scsi_id: 7\n", "after": "dc390 nvram.host_scsi_id: 6\n"}
    assert lab.chip.programmed == []
    assert lab.started == [PCI]
    assert not (lab.machines.root / "state").exists()


@pytest.mark.parametrize(
    ("nvram", "kind", "words"),
    [
        ({"dc390": {"host_scsi_idd": 6}}, BadInputError, "did you mean host_scsi_id"),
        ({"dc390": {"host_scsi_id": 16}}, BadInputError, "16 is above 15"),
        ({"dc391": {"host_scsi_id": 6}}, BadInputError, "is no adapter of this bench's inventory"),
        ({"dc390": {"host_scsi_id": 9}}, ToolError, "9 is not a SCSI id of an 8-bit bus"),
        ({"dc390": {"host_scsi_id": 0}}, ToolError, f"0 is the id of drive {WWN}"),
        ({"dc390": {"max_tags": 5}}, ToolError, "power of two"),
        ({"dc390": {"frame_size": 2048}}, ToolError, "dc390 does not keep nvram.frame_size"),
        ({"dc390": {"execution_throttle": 4}}, ToolError, "dc390 does not keep nvram.execution_throttle"),
    ],
)
def test_what_cannot_be_is_refused_before_any_write(
    lab: Lab, nvram: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        lab.provide(nvram)
    assert lab.chip.programmed == []
    assert not (lab.machines.root / "state").exists()


def test_a_drive_in_use_is_refused_by_the_guard(lab: Lab) -> None:
    """Starting the driver again would take it away."""
    lab.machines.tree.swap("/dev/sda")
    with pytest.raises(GuardRefusalError, match="is active swap space"):
        lab.provide({"dc390": {"host_scsi_id": 6}})
    assert lab.chip.programmed == []


def test_a_write_that_is_cut_short_is_told_and_restored(lab: Lab) -> None:
    lab.chip.dies_after = 1
    with pytest.raises(PartialError, match="Input/output error"):
        lab.provide({"dc390": {"host_scsi_id": 6}})
    lab.chip.dies_after = None
    with pytest.raises(ToolError, match=r"restore\.yml writes the saved image back"):
        lab.provide({"dc390": {"host_scsi_id": 6}})
    restored = lab.put_back()
    assert restored.read_back["nvram.host_scsi_id@dc390"] == 7
    assert tuple(lab.chip.words) == factory_image().words


def test_the_whole_image_is_put_back(lab: Lab) -> None:
    """Every remembered key is read back, so that the memory can be forgotten."""
    lab.provide({"dc390": {"host_scsi_id": 6, "scsi_parity": 0}})
    restored = lab.put_back()
    saved = read_saved(lab.machines.root / "state")
    assert saved is not None
    assert restored.read_back == saved.values
    assert tuple(lab.chip.words) == factory_image().words
    assert len(lab.started) == 3
    assert lab.put_back().steps == []


def test_what_only_the_other_arm_declares_is_as_it_was_found(lab: Lab) -> None:
    lab.provide({"dc390": {"host_scsi_id": 6}})
    result = lab.provide({}, as_found={"dc390": ["host_scsi_id", "max_tags"]})
    assert result["changed"]
    assert tuple(lab.chip.words) == factory_image().words


def test_the_last_word_of_the_driver_counts() -> None:
    lines = [
        "am53c974 0000:00:08.0: esp0: is a AM53C974, 40 MHz (ccf=0), SCSI ID 7",
        "am53c974 0000:00:09.0: esp1: is a AM53C974, 40 MHz (ccf=0), SCSI ID 5",
        "am53c974 0000:00:08.0: esp2: is a AM53C974, 40 MHz (ccf=0), SCSI ID 6",
    ]
    assert reported_id(lines, "0000:00:08.0") == 6
    assert reported_id(lines, "0000:00:0a.0") is None


FC = "0000:3b:00.0"


def fibre(lab: Lab, monkeypatch: pytest.MonkeyPatch, *, pci: str = FC, objection: str = "") -> dict[str, int]:
    """A QLogic adapter with a tool that keeps two words."""
    words = {"execution_throttle": 16, "frame_size": 2048}
    lab.machines.adapter(FC, "qla2xxx")
    tool = SimpleNamespace(
        PROGRAMS=("qaucli",),
        SETTINGS={name: Spelling("-c", "-n", "probed") for name in words},
        read_facts=lambda _runner: ToolFacts((AdapterFacts("3", pci=pci),)),
        read_settings=lambda _runner, _index: dict(words),
        objection=lambda _runner, _index, _name, _value: objection,
        write_setting=lambda _runner, _index, name, value: words.update({name: value}),
    )
    monkeypatch.setattr(nvram, "TOOLS", {"qaucli": lambda: tool})
    return words


def test_a_throttle_that_the_driver_ignores_is_set_beside_it(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The NVRAM has it, qla2xxx does not follow it, and the driver's own parameter is asked for."""
    words = fibre(lab, monkeypatch)
    result = lab.provide({"fc0": {"execution_throttle": 32}}, {"fc0": {"pci": FC, "driver": "qla2xxx"}})
    assert words["execution_throttle"] == 32
    assert result["throttle"] == {"fc0": 32}
    (entry,) = result["settings"]
    assert entry["proven"] is None
    assert "qla2xxx writes 0xFFFF" in entry["proof"]
    assert "qla2xxx.ql2xmaxqdepth is set beside it" in entry["proof"]


def test_unverified_syntax_is_refused_before_any_write(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    words = fibre(lab, monkeypatch, objection="the help does not name the alias ET")
    with pytest.raises(ToolError, match="cannot be 32: the help does not name the alias ET"):
        lab.provide({"fc0": {"execution_throttle": 32}}, {"fc0": {"pci": FC, "driver": "qla2xxx"}})
    assert words["execution_throttle"] == 16


def test_an_adapter_that_the_tool_does_not_show_is_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    fibre(lab, monkeypatch, pci="0000:5e:00.0")
    with pytest.raises(ToolError, match=r"qaucli shows 0 adapters at 0000:3b:00\.0"):
        lab.provide({"fc0": {"frame_size": 1024}}, {"fc0": {"pci": FC, "driver": "qla2xxx"}})


def test_settings_of_a_tool_are_put_back_one_by_one(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    words = fibre(lab, monkeypatch)
    lab.provide({"fc0": {"frame_size": 1024}}, {"fc0": {"pci": FC, "driver": "qla2xxx"}})
    assert words["frame_size"] == 1024
    assert lab.put_back("fc0").read_back["nvram.frame_size@fc0"] == 2048
    assert words["frame_size"] == 2048


def test_a_driver_without_a_tool_has_its_parameter(lab: Lab) -> None:
    """The throttle of a Symbios adapter is an option of its driver; anything else is refused."""
    lab.machines.adapter("0000:00:05.0", "sym53c8xx")
    adapters = {"sym": {"pci": "0000:00:05.0", "driver": "sym53c8xx"}}
    assert lab.provide({"sym": {"execution_throttle": 4}}, adapters)["throttle"] == {"sym": 4}
    with pytest.raises(ToolError, match="no tool here keeps NVRAM settings of driver sym53c8xx"):
        lab.provide({"sym": {"host_scsi_id": 6}}, adapters)


def test_a_session_is_a_start_of_its_own(lab: Lab) -> None:
    lab.machines.adapter("0000:00:05.0", "sym53c8xx")
    adapters = {**ADAPTERS, "sym": {"pci": "0000:00:05.0", "driver": "sym53c8xx"}}
    lab.started.clear()
    result = lab.provide({}, adapters, start=["dc390", "sym"])
    assert (result["changed"], result["settings"], result["drift"]) == (True, [], [])
    assert lab.started == [PCI, "0000:00:05.0"]
    lab.machines.tree.mount(lab.machines.machine.text("/sys/block/sda/dev"), "/data")
    with pytest.raises(GuardRefusalError, match="is mounted on /data"):
        lab.provide({}, adapters, start=["dc390", "sym"])


def test_what_a_tool_only_reads_is_refused_before_any_write(lab: Lab) -> None:
    only = Spelling("Interrupt Throttle", "", "recorded")
    tool = SimpleNamespace(SETTINGS={"interrupt_coalescing_depth": only}, write_setting=len)
    backend = nvram.Backend("storcli", tool, "0")
    assert "is not verified, so it is not tried" in backend.objection(lab.machines, "interrupt_coalescing_depth", 4)
