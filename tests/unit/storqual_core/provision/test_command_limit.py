# SPDX-License-Identifier: Apache-2.0
"""The commands that a driver holds for an adapter are shown by what the kernel says of its SCSI hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from storqual_core.provision.adapter_queue import ThrottleRequest, provision_throttle
from storqual_core.provision.options import OptionsBench
from tests.support.adapter_bench import AdapterBench

if TYPE_CHECKING:
    from pathlib import Path

PLACES = ("0000:00:05.0", "0000:00:06.0")
PARAMETERS = {"vmw_pvscsi": "ring_pages", "mpt3sas": "max_queue_depth"}


def shown(folder: Path, module: str, declared: int, *can_queue: int | None) -> Any:
    """The record of the option, on a bench whose adapters say so many commands (None: they say nothing)."""
    bench = AdapterBench(folder / "root", modules={module: {PARAMETERS[module]: "0"}})
    for number, (pci, commands) in enumerate(zip(PLACES, can_queue, strict=False), start=2):
        bench.adapter(pci, module)
        host = f"/sys/devices/pci0000:00/{pci}/host{number}/scsi_host/host{number}"
        bench.tree.write(f"{host}/proc_name", module + "\n")
        if commands is not None:
            bench.tree.write(f"{host}/can_queue", f"{commands}\n")
        bench.tree.link(f"/sys/class/scsi_host/host{number}", host)
    request = ThrottleRequest({}, {module: {PARAMETERS[module]: declared}}, {}, str(folder / "state"), "r1")
    (entry,) = provision_throttle(request, OptionsBench(bench, bench.machine))["settings"]
    return entry["proven"], entry["proof"]


@pytest.mark.parametrize(
    ("module", "declared", "can_queue", "proven", "told"),
    [
        ("vmw_pvscsi", 2, (64, 64), True, "can_queue, 64 declared: host2 64, host3 64"),
        ("vmw_pvscsi", 2, (64, 256), False, "host3 256"),
        # this driver takes each command of its ring: fewer are another ring
        ("vmw_pvscsi", 2, (32,), False, "host2 32"),
        ("mpt3sas", 64, (65,), False, "host2 65"),
        ("mpt3sas", 64, (54,), True, "host2 54; mpt3sas keeps commands for itself, or its firmware takes no more"),
        ("mpt3sas", 64, (54, None), None, "the kernel does not show can_queue of every SCSI host of it"),
        # left to the driver: nothing is limited
        ("mpt3sas", -1, (9000,), True, "the loaded module shows it"),
    ],
)
def test_the_limit_is_shown_by_can_queue(
    tmp_path: Path, module: str, declared: int, can_queue: tuple[int | None, ...], proven: bool | None, told: str
) -> None:
    found, proof = shown(tmp_path, module, declared, *can_queue)
    assert found is proven
    assert told in proof
