# SPDX-License-Identifier: Apache-2.0
"""Everything storqual knows about a bench, as one structured fact set, from files of the kernel and few commands.

Sizes are bytes, times seconds, counters what the kernel counted since boot. What a bench does not show is empty or
null, never guessed. Device text is text: one Latin-1 character per byte.
"""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from typing import Any, Mapping, Sequence

from ..guard.writes import read_disks
from ..host.block_stack import is_multipath, read_enclosures, read_volumes
from ..host.counters import hexadecimal, read_link
from ..host.fabric import read_drive_paths, read_iscsi_sessions, read_nvme_subsystems
from ..host.identity import declared_address
from ..host.sysfs import SysfsAdapter, SysfsDrive, read_adapters, read_drives
from ..host.watchdog import read_watchdogs
from ..kit.command import Runner, run
from ..kit.errors import StorqualError
from ..kit.machine import Machine
from ..kit.quantities import is_whole
from .bench_kind import read_kind
from .tool_facts import tool_versions

SCHEMA = "storqual.facts/1"


def read_facts(
    machine: Machine | None = None,
    *,
    state_dir: str | os.PathLike[str] = "/var/lib/storqual",
    runner: Runner = run,
    deep: bool = False,
) -> dict[str, Any]:
    """The fact set of this machine; with `deep` also what only tools tell (see `deep_facts`).

    Raises ToolError when the kernel's mount table cannot be read.
    """
    machine = machine or Machine()
    drives = read_drives(machine)
    reading = read_disks(machine, state_dir=state_dir, drives=drives)
    adapters = read_adapters(machine)
    modules = sorted({adapter.module for adapter in adapters if adapter.module})
    slots = _slots(machine)
    facts = {
        "schema": SCHEMA,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "boot_id": reading.boot_id,
        "kernel": _kernel(machine),
        "default_boot": _default_boot(machine, runner),
        "os": _os_release(machine),
        "kind": read_kind(machine, runner),
        "machine": _machine(machine),
        "cpu": _cpu(machine),
        "memory": {"total": _memory(machine)},
        "watchdogs": read_watchdogs(machine),
        "adapters": [_adapter(adapter, drives, slots) for adapter in adapters],
        "drives": [_drive(machine, drive, reading.disks.get(drive.name)) for drive in drives],
        "volumes": read_volumes(machine, {drive.name: drive.id for drive in drives}),
        "enclosures": read_enclosures(machine),
        "iscsi_sessions": read_iscsi_sessions(machine),
        "nvme_subsystems": read_nvme_subsystems(machine),
        "drivers": {name: _module(machine, name) for name in modules},
        "tools": tool_versions(machine, runner),
        "disks": reading.record(),
    }
    if deep:
        from .deep_facts import add_deep_facts  # noqa: PLC0415 - compiled only on a bench that is asked in depth

        add_deep_facts(facts, machine, runner)
    return facts


def _slots(machine: Machine) -> dict[str, str]:
    """The name of the slot by the address of the device in it, where the kernel knows slots (`0000:03:00` -> `3`)."""
    place = "/sys/bus/pci/slots"
    return {machine.text(f"{place}/{name}/address"): name for name in machine.names(place)}


def _kernel(machine: Machine) -> dict[str, str]:
    place = "/proc/sys/kernel"
    return {
        "release": machine.text(f"{place}/osrelease"),
        "version": machine.text(f"{place}/version"),
        "cmdline": machine.text("/proc/cmdline"),
        "tainted": machine.text(f"{place}/tainted"),
    }


def _default_boot(machine: Machine, runner: Runner) -> dict[str, str] | None:
    """What boots when nobody asks for anything else; None where it cannot be told (another loader, no permission)."""
    folder = next((f for f in ("/boot/grub", "/boot/grub2") if machine.exists(f"{f}/grub.cfg")), "")
    if not folder:
        return None
    from ..tools import grub  # noqa: PLC0415 - shipped always, compiled only on a bench that boots with it

    # grubenv is 1024 bytes of text, padded with #; reading it saves starting grub-editenv
    text = "\n".join(line for line in machine.lines(f"{folder}/grubenv") if not line.startswith("#"))
    try:
        entry = grub.Grub(runner, machine.path(folder)).default(grub.parse_environment(text))
    except StorqualError:
        return None
    return {"release": entry.release, "entry": entry.path} if entry else None


def _os_release(machine: Machine) -> dict[str, str]:
    pairs = (line.partition("=") for line in machine.lines("/etc/os-release"))
    facts = {name: value.strip("\"'") for name, _, value in pairs}
    return {"id": facts.get("ID", ""), "version": facts.get("VERSION_ID", ""), "name": facts.get("PRETTY_NAME", "")}


def _machine(machine: Machine) -> dict[str, str]:
    names = ("sys_vendor", "product_name", "product_serial", "board_name", "bios_vendor", "bios_version", "bios_date")
    return {name: machine.text(f"/sys/class/dmi/id/{name}") for name in names}


def _cpu(machine: Machine) -> dict[str, Any]:
    lines = machine.lines("/proc/cpuinfo")
    pairs = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    place = "/sys/devices/system/cpu"
    return {
        "model": next((value for name, value in pairs if name == "model name"), ""),
        "online": sum(name == "processor" for name, _ in pairs),
        "sockets": len({value for name, value in pairs if name == "physical id"}) or 1,
        "governor": machine.text(f"{place}/cpu0/cpufreq/scaling_governor"),
        "smt": machine.text(f"{place}/smt/control"),
        "nodes": sum(name.startswith("node") and is_whole(name[4:]) for name in machine.names(f"{place}/../node")),
    }


def _memory(machine: Machine) -> int | None:
    for line in machine.lines("/proc/meminfo"):
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def _module(machine: Machine, name: str) -> dict[str, Any]:
    place = f"/sys/module/{name}"
    return {
        "version": machine.text(f"{place}/version"),
        "srcversion": machine.text(f"{place}/srcversion"),
        "parameters": {
            key: machine.text(f"{place}/parameters/{key}") for key in machine.names(f"{place}/parameters")
        },
    }


def _adapter(adapter: SysfsAdapter, drives: Sequence[SysfsDrive], slots: Mapping[str, str]) -> dict[str, Any]:
    identity = adapter.identity
    return {
        "pci": identity.pci,
        "slot": slots.get(identity.pci.rpartition(".")[0], ""),
        "class": adapter.pci_class,
        "vendor": identity.vendor,
        "device": identity.device,
        "subsystem": f"{identity.subsystem_vendor}:{identity.subsystem_device}",
        "revision": adapter.revision,
        "serial": identity.serial,
        "board": adapter.board,
        "firmware": adapter.firmware,
        "rom": adapter.rom,
        "boot_code": adapter.boot_code,
        "cdroms": adapter.cdroms,
        "driver": adapter.driver,
        "module": {"name": adapter.module, "version": adapter.module_version, "srcversion": adapter.srcversion},
        "link": {
            "speed": adapter.link_speed,
            "width": adapter.link_width,
            "speed_max": adapter.link_speed_max,
            "width_max": adapter.link_width_max,
        },
        "numa_node": adapter.numa_node,
        "root": adapter.root,
        "bridges": [dict(bridge) for bridge in adapter.bridges],
        "irqs": list(adapter.irqs),
        "hosts": [dict(host) for host in adapter.hosts],
        "drives": [drive.id for drive in drives if drive.adapter == identity.pci],
    }


_QUEUE = (
    *("scheduler", "nr_requests", "read_ahead_kb", "max_sectors_kb", "rq_affinity", "nomerges", "io_timeout"),
    *("write_cache", "wbt_lat_usec"),
)
_SETTINGS = ("queue_depth", "scheduler", "nr_requests", "write_cache")
_BLOCK = ("logical_block_size", "physical_block_size", "minimum_io_size", "optimal_io_size", "discard_max_bytes")
_DEVICE = ("queue_depth", "queue_type", "timeout", "eh_timeout")
_COUNTERS = ("iorequest_cnt", "iodone_cnt", "ioerr_cnt", "iotmo_cnt")


def _drive(machine: Machine, drive: SysfsDrive, disk: Any) -> dict[str, Any]:  # noqa: ANN401 - Disk or None
    queue, device = f"/sys/block/{drive.name}/queue", f"/sys/block/{drive.name}/device"
    page = (machine.names(f"{device}/scsi_disk") or [""])[0]
    holders = machine.names(f"/sys/block/{drive.name}/holders")
    facts = asdict(drive)
    facts.pop("identity")
    return {
        "id": drive.id,
        **facts,
        **asdict(drive.identity),
        "node": drive.node,
        "system": disk.system if disk is not None else "",
        "link": read_link(machine, drive.name),
        "paths": read_drive_paths(machine, drive.name, drive.hctl),
        "multipath": next((name for name in holders if is_multipath(machine, name)), ""),
        "queue": {
            **{name: machine.text(f"{queue}/{name}") for name in _QUEUE},
            **{name: machine.text(f"{device}/{name}") for name in _DEVICE},
        },
        "block": {name: machine.number(f"{queue}/{name}") for name in _BLOCK},
        "cache": machine.text(f"{device}/scsi_disk/{page}/cache_type") if page else "",
        "protection": machine.number(f"{device}/scsi_disk/{page}/protection_type") if page else None,
        "errors": {name: hexadecimal(machine.text(f"{device}/{name}")) for name in _COUNTERS},
    }


def environment_of(facts: Mapping[str, Any], adapters: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The bench's fingerprint for a run: what should be the same before and after, under the inventory's names.

    No counters, no names that change from boot to boot.
    """
    by_address = {adapter["pci"]: adapter for adapter in facts["adapters"]}
    by_id = {drive["id"]: drive for drive in facts["drives"]}
    by_serial = {drive["serial"]: drive for drive in facts["drives"] if drive["serial"]}
    named = {}
    for alias, declared in adapters.items():
        adapter = by_address.get(declared_address(declared))
        drives = {}
        for drive in declared.get("drives") or ():
            there = by_id.get(str(drive.get("wwn") or "")) or by_serial.get(str(drive.get("serial") or ""))
            if there is not None:
                drives[there["id"]] = {
                    # the PCI address of the adapter it is really on, which the inventory may not know
                    **{
                        name: there[name]
                        for name in ("adapter", "link", "model", "revision", "size", "cache", "state")
                    },
                    **{name: there["queue"][name] for name in _SETTINGS},
                }
        if adapter is not None:
            names = (
                *("pci", "board", "firmware", "subsystem", "driver", "module", "link", "numa_node", "root"),
                *("bridges", "rom", "boot_code", "cdroms"),
            )
            commands = [host["can_queue"] for host in adapter["hosts"]]
            ports = [host["fc_port"] for host in adapter["hosts"] if "fc_port" in host]
            named[alias] = {
                **{name: adapter[name] for name in names},
                "can_queue": commands,
                "drives": drives,
                # what a port carries follows from its speed
                "fc_ports": [{name: port[name] for name in ("port_name", "state", "speed")} for port in ports],
            }
    return {
        "kernel": facts["kernel"],
        "default_boot": facts["default_boot"],
        "os": facts["os"]["name"],
        "kind": {name: trait["value"] for name, trait in facts["kind"].items()},
        "machine": {name: facts["machine"][name] for name in ("sys_vendor", "product_name", "bios_version")},
        "cpu": facts["cpu"],
        "memory": facts["memory"]["total"],
        "tools": {name: tool["version"] for name, tool in facts["tools"].items()},
        "adapters": named,
    }
