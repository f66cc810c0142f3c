# SPDX-License-Identifier: Apache-2.0
"""Module options: what is declared, what modprobe would give and what runs; loaded, kept in modprobe.d, and proven.

Whether a module must be loaded again is decided here, from what was read; nothing here writes.

The file is written after the module was loaded with the values and runs with them, so that a step that was cut short
is found by the next one: what is in the file is what runs, or will run with the next boot. What the file held when
the bench was found stays in it; what a run put there and the drop does not declare goes again, with its module loaded
as it was.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from ..host.in_use import system_disks
from ..host.reach import refuse_when_used
from ..host.sysfs import read_drives
from ..kit.command import Runner
from ..kit.durable import fsync_folder, make_folder, replace_bytes, replace_file
from ..kit.errors import ToolError
from ..kit.kernel import FILE, Options, compose, declared_options, in_file, parse_options, same_value
from ..kit.lock import read_saved, remember
from ..kit.machine import Machine, read_attribute
from ..kit.results import PartialError, Provisioned, partial_errors
from ..tools import kmod
from ..tools.capabilities import Packages
from .boot import booted_image
from .driver import (
    adapters_of_module,
    forget_start,
    holders_of,
    note_starts,
    parameter_of,
    pending_starts,
    reload_module,
)
from .engine import Call, SettingChange, StepOutcome, refuse_problems
from .initramfs import Initramfs, builds_in, with_file
from .package_services import packages_of


@dataclass(frozen=True)
class OptionValue:
    """One parameter: declared, as the loaded module shows it, as modprobe would give it, and by the command line.

    None: not shown, not configured, not on the command line.
    """

    name: str
    declared: str
    loaded: str | None
    configured: str | None
    cmdline: str | None

    @property
    def now(self) -> str | None:
        """What the module runs with, as far as that can be known: one that shows nothing runs with what it got."""
        return self.loaded if self.loaded is not None else self.configured

    @property
    def in_effect(self) -> bool:
        return self.now is not None and same_value(self.now, self.declared)


@dataclass(frozen=True)
class ModulePlan:
    """One module: its values, why it cannot be loaded again while the machine runs, and what forbids the step."""

    module: str
    values: tuple[OptionValue, ...]
    loaded: bool
    boot_reason: str = ""
    problems: tuple[str, ...] = ()

    @property
    def reloads(self) -> bool:
        return self.loaded and not all(value.in_effect for value in self.values)

    @property
    def boot_words(self) -> list[str]:
        """What the kernel's command line must carry where the module cannot be loaded again, else nothing."""
        if not self.boot_reason:
            return []
        on_line = all(value.cmdline is not None for value in self.values)
        if not self.reloads and not on_line:
            return []
        return [f"{self.module}.{value.name}={value.declared}" for value in self.values]

    @property
    def for_file(self) -> dict[str, str]:
        """What belongs into our file: all that the command line does not carry already."""
        return {value.name: value.declared for value in self.values if value.cmdline is None}


def read_values(machine: Machine, runner: Runner, options: Options) -> dict[str, tuple[OptionValue, ...]]:
    """The parameters of `options` as they are now. Raises ToolError."""
    configured = parse_options(kmod.show_config(runner))
    line = _cmdline(machine)
    return {
        module: tuple(
            OptionValue(
                name,
                value,
                kmod.loaded_parameter(module, name, machine.path("/sys")),
                configured.get(module, {}).get(name),
                line.get(module, {}).get(name),
            )
            for name, value in parameters.items()
        )
        for module, parameters in options.items()
    }


def _cmdline(machine: Machine) -> dict[str, dict[str, str]]:
    options: dict[str, dict[str, str]] = {}
    for word in machine.text("/proc/cmdline").split():
        head, equals, value = word.partition("=")
        module, dot, name = head.partition(".")
        if dot and equals:
            options.setdefault(module.replace("-", "_"), {})[name] = value
    return options


def plan_module(
    machine: Machine, runner: Runner, module: str, values: Sequence[OptionValue], release: str, state_dir: str
) -> ModulePlan:
    """What must happen to one module. Raises ToolError when it cannot be read; what is wrong is in `problems`."""
    build = kmod.on_disk(runner, [module], release)[module]
    if build is None:
        return ModulePlan(module, tuple(values), loaded=False, problems=(f"kernel {release} has no module {module}",))
    problems = [*_unknown(kmod.parameters(runner, module, release), module, values), *_out_of_range(module, values)]
    problems += [
        f"{module}.{value.name} is {value.cmdline} on the kernel's command line, which holds over modprobe's files; "
        f"{value.declared} is declared"
        for value in values
        if value.cmdline is not None and not same_value(value.cmdline, value.declared) and not _ours(machine)
    ]
    loaded = machine.exists(f"/sys/module/{module}")
    reason = "it is built into the kernel" if build.builtin else boot_reason(machine, module, state_dir)
    return ModulePlan(module, tuple(values), loaded, reason, tuple(problems))


def _ours(machine: Machine) -> bool:
    """Whether the running command line was written for a trial or kept by us: another boot changes it."""
    return any(
        word.startswith(("storqual.trial=", "storqual.kept=")) for word in machine.text("/proc/cmdline").split()
    )


def _unknown(known: Mapping[str, str], module: str, values: Sequence[OptionValue]) -> list[str]:
    problems = []
    for value in values:
        if value.name not in known:
            near = difflib.get_close_matches(value.name, known, n=2, cutoff=0.5)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            problems.append(f"module {module} has no parameter {value.name}{hint}")
    return problems


def _out_of_range(module: str, values: Sequence[OptionValue]) -> list[str]:
    problems = []
    for value in values:
        parameter = parameter_of(module, value.name)
        if parameter is None:
            continue
        try:
            number = int(value.declared, 0)
        except ValueError:
            problems.append(f"{module}.{value.name} is a number ({parameter.meaning}), {value.declared} is declared")
            continue
        low, high = parameter.minimum, parameter.maximum
        if (low is not None and number < low) or (high is not None and number > high):
            problems.append(f"{module}.{value.name} takes {low} to {high}, {number} is declared")
    return problems


def boot_reason(machine: Machine, module: str, state_dir: str) -> str:
    """Why a module cannot be taken out while the machine runs, as part of a sentence; empty when it can."""
    holders = holders_of(machine, module)
    if holders:
        return f"{', '.join(holders)} need{'s' if len(holders) == 1 else ''} it"
    adapters = adapters_of_module(machine, module)
    system = system_disks(machine, state_dir)
    for drive in read_drives(machine):
        if drive.adapter in adapters and drive.name in system:
            return f"{drive.name} behind it {system[drive.name]}"
    if not adapters and read_attribute(machine.path(f"/sys/module/{module}/refcnt")) not in (None, "0"):
        return "something uses it"
    return ""


def refuse_boot(plan: ModulePlan) -> str:
    """The sentence for a module that would have to be loaded again and cannot be."""
    words = " ".join(f"{plan.module}.{value.name}={value.declared}" for value in plan.values)
    return (
        f"module {plan.module} cannot be loaded again while the machine runs ({plan.boot_reason}): it takes a boot "
        f"with {words} on the kernel's command line, which the role provision does"
    )


Prove = Callable[[Sequence[Provisioned]], "list[Provisioned]"]
_OUR_FILE, _LOADED = "options.file@bench", "options.loaded@"


@dataclass(frozen=True)
class OptionsBench:
    """The bench that the step works on (other roots and releases are for tests)."""

    runner: Runner
    machine: Machine = field(default_factory=Machine)
    release: str = ""
    file: str = FILE

    @property
    def kernel(self) -> str:
        """The release of the kernel that is meant: the running one, unless another was named."""
        return self.release or self.running

    @property
    def path(self) -> Path:
        return Path(self.machine.path(self.file))

    def text(self) -> str | None:
        """What our file holds; None when there is none."""
        data = self.machine.read(self.file)
        return None if data is None else data.decode("utf-8", "replace")

    @property
    def running(self) -> str:
        return self.machine.text("/proc/sys/kernel/osrelease")

    @property
    def booted_image(self) -> str:
        """The initramfs of ours that the kernel was booted with; empty for the distribution's, or another kernel."""
        image = booted_image(self.machine.text("/proc/cmdline").split())
        return image if image and self.kernel == self.running and self.machine.exists(f"/boot/{image}") else ""

    @property
    def initramfs(self) -> Initramfs:
        """The kernel's initramfs as the distribution makes it."""
        return Initramfs(self.machine, self.runner, self.kernel)

    @property
    def initrd(self) -> str:
        """Its file; empty where there is none."""
        return self.initramfs.path

    @property
    def packages(self) -> Packages:
        return packages_of(self.machine, self.runner, self.running)


def boot_arguments(declared: Mapping[str, object], bench: OptionsBench, state_dir: str) -> list[str]:
    """What the kernel's command line must carry, because a module cannot be loaded again. Raises StorqualError.

    What is wrong with an option is not told here: what runs now may be another build, with other parameters.
    """
    options = declared_options(declared)
    return [word for plan in (_plans(bench, options, state_dir) if options else ()) for word in plan.boot_words]


def provision_options(
    declared: Mapping[str, object], call: Call, bench: OptionsBench, prove: Prove = list
) -> dict[str, Any]:
    """Have modules loaded with their options, and again after a boot; the module's result.

    `declared` are options by module, as a drop has them. Raises StorqualError of all kinds: BadInputError,
    GuardRefusalError (a drive behind it is used), ToolError (nothing was changed), PartialError (something was).
    """
    options = declared_options(declared)
    plans = _plans(bench, options, call.state_dir) if options else []
    refuse_problems([problem for plan in plans for problem in plan.problems])
    stuck = [refuse_boot(plan) for plan in plans if plan.reloads and plan.boot_reason]
    if not call.check:
        refuse_problems(stuck)
    saved = read_saved(Path(call.state_dir))
    work = _work(bench, plans, saved.values if saved else {}, call.state_dir)
    _refuse_used(bench, [*(plan.module for plan in work.reloading), *work.returning], call.state_dir)
    settings, steps = _records(plans, plans), work.foreseen(bench)
    if not call.check and steps:
        with call.lock("module options") as lock:
            if lock is not None:
                remember(lock, _memory(bench, plans))
            steps = []
            now = _carry_out(bench, plans, work, call.state_dir, steps)
            settings = _records(plans, now)
            _refuse_unlike(bench, now, settings, steps)
    if not call.check:
        settings = prove(settings)
    result = StepOutcome(settings, steps, _changes(plans)).result()
    result["changed"] = bool(steps or stuck)
    result["drift"] += [f"module options of {module}: not declared" for module in work.returning]
    return result


@dataclass(frozen=True)
class _Work:
    """Modules to load again with what is declared, our file as it must be, modules to load again as they were.

    `concerned`: modules whose options the file has, or had.
    """

    reloading: Sequence[ModulePlan]
    text: str | None
    writes: bool
    returning: Sequence[str]
    concerned: Sequence[str]

    def foreseen(self, bench: OptionsBench) -> list[str]:
        steps = [f"module {plan.module} would be loaded again" for plan in self.reloading]
        steps += [f"{bench.file} would be written"] if self.writes else []
        return steps + [f"module {module} would be loaded again as it was found" for module in self.returning]


def _work(bench: OptionsBench, plans: Sequence[ModulePlan], saved: Mapping[str, Any], state_dir: str) -> _Work:
    now = bench.text()
    originals = in_file(saved.get(_OUR_FILE, now))
    wanted = {module: dict(parameters) for module, parameters in originals.items()}
    for plan in plans:
        wanted.setdefault(plan.module, {}).update(plan.for_file)
    text = compose(wanted)
    declared = {plan.module for plan in plans}
    unfinished = pending_starts(bench.machine, state_dir)
    returning = [
        module
        for module, parameters in in_file(now).items()
        if module not in declared
        and parameters != wanted.get(module)
        and bench.machine.exists(f"/sys/module/{module}")
    ]
    # what an earlier run did not come to, named by module and not by adapter
    returning += sorted(each for each in unfinished - declared - set(returning) if ":" not in each)
    # a file that differs in its comments alone is somebody's, and is left as it is
    writes = in_file(text) != in_file(now)
    reloading = [plan for plan in plans if (plan.reloads or plan.module in unfinished) and not plan.boot_reason]
    return _Work(reloading, text, writes, returning, [*(plan.module for plan in plans), *returning])


def _plans(bench: OptionsBench, options: Options, state_dir: str) -> list[ModulePlan]:
    values = read_values(bench.machine, bench.runner, options)
    return [
        plan_module(bench.machine, bench.runner, module, parameters, bench.kernel, state_dir)
        for module, parameters in values.items()
    ]


def _changes(plans: Sequence[ModulePlan]) -> list[SettingChange]:
    return [
        SettingChange(
            "module option",
            f"{plan.module}.{value.name}",
            value.now if value.now is not None else "not set",
            value.declared,
        )
        for plan in plans
        for value in plan.values
        if not value.in_effect
    ]


def _refuse_used(bench: OptionsBench, modules: Sequence[str], state_dir: str) -> None:
    """Raise GuardRefusalError when a module that must be loaded again has a drive that somebody uses."""
    for module in modules:
        adapters = adapters_of_module(bench.machine, module)
        what = f"reloading {module} unloads it for a moment"
        refuse_when_used(bench.machine, adapters, state_dir, what)


def _carry_out(
    bench: OptionsBench, plans: Sequence[ModulePlan], work: _Work, state_dir: str, steps: list[str]
) -> list[ModulePlan]:
    """Load again, write the file, read back; `steps` is what was done, also when this raises."""
    options = {plan.module: {value.name: value.declared for value in plan.values} for plan in plans}

    def again(module: str, words: Sequence[str], how: str) -> None:
        reload_module(bench.machine, bench.runner, module, words)
        forget_start(bench.machine, state_dir, module)
        steps.append(f"module {module} loaded again {how}")

    note_starts(bench.machine, state_dir, [*(plan.module for plan in work.reloading), *work.returning])
    with partial_errors(steps, lambda: _records(plans, _plans(bench, options, state_dir))):
        for plan in work.reloading:
            words = [f"{value.name}={value.declared}" for value in plan.values]
            again(plan.module, words, f"with {' '.join(words)}")
        if work.writes:
            put_file(bench, work.text)
            steps.append(f"{bench.file} written")
            steps += refresh_initramfs(bench, work.concerned)
        for module in work.returning:
            again(module, (), "as it was found")
        return _plans(bench, options, state_dir) if plans else []


def _refuse_unlike(
    bench: OptionsBench, now: Sequence[ModulePlan], settings: Sequence[Provisioned], steps: Sequence[str]
) -> None:
    """Raise PartialError with every option that is not in effect, or would not be after the next load."""
    wrong = [
        f"{plan.module}.{value.name} was set to {value.declared} and reads back {value.now}"
        for plan in now
        if plan.loaded
        for value in plan.values
        if not value.in_effect
    ]
    wrong += [
        f"{plan.module}.{value.name} is {value.declared} in {bench.file}, and another file of modprobe makes it "
        f"{value.configured}"
        for plan in now
        for value in plan.values
        if value.configured is None or not same_value(value.configured, value.declared)
    ]
    if wrong:
        raise PartialError("\n".join(wrong), steps=steps, settings=settings)


def _memory(bench: OptionsBench, plans: Sequence[ModulePlan]) -> dict[str, Any]:
    memory: dict[str, Any] = {_OUR_FILE: bench.text()}
    for plan in plans:
        memory[f"{_LOADED}{plan.module}"] = {value.name: value.loaded for value in plan.values}
    return memory


def put_file(bench: OptionsBench, text: str | None) -> None:
    """Our file in modprobe.d with `text`, or no file for None; on the disk when this returns."""
    if text is not None:
        make_folder(bench.path.parent)
        replace_file(bench.path, text)
    elif bench.path.exists():
        bench.path.unlink()
        fsync_folder(bench.path.parent)


def refresh_initramfs(bench: OptionsBench, modules: Sequence[str]) -> list[str]:
    """Have the initramfs of the running kernel carry our file, where it carries one of the modules; what was done.

    A module that the initramfs loads gets the options of the initramfs. A bench that was booted with one of ours has
    them put into that one: the distribution's would be made with the build that lies on disk now. Raises ToolError.
    """
    if bench.booted_image:
        own = Path(bench.machine.path(f"/boot/{bench.booted_image}"))
        if any(builds_in(str(own), modules).values()):
            data = bench.machine.read(bench.file)
            replace_bytes(own, with_file(own.read_bytes(), bench.file.lstrip("/"), data))
            return [f"/boot/{bench.booted_image} carries {bench.file}"]
        return []
    initrd = bench.initrd
    image = bench.machine.path(initrd)
    if not initrd or not any(builds_in(image, modules).values()):
        return []
    line, files = bench.initramfs.make()
    name = bench.file.lstrip("/")
    packed = files.get(name)
    if (packed.decode("utf-8", "replace") if packed is not None else None) != bench.text():
        raise ToolError(f"`{line}` ended well, and {initrd} does not carry {bench.file} as it is")
    return [f"{initrd} made anew"]


def _records(before: Sequence[ModulePlan], after: Sequence[ModulePlan]) -> list[Provisioned]:
    """One record per option; an option that the module does not show is known by what modprobe gave it."""
    later = {(plan.module, value.name): value for plan in after for value in plan.values}
    return [_record(plan, value, later[plan.module, value.name]) for plan in before for value in plan.values]


def _record(plan: ModulePlan, old: OptionValue, new: OptionValue) -> Provisioned:
    now = old.declared if new.in_effect else new.now
    was = old.declared if old.in_effect else old.now
    note = (
        "the loaded module shows it" if new.loaded is not None else "modprobe passed it; the module does not show it"
    )
    return Provisioned(
        f"driver.options.{plan.module}.{old.name}",
        old.declared,
        was,
        now,
        changed=was != now,
        proven=True if new.loaded is not None and new.in_effect else None,
        proof=note if plan.loaded else f"module {plan.module} is not loaded; it will be with the next load",
    )


def restore_options(
    saved: Mapping[str, Any], bench: OptionsBench, state_dir: str, *, check: bool
) -> tuple[StepOutcome, dict[str, Any]]:
    """Our file as it was, and the modules that run with other options loaded again; what is read back, by key.

    `saved` are the values of saved.json. Raises StorqualError.
    """
    if _OUR_FILE not in saved:
        return StepOutcome([], []), {}
    loaded = {key[len(_LOADED) :]: values for key, values in saved.items() if key.startswith(_LOADED)}
    now = bench.text()
    had, has = in_file(saved[_OUR_FILE]), in_file(now)
    unfinished = pending_starts(bench.machine, state_dir)
    returning = [
        module
        for module, values in loaded.items()
        if module in unfinished
        or (
            bench.machine.exists(f"/sys/module/{module}")
            and (had.get(module) != has.get(module) or values != _shown(bench, module, values))
        )
    ]
    _refuse_used(bench, returning, state_dir)
    steps: list[str] = []
    if not check:
        work = _Work((), saved[_OUR_FILE], now != saved[_OUR_FILE], returning, list(loaded))
        _carry_out(bench, (), work, state_dir, steps)
    read_back: dict[str, Any] = {_OUR_FILE: bench.text()}
    settings = []
    for module, values in loaded.items():
        shown = _shown(bench, module, values)
        read_back[f"{_LOADED}{module}"] = shown
        for name, value in values.items():
            old, new = has.get(module, {}).get(name), in_file(bench.text()).get(module, {}).get(name)
            before = had.get(module, {}).get(name) if value is None else value
            after = new if value is None else shown[name]
            settings.append(Provisioned(f"driver.options.{module}.{name}", before, old, after, changed=old != after))
    return StepOutcome(settings, steps), read_back


def _shown(bench: OptionsBench, module: str, values: Mapping[str, str | None]) -> dict[str, str | None]:
    """What the loaded module shows of these parameters, spelled as in `values` where it means the same."""
    shown = {name: kmod.loaded_parameter(module, name, bench.machine.path("/sys")) for name in values}
    return {
        name: was if was is not None and now is not None and same_value(was, now) else now
        for (name, now), was in zip(shown.items(), values.values())
    }
