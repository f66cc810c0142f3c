# SPDX-License-Identifier: Apache-2.0
"""What a virtual bench is made of, read from the host variables of its inventory entry; all problems at once."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from storqual.virtual_bench.debug_host import DEVICE as DEBUG
from storqual.virtual_bench.debug_host import DebugHost, debug_aliases, declared_debug_host
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.quantities import parse_duration, parse_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_ALIAS = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,30}")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_PCI = re.compile(r"(?:0000:)?00:([0-9a-f]{2})\.([0-7])")
_WWN = re.compile(r"0x[0-9a-f]{16}")
_EUI = re.compile(r"eui\.[0-9a-f]{16}")
_SCSI_SERIAL, _NVME_SERIAL = 36, 20
_FIRST_SLOT, _LAST_SLOT = 0x05, 0x1F
_FUNCTIONS = 8
_LONGEST_SERVICE_S = 10.0
_CLOCKS = ("host", "instructions")


@dataclass(frozen=True)
class DeviceKind:
    """One adapter that QEMU emulates: how many drives fit, and whether they are SCSI disks or NVMe namespaces."""

    drives: int
    namespaces: bool = False


DEVICES = {
    # ids 0 to 6: a wide bus has sixteen ids, QEMU's model has eight, and 7 is the adapter itself
    "lsi53c895a": DeviceKind(7),
    "mptsas1068": DeviceKind(8),
    "megasas": DeviceKind(16),
    "megasas-gen2": DeviceKind(16),
    "dc390": DeviceKind(7),
    "am53c974": DeviceKind(7),
    "virtio-scsi-pci": DeviceKind(64),
    # its driver can be told how many commands it holds
    "pvscsi": DeviceKind(16),
    # a namespace has no serial of its own: it is its controller's
    "nvme": DeviceKind(16, namespaces=True),
}


@dataclass(frozen=True)
class VirtualDrive:
    """One emulated drive. `identity` is its name everywhere; `size` and `bandwidth` are in bytes and bytes/s.

    With a `service_time` (seconds) every read, write and flush takes that long, and nothing that is written is kept.

    `device` names it inside QEMU; `channel` is the PCI function of its adapter that it hangs on, `target` its number
    there. A limit of 0 is no limit. Each of several `paths` to a drive is a device of its own on its adapter: `first`
    names the one whose file they share, empty in that one.
    """

    device: str
    identity: str
    size: int
    wwn: str = ""
    serial: str = ""
    vendor: str = ""
    model: str = ""
    revision: str = ""
    rotation_rate: int = 0
    iops: int = 0
    bandwidth: int = 0
    service_time: float = 0.0
    channel: int = 0
    target: int = 0
    paths: int = 1
    first: str = ""


@dataclass(frozen=True)
class VirtualAdapter:
    """One emulated adapter: the QEMU device, its slot and function on the only PCI bus, and its drives in order.

    One of several channels is so many PCI functions in one slot, each a device of its own.
    """

    alias: str
    device: str
    slot: int
    function: int
    drives: tuple[VirtualDrive, ...]
    channels: int = 1


@dataclass(frozen=True)
class BenchDescription:
    """One virtual bench; `memory` in bytes. `counts_instructions`: its clock is the instructions that it executed.

    `debug` is its adapter without hardware, of which QEMU knows nothing, where it has one.
    """

    name: str
    cpus: int
    memory: int
    adapters: tuple[VirtualAdapter, ...]
    counts_instructions: bool = False
    debug: DebugHost | None = None

    @property
    def drives(self) -> tuple[VirtualDrive, ...]:
        """All drives that QEMU emulates, in inventory order; one of several paths once."""
        return tuple(drive for adapter in self.adapters for drive in adapter.drives if not drive.first)

    @property
    def devices(self) -> int:
        """How many drives the guest sees: one of several paths as often as it has paths."""
        return sum(len(adapter.drives) for adapter in self.adapters) + (self.debug is not None)

    def drive(self, identity: str) -> VirtualDrive:
        """The drive of that identity. Raises BadInputError when this bench has none."""
        for drive in self.drives:
            if identity.lower() in {drive.identity, drive.serial.lower() or None}:
                return drive
        raise BadInputError([f"{self.name} has no drive {identity!r}"])

    def plain(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return asdict(self)


def from_plain(document: Mapping[str, Any]) -> BenchDescription:
    """The description that `plain` gave."""
    adapters = tuple(
        VirtualAdapter(**{**adapter, "drives": tuple(VirtualDrive(**drive) for drive in adapter["drives"])})
        for adapter in document["adapters"]
    )
    debug = document.get("debug")
    return BenchDescription(**{**document, "adapters": adapters, "debug": DebugHost(**debug) if debug else None})


class _Reader:
    """Collect every problem of one inventory entry instead of stopping at the first."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.problems: list[str] = []

    def complain(self, where: str, problem: str) -> None:
        self.problems.append(f"{self.host}: {where}: {problem}")

    def mapping(self, value: object, where: str) -> Mapping[str, Any]:
        if isinstance(value, dict):
            return value
        self.complain(where, f"expected a mapping, found {value!r}")
        return {}

    def size(self, value: object, where: str) -> int:
        try:
            size = parse_size(value if isinstance(value, int) else str(value))
        except ValueError as problem:
            self.complain(where, str(problem))
            return 0
        if size < 0:
            self.complain(where, f"{value!r} is negative")
        return size

    def seconds(self, value: object, where: str) -> float:
        try:
            seconds = parse_duration(value if isinstance(value, (int, float)) else str(value))
        except ValueError as problem:
            self.complain(where, str(problem))
            return 0.0
        if not 0 <= seconds <= _LONGEST_SERVICE_S:
            self.complain(where, f"expected 0 to {_LONGEST_SERVICE_S:g} s, found {value!r}")
        return seconds

    def number(self, value: object, where: str, least: int = 0) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        self.complain(where, f"expected a whole number of {least} or more, found {value!r}")
        return least

    def text(self, value: object, where: str, limit: int) -> str:
        text = "" if value is None else str(value)
        if len(text.encode("utf-8", "surrogateescape")) > limit:
            self.complain(where, f"{text!r} is longer than the {limit} bytes that the device has room for")
        elif any(not 0x20 <= ord(letter) < 0x7F for letter in text):
            self.complain(where, f"{text!r} holds characters that no device reports (printable ASCII only)")
        return text


def _drive(read: _Reader, kind: DeviceKind, alias: str, index: int, entry: Mapping[str, Any]) -> VirtualDrive:
    where = f"storqual_adapters.{alias}.drives[{index}]"
    wwn = str(entry.get("wwn") or "").lower()
    if wwn and not (_EUI if kind.namespaces else _WWN).fullmatch(wwn):
        wanted = "eui. and 16 hex digits" if kind.namespaces else "0x and 16 hex digits"
        read.complain(f"{where}.wwn", f"expected {wanted}, found {wwn!r}")
    serial = read.text(entry.get("serial"), f"{where}.serial", _NVME_SERIAL if kind.namespaces else _SCSI_SERIAL)
    if not wwn and not serial:
        read.complain(where, "needs a WWN or a serial number")
    size = read.size(entry.get("size", 0), f"{where}.size")
    if size <= 0 or size % 4096:
        read.complain(f"{where}.size", "expected a positive multiple of 4096 bytes")
    limits = read.mapping(entry.get("virtual") or {}, f"{where}.virtual")
    for key in sorted(set(limits) - {"iops", "bandwidth", "service_time"}):
        read.complain(f"{where}.virtual.{key}", "unknown; expected iops, bandwidth or service_time")
    if not isinstance(entry.get("paths") or [], list):
        read.complain(f"{where}.paths", f"expected a list of other adapters, found {entry['paths']!r}")
    return VirtualDrive(
        device=f"{alias}-{index}",
        identity=wwn or serial.lower(),
        size=size,
        wwn=wwn,
        serial=serial,
        vendor=read.text(entry.get("vendor"), f"{where}.vendor", 8),
        model=read.text(entry.get("model"), f"{where}.model", 40 if kind.namespaces else 16),
        revision=read.text(entry.get("revision"), f"{where}.revision", 8 if kind.namespaces else 4),
        rotation_rate=read.number(entry.get("rotation_rate", 0), f"{where}.rotation_rate"),
        iops=read.number(limits.get("iops", 0), f"{where}.virtual.iops"),
        bandwidth=read.size(limits.get("bandwidth", 0), f"{where}.virtual.bandwidth"),
        service_time=read.seconds(limits.get("service_time", 0), f"{where}.virtual.service_time"),
        paths=1 + len(_others(entry)),
    )


def _others(entry: object) -> Sequence[object]:
    """The other adapters that a drive is reached through as well."""
    listed = entry.get("paths") if isinstance(entry, dict) else None
    return listed if isinstance(listed, list) else ()


def _adapter(
    read: _Reader, alias: str, entry: Mapping[str, Any], virtual: Mapping[str, Any]
) -> VirtualAdapter | None:
    where = f"storqual_adapters.{alias}"
    if not _ALIAS.fullmatch(alias):
        read.complain(where, "an alias is a letter and up to 30 letters, digits, - and _")
    device = str(virtual.get("device", ""))
    kind = DEVICES.get(device)
    if kind is None:
        known = ", ".join([*DEVICES, DEBUG])
        read.complain(f"storqual_virtual.adapters.{alias}.device", f"{device!r} is none of {known}")
        return None
    place = _PCI.fullmatch(str(entry.get("pci", "")).lower())
    if place is None or not _FIRST_SLOT <= int(place[1], 16) <= _LAST_SLOT:
        read.complain(f"{where}.pci", f"expected 0000:00:05.0 to 0000:00:1f.7, found {entry.get('pci')!r}")
        return None
    drives = entry.get("drives") or []
    if not isinstance(drives, list):
        read.complain(f"{where}.drives", "expected a list")
        drives = []
    channels = read.number(virtual.get("channels", 1), f"storqual_virtual.adapters.{alias}.channels", 1)
    if channels > 1 and (kind.namespaces or int(place[2]) or channels > _FUNCTIONS):
        sentence = f"{device} has one channel; only SCSI adapters at function 0 have up to {_FUNCTIONS}"
        read.complain(f"storqual_virtual.adapters.{alias}.channels", sentence)
        channels = 1
    built = tuple(
        _drive(read, kind, alias, index, read.mapping(drive, f"{where}.drives[{index}]"))
        for index, drive in enumerate(drives)
    )
    wired = _wired(read, where, built, drives, channels)
    return VirtualAdapter(
        alias=alias,
        device=device,
        slot=int(place[1], 16),
        function=int(place[2]),
        drives=wired,
        channels=channels,
    )


def _refuse_beyond_room(read: _Reader, adapter: VirtualAdapter) -> None:
    """More drives than a channel of the adapter has room for."""
    most = DEVICES[adapter.device].drives
    for channel in range(adapter.channels):
        count = sum(drive.channel == channel for drive in adapter.drives)
        if count > most:
            on = f" on channel {channel}" if adapter.channels > 1 else ""
            where = f"storqual_adapters.{adapter.alias}.drives"
            read.complain(where, f"{adapter.device} has room for {most} drives{on}, found {count}")


def _refuse_unlike_namespaces(read: _Reader, adapter: VirtualAdapter) -> None:
    """Namespaces of one controller have its serial, and tell themselves apart by WWN."""
    if DEVICES[adapter.device].namespaces and len(adapter.drives) > 1:
        where = f"storqual_adapters.{adapter.alias}.drives"
        if len({drive.serial for drive in adapter.drives}) > 1:
            read.complain(where, "namespaces of one controller have one serial, that of the controller")
        if not all(drive.wwn for drive in adapter.drives):
            read.complain(where, "each of several namespaces needs a WWN: they share the serial of their controller")


def _with_paths(
    read: _Reader, built: Sequence[VirtualAdapter], entries: Mapping[str, Any]
) -> tuple[VirtualAdapter, ...]:
    """The adapters with the further paths to drives that stand on others, each behind its own drives."""
    found = {adapter.alias: adapter for adapter in built}
    for adapter in built:
        for index, drive in enumerate(adapter.drives):
            where = f"storqual_adapters.{adapter.alias}.drives[{index}].paths"
            if drive.paths > 1 and (drive.iops or drive.bandwidth or drive.service_time or not drive.wwn):
                read.complain(
                    where, "a drive of several paths has a WWN, and no `virtual` (a limit would be of one path)"
                )
            for alias in _others(entries[adapter.alias]["drives"][index]):
                other = found.get(str(alias))
                if other in (None, adapter) or any(DEVICES[one.device].namespaces for one in (adapter, other)):
                    read.complain(where, f"expected other adapters of this bench with SCSI drives, found {alias!r}")
                    continue
                target = sum(one.channel == 0 for one in other.drives)
                path = replace(
                    drive, device=f"{alias}-{len(other.drives)}", channel=0, target=target, first=drive.device
                )
                found[other.alias] = replace(other, drives=(*other.drives, path))
    return tuple(found.values())


def _wired(
    read: _Reader, where: str, built: Sequence[VirtualDrive], drives: Sequence[object], channels: int
) -> tuple[VirtualDrive, ...]:
    """Each drive on the channel that its port names, with the next number there; with one channel ports are names."""
    taken: Counter[int] = Counter()
    found = []
    for index, (drive, entry) in enumerate(zip(built, drives, strict=True)):
        port = entry.get("port", 0) if isinstance(entry, dict) and channels > 1 else 0
        if not isinstance(port, int) or not 0 <= port < channels:
            read.complain(f"{where}.drives[{index}].port", f"expected 0 to {channels - 1}, found {port!r}")
            port = 0
        found.append(replace(drive, channel=port, target=taken[port]))
        taken[port] += 1
    return tuple(found)


def _serials(description: BenchDescription) -> list[str]:
    """The serials that must differ: one of each NVMe controller, one of each other drive."""
    found: list[str] = []
    for adapter in description.adapters:
        serials = [drive.serial for drive in adapter.drives if drive.serial and not drive.first]
        found += dict.fromkeys(serials) if DEVICES[adapter.device].namespaces else serials
    return found


def _counts_instructions(read: _Reader, virtual: Mapping[str, Any]) -> bool:
    """Whether time passes on the bench with the instructions of its one processor, whatever else the host does."""
    clock = virtual.get("clock", "host")
    if clock not in _CLOCKS:
        read.complain("storqual_virtual.clock", f"expected {' or '.join(_CLOCKS)}, found {clock!r}")
    elif clock == "instructions" and virtual.get("cpus", 1) != 1:
        read.complain("storqual_virtual.clock", "instructions are counted with one processor (cpus: 1) only")
    return bool(clock == "instructions")


def describe(name: str, adapters: Mapping[str, Any], virtual: Mapping[str, Any]) -> BenchDescription:
    """The bench of inventory host `name` from its `storqual_adapters` and `storqual_virtual`.

    Raises BadInputError naming everything that cannot be built.
    """
    read = _Reader(name)
    if not _HOST.fullmatch(name):
        read.complain("name", "expected letters, digits, '.', '-' and '_'")
    devices = read.mapping(virtual.get("adapters") or {}, "storqual_virtual.adapters")
    for alias in sorted(set(adapters) ^ set(devices)):
        read.complain(alias, "must be in both storqual_adapters and storqual_virtual.adapters")
    debug = debug_aliases(adapters, devices)
    built = tuple(
        adapter
        for alias, entry in adapters.items()
        if alias in devices
        and alias not in debug
        and (
            adapter := _adapter(
                read,
                alias,
                read.mapping(entry, f"storqual_adapters.{alias}"),
                read.mapping(devices[alias], f"storqual_virtual.adapters.{alias}"),
            )
        )
    )
    built = _with_paths(read, built, adapters)
    for adapter in built:
        _refuse_beyond_room(read, adapter)
        _refuse_unlike_namespaces(read, adapter)
    description = BenchDescription(
        name=name,
        cpus=read.number(virtual.get("cpus", 1), "storqual_virtual.cpus", 1),
        memory=read.size(virtual.get("memory", "1GiB"), "storqual_virtual.memory"),
        counts_instructions=_counts_instructions(read, virtual),
        # the order of a mapping means nothing, and tools that pass an inventory on may sort it
        adapters=tuple(sorted(built, key=lambda adapter: (adapter.slot, adapter.function, adapter.alias))),
        debug=declared_debug_host(adapters, debug, read.complain),
    )
    for what, values in (
        (
            "PCI address",
            [
                f"{adapter.slot:02x}.{adapter.function + channel}"
                for adapter in built
                for channel in range(adapter.channels)
            ],
        ),
        ("WWN", [drive.wwn for drive in description.drives if drive.wwn]),
        ("serial", _serials(description)),
    ):
        for value in sorted({value for value in values if values.count(value) > 1}):
            read.complain(what, f"{value} is used {values.count(value)} times")
    if read.problems:
        raise BadInputError(read.problems)
    return description
