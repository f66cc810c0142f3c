# SPDX-License-Identifier: Apache-2.0
"""The work of the modules that flash adapters and drives: input, guard, plan, lock, flash, proof."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Mapping, Sequence, Union

from ...guard.claims import read_claims
from ...host.counters import read_error_counters
from ...host.kernel_log import KernelLog, Rule, errors_of, find_all
from ...kit.command import Runner, run
from ...kit.errors import BadInputError, StorqualError, ToolError
from ...kit.lock import BenchLock, read_saved
from ...kit.machine import Machine, block_node, boot_id
from ...kit.results import PartialError
from ...tools.capabilities import ACTIVATIONS
from ..driver import rebind
from ..engine import lock_for, refuse_problems
from ..queue import random_reads
from .access import Access, Adapters, Drives
from .plan import NOTHING, FirmwareRequest, Plan, make_plan, memory_key, read_journal
from .step import Flash, carry_out, foreseen, prove
from .subject import Image, read_image, tool_for

OFFERED = 4
"""Reads in flight per drive: enough to have an adapter queue commands."""


def soak(
    machine: Machine,
    names: Sequence[str],
    seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    log_device: str = "/dev/kmsg",
    rules: tuple[Rule, ...] | None = None,
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
    problems = [f"a read failed: {told}" for told in tally.failures]
    problems += [f"{path} answered no read" for path, count in tally.reads.items() if count == 0]
    for name in names:
        now = read_error_counters(machine, name)
        grown = {counter: now.get(counter, 0) - value for counter, value in before[name].items()}
        problems += [f"{name}: {counter} grew by {count}" for counter, count in grown.items() if count > 0]
    problems += [finding.sentence() for finding in findings]
    if problems:
        raise ToolError("the soak failed: " + "; ".join(problems))
    drives = f"{len(names)} drive{'s' if len(names) > 1 else ''}"
    told = f"{sum(tally.reads.values())} reads of {drives} in {seconds:g} s, no error counter grew"
    return f"{told}; {unread}" if unread else f"{told}, nothing in the kernel's log"


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

    def image(fields: Mapping[str, Any], what: str) -> Image | None:
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
    """The fields with absolute paths."""
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
        soak=partial(soak, Machine(), rules=None if rows is None else tuple(Rule(**row) for row in rows)),
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
    """The same for whoever holds the bench's lock already."""
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


def _plans(request: FirmwareRequest, owners: Owners, step: Step) -> list[Plan]:
    """Every owner's plan, with the guard's word that nobody uses what will stop."""
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
            request, owners = _read(owner, value, step, runner, machine or Machine())
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


def _read(
    owner: str, value: Mapping[str, Any], step: Step, runner: Runner, machine: Machine
) -> tuple[FirmwareRequest, Owners]:
    """The request that leads back, and whom it is for."""
    access = Access(step.state_dir, step.run, tuple(value["consent"]), runner, machine)
    image = read_image(value["image"], "remembered image")
    request = FirmwareRequest(image, str(value["tool"]), str(value["activation"]))
    if value["kind"] == "drive":
        beside = read_claims(value.get("beside") or {})
        return request, Drives(access, read_claims({owner: value["claim"]}), beside)
    return request, Adapters(access, {owner: value["adapter"]}, value.get("beside") or {})
