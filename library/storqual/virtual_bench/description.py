# SPDX-License-Identifier: Apache-2.0
"""What a virtual bench is made of, read from the host variables of its inventory entry; all problems at once."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from storqual.inputs.inventory import Adapter, Bench, Drive, DriveLimits, Emulation, Guest
from storqual.inputs.shape import shaped
from storqual.inputs.yaml_file import Document
from storqual.virtual_bench.debug_host import DEVICE as DEBUG
from storqual.virtual_bench.debug_host import DebugHost, declared_debug_host
from storqual.virtual_bench.fabrics import FABRICS, INITIATOR, TARGET, refuse_apart, refuse_unservable, routes
from storqual_core.kit.errors import BadInputError

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_PCI = re.compile(r"(?:0000:)?00:([0-9a-f]{2})\.([0-7])")
_WWN = re.compile(r"0x[0-9a-f]{16}")
_EUI = re.compile(r"eui\.[0-9a-f]{16}")
_SCSI_SERIAL, _NVME_SERIAL = 36, 20
_FIRST_SLOT, _LAST_SLOT = 0x05, 0x1F
_FUNCTIONS = 8
_LONGEST_SERVICE_S = 10.0
_TARGETS_MEMORY, _TARGETS_NAME = 512 << 20, "{:.55}-targets"


@dataclass(frozen=True)
class DeviceKind:
    """One adapter that QEMU emulates: how many drives fit, and whether they are SCSI disks or NVMe namespaces.

    `through`: writes through the cache reach its drives. `controller` is what QEMU emulates where that is not the
    adapter itself: the controller of the disks that a target serves.
    """

    drives: int
    namespaces: bool = False
    through: bool = True
    controller: str = ""


DEVICES = {
    # ids 0 to 6: a wide bus has sixteen ids, QEMU's model has eight, and 7 is the adapter itself
    "lsi53c895a": DeviceKind(7),
    "mptsas1068": DeviceKind(8),
    # the emulation takes the FUA bit, which the driver hands on, for a LUN that there is not
    "megasas": DeviceKind(16, through=False),
    "megasas-gen2": DeviceKind(16, through=False),
    "dc390": DeviceKind(7),
    "am53c974": DeviceKind(7),
    "virtio-scsi-pci": DeviceKind(64),
    # its driver can be told how many commands it holds
    "pvscsi": DeviceKind(16),
    # a namespace has no serial of its own: it is its controller's
    "nvme": DeviceKind(16, namespaces=True),
    # the QEMU device that the disks behind LUNs hang on
    **{fabric: DeviceKind(16, controller="virtio-scsi-pci") for fabric in FABRICS},
}


@dataclass(frozen=True)
class EmulatedDrive:
    """One emulated drive. `identity` is its name everywhere; `size` and `bandwidth` are in bytes and bytes/s.

    With a `service_time` (seconds) every read, write and flush takes that long, and nothing that is written is kept.

    `device` names it inside QEMU; `channel` is the PCI function of its adapter that it hangs on, `target` its number
    there. A limit of 0 is no limit. Each of several `paths` to a drive is a device of its own on its adapter: `first`
    names the one whose file they share, empty in that one. `fua`: it takes writes through its cache; `block` are the
    bytes of its logical block. `routes` are the paths of a LUN, `INITIATOR-PORT:TARGET-PORT` each.
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
    fua: bool = False
    block: int = 512
    routes: str = ""


@dataclass(frozen=True)
class EmulatedAdapter:
    """One emulated adapter: the QEMU device, its slot and function on the only PCI bus, and its drives in order.

    One of several channels is so many PCI functions in one slot, each a device of its own. `end` is that of a fabric
    which this guest has, where its targets are in a guest of their own.
    """

    alias: str
    device: str
    slot: int
    function: int
    drives: tuple[EmulatedDrive, ...]
    channels: int = 1
    end: str = ""


@dataclass(frozen=True)
class BenchDescription:
    """One virtual bench; `memory` in bytes. `counts_instructions`: its clock is the instructions that it executed.

    `debug` is its adapter without hardware, of which QEMU knows nothing, where it has one. `flavour` is the kind of
    its guest; with `netconsole` it has a second network card.
    """

    name: str
    cpus: int
    memory: int
    adapters: tuple[EmulatedAdapter, ...]
    counts_instructions: bool = False
    debug: DebugHost | None = None
    flavour: str = "deb"
    netconsole: bool = False

    @property
    def drives(self) -> tuple[EmulatedDrive, ...]:
        """All drives that QEMU emulates for this guest, in inventory order; one of several paths once."""
        adapters = [adapter for adapter in self.adapters if adapter.end != INITIATOR]
        return tuple(drive for adapter in adapters for drive in adapter.drives if not drive.first)

    @property
    def targets(self) -> "BenchDescription | None":
        """The guest with the targets of this one's initiators, where it is another."""
        apart = tuple(replace(adapter, end=TARGET) for adapter in self.adapters if adapter.end == INITIATOR)
        if not apart:
            return None
        name = _TARGETS_NAME.format(self.name)
        return replace(self, name=name, cpus=1, memory=_TARGETS_MEMORY, adapters=apart, debug=None, netconsole=False)

    @property
    def whole(self) -> "BenchDescription":
        """The bench as if one guest had all of it."""
        return replace(self, adapters=tuple(replace(adapter, end="") for adapter in self.adapters))

    @property
    def devices(self) -> int:
        """How many drives the guest sees: one of several paths as often as it has paths, a LUN with its own disk."""
        drives = [(adapter.end, drive) for adapter in self.adapters for drive in adapter.drives]
        # the kernel brings the paths of a namespace together itself
        paths = [
            1 if drive.wwn.startswith("uuid.") else len(drive.routes.split())
            for end, drive in drives
            if drive.routes and end != TARGET
        ]
        return sum(end != INITIATOR for end, _ in drives) + sum(paths) + (self.debug is not None)

    def drive(self, identity: str) -> EmulatedDrive:
        """The drive of that identity. Raises BadInputError when this bench has none."""
        for drive in self.drives:
            if identity.lower() in {drive.identity, drive.serial.lower() or None}:
                return drive
        raise BadInputError([f"{self.name} has no drive {identity!r}"])

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def from_plain(document: Mapping[str, Any]) -> BenchDescription:
    adapters = tuple(
        EmulatedAdapter(**{**adapter, "drives": tuple(EmulatedDrive(**drive) for drive in adapter["drives"])})
        for adapter in document["adapters"]
    )
    debug = document.get("debug")
    return BenchDescription(**{**document, "adapters": adapters, "debug": DebugHost(**debug) if debug else None})


class _Problems:
    """What cannot be built of one bench: everything is collected before it is refused."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.sentences: list[str] = []

    def add(self, where: str, problem: str) -> None:
        self.sentences.append(f"{self.host}: {where}: {problem}")

    def text(self, value: str | None, where: str, limit: int) -> str:
        text = value or ""
        if len(text.encode("utf-8", "surrogateescape")) > limit:
            self.add(where, f"{text!r} is longer than the {limit} bytes that the device has room for")
        elif any(not 0x20 <= ord(letter) < 0x7F for letter in text):
            self.add(where, f"{text!r} holds characters that no device reports (printable ASCII only)")
        return text


def _drive(problems: _Problems, kind: DeviceKind, alias: str, index: int, drive: Drive) -> EmulatedDrive:
    where = f"storqual_adapters.{alias}.drives[{index}]"
    wwn = drive.wwn or ""
    if wwn and not kind.controller and not (_EUI if kind.namespaces else _WWN).fullmatch(wwn):
        expected = "eui. and 16 hex digits" if kind.namespaces else "0x and 16 hex digits"
        problems.add(f"{where}.wwn", f"expected {expected}, found {wwn!r}")
    serial = problems.text(drive.serial, f"{where}.serial", _NVME_SERIAL if kind.namespaces else _SCSI_SERIAL)
    if not wwn and not serial:
        problems.add(where, "needs a WWN or a serial number")
    size = drive.size or 0
    if size <= 0 or size % 4096:
        problems.add(f"{where}.size", "expected a positive multiple of 4096 bytes")
    limits = drive.virtual or DriveLimits()
    service_time = limits.service_time or 0.0
    if service_time > _LONGEST_SERVICE_S:
        problems.add(
            f"{where}.virtual.service_time", f"expected 0 to {_LONGEST_SERVICE_S:g} s, found {service_time:g} s"
        )
    if limits.fua and not kind.through:
        problems.add(f"{where}.virtual.fua", "QEMU's emulation of this adapter fails every write through the cache")
    return EmulatedDrive(
        device=f"{alias}-{index}",
        identity=wwn or serial.lower(),
        size=size,
        wwn=wwn,
        serial=serial,
        vendor=problems.text(drive.vendor, f"{where}.vendor", 8),
        model=problems.text(drive.model, f"{where}.model", 40 if kind.namespaces else 16),
        revision=problems.text(drive.revision, f"{where}.revision", 8 if kind.namespaces else 4),
        rotation_rate=drive.rotation_rate or 0,
        iops=limits.iops or 0,
        bandwidth=limits.bandwidth or 0,
        service_time=service_time,
        paths=1 + len(drive.paths or ()),
        fua=limits.fua,
        block=limits.block,
    )


def _adapter(
    problems: _Problems, alias: str, adapter: Adapter, virtual: Emulation, slots: Iterator[int]
) -> EmulatedAdapter | None:
    where = f"storqual_adapters.{alias}"
    kind = DEVICES.get(virtual.device)
    if kind is None:
        known = ", ".join([*DEVICES, DEBUG])
        problems.add(f"storqual_virtual.adapters.{alias}.device", f"{virtual.device!r} is none of {known}")
        return None
    pci = adapter.pci
    if kind.controller:
        refuse_unservable(alias, virtual.device, adapter, virtual.channels, problems.add)
        pci = f"00:{next(slots):02x}.0"
    slot = _PCI.fullmatch(pci or "")
    if slot is None or not _FIRST_SLOT <= int(slot[1], 16) <= _LAST_SLOT:
        problems.add(f"{where}.pci", f"expected 0000:00:05.0 to 0000:00:1f.7, found {adapter.pci!r}")
        return None
    channels = virtual.channels
    if channels > 1 and (kind.namespaces or int(slot[2])):
        sentence = f"{virtual.device} has one channel; only SCSI adapters at function 0 have up to {_FUNCTIONS}"
        problems.add(f"storqual_virtual.adapters.{alias}.channels", sentence)
        channels = 1
    drives = [_drive(problems, kind, alias, index, drive) for index, drive in enumerate(adapter.drives)]
    if kind.controller:
        served = (routes(virtual.device, drive, channels) for drive in adapter.drives)
        drives = [replace(drive, routes=route) for drive, route in zip(drives, served, strict=True)]
    apart = virtual.targets == "apart"
    if apart:
        refuse_apart(alias, virtual.device, channels, [drive.routes for drive in drives], problems.add)
    return EmulatedAdapter(
        alias=alias,
        device=virtual.device,
        slot=int(slot[1], 16),
        function=int(slot[2]),
        drives=_wired(problems, where, drives, adapter.drives, channels),
        channels=channels,
        end=INITIATOR if apart else "",
    )


def _free_slots(adapters: Iterable[Adapter]) -> Iterator[int]:
    """Slots that no adapter has, from the last on: the controllers of disks that targets serve are no adapters."""
    taken = {_PCI.fullmatch(adapter.pci or "") for adapter in adapters}
    numbers = {int(slot[1], 16) for slot in taken if slot}
    return (slot for slot in range(_LAST_SLOT, _FIRST_SLOT - 1, -1) if slot not in numbers)


def _refuse_beyond_room(problems: _Problems, adapter: EmulatedAdapter) -> None:
    most = DEVICES[adapter.device].drives
    for channel in range(adapter.channels):
        count = sum(drive.channel == channel for drive in adapter.drives)
        if count > most:
            on = f" on channel {channel}" if adapter.channels > 1 else ""
            where = f"storqual_adapters.{adapter.alias}.drives"
            problems.add(where, f"{adapter.device} has room for {most} drives{on}, found {count}")


def _refuse_unlike_namespaces(problems: _Problems, adapter: EmulatedAdapter) -> None:
    """Namespaces of one controller have its serial, and tell themselves apart by WWN."""
    if DEVICES[adapter.device].namespaces and len(adapter.drives) > 1:
        where = f"storqual_adapters.{adapter.alias}.drives"
        if len({drive.serial for drive in adapter.drives}) > 1:
            problems.add(where, "namespaces of one controller have one serial, that of the controller")
        if not all(drive.wwn for drive in adapter.drives):
            problems.add(where, "each of several namespaces needs a WWN: they share the serial of their controller")


def _with_paths(
    problems: _Problems, built: Sequence[EmulatedAdapter], adapters: Mapping[str, Adapter]
) -> tuple[EmulatedAdapter, ...]:
    """The adapters with the further paths to drives that stand on others, each behind its own drives."""
    by_alias = {adapter.alias: adapter for adapter in built}
    for adapter in built:
        for index, drive in enumerate(adapter.drives):
            where = f"storqual_adapters.{adapter.alias}.drives[{index}].paths"
            if (
                drive.paths > 1
                and not drive.routes
                and (drive.iops or drive.bandwidth or drive.service_time or not drive.wwn)
            ):
                problems.add(
                    where, "a drive of several paths has a WWN, and no `virtual` (a limit would be of one path)"
                )
            for alias in adapters[adapter.alias].drives[index].other_adapters:
                other = by_alias.get(alias)
                kinds = [DEVICES[side.device] for side in (adapter, other) if side]
                if other in (None, adapter) or any(kind.namespaces or kind.controller for kind in kinds):
                    problems.add(where, f"expected other adapters of this bench with SCSI drives, found {alias!r}")
                    continue
                target = sum(disk.channel == 0 for disk in other.drives)
                path = replace(
                    drive, device=f"{alias}-{len(other.drives)}", channel=0, target=target, first=drive.device
                )
                by_alias[other.alias] = replace(other, drives=(*other.drives, path))
    return tuple(by_alias.values())


def _wired(
    problems: _Problems, where: str, built: Sequence[EmulatedDrive], drives: Sequence[Drive], channels: int
) -> tuple[EmulatedDrive, ...]:
    """Each drive on the channel that its port names, with the next number there; with one channel ports are names."""
    taken: Counter[int] = Counter()
    wired = []
    for index, (emulated, drive) in enumerate(zip(built, drives, strict=True)):
        port = drive.port if channels > 1 and isinstance(drive.port, int) else 0
        if port >= channels:
            problems.add(f"{where}.drives[{index}].port", f"expected 0 to {channels - 1}, found {port}")
            port = 0
        wired.append(replace(emulated, channel=port, target=taken[port]))
        taken[port] += 1
    return tuple(wired)


def _fabrics(adapters: Iterable[EmulatedAdapter]) -> Mapping[str, list[str]]:
    """The aliases of the adapters of each fabric."""
    aliases: dict[str, list[str]] = {}
    for adapter in adapters:
        if adapter.device in FABRICS:
            aliases.setdefault(adapter.device, []).append(adapter.alias)
    return aliases


def _serials(description: BenchDescription) -> list[str]:
    """The serials that must differ: one of each NVMe controller, one of each other drive."""
    numbers: list[str] = []
    for adapter in description.adapters:
        serials = [drive.serial for drive in adapter.drives if drive.serial and not drive.first]
        numbers += dict.fromkeys(serials) if DEVICES[adapter.device].namespaces else serials
    return numbers


def describe(name: str, adapters: Mapping[str, Any], virtual: Mapping[str, Any]) -> BenchDescription:
    """The bench of inventory host `name` from its `storqual_adapters` and `storqual_virtual`.

    The inventory's own reader says what these may hold; here follows what QEMU can build of it. Raises BadInputError
    with everything that is wrong.
    """
    # the model is a name for people, without which QEMU can do
    named = {
        alias: {"model": alias, **entry} if isinstance(entry, dict) else entry for alias, entry in adapters.items()
    }
    entry = {"name": name, "storqual_kind": "virtual", "storqual_adapters": named, "storqual_virtual": virtual}
    bench, unread = shaped(Bench, Document(name, entry, {}))
    if bench is None:
        raise BadInputError(unread)
    return described(bench)


def described(bench: Bench) -> BenchDescription:
    """The same of a bench that was read from an inventory."""
    problems = _Problems(bench.name)
    if not _HOST.fullmatch(bench.name):
        problems.add("name", "expected letters, digits, '.', '-' and '_'")
    virtual = bench.virtual or Guest()
    for alias in sorted(set(bench.adapters) ^ set(virtual.adapters)):
        problems.add(alias, "must be in both storqual_adapters and storqual_virtual.adapters")
    debug = [alias for alias, emulation in virtual.adapters.items() if emulation.device == DEBUG]
    slots = _free_slots(bench.adapters.values())
    made = [
        _adapter(problems, alias, adapter, virtual.adapters[alias], slots)
        for alias, adapter in bench.adapters.items()
        if alias in virtual.adapters and alias not in debug
    ]
    built = _with_paths(problems, [adapter for adapter in made if adapter is not None], bench.adapters)
    for fabric, aliases in _fabrics(built).items():
        for alias in aliases[1:]:
            where = f"storqual_virtual.adapters.{alias}.device"
            problems.add(where, f"{aliases[0]} is {fabric} already, a bench has one with as many `channels` as ports")
    for adapter in built:
        _refuse_beyond_room(problems, adapter)
        _refuse_unlike_namespaces(problems, adapter)
    counts_instructions = virtual.clock == "instructions"
    if counts_instructions and virtual.cpus != 1:
        problems.add("storqual_virtual.clock", "instructions are counted with one processor (cpus: 1) only")
    description = BenchDescription(
        name=bench.name,
        cpus=virtual.cpus,
        memory=virtual.memory,
        counts_instructions=counts_instructions,
        flavour=virtual.flavour,
        netconsole=virtual.netconsole,
        # the order of a mapping means nothing, and tools that pass an inventory on may sort it
        adapters=tuple(sorted(built, key=lambda adapter: (adapter.slot, adapter.function, adapter.alias))),
        debug=declared_debug_host(
            {alias: bench.adapters[alias] for alias in bench.adapters if alias in debug}, problems.add
        ),
    )
    functions = [
        f"{adapter.slot:02x}.{adapter.function + channel}" for adapter in built for channel in range(adapter.channels)
    ]
    for what, values in (
        ("PCI address", functions),
        ("WWN", [drive.wwn for adapter in built for drive in adapter.drives if drive.wwn and not drive.first]),
        ("serial", _serials(description)),
    ):
        for value in sorted({value for value in values if values.count(value) > 1}):
            problems.add(what, f"{value} is used {values.count(value)} times")
    if problems.sentences:
        raise BadInputError(problems.sentences)
    return description
