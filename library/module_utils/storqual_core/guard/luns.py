# SPDX-License-Identifier: Apache-2.0
"""What a LUN or namespace of a fabric is asked before it may be touched, because other hosts can reach it too.

Who is registered with it and who holds it; whether it still has the names and the size that the kernel has; whether
its paths lead to one LUN. A disk that no fabric is in front of costs nothing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator, Sequence, Tuple

from ..host.fabric import controllers_of_fabric, fabric_of, read_drive_paths
from ..host.identity import designators, wwn_of_page
from ..host.sysfs import SysfsDrive
from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.machine import Machine, visible

if TYPE_CHECKING:
    from ..tools.sg_persist import Registrant, Reservations

Objection = Tuple[str, str]
"""Reason and remedy of a refusal."""

_OTHER_HOST = (
    "find out which host that is; if none uses it, clear the registrations there or on the array "
    "(sg_persist --out --clear), or take the claim out of the inventory"
)
_ASKABLE = ("", "running", "live")


def objections(machine: Machine, paths: Sequence[SysfsDrive], runner: Runner) -> tuple[Objection, ...]:
    """Why a drive, with all the disks that are paths to it, may not be touched. Raises nothing."""
    reached = [(path, fabric) for path in paths for fabric in [fabric_of(machine, path.name)] if fabric]
    # one that does not run would keep the command waiting; that it does not run is told anyway
    able = [(path, fabric) for path, fabric in reached if path.state in _ASKABLE]
    alike = tuple(_not_one(machine, paths)) if len(paths) > 1 else ()
    if not able:
        return alike
    scsi = [path for path, fabric in able if fabric != "nvme"]
    return (*_others(machine, *able[0], runner), *_renamed(machine, scsi, runner), *_sizes(scsi, runner), *alike)


def _others(machine: Machine, drive: SysfsDrive, fabric: str, runner: Runner) -> Iterator[Objection]:
    from ..tools import nvme, sg_persist  # noqa: PLC0415 - compiled only on a bench that has a fabric

    try:
        if fabric == "nvme":
            reservations = nvme.read_reservations(runner, drive.node)
        else:
            reservations = sg_persist.read_reservations(runner, drive.sg or drive.node)
    except ToolError as problem:
        yield f"it is not known whether another host uses it: {visible(str(problem))}", "repair that first"
        return
    own = _own_names(machine, drive, fabric)
    foreign = [host for host in reservations.registrants if host.initiator not in own]
    holders = [host for host in foreign if host.holder]
    if reservations.conflict or holders or (reservations.kind and foreign and not _held_here(reservations, own)):
        kind = f"{reservations.kind}, " if reservations.kind else ""
        words = f" ({visible(kind + _named(holders or foreign))})" if foreign else ""
        yield f"another host holds a reservation of it{words}", _OTHER_HOST
    elif foreign:
        yield f"other hosts are registered with it ({visible(_named(foreign))})", _OTHER_HOST


def _held_here(reservations: Reservations, own: set[str]) -> bool:
    return any(host.holder and host.initiator in own for host in reservations.registrants)


def _named(registrants: Sequence[Registrant]) -> str:
    return ", ".join(
        f"key {each.key} of {each.initiator or 'a host that the target does not name'}" for each in registrants
    )


def _own_names(machine: Machine, drive: SysfsDrive, fabric: str) -> set[str]:
    """What a target calls this bench: its WWPNs, its iSCSI names, its NVMe host identifiers."""
    if fabric == "nvme":
        ids = (machine.text(f"/sys/class/nvme/{name}/hostid") for name in controllers_of_fabric(machine, drive.name))
        return {each.replace("-", "").lower() for each in ids if each}
    hosts = machine.names("/sys/class/fc_host")
    sessions = machine.names("/sys/class/iscsi_session")
    texts = {machine.text(f"/sys/class/fc_host/{host}/port_name") for host in hosts}
    texts |= {machine.text(f"/sys/class/iscsi_session/{session}/initiatorname") for session in sessions}
    return texts - {""}


def _names(page: bytes) -> set[tuple[int, int, bytes]]:
    """What a LUN is called in VPD page 83h, without its ports."""
    return {each for each in designators(page) if each[0] == 0}


def _renamed(machine: Machine, paths: Sequence[SysfsDrive], runner: Runner) -> Iterator[Objection]:
    """A path that the target leads to another LUN by now: the kernel keeps the names that it read first."""
    from ..tools import sg3  # noqa: PLC0415 - as above

    for path in paths:
        kept = machine.read(f"/sys/block/{path.name}/device/vpd_pg83")
        try:
            page = sg3.read_vpd_page(runner, path.sg or path.node, 0x83) if kept else b""
        except ToolError as problem:
            yield f"{path.name}: it cannot be asked who it is: {visible(str(problem))}", "repair that first"
            continue
        if kept and (wwn_of_page(page), _names(page)) != (wwn_of_page(kept), _names(kept)):
            name = visible(wwn_of_page(page)) or "nothing"
            yield (
                f"{path.name}: it leads to another LUN now, which calls itself {name} in VPD page 83h",
                f"find out what the target maps there, then `echo 1 > /sys/block/{path.name}/device/rescan`",
            )


def _sizes(paths: Sequence[SysfsDrive], runner: Runner) -> Iterator[Objection]:
    """A LUN that was resized: the kernel has the old size until somebody has it look again."""
    from ..tools import sg3  # noqa: PLC0415 - as above

    unread: list[str] = []
    for path in paths:
        try:
            size = sg3.read_capacity(runner, path.sg or path.node).size
        except ToolError as problem:
            unread.append(str(problem))
            continue
        if size != path.identity.size:
            yield (
                f"{path.name}: it says that it has {size} bytes, the kernel has {path.identity.size}",
                f"find out who resized it, then `echo 1 > /sys/block/{path.name}/device/rescan`",
            )
    if paths and len(unread) == len(paths):
        # a path in standby need not tell; the others do
        yield f"its size cannot be asked: {visible(unread[0])}", "repair that first"


def _not_one(machine: Machine, paths: Sequence[SysfsDrive]) -> Iterator[Objection]:
    """Disks that have one WWN and are not one LUN: the array gave a name twice, or copied it with the data."""
    remedy = "find out which of them is a copy, and unmap it from this bench"
    known: dict[tuple[str, str], tuple[str, str]] = {}
    for path in paths:
        for each in read_drive_paths(machine, path.name, path.hctl) if path.transport == "scsi" else ():
            place, lun = (each["fabric"], each["through"]), each["lun"]
            other, other_lun = known.setdefault(place, (path.name, lun))
            if other_lun != lun:
                reason = f"LUN {other_lun} ({other}) and LUN {lun} ({path.name}) of one target have the same name"
                yield visible(reason), remedy
    names = {path.name: _names(machine.read(f"/sys/block/{path.name}/device/vpd_pg83") or b"") for path in paths}
    first = paths[0].name
    for name, identifiers in names.items():
        if identifiers != names[first]:
            reason = f"{first} and {name} do not lead to one LUN: they tell different names in VPD page 83h"
            yield reason, remedy
