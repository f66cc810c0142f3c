# SPDX-License-Identifier: Apache-2.0
"""The work of the modules that flash adapters and drives: input, guard, plan, lock, flash, proof."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Mapping, Sequence, Union

from .bench_lock import BenchLock, hold_lock
from .bench_state import read_saved
from .block_lines import boot_id
from .capabilities import ACTIVATIONS
from .command import run
from .driver_reload import rebind
from .errors import BadInputError, ToolError
from .firmware_access import Access, Adapters, Drives
from .firmware_image import Image, read_image
from .firmware_journal import read_journal
from .firmware_plan import NOTHING, FirmwareRequest, Plan, make_plan, memory_key
from .firmware_step import Flash, carry_out, foreseen, prove
from .firmware_tools import tool_for
from .machine import Machine
from .provision_drives import LOCK_WAIT_S
from .soak import soak

__all__ = ["Step", "flash_as_given", "flash_once", "provision_firmware", "read_request"]

Owners = Union[Adapters, Drives]
# a controller with another firmware takes longer to show its drives than one that only starts again
_RESET_S = 180.0


def _rebind(pci: str) -> None:
    """Have the driver of an adapter of this bench start again, which resets the adapter."""
    rebind(Machine(), pci, _RESET_S)


def _soak(names: Sequence[str], seconds: float) -> str:
    """Soak drives of this bench."""
    return soak(Machine(), names, seconds, time.sleep)


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
    soak: Callable[[Sequence[str], float], str] = _soak
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
    step = Step(state_dir, call, check=check, proof=given["state"] == "proven", soak_s=given["soak_s"])
    return provision_firmware(request, owners(access), step)


def provision_firmware(request: FirmwareRequest, owners: Owners, step: Step) -> dict[str, Any]:
    """Have the declared version run in every owner; the module's result, with `pending` when a boot is needed.

    Raises BadInputError, GuardRefusalError and ToolError before the first write, PartialError after it.
    """
    if step.check:
        plans = _plans(request, owners, step)
        problems = [problem for plan in plans for problem in plan.problems]
        if problems:
            raise ToolError("\n".join(problems))
        return foreseen(plans).result(plans, check=True)
    with hold_lock(Path(step.state_dir), step.run, "firmware", wait_s=LOCK_WAIT_S) as lock:
        return flash_once(request, owners, step, lock)


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
