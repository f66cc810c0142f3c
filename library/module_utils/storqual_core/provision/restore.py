# SPDX-License-Identifier: Apache-2.0
"""Put a bench back as it was found: everything in saved.json, then proof, then saved.json goes.

What is remembered carries the claim that allowed the change, so that a restore needs neither the inventory nor the
drop, from any later moment. A thing that cannot be restored does not stop the others; the memory stays then.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from ..guard.claims import read_claims
from ..kit.command import Runner
from ..kit.durable import fsync_folder, make_folder
from ..kit.errors import BadInputError, GuardRefusalError, StorqualError
from ..kit.lock import BenchLock, hold_lock
from ..kit.machine import Machine
from ..kit.results import PartialError, Provisioned
from ..kit.saved_state import SavedState, read_saved, remove_after_proof, saved_path
from .drive_step import ModePages, Queues, carry_out
from .drives import LOCK_WAIT_S, Access, usable_drives
from .firmware.apply import Step, put_firmware_back
from .kernel_boot import System, restore_boot, saved_boot
from .mode_pages import DriveTarget
from .nvram import NvramBench
from .options import OptionsBench
from .parts import MEMORY as FILE_SYSTEM
from .parts import restore_part
from .queue import QUEUE_NAMES
from .raid.backends import volumes_of
from .raid.layout import Backends, restore_volume
from .restore_adapters import AdapterMemory, Restored, restore_build, restore_nvram, restore_options, take_builds_off

_SAVED_PAGE = ".saved"
_ASIDE = "accepted"


@dataclass
class Memory:
    """saved.json by owner: claims and old values of drives, boot loader, adapters; firmware by its whole key."""

    claims: dict[str, dict[str, Any]] = field(default_factory=dict)
    pages: dict[str, dict[str, Any]] = field(default_factory=dict)
    saved_pages: dict[str, dict[str, Any]] = field(default_factory=dict)
    queues: dict[str, dict[str, Any]] = field(default_factory=dict)
    file_systems: set[str] = field(default_factory=set)
    boot: dict[str, Any] = field(default_factory=dict)
    volumes: dict[str, dict[str, Any]] = field(default_factory=dict)
    firmware: dict[str, Any] = field(default_factory=dict)
    adapters: AdapterMemory = field(default_factory=AdapterMemory)
    unknown: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Tools:
    """What a restore works with; other values are for tests."""

    runner: Runner
    system: System
    access: Access = usable_drives
    sysfs: str = "/sys"
    volumes: Callable[[str, str], Backends] = volumes_of
    machine: Machine | None = None

    @property
    def options(self) -> OptionsBench:
        """What module options are put back with."""
        return OptionsBench(self.runner, self.machine or Machine())

    @property
    def nvram(self) -> NvramBench:
        """What adapters' NVRAM is put back with."""
        return NvramBench(self.runner, self.machine or Machine())


def read_memory(values: Mapping[str, Any]) -> Memory:
    """Sort keys `<setting>@<owner>` by who restores them; a key of nobody is in `unknown`."""
    memory = Memory()
    for key, value in values.items():
        setting, _, owner = key.partition("@")
        section, _, name = setting.partition(".")
        if setting == "claim":
            memory.claims[owner] = value
        elif setting == FILE_SYSTEM and owner:
            memory.file_systems.add(owner)
        elif section == "drive" and name in QUEUE_NAMES:
            memory.queues.setdefault(owner, {})[name] = value
        elif section == "drive" and name.endswith(_SAVED_PAGE):
            memory.saved_pages.setdefault(owner, {})[name[: -len(_SAVED_PAGE)]] = value
        elif section == "drive" and name:
            memory.pages.setdefault(owner, {})[name] = value
        elif section == "raid" and name and owner and isinstance(value, dict):
            memory.volumes[key] = value
        elif section == "boot" and owner == "bench":
            memory.boot[name] = value
        elif section == "firmware" and isinstance(value, dict):
            memory.firmware[key] = value
        elif not memory.adapters.take(setting, owner, value):
            memory.unknown.append(key)
    return memory


@dataclass
class _Report:
    settings: list[Provisioned] = field(default_factory=list)
    firmware: list[Mapping[str, Any]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    read_back: dict[str, Any] = field(default_factory=dict)


def restore(state_dir: str, tools: Tools, *, check: bool) -> dict[str, Any]:
    """Restore what is remembered; the module's result.

    `reboot` in the result: the kernel that ran is the default again but another one runs, or the former firmware
    waits for it; boot, then ask again. `power_cycle`: a boot is not enough for that firmware.
    Raises PartialError when something could not be put back (the memory stays).
    """
    saved = read_saved(Path(state_dir))
    if saved is None:
        nothing = {"reboot": False, "power_cycle": False, "settings": [], "steps": [], "run": ""}
        return {"changed": False, "restored": True, **nothing}
    memory = read_memory(saved.values)
    report = _Report(failures=[f"{key} is remembered, but nothing here can restore it" for key in memory.unknown])
    with nullcontext() if check else hold_lock(Path(state_dir), saved.run, "restore", wait_s=LOCK_WAIT_S) as lock:
        if memory.firmware:
            # a drive that is a member of a volume is not flashed
            _volumes(memory, saved, state_dir, tools, report, check=check)
        pending = _firmware(memory, saved, state_dir, tools, report, lock)
        former = _former_builds(memory, state_dir, tools, report, check=check)
        reboot = _boot(memory, tools, report, check=check) or former or bool(pending)
        if not reboot:
            if not memory.firmware:
                # first: while a drive is a member of a volume, nobody may have it
                _volumes(memory, saved, state_dir, tools, report, check=check)
            # loading a driver again gives its drives new queues, so drives come last
            _adapters(memory.adapters, state_dir, tools, report, check=check)
            _drives(memory, saved, state_dir, tools, report, check=check)
            if lock is not None and not report.failures:
                _attempt(report, lambda: remove_after_proof(lock, report.read_back))
    if report.failures and not check:
        raise PartialError("\n".join(report.failures), steps=report.steps, settings=report.settings)
    return {
        # forgetting the memory is a change, even when nothing else differs
        "changed": True,
        "restored": not reboot and not check,
        "reboot": reboot,
        "power_cycle": pending == "power cycle",
        "settings": [*report.firmware, *(entry.record() for entry in report.settings)],
        "steps": report.steps,
        "failures": report.failures,
        "run": saved.run,
    }


def accept(state_dir: str, *, check: bool) -> dict[str, Any]:
    """Take the bench as it is now for its own state; what it was like before is set aside, not lost.

    `kept` in the result: the file it was moved to, which `take_up` makes the memory again.
    """
    saved = read_saved(Path(state_dir))
    if saved is None:
        return {"changed": False, "kept": "", "run": ""}
    aside = Path(state_dir) / _ASIDE / f"{saved.since.replace(':', '').replace('+0000', 'Z')}-{saved.run}.json"
    if not check:
        with hold_lock(Path(state_dir), saved.run, "accept", wait_s=LOCK_WAIT_S):
            make_folder(aside.parent)
            saved_path(Path(state_dir)).replace(aside)
            fsync_folder(aside.parent)
            fsync_folder(Path(state_dir))
    return {"changed": True, "kept": str(aside), "run": saved.run}


def take_up(state_dir: str, file: str) -> None:
    """Make a memory that was set aside the memory again. Raises StorqualError when there is one already."""
    place = saved_path(Path(state_dir))
    if place.exists():
        raise StorqualError(f"{place} holds the state before another run: restore that first")
    try:
        Path(file).replace(place)
    except OSError as problem:
        raise StorqualError(f"{file} cannot be taken up: {problem.strerror}") from problem
    fsync_folder(Path(state_dir))


def _attempt(report: _Report, work: Callable[[], Any]) -> None:
    """Do one part; a failure is kept and the other parts go on."""
    try:
        work()
    except StorqualError as problem:
        _keep(report, problem)


def _keep(report: _Report, problem: StorqualError) -> None:
    """A failure, and what was done before it."""
    report.failures.append(str(problem))
    if isinstance(problem, PartialError):
        report.steps += problem.steps
        report.settings += problem.settings


def _firmware(
    memory: Memory, saved: SavedState, state_dir: str, tools: Tools, report: _Report, lock: BenchLock | None
) -> str:
    """Put firmware back, before the boot that may be needed for it; what it needs: reboot, power cycle, nothing."""
    if not memory.firmware:
        return ""
    step = Step(state_dir, saved.run, check=lock is None)
    back = put_firmware_back(memory.firmware, step, lock, runner=tools.runner, machine=tools.machine)
    report.firmware += back.settings
    report.steps += back.steps
    report.failures += back.failures
    report.read_back.update(back.read_back)
    return back.pending


def _former_builds(memory: Memory, state_dir: str, tools: Tools, report: _Report, *, check: bool) -> bool:
    """Take builds that came with a boot off the disk; whether the former ones need a boot to run."""
    boots = False
    try:
        steps, boots = take_builds_off(memory.adapters, tools.options, state_dir, check=check)
        report.steps += steps
    except StorqualError as problem:
        _keep(report, problem)
    return boots


def _boot(memory: Memory, tools: Tools, report: _Report, *, check: bool) -> bool:
    """Put the boot loader back; whether the bench must boot to be on its former kernel."""
    if not memory.boot:
        return False
    before = saved_boot(tools.system)
    wanted = {name: memory.boot.get(name) for name in before}
    if check:
        return _other_boot({**before, "default_initramfs": wanted["default_initramfs"]}, wanted)
    _attempt(report, lambda: report.steps.extend(restore_boot(tools.system, wanted)))
    now = saved_boot(tools.system)
    report.read_back.update({f"boot.{name}@bench": value for name, value in now.items() if name in memory.boot})
    if now["default"] == wanted["default"]:
        # how the default is named is not the point: where a newer kernel was installed, it must be named now
        report.read_back["boot.saved_entry@bench"] = wanted["saved_entry"]
    report.settings += [
        Provisioned(f"boot.{name}", value, before[name], now[name], changed=before[name] != now[name])
        for name, value in wanted.items()
        if name not in ("custom", "images")
    ]
    again = _other_boot(now, wanted)
    # words that were there when the bench was found and went with a boot are nothing that a run left behind
    gone = [name for name in ("added", "initramfs") if name in memory.boot and not again]
    report.read_back.update({f"boot.{name}@bench": wanted[name] for name in gone})
    return again


def _other_boot(now: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether another kernel runs than was found, or the same one with words or the initramfs of a trial."""
    # an image that a boot would not change is none that a trial left behind
    image = now["initramfs"] != wanted["initramfs"] and now["initramfs"] != now["default_initramfs"]
    return bool(now["running"] != wanted["running"] or image or set(now["added"]) - set(wanted["added"] or ()))


def _volumes(
    memory: Memory, saved: SavedState, state_dir: str, tools: Tools, report: _Report, *, check: bool
) -> None:
    """Take away the volumes that the run made, each for itself: one that cannot go does not keep the others."""
    backends = tools.volumes(state_dir, saved.run)
    for key, value in memory.volumes.items():
        try:
            record, steps = restore_volume(key, value, memory.claims, backends, check=check)
        except StorqualError as problem:
            _keep(report, problem)
            continue
        report.settings.append(record)
        report.steps += steps
        if record.as_declared:
            report.read_back[key] = value


def _adapters(memory: AdapterMemory, state_dir: str, tools: Tools, report: _Report, *, check: bool) -> None:
    """Put driver builds, module options and NVRAM back; one that fails does not hold the others up."""

    def keep(restored: Restored) -> None:
        report.settings += restored.settings
        report.steps += restored.steps
        report.read_back.update(restored.read_back)

    for module in memory.builds:
        _attempt(
            report,
            lambda module=module: keep(  # type: ignore[misc]
                restore_build(memory, tools.options, module, state_dir, check=check)
            ),
        )
    _attempt(report, lambda: keep(restore_options(memory, tools.options, state_dir, check=check)))
    for alias in memory.nvram:
        _attempt(
            report,
            lambda alias=alias: keep(restore_nvram(memory, tools.nvram, alias, state_dir, check=check)),  # type: ignore[misc]
        )


def _drives(memory: Memory, saved: SavedState, state_dir: str, tools: Tools, report: _Report, *, check: bool) -> None:
    """Put all drives back at once, or one by one: a drive that is gone or in use must not hold the others up."""
    drives = sorted({*memory.pages, *memory.saved_pages, *memory.queues, *memory.claims})

    def put_back(chosen: Sequence[str]) -> None:
        claims = read_claims({drive: memory.claims.get(drive, {}) for drive in chosen})
        with tools.access(claims, state_dir, saved.run) as targets:
            _put_back(targets, memory, tools, report, check=check)

    if drives:
        try:
            put_back(drives)
        except (BadInputError, GuardRefusalError):
            # nothing was written: the guard decides before it lets anybody touch a drive
            for drive in drives:
                _attempt(report, lambda drive=drive: put_back([drive]))  # type: ignore[misc]
        except StorqualError as problem:
            _keep(report, problem)


def _put_back(
    targets: Mapping[str, DriveTarget], memory: Memory, tools: Tools, report: _Report, *, check: bool
) -> None:
    """Saved pages first, since writing them sets the current ones too."""
    steps = [
        (ModePages(tools.runner, save=True, sysfs=tools.sysfs), memory.saved_pages, _SAVED_PAGE),
        (ModePages(tools.runner, sysfs=tools.sysfs), memory.pages, ""),
        (Queues(tools.sysfs), memory.queues, ""),
    ]
    for subsystem, values, suffix in steps:
        declared = {drive: values[drive] for drive in targets if drive in values}
        if not declared:
            continue
        try:
            outcome = carry_out(subsystem, targets, declared, check=check, save=lambda _before: None)
        except StorqualError as problem:
            _keep(report, problem)
            continue
        report.settings += outcome.settings
        report.steps += [] if check else outcome.steps
        report.read_back.update(
            {f"{entry.name}{suffix}@{entry.drive}": entry.read_back for entry in outcome.settings}
        )
    for drive in sorted(memory.file_systems & targets.keys()):
        record = restore_part(tools.runner, tools.machine or Machine(), drive, targets[drive].node, check=check)
        report.settings.append(record)
        report.read_back[f"{FILE_SYSTEM}@{drive}"] = record.read_back
    report.read_back.update({f"claim@{drive}": memory.claims.get(drive) for drive in targets})
