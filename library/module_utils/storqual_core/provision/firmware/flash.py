# SPDX-License-Identifier: Apache-2.0
"""Flash adapters and drives: input, guard, plan, lock, and an order of steps that a power cut cannot hurt.

The control node talks to the controller (Redfish); what it read of the firmware inventory is judged here, by the
rules of every other flash, and the guard is asked on the bench.

Everything is read and decided for all subjects before the first is written. Where the journal has a note, the last
run was cut: the image may be half written and is written again, or it is in and only waits to be started. What the
settings were before the first try stands in the note, so that they are compared with that and not with its leavings.
"""

from __future__ import annotations

import time
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Callable, ContextManager, Mapping, Sequence, Union, cast

from ...guard.claims import read_claims
from ...host.counters import read_error_counters
from ...host.kernel_log import KernelLog, LogRule, errors_of, find_all
from ...kit.command import Runner, run
from ...kit.direct_reads import random_reads
from ...kit.errors import BadInputError, StorqualError, ToolError
from ...kit.lock import BenchLock, read_saved, remember
from ...kit.machine import Machine, block_node, boot_id
from ...kit.results import PartialError, Provisioned
from ...tools import redfish
from ...tools.capabilities import ACTIVATIONS, ToolFacts
from ..driver import rebind
from ..engine import SettingChange, lock_for, refuse_problems
from ..engine import StepOutcome as Settled
from .flash_plan import (
    ACTIVATE,
    DOWNLOAD,
    DOWNLOADING,
    FINISH,
    NOTHING,
    FirmwareRequest,
    FlashPlan,
    JournalEntry,
    clear,
    make_plan,
    memory_key,
    note,
    read_journal,
)
from .subject import (
    Access,
    Adapters,
    Drives,
    FlashImage,
    FlashSubject,
    board_of,
    order_problem,
    read_image,
    same_version,
    tool_for,
)

# the controller shows no drive of an adapter, so whatever is behind it must be claimed and visible
_SHOWS_NOTHING = SimpleNamespace(read_facts=lambda _runner: ToolFacts())


def guard_adapter(access: Access, alias: str, adapters: Mapping[str, Mapping[str, Any]]) -> None:
    """Ask the guard whether one of a bench's adapters may be flashed. Raises ToolError, GuardRefusalError."""
    pci = str(adapters[alias].get("pci") or "").lower()
    if pci and not board_of(access.machine, pci):
        raise ToolError(f"adapter {alias}: there is no adapter at {pci}; correct its inventory")
    with Adapters(access, {alias: adapters[alias]}, adapters).hold(cast("Any", _SHOWS_NOTHING), write=True):
        pass


def judge_inventory(
    image: Mapping[str, Any],
    alias: str,
    entries: Sequence[Any],
    target: str,
    *,
    before: str = "",
    flashed: bool = False,
) -> dict[str, Any]:
    """Whether the declared version must be flashed (`needed`), the version that is there (`found`), drift, settings.

    After the flash (`flashed`) `before` is the version that was found first. Raises ToolError.
    """
    declared = str(image["version"])
    now = redfish.find_version(entries, target)
    needed = not same_version(now, declared)
    if needed and flashed:
        raise ToolError(f"{alias}: {declared} was written and the management controller tells {now}")
    wrong = order_problem(now, declared, list(image.get("from") or ()) or None) if needed else ""
    if wrong:
        raise ToolError(f"{alias}: {wrong}")
    record = Provisioned(
        name="firmware.firmware",
        declared=declared,
        before=before or now,
        read_back=now if needed else declared,
        adapter=alias,
        changed=not same_version(now, before or now),
    )
    if not needed:
        record = record.with_proof(proven=True, proof="the management controller tells it")
    drift = [f"{alias} firmware.firmware: {now}, declared {declared}"] if needed else []
    return {"changed": False, "needed": needed, "found": now, "drift": drift, "settings": [record.record()]}


def refuse_answer(alias: str, answer: str) -> None:
    """Raise ToolError with what the controller answered to a request that failed; nothing for an empty answer."""
    if not answer:
        return
    try:
        message = redfish.parse_error(answer)
    except ToolError:
        message = answer[:500]
    raise ToolError(f"{alias}: the management controller did not flash it: {message}")


_LINK_WAIT_S = 60.0
_POLL_S = 2.0


@dataclass
class FlashOutcome:
    """What was done; `pending` is what a bench still needs before it is proven: reboot, power cycle, or nothing."""

    settings: list[Provisioned] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    pending: str = ""
    changed: bool = False

    def result(self, plans: Sequence[FlashPlan], *, check: bool) -> dict[str, Any]:
        changes = [
            SettingChange(
                plan.subject.owner, f"firmware.{plan.request.image.component}", plan.found, plan.request.image.version
            )
            for plan in plans
            if _differs(plan)
        ]
        result = Settled(self.settings, self.steps, changes).result(pending=self.pending)
        result["changed"] = self.changed
        if self.pending and not check:
            # not there before the boot
            result["diff"]["after"] = ""
        return result


@dataclass(frozen=True)
class Flash:
    """What a flash works with: the bench's lock, its boot, what is remembered of an owner, the guard, how to rebind.

    `hold` is the guard over everything that is reached, entered to write an image and to start it; `rebind` has the
    kernel's driver let go of an adapter and take it again. `soak` reads what is behind a subject for a while and says
    what was seen, empty when nothing was asked; it raises ToolError.
    """

    lock: BenchLock
    boot_id: str
    memory: Callable[[str], Mapping[str, Any]]
    hold: Callable[[], ContextManager[Any]]
    rebind: Callable[[str], None]
    soak: Callable[[FlashSubject], str]
    clock: Callable[[], float]
    sleep: Callable[[float], None]


def _differs(plan: FlashPlan) -> bool:
    return not same_version(plan.found, plan.request.image.version)


def _drift(plan: FlashPlan) -> str:
    image = plan.request.image
    return f"{plan.subject.owner} firmware.{image.component}: {plan.found}, declared {image.version}"


def foreseen(plans: Sequence[FlashPlan]) -> FlashOutcome:
    """What a run without check mode would do."""
    words = {DOWNLOAD: "image would be written", ACTIVATE: "image would be started", FINISH: "would be proven"}
    outcome = FlashOutcome([_record(plan, plan.found) for plan in plans])
    outcome.steps = [f"{plan.subject.owner}: {words[plan.action]}" for plan in plans if plan.action in words]
    outcome.changed = bool(outcome.steps)
    return outcome


def carry_out(plans: Sequence[FlashPlan], flash: Flash) -> FlashOutcome:
    """Write, start and prove what the plans say. Raises ToolError (nothing was written) or PartialError.

    An image that needs a boot leaves `pending`; boot the bench, and `prove`.
    """
    refuse_problems([problem for plan in plans for problem in plan.problems])
    outcome = FlashOutcome()
    try:
        writing = [plan for plan in plans if plan.action == DOWNLOAD]
        if writing:
            with flash.hold():
                for plan in writing:
                    _write(plan, flash, outcome)
        for plan in plans:
            pending = _start(plan, flash, outcome)
            if pending:
                outcome.pending = max(outcome.pending or "none", pending, key=ACTIVATIONS.index)
                outcome.settings.append(_record(plan, _read(plan)))
            else:
                outcome.settings.append(_finish(plan, flash, outcome))
    except PartialError:
        raise
    except StorqualError as problem:
        if not outcome.changed:
            raise
        raise PartialError(str(problem), steps=outcome.steps, settings=_what_can_be_read(plans)) from problem
    return outcome


def prove(plans: Sequence[FlashPlan], flash: Flash) -> FlashOutcome:
    """After the boot: every image runs, and everything else is as before. Raises ToolError, PartialError.

    An image that does not run is noted as not written, so that the next run writes it again.
    """
    outcome = FlashOutcome()
    wrong: list[str] = []
    for plan in plans:
        if plan.problems and not plan.found:
            wrong += plan.problems
        elif plan.entry is not None and _differs(plan):
            note(flash.lock, plan.key, replace(plan.entry, phase=DOWNLOADING))
            wrong.append(
                f"{plan.subject.owner} runs {plan.found} after its boot, not {plan.request.image.version}: the image "
                "did not start; the next run writes it again"
            )
        elif _differs(plan):
            wrong.append(_drift(plan))
        else:
            outcome.settings.append(_finish(plan, flash, outcome))
    if wrong:
        raise PartialError("\n".join(wrong), steps=outcome.steps, settings=_what_can_be_read(plans))
    return outcome


def _write(plan: FlashPlan, flash: Flash, outcome: FlashOutcome) -> None:
    subject, request = plan.subject, plan.request
    image = request.image
    same = plan.entry is not None and plan.entry.sha256 == image.sha256
    entry = JournalEntry(
        phase=DOWNLOADING,
        tool=request.tool,
        component=image.component,
        found=plan.entry.found if plan.entry else plan.found,
        wanted=image.version,
        sha256=image.sha256,
        boot_id=flash.boot_id,
        tries=plan.entry.tries + 1 if plan.entry and same else 1,
        settings=plan.entry.settings if plan.entry else subject.settings(),
    )
    assert plan.back is not None  # noqa: S101 - a plan without a way back has a problem and is not carried out
    memory = {
        "version": entry.found,
        "image": plan.back.record(),
        "tool": request.tool,
        "activation": request.activation,
    }
    memory.update(flash.memory(subject.owner))
    remember(flash.lock, {plan.key: memory})
    note(flash.lock, plan.key, entry)
    # from here on a failure is one after the first write
    outcome.changed = True
    outcome.steps.append(f"{subject.owner}: began to write {image.component} {image.version}")
    seen = subject.tool.download(subject.runner, subject.index, plan.request.for_tool)
    outcome.steps += [f"{subject.owner}: {image.component} {image.version} written", *(seen or ())]
    note(flash.lock, plan.key, entry.downloaded())


def _start(plan: FlashPlan, flash: Flash, outcome: FlashOutcome) -> str:
    """Have a written image run; what it still needs from outside: reboot, power cycle, or nothing."""
    if plan.action not in (DOWNLOAD, ACTIVATE):
        return ""
    subject, image = plan.subject, plan.request.for_tool
    needs = subject.needs(image)
    if needs == "none" and same_version(_read(plan), image.version):
        return ""
    needs = max(needs, plan.request.activation, key=ACTIVATIONS.index)
    if needs != "reset":
        return "" if needs == "none" else needs
    if subject.starts_images:
        with flash.hold():
            subject.tool.activate(subject.runner, subject.index, image)
    elif subject.pci:
        with flash.hold():
            # nobody has the drives; held over it, they would come back under other names
            pass
        flash.rebind(subject.pci)
    else:
        return "reboot"
    outcome.changed = True
    outcome.steps.append(f"{subject.owner}: reset to start {image.version}")
    return ""


def _read(plan: FlashPlan) -> str:
    return plan.subject.versions().get(plan.request.image.component, "")


def _finish(plan: FlashPlan, flash: Flash, outcome: FlashOutcome) -> Provisioned:
    """Read the version back, compare the settings, put back what can be, soak, and forget the note."""
    owner, image = plan.subject.owner, plan.request.image
    version = _read(plan)
    record = _record(plan, version)
    entry = read_journal(flash.lock.state_dir).get(plan.key)
    if not same_version(version, image.version):
        if entry is not None:
            # what did not start is written once more
            note(flash.lock, plan.key, replace(entry, phase=DOWNLOADING))
        message = f"{owner}: {image.component} {image.version} was written and it runs {version or 'nothing'}"
        raise PartialError(message, steps=outcome.steps, settings=[record])
    if entry is None:
        return record.with_proof(proven=True, proof="the version was read from it")
    altered = _altered(plan.subject, entry.settings, flash)
    fixable = {name: value for name, value in altered.items() if not name.startswith("port.")}
    if fixable:
        outcome.steps += plan.subject.put_back(fixable)
        altered = _altered(plan.subject, entry.settings, flash)
    if altered:
        now = plan.subject.settings()
        lines = [f"{owner}: {name} was {value} and is {now.get(name, 'gone')}" for name, value in altered.items()]
        message = f"{owner}: {image.version} runs, but not everything is as before\n" + "\n".join(lines)
        raise PartialError(message, steps=outcome.steps, settings=[record])
    try:
        soaked = flash.soak(plan.subject)
    except ToolError as problem:
        message = f"{owner}: {image.version} runs, and {problem}"
        raise PartialError(message, steps=outcome.steps, settings=[record]) from problem
    clear(flash.lock, plan.key)
    outcome.changed = True
    count = len(entry.settings)
    proof = f"the version was read from it; {count} settings and links are as before"
    return record.with_proof(proven=True, proof=f"{proof}; {soaked}" if soaked else proof)


def _altered(subject: FlashSubject, before: Mapping[str, Any], flash: Flash) -> dict[str, Any]:
    """The former value of everything that differs; links get a minute to come up again, nothing tells when."""
    deadline = flash.clock() + _LINK_WAIT_S
    while True:
        now = subject.settings()
        altered = {name: value for name, value in before.items() if now.get(name) != value}
        if not any(name.startswith("port.") for name in altered) or flash.clock() >= deadline:
            return altered
        flash.sleep(_POLL_S)


def _record(plan: FlashPlan, version: str) -> Provisioned:
    image = plan.request.image
    declared = image.version
    before = plan.entry.found if plan.entry is not None else plan.found
    return Provisioned(
        name=f"firmware.{image.component}",
        declared=declared,
        before=before,
        # two spellings of one version are one version
        read_back=declared if same_version(version, declared) else version,
        drive=plan.subject.owner if plan.subject.target is not None else "",
        adapter="" if plan.subject.target is not None else plan.subject.owner,
        changed=not same_version(version, before),
    )


def _what_can_be_read(plans: Sequence[FlashPlan]) -> list[Provisioned]:
    records = []
    for plan in plans:
        # the failure that is being reported names it; what no longer answers has no version to tell
        with suppress(StorqualError):
            records.append(_record(plan, _read(plan)))
    return records


OFFERED = 4
"""Reads in flight per drive: enough to have an adapter queue commands."""


def soak(
    machine: Machine,
    names: Sequence[str],
    seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    log_device: str = "/dev/kmsg",
    rules: tuple[LogRule, ...] | None = None,
) -> str:
    """Read the drives with these kernel names for `seconds`; what was seen, as part of a sentence.

    `rules` are the shipped rules for the kernel's log, where the process has no data files (an Ansible module).

    Raises ToolError with everything that was wrong.
    """
    if not names:
        return "nothing behind it to read"
    paths = {name: machine.path(block_node(name)) for name in names}
    with random_reads(list(paths.values()), 1):
        # the first command after a reset is answered with a unit attention, which the kernel counts
        sleep(0.1)
    before = {name: read_error_counters(machine, name) for name in names}
    with closing(KernelLog(log_device)) as log:
        with random_reads(list(paths.values()), OFFERED) as tally:
            sleep(seconds)
        lines = [record.text for record in log.read() if record.from_kernel]
        findings = errors_of(find_all(lines, shipped=rules))
        unread = log.reason
    problems = [f"a read failed: {failure}" for failure in tally.failures]
    problems += [f"{path} answered no read" for path, count in tally.reads.items() if count == 0]
    for name in names:
        now = read_error_counters(machine, name)
        grown = {counter: now.get(counter, 0) - value for counter, value in before[name].items()}
        problems += [f"{name}: {counter} grew by {count}" for counter, count in grown.items() if count > 0]
    problems += [finding.sentence() for finding in findings]
    if problems:
        raise ToolError("the soak failed: " + "; ".join(problems))
    drives = f"{len(names)} drive{'s' if len(names) > 1 else ''}"
    summary = f"{sum(tally.reads.values())} reads of {drives} in {seconds:g} s, no error counter grew"
    return f"{summary}; {unread}" if unread else f"{summary}, nothing in the kernel's log"


Owners = Union[Adapters, Drives]
# a controller with another firmware takes longer to show its drives than one that only starts again
_RESET_S = 180.0


def _rebind(pci: str) -> None:
    """Have the driver of an adapter of this bench start again, which resets the adapter."""
    rebind(Machine(), pci, _RESET_S)


@dataclass(frozen=True)
class Step:
    """How a module was called: bench state, run, check mode, and whether only the proof after a boot is wanted.

    `soak_s`: seconds of reads of everything behind what was flashed, before it counts as proven; none when 0. The
    rest is the outside world, which tests put another one in the place of.
    """

    state_dir: str
    run: str
    check: bool = False
    proof: bool = False
    soak_s: float = 0.0
    boot: Callable[[], str] = boot_id
    rebind: Callable[[str], None] = _rebind
    soak: Callable[[Sequence[str], float], str] = partial(soak, Machine())
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def read_request(given: Mapping[str, Any], *, check: bool = False) -> FirmwareRequest:
    """The firmware entry of a drop as a module gets it; relative paths begin at `state_dir`.

    With `check` the files need not be on the bench yet. Raises BadInputError with every problem.
    """
    problems: list[str] = []

    def image(fields: Mapping[str, Any], what: str) -> FlashImage | None:
        try:
            return read_image(_below(given["state_dir"], fields), what)
        except BadInputError as problem:
            problems.extend(problem.problems)
            return None

    own = image(given, "firmware")
    rollback = [image(fields, "rollback") for fields in given.get("rollback") or ()]
    activation = str(given.get("activation") or "reset")
    if activation not in ACTIVATIONS:
        problems.append(f"activation: found {activation!r}, expected one of {', '.join(ACTIVATIONS)}")
    if problems or own is None:
        raise BadInputError(problems)
    allowed = given.get("from")
    return FirmwareRequest(
        image=own,
        tool=str(given.get("tool") or ""),
        activation=activation,
        allowed=None if not allowed else tuple(str(each) for each in allowed),
        rollback=tuple(each for each in rollback if each is not None),
        boards=tuple(given.get("boards") or ()),
        copied=not check,
    )


def _below(state_dir: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    paths = {name: str(Path(state_dir, fields[name])) for name in ("path", "signature", "key") if fields.get(name)}
    return {**fields, **paths}


def flash_as_given(
    given: Mapping[str, Any], owners: Callable[[Access], Owners], *, check: bool = False
) -> dict[str, Any]:
    """The work of a module that flashes, from its arguments. Raises as `read_request` and `provision_firmware` do."""
    state_dir, call = given["state_dir"], given["run"]
    request = read_request(given, check=check)
    access = Access(state_dir, call, tuple(given["consent"]), run, Machine())
    rows = given.get("log_rules")
    step = Step(
        state_dir,
        call,
        check=check,
        proof=given["state"] == "proven",
        soak_s=given["soak_s"],
        soak=partial(soak, Machine(), rules=None if rows is None else tuple(LogRule(**row) for row in rows)),
    )
    return provision_firmware(request, owners(access), step)


def provision_firmware(request: FirmwareRequest, owners: Owners, step: Step) -> dict[str, Any]:
    """Have the declared version run in every owner; the module's result, with `pending` when a boot is needed.

    Raises BadInputError, GuardRefusalError and ToolError before the first write, PartialError after it.
    """
    with lock_for(step.state_dir, step.run, "firmware", check=step.check) as lock:
        if lock is not None:
            return flash_once(request, owners, step, lock)
        plans = _plans(request, owners, step)
        refuse_problems([problem for plan in plans for problem in plan.problems])
        return foreseen(plans).result(plans, check=True)


def flash_once(request: FirmwareRequest, owners: Owners, step: Step, lock: BenchLock) -> dict[str, Any]:
    plans = _plans(request, owners, step)
    flash = Flash(
        lock=lock,
        boot_id=step.boot(),
        memory=owners.memory,
        hold=lambda: owners.hold(_tool(request, owners), write=True),
        rebind=step.rebind,
        soak=lambda subject: step.soak(subject.blocks(), step.soak_s) if step.soak_s else "",
        clock=step.clock,
        sleep=step.sleep,
    )
    outcome = prove(plans, flash) if step.proof else carry_out(plans, flash)
    return outcome.result(plans, check=False)


def _plans(request: FirmwareRequest, owners: Owners, step: Step) -> list[FlashPlan]:
    tool = _tool(request, owners)
    journal = read_journal(Path(step.state_dir))
    saved = read_saved(Path(step.state_dir))
    values: Mapping[str, Any] = saved.values if saved else {}
    subjects = owners.subjects(tool, request.boards)
    plans = []
    for subject in subjects:
        key = memory_key(subject.owner, request.image.component)
        plans.append(make_plan(subject, request, journal.get(key), values.get(key), step.boot()))
    if any(plan.action != NOTHING for plan in plans):
        with owners.hold(tool, write=False):
            pass
    return plans


def _tool(request: FirmwareRequest, owners: Owners) -> ModuleType:
    return tool_for(request.tool, drives=isinstance(owners, Drives))


@dataclass
class FirmwareBack:
    """What came of it: records, steps, failures, what is as it was (by key of saved.json), what a bench needs now."""

    settings: list[Mapping[str, Any]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    read_back: dict[str, Any] = field(default_factory=dict)
    pending: str = ""


def put_firmware_back(
    memory: Mapping[str, Mapping[str, Any]],
    step: Step,
    lock: BenchLock | None,
    *,
    runner: Runner,
    machine: Machine | None = None,
) -> FirmwareBack:
    """Go through the keys of saved.json that are firmware; one that cannot be put back does not stop the others."""
    back = FirmwareBack()
    for key, value in memory.items():
        owner = key.partition("@")[2]
        try:
            request, owners = _request_back(owner, value, step, runner, machine or Machine())
            done = (
                provision_firmware(request, owners, step) if lock is None else flash_once(request, owners, step, lock)
            )
        except PartialError as problem:
            back.failures.append(str(problem))
            back.steps += problem.steps
            back.settings += [entry.record() for entry in problem.settings]
        except (StorqualError, KeyError, TypeError) as problem:
            back.failures.append(f"{key} could not be put back: {problem}")
        else:
            back.settings += done["settings"]
            back.steps += done["steps"]
            if done["pending"]:
                back.pending = max(back.pending or "none", done["pending"], key=ACTIVATIONS.index)
            elif lock is not None:
                back.read_back[key] = value
    return back


def _request_back(
    owner: str, value: Mapping[str, Any], step: Step, runner: Runner, machine: Machine
) -> tuple[FirmwareRequest, Owners]:
    access = Access(step.state_dir, step.run, tuple(value["consent"]), runner, machine)
    image = read_image(value["image"], "remembered image")
    request = FirmwareRequest(image, str(value["tool"]), str(value["activation"]))
    if value["kind"] == "drive":
        beside = read_claims(value.get("beside") or {})
        return request, Drives(access, read_claims({owner: value["claim"]}), beside)
    return request, Adapters(access, {owner: value["adapter"]}, value.get("beside") or {})
