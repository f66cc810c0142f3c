# SPDX-License-Identifier: Apache-2.0
"""The work of the module that sets adapters' NVRAM: read, plan, refuse or save and write, start the driver, prove.

Every adapter is read and planned before the first one is written. What is known against a value is found then: a name
that the adapter does not keep, a value that it cannot hold, an id that a drive has, syntax that the tool does not
confirm, a drive in use behind an adapter whose driver must start again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Callable, Collection, Mapping, Sequence

from ..host.adapters import Place, behind, find_adapters, refuse_when_used
from ..kit.command import Runner
from ..kit.errors import BadInputError, StorqualError, ToolError
from ..kit.lock import hold_lock
from ..kit.machine import Machine
from ..kit.results import PartialError, Provisioned
from ..kit.saved_state import read_saved, remember
from ..kit.setting_values import check_section
from ..tools.capabilities import Value
from .driver import bind_unbound, forget_start, note_starts, pending_starts, rebind
from .drives import LOCK_WAIT_S
from .nvram_backend import THROTTLE, Backend, backend_of, beside, effect_of, log_lines


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


@dataclass(frozen=True)
class _Plan:
    """One adapter: what it has, what it should have; `throttle` is left to the driver's own parameter."""

    place: Place
    backend: Backend | None
    declared: Mapping[str, Any]
    before: Mapping[str, Value]
    problems: tuple[str, ...] = ()
    throttle: Any = None

    @property
    def changes(self) -> dict[str, Any]:
        return {
            name: value for name, value in self.declared.items() if value is not None and self.before[name] != value
        }


def provision_nvram(request: NvramRequest, bench: NvramBench) -> dict[str, Any]:
    """Make adapters as declared; the module's result.

    `throttle` in the result: execution throttles by alias that only a parameter of the driver brings about. Raises
    BadInputError, ToolError, GuardRefusalError (nothing was written) or PartialError (something was).
    """
    declared = _declared(request)
    unread = pending_starts(bench.machine, request.state_dir)
    if unread and not request.check:
        with hold_lock(Path(request.state_dir), request.run, "NVRAM of adapters", wait_s=LOCK_WAIT_S):
            bind_unbound(bench.machine, unread)
    places = find_adapters(bench.machine, request.adapters, dict.fromkeys([*declared, *request.start]))
    plans = [_plan(bench, place, declared.get(alias, {})) for alias, place in places.items()]
    problems = [problem for plan in plans for problem in plan.problems]
    if problems:
        raise ToolError("\n".join(problems))
    writing = [plan for plan in plans if plan.changes]
    starting = [plan for plan in plans if _starts(request, plan, unread)]
    if starting:
        what = "its adapter's driver must start again to read the NVRAM"
        refuse_when_used(bench.machine, [plan.place.pci for plan in starting], request.state_dir, what)
    if request.check or not (writing or starting):
        settings, steps = _records(bench, plans, {}), _foreseen(writing, starting)
    else:
        settings, steps = _carry_out(request, bench, plans, writing, starting)
    return {
        "changed": bool(writing or starting),
        "settings": [entry.record() for entry in settings],
        "steps": steps,
        "drift": [
            f"{plan.place.alias} nvram.{name}: {plan.before[name]}, declared {value}"
            for plan in writing
            for name, value in plan.changes.items()
        ],
        "diff": {"before": _text(writing, before=True), "after": _text(writing, before=False)},
        "throttle": {plan.place.alias: plan.throttle for plan in plans if plan.throttle is not None},
    }


def _starts(request: NvramRequest, plan: _Plan, unread: Collection[str]) -> bool:
    """Whether an adapter's driver starts again in this step."""
    written = bool(plan.changes) or plan.place.pci in unread
    return plan.place.alias in request.start or (request.start_driver and written)


def _text(plans: Sequence[_Plan], *, before: bool) -> str:
    return "".join(
        f"{plan.place.alias} nvram.{name}: {plan.before[name] if before else value}\n"
        for plan in plans
        for name, value in plan.changes.items()
    )


def _foreseen(writing: Sequence[_Plan], starting: Sequence[_Plan]) -> list[str]:
    steps = [f"{plan.place.alias}: {', '.join(plan.changes)} would be written" for plan in writing]
    return steps + [f"{plan.place.alias}: its driver would start again" for plan in starting]


def _declared(request: NvramRequest) -> dict[str, dict[str, Any]]:
    """Declared values, checked, and those that must be as they were found. Raises BadInputError with all problems."""
    saved = read_saved(Path(request.state_dir)) if request.as_found else None
    found: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for alias, values in request.nvram.items():
        found[alias] = _checked(alias, values, problems)
    if problems:
        raise BadInputError(problems)
    for alias, names in request.as_found.items():
        for name in names:
            value = saved.values.get(f"nvram.{name}@{alias}") if saved else None
            # what nobody changed is as it was found
            if value is not None:
                found.setdefault(alias, {}).setdefault(name, value)
    return {alias: values for alias, values in found.items() if values}


def _checked(alias: str, values: Mapping[str, object], problems: list[str]) -> dict[str, Any]:
    """The values of one adapter in plain form; what is wrong with them is added to `problems`."""
    try:
        return check_section("nvram", values)
    except BadInputError as problem:
        problems += [f"{alias}: {line}" for line in problem.problems]
        return {}


def _plan(bench: NvramBench, place: Place, values: Mapping[str, Any]) -> _Plan:
    """Read one adapter; what stands against a value is in `problems`. No tool is asked when nothing is declared."""
    if not values:
        return _Plan(place, None, {}, {})
    try:
        backend = backend_of(bench.runner, place)
        kept = backend.spellings if backend is not None else {}
        stored = {name: value for name, value in values.items() if name in kept}
        before = backend.read(bench.runner) if backend is not None and stored else {}
        problems = [*_not_kept(place, backend, [name for name in values if name not in kept])]
        for name, value in stored.items():
            if name not in before:
                problems.append(f"adapter {place.alias}: it does not show nvram.{name}, so it cannot be read back")
            elif before[name] != value and backend is not None:
                problems += _objections(bench, place, backend, name, value)
    except ToolError as problem:
        return _Plan(place, None, {}, {}, (f"adapter {place.alias}: {problem}",))
    throttle = values.get(THROTTLE) if beside(place, THROTTLE, stored=THROTTLE in stored) else None
    return _Plan(place, backend, stored, before, tuple(problems), throttle)


def _not_kept(place: Place, backend: Backend | None, names: Sequence[str]) -> list[str]:
    """Names that neither the adapter's tool nor its driver has."""
    without = [name for name in names if not beside(place, name, stored=False)]
    if not without:
        return []
    listed = ", ".join(f"nvram.{name}" for name in without)
    if backend is None:
        driver = place.driver or "(none)"
        return [f"adapter {place.alias}: no tool here keeps NVRAM settings of driver {driver} ({listed} declared)"]
    known = ", ".join(backend.spellings)
    return [f"adapter {place.alias}: {backend.name} does not keep {listed}; of such settings it keeps {known}"]


def _objections(bench: NvramBench, place: Place, backend: Backend, name: str, value: Any) -> list[str]:  # noqa: ANN401
    problems = []
    objection = backend.objection(bench.runner, name, value)
    if objection:
        problems.append(f"adapter {place.alias}: nvram.{name} cannot be {value}: {objection}")
    if name == "host_scsi_id":
        problems += [
            f"adapter {place.alias}: nvram.host_scsi_id {value} is the id of drive {drive.id} ({drive.hctl})"
            for drive in behind(bench.machine, [place.pci])
            if drive.hctl.split(":")[2:3] == [str(value)]
        ]
    return problems


def _carry_out(
    request: NvramRequest,
    bench: NvramBench,
    plans: Sequence[_Plan],
    writing: Sequence[_Plan],
    starting: Sequence[_Plan],
) -> tuple[list[Provisioned], list[str]]:
    """Save, write, read back, start drivers, look at the effect."""
    steps: list[str] = []
    after: dict[str, Mapping[str, Value]] = {}
    with hold_lock(Path(request.state_dir), request.run, "NVRAM of adapters", wait_s=LOCK_WAIT_S) as lock:
        remember(lock, {key: value for plan in writing for key, value in _memory(plan, bench).items()})
        note_starts(bench.machine, request.state_dir, [plan.place.pci for plan in starting])
        try:
            for plan in writing:
                steps += _write(plan, bench, after)
            for plan in starting:
                bench.start_driver(bench.machine, plan.place.pci)
                forget_start(bench.machine, request.state_dir, plan.place.pci)
                steps.append(f"{plan.place.alias}: driver {plan.place.driver} started again")
        except StorqualError as problem:
            left = _records(bench, plans, _reread(writing, bench))
            raise PartialError(str(problem), steps=steps, settings=left) from problem
    settings = _records(bench, plans, after)
    wrong = [
        f"{entry.adapter}: {entry.name} was set to {entry.declared} and reads back {entry.read_back}"
        for entry in settings
        if not entry.as_declared
    ]
    if wrong:
        raise PartialError("\n".join(wrong), steps=steps, settings=settings)
    return settings, steps


def _memory(plan: _Plan, bench: NvramBench) -> dict[str, Any]:
    """Old values, the whole image where the tool has one, and how to find the adapter without an inventory."""
    place, backend = plan.place, plan.backend
    if backend is None:
        return {}
    memory: dict[str, Any] = {f"adapter@{place.alias}": {**asdict(place), "tool": backend.name}}
    memory.update({f"nvram.{name}@{place.alias}": plan.before[name] for name in plan.changes})
    if hasattr(backend.tool, "read_image"):
        memory[f"nvram.image@{place.alias}"] = backend.tool.read_image(backend.index, bench.machine.path("/sys")).hex
    return memory


def _write(plan: _Plan, bench: NvramBench, after: dict[str, Mapping[str, Value]]) -> list[str]:
    """Write one adapter's changes and read it back; what was done."""
    steps: list[str] = []
    if plan.backend is not None:
        for name, value in plan.changes.items():
            plan.backend.write(bench.runner, name, value)
            steps.append(f"{plan.place.alias}: nvram.{name} set to {value}")
        after[plan.place.alias] = plan.backend.read(bench.runner)
    return steps


def _reread(plans: Sequence[_Plan], bench: NvramBench) -> dict[str, Mapping[str, Value]]:
    """What can still be read after a failure."""
    found: dict[str, Mapping[str, Value]] = {plan.place.alias: {} for plan in plans}
    for plan in plans:
        # the failure that is being reported names the adapter; one that no longer answers has no state to tell
        with suppress(StorqualError):
            found[plan.place.alias] = plan.backend.read(bench.runner) if plan.backend is not None else {}
    return found


def _records(
    bench: NvramBench, plans: Sequence[_Plan], after: Mapping[str, Mapping[str, Value]]
) -> list[Provisioned]:
    """One record per declared setting, with what the driver shows of it."""
    lines = bench.log() if any(plan.declared for plan in plans) else []
    records = []
    for plan in plans:
        now = after.get(plan.place.alias, plan.before)
        for name, declared in plan.declared.items():
            proven, proof = effect_of(bench.machine, plan.place, name, now.get(name), lines)
            own = beside(plan.place, name, stored=True)
            spelling = plan.backend.spellings[name].verified if plan.backend is not None else ""
            if own:
                # what the driver's own parameter does is shown by who sets it
                proven, proof = None, f"{proof}; {own} is set beside it"
            records.append(
                Provisioned(
                    f"nvram.{name}",
                    declared,
                    plan.before[name],
                    now.get(name),
                    adapter=plan.place.alias,
                    changed=plan.before[name] != now.get(name),
                    proven=proven,
                    proof=f"{proof} (spelling: {spelling})",
                )
            )
    return records
