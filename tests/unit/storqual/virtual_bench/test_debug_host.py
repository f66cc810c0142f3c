# SPDX-License-Identifier: Apache-2.0
"""A virtual bench may have scsi_debug beside what QEMU emulates: one host, one drive, as the module has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storqual.virtual_bench.description import BenchDescription, describe, from_plain
from storqual.virtual_bench.qemu import Acceleration, EmulatedMachine, machine_argv
from storqual_core.kit.errors import BadInputError

DRIVE: dict[str, Any] = {"wwn": "0x33333330000007d0", "serial": "2000", "size": "64MiB"}
SYM = {"pci": "0000:00:05.0", "drives": [{"wwn": "0x5000c50015ea0000", "size": "1GiB"}]}


def bench(**changes: Any) -> BenchDescription:
    entry = {"pseudo": "adapter0", "drives": [DRIVE], **changes}
    devices = {"sym": {"device": "lsi53c895a"}, "debug": {"device": "scsi_debug"}}
    return describe("vbench", {"sym": SYM, "debug": entry}, {"adapters": devices})


def problems(**changes: Any) -> list[str]:
    with pytest.raises(BadInputError) as raised:
        bench(**changes)
    return raised.value.problems


def argv(description: BenchDescription) -> list[str]:
    names = (
        "image_root boot_disc overlay drives console monitor pidfile host_key authorized_keys host_name debug_host"
    )
    machine = EmulatedMachine(**{name: Path("/state") / name for name in names.split()})
    return machine_argv(description, machine, Acceleration("tcg", ""))


def test_the_module_gets_parameters_that_give_its_drive_the_declared_names_and_size() -> None:
    made = bench()
    assert made.debug is not None
    assert made.debug.parameters == "add_host=1 num_tgts=1 max_luns=1 vpd_use_hostno=0 dev_size_mb=64"
    assert from_plain(made.plain()) == made


def test_the_guest_sees_one_drive_more_than_qemu_has() -> None:
    made = bench()
    assert ([drive.identity for drive in made.drives], made.devices) == (["0x5000c50015ea0000"], 2)
    words = argv(made)
    assert "name=opt/storqual/scsi_debug,file=/state/debug_host" in words
    assert not [word for word in words if "33333330" in word or "debug-0" in word]
    with pytest.raises(BadInputError, match="vbench has no drive"):
        made.drive(DRIVE["wwn"])


def test_a_bench_without_it_is_handed_no_parameters() -> None:
    made = describe("vbench", {"sym": SYM}, {"adapters": {"sym": {"device": "lsi53c895a"}}})
    assert (made.debug, made.devices) == (None, 1)
    assert not [word for word in argv(made) if "scsi_debug" in word]
    former = {name: value for name, value in made.plain().items() if name != "debug"}
    assert from_plain(former) == made


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pseudo": "adapter1"}, "debug.pseudo: expected adapter0"),
        ({"pseudo": None, "pci": "0000:00:06.0"}, "debug.pseudo: expected adapter0"),
        ({"drives": []}, "expected one drive: all drives of scsi_debug would lie in the same memory"),
        ({"drives": [DRIVE, DRIVE]}, "expected one drive"),
        ({"drives": [{**DRIVE, "wwn": "0x5000c50015ea0001"}]}, "wwn: scsi_debug makes 0x33333330000007d0"),
        ({"drives": [{**DRIVE, "serial": "2001"}]}, "serial: scsi_debug makes 2000"),
        ({"drives": [{**DRIVE, "virtual": {"iops": 100}}]}, "virtual: scsi_debug has none"),
        ({"drives": [{**DRIVE, "paths": ["sym"]}]}, "paths: scsi_debug has none"),
        ({"drives": [{**DRIVE, "size": "1GiB"}]}, "expected whole MiB, 8 to 512 MiB"),
        ({"drives": [{**DRIVE, "size": 64 * 2**20 + 4096}]}, "expected whole MiB"),
        ({"drives": [{**DRIVE, "size": "large"}]}, "drives[0].size"),
    ],
)
def test_what_the_module_cannot_make_is_refused(changes: dict[str, Any], told: str) -> None:
    assert any(told in problem for problem in problems(**changes))


def test_a_bench_has_one_such_adapter() -> None:
    entry = {"pseudo": "adapter0", "drives": [DRIVE]}
    with pytest.raises(BadInputError, match="first is scsi_debug already, a bench has one"):
        describe(
            "vbench",
            {"first": entry, "second": entry},
            {"adapters": {name: {"device": "scsi_debug"} for name in ("first", "second")}},
        )
