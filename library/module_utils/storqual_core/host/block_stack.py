# SPDX-License-Identifier: Apache-2.0
"""What lies under and on top of a block device, by device number: partitions, dm, md, multipath, loop, sg, bsg, nvme.

Names here are kernel names (`sda1`, `dm-0`); path text decides nothing, because the same disk has many paths.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence

from ..kit.machine import Machine, Node, block_node, visible
from .sysfs import is_virtual

_CLASS = "/sys/class/block"
_PATH = re.compile(r"^(nvme\d+)c\d+(n\d+)$")
_MAPPED = {"LVM": "LVM volume", "mpath": "multipath device", "CRYPT": "encrypted volume", "DMRAID": "dmraid volume"}


@dataclass(frozen=True)
class ResolvedPath:
    """Where a path leads: its kind, the block devices it reaches, the physical disks under them, or why not."""

    kind: str
    names: tuple[str, ...]
    disks: tuple[str, ...]
    problem: str = ""


def is_partition(machine: Machine, name: str) -> bool:
    return machine.exists(f"{_CLASS}/{name}/partition")


def whole_disk(machine: Machine, name: str) -> str:
    """The disk that a partition is part of; the device itself when it is none."""
    if not is_partition(machine, name):
        return name
    # the link's text is the place in the device tree: .../block/sda/sda1
    return machine.link(f"{_CLASS}/{name}").rsplit("/", 2)[-2]


def partitions(machine: Machine, name: str) -> list[str]:
    place = f"{_CLASS}/{name}"
    return [
        entry
        for entry in machine.names(place)
        if entry.startswith(name) and machine.exists(f"{place}/{entry}/partition")
    ]


def loop_source(machine: Machine, name: str) -> Node | None:
    """What a loop device reads and writes, None when it is free or unknown.

    The kernel is asked: the path in sysfs may be of another namespace, removed, or another node's by now.
    """
    path = machine.text(f"{_CLASS}/{name}/loop/backing_file")
    return (machine.loop_source(block_node(name)) or machine.node(path)) if path else None


def backing(machine: Machine, name: str) -> str:
    """The block device that a loop device reads: the one it was given, or the one its file's file system is on."""
    node = loop_source(machine, name)
    return machine.name_of(node) if node is not None and node.kind in ("block", "file") else ""


def _loops_on(machine: Machine, name: str) -> list[str]:
    return [
        loop for loop in machine.names("/sys/block") if loop.startswith("loop") and backing(machine, loop) == name
    ]


def _down(machine: Machine, name: str) -> list[str]:
    if is_partition(machine, name):
        return [whole_disk(machine, name)]
    under = machine.names(f"{_CLASS}/{name}/slaves")
    loop = backing(machine, name)
    return [*under, loop] if loop else under


def _up(machine: Machine, name: str) -> list[str]:
    return [*partitions(machine, name), *machine.names(f"{_CLASS}/{name}/holders"), *_loops_on(machine, name)]


def _closure(name: str, step: Callable[[str], Iterable[str]]) -> list[str]:
    """Everything reached from `name`, nearest first, itself left out; a ring ends where it closes."""
    devices: list[str] = []
    waiting = list(step(name))
    while waiting:
        nearest = waiting.pop(0)
        if nearest not in devices and nearest != name:
            devices.append(nearest)
            waiting.extend(step(nearest))
    return devices


def below(machine: Machine, name: str) -> list[str]:
    """Every device that `name` is made of, nearest first."""
    return _closure(name, lambda device: _down(machine, device))


def above(machine: Machine, name: str) -> list[str]:
    """Every device that is made of `name` or of a part of it, nearest first."""
    return _closure(name, lambda device: _up(machine, device))


def physical(machine: Machine, name: str) -> list[str]:
    everything = [name, *below(machine, name)]
    return sorted(
        device for device in everything if not is_partition(machine, device) and not is_virtual(machine, device)
    )


def describe(machine: Machine, name: str) -> str:
    """A device in words: `LVM volume vg0-data (dm-0)`, `md array md127 (raid1)`, `partition sda1`."""
    place = f"{_CLASS}/{name}"
    if machine.exists(f"{place}/dm"):
        uuid, title = machine.text(f"{place}/dm/uuid"), visible(machine.text(f"{place}/dm/name"))
        kind = _MAPPED.get(uuid.split("-", 1)[0], "device-mapper volume")
        return f"{kind} {title} ({name})"
    if machine.exists(f"{place}/md"):
        return f"md array {name} ({machine.text(f'{place}/md/level') or 'inactive'})"
    if machine.exists(f"{place}/loop"):
        return f"loop device {name}"
    for start, kind in (("bcache", "bcache"), ("drbd", "DRBD")):
        if name.startswith(start):
            return f"{kind} device {name}"
    return f"partition {name}" if is_partition(machine, name) else name


def is_multipath(machine: Machine, name: str) -> bool:
    return machine.text(f"{_CLASS}/{name}/dm/uuid").startswith("mpath-")


def resolve(machine: Machine, path: str) -> ResolvedPath:
    """The physical disks that writing to `path` would change, whatever the path is made of.

    A path that leads nowhere, or to something whose disks cannot be told, has a problem and no disks: it is refused.
    """
    node = machine.node(path)
    if node is None:
        return ResolvedPath("nothing", (), (), f"{visible(path)} leads to nothing")
    if node.kind == "block":
        return _resolved_path(machine, "block", [machine.name_of(node)], path)
    if node.kind == "char":
        return _resolved_path(machine, "char", _behind_char(machine, node), path)
    if node.kind == "file":
        return _resolved_path(machine, "file", [machine.name_of(node)], path)
    return ResolvedPath(node.kind, (), (), f"{visible(path)} is neither a device nor a file")


def _resolved_path(machine: Machine, kind: str, names: list[str], path: str) -> ResolvedPath:
    known = [name for name in names if name]
    disks = sorted({disk for name in known for disk in physical(machine, name)})
    problem = "" if disks else f"no physical drive can be found behind {visible(path)}"
    return ResolvedPath(kind, tuple(known), tuple(disks), problem)


def _behind_char(machine: Machine, node: Node) -> list[str]:
    place = machine.real(f"/sys/dev/char/{node.number}")
    if not place:
        return []
    folder, name = place.rsplit("/", 1)
    if name.startswith("ng"):
        # the generic node of a namespace lies beside its block device and has its numbers
        namespace = "nvme" + name[2:]
        return [namespace] if machine.exists(f"{_CLASS}/{namespace}") else []
    if name.startswith("nvme"):
        # with native multipath a controller has hidden paths, and the drive is what they are the paths of
        spaces = [_PATH.sub(r"\1\2", entry) for entry in machine.names(place)]
        return [space for space in spaces if machine.exists(f"{_CLASS}/{space}")]
    if folder.rsplit("/", 1)[-1] in ("scsi_generic", "bsg"):
        return machine.names(f"{folder.rsplit('/', 1)[0]}/block")
    return []


def node_of(machine: Machine, name: str) -> str:
    """The device node of a kernel name when it is there and is that device, else nothing."""
    path = block_node(name)
    node = machine.node(path)
    return path if node is not None and node.kind == "block" and machine.name_of(node) == name else ""


_CONTROLLER = re.compile(r"^nvme\d+$")


@dataclass(frozen=True)
class DriveTarget:
    """A drive that was found: its id in the inventory, its kernel name (`sda`), and the node its tool opens.

    `paths` are the disks that are paths to it, where it has several; then `node` is one of them or over them.
    """

    id: str
    node: str
    device: str
    paths: tuple[str, ...] = ()

    @property
    def disks(self) -> tuple[str, ...]:
        """The disks that have what the kernel keeps for each path."""
        return self.paths or (self.node,)

    @property
    def nvme(self) -> bool:
        """Whether nvme-cli is its tool, not sg3_utils."""
        return self.node.startswith("nvme")


def target_of(drive: str, node: str, sysfs: str = "/sys", paths: Sequence[str] = ()) -> DriveTarget:
    """The drive `drive` found at the block device `node` (`sda` or `/dev/sda`), with the node its tool opens.

    Commands of a SCSI drive go to its sg node: closing a block device that was open for writing makes udev look at
    the drive, in the middle of what follows. An NVMe feature belongs to the controller.
    """
    name = Path(node).name
    device = (Path(sysfs) / "block" / (paths[0] if paths else name) / "device").resolve()
    if name.startswith("nvme"):
        # with multipath the namespace hangs on a subsystem, which lists its controllers
        own = [device.name] if _CONTROLLER.match(device.name) else []
        controllers = own or sorted(entry.name for entry in device.glob("nvme*") if _CONTROLLER.match(entry.name))
        return DriveTarget(drive, name, f"/dev/{controllers[0] if controllers else name}")
    generic = sorted((device / "scsi_generic").glob("sg*"))
    return DriveTarget(drive, name, f"/dev/{generic[0].name if generic else name}", tuple(paths))


def read_volumes(machine: Machine, ids: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every md array and device-mapper device; `ids` names the drives under it. Sizes in bytes."""
    volumes = []
    for name in machine.names("/sys/block"):
        place = f"/sys/block/{name}"
        if machine.exists(f"{place}/md"):
            facts = _array(machine, f"{place}/md")
        elif machine.exists(f"{place}/dm"):
            facts = _mapped(machine, f"{place}/dm")
        else:
            continue
        facts.update(
            name=name,
            node=block_node(name),
            size=(machine.number(f"{place}/size") or 0) * 512,
            members=[ids.get(disk, disk) for disk in physical(machine, name)],
        )
        volumes.append(facts)
    return volumes


def _array(machine: Machine, place: str) -> dict[str, Any]:
    return {
        "kind": "md",
        "title": "",
        "uuid": machine.text(f"{place}/uuid"),
        "level": machine.text(f"{place}/level"),
        "state": machine.text(f"{place}/array_state"),
        "chunk": machine.number(f"{place}/chunk_size"),
        "degraded": machine.number(f"{place}/degraded"),
        "action": machine.text(f"{place}/sync_action"),
        "metadata": machine.text(f"{place}/metadata_version"),
    }


def _mapped(machine: Machine, place: str) -> dict[str, Any]:
    uuid = machine.text(f"{place}/uuid")
    kinds = {"LVM": "lvm", "mpath": "multipath", "CRYPT": "crypt", "DMRAID": "dmraid"}
    return {
        "kind": kinds.get(uuid.split("-", 1)[0], "device-mapper"),
        "title": machine.text(f"{place}/name"),
        "uuid": uuid,
        "state": "suspended" if machine.text(f"{place}/suspended") == "1" else "active",
    }


def read_enclosures(machine: Machine) -> list[dict[str, Any]]:
    """Enclosures with a services processor (SES): what each says it is, and which slots hold a device."""
    enclosures = []
    for name in machine.names("/sys/class/enclosure"):
        place = f"/sys/class/enclosure/{name}"
        slots = [slot for slot in machine.names(place) if machine.exists(f"{place}/{slot}/slot")]
        enclosures.append(
            {
                "hctl": name,
                "id": machine.text(f"{place}/id"),
                "vendor": machine.text(f"{place}/device/vendor"),
                "model": machine.text(f"{place}/device/model"),
                "revision": machine.text(f"{place}/device/rev"),
                "slots": {
                    machine.text(f"{place}/{slot}/slot"): machine.target(f"{place}/{slot}/device") for slot in slots
                },
            }
        )
    return enclosures
