# SPDX-License-Identifier: Apache-2.0
"""What is around the drives: the shelf that they are in, fabrics and paths to them, and work that nobody asked for.

None of it is a difference from the inventory, and none forbids a write; a person wants to know before hours are
measured. What a tool that is installed cannot tell is a sentence as well.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Collection, Iterable, Iterator, Mapping, Sequence

from ..host.fabric import fc_gbit
from ..kit.command import Runner, ToolAnswers
from ..kit.machine import Machine, visible
from ..provision.background import AdapterWatch, work_of_adapters

_Facts = Mapping[str, Any]
_ENCLOSURE = "13"


@dataclass
class Conditions(ToolAnswers):
    """What tools answered: sentences on what is not well or under way, and on what could not be read."""

    conditions: list[str] = field(default_factory=list)


def read_shelves(facts: _Facts, machine: Machine, runner: Runner, answers: Conditions) -> list[dict[str, Any]]:
    """Each shelf with its elements, and in `drive` the id of the drive in a slot; a shelf with two ways to it once.

    A drive is known by the address of its port, else by the link that the kernel keeps from the slot to it.
    """
    shelves: dict[str, dict[str, Any]] = {}
    # an enclosure that a vendor tool told has a number of slots, and no names of devices in them
    by_slot = {
        (str(shelf["id"]).replace("0x", "").lower(), slot): drive["id"]
        for shelf in facts["enclosures"]
        if isinstance(shelf["slots"], dict)
        for slot, place in shelf["slots"].items()
        for drive in facts["drives"]
        if place and drive["hctl"] == place
    }
    for name in machine.names("/sys/class/scsi_generic"):
        if machine.text(f"/sys/class/scsi_generic/{name}/device/type") != _ENCLOSURE:
            continue
        from ..tools import sg_ses  # noqa: PLC0415 - compiled only on a bench that has a shelf

        node = f"/dev/{name}"
        shelf = answers.ask(f"shelf {node}", partial(sg_ses.read_shelf, runner, node))
        if shelf is None:
            continue
        answers.unread += [f"shelf {shelf.id or node}: {note}" for note in shelf.notes]
        elements = []
        for element in shelf.elements:
            at_port = [
                each["id"] for each in facts["drives"] if sg_ses.same_port(element.sas_address, each["wwn"] or "")
            ]
            at_slot = by_slot.get((shelf.id, str(element.slot)), "") if element.is_slot else ""
            drive = at_port[0] if len(at_port) == 1 else at_slot
            sentence = {"where": element.where, "complaints": list(element.complaints), "drive": drive}
            elements.append({**asdict(element), **sentence})
        named = {"node": node, "vendor": shelf.vendor, "model": shelf.model, "revision": shelf.revision}
        shelves.setdefault(shelf.id or node, {"id": shelf.id, **named, "elements": elements})
    return list(shelves.values())


def shelf_conditions(shelves: Iterable[_Facts]) -> Iterator[str]:
    """A sentence on each slot with a fault, and on each power supply, fan or sensor that is not well."""
    for shelf in shelves:
        name = f"shelf {visible(shelf['id'] or shelf['node'])}"
        for element in shelf["elements"]:
            if element["complaints"]:
                drive = f" with drive {visible(element['drive'])}" if element["drive"] else ""
                yield f"{name}, {visible(element['where'])}{drive}: {visible(', '.join(element['complaints']))}"


def read_paths(facts: _Facts, machine: Machine, runner: Runner, answers: Conditions) -> list[dict[str, Any]]:
    """Each map of multipath with its paths, and in `drives` the ids of the drives that they lead to."""
    if not any(volume["kind"] == "multipath" for volume in facts["volumes"]):
        return []
    from ..tools import multipath  # noqa: PLC0415 - as above

    ids = {drive["name"]: drive["id"] for drive in facts["drives"]}
    maps = []
    for each in answers.ask("multipath maps", lambda: multipath.read_maps(runner)) or ():
        listed = sorted(path.device for path in each.paths)
        kernel = machine.names(f"/sys/block/{each.node}/slaves") if each.node else []
        if each.node and listed != kernel:
            listed_words = ", ".join(listed) or "no path"
            answers.conditions.append(
                f"multipath map {visible(each.name)}: multipath lists {visible(listed_words)}, "
                f"the kernel's {each.node} is made of {', '.join(kernel) or 'nothing'}"
            )
        drives = sorted({ids[name] for name in (*listed, *kernel) if name in ids})
        if len(drives) > 1:
            answers.conditions.append(
                f"multipath map {visible(each.name)} leads to {len(drives)} drives: {visible(', '.join(drives))}"
            )
        answers.unread += [f"multipath map {each.name}: not understood: {visible(note)}" for note in each.notes]
        paths = [{**asdict(path), "usable": path.usable} for path in each.paths]
        maps.append({**asdict(each), "paths": paths, "drives": drives})
    return maps


def read_served(machine: Machine, runner: Runner, answers: Conditions) -> dict[str, str]:
    """What the bench itself serves to others, by its path in targetcli's tree; what nobody can use is a condition.

    Asked only where the kernel's target has a store: targetcli would load its modules.
    """
    if not set(machine.names("/sys/kernel/config/target/core")) - {"alua"}:
        return {}
    from ..tools import targetcli  # noqa: PLC0415 - as above

    nodes, notes = answers.ask("targets of the bench", lambda: targetcli.read_tree(runner)) or ((), ())
    answers.unread += [f"targets of the bench: not understood: {visible(note)}" for note in notes]
    answers.conditions += [visible(f"target {node.path}: {node.summary}") for node in nodes if node.unwell]
    return {node.path: node.summary for node in nodes}


def path_conditions(maps: Iterable[_Facts]) -> Iterator[str]:
    """A sentence on each map of which not all paths work."""
    for each in maps:
        lost = [path for path in each["paths"] if not path["usable"]]
        if lost:
            states = "; ".join(
                f"{path['device']} is "
                + " ".join(path[word] for word in ("kernel", "checker", "online") if path[word])
                for path in lost
            )
            whose = f"drive {', '.join(each['drives'])}" if each["drives"] else f"map {each['name']}"
            sentence = f"{whose}: {len(lost)} of {len(each['paths'])} paths of {each['name']} do not work ({states})"
            yield visible(sentence)


def lun_paths(facts: _Facts) -> dict[str, list[_Facts]]:
    """The paths through a fabric by the LUN or namespace that they lead to, however many disks the kernel has."""
    paths: dict[str, list[_Facts]] = {}
    for drive in facts["drives"]:
        if drive.get("paths"):
            paths.setdefault(drive["id"], []).extend(drive["paths"])
    return paths


def fabric_conditions(facts: _Facts, addresses: Collection[str] | None = None) -> Iterator[str]:
    """A sentence on each port, session, controller and path of a fabric that is not what it could be.

    `addresses` are the adapters that matter, all without it.
    """
    for adapter in facts["adapters"]:
        for host in adapter["hosts"] if addresses is None or adapter["pci"] in addresses else ():
            if "fc_port" in host:
                for sentence in _port_conditions(host["fc_port"]):
                    yield visible(f"FC port {host['fc_port']['port_name']} of {adapter['pci']}: {sentence}")
    for session in facts["iscsi_sessions"]:
        if session["state"] != "LOGGED_IN":
            yield visible(f"iSCSI {session['name']} to {session['targetname']}: its state is {session['state']}")
        yield from _daemon_conditions(session)
    for subsystem in facts["nvme_subsystems"]:
        for each in subsystem["controllers"]:
            if each["state"] != "live":
                yield visible(f"NVMe controller {each['name']} of {subsystem['nqn']}: its state is {each['state']}")
    yield from _lun_conditions(lun_paths(facts))


def _daemon_conditions(session: _Facts) -> Iterator[str]:
    """What iscsid is about to do with a session, and its disks that do not run, where the daemon was asked."""
    daemon = session.get("daemon") or {}
    name = f"iSCSI {session['name']} to {session['targetname']}"
    if daemon.get("daemon", "NO CHANGE") not in ("NO CHANGE", "Unknown"):
        yield visible(f"{name}: iscsid has it in {daemon['daemon']}, its connection is {daemon['connection']}")
    for disk, state in daemon.get("disks", {}).items():
        if state != "running":
            yield visible(f"{name}: its disk {disk} is {state}")


def _port_conditions(port: _Facts) -> Iterator[str]:
    if port["state"] != "Online":
        yield f"it is {port['state'] or 'in no known state'}, not Online"
    else:
        now, most = fc_gbit(port["speed"]), fc_gbit(port["supported_speeds"])
        if now and most and now[0] < max(most):
            yield f"its link runs at {port['speed']}, it could run at {max(most)} Gbit"
    for remote in port["remote_ports"]:
        if "FCP Target" not in remote["roles"]:
            continue
        name = f"remote port {remote['port_name']} ({remote['name']})"
        if remote["state"] != "Online":
            yield f"{name} is {remote['state'] or 'in no known state'}, not Online"
        elif remote["target_id"] is None:
            yield (
                f"{name} says that it is a target and has no target id, so its LUNs are not found: the target was "
                "enabled after this port logged in; let the port log in again (issue_lip, or reload its driver)"
            )


def _lun_conditions(luns: Mapping[str, Sequence[_Facts]]) -> Iterator[str]:
    """LUNs with fewer paths than others of their targets have, and LUNs of which no path is optimized."""
    targets = {lun: {path["target"] for path in paths} for lun, paths in luns.items()}
    for lun, paths in luns.items():
        beside = [other for other in luns if targets[other] & targets[lun]]
        most = max(beside, key=lambda other: len(luns[other]))
        if len(luns[most]) > len(paths):
            yield visible(
                f"LUN {lun}: {len(paths)} path{'s' * (len(paths) != 1)} to it {'are' if len(paths) != 1 else 'is'} "
                f"there, {len(luns[most])} to LUN {most} of the same target"
            )
        states = {path["access"] for path in paths}
        if all(states) and not states & {"active/optimized", "optimized"}:
            yield visible(f"LUN {lun}: no path to it is optimized, they are {', '.join(sorted(states))}")


def _tools_of(driver: str) -> list[str]:
    """The vendors' tools that may know the adapters of a driver; of md the kernel has told."""
    from ..provision.raid.layout import CONTROLLER_TOOLS  # noqa: PLC0415 - as above

    return [CONTROLLER_TOOLS[driver]] if driver in CONTROLLER_TOOLS else []


def read_conditions(facts: _Facts, addresses: Sequence[str], machine: Machine, runner: Runner) -> Conditions:
    """What stands against measuring now on drives of the adapters at these PCI functions. Raises nothing."""
    answers = Conditions()
    answers.conditions += shelf_conditions(read_shelves(facts, machine, runner, answers))
    answers.conditions += path_conditions(read_paths(facts, machine, runner, answers))
    answers.conditions += fabric_conditions(facts, addresses)
    watch = AdapterWatch(machine, addresses, runner, log=False)
    answers.conditions += watch.work
    answers.unread += watch.unread
    answers.conditions += work_of_adapters(machine, addresses, runner, _tools_of, answers)
    return answers
