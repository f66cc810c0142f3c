# SPDX-License-Identifier: Apache-2.0
"""Faults that the bench brings about on itself: resets, removal, links and slots switched off, settings under load.

The injector (module aer_inject, CONFIG_PCIEAER_INJECT) shows the error in the adapter's registers and raises the
interrupt of the port above it. The kernel then reports, counts and recovers as it would for an error of the link; the
hardware itself sees none.

What is about to be switched off is on disk before it is, so that it is switched on again before a bench is changed or
restored, also where the bench program was killed meanwhile.

Each way does one thing and tells what it saw: that a device went and came back, what a setting read as. Whether that
proves the fault is judged on the control node, together with the kernel's log. Nothing here decides whether a fault
may be: `reach.refuse_beyond` did, for the scope of its way (`data/faults.json`).
"""

from __future__ import annotations

import os
import struct
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Collection, Iterator, Mapping, Sequence

from ..data.faults import Way
from ..host.counters import read_phys
from ..host.reach import driven_alike, functions_in_slot
from ..host.sysfs import SysfsDrive, read_adapters, read_drives
from ..kit.durable import replace_file
from ..kit.errors import ToolError
from ..kit.machine import Machine, selected_word, write_attribute
from ..kit.quantities import is_whole
from ..kit.waiting import await_seen
from .crash_dump import find_dump, panic_with_dump
from .drive_faults import RULE_ACTS, Aim, Tell, abort_many, fail_writes, mark_by_nvme, mark_by_scsi, reads_fail
from .fabric_faults import FABRIC_ACTS
from .path_faults import PATH_ACTS

INJECTOR = "/dev/aer_inject"
# bus, device and function; uncorrectable and correctable status; four words of a header; domain: as the kernel's
# drivers/pci/pcie/aer_inject.c lays it out
_REQUEST = struct.Struct("=3Bx2I4II")
_LOOK_S = 0.05


@dataclass(frozen=True)
class LinkError:
    """One error by its bits in the registers of PCI Express, and the kernel's file that counts errors of its kind."""

    uncorrectable: int
    correctable: int
    counter: str

    def request(self, pci: str) -> bytes:
        """What the injector takes for the PCI function `pci` (`0000:3b:00.0`)."""
        domain, bus, place = pci.split(":")
        device, function = place.split(".")
        where = (int(bus, 16), int(device, 16), int(function, 16))
        return _REQUEST.pack(*where, self.uncorrectable, self.correctable, 0, 0, 0, 0, int(domain, 16))


CORRECTED = LinkError(0, 0x1, "aer_dev_correctable")
"""Receiver error."""
NOT_FATAL = LinkError(0x4000, 0, "aer_dev_nonfatal")
"""Completion timeout."""
FATAL = LinkError(0x10, 0, "aer_dev_fatal")
"""Data link protocol error: the kernel resets the link."""


def counted(aim: Aim, error: LinkError) -> int:
    """How many errors of that kind the kernel has counted of the adapter. Raises ToolError when it does not count."""
    place = f"/sys/bus/pci/devices/{aim.drive.adapter}/{error.counter}"
    for line in aim.machine.lines(place):
        name, _, number = line.strip().rpartition(" ")
        if name.startswith("TOTAL_ERR_") and is_whole(number):
            return int(number)
    raise ToolError(f"{place} has no line TOTAL_ERR_ with a number: the kernel counts no such errors of the adapter")


def inject(error: LinkError) -> Callable[[Aim, Tell], None]:
    """The way that reports `error` of the adapter, once."""

    def way(aim: Aim, tell: Tell) -> None:
        before, request = counted(aim, error), error.request(aim.drive.adapter)
        try:
            descriptor = os.open(aim.machine.path(INJECTOR), os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(descriptor, request)
            finally:
                os.close(descriptor)
        except OSError as problem:
            raise ToolError(f"the kernel does not inject into {aim.drive.adapter}: {problem.strerror}") from problem
        tell("injected", f"the kernel took an error of {aim.drive.adapter}")
        end = time.monotonic() + aim.limit_s
        while (now := counted(aim, error)) <= before:
            if time.monotonic() > end:
                raise ToolError(f"{error.counter} of {aim.drive.adapter} stayed at {before} for {aim.limit_s:g} s")
            time.sleep(_LOOK_S)
        tell("counted", f"{error.counter} of {aim.drive.adapter} was {before}, is {now}")

    return way


MEMORY = "switched_off"
"""The file in the state folder that names what is off: a line each, the value for on and the attribute."""


@dataclass(frozen=True)
class Switch:
    """An attribute of the kernel with its values for off and on."""

    path: str
    off: str
    on: str


def phys_of(aim: Aim) -> list[Switch]:
    """The phys that the drive is linked through. Raises ToolError without any."""
    phys = read_phys(aim.machine, aim.drive.name)
    if not phys:
        raise ToolError(f"drive {aim.drive.id} is on no SAS link")
    return [Switch(f"{phy}/enable", "0", "1") for phy in phys]


def bay_of(aim: Aim) -> list[Switch]:
    """The power of the enclosure's bay that holds the drive. Raises ToolError when no enclosure tells of it."""
    machine, device = aim.machine, aim.machine.real(f"/sys/block/{aim.drive.name}/device")
    for enclosure in machine.names("/sys/class/enclosure"):
        for bay in machine.names(f"/sys/class/enclosure/{enclosure}"):
            place = f"/sys/class/enclosure/{enclosure}/{bay}"
            if device and machine.real(f"{place}/device") == device and machine.exists(f"{place}/power_status"):
                return [Switch(f"{place}/power_status", "off", "on")]
    raise ToolError(f"no enclosure has a power switch for the bay of drive {aim.drive.id}")


def slot_of(aim: Aim) -> list[Switch]:
    """The power of the PCI slot that holds the adapter. Raises ToolError when the slot has none to switch."""
    machine, pci = aim.machine, aim.drive.adapter
    for slot in machine.names("/sys/bus/pci/slots"):
        place = f"/sys/bus/pci/slots/{slot}"
        if pci in functions_in_slot(machine, slot) and machine.exists(f"{place}/power"):
            return [Switch(f"{place}/power", "0", "1")]
    raise ToolError(f"the kernel has no power switch for the slot of the adapter at {pci}")


def switch_off(find: Callable[[Aim], Sequence[Switch]], gone: str) -> Callable[[Aim, Tell], None]:
    """The way that switches off what `find` finds; `gone` is the place in sysfs that goes by it."""

    def way(aim: Aim, tell: Tell) -> None:
        machine, switches = aim.machine, find(aim)
        place = gone.format(number=aim.drive.number, adapter=aim.drive.adapter)
        with _switched_on_again(aim, switches):
            for switch in switches:
                write_attribute(machine.path(switch.path), switch.off)
            tell("switched_off", ", ".join(switch.path for switch in switches))
            await_seen(lambda: not machine.exists(place), aim.limit_s, f"{place} did not go")
            tell("gone", f"{place} is no longer there")
            time.sleep(aim.away_s)
        back = f"drive {aim.drive.id} did not come back"
        await_seen(lambda: any(disk.id == aim.drive.id for disk in read_drives(machine)), aim.limit_s, back)
        tell("back", f"drive {aim.drive.id} is in sysfs again")

    return way


@contextmanager
def _switched_on_again(aim: Aim, switches: Sequence[Switch]) -> Iterator[None]:
    memory = Path(aim.machine.path(aim.state_dir)) / MEMORY
    replace_file(memory, "".join(f"{switch.on} {switch.path}\n" for switch in switches))
    try:
        yield
    finally:
        for switch in switches:
            write_attribute(aim.machine.path(switch.path), switch.on)
        with suppress(FileNotFoundError):
            memory.unlink()


OTHER_VALUE = "other_value"
"""What is told of a setting that reads otherwise than it was written."""
_COMMAND_S = 120.0
_CPUS = "/sys/devices/system/cpu"


def _is_back(aim: Aim) -> bool:
    return any(drive.id == aim.drive.id for drive in read_drives(aim.machine))


def _reset(option: str) -> Callable[[Aim, Tell], None]:
    def way(aim: Aim, tell: Tell) -> None:
        # without -N sg_reset tries wider resets by itself: then nobody could say which one was tested
        done = aim.runner(["sg_reset", "-N", option, aim.drive.node], timeout=_COMMAND_S)
        tell("command", f"`{done.line}` ended with status {done.rc}")
        done.expect()

    return way


def _host_reset(aim: Aim, tell: Tell) -> None:
    path = aim.machine.path(f"/sys/class/scsi_host/{aim.drive.host}/host_reset")
    write_attribute(path, "adapter")
    tell("command", f"the driver took a reset of {aim.drive.host}")


def _delete_and_scan(aim: Aim, tell: Tell) -> None:
    machine, drive = aim.machine, aim.drive
    block = f"/sys/block/{drive.name}"
    host, channel, target, lun = drive.hctl.split(":")
    write_attribute(machine.path(f"{block}/device/delete"), 1)
    await_seen(lambda: not machine.exists(f"/sys/dev/block/{drive.number}"), aim.limit_s, f"{drive.name} did not go")
    tell("drive_gone", f"{drive.name} is no longer in sysfs")
    time.sleep(aim.away_s)
    write_attribute(machine.path(f"/sys/class/scsi_host/host{host}/scan"), f"{channel} {target} {lun}")
    await_seen(lambda: _is_back(aim), aim.limit_s, f"drive {drive.id} did not come back after a scan")
    tell("drive_back", f"drive {drive.id} is in sysfs again")


def _rebind(aim: Aim, tell: Tell) -> None:
    pci = aim.drive.adapter
    folder = aim.machine.real(f"/sys/bus/pci/devices/{pci}/driver")
    if not folder:
        raise ToolError(f"no driver is bound to the adapter at {pci}")
    write_attribute(aim.machine.path(f"{folder}/unbind"), pci)
    if not aim.machine.exists(f"/sys/bus/pci/devices/{pci}/driver"):
        tell("driver_gone", f"{os.path.basename(folder)} let go of {pci}")  # noqa: PTH119 - a path of the machine
    time.sleep(aim.away_s)
    write_attribute(aim.machine.path(f"{folder}/bind"), pci)
    await_seen(lambda: _is_back(aim), aim.limit_s, f"drive {aim.drive.id} did not come back after its driver did")
    tell("driver_back", f"{os.path.basename(folder)} drives {pci} again")  # noqa: PTH119 - as above


def _reload(aim: Aim, tell: Tell) -> None:
    """Every adapter of the module is let go, then the module goes, comes back, and takes them again."""
    machine, pci = aim.machine, aim.drive.adapter
    module = next((adapter.module for adapter in read_adapters(machine) if adapter.identity.pci == pci), "")
    if not module:
        raise ToolError(f"no module drives the adapter at {pci}")
    folders = {name: machine.real(f"/sys/bus/pci/devices/{name}/driver") for name in driven_alike(machine, pci)}
    try:
        for name, folder in folders.items():
            write_attribute(machine.path(f"{folder}/unbind"), name)
        aim.runner(["modprobe", "-r", module], timeout=_COMMAND_S).expect()
        if not machine.exists(f"/sys/module/{module}"):
            tell("module_gone", f"module {module} is no longer loaded")
        time.sleep(aim.away_s)
    finally:
        aim.runner(["modprobe", module], timeout=_COMMAND_S).expect()
        for name, folder in folders.items():
            if not machine.exists(f"/sys/bus/pci/devices/{name}/driver"):
                # a driver of a transport, such as virtio's, was there all the time and looks for nothing anew
                write_attribute(machine.path(f"{folder}/bind"), name)
    await_seen(
        lambda: _is_back(aim), aim.limit_s, f"drive {aim.drive.id} did not come back after module {module} did"
    )
    tell("module_back", f"module {module} is loaded and drives {', '.join(folders)} again")


def _processor(machine: Machine) -> str:
    """The last processor that can be taken away. Raises ToolError without one."""
    names = [name for name in machine.names(_CPUS) if machine.exists(f"{_CPUS}/{name}/online")]
    if not names:
        raise ToolError("no processor of this bench can be taken away")
    return max(names, key=lambda name: int(name[3:]))


def _processor_goes(aim: Aim, tell: Tell) -> None:
    name = _processor(aim.machine)
    place = aim.machine.path(f"{_CPUS}/{name}/online")
    try:
        write_attribute(place, 0)
        if aim.machine.text(f"{_CPUS}/{name}/online") == "0":
            tell("processor_gone", f"{name} is offline")
        time.sleep(aim.away_s)
    finally:
        write_attribute(place, 1)
    if aim.machine.text(f"{_CPUS}/{name}/online") != "1":
        raise ToolError(f"{name} did not come back")
    tell("processor_back", f"{name} is online again")


def _interrupts_move(aim: Aim, tell: Tell) -> None:
    """The adapter's interrupts are served by another processor for a while, and that processor counts them."""
    machine, name = aim.machine, _processor(aim.machine)
    number = name[3:]
    irqs = next(adapter.irqs for adapter in read_adapters(machine) if adapter.identity.pci == aim.drive.adapter)
    before = {irq: machine.text(f"/proc/irq/{irq}/smp_affinity_list") for irq in irqs}
    # those of a driver that spreads its queues itself cannot be moved, and are not there or refuse it
    movable = {irq: value for irq, value in before.items() if value and value != number}
    counted, moved = _served(machine, movable, name), []
    try:
        for irq in movable:
            with suppress(ToolError):
                write_attribute(machine.path(f"/proc/irq/{irq}/smp_affinity_list"), number)
                moved.append(irq)
        if not moved:
            raise ToolError(f"the kernel lets none of the interrupts of {aim.drive.adapter} be moved: {list(irqs)}")
        time.sleep(aim.away_s)
        gained = _served(machine, moved, name) - counted
        if gained > 0:
            tell("interrupts_moved", f"{name} served {gained} interrupts of {aim.drive.adapter} ({moved})")
    finally:
        for irq in moved:
            write_attribute(machine.path(f"/proc/irq/{irq}/smp_affinity_list"), movable[irq])
    wrong = [irq for irq in moved if machine.text(f"/proc/irq/{irq}/smp_affinity_list") != movable[irq]]
    if wrong:
        raise ToolError(f"interrupts {wrong} did not go back to the processors they were on")
    tell("interrupts_back", f"interrupts {moved} are where they were")


def _served(machine: Machine, irqs: Collection[int], processor: str) -> int:
    head, *lines = machine.lines("/proc/interrupts") or [""]
    column = next((at for at, word in enumerate(head.split()) if word.lower() == processor), None)
    served = 0
    for line in lines:
        number, _, rest = line.partition(":")
        counts = rest.split()
        if column is not None and is_whole(number.strip()) and int(number) in irqs and len(counts) > column:
            served += int(counts[column])
    return served


def _pci_remove(aim: Aim, tell: Tell) -> None:
    pci = aim.drive.adapter
    place = f"/sys/bus/pci/devices/{pci}"
    write_attribute(aim.machine.path(f"{place}/remove"), 1)
    await_seen(lambda: not aim.machine.exists(place), aim.limit_s, f"the adapter at {pci} did not go")
    tell("adapter_gone", f"{pci} is no longer in sysfs")
    time.sleep(aim.away_s)
    write_attribute(aim.machine.path("/sys/bus/pci/rescan"), 1)
    await_seen(lambda: _is_back(aim), aim.limit_s, f"drive {aim.drive.id} did not come back after a rescan of PCI")
    tell("adapter_back", f"{pci} is in sysfs again")


def _pci_reset(aim: Aim, tell: Tell) -> None:
    pci = aim.drive.adapter
    write_attribute(aim.machine.path(f"/sys/bus/pci/devices/{pci}/reset"), 1)
    tell("command", f"the kernel reset the function {pci}")


def _changed(aim: Aim, tell: Tell, place: str, other: str, read: Callable[[str], str]) -> None:
    """Another value for a while, read back; then the old one again, read back.

    Under load the kernel may change a value between write and reading: a driver that tracks its queue depth raises a
    depth below the one it still takes for the most. So a value that was not taken is told and written once more.
    """
    path = aim.machine.path(f"/sys/block/{aim.drive.name}/{place}")

    def found_now() -> str:
        return read(Path(path).read_text(encoding="ascii"))

    before = found_now()
    try:
        write_attribute(path, other)
        value = found_now()
        if value != other:
            tell(OTHER_VALUE, f"{place} was {before}, {other} was written and {value} is found: written once more")
            write_attribute(path, other)
            value = found_now()
        if value == other:
            tell("read_back", f"{place} was {before}, is {value}")
        else:
            tell(OTHER_VALUE, f"{place} was {before}, {other} was written a second time and {value} is found")
        time.sleep(aim.away_s)
    finally:
        write_attribute(path, before)
    value = found_now()
    if value != before:
        raise ToolError(f"{place} was {before} and is {value} now")
    tell("put_back", f"{place} is {before} again")


def _switch_scheduler(aim: Aim, tell: Tell) -> None:
    words = aim.machine.text(f"/sys/block/{aim.drive.name}/queue/scheduler")
    now = selected_word(words)
    others = [word.strip("[]") for word in words.split() if word.strip("[]") != now]
    if not others:
        raise ToolError(f"{aim.drive.name} has no other scheduler than {now}")
    requests = aim.machine.path(f"/sys/block/{aim.drive.name}/queue/nr_requests")
    before = Path(requests).read_text(encoding="ascii").strip()
    _changed(aim, tell, "queue/scheduler", others[0], selected_word)
    after = Path(requests).read_text(encoding="ascii").strip()
    if after != before:
        # with a scheduler the kernel replaces the number of requests, and does not bring the old one back
        write_attribute(requests, before)
        tell("requests_back", f"queue/nr_requests was {before}, is {after} after the change, and was put back")


def _switch_depth(aim: Aim, tell: Tell) -> None:
    now = aim.machine.text(f"/sys/block/{aim.drive.name}/device/queue_depth")
    _changed(aim, tell, "device/queue_depth", "1" if now != "1" else "2", str.strip)


_DISK = "/sys/dev/block/{number}"

ACTS: Mapping[str, Callable[[Aim, Tell], None]] = {
    "sg_reset_device": _reset("-d"),
    "sg_reset_target": _reset("-t"),
    "sg_reset_bus": _reset("-b"),
    "sg_reset_host": _reset("-H"),
    "sysfs_host_reset": _host_reset,
    "sysfs_delete": _delete_and_scan,
    "driver_rebind": _rebind,
    "module_reload": _reload,
    "processor_offline": _processor_goes,
    "interrupt_move": _interrupts_move,
    "pci_remove": _pci_remove,
    "pci_reset": _pci_reset,
    "scheduler_switch": _switch_scheduler,
    "depth_switch": _switch_depth,
    "sg_write_uncorrectable": reads_fail(mark_by_scsi),
    "sg_short_timeouts": abort_many,
    "dm_flakey": fail_writes,
    "kdump": panic_with_dump,
    "sas_phy_off": switch_off(phys_of, _DISK),
    "bay_power_off": switch_off(bay_of, _DISK),
    "slot_power_off": switch_off(slot_of, "/sys/bus/pci/devices/{adapter}"),
    "aer_corrected": inject(CORRECTED),
    "aer_not_fatal": inject(NOT_FATAL),
    "aer_fatal": inject(FATAL),
    "nvme_write_uncorrectable": reads_fail(mark_by_nvme),
    **RULE_ACTS,
    **FABRIC_ACTS,
    **PATH_ACTS,
}
"""What brings each way of the bench about, by the name that it has in the table of faults."""
AFTER: Mapping[str, Callable[[Aim, Tell], None]] = {"kdump": find_dump}
"""What looks for the proof once the bench has started again, where the fault takes it down."""


def missing(way: Way, machine: Machine, drive: SysfsDrive) -> str:
    """Why this bench cannot bring that fault about; `` when it can."""
    place = way.needs.format(name=drive.name, host=drive.host, adapter=drive.adapter, hctl=drive.hctl)
    return "" if machine.exists(place) else f"{place} is not there"
