# SPDX-License-Identifier: Apache-2.0
"""What the kernel does with processors: the frequency governor, and which CPUs take an adapter's interrupts.

irqbalance would move interrupts again, so it is stopped while an affinity is declared, and started by the restore if
it ran. A driver that starts again gets its interrupts anew, so this comes after everything that loads one.
"""

from __future__ import annotations

import re
import stat
import time
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Callable, Collection, ContextManager, Iterator, Mapping, Sequence

from ..guard.claims import claims_of_adapters
from ..host.counters import adapter_vectors, interrupts_by_cpu
from ..host.reach import AdapterFunction, drives_of_function, find_adapters
from ..host.watchdog import CHECK_S
from ..kit.command import Runner, run
from ..kit.direct_reads import random_reads
from ..kit.errors import MissingToolError, ToolError
from ..kit.lock import read_saved
from ..kit.machine import Machine, write_attribute
from ..kit.quantities import is_whole
from ..kit.results import PartialError
from ..kit.settings import check_section
from .drives import Access, claims_for, usable_drives
from .engine import (
    Call,
    Proof,
    Separate,
    SettingPlan,
    StepOutcome,
    Values,
    apply,
    lock_for,
    plan,
    refuse_problems,
    saver,
)

_CPUS = "/sys/devices/system/cpu"
_SERVICE = "irqbalance"
ACTIVE, INACTIVE = "active", "inactive"


def parse_cpus(text: str) -> list[int]:
    """The numbers of `0-3,8`, as the kernel prints a list of CPUs. Raises ToolError."""
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        if not is_whole(first) or not is_whole(last or first):
            raise ToolError(f"found {text[:40]!r} where the kernel prints a list of CPUs")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


_SYSCTLS = "/proc/sys/kernel"
_DETECTORS = "detectors"


def detectors(hung_task_s: int) -> Mapping[str, int]:
    """The kernel's variables, in the order of writing, with which one that was booted as ever ends its own hangs."""
    panics = ("panic_on_oops", "softlockup_panic", "hardlockup_panic")
    # the limit before what it causes
    hung = {"hung_task_timeout_secs": hung_task_s, "hung_task_check_interval_secs": CHECK_S, "hung_task_panic": 1}
    return {"panic": 10, **dict.fromkeys(panics, 1), **hung, "sysrq": 1, "unknown_nmi_panic": 1}


class Processors(Separate):
    """The bench's own settings: the governor of all CPUs (by CPU where they differ), and whether irqbalance runs.

    Also what its kernel does about a hang, as `name=value name=value`, of the variables that this kernel has.
    """

    section = "os"
    owned_by = ""
    watched: Sequence[str] = ("governor",)

    def __init__(self, machine: Machine, runner: Runner) -> None:
        self._machine = machine
        self._runner = runner

    def _places(self) -> dict[str, str]:
        names = [name for name in self._machine.names(_CPUS) if re.fullmatch(r"cpu\d+", name)]
        places = {name: f"{_CPUS}/{name}/cpufreq/scaling_governor" for name in names}
        return {name: place for name, place in places.items() if self._machine.exists(place)}

    def read(self, target: str, names: Sequence[str]) -> Values:
        """The values now; a bench without cpufreq has no governor. Raises ToolError."""
        del target
        values: Values = {}
        governors = {name: self._machine.text(place) for name, place in self._places().items()}
        if "governor" in names and governors:
            values["governor"] = governors if len(set(governors.values())) > 1 else next(iter(governors.values()))
        if _SERVICE in names:
            values[_SERVICE] = self._service()
        if _DETECTORS in names:
            values[_DETECTORS] = _pairs({name: self._machine.text(path) for name, path in self._detectors().items()})
        return values

    def _detectors(self) -> dict[str, str]:
        places = {name: f"{_SYSCTLS}/{name}" for name in detectors(0)}
        return {name: place for name, place in places.items() if self._machine.exists(place)}

    def arm(self, hung_task_s: int, *, nmi: bool) -> str:
        """What `detectors` is then, of the variables that this kernel has; without `nmi` an NMI does what it did."""
        files = self._detectors()
        wanted = {name: str(value) for name, value in detectors(hung_task_s).items() if name in files}
        kept = () if nmi else [name for name in files if "nmi" in name]
        return _pairs({**wanted, **{name: self._machine.text(files[name]) for name in kept}})

    def _service(self) -> str:
        try:
            state = self._runner(["systemctl", "is-active", _SERVICE], timeout=60.0).stdout.strip()
        except MissingToolError:
            state = ""
        return ACTIVE if state in (ACTIVE, "activating", "reloading") else INACTIVE

    def objections(self, target: str, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """A bench without cpufreq, a governor that it does not have, an irqbalance that systemd did not start."""
        del target
        problems = []
        governor = wanted.get("governor")
        if governor is not None and "governor" not in now:
            problems.append(f"it has no cpufreq ({_CPUS}/cpu*/cpufreq), so os.governor {governor} cannot be set")
        elif isinstance(governor, str):
            for name, place in self._places().items():
                known = self._machine.text(place.replace("scaling_governor", "scaling_available_governors")).split()
                if governor not in known:
                    problems.append(f"{name} has no governor {governor}; it has {', '.join(known) or 'none'}")
                    break
        if wanted.get(_SERVICE) == INACTIVE and now.get(_SERVICE) == INACTIVE and self._runs_by_hand():
            problems.append("irqbalance runs, but not as a service; stop it, or it will move the interrupts again")
        return problems

    def _runs_by_hand(self) -> bool:
        numbers = (name for name in self._machine.names("/proc") if is_whole(name))
        return any(self._machine.text(f"/proc/{number}/comm") == _SERVICE for number in numbers)

    def write(self, target: str, values: Mapping[str, Any]) -> list[str]:
        """Write; what was done. Raises ToolError."""
        steps = []
        if "governor" in values:
            for name, place in self._places().items():
                given = values["governor"]
                write_attribute(self._machine.path(place), given if isinstance(given, str) else given[name])
            text = values["governor"] if isinstance(values["governor"], str) else "what each CPU had"
            steps.append(f"{target}: governor set to {text}")
        if _SERVICE in values:
            word = "start" if values[_SERVICE] == ACTIVE else "stop"
            self._runner(["systemctl", word, _SERVICE], timeout=60.0).expect()
            steps.append(f"{target}: irqbalance {'started' if word == 'start' else 'stopped'}")
        for pair in str(values.get(_DETECTORS) or "").split():
            name, _, value = pair.partition("=")
            write_attribute(self._machine.path(self._detectors()[name]), value)
        if _DETECTORS in values:
            steps.append(f"{target}: kernel.{values[_DETECTORS].replace(' ', ' kernel.')}")
        return steps

    def prove(self, target: str, name: str, value: object) -> tuple[bool | None, str]:
        del target, value
        return (True, "read from systemd") if name == _SERVICE else (None, "")

    def watch(self, target: str, name: str, value: Any, seconds: float) -> Proof | None:  # noqa: ANN401 - of a drop
        del target, name, seconds
        if not isinstance(value, str):
            return None
        looks = []
        for place in self._places().values():
            names = ("scaling_cur_freq", "scaling_min_freq", "scaling_max_freq")
            looks.append([self._machine.number(place.replace("scaling_governor", name)) or 0 for name in names])
        driver = self._machine.text(f"{_CPUS}/cpu0/cpufreq/scaling_driver")
        return judge_frequency(value, driver, looks)


def _pairs(values: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


_NEAR = 0.1


def judge_frequency(governor: str, driver: str, looks: Sequence[Sequence[int]]) -> Proof:
    """Whether CPUs (kHz now, least, most) run as a governor with one fixed frequency has them; else not shown."""
    if not looks or not all(all(look) for look in looks):
        return None, "this kernel does not tell the frequency of each CPU"
    speeds = ", ".join(dict.fromkeys(f"{now / 1000:.0f} of {most / 1000:.0f} MHz" for now, _, most in looks))
    if governor == "performance":
        high = all(now >= (1 - _NEAR) * most for now, _, most in looks)
        return (True, f"all CPUs run at their most: {speeds}") if high else (None, f"CPUs run at {speeds}")
    # the P-state drivers have a governor of this name that raises the frequency with the load
    if governor == "powersave" and "pstate" not in driver:
        low = all(now <= (1 + _NEAR) * least for now, least, _ in looks)
        return (True, f"all CPUs run at their least: {speeds}") if low else (None, f"CPUs run at {speeds}")
    return None, f"CPUs run at {speeds}, and the governor changes that with the load"


Reads = Callable[[AdapterFunction], ContextManager[int]]
"""Reads of the claimed drives behind an adapter while it is entered; how many drives that are."""


class Interrupts(Separate):
    """Which CPUs take the interrupts of an adapter: a list for all its vectors, or a list each where they differ."""

    section = "os"
    owned_by = "adapter"
    watched: Sequence[str] = ("irq_affinity",)

    def __init__(self, machine: Machine, reads: Reads = lambda _place: nullcontext(0)) -> None:
        self._machine = machine
        self._reads = reads

    def _vectors(self, place: AdapterFunction) -> tuple[str, ...]:
        return adapter_vectors([place.pci], Path(self._machine.path("/sys")))

    def _files(self, place: AdapterFunction) -> list[str]:
        return [f"/proc/irq/{vector}/smp_affinity_list" for vector in self._vectors(place)]

    def read(self, place: AdapterFunction, names: Sequence[str]) -> Values:
        """The affinity now; an adapter without interrupts has none. Raises ToolError."""
        lists = [parse_cpus(self._machine.text(file)) for file in self._files(place)] if names else []
        if not lists:
            return {}
        return {"irq_affinity": lists[0] if all(cpus == lists[0] for cpus in lists) else lists}

    def objections(self, place: AdapterFunction, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """CPUs that are not there, interrupts that the kernel manages itself, another number of them than before."""
        cpus = wanted.get("irq_affinity")
        if cpus is None:
            return []
        if "irq_affinity" not in now:
            return [f"the adapter at {place.pci} has no interrupts now (driver {place.driver or '(none)'})"]
        groups = cpus if isinstance(cpus[0], list) else [cpus]
        problems = missing_cpus(self._machine, sorted({cpu for group in groups for cpu in group}))
        files = self._files(place)
        if len(groups) > 1 and len(groups) != len(files):
            problems.append(f"it had {len(groups)} interrupts with affinities of their own, and has {len(files)} now")
        modes = (Path(self._machine.path(file)).stat().st_mode for file in files)
        if now["irq_affinity"] != cpus and not all(mode & stat.S_IWUSR for mode in modes):
            problems.append(
                "the kernel spreads its interrupts itself and does not allow them to be set (managed interrupts)"
            )
        return problems

    def write(self, place: AdapterFunction, values: Mapping[str, Any]) -> list[str]:
        """Write; what was done. Raises ToolError."""
        cpus, files = values["irq_affinity"], self._files(place)
        groups = cpus if isinstance(cpus[0], list) else [cpus] * len(files)
        for file, group in zip(files, groups):
            write_attribute(self._machine.path(file), ",".join(map(str, group)))
        return [f"{place.alias}: {len(files)} interrupts given to CPUs {cpus}"]

    def prove(self, place: AdapterFunction, name: str, value: object) -> tuple[bool | None, str]:
        """Where the kernel tells which CPU takes an interrupt, that must be one of those."""
        del name
        allowed = value if isinstance(value, list) else []
        groups = allowed if allowed and isinstance(allowed[0], list) else [allowed] * len(self._files(place))
        shown = []
        for file, group in zip(self._files(place), groups):
            effective = self._machine.text(file.replace("smp_affinity_list", "effective_affinity_list"))
            if effective:
                shown.append(set(parse_cpus(effective)) <= set(group))
        if len(shown) < len(groups) or not shown:
            return None, "the kernel does not tell which CPU takes each interrupt"
        return all(shown), f"the kernel has {sum(shown)} of {len(shown)} interrupts on these CPUs"

    def watch(self, target: AdapterFunction, name: str, value: Any, seconds: float) -> Proof | None:  # noqa: ANN401 - of a drop
        del name
        cpus, vectors = value, self._vectors(target)
        groups = cpus if isinstance(cpus[0], list) else [cpus] * len(vectors)
        before = self._counted(vectors)
        with self._reads(target) as drives:
            time.sleep(seconds if drives else 0.0)
        after = self._counted(vectors)
        if not drives:
            return None
        allowed = {vector: set(group) for vector, group in zip(vectors, groups)}
        grown = {
            (vector, cpu): count - before.get(vector, {}).get(cpu, 0)
            for vector, counts in after.items()
            for cpu, count in counts.items()
        }
        return judge_interrupts(grown, allowed, drives)

    def _counted(self, vectors: Sequence[str]) -> Mapping[str, Mapping[int, int]]:
        return interrupts_by_cpu(self._machine.text("/proc/interrupts"), vectors)


def judge_interrupts(
    grown: Mapping[tuple[str, int], int], allowed: Mapping[str, Collection[int]], drives: int
) -> Proof:
    """Whether interrupts (by vector and CPU) came on allowed CPUs only. None: none came, so nothing is shown."""
    right = sum(count for (vector, cpu), count in grown.items() if cpu in allowed[vector])
    wrong = sum(grown.values()) - right
    finding = (
        f"{right} interrupts on these CPUs and {wrong} on others while {drives} drives were read (/proc/interrupts)"
    )
    return (None if right + wrong == 0 else wrong == 0), finding


def missing_cpus(machine: Machine, wanted: Sequence[int]) -> list[str]:
    """A sentence for CPUs that are not online. Raises ToolError."""
    online = parse_cpus(machine.text(f"{_CPUS}/online"))
    gone = [str(cpu) for cpu in wanted if cpu not in online]
    return [f"os.irq_affinity names CPU {', '.join(gone)}; online are {online}"] if gone else []


@dataclass(frozen=True)
class OsRequest:
    """What is asked: governor, CPUs by adapter alias, names to be as they were found.

    `prove_s`: seconds of reads per adapter that show which CPUs take its interrupts.
    """

    adapters: Mapping[str, Any]
    state_dir: str
    run: str
    governor: str = ""
    irq_affinity: Mapping[str, Sequence[int]] = field(default_factory=dict)
    as_found: Collection[str] = ()
    check: bool = False
    prove_s: float = 0.0


def provision_os(
    request: OsRequest, machine: Machine, runner: Runner = run, access: Access = usable_drives
) -> dict[str, Any]:
    """Make the bench as declared; the module's result. Raises StorqualError of all kinds (see `engine.apply`)."""
    bench, wanted = _declared(request)
    saved = read_saved(Path(request.state_dir)) if request.as_found else None
    for key, value in (saved.values if saved else {}).items():
        name, _, owner = key.partition("@")
        section, _, name = name.partition(".")
        if section == "os" and name in request.as_found:
            (bench if owner == "bench" else wanted.setdefault(owner, {})).setdefault(name, value)
    if wanted:
        bench[_SERVICE] = INACTIVE
    places = find_adapters(machine, request.adapters, wanted) if wanted else {}
    processors = Processors(machine, runner)
    interrupts = Interrupts(machine, lambda place: _reads(request, machine, access, place))
    cpu_plans = [plan(processors, "bench", "bench", bench)] if bench else []
    irq_plans = [plan(interrupts, alias, place, wanted[alias]) for alias, place in places.items()]
    problems = [reason for entry in cpu_plans for reason in entry.problems]
    refuse_problems(problems + [reason for entry in irq_plans for reason in entry.problems])
    with lock_for(request.state_dir, request.run, "processors and interrupts", check=request.check) as lock:
        first = apply(processors, cpu_plans, save=saver(lock), prove_s=request.prove_s)
        try:
            second = apply(interrupts, irq_plans, save=saver(lock), also=_memory, prove_s=request.prove_s)
        except PartialError as problem:
            steps, settings = [*first.steps, *problem.steps], [*first.settings, *problem.settings]
            raise PartialError(str(problem), steps=steps, settings=settings) from problem
    settings, steps = [*first.settings, *second.settings], [*first.steps, *second.steps]
    return StepOutcome(settings, steps, [*first.changes, *second.changes]).result()


def arm_detectors(call: Call, hung_task_s: int, machine: Machine, runner: Runner, *, nmi: bool) -> dict[str, Any]:
    """Have a kernel that was booted as ever panic where it hangs; the module's result. Raises StorqualError."""
    processors = Processors(machine, runner)
    plans = [plan(processors, "bench", "bench", {_DETECTORS: processors.arm(hung_task_s, nmi=nmi)})]
    with call.lock("detectors of hangs") as lock:
        return apply(processors, plans, save=saver(lock)).result()


_READERS = 4
_MOST_DRIVES = 4


@contextmanager
def _reads(request: OsRequest, machine: Machine, access: Access, place: AdapterFunction) -> Iterator[int]:
    """Random reads of some claimed drives behind an adapter, once the guard lets them be held."""
    present = {drive.id for drive in drives_of_function(machine, [place.pci])}
    claimed = [claim.id for claim in claims_of_adapters(request.adapters) if claim.id in present][:_MOST_DRIVES]
    if not claimed:
        yield 0
        return
    with access(claims_for(request.adapters, claimed, routes=True), request.state_dir, request.run) as targets:
        paths = [f"/dev/{target.node}" for target in targets.values()]
        with random_reads(paths, _READERS):
            yield len(paths)


def _declared(request: OsRequest) -> tuple[Values, dict[str, Values]]:
    """What is declared for the bench, and for each adapter. Raises BadInputError."""
    given: dict[str, object] = {"governor": request.governor} if request.governor else {}
    if request.irq_affinity:
        given["irq_affinity"] = request.irq_affinity
    bench: Values = check_section("os", given)
    affinity: Mapping[str, Any] = bench.pop("irq_affinity", {})
    return bench, {alias: {"irq_affinity": cpus} for alias, cpus in affinity.items()}


def refuse_impossible(request: OsRequest, machine: Machine, runner: Runner = run) -> None:
    """Raise ToolError for what no driver and no boot would change; nothing is touched."""
    bench, wanted = _declared(request)
    problems = list(plan(Processors(machine, runner), "bench", "bench", bench).problems)
    problems += missing_cpus(machine, sorted({cpu for values in wanted.values() for cpu in values["irq_affinity"]}))
    problems += [
        f"{alias!r} is no adapter of this bench's inventory" for alias in wanted if alias not in request.adapters
    ]
    refuse_problems(problems)


def _memory(each: SettingPlan[AdapterFunction]) -> Values:
    return {f"adapter@{each.owner}": asdict(each.target)}


def restore_interrupts(
    alias: str, known: Mapping[str, Any], values: Mapping[str, Any], machine: Machine, *, check: bool
) -> StepOutcome:
    """An adapter's interrupts on the CPUs that they were found on. Raises StorqualError."""
    if not known:
        raise ToolError(f"adapter {alias}: its interrupts were moved, and where it is was not remembered")
    place = AdapterFunction(
        alias, str(known["pci"]), str(known["driver"]), str(known["module"]), tuple(known["hosts"]), ""
    )
    interrupts = Interrupts(machine)
    return apply(interrupts, [plan(interrupts, alias, place, values)], save=None if check else lambda _memory: None)


def restore_processors(values: Mapping[str, Any], machine: Machine, runner: Runner, *, check: bool) -> StepOutcome:
    """The governors that were found, and irqbalance where it ran. Raises StorqualError."""
    processors = Processors(machine, runner)
    return apply(
        processors, [plan(processors, "bench", "bench", values)], save=None if check else lambda _memory: None
    )
