# SPDX-License-Identifier: Apache-2.0
"""Module options of one module: what is declared, what modprobe would give it, what the loaded one runs with.

Whether a module must be loaded again is decided here, from what was read; nothing here writes.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Mapping, Sequence

from ..host.in_use import system_disks
from ..host.sysfs import read_drives
from ..kit.command import Runner
from ..kit.kernel import Options, parse_options, same_value
from ..kit.machine import Machine, read_attribute
from ..tools import kmod
from .driver import adapters_of_module, holders_of, parameter_of


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
        """Whether the loaded module runs with the declared value."""
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
        """Whether the loaded module runs with other values than those declared."""
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
    found: dict[str, dict[str, str]] = {}
    for word in machine.text("/proc/cmdline").split():
        head, equals, value = word.partition("=")
        module, dot, name = head.partition(".")
        if dot and equals:
            found.setdefault(module.replace("-", "_"), {})[name] = value
    return found


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
