# SPDX-License-Identifier: Apache-2.0
"""What a way tells rests on what is read back: a kernel that does nothing leaves it without its proof."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from storqual_core.data.faults import WAYS
from storqual_core.host.sysfs import read_drives
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.turns import bench_faults
from storqual_core.turns.bench_faults import ACTS, missing
from storqual_core.turns.drive_faults import Aim
from tests.support.bench_tree import BenchTree

A = "0x5000c50000000001"


@pytest.fixture
def aim(tmp_path: Path) -> Aim:
    """A drive with a scheduler, a number of requests and a queue depth."""
    machine = BenchTree(tmp_path).adapter("0000:00:05.0").scsi("sda", hctl="2:0:0:0", wwn=A, serial="S1").machine
    queue = Path(machine.path("/sys/block/sda/queue"))
    queue.mkdir(parents=True, exist_ok=True)
    (queue / "scheduler").write_text("[none] mq-deadline\n")
    (queue / "nr_requests").write_text("975\n")
    Path(machine.path("/sys/block/sda/device/queue_depth")).write_text("64\n")
    drive = next(one for one in read_drives(machine) if one.id == A)
    return Aim(machine, completed(0), drive, away_s=0.0, limit_s=0.2)


def completed(code: int) -> Callable[..., Completed]:
    def run(argv: Sequence[str], **_: object) -> Completed:
        return Completed(tuple(argv), code, "", "may not be available", 0.0)

    return run


def brought(aim: Aim, way: str) -> list[str]:
    told: list[str] = []
    ACTS[way](aim, lambda seen, _text: told.append(seen))
    return told


def writing(monkeypatch: pytest.MonkeyPatch, effect: Callable[[Path, str], object]) -> None:
    """A kernel that takes every value, and does `effect` with it."""
    monkeypatch.setattr(bench_faults, "write_attribute", lambda path, value: effect(Path(path), str(value)))


def test_a_setting_is_changed_read_back_and_put_back(aim: Aim) -> None:
    assert brought(aim, "depth_switch") == ["read_back", "put_back"]
    assert aim.machine.text("/sys/block/sda/device/queue_depth") == "64"


def test_a_setting_that_the_kernel_did_not_take_is_not_proven(aim: Aim, monkeypatch: pytest.MonkeyPatch) -> None:
    writing(monkeypatch, lambda _path, _value: None)
    assert brought(aim, "depth_switch") == ["other_value", "other_value", "put_back"]


def test_a_setting_that_the_kernel_raised_at_once_is_told_with_what_was_found_and_written_once_more(
    aim: Aim, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def kernel(path: Path, value: str) -> None:
        written.append(value)
        path.write_text("2" if written == ["1"] else value)

    writing(monkeypatch, kernel)
    told: list[tuple[str, str]] = []
    ACTS["depth_switch"](aim, lambda seen, text: told.append((seen, text)))
    assert written == ["1", "1", "64"]
    assert [seen for seen, _ in told] == ["other_value", "read_back", "put_back"]
    assert told[0][1] == "device/queue_depth was 64, 1 was written and 2 is found: written once more"


def test_a_setting_that_does_not_go_back_is_told(aim: Aim, monkeypatch: pytest.MonkeyPatch) -> None:
    writing(monkeypatch, lambda path, value: path.write_text(value) if value == "1" else None)
    with pytest.raises(ToolError, match="was 64 and is 1 now"):
        brought(aim, "depth_switch")


def test_what_the_kernel_replaces_with_the_scheduler_is_put_back_too(
    aim: Aim, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kernel(path: Path, value: str) -> None:
        path.write_text(value)
        if path.name == "scheduler":
            (path.parent / "nr_requests").write_text("256")

    writing(monkeypatch, kernel)
    assert brought(aim, "scheduler_switch") == ["read_back", "put_back", "requests_back"]
    assert aim.machine.text("/sys/block/sda/queue/nr_requests") == "975"


def test_a_drive_that_does_not_go_is_no_removal(aim: Aim, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Path(aim.machine.path(f"/sys/dev/block/{aim.drive.number}"))
    device.parent.mkdir(parents=True, exist_ok=True)
    device.touch()
    writing(monkeypatch, lambda _path, _value: None)
    with pytest.raises(ToolError, match="sda did not go within"):
        brought(aim, "sysfs_delete")


def test_an_adapter_that_does_not_go_is_no_removal(aim: Aim, monkeypatch: pytest.MonkeyPatch) -> None:
    writing(monkeypatch, lambda _path, _value: None)
    with pytest.raises(ToolError, match="did not go within"):
        brought(aim, "pci_remove")


def test_a_driver_that_does_not_let_go_is_not_proven(aim: Aim, monkeypatch: pytest.MonkeyPatch) -> None:
    writing(monkeypatch, lambda _path, _value: None)
    assert "driver_gone" not in brought(aim, "driver_rebind")


def test_a_reset_that_is_not_available_fails(aim: Aim) -> None:
    refused = Aim(aim.machine, completed(1), aim.drive, 0.0, 0.2)
    told: list[str] = []
    with pytest.raises(ToolError, match="may not be available"):
        ACTS["sg_reset_device"](refused, lambda seen, _text: told.append(seen))
    assert told == ["command"]


@pytest.fixture
def driven(tmp_path: Path) -> tuple[Aim, list[str], Path]:
    """Two adapters of one module and a kernel that lets go, unloads, loads and takes; what it was asked."""
    tree = (
        BenchTree(tmp_path).adapter("0000:00:05.0").adapter("0000:00:06.0").adapter("0000:00:07.0", driver="mptsas")
    )
    machine = tree.scsi("sda", hctl="2:0:0:0", wwn=A, serial="S1").machine
    drive = next(one for one in read_drives(machine) if one.id == A)
    asked: list[str] = []
    module = Path(machine.path("/sys/module/sym53c8xx"))

    def run(argv: Sequence[str], **_: object) -> Completed:
        asked.append(" ".join(argv))
        module.rename(module.with_name("unloaded")) if "-r" in argv else module.with_name("unloaded").rename(module)
        return Completed(tuple(argv), 0, "", "", 0.0)

    return Aim(machine, run, drive, away_s=0.0, limit_s=0.2), asked, module


def test_a_module_goes_with_all_its_adapters_and_comes_back(
    driven: tuple[Aim, list[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    aim, asked, _ = driven
    writing(monkeypatch, lambda path, value: asked.append(f"{path.name} {value}"))
    assert brought(aim, "module_reload") == ["module_gone", "module_back"]
    assert asked == [*("unbind 0000:00:05.0", "unbind 0000:00:06.0", "modprobe -r sym53c8xx", "modprobe sym53c8xx")]


def test_a_module_that_stays_loaded_is_not_proven(
    driven: tuple[Aim, list[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    aim, _, _ = driven
    writing(monkeypatch, lambda _path, _value: None)
    stays = Aim(aim.machine, completed(0), aim.drive, 0.0, 0.2)
    assert brought(stays, "module_reload") == ["module_back"]


def test_a_module_that_cannot_be_unloaded_is_taken_again(
    driven: tuple[Aim, list[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    aim, asked, _ = driven
    writing(monkeypatch, lambda _path, _value: None)

    def run(argv: Sequence[str], **_: object) -> Completed:
        asked.append(" ".join(argv))
        return Completed(tuple(argv), int("-r" in argv), "", "Module sym53c8xx is in use", 0.0)

    with pytest.raises(ToolError, match="is in use"):
        brought(Aim(aim.machine, run, aim.drive, 0.0, 0.2), "module_reload")
    assert asked[-1] == "modprobe sym53c8xx"


@pytest.fixture
def of_two(aim: Aim) -> Aim:
    """The same bench with a second processor, and an interrupt of the adapter."""
    for file, text in (
        ("/sys/devices/system/cpu/cpu1/online", "1\n"),
        ("/proc/irq/11/smp_affinity_list", "0-1\n"),
        (
            "/proc/interrupts",
            "      CPU0  CPU1\n 11:   100     5  IO-APIC  sym53c8xx\n 12:  7  900  IO-APIC  other\n",
        ),
    ):
        place = Path(aim.machine.path(file))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return aim


def test_a_processor_goes_and_comes_back(of_two: Aim) -> None:
    assert brought(of_two, "processor_offline") == ["processor_gone", "processor_back"]
    assert of_two.machine.text("/sys/devices/system/cpu/cpu1/online") == "1"


def test_a_processor_that_stays_is_not_proven(of_two: Aim, monkeypatch: pytest.MonkeyPatch) -> None:
    writing(monkeypatch, lambda _path, _value: None)
    assert brought(of_two, "processor_offline") == ["processor_back"]


def test_a_processor_that_does_not_come_back_is_told(of_two: Aim, monkeypatch: pytest.MonkeyPatch) -> None:
    writing(monkeypatch, lambda path, value: path.write_text(value) if value == "0" else None)
    with pytest.raises(ToolError, match="cpu1 did not come back"):
        brought(of_two, "processor_offline")


def test_interrupts_are_moved_when_the_other_processor_counts_them(
    of_two: Aim, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kernel(path: Path, value: str) -> None:
        path.write_text(value)
        counts = Path(of_two.machine.path("/proc/interrupts"))
        counts.write_text(counts.read_text().replace(" 5 ", " 9 "))

    writing(monkeypatch, kernel)
    assert brought(of_two, "interrupt_move") == ["interrupts_moved", "interrupts_back"]
    assert of_two.machine.text("/proc/irq/11/smp_affinity_list") == "0-1"


def test_interrupts_that_the_other_processor_never_served_are_not_proven(of_two: Aim) -> None:
    assert brought(of_two, "interrupt_move") == ["interrupts_back"]


def test_interrupts_that_the_kernel_spreads_itself_cannot_be_moved(
    of_two: Aim, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kernel(path: Path, value: str) -> None:
        raise ToolError(f"the kernel refused {value!r} for {path}")

    writing(monkeypatch, kernel)
    with pytest.raises(ToolError, match="lets none of the interrupts"):
        brought(of_two, "interrupt_move")


def test_a_bench_with_one_processor_has_none_to_take_away(aim: Aim) -> None:
    assert "cpu1/online is not there" in missing(WAYS["processor_offline"][1], aim.machine, aim.drive)
