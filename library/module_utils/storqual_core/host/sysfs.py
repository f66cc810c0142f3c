# SPDX-License-Identifier: Apache-2.0
"""Drives and adapters as sysfs shows them: SCSI, NVMe and virtio, without running any tool."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..kit.machine import Machine, block_node
from ..kit.quantities import is_whole
from .fabric import (
    controller_driver,
    controllers_of_fabric,
    fabric_drivers,
    fc_host_of,
    host_driver,
    nvme_address,
    read_fc_port,
)
from .identity import (
    AdapterIdentity,
    DriveIdentity,
    printed_wwn,
    pseudo_address,
    unit_serial,
    wwn_of_page,
    wwn_of_wwid,
)

_ROOT = re.compile(r"/pci([0-9a-f]{4,8}:[0-9a-f]{2})/")
_PCI = re.compile(r"/([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?=/|$)")
_PSEUDO = re.compile(r"/pseudo_0/(adapter\d+)(?=/|$)")
_STORAGE = ("0x01", "0x0c04")
_CDROM = "5"
_SAS_PORT = re.compile(r"/port-\d+:(\d+)(?=/)")
# block devices that are no hardware: their writes land on another disk, or nowhere
_NO_HARDWARE = re.compile(r"(?:loop|ram|zram|fd|sr|scd|dm-|md_?|bcache|drbd)\d")


@dataclass(frozen=True)
class SysfsDrive:
    """A disk as the kernel has it now: names and places (which may change) around an identity (which does not)."""

    name: str
    number: str
    identity: DriveIdentity
    transport: str
    hctl: str
    sg: str
    adapter: str
    host: str
    port: int
    state: str
    read_only: bool

    @property
    def node(self) -> str:
        return block_node(self.name)

    @property
    def id(self) -> str:
        """Its name in storqual's files; the kernel name when it says nothing of itself."""
        return self.identity.id or self.name


@dataclass(frozen=True)
class SysfsAdapter:
    """A storage adapter: identity, driver (with its build), PCI link, interrupts, SCSI hosts and firmware.

    `rom`: whether the card shows a ROM for code to boot by; `boot_code` is the version of that code, empty where the
    driver does not show it. `cdroms`: CD-ROM drives behind it. `root` is the PCI root that it is behind (`0000:00`),
    `bridges` what lies between, outermost first, each with the PCIe link that it is on where it has one.
    """

    identity: AdapterIdentity
    pci_class: str
    revision: str
    driver: str
    module: str
    module_version: str
    srcversion: str
    link_speed: str
    link_width: int | None
    link_speed_max: str
    link_width_max: int | None
    numa_node: int | None
    root: str
    bridges: tuple[dict[str, object], ...]
    irqs: tuple[int, ...]
    firmware: str
    board: str
    rom: bool
    boot_code: str
    cdroms: int
    hosts: tuple[dict[str, object], ...]


def pci_address(path: str) -> str:
    """The PCI function that a sysfs path passes last, `` when it passes none."""
    addresses = _PCI.findall(path)
    return addresses[-1] if addresses else ""


def adapter_address(path: str) -> str:
    """The address of the adapter that a sysfs path passes: its PCI function, or `pseudo/adapter0` of scsi_debug."""
    pseudo = _PSEUDO.search(path)
    return pci_address(path) or (pseudo_address(pseudo.group(1)) if pseudo else "")


def _address_of_host(machine: Machine, path: str) -> str:
    """As `adapter_address`; of a host that works through a network card, its driver's."""
    driver = host_driver(machine, path)
    return pseudo_address(driver) if driver else adapter_address(path)


def _address_of_controllers(machine: Machine, name: str) -> str:
    """The adapter of an NVMe namespace that is reached through a fabric: the FC port's where that is known."""
    for controller in controllers_of_fabric(machine, name):
        address = nvme_address(machine.text(f"/sys/class/nvme/{controller}/address"))
        host = fc_host_of(machine, printed_wwn(address.get("host_traddr", "").rpartition("pn-")[2]))
        if host:
            return _address_of_host(machine, machine.link(f"/sys/class/scsi_host/{host}"))
        return pseudo_address(controller_driver(machine, controller))
    return ""


def is_virtual(machine: Machine, name: str) -> bool:
    """Whether a whole block device is made of others or of memory, so that it has no identity of its own."""
    if _NO_HARDWARE.match(name):
        return True
    place = f"/sys/class/block/{name}"
    made = any(machine.exists(f"{place}/{part}") for part in ("dm", "md", "loop"))
    return made or bool(machine.names(f"{place}/slaves"))


def read_drives(machine: Machine) -> list[SysfsDrive]:
    """Every physical disk, in kernel name order; hidden NVMe paths are left out (their head stands for them)."""
    return [
        _drive(machine, name)
        for name in machine.names("/sys/block")
        if not is_virtual(machine, name) and machine.text(f"/sys/block/{name}/hidden") != "1"
    ]


def _drive(machine: Machine, name: str) -> SysfsDrive:
    block = f"/sys/block/{name}"
    device = f"{block}/device"
    # the link's text is the place in the device tree; following it with realpath costs ten times as much
    place = machine.link(block)
    hctl = place.split("/block/")[0].rsplit("/", 1)[-1]
    if machine.exists(f"{device}/scsi_level"):
        transport, identity = "scsi", _scsi(machine, name)
    elif name.startswith("nvme"):
        transport, identity, hctl = "nvme", _nvme(machine, name), ""
        if not pci_address(place):
            place = _nvme_path(machine, device) or place
    else:
        transport, identity, hctl = _other(machine, name)
    host = re.search(r"/(host\d+)/", place)
    address = _address_of_host(machine, place) if host else adapter_address(place)
    sg = (machine.names(f"{device}/scsi_generic") or [""])[0]
    port = _SAS_PORT.search(place)
    return SysfsDrive(
        name=name,
        number=machine.text(f"{block}/dev"),
        identity=identity,
        transport=transport,
        hctl=hctl,
        sg=f"/dev/{sg}" if sg else "",
        adapter=address or (_address_of_controllers(machine, name) if transport == "nvme" else ""),
        host=host.group(1) if host else "",
        port=int(port.group(1)) if port else _channel(hctl),
        state=machine.text(f"{device}/state"),
        read_only=machine.text(f"{block}/ro") == "1",
    )


def _channel(hctl: str) -> int:
    """The bus of an adapter with several: the channel of `2:1:4:0`; 0 for anything else."""
    parts = hctl.split(":")
    return int(parts[1]) if len(parts) == 4 and is_whole(parts[1]) else 0


def _size(machine: Machine, name: str) -> int:
    """Bytes; the kernel counts 512-byte sectors whatever the drive's own sector is."""
    return (machine.number(f"/sys/block/{name}/size") or 0) * 512


def _scsi(machine: Machine, name: str) -> DriveIdentity:
    device = f"/sys/block/{name}/device"
    page = machine.read(f"{device}/vpd_pg83") or b""
    rotation = None
    characteristics = machine.read(f"{device}/vpd_pgb1") or b""
    if len(characteristics) >= 6 and characteristics[1] == 0xB1:
        rotation = int.from_bytes(characteristics[4:6], "big")
    elif machine.text(f"/sys/block/{name}/queue/rotational") == "0":
        rotation = 1
    return DriveIdentity(
        wwn=wwn_of_page(page) or wwn_of_wwid(machine.text(f"{device}/wwid")),
        serial=unit_serial(machine.read(f"{device}/vpd_pg80") or b""),
        vendor=machine.text(f"{device}/vendor"),
        model=machine.text(f"{device}/model"),
        revision=machine.text(f"{device}/rev"),
        size=_size(machine, name),
        rotation=rotation,
    )


def _nvme(machine: Machine, name: str) -> DriveIdentity:
    block = f"/sys/block/{name}"
    controller = f"{block}/device"
    wwn = wwn_of_wwid(machine.text(f"{block}/wwid"))
    for attribute, prefix in (("uuid", "uuid."), ("nguid", "eui."), ("eui", "eui.")):
        wwn = wwn or wwn_of_wwid(prefix + machine.text(f"{block}/{attribute}").replace(" ", ""))
    return DriveIdentity(
        wwn=wwn,
        serial=machine.text(f"{controller}/serial"),
        vendor="",
        model=machine.text(f"{controller}/model"),
        revision=machine.text(f"{controller}/firmware_rev"),
        size=_size(machine, name),
        rotation=1 if machine.text(f"{block}/queue/rotational") == "0" else None,
    )


def _nvme_path(machine: Machine, subsystem: str) -> str:
    """Where the first controller of an NVMe subsystem sits (native multipath hangs the namespace below none)."""
    for entry in machine.names(subsystem):
        if re.match(r"nvme\d+\Z", entry):
            place = machine.real(f"{subsystem}/{entry}")
            if pci_address(place):
                return place
    return ""


def _other(machine: Machine, name: str) -> tuple[str, DriveIdentity, str]:
    block = f"/sys/block/{name}"
    virtio = machine.target(f"{block}/device/driver") == "virtio_blk" or name.startswith("vd")
    identity = DriveIdentity(
        wwn=wwn_of_wwid(machine.text(f"{block}/wwid")),
        serial=machine.text(f"{block}/serial") or machine.text(f"{block}/device/serial"),
        vendor="",
        # virtio-blk has no model page; a claim must name something, so it names what the device is
        model="virtio-blk" if virtio else machine.text(f"{block}/device/model"),
        revision="",
        size=_size(machine, name),
        rotation=1 if machine.text(f"{block}/queue/rotational") == "0" else None,
    )
    return ("virtio" if virtio else "other"), identity, ""


def read_adapters(machine: Machine) -> list[SysfsAdapter]:
    """Every PCI function of a storage class (SCSI, RAID, SATA, SAS, NVMe, Fibre Channel), in address order.

    Behind them the hosts of scsi_debug, which no hardware is, and each driver that works through network cards.
    """
    adapters = []
    place = "/sys/bus/scsi/devices"
    cdroms = [
        adapter_address(machine.link(f"{place}/{name}"))
        for name in machine.names(place)
        if machine.text(f"{place}/{name}/type") == _CDROM
    ]
    for pci in machine.names("/sys/bus/pci/devices"):
        kind = machine.text(f"/sys/bus/pci/devices/{pci}/class")
        if kind.startswith(_STORAGE):
            adapters.append(_adapter(machine, pci, f"/sys/bus/pci/devices/{pci}", kind, cdroms.count(pci)))
    for name in machine.names("/sys/bus/pseudo/devices"):
        address = pseudo_address(name)
        adapters.append(_adapter(machine, address, f"/sys/bus/pseudo/devices/{name}", "", cdroms.count(address)))
    through_network = fabric_drivers(machine)
    return adapters + [
        _adapter(machine, pseudo_address(name), f"/sys/module/{name}", "", 0, name) for name in through_network
    ]


def _adapter(
    machine: Machine, address: str, device: str, kind: str, cdroms: int, fabric_driver: str = ""
) -> SysfsAdapter:
    """`fabric_driver` is the driver of an adapter that is no device; then `device` is its module."""
    driver = fabric_driver or machine.target(f"{device}/driver")
    module = fabric_driver or machine.target(f"{device}/driver/module")
    below = [name for name in machine.names(device) if name.startswith("virtio")]
    if below:
        # the PCI function is virtio's transport; the adapter's own driver sits one level down
        driver = machine.target(f"{device}/{below[0]}/driver") or driver
        module = machine.target(f"{device}/{below[0]}/driver/module") or module
    module = module or driver.replace("-", "_")
    hosts = tuple(_hosts(machine, address))
    irqs = [int(name) for name in machine.names(f"{device}/msi_irqs") if is_whole(name)]
    line = machine.number(f"{device}/irq")
    firmware, serial, board = _firmware(machine, address, hosts)
    root, bridges = _above(machine, device)
    return SysfsAdapter(
        identity=AdapterIdentity(
            pci=address,
            serial=serial,
            vendor=_id(machine, f"{device}/vendor"),
            device=_id(machine, f"{device}/device"),
            subsystem_vendor=_id(machine, f"{device}/subsystem_vendor"),
            subsystem_device=_id(machine, f"{device}/subsystem_device"),
        ),
        pci_class=kind,
        revision=machine.text(f"{device}/revision"),
        driver=driver,
        module=module,
        module_version=machine.text(f"/sys/module/{module}/version") if module else "",
        srcversion=machine.text(f"/sys/module/{module}/srcversion") if module else "",
        link_speed=machine.text(f"{device}/current_link_speed"),
        link_width=machine.number(f"{device}/current_link_width"),
        link_speed_max=machine.text(f"{device}/max_link_speed"),
        link_width_max=machine.number(f"{device}/max_link_width"),
        numa_node=machine.number(f"{device}/numa_node"),
        root=root,
        bridges=bridges,
        irqs=tuple(sorted(irqs) or ([line] if line else [])),
        firmware=firmware,
        board=board,
        rom=machine.exists(f"{device}/rom"),
        boot_code=_shown_by_hosts(machine, hosts, _BOOT_CODE),
        cdroms=cdroms,
        hosts=hosts,
    )


def _above(machine: Machine, device: str) -> tuple[str, tuple[dict[str, object], ...]]:
    """The PCI root above a function, and each bridge between them with its link, from the root on."""
    place = machine.link(device)
    root = _ROOT.search(place)
    bridges: list[dict[str, object]] = []
    for match in list(_PCI.finditer(place))[:-1]:
        bridge = f"/sys/bus/pci/devices/{match.group(1)}"
        speed, width = machine.text(f"{bridge}/current_link_speed"), machine.number(f"{bridge}/current_link_width")
        bridges.append({"pci": match.group(1), "speed": speed, "width": width})
    return root.group(1) if root else "", tuple(bridges)


def _id(machine: Machine, path: str) -> str:
    """Four hex digits of `0x1000`."""
    text = machine.text(path)
    return text[2:] if text.startswith("0x") else text


def _hosts(machine: Machine, address: str) -> list[dict[str, object]]:
    hosts = []
    for host in machine.names("/sys/class/scsi_host"):
        if _address_of_host(machine, machine.link(f"/sys/class/scsi_host/{host}")) == address:
            place = f"/sys/class/scsi_host/{host}"
            facts: dict[str, object] = {"host": host, "driver": machine.text(f"{place}/proc_name")}
            for name in ("can_queue", "cmd_per_lun", "sg_tablesize", "unique_id", "nr_hw_queues"):
                facts[name] = machine.number(f"{place}/{name}")
            port = read_fc_port(machine, host)
            hosts.append({**facts, "fc_port": port} if port else facts)
    return hosts


_FIRMWARE = ("version_fw", "fw_version", "fwrev", "firmware_revision", "firmware_version", "fw_rev")
_SERIAL = ("serial_num", "serialnum", "board_tracer", "board_tracer_number")
_BOOT_CODE = ("version_bios", "optrom_bios_version", "option_rom_version", "bios_version")
_BOARD = ("board_name", "model_name", "modelname", "model_desc")


def _firmware(machine: Machine, pci: str, hosts: tuple[dict[str, object], ...]) -> tuple[str, str, str]:
    """(firmware, serial, board) where the driver shows them: each driver has its own attribute names."""
    for name in machine.names(f"/sys/bus/pci/devices/{pci}/nvme"):
        place = f"/sys/bus/pci/devices/{pci}/nvme/{name}"
        return machine.text(f"{place}/firmware_rev"), machine.text(f"{place}/serial"), machine.text(f"{place}/model")
    values = [_shown_by_hosts(machine, hosts, attributes) for attributes in (_FIRMWARE, _SERIAL, _BOARD)]
    return values[0], values[1], values[2]


def _shown_by_hosts(machine: Machine, hosts: tuple[dict[str, object], ...], attributes: tuple[str, ...]) -> str:
    """The first of these attributes that a driver shows of its SCSI hosts; empty when it shows none."""
    texts = (machine.text(f"/sys/class/scsi_host/{host['host']}/{name}") for host in hosts for name in attributes)
    return next((text for text in texts if text), "")
