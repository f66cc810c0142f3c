# SPDX-License-Identifier: Apache-2.0
"""Loss of one of several paths to a drive: the path itself, what its target says of it, or the link of its target.

How many paths the kernel uses is what its multipath map says; for NVMe, how many live controllers give access.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Callable, Mapping

from ..host.block_stack import is_multipath
from ..host.fabric import read_drive_paths
from ..kit.errors import ToolError
from ..kit.machine import write_attribute
from ..kit.waiting import await_seen
from ..tools.dmsetup import read_paths
from .drive_faults import Aim, Tell
from .fabric_faults import served_luns, target_address, target_link

_UNAVAILABLE = "3"
"""The ALUA state of a target port that answers to no I/O, as the kernel's target numbers it (SPC-4, 5.11.2)."""
_INACCESSIBLE, _ACCESSIBLE = "inaccessible", ("", "optimized", "non-optimized")
"""The same of NVMe (ANA), and the states in which a controller takes I/O; `` where the target knows none."""
_NVMET_PORTS = "/sys/kernel/config/nvmet/ports"


def _map_of(aim: Aim) -> str:
    """The multipath device over the aimed path. Raises ToolError without one."""
    holders = aim.machine.names(f"/sys/class/block/{aim.drive.name}/holders")
    for name in holders:
        if is_multipath(aim.machine, name):
            return name
    raise ToolError(f"{aim.drive.name} is under no multipath device")


def _counter(aim: Aim) -> tuple[str, Callable[[], int]]:
    """What brings the paths of the drive together, and how many of them are in use. Raises ToolError."""
    machine, name = aim.machine, aim.drive.name
    if aim.drive.transport == "nvme":

        def live() -> int:
            paths = read_drive_paths(machine, name)
            return sum(path["state"] == "live" and path["access"] in _ACCESSIBLE for path in paths)

        return name, live
    over = _map_of(aim)
    number = machine.text(f"/sys/class/block/{over}/dev")
    return over, lambda: sum(read_paths(aim.runner, number).values())


def _lose(aim: Aim, tell: Tell, take: Callable[[], object], give_back: Callable[[], object], lost: int = 1) -> None:
    """Have `lost` paths go, stay away for a while and be used again; the kernel's own count says so.

    Raises ToolError, before anything is done where no other path would be left.
    """
    over, active = _counter(aim)
    before, name = active(), aim.drive.name
    if before <= lost:
        raise ToolError(f"{before} paths of {over} are active: without {name} there would be none")
    try:
        take()
        await_seen(lambda: active() == before - lost, aim.limit_s, f"the kernel did not let go of path {name}")
        tell("path_lost", f"{before} paths of {over} were active, {before - lost} without {name}")
        time.sleep(aim.away_s)
    finally:
        give_back()
    await_seen(lambda: active() == before, aim.limit_s, f"path {name} was not used again")
    tell("path_back", f"{before} paths of {over} are active again")


def _offline(aim: Aim, tell: Tell) -> None:
    state = aim.machine.path(f"/sys/block/{aim.drive.name}/device/state")
    _lose(aim, tell, lambda: write_attribute(state, "offline"), lambda: write_attribute(state, "running"))


def _unavailable(aim: Aim, tell: Tell) -> None:
    """The target port of the path says of this LUN that it answers to no I/O: the other ports have to serve it."""
    target = _target_of(aim, aim.drive.name)
    paths = aim.machine.names(f"/sys/class/block/{_map_of(aim)}/slaves")
    through = [path for path in paths if _target_of(aim, path) == target]
    _deny(aim, tell, target, _alua_state(aim, target), _UNAVAILABLE, len(through))


def _inaccessible(aim: Aim, tell: Tell) -> None:
    """The same of a namespace: a port of its target gives no access to its group of namespaces."""
    address, root = target_address(aim), Path(aim.machine.path(_NVMET_PORTS))
    addresses = {file.parent: file.read_text(encoding="ascii").strip() for file in root.glob("*/addr_traddr")}
    ports = [port for port, traddr in addresses.items() if traddr == address]
    if len(ports) != 1:
        raise ToolError(f"{address} is no port of a target in this kernel")
    targets = [path["target"] for path in read_drive_paths(aim.machine, aim.drive.name)]
    through = [target for target in targets if target.startswith(f"{address}:")]
    _deny(aim, tell, address, ports[0] / "ana_groups/1/ana_state", _INACCESSIBLE, len(through))


def _deny(aim: Aim, tell: Tell, target: str, state: Path, denied: str, lost: int) -> None:
    before = state.read_text(encoding="ascii").strip()

    def take() -> None:
        write_attribute(state, denied)
        if state.read_text(encoding="ascii").strip() == denied:
            tell("unavailable", f"{target} says that {aim.drive.id} is unavailable through it")

    _lose(aim, tell, take, lambda: write_attribute(state, before), lost)


def _target_of(aim: Aim, name: str) -> str:
    """The target port of a path. Raises ToolError where the path leads through no fabric."""
    paths = read_drive_paths(aim.machine, name)
    if not paths:
        raise ToolError(f"{name} is no path through a fabric")
    return str(paths[0]["target"])


def _alua_state(aim: Aim, target: str) -> Path:
    """Where a target of this kernel has the state of its port for the drive. Raises ToolError without any."""
    for lun, store in served_luns(aim).items():
        port = lun.parents[2].name
        if target in (port, f"0x{port.replace(':', '')}"):
            group = (lun / "alua_tg_pt_gp").read_text(encoding="latin-1").partition("\n")[0]
            return store / "alua" / group.rpartition(":")[2].strip() / "alua_access_state"
    raise ToolError(f"{target} does not serve {aim.drive.id} in this kernel")


def _link_down(aim: Aim, tell: Tell) -> None:
    """The link of the target's port goes down and comes up; sessions through it wait, end and begin anew."""
    turn = target_link(aim, tell)
    _lose(aim, tell, lambda: turn("down"), lambda: turn("up"))


PATH_ACTS: Mapping[str, Callable[[Aim, Tell], None]] = {
    "path_offline": _offline,
    "alua_unavailable": _unavailable,
    "ana_inaccessible": _inaccessible,
    "target_link_down": _link_down,
}
