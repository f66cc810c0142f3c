# SPDX-License-Identifier: Apache-2.0
"""What only tools tell of a bench: health, mode pages, vital product data, slots, and what vendor tools know.

It is added to a fact set that the kernel's files gave. It costs a command or more per drive, so it is read when a
person asks, not around every block. What cannot be read is a sentence in `unread`, never a guess and never a stop.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import Any, Mapping

from ..host.identity import unit_serial, wwn_of_page
from ..host.in_use import ways
from ..kit.command import Runner, ToolAnswers
from ..kit.errors import ToolError
from ..kit.machine import Machine
from ..kit.settings import section_of
from ..tools import sg3
from ..tools.sg3 import CHANGEABLE, changeable_bits, get_field, read_page
from .conditions import (
    Conditions,
    fabric_conditions,
    path_conditions,
    read_paths,
    read_served,
    read_shelves,
    shelf_conditions,
)
from .tool_facts import add_vendor_facts, health_fields, read_drive_log

_DISK = "disk"


def add_deep_facts(facts: dict[str, Any], machine: Machine, runner: Runner) -> dict[str, Any]:
    """The same fact set with what tools tell; `unread` says what they could not."""
    tools = ToolAnswers(facts.setdefault("unread", []))
    _slots(facts, runner, tools)
    _functions(facts, runner, tools)
    _other_devices(facts, runner, tools)
    for drive in facts["drives"]:
        if drive["transport"] == "scsi":
            _scsi_drive(drive, runner, tools)
            _name_by_pages(facts, drive, runner, tools)
        _health(drive, runner, tools)
    _namespaces(facts, runner, tools)
    _subsystems(facts, runner, tools)
    _hidden_drives(facts, runner, tools)
    _arrays(facts, machine, tools)
    _iscsi_sessions(facts, runner, tools)
    _classes(facts, machine, runner, tools)
    _surroundings(facts, machine, runner)
    _nvram(facts, machine, runner, tools)
    add_vendor_facts(facts, machine, runner)
    # what the guard can ask this kernel about programs that write
    facts["writers_told_by"] = dict(ways(machine))
    return facts


def _slots(facts: dict[str, Any], runner: Runner, tools: ToolAnswers) -> None:
    """The slots of the machine, and the label of the slot that each adapter is in."""
    from ..tools import dmidecode  # noqa: PLC0415 - compiled only on a bench that is asked in depth

    slots = tools.ask("slots of the machine", lambda: dmidecode.read_slots(runner)) or ()
    facts["slots"] = [
        {"label": slot.designation, "kind": slot.kind, "usage": slot.usage, "pci": slot.pci} for slot in slots
    ]
    labels = {slot.pci.rpartition(".")[0]: slot.designation for slot in slots if slot.pci}
    for adapter in facts["adapters"]:
        adapter["slot"] = labels.get(adapter["pci"].rpartition(".")[0], "") or adapter["slot"]


def _functions(facts: dict[str, Any], runner: Runner, tools: ToolAnswers) -> None:
    """Vital product data and PCI errors of the adapters, what the driver does not show, and all other functions."""
    from ..tools import lspci  # noqa: PLC0415 - as above

    devices = {each.address: each for each in tools.ask("PCI functions", lambda: lspci.read_functions(runner)) or ()}
    for adapter in facts["adapters"]:
        function = devices.get(adapter["pci"])
        if function is not None:
            adapter["vpd"] = dict(function.vpd)
            adapter["pci_errors"] = list(function.errors)
            adapter["slot"] = adapter["slot"] or function.slot
            adapter["serial"] = adapter["serial"] or function.vpd.get("SN", "")
            adapter["board"] = adapter["board"] or function.name
            if not adapter["link"]["width"]:
                # kernels before 4.12 do not show the link in sysfs
                adapter["link"] = {
                    "speed": function.link_speed,
                    "width": function.link_width,
                    "speed_max": function.link_speed_max,
                    "width_max": function.link_width_max,
                }
    facts["pci"] = [
        {
            "address": each.address,
            "class": each.kind,
            "ids": each.name,
            "subsystem": each.subsystem,
            "driver": each.driver,
        }
        for each in tools.ask("PCI records", lambda: lspci.read_records(runner)) or ()
        if not each.unread
    ]


def _other_devices(facts: dict[str, Any], runner: Runner, tools: ToolAnswers) -> None:
    """SCSI devices that are no disks: enclosures, controllers' own units, tapes."""
    from ..tools import lsscsi  # noqa: PLC0415 - as above

    facts["devices"] = []
    through = tools.ask("transports of SCSI devices", lambda: lsscsi.read_transports(runner)) or {}
    for device in tools.ask("SCSI devices", lambda: lsscsi.read_devices(runner)) or ():
        if device.unread:
            tools.unread.append(f"SCSI devices: {device.unread}")
        if device.kind == _DISK or device.unread:
            continue
        who = tools.ask(device.generic, partial(sg3.read_inquiry, runner, device.generic)) if device.generic else None
        facts["devices"].append(
            {
                "hctl": device.path,
                "kind": device.kind,
                "vendor": device.vendor,
                "model": device.model,
                "revision": device.revision,
                "serial": who.serial if who else "",
                "sg": device.generic,
                "transport": through.get(device.path, ""),
            }
        )


def _scsi_drive(drive: dict[str, Any], runner: Runner, tools: ToolAnswers) -> None:
    """Mode pages with what can be changed where sdparm is there, else their current values; names from VPD pages."""
    from ..tools import sdparm  # noqa: PLC0415 - as above

    node = drive["sg"] or drive["node"]
    fields = tools.ask(drive["id"], lambda: sdparm.read_fields(runner, node))
    if fields is not None:
        drive["mode_pages"] = {
            acronym: {
                "value": field.value,
                "changeable": field.changeable,
                "default": field.default,
                "saved": field.saved,
            }
            for page in fields.pages.values()
            for acronym, field in page.items()
        }
    else:
        pages = tools.ask(drive["id"], lambda: sg3.read_mode_pages(runner, node))
        current = pages.pages if pages is not None else {}
        known = {
            (setting.field.page, setting.field.subpage) for setting in section_of("drive").values() if setting.field
        }
        masks = {
            place: tools.ask(drive["id"], partial(read_page, runner, node, *place, CHANGEABLE))
            for place in sorted(known & current.keys())
        }
        drive["mode_pages"] = _fields(current, masks)
    capacity = tools.ask(drive["id"], lambda: sg3.read_capacity(runner, node))
    if capacity is not None:
        drive["capacity"] = {
            "size": capacity.size,
            "block": capacity.block,
            "physical_block": capacity.physical_block,
        }


def _name_by_pages(facts: dict[str, Any], drive: dict[str, Any], runner: Runner, tools: ToolAnswers) -> None:
    """Kernels before 3.15 do not keep the pages that name a drive; ask the drive."""
    if drive["wwn"] or drive["serial"]:
        return
    node, former = drive["sg"] or drive["node"], drive["id"]
    page = tools.ask(former, lambda: sg3.read_vpd_page(runner, node, 0x83))
    number = tools.ask(former, lambda: sg3.read_vpd_page(runner, node, 0x80))
    drive["wwn"], drive["serial"] = wwn_of_page(page or b""), unit_serial(number or b"")
    drive["id"] = drive["wwn"] or drive["serial"] or former
    for owner, key in [
        *((each, "drives") for each in facts["adapters"]),
        *((v, "members") for v in facts["volumes"]),
    ]:
        owner[key] = [drive["id"] if name == former else name for name in owner[key]]


def _fields(
    pages: Mapping[tuple[int, int], bytes], masks: Mapping[tuple[int, int], bytes | None]
) -> dict[str, dict[str, Any]]:
    """The known fields of raw pages; a page that ends before a field does not have it.

    `masks` say what of a page can be changed: a field is changeable when all of its bits are, and of a page without
    a mask nothing is known.
    """
    values: dict[str, dict[str, Any]] = {}
    for name, setting in section_of("drive").items():
        place = setting.field
        data = pages.get((place.page, place.subpage)) if place else None
        if place is not None and data is not None:
            try:
                values[name] = {"value": get_field(data, place)}
            except ToolError:
                continue
            mask = masks.get((place.page, place.subpage))
            if mask is not None:
                values[name]["changeable"] = changeable_bits(mask, place) == (1 << place.length) - 1
    return values


def _namespaces(facts: dict[str, Any], runner: Runner, tools: ToolAnswers) -> None:
    """Of each NVMe namespace the bytes in use (which fall after a purge), and the format of its blocks."""
    from ..tools import nvme  # noqa: PLC0415 - as above

    drives = {drive["node"]: drive for drive in facts["drives"] if drive["transport"] == "nvme"}
    for namespace in (tools.ask("NVMe namespaces", lambda: nvme.read_namespaces(runner)) or ()) if drives else ():
        if namespace.node in drives:
            about = {"controller": namespace.controller, "used": namespace.used, "sector": namespace.sector}
            drives[namespace.node]["namespace"] = about
        tools.unread += [namespace.unread] if namespace.unread else []


def _subsystems(facts: dict[str, Any], runner: Runner, tools: ToolAnswers) -> None:
    """Whether nvme-cli sees the controllers of fabrics that the kernel has."""
    from ..tools import nvme  # noqa: PLC0415 - as above

    if not facts["nvme_subsystems"]:
        return
    seen = tools.ask("NVMe subsystems", lambda: nvme.read_subsystems(runner))
    for subsystem in () if seen is None else facts["nvme_subsystems"]:
        listed = (seen or {}).get(subsystem["nqn"], set())
        kernel = {controller["name"] for controller in subsystem["controllers"]}
        if listed != kernel:
            output, sysfs = (", ".join(sorted(names)) or "none" for names in (listed, kernel))
            tools.unread.append(
                f"NVMe subsystems: nvme lists the controllers {output} of {subsystem['nqn']}, the kernel has {sysfs}"
            )


def _arrays(facts: dict[str, Any], machine: Machine, tools: ToolAnswers) -> None:
    """What is under way on each md array, which the kernel tells in one text."""
    from ..tools import mdadm  # noqa: PLC0415 - as above

    text = machine.text("/proc/mdstat")
    arrays = (
        {each.device: each for each in (tools.ask("md arrays", lambda: mdadm.parse_arrays(text)) or ())}
        if text
        else {}
    )
    tools.unread += [array.unread for array in arrays.values() if array.unread]
    for volume in facts["volumes"]:
        array = arrays.get(volume.get("node", ""))
        if array is not None:
            volume["progress"], volume["healthy"] = dict(array.progress), array.healthy


def _iscsi_sessions(facts: dict[str, Any], runner: Runner, tools: ToolAnswers) -> None:
    """What open-iscsi counts of each session (PDUs, digest errors, timeouts), and what its daemon does with it."""
    from ..tools import iscsiadm  # noqa: PLC0415 - as above

    if not facts["iscsi_sessions"]:
        return
    counted = tools.ask("iSCSI sessions", lambda: iscsiadm.read_statistics(runner))
    states = tools.ask("states of iSCSI sessions", lambda: iscsiadm.read_sessions(runner)) or {}
    for session in facts["iscsi_sessions"]:
        session["daemon"] = dict(states.get(session["name"], {}))
        session["statistics"] = dict((counted or {}).get(session["name"], {}))
        if counted is not None and session["name"] not in counted:
            tools.unread.append(f"iSCSI sessions: iscsiadm does not know {session['name']}, which the kernel has")


def _classes(facts: dict[str, Any], machine: Machine, runner: Runner, tools: ToolAnswers) -> None:
    """All that drivers show of FC ports, remote ports and iSCSI sessions, by class and device, in their own words."""
    from ..tools import systool  # noqa: PLC0415 - as above

    facts["classes"] = {}
    for name in ("fc_host", "fc_remote_ports", "iscsi_session"):
        kernel = set(machine.names(f"/sys/class/{name}"))
        devices = tools.ask(f"class {name}", partial(systool.read_class, runner, name)) if kernel else None
        if devices is not None:
            facts["classes"][name] = devices
            odd = ", ".join(sorted(kernel ^ devices.keys()))
            tools.unread += [f"class {name}: either systool or the kernel has no {odd}"] if odd else []


def _surroundings(facts: dict[str, Any], machine: Machine, runner: Runner) -> None:
    """Shelves with what is in their slots, paths of multipath, and sentences on what is not well among these."""
    answers = Conditions()
    facts["shelves"] = read_shelves(facts, machine, runner, answers)
    facts["multipath"] = read_paths(facts, machine, runner, answers)
    facts["served"] = read_served(machine, runner, answers)
    slots = {
        element["drive"]: f"slot {element['slot']} of shelf {shelf['id']}"
        for shelf in facts["shelves"]
        for element in shelf["elements"]
        if element["drive"] and element["slot"] is not None
    }
    for drive in facts["drives"]:
        if drive["id"] in slots:
            drive.setdefault("position", slots[drive["id"]])
    sentences = [*shelf_conditions(facts["shelves"]), *path_conditions(facts["multipath"]), *fabric_conditions(facts)]
    facts["conditions"] = [*answers.conditions, *sentences]
    facts["unread"] += answers.unread


def _hidden_drives(facts: dict[str, Any], runner: Runner, tools: ToolAnswers) -> None:
    """Identity and health of the disks behind RAID controllers, which the kernel does not see as disks."""
    from ..tools import smartctl  # noqa: PLC0415 - as above

    facts["hidden_drives"] = []
    for device in tools.ask("disks behind controllers", lambda: smartctl.read_scan(runner)) or ():
        if not device.hidden:
            continue
        health = tools.ask(
            f"{device.name} {device.kind}", partial(smartctl.read_health, runner, device.name, device.kind)
        )
        if health is not None:
            who = {name: getattr(health, name) for name in ("vendor", "model", "serial", "firmware", "wwn", "size")}
            drive = {"node": device.name, "kind": device.kind, **who, "health": health_fields(health)}
            facts["hidden_drives"].append(drive)


def _health(drive: dict[str, Any], runner: Runner, tools: ToolAnswers) -> None:
    log = read_drive_log(drive, runner)
    drive["health"] = log.health
    tools.unread += [f"{drive['id']}: {sentence}" for sentence in log.unread]


def _nvram(facts: dict[str, Any], machine: Machine, runner: Runner, tools: ToolAnswers) -> None:
    """What an adapter's NVRAM holds: its settings by the tool that keeps them, the image where the driver shows it.

    The digest is of the image, or of the settings; it is the same as long as nobody changes a setting.
    """
    from ..host.reach import AdapterFunction  # noqa: PLC0415 - as above
    from ..provision.nvram import backend_of  # noqa: PLC0415

    for adapter in facts["adapters"]:
        hosts = tuple(str(host["host"]) for host in adapter["hosts"])
        place = AdapterFunction(
            adapter["pci"], adapter["pci"], adapter["driver"], adapter["module"]["name"], hosts, ""
        )
        backend = tools.ask(f"NVRAM of {adapter['pci']}", partial(backend_of, runner, place))
        settings = (
            tools.ask(f"NVRAM of {adapter['pci']}", partial(backend.read, runner)) if backend is not None else None
        )
        images = (machine.read(f"/sys/class/scsi_host/{host}/device/nvram") for host in hosts)
        image = next((content for content in images if content), None)
        if image is None and not settings:
            continue
        text = json.dumps(dict(settings or {}), sort_keys=True)
        adapter["nvram"] = {
            "sha256": hashlib.sha256(image or text.encode()).hexdigest(),
            "of": "the image that the driver shows" if image else "the settings",
            "tool": backend.name if backend is not None else "",
            "settings": dict(settings or {}),
        }
