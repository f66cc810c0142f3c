# SPDX-License-Identifier: Apache-2.0
"""The states of the guard's live test: drives in use, drives with data, and drives that are not the claimed ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from guard_contents import CONTENTS
from guard_formats import FORMATS, LABELS
from guard_hidden import HIDDEN
from guard_mounts import MOUNTS
from guard_served import SERVED
from guard_stacks import STACKS
from guard_state import State
from guard_tools import Bench, put, run
from guard_uses import USES

from storqual_core.host.sysfs import read_drives
from storqual_core.kit.machine import Machine

if TYPE_CHECKING:
    from storqual_core.guard.claims import Claim


_WRONG = "it is not the claimed drive: its "


def _read_only(bench: Bench) -> None:
    run("blockdev", "--setro", bench.node())
    bench.later("blockdev", "--setrw", bench.node())


def _offline(bench: Bench) -> None:
    state = f"/sys/block/{bench.name()}/device/state"
    put(state, "offline")
    bench.undo.append(lambda: put(state, "running"))


def _node_swapped(bench: Bench) -> None:
    node, number = bench.node("a"), os.stat(bench.node("b")).st_rdev  # noqa: PTH116 - as os.mknod
    Path(node).rename(f"{node}.away")
    os.mknod(node, 0o60600, number)
    bench.undo.append(lambda: Path(f"{node}.away").replace(node))


def _nothing(bench: Bench) -> None:
    del bench


def _twins(bench: Bench) -> str:
    """Two drives that say they are the same one, as a cloned virtual disk or a lost multipath does."""
    bench.later("modprobe", "-r", "scsi_debug")
    run("modprobe", "scsi_debug", "add_host=2", "vpd_use_hostno=0", "dev_size_mb=20")
    return "/dev/" + next(drive.name for drive in read_drives(Machine()) if drive.identity.model == "scsi_debug")


def _twins_claim(bench: Bench) -> list[Claim]:
    twin = next(drive.identity for drive in read_drives(Machine()) if drive.identity.model == "scsi_debug")
    texts = {name: getattr(twin, name) for name in ("wwn", "serial", "vendor", "model", "size")}
    return [bench.claim(id=twin.wwn, **texts)]


def _system_disk(bench: Bench) -> str:
    del bench
    return "/dev/zero"  # bare fio is not let loose on the disk that the bench lives on


def _system_claim(bench: Bench) -> list[Claim]:
    size = int(Path("/sys/block/vda/size").read_text()) * 512
    serial = Path("/sys/block/vda/serial").read_text().strip()
    return [bench.claim(id=serial, wwn="", serial=serial, vendor="", model="virtio-blk", size=size)]


STATES = [
    *USES,
    *CONTENTS,
    *HIDDEN,
    *LABELS,
    State("read-only", "it is read-only", _read_only),
    State("offline", "its state is offline", _offline),
    State("device node is another drive's", "is missing or is another device", _node_swapped),
    State(
        "serial right, WWN wrong",
        "has its serial but says WWN",
        _nothing,
        lambda b: [b.claim(wwn="0x5000c500ffffffff")],
    ),
    State("WWN right, serial wrong", f"{_WRONG}serial is", _nothing, lambda b: [b.claim(serial="OTHER")]),
    State("model wrong", f"{_WRONG}model is", _nothing, lambda b: [b.claim(model="OTHER")]),
    State("vendor wrong", f"{_WRONG}vendor is", _nothing, lambda b: [b.claim(vendor="OTHER")]),
    State("size wrong", f"{_WRONG}size is", _nothing, lambda b: [b.claim(size=b.claims["a"].size - 512)]),
    State("claim states no serial", "the claim does not state it", _nothing, lambda b: [b.claim(serial="")]),
    State(
        "two drives swapped in the claims",
        f"{_WRONG}serial is",
        _nothing,
        lambda b: [b.claim("a", serial=b.claims["b"].serial), b.claim("b", serial=b.claims["a"].serial)],
    ),
    State(
        "claim for another bench",
        "no drive of this bench has WWN",
        _nothing,
        lambda b: [b.claim(wwn="0x5000c500eeeeeeee", serial="ELSEWHERE", id="0x5000c500eeeeeeee")],
    ),
    State(
        "one drive claimed twice", "it is the same device as", _nothing, lambda b: [b.claim(), b.claim(id="again")]
    ),
    State("two drives with one WWN", "2 devices of this bench answer to that name", _twins, _twins_claim),
    State("system disk claimed", "it is a system disk: it carries /", _system_disk, _system_claim),
]

UNTRIED = [*SERVED, *MOUNTS, *STACKS, *FORMATS]
"""States that no bench has made yet: whether they can be made, and in which words they are refused, is not known."""
