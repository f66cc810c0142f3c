# SPDX-License-Identifier: Apache-2.0
"""Put a bench back as it was found: everything in saved.json, then proof, then saved.json goes.

A restore is the same subsystems with the values that were remembered. What is remembered carries the claim that
allowed the change, so that neither the inventory nor the drop is needed, at any later moment. A thing that cannot be
restored does not stop the others; the memory stays then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from ..guard.claims import read_claims
from ..host.block_stack import DriveTarget
from ..kit.command import Runner
from ..kit.durable import fsync_folder, make_folder
from ..kit.errors import BadInputError, GuardRefusalError, StorqualError
from ..kit.lock import BenchLock, SavedState, hold_lock, read_saved, remove_after_proof, saved_path
from ..kit.machine import Machine
from ..kit.results import PartialError, Provisioned
from .boot import System, restore_boot, saved_boot, trial_mark
from .driver_build import builds_in_memory, is_former, restore_build, take_builds_off
from .drives import LOGINS, Access, DriveSettings, is_page, restore_part, restore_part_of_volume, usable_drives
from .drives import MEMORY as FILE_SYSTEM
from .engine import LOCK_WAIT_S, StepOutcome, Subsystem, T, apply, lock_for, plan
from .firmware.flash import Step, put_firmware_back
from .kernel_package import forget_list, remove_added
from .logins import Sessions
from .multipath import restore_multipath
from .nvram import IMAGE, NvramBench, restore_nvram
from .options import OptionsBench, restore_options
from .os_tuning import restore_interrupts, restore_processors
from .package_services import PREFIX, give_back
from .raid.layout import Backends, restore_volume, volumes_of

_ASIDE = "accepted"
_KNOWN = (
    *("claim@", f"{FILE_SYSTEM}@", "drive.", "raid.", "boot.", "packages.", "firmware.", "adapter@", "nvram.", "os."),
    *("multipath.", "build.", "options."),
)


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
        return OptionsBench(self.runner, self.machine or Machine())

    @property
    def nvram(self) -> NvramBench:
        return NvramBench(self.runner, self.machine or Machine())


def remembered(values: Mapping[str, Any], section: str) -> dict[str, dict[str, Any]]:
    """The values of keys `<section>.<name>@<owner>`, by owner and name."""
    memory: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        setting, _, owner = key.partition("@")
        head, _, name = setting.partition(".")
        if head == section and name and owner:
            memory.setdefault(owner, {})[name] = value
    return memory


@dataclass
class _Report:
    settings: list[Provisioned] = field(default_factory=list)
    firmware: list[Mapping[str, Any]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    read_back: dict[str, Any] = field(default_factory=dict)

    def attempt(self, work: Callable[[], StepOutcome | None]) -> None:
        """Do one part and keep what came of it; after a failure the other parts go on."""
        try:
            outcome = work()
        except StorqualError as problem:
            self.failures.append(str(problem))
            if isinstance(problem, PartialError):
                self.steps += problem.steps
                self.settings += problem.settings
            return
        if outcome is not None:
            self.settings += outcome.settings
            self.steps += outcome.steps
            self.read_back.update({f"{entry.name}@{entry.owner}": entry.read_back for entry in outcome.settings})


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
    unknown = [key for key in saved.values if "@" not in key or not key.startswith(_KNOWN)]
    report = _Report(failures=[f"{key} was saved, but nothing here can restore it" for key in unknown])
    with lock_for(state_dir, saved.run, "restore", check=check) as lock:
        pending, reboot = _Restore(saved, state_dir, tools, report, lock).run()
        if lock is not None and not reboot and not report.failures:
            report.attempt(lambda: remove_after_proof(lock, report.read_back))
            forget_list(state_dir)
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


@dataclass(frozen=True)
class _Restore:
    """One restore; without a lock (check mode) it only reads."""

    saved: SavedState
    state_dir: str
    tools: Tools
    report: _Report
    lock: BenchLock | None

    @property
    def check(self) -> bool:
        return self.lock is None

    @property
    def values(self) -> Mapping[str, Any]:
        return self.saved.values

    def run(self) -> tuple[str, bool]:
        """Put back what can be; what firmware still needs, and whether the bench must boot before the rest."""
        firmware = {key: value for key, value in self.values.items() if key.startswith("firmware.")}
        if firmware:
            # a drive that is a member of a volume is not flashed
            self.volumes()
        pending = self.firmware(firmware)
        former = self.former_builds()
        if self.boot() or former or pending:
            return pending, True
        self.packages()
        if not firmware:
            # first: while a drive is a member of a volume, nobody may have it
            self.volumes()
        # loading a driver again gives its drives new queues, so drives come last
        self.adapters()
        self.os()
        self.multipath()
        self.sessions()
        self.drives()
        return pending, False

    def firmware(self, memory: Mapping[str, Any]) -> str:
        """Put firmware back, before the boot that it may need; what it needs: reboot, power cycle, nothing."""
        if not memory:
            return ""
        step = Step(self.state_dir, self.saved.run, check=self.check)
        back = put_firmware_back(memory, step, self.lock, runner=self.tools.runner, machine=self.tools.machine)
        self.report.firmware += back.settings
        self.report.steps += back.steps
        self.report.failures += back.failures
        self.report.read_back.update(back.read_back)
        return back.pending

    def former_builds(self) -> bool:
        """Take builds that came with a boot off the disk; whether the former ones need a boot to run."""
        boots = []

        def take_off() -> StepOutcome:
            steps, boot = take_builds_off(self.values, self.tools.options, self.state_dir, check=self.check)
            boots.append(boot)
            return StepOutcome([], steps)

        self.report.attempt(take_off)
        return any(boots)

    def boot(self) -> bool:
        """Put the boot loader back; whether the bench must boot to be on its former kernel."""
        memory = remembered(self.values, "boot").get("bench", {})
        if not memory:
            return False
        system, report = self.tools.system, self.report
        before = saved_boot(system)
        wanted = {name: memory.get(name) for name in before}
        if self.check:
            other = _other_boot({**before, "default_initramfs": wanted["default_initramfs"]}, wanted)
            return other or bool(trial_mark(system.arguments()))
        report.attempt(lambda: StepOutcome([], restore_boot(system, wanted)))
        now = saved_boot(system)
        report.read_back.update({f"boot.{name}@bench": value for name, value in now.items() if name in memory})
        if now["default"] == wanted["default"]:
            # how the default is named is not the point: where a newer kernel was installed, it must be named now
            report.read_back["boot.saved_entry@bench"] = wanted["saved_entry"]
        report.settings += [
            Provisioned(f"boot.{name}", value, before[name], now[name], changed=before[name] != now[name])
            for name, value in wanted.items()
            if name not in ("custom", "images")
        ]
        # also of the kernel that was found: a trial panics where the bench's own boot would not, and a kernel that is
        # installed in it takes over its words
        again = _other_boot(now, wanted) or bool(trial_mark(system.arguments()))
        # words that were there when the bench was found and went with a boot are nothing that a run left behind
        gone = [name for name in ("added", "initramfs") if name in memory and not again]
        report.read_back.update({f"boot.{name}@bench": wanted[name] for name in gone})
        return again

    def packages(self) -> None:
        """Remove the kernels that the run installed: the former one runs again."""
        saved = remembered(self.values, "boot").get("bench", {})
        for key, added in self.values.items():
            if key.startswith("packages.") and not self.check:
                release = key[len("packages.") :].rpartition("@")[0]

                def take_off(key: str = key, release: str = release, added: Mapping[str, Any] = added) -> StepOutcome:
                    steps = remove_added(self.tools.system, release, added, saved, self.state_dir)
                    self.report.read_back[key] = added
                    return StepOutcome([], steps)

                self.report.attempt(take_off)

    def volumes(self) -> None:
        """Take away the volumes that the run made, each for itself: one that cannot go does not keep the others."""
        backends = self.tools.volumes(self.state_dir, self.saved.run)
        claims = self.claims()
        for key, value in self.values.items():
            if key.startswith("raid.") and isinstance(value, dict):

                def put_back(key: str = key, value: Mapping[str, Any] = value) -> None:
                    record, steps = restore_volume(key, value, claims, backends, check=self.check)
                    self.report.settings.append(record)
                    self.report.steps += steps
                    if record.as_declared:
                        self.report.read_back[key] = value

                self.report.attempt(put_back)

    def claims(self) -> dict[str, Any]:
        return {key.partition("@")[2]: value for key, value in self.values.items() if key.startswith("claim@")}

    def adapters(self) -> None:
        """Put driver builds, module options and NVRAM back; one that fails does not hold the others up."""
        report, tools = self.report, self.tools
        for owner, was in builds_in_memory(self.values).items():
            report.attempt(partial(restore_build, owner, was, tools.options, self.state_dir, check=self.check))
            if is_former(tools.options, owner.partition("/")[0], was):
                report.read_back[f"build.module@{owner}"] = was

        def options() -> StepOutcome:
            outcome, read_back = restore_options(self.values, tools.options, self.state_dir, check=self.check)
            report.read_back.update(read_back)
            return outcome

        report.attempt(options)
        for alias, values in remembered(self.values, "nvram").items():
            known = self.values.get(f"adapter@{alias}") or {}
            put_back = partial(restore_nvram, alias, known, values, tools.nvram, self.state_dir, check=self.check)
            report.attempt(put_back)
            report.read_back[f"adapter@{alias}"] = known
        # a whole EEPROM is proof, and nothing to read
        report.settings = [entry for entry in report.settings if entry.name != f"nvram.{IMAGE}"]

    def os(self) -> None:
        """Interrupts first: irqbalance, where it ran, is started after them and may move them as it likes."""
        machine = self.tools.machine or Machine()
        memory = remembered(self.values, "os")
        bench = memory.pop("bench", {})
        for alias, values in memory.items():
            known = self.values.get(f"adapter@{alias}") or {}
            self.report.attempt(partial(restore_interrupts, alias, known, values, machine, check=self.check))
            self.report.read_back[f"adapter@{alias}"] = known
        units = [name[len(PREFIX) :] for name in bench if name.startswith(PREFIX)]
        bench = {name: value for name, value in bench.items() if not name.startswith(PREFIX)}
        if units:
            self.report.attempt(lambda: give_back(units, self.tools.runner, check=self.check))
        if bench:
            self.report.attempt(lambda: restore_processors(bench, machine, self.tools.runner, check=self.check))

    def multipath(self) -> None:
        """What multipathd overrides, before the drives, whose timers it may write."""
        memory = remembered(self.values, "multipath").get("bench", {})
        if memory:
            self.report.attempt(lambda: restore_multipath(memory, self.tools.options, check=self.check))

    def sessions(self) -> None:
        """Sessions and controllers made anew as they were, before the drives, which come back with other queues."""
        for drive, values in remembered(self.values, "drive").items():
            former = {name: value for name, value in values.items() if name in LOGINS}
            if former:
                self.report.attempt(partial(self._session, drive, former))

    def _session(self, drive: str, former: Mapping[str, Any]) -> StepOutcome:
        subsystem = Sessions(self.tools.runner, self.tools.machine or Machine(), self.state_dir)
        with self.tools.access(read_claims({drive: self.claims().get(drive, {})}), self.state_dir, self.saved.run):
            pass
        return self._set(subsystem, drive, drive, former)

    def drives(self) -> None:
        """Put all drives back at once, or one by one: a drive that is gone or in use must not hold the others up."""
        claims, values = self.claims(), remembered(self.values, "drive")
        parts = {key.partition("@")[2] for key in self.values if key.startswith(f"{FILE_SYSTEM}@")}
        drives = sorted({*claims, *values})
        for uuid in sorted(parts - {*drives}):
            self.report.attempt(partial(self._part_of_volume, uuid, claims))

        def put_back(chosen: Sequence[str]) -> None:
            read = read_claims({drive: claims.get(drive, {}) for drive in chosen})
            with self.tools.access(read, self.state_dir, self.saved.run) as targets:
                for drive, target in targets.items():
                    self.drive(target, values.get(drive, {}), has_part=drive in parts)
                    self.report.read_back[f"claim@{drive}"] = claims.get(drive)

        try:
            if drives:
                put_back(drives)
        except (BadInputError, GuardRefusalError):
            # nothing was written: the guard decides before it lets anybody touch a drive
            for drive in drives:
                self.report.attempt(partial(put_back, [drive]))
        except StorqualError as problem:
            self.report.failures.append(str(problem))

    def drive(self, target: DriveTarget, values: Mapping[str, Any], *, has_part: bool) -> None:
        """What the drive keeps itself, then the kernel's queue, then a part that a batch left: each for itself."""
        tools = self.tools
        for kind in (True, False):
            declared = {name: value for name, value in values.items() if is_page(name) is kind and name not in LOGINS}
            if declared:
                subsystem = DriveSettings(tools.runner, sysfs=tools.sysfs)
                self.report.attempt(partial(self._set, subsystem, target.id, target, declared))
        if has_part:
            machine = tools.machine or Machine()
            self.report.attempt(
                lambda: StepOutcome(
                    [restore_part(tools.runner, machine, target.id, target.node, check=self.check)], []
                )
            )

    def _part_of_volume(self, uuid: str, claims: Mapping[str, Mapping[str, Any]]) -> StepOutcome:
        """What a batch left of a file system on a volume that stays; first, because it keeps the volume busy."""
        machine, read, run = self.tools.machine or Machine(), read_claims(claims), self.saved.run
        record = restore_part_of_volume(self.tools.runner, machine, read, self.state_dir, run, uuid, check=self.check)
        return StepOutcome([record], [])

    def _set(self, subsystem: Subsystem[T], drive: str, target: T, declared: Mapping[str, Any]) -> StepOutcome:
        drive_plan = plan(subsystem, drive, target, declared)
        outcome = apply(subsystem, [drive_plan], save=None if self.check else lambda _memory: None)
        return StepOutcome(outcome.settings, [] if self.check else outcome.steps)


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


def _other_boot(now: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether another kernel runs than was found, or the same one with words or the initramfs of a trial."""
    # an image that a boot would not change is none that a trial left behind
    image = now["initramfs"] != wanted["initramfs"] and now["initramfs"] != now["default_initramfs"]
    return bool(now["running"] != wanted["running"] or image or set(now["added"]) - set(wanted["added"] or ()))
