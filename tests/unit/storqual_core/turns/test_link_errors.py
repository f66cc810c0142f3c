# SPDX-License-Identifier: Apache-2.0
"""Errors of PCI Express: what the kernel's injector is given, and that the kernel counted one more."""

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from storqual_core.data.faults import WAYS
from storqual_core.host.sysfs import read_drives
from storqual_core.kit.errors import ToolError
from storqual_core.turns import bench_faults
from storqual_core.turns.bench_faults import ACTS, CORRECTED, FATAL, NOT_FATAL, counted, missing
from storqual_core.turns.drive_faults import Aim
from tests.support.bench_tree import BenchTree

A, PCI = "0x5000c50000000001", "0000:00:05.0"
COUNTS = "Receiver Error {0}\nBad TLP 7\nTOTAL_ERR_COR {0}\n"
PLACE = f"/sys/bus/pci/devices/{PCI}/aer_dev_correctable"


@pytest.fixture
def aim(tmp_path: Path) -> Aim:
    tree = BenchTree(tmp_path).adapter(PCI).scsi("sda", hctl="2:0:0:0", wwn=A, serial="S1")
    tree.write("/dev/aer_inject", b"")
    tree.write(PLACE, COUNTS.format(2))
    drive = next(one for one in read_drives(tree.machine) if one.id == A)
    return Aim(tree.machine, lambda *_, **__: pytest.fail("nothing is run"), drive, 0.0, 0.2)


def brought(aim: Aim, way: str = "aer_corrected") -> list[str]:
    told: list[str] = []
    ACTS[way](aim, lambda seen, _text: told.append(seen))
    return told


def kernel(monkeypatch: pytest.MonkeyPatch, effect: Callable[[bytes], object]) -> None:
    """A kernel that takes an injection and does `effect` with it."""

    def write(descriptor: int, data: bytes) -> int:
        del descriptor
        effect(data)
        return len(data)

    monkeypatch.setattr(bench_faults.os, "write", write)


def test_without_the_injector_nothing_is_tried(aim: Aim) -> None:
    for way in ("aer_corrected", "aer_not_fatal", "aer_fatal"):
        assert WAYS[way][1].scope == "link"
        assert missing(WAYS[way][1], aim.machine, aim.drive) == ""
    Path(aim.machine.path("/dev/aer_inject")).unlink()
    assert missing(WAYS["aer_fatal"][1], aim.machine, aim.drive) == "/dev/aer_inject is not there"


def test_an_adapter_whose_errors_the_kernel_does_not_count_gets_none(
    aim: Aim, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel(monkeypatch, lambda _data: pytest.fail("something was injected"))
    for text in ("", "Receiver Error 2\n", "TOTAL_ERR_COR many\n"):
        Path(aim.machine.path(PLACE)).write_text(text)
        with pytest.raises(ToolError, match="the kernel counts no such errors"):
            brought(aim)


def test_an_error_is_injected_and_counted(aim: Aim, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bytes] = []

    def count(data: bytes) -> None:
        taken.append(data)
        Path(aim.machine.path(PLACE)).write_text(COUNTS.format(3))

    kernel(monkeypatch, count)
    assert brought(aim) == ["injected", "counted"]
    assert len(taken) == 1
    assert counted(aim, CORRECTED) == 3


def test_an_error_that_the_kernel_never_counts_is_not_proven(aim: Aim, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel(monkeypatch, lambda _data: None)
    told: list[str] = []
    with pytest.raises(ToolError, match=f"aer_dev_correctable of {PCI} stayed at 2 for 0.2 s"):
        ACTS["aer_corrected"](aim, lambda seen, _text: told.append(seen))
    assert told == ["injected"]


def test_an_injection_that_the_kernel_refuses_is_told(aim: Aim, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_data: bytes) -> None:
        raise OSError(22, "Invalid argument")

    kernel(monkeypatch, refuse)
    with pytest.raises(ToolError, match=f"does not inject into {PCI}: Invalid argument"):
        brought(aim)


@pytest.mark.parametrize(
    ("error", "uncorrectable", "correctable", "counter"),
    [
        (CORRECTED, 0, 1, "aer_dev_correctable"),
        (NOT_FATAL, 0x4000, 0, "aer_dev_nonfatal"),
        (FATAL, 0x10, 0, "aer_dev_fatal"),
    ],
)
def test_the_request_has_the_layout_of_the_kernels_injector(
    error: bench_faults.LinkError, uncorrectable: int, correctable: int, counter: str
) -> None:
    request = error.request("0001:3b:1f.6")
    assert (len(request), request[:3]) == (32, bytes((0x3B, 0x1F, 6)))
    assert struct.unpack_from("=2I4II", request, 4) == (uncorrectable, correctable, 0, 0, 0, 0, 1)
    assert error.counter == counter


def test_the_request_is_one_write_to_the_injector_alone(aim: Aim, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Path(aim.machine.path("/dev/aer_inject"))
    monkeypatch.setattr(bench_faults, "counted", lambda _aim, _error: len(place.read_bytes()))
    assert brought(replace(aim, limit_s=0.0)) == ["injected", "counted"]
    assert place.read_bytes() == CORRECTED.request(PCI)
