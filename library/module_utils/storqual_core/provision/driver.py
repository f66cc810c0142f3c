# SPDX-License-Identifier: Apache-2.0
"""What the queue parameters of Linux drivers are called and mean, and which NVRAM words a driver does not follow.

Sources: the drivers in the kernel's tree (`modinfo` names, not defaults: those differ between releases); that qla2xxx
writes 0xFFFF into its init block whatever the NVRAM says is commit bc8fb3cb9e20 of 2006.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Collection, Iterable, Mapping, Sequence

from ..host.reach import drives_of_function, wait_for_drives
from ..kit.command import Runner
from ..kit.durable import replace_json
from ..kit.errors import StorqualError, ToolError
from ..kit.machine import Machine, read_attribute, write_attribute
from ..tools import kmod
from .module_policy import enforced
from .module_symbols import fit_of_file


@dataclass(frozen=True)
class QueueParameter:
    """One parameter: what it limits (`lun`, `target`, `host`, `recovery`), its range where known.

    A parameter of scope `lun` is the queue depth that the driver gives each drive, so its effect can be watched. One
    of scope `host` limits those of an adapter, which the kernel shows as `can_queue` of its SCSI hosts: so many
    `commands` for each unit; `exact` where the driver keeps none of them for itself and its firmware has no say.
    """

    module: str
    name: str
    scope: str
    meaning: str
    minimum: int | None = None
    maximum: int | None = None
    commands: int = 1
    exact: bool = False


PARAMETERS = (
    QueueParameter("qla2xxx", "ql2xmaxqdepth", "lun", "commands per LUN, for LUNs found from now on", 1, 65535),
    QueueParameter("qla2xxx", "ql2xqfullrampup", "recovery", "seconds before a lowered depth rises again", 0),
    QueueParameter("qla2xxx", "ql2xloginretrycount", "recovery", "login attempts, over the NVRAM's", 0),
    QueueParameter("qla2xxx", "qlport_down_retry", "recovery", "retries while a port is down, over the NVRAM's", 0),
    QueueParameter("qla2xxx", "ql2xlogintimeout", "recovery", "login timeout in seconds", 0),
    QueueParameter("lpfc", "lpfc_lun_queue_depth", "lun", "commands per LUN", 1, 512),
    QueueParameter("lpfc", "lpfc_tgt_queue_depth", "target", "commands per target", 10, 65535),
    QueueParameter("lpfc", "lpfc_hba_queue_depth", "host", "commands per adapter", 32, 8192),
    QueueParameter("mpt3sas", "max_queue_depth", "host", "credits asked of the firmware; -1 takes what it has"),
    QueueParameter("aacraid", "numacb", "host", "control blocks; -1 takes what the firmware says", -1, 512),
    QueueParameter("arcmsr", "host_can_queue", "host", "commands per adapter", 32, 1024),
    QueueParameter("esas2r", "can_queue", "host", "commands per adapter", 1),
    QueueParameter("vmw_pvscsi", "ring_pages", "host", "pages of the request ring", 0, 32, commands=32, exact=True),
    QueueParameter("megaraid_sas", "throttlequeuedepth", "recovery", "commands while the controller recovers", 1),
    QueueParameter("sym53c8xx", "cmd_per_lun", "lun", "tagged commands per LUN", 0, 64),
)
"""Drivers whose queue is one number; a string such as `aic7xxx=tag_info:{{..}}` is given as a module option."""

FIXED_DEPTH = frozenset(("am53c974",))
"""Drivers that cannot change the queue depth of a drive (drivers/scsi/esp_scsi.c): `queue_depth` is read-only."""

# drivers that do not follow a word of their adapter's NVRAM, and why; what can be set beside it is in PARAMETERS
_IGNORED: Mapping[tuple[str, str], str] = {
    ("qla2xxx", "execution_throttle"): "qla2xxx writes 0xFFFF into the init block whatever the NVRAM says",
    ("am53c974", "scsi_parity"): "am53c974 does not read the target records of the EEPROM",
    ("am53c974", "scsi_bus_reset"): "am53c974 resets the bus by itself and does not read this bit",
}


def parameter_of(module: str, name: str) -> QueueParameter | None:
    """The parameter in the table, or None for one that is not about queues."""
    return next((each for each in PARAMETERS if (each.module, each.name) == (module, name)), None)


def parameter_for(module: str, scope: str) -> QueueParameter | None:
    """What a driver calls the commands of each drive (`lun`) or adapter (`host`); None when it has no parameter."""
    return next((each for each in PARAMETERS if (each.module, each.scope) == (module, scope)), None)


def command_limit(module: str, commands: int) -> dict[str, str]:
    """The option by which a driver holds so many commands for an adapter. Raises ValueError with the reason."""
    parameter = parameter_for(module, "host")
    if parameter is None:
        known = ", ".join(sorted(each.module for each in PARAMETERS if each.scope == "host"))
        raise ValueError(f"{module} has no parameter for the commands of an adapter (drivers that have: {known})")
    units, rest = divmod(commands, parameter.commands)
    low, high = max(parameter.minimum or 1, 1), parameter.maximum
    if rest or units < low or (high is not None and units > high):
        most = f" to {high * parameter.commands}" if high is not None else " on"
        steps = f" in steps of {parameter.commands}" if parameter.commands > 1 else ""
        raise ValueError(f"{module} takes {low * parameter.commands}{most}{steps}")
    return {parameter.name: str(units)}


def driver_follows(driver: str, setting: str) -> str:
    """Why a driver does not follow an NVRAM word, as a sentence's part; empty when nothing is known against it."""
    return _IGNORED.get((driver, setting), "")


FOLDER = "updates/storqual"


@dataclass(frozen=True)
class ModuleFile:
    """What a module file says of itself, and its digest; `signer` is empty for one that is not signed.

    `needs`: the modules that must be loaded before it. `supported`: SUSE's mark (`yes`, `external`), empty for none.
    """

    path: str
    name: str
    sha256: str
    build: kmod.Build
    signer: str
    needs: tuple[str, ...] = ()
    supported: str = ""


def read_module_file(runner: Runner, path: str) -> ModuleFile:
    """Read a module file. Raises ToolError when it cannot be read or is no kernel module."""
    try:
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as problem:
        raise ToolError(f"{path} cannot be read: {problem.strerror}") from problem
    records = kmod.parse_modinfo(runner(["modinfo", path], timeout=60.0).expect().stdout)
    values = {key: texts[0] for key, texts in records[0].items()} if records else {}
    if not values.get("vermagic"):
        raise ToolError(f"{path} is not a kernel module: it has no vermagic")
    name = values.get("name") or Path(path).name.partition(".")[0]
    build = kmod.Build(values.get("srcversion", ""), values.get("version", ""), values["vermagic"], path)
    needs = tuple(word for word in values.get("depends", "").split(",") if word)
    signer, supported = (values.get(key, "").strip() for key in ("signer", "supported"))
    return ModuleFile(path, name.replace("-", "_"), digest, build, signer, needs, supported)


def objections(file: ModuleFile, sha256: str, machine: Machine, release: str, native: kmod.Build | None) -> list[str]:
    """Every reason against loading a module file. `native`: the kernel's own build, whose vermagic must agree."""
    problems = []
    if sha256 and file.sha256 != sha256.lower():
        problems.append(f"{file.path}: its SHA-256 is {file.sha256}, {sha256} is declared")
    words = file.build.vermagic.split()
    kernels = native.vermagic.split() if native is not None else []
    if words[0] != release:
        problems += _other_kernel(file, machine, release, kernels)
    elif kernels and kernels != words:
        problems.append(f"{file.path} is built as '{file.build.vermagic}', this kernel as '{' '.join(kernels)}'")
    if not file.build.srcversion:
        problems.append(
            f"{file.path} has no srcversion, so that it could not be told from another build once it is loaded: "
            "build it with MODULE_VERSION, or with CONFIG_MODULE_SRCVERSION_ALL"
        )
    why = enforced(machine)
    if why and not file.signer:
        problems.append(f"{file.path} is not signed, and this kernel loads signed modules only ({why})")
    return problems


def _other_kernel(file: ModuleFile, machine: Machine, release: str, kernels: Sequence[str]) -> list[str]:
    """Why a module that was built for another kernel is not loaded; none where both have MODVERSIONS and fit."""
    words = file.build.vermagic.split()
    sentence = f"{file.path} is built for kernel {words[0]}, but kernel {release} has to load it"
    if "modversions" not in words or (kernels and "modversions" not in kernels):
        return [sentence]
    if kernels and kernels[1:] != words[1:]:
        return [f"{sentence}: it is built as '{' '.join(words[1:])}', this kernel as '{' '.join(kernels[1:])}'"]
    try:
        fit = fit_of_file(file.path, machine, release)
    except ToolError as problem:
        return [f"{sentence}: {problem}"]
    return [] if fit.compatible else [f"{sentence}: {fit.words}"]


def place_of(file: ModuleFile, release: str) -> str:
    """Where a prebuilt module is put: depmod searches `updates` before the kernel's own modules (depmod.d(5))."""
    suffix = "".join(Path(file.path).suffixes[-2:]) if file.path.endswith((".xz", ".zst", ".gz")) else ".ko"
    return f"/lib/modules/{release}/{FOLDER}/{file.name}{suffix}"


_FILE = "driver_starts.json"


def pending_starts(machine: Machine, state_dir: str) -> frozenset[str]:
    """The drivers that have not started since something was written for them. Raises StorqualError for a bad file."""
    path = Path(state_dir) / _FILE
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        return frozenset(map(str, body["drivers"])) if body["boot_id"] == _boot(machine) else frozenset()
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise StorqualError(f"{path} cannot be read ({problem}); boot the bench, then remove it") from problem


def note_starts(machine: Machine, state_dir: str, drivers: Collection[str]) -> None:
    """These must start; on the disk when this returns. The caller holds the bench's lock."""
    _write(machine, state_dir, pending_starts(machine, state_dir) | frozenset(drivers))


def forget_start(machine: Machine, state_dir: str, driver: str) -> None:
    """`driver` has started."""
    _write(machine, state_dir, pending_starts(machine, state_dir) - {driver})


def _write(machine: Machine, state_dir: str, drivers: Collection[str]) -> None:
    path = Path(state_dir) / _FILE
    if drivers:
        replace_json(path, {"boot_id": _boot(machine), "drivers": sorted(drivers)})
    elif path.exists():
        path.unlink()


def _boot(machine: Machine) -> str:
    return machine.text("/proc/sys/kernel/random/boot_id")


_LIMIT_S = 120.0
_BUSY_S = 30.0
_LOOK_S = 0.1


def driver_of(machine: Machine, pci: str) -> str:
    """The driver that is bound to a PCI function; empty when none is."""
    return machine.target(f"/sys/bus/pci/devices/{pci}/driver")


def adapters_of_module(machine: Machine, module: str) -> list[str]:
    """The PCI addresses that a loaded module drives, in order; a virtio driver's by the function below it."""
    folder = f"/sys/module/{module.replace('-', '_')}/drivers"
    addresses: set[str] = set()
    for driver in machine.names(folder):
        for device in machine.names(f"{folder}/{driver}"):
            if device.count(":") == 2:
                addresses.add(device)
            elif device.startswith("virtio"):
                place = machine.real(f"{folder}/{driver}/{device}")
                addresses.add(os.path.basename(os.path.dirname(place)))  # noqa: PTH119, PTH120 - a path of the machine
    return sorted(addresses)


def holders_of(machine: Machine, module: str) -> list[str]:
    """The modules that need a loaded module, so that it cannot be taken out."""
    return machine.names(f"/sys/module/{module.replace('-', '_')}/holders")


def rebind(machine: Machine, pci: str, limit_s: float = _LIMIT_S) -> None:
    """Unbind an adapter from its driver and bind it again; its drives are back then. Raises ToolError."""
    driver = driver_of(machine, pci)
    if not driver:
        raise ToolError(f"no driver is bound to the adapter at {pci}, so none can be started again")
    drives = [drive.id for drive in drives_of_function(machine, [pci])]
    folder = machine.path(f"/sys/bus/pci/drivers/{driver}")
    write_attribute(f"{folder}/unbind", pci)
    write_attribute(f"{folder}/bind", pci)
    if driver_of(machine, pci) != driver:
        raise ToolError(f"driver {driver} did not take the adapter at {pci} again: the kernel's log says why")
    wait_for_drives(machine, drives, limit_s)


def bind_unbound(machine: Machine, adapters: Iterable[str]) -> list[str]:
    """Have the kernel find a driver for those of `adapters` that have none; which those were. Raises ToolError.

    A program that dies between the halves of `rebind` leaves an adapter so.
    """
    left = [pci for pci in adapters if machine.exists(f"/sys/bus/pci/devices/{pci}") and not driver_of(machine, pci)]
    for pci in left:
        write_attribute(machine.path("/sys/bus/pci/drivers_probe"), pci)
    return left


def take_out(machine: Machine, runner: Runner, module: str) -> None:
    """Take a module out that nothing is loaded for instead. Raises ToolError.

    By `rmmod`, which asks the kernel: `modprobe -r` knows no module whose file is gone.
    """
    runner(["rmmod", module], timeout=_LIMIT_S).expect()
    if machine.exists(f"/sys/module/{module.replace('-', '_')}/initstate"):
        raise ToolError(f"module {module} is still loaded after `rmmod {module}`")


def _wait_until_unused(machine: Machine, module: str) -> None:
    """Wait for who looks at a drive for a moment: udev probes each that was written, when its writer closes it.

    Whoever stays is left to modprobe, which refuses then.
    """
    deadline = time.monotonic() + _BUSY_S
    while read_attribute(machine.path(f"/sys/module/{module.replace('-', '_')}/refcnt")) not in (None, "0"):
        if time.monotonic() > deadline:
            return
        time.sleep(_LOOK_S)


def reload_module(machine: Machine, runner: Runner, module: str, words: Sequence[str] = ()) -> None:
    """Take a module out and load it again, with `words` as further parameters; its drives are back after it.

    Raises ToolError; a module that is out and does not load again is named with the kernel's reason.
    """
    adapters = adapters_of_module(machine, module)
    drives = [drive.id for drive in drives_of_function(machine, adapters)]
    state = machine.path(f"/sys/module/{module.replace('-', '_')}/initstate")
    if Path(state).exists():
        _wait_until_unused(machine, module)
        runner(["modprobe", "-r", module], timeout=_LIMIT_S).expect()
    if read_attribute(state) is not None:
        raise ToolError(f"module {module} is still loaded after `modprobe -r {module}`")
    runner(["modprobe", module, *words], timeout=_LIMIT_S).expect()
    if read_attribute(state) is None:
        raise ToolError(f"module {module} is not loaded after `modprobe {module}`")
    lost = [pci for pci in adapters if not driver_of(machine, pci)]
    if lost:
        raise ToolError(f"after it was loaded again, module {module} drives no more: {', '.join(lost)}")
    wait_for_drives(machine, drives, _LIMIT_S)
