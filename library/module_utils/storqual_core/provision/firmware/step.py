# SPDX-License-Identifier: Apache-2.0
"""Flash, in an order that a power cut cannot hurt: remember, note, write, note, start, prove, compare, forget it.

Everything is read and decided for all subjects before the first is written. Where the journal has a note, the last
run was cut: the image may be half written and is written again, or it is in and only waits to be started. What the
settings were before the first try stands in the note, so that they are compared with that and not with its leavings.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Callable, ContextManager, Mapping, Sequence

from ...kit.errors import StorqualError, ToolError
from ...kit.lock import BenchLock, remember
from ...kit.results import PartialError, Provisioned
from ...tools.capabilities import ACTIVATIONS
from ..engine import Change, refuse_problems
from ..engine import Outcome as Settled
from .plan import ACTIVATE, DOWNLOAD, DOWNLOADING, FINISH, Entry, Plan, clear, note, read_journal
from .subject import Subject, same_version

_LINK_WAIT_S = 60.0
_POLL_S = 2.0


@dataclass
class Outcome:
    """What was done; `pending` is what a bench still needs before it is proven: reboot, power cycle, or nothing."""

    settings: list[Provisioned] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    pending: str = ""
    changed: bool = False

    def result(self, plans: Sequence[Plan], *, check: bool) -> dict[str, Any]:
        """The module's result."""
        changes = [
            Change(
                plan.subject.owner,
                f"firmware.{plan.request.image.component}",
                plan.found,
                plan.request.image.version,
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
    soak: Callable[[Subject], str]
    clock: Callable[[], float]
    sleep: Callable[[float], None]


def _differs(plan: Plan) -> bool:
    return not same_version(plan.found, plan.request.image.version)


def _drift(plan: Plan) -> str:
    image = plan.request.image
    return f"{plan.subject.owner} firmware.{image.component}: {plan.found}, declared {image.version}"


def foreseen(plans: Sequence[Plan]) -> Outcome:
    """What a run without check mode would do."""
    words = {DOWNLOAD: "image would be written", ACTIVATE: "image would be started", FINISH: "would be proven"}
    outcome = Outcome([_record(plan, plan.found) for plan in plans])
    outcome.steps = [f"{plan.subject.owner}: {words[plan.action]}" for plan in plans if plan.action in words]
    outcome.changed = bool(outcome.steps)
    return outcome


def carry_out(plans: Sequence[Plan], flash: Flash) -> Outcome:
    """Write, start and prove what the plans say. Raises ToolError (nothing was written) or PartialError.

    An image that needs a boot leaves `pending`; boot the bench, and `prove`.
    """
    refuse_problems([problem for plan in plans for problem in plan.problems])
    outcome = Outcome()
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


def prove(plans: Sequence[Plan], flash: Flash) -> Outcome:
    """After the boot: every image runs, and everything else is as before. Raises ToolError, PartialError.

    An image that does not run is noted as not written, so that the next run writes it again.
    """
    outcome = Outcome()
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


def _write(plan: Plan, flash: Flash, outcome: Outcome) -> None:
    """Remember the version, note what begins, write, note that it is in."""
    subject, request = plan.subject, plan.request
    image = request.image
    same = plan.entry is not None and plan.entry.sha256 == image.sha256
    entry = Entry(
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


def _start(plan: Plan, flash: Flash, outcome: Outcome) -> str:
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


def _read(plan: Plan) -> str:
    return plan.subject.versions().get(plan.request.image.component, "")


def _finish(plan: Plan, flash: Flash, outcome: Outcome) -> Provisioned:
    """Read the version back, compare the settings, put back what can be, soak, and forget the note."""
    owner, image = plan.subject.owner, plan.request.image
    version = _read(plan)
    record = _record(plan, version)
    entry = read_journal(flash.lock.state_dir).get(plan.key)
    if not same_version(version, image.version):
        if entry is not None:
            # what did not start is written once more
            note(flash.lock, plan.key, replace(entry, phase=DOWNLOADING))
        told = f"{owner}: {image.component} {image.version} was written and it runs {version or 'nothing'}"
        raise PartialError(told, steps=outcome.steps, settings=[record])
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
        told = f"{owner}: {image.version} runs, but not everything is as before\n" + "\n".join(lines)
        raise PartialError(told, steps=outcome.steps, settings=[record])
    try:
        soaked = flash.soak(plan.subject)
    except ToolError as problem:
        told = f"{owner}: {image.version} runs, and {problem}"
        raise PartialError(told, steps=outcome.steps, settings=[record]) from problem
    clear(flash.lock, plan.key)
    outcome.changed = True
    count = len(entry.settings)
    proof = f"the version was read from it; {count} settings and links are as before"
    return record.with_proof(proven=True, proof=f"{proof}; {soaked}" if soaked else proof)


def _altered(subject: Subject, before: Mapping[str, Any], flash: Flash) -> dict[str, Any]:
    """The former value of everything that differs; links get a minute to come up again, nothing tells when."""
    deadline = flash.clock() + _LINK_WAIT_S
    while True:
        now = subject.settings()
        altered = {name: value for name, value in before.items() if now.get(name) != value}
        if not any(name.startswith("port.") for name in altered) or flash.clock() >= deadline:
            return altered
        flash.sleep(_POLL_S)


def _record(plan: Plan, version: str) -> Provisioned:
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


def _what_can_be_read(plans: Sequence[Plan]) -> list[Provisioned]:
    """The versions after a failure, of what still answers."""
    records = []
    for plan in plans:
        # the failure that is being reported names it; what no longer answers has no version to tell
        with suppress(StorqualError):
            records.append(_record(plan, _read(plan)))
    return records
