# SPDX-License-Identifier: Apache-2.0
"""The NVRAM of adapters: the tool that keeps it, its words, and the start of the driver that reads them.

What is known against a value is found before the first write: a name that the adapter does not keep, a value that it
cannot hold, an id that a drive has, syntax that the tool does not confirm, a drive in use behind an adapter whose
driver must start again.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Collection, Mapping, Sequence

from ..host.kernel_log import KernelLog, texts
from ..host.reach import AdapterFunction, drives_of_function, find_adapters, refuse_when_used
from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.machine import Machine, read_attribute
from ..kit.quantities import is_whole
from ..tools import TOOLS
from ..tools.capabilities import Spelling, Value, offers
from ..tools.dc390 import EepromImage
from .driver import bind_unbound, driver_follows, forget_start, note_starts, parameter_for, pending_starts, rebind
from .engine import (
    Separate,
    SettingPlan,
    StepOutcome,
    Values,
    apply,
    declared_by_owner,
    lock_for,
    plan,
    refuse_problems,
    saver,
)

TOOL_OF_DRIVER = {
    "am53c974": "dc390",
    "qla2xxx": "qaucli",
    "lpfc": "hbacmd",
    **dict.fromkeys(("mptsas", "mptspi", "mptfc", "mpt2sas", "mpt3sas"), "lsiutil"),
    "megaraid_sas": "storcli",
}
"""The tool that keeps the settings of a driver's adapters, where one is known."""


# the PCI address is the index of an adapter whose tool is no program
_BY_ADDRESS = ("dc390",)
THROTTLE = "execution_throttle"
"""The setting that a driver may bring about in another way than the NVRAM."""


@dataclass(frozen=True)
class Backend:
    """A tool that keeps settings of one adapter; `index` is the tool's word for the adapter."""

    name: str
    tool: ModuleType
    index: str

    @property
    def spellings(self) -> Mapping[str, Spelling]:
        spellings: Mapping[str, Spelling] = self.tool.SETTINGS
        return spellings

    def read(self, runner: Runner) -> Mapping[str, Value]:
        """The settings that this adapter shows. Raises ToolError."""
        values: Mapping[str, Value] = self.tool.read_settings(runner, self.index)
        return values

    def objection(self, runner: Runner, name: str, value: Value) -> str:
        """Why a value cannot be written; empty when it can. Raises ToolError."""
        if not hasattr(self.tool, "write_setting"):
            return f"{self.name} only reads it here"
        if not self.spellings[name].write:
            return f"how {self.name} sets it is not verified, so it is not tried; set it with the vendor's own menu"
        return str(self.tool.objection(runner, self.index, name, value)) if hasattr(self.tool, "objection") else ""

    def write(self, runner: Runner, name: str, value: Value) -> None:
        """Write one setting. Raises ToolError, BadInputError."""
        self.tool.write_setting(runner, self.index, name, value)


def backend_of(runner: Runner, place: AdapterFunction) -> Backend | None:
    """The tool for an adapter: the inventory's, else its driver's usual one; None when there is none.

    Raises ToolError when the tool cannot be asked or does not see the adapter, which is known by its PCI address and
    never by the order in which a tool lists it.
    """
    name = _tool_name(place)
    if not name:
        return None
    tool = TOOLS[name]()
    if name in _BY_ADDRESS:
        return Backend(name, tool, place.pci)
    seen = tool.read_facts(runner).adapters
    fitting = [adapter.index for adapter in seen if adapter.pci == place.pci]
    if len(fitting) != 1:
        listed = ", ".join(adapter.pci or "no address" for adapter in seen) or "none"
        raise ToolError(f"{name} shows {len(fitting)} adapters at {place.pci} (it shows: {listed})")
    return Backend(name, tool, fitting[0])


def _tool_name(place: AdapterFunction) -> str:
    for name in (place.tool, TOOL_OF_DRIVER.get(place.driver, "")):
        if name in TOOLS and "settings" in offers(TOOLS[name]()):
            return name
    return ""


def beside(place: AdapterFunction, name: str, *, stored: bool) -> str:
    """The driver's own parameter that does what `name` means, where NVRAM does not or is not there; else empty."""
    parameter = parameter_for(place.module, "lun") if name == THROTTLE else None
    if parameter is None or (stored and not driver_follows(place.driver, name)):
        return ""
    return f"{parameter.module}.{parameter.name}"


# esp_scsi, which am53c974 is built on, says so when it takes an adapter
_ESP_ID = re.compile(r"\bSCSI ID (\d+)\s*$")
_STORED = "stored in the adapter"


def log_lines(device: str = "/dev/kmsg") -> list[str]:
    """All records that the kernel's log still holds, as lines; none when it cannot be read."""
    log = KernelLog(device, whole=True)
    try:
        return texts(log.read())
    finally:
        log.close()


def reported_id(lines: Sequence[str], pci: str) -> int | None:
    """The SCSI id that the driver of the adapter at `pci` said it read, the last time it said so; None: never."""
    ids = [match.group(1) for line in lines if f" {pci}: " in line and (match := _ESP_ID.search(line))]
    return int(ids[-1]) if ids else None


def effect_of(
    machine: Machine, place: AdapterFunction, name: str, value: object, log: Callable[[], Sequence[str]]
) -> tuple[bool | None, str]:
    """Whether the driver works with `value`, and how that is known. None: not shown. `log` reads the kernel's log."""
    ignored = driver_follows(place.driver, name)
    if ignored:
        return False, f"read back from the adapter, and not in effect: {ignored}"
    look = SHOWN.get((place.driver, name))
    return look(machine, place, value, log) if look else (None, _STORED)


Log = Callable[[], Sequence[str]]


def _host_id(machine: Machine, place: AdapterFunction, value: object, log: Log) -> tuple[bool | None, str]:
    del machine
    seen = reported_id(log(), place.pci)
    if seen is None:
        return (None, "the kernel's log no longer holds what the driver read when it started")
    return seen == value, f"the driver started with SCSI id {seen} (kernel log)"


def _tags(machine: Machine, place: AdapterFunction, value: object, log: Log) -> tuple[bool | None, str]:
    """am53c974 gives the number to each drive that takes tagged commands as its queue depth."""
    del log
    depths: dict[str, int] = {}
    for drive in drives_of_function(machine, [place.pci]):
        device = Path(machine.path(f"/sys/block/{drive.name}/device"))
        depth = read_attribute(device / "queue_depth")
        if read_attribute(device / "queue_type") == "simple" and depth and is_whole(depth):
            depths[drive.id] = int(depth)
    if not depths:
        return None, "no drive behind it takes tagged commands, so nothing could show it"
    wrong = {drive: depth for drive, depth in depths.items() if depth != value}
    if wrong:
        return False, "queue depths of its drives: " + ", ".join(f"{drive} {depth}" for drive, depth in wrong.items())
    return True, f"the driver gave {len(depths)} drives a queue depth of {value}"


SHOWN: Mapping[tuple[str, str], Callable[[Machine, AdapterFunction, object, Log], tuple[bool | None, str]]] = {
    ("am53c974", "host_scsi_id"): _host_id,
    ("am53c974", "max_tags"): _tags,
}
"""What shows a word in effect, by driver and name."""


IMAGE = "image"
"""The whole EEPROM, remembered and put back as if it were a setting, whatever it holds now."""


@dataclass(frozen=True)
class NvramBench:
    """The bench that the step works on; other values are for tests."""

    runner: Runner
    machine: Machine = field(default_factory=Machine)
    start_driver: Callable[[Machine, str], None] = rebind
    log: Callable[[], list[str]] = log_lines


@dataclass(frozen=True)
class NvramRequest:
    """What is asked: settings by adapter alias, the inventory's adapters, and those to be as they were found.

    `start_driver` false writes and leaves the driver alone: the values count from its next start. `start`: adapters
    whose driver starts again in any case, because the session that follows is a start of its own.
    """

    nvram: Mapping[str, Mapping[str, object]]
    adapters: Mapping[str, Any]
    state_dir: str
    run: str
    check: bool = False
    start_driver: bool = True
    as_found: Mapping[str, Collection[str]] = field(default_factory=dict)
    start: Collection[str] = ()


class Nvram(Separate):
    """How the words of adapters are read and written; `in_image` are names that a written image sets, too."""

    section = "nvram"
    owned_by = "adapter"

    def __init__(self, bench: NvramBench, in_image: Collection[str] = ()) -> None:
        self._bench = bench
        self._in_image = tuple(in_image)
        self._backends: dict[str, Backend | None] = {}

    def backend(self, place: AdapterFunction) -> Backend | None:
        """The tool that keeps an adapter's settings, asked for once. Raises ToolError."""
        if place.pci not in self._backends:
            self._backends[place.pci] = backend_of(self._bench.runner, place)
        return self._backends[place.pci]

    def read(self, place: AdapterFunction, names: Sequence[str]) -> Values:
        """The words that the adapter shows; with the image also what it holds, where that makes sense."""
        backend = self.backend(place) if names else None
        if backend is None or not any(name == IMAGE or name in backend.spellings for name in names):
            return {}
        values: Mapping[str, Any]
        if IMAGE in names:
            now = backend.tool.read_image(backend.index, self._bench.machine.path("/sys"))
            values = {**(now.values() if now.valid else {}), IMAGE: now.hex}
        else:
            values = backend.read(self._bench.runner)
        return {name: values[name] for name in names if name in values}

    def objections(self, place: AdapterFunction, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """Names that are not kept or not shown, values that the tool or a drive's id rules out. Raises ToolError."""
        backend = self.backend(place) if wanted else None
        if IMAGE in wanted:
            # what the image holds was read from this adapter
            return []
        kept = backend.spellings if backend is not None else {}
        problems = _not_kept(place, backend, [name for name in wanted if name not in kept])
        for name, value in wanted.items():
            if backend is None or name not in kept:
                continue
            if name not in now:
                problems.append(f"it does not show nvram.{name}, so it cannot be read back")
            elif now[name] != value:
                objection = backend.objection(self._bench.runner, name, value)
                problems += [f"nvram.{name} cannot be {value}: {objection}"] if objection else []
                problems += self._taken(place, name, value)
        return problems

    def _taken(self, place: AdapterFunction, name: str, value: object) -> list[str]:
        return [
            f"nvram.host_scsi_id {value} is the id of drive {drive.id} ({drive.hctl})"
            for drive in (drives_of_function(self._bench.machine, [place.pci]) if name == "host_scsi_id" else ())
            if drive.hctl.split(":")[2:3] == [str(value)]
        ]

    def disturbs(self, name: str) -> Collection[str]:
        return self._in_image if name == IMAGE else ()

    def write(self, place: AdapterFunction, values: Mapping[str, Any]) -> list[str]:
        """Write words, or the image; what was done. Raises ToolError."""
        backend, steps = self.backend(place), []
        assert backend is not None  # noqa: S101 - an adapter without a tool has an objection and is not written
        for name, value in values.items():
            if name == IMAGE:
                count = backend.tool.write_image(
                    backend.index, EepromImage.of_hex(value), self._bench.machine.path("/sys")
                )
                steps.append(f"{place.alias}: {count} words of its EEPROM put back")
            else:
                backend.write(self._bench.runner, name, value)
                steps.append(f"{place.alias}: nvram.{name} set to {value}")
        return steps

    def prove(self, place: AdapterFunction, name: str, value: object) -> tuple[bool | None, str]:
        backend = self.backend(place)
        if backend is None or name == IMAGE:
            return None, ""
        proven, proof = effect_of(self._bench.machine, place, name, value, self._bench.log)
        own = beside(place, name, stored=True)
        if own:
            # what the driver's own parameter does is shown by who sets it
            proven, proof = None, f"{proof}; {own} is set beside it"
        return proven, f"{proof} (spelling: {backend.spellings[name].verified})"

    def memory(self, each: SettingPlan[AdapterFunction]) -> Values:
        """What a restore needs beside old values: where the adapter is, and its image where the tool has one."""
        backend = self.backend(each.target)
        if backend is None:
            return {}
        memory: Values = {f"adapter@{each.owner}": {**asdict(each.target), "tool": backend.name}}
        if hasattr(backend.tool, "read_image"):
            image = backend.tool.read_image(backend.index, self._bench.machine.path("/sys")).hex
            memory[f"nvram.{IMAGE}@{each.owner}"] = image
        return memory


def _not_kept(place: AdapterFunction, backend: Backend | None, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    listed = ", ".join(f"nvram.{name}" for name in names)
    if backend is None:
        return [f"no tool here keeps NVRAM settings of driver {place.driver or '(none)'} ({listed} declared)"]
    known = ", ".join(backend.spellings)
    return [f"{backend.name} does not keep {listed}; of such settings it keeps {known}"]


def provision_nvram(request: NvramRequest, bench: NvramBench) -> dict[str, Any]:
    """Make adapters as declared; the module's result.

    `throttle` in the result: execution throttles by alias that only a parameter of the driver brings about. Raises
    BadInputError, ToolError, GuardRefusalError (nothing was written) or PartialError (something was).
    """
    purpose = "NVRAM of adapters"
    declared = {
        alias: {name: value for name, value in values.items() if value is not None}
        for alias, values in declared_by_owner("nvram", request.nvram, request.as_found, request.state_dir).items()
    }
    unread = pending_starts(bench.machine, request.state_dir)
    if unread and not request.check:
        with lock_for(request.state_dir, request.run, purpose, check=False):
            bind_unbound(bench.machine, unread)
    wanted = [alias for alias, values in declared.items() if values]
    places = find_adapters(bench.machine, request.adapters, dict.fromkeys([*wanted, *request.start]))
    nvram = Nvram(bench)
    plans, throttle = [], {}
    for alias, place in places.items():
        entry, beside_it = _plan(nvram, place, declared.get(alias, {}))
        plans.append(entry)
        throttle.update({alias: beside_it} if beside_it is not None else {})
    refuse_problems([problem for entry in plans for problem in entry.problems])
    starting = [
        entry.target
        for entry in plans
        if entry.owner in request.start or (request.start_driver and (entry.changes or entry.target.pci in unread))
    ]
    if not request.check and not starting and not any(entry.changes for entry in plans):
        return apply(nvram, plans, save=lambda _memory: None).result(throttle=throttle)
    with lock_for(request.state_dir, request.run, purpose, check=request.check) as lock:
        outcome = _set(nvram, plans, starting, bench, request.state_dir, saver(lock))
    return outcome.result(throttle=throttle)


def _plan(nvram: Nvram, place: AdapterFunction, values: Values) -> tuple[SettingPlan[AdapterFunction], object]:
    """The plan of one adapter, and the throttle that is left to its driver's own parameter (None: none is)."""
    try:
        backend = nvram.backend(place) if values else None
    except ToolError as problem:
        return SettingPlan(place.alias, place, {}, {}, problems=(f"adapter {place.alias}: {problem}",)), None
    kept = backend.spellings if backend is not None else {}
    stored = {name: value for name, value in values.items() if name in kept or not beside(place, name, stored=False)}
    throttle = values.get(THROTTLE) if beside(place, THROTTLE, stored=THROTTLE in kept) else None
    return plan(nvram, place.alias, place, stored), throttle


def _set(
    nvram: Nvram,
    plans: Sequence[SettingPlan[AdapterFunction]],
    starting: Sequence[AdapterFunction],
    bench: NvramBench,
    state_dir: str,
    save: Callable[[Values], None] | None,
) -> StepOutcome:
    """Save, write, start drivers, read back, look at the effect; without `save` only say what would be done."""
    if starting:
        what = "its adapter's driver must start again to read the NVRAM"
        places = [place.pci for place in starting]
        refuse_when_used(bench.machine, places, state_dir, what, scope="adapter")
    if save is None:
        outcome = apply(nvram, plans, save=None)
        return replace(
            outcome, steps=[*outcome.steps, *(f"{place.alias}: its driver would start again" for place in starting)]
        )

    def noted(memory: Values) -> None:
        save(memory)
        note_starts(bench.machine, state_dir, [place.pci for place in starting])

    def start(steps: list[str]) -> None:
        for place in starting:
            bench.start_driver(bench.machine, place.pci)
            forget_start(bench.machine, state_dir, place.pci)
            steps.append(f"{place.alias}: driver {place.driver} started again")

    return apply(nvram, plans, save=noted, also=nvram.memory, afterwards=start)


def restore_nvram(
    alias: str, known: Mapping[str, Any], values: Mapping[str, Any], bench: NvramBench, state_dir: str, *, check: bool
) -> StepOutcome:
    """One adapter's NVRAM as it was, its driver started again when that changed anything. Raises StorqualError.

    `known` is the adapter as it was remembered, `values` its words and, where there is one, its image.
    """
    if not known:
        raise ToolError(f"adapter {alias}: its NVRAM was changed, and where it is was not remembered")
    texts = {name: str(known[name]) for name in ("pci", "driver", "module", "tool")}
    place = AdapterFunction(alias, hosts=tuple(known["hosts"]), **texts)
    if not check:
        bind_unbound(bench.machine, [place.pci])
    nvram = Nvram(bench, [name for name in values if name != IMAGE])
    entry = plan(nvram, alias, place, values)
    refuse_problems(entry.problems)
    starts = entry.changes or place.pci in pending_starts(bench.machine, state_dir)
    save = None if check else lambda _memory: None
    return _set(nvram, [entry], [place] if starts else [], bench, state_dir, save)
