# SPDX-License-Identifier: Apache-2.0
"""The queues of adapters as the kernel has them: what a driver calls the limits of its commands, shown in effect.

A throttle of an adapter becomes the option of its driver's module that says how many commands each drive may hold;
the proof is each drive's queue depth, and the commands in flight while more are offered. The proof of an option that
limits the commands of an adapter is what the kernel shows of its SCSI hosts (`can_queue`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Mapping, Sequence

from ..guard.claims import claims_of_adapters
from ..host.block_stack import DriveTarget
from ..host.reach import find_adapters
from ..host.sysfs import read_adapters, read_drives
from ..kit.errors import BadInputError
from ..kit.kernel import declared_options
from ..kit.results import Provisioned
from .driver import QueueParameter, adapters_of_module, parameter_for, parameter_of
from .drives import Access, claims_for, usable_drives
from .engine import Call
from .options import OptionsBench, provision_options
from .queue import Queues, judge_queue_depth, observe_in_flight

_PREFIX = "driver.options."


@dataclass(frozen=True)
class ThrottleRequest:
    """What is asked: throttles by alias, options by module, the bench's adapters, seconds of proof a drive."""

    throttle: Mapping[str, object]
    options: Mapping[str, object]
    adapters: Mapping[str, Any]
    state_dir: str
    run: str
    check: bool = False
    prove_s: float = 0.0


def provision_throttle(
    request: ThrottleRequest, bench: OptionsBench, access: Access = usable_drives
) -> dict[str, Any]:
    """Set throttles and options, and watch the drives; the module's result. Raises StorqualError of all kinds."""
    merged = declared_options(request.options)
    for module, parameters in throttle_options(request.throttle, request.adapters, bench).items():
        # an option that the drop declares by its own name holds over what a throttle means for it
        merged[module] = {**parameters, **merged.get(module, {})}
    call = Call(request.state_dir, request.run, request.check)
    return provision_options(merged, call, bench, lambda settings: _prove(settings, request, bench, access))


def throttle_options(
    throttle: Mapping[str, object], adapters: Mapping[str, Any], bench: OptionsBench
) -> dict[str, dict[str, str]]:
    """The module options that mean these throttles. Raises BadInputError with every adapter that has none."""
    options: dict[str, dict[str, str]] = {}
    problems = []
    places = find_adapters(bench.machine, adapters, throttle) if throttle else {}
    for alias, value in throttle.items():
        module = places[alias].module
        parameter = parameter_for(module, "lun")
        if parameter is None:
            problems.append(
                f"adapter {alias}: driver {module or '(none)'} has no parameter for the queue depth of its drives; "
                "declare drive.queue_depth, or nvram.execution_throttle where the adapter keeps one"
            )
            continue
        other = options.get(module, {}).get(parameter.name)
        if other is not None and other != str(value):
            problems.append(
                f"adapter {alias}: {module} has one queue depth for all its adapters, {other} and {value}"
            )
        options.setdefault(module, {})[parameter.name] = str(value)
    if problems:
        raise BadInputError(problems)
    return options


def _prove(
    settings: Sequence[Provisioned], request: ThrottleRequest, bench: OptionsBench, access: Access
) -> list[Provisioned]:
    """Each option that is a queue depth of drives or a limit of adapters, with what those show."""
    return [_shown(entry, request, bench, access) for entry in settings]


def _shown(entry: Provisioned, request: ThrottleRequest, bench: OptionsBench, access: Access) -> Provisioned:
    module, _, name = entry.name[len(_PREFIX) :].partition(".")
    parameter = parameter_of(module, name)
    # 0 and -1 leave it to the driver
    if parameter is None or parameter.scope not in ("lun", "host") or int(str(entry.declared), 0) <= 0:
        return entry
    if parameter.scope == "host":
        return entry.with_proof(*_limits(entry, parameter, bench))
    depth = int(str(entry.declared), 0)
    drives = _claimed_behind(request, bench, module)
    if not drives:
        return entry.with_proof(entry.proven, f"{entry.proof}; no claimed drive behind it could show it")
    with access(claims_for(request.adapters, drives, routes=True), request.state_dir, request.run) as targets:
        proven, words = _watch(depth, targets, request.prove_s, bench)
    return replace(entry, proven=proven, proof=words)


def _limits(entry: Provisioned, parameter: QueueParameter, bench: OptionsBench) -> tuple[bool | None, str]:
    """What the kernel shows of the SCSI hosts of a driver, beside the commands that were declared for an adapter."""
    places = adapters_of_module(bench.machine, parameter.module)
    adapters = [each for each in read_adapters(bench.machine) if each.identity.pci in places]
    shown = {str(host["host"]): host.get("can_queue") for each in adapters for host in each.hosts}
    known = [number for number in shown.values() if isinstance(number, int)]
    if not known or len(known) < len(shown):
        return None, f"{entry.proof}; the kernel does not show can_queue of every SCSI host of it"
    most = int(str(entry.declared), 0) * parameter.commands
    words = f"can_queue, {most} declared: " + ", ".join(f"{host} {number}" for host, number in shown.items())
    if max(known) > most or (parameter.exact and min(known) < most):
        return False, words
    if min(known) == most:
        return True, words
    return True, f"{words}; {parameter.module} keeps commands for itself, or its firmware takes no more"


def _watch(
    depth: int, targets: Mapping[str, DriveTarget], seconds: float, bench: OptionsBench
) -> tuple[bool | None, str]:
    """Queue depth of every drive, and the commands in flight where seconds are given for it."""
    sysfs = bench.machine.path("/sys")
    depths = {
        drive: Queues(sysfs).read(target, ("queue_depth",)).get("queue_depth") for drive, target in targets.items()
    }
    higher = {drive: seen for drive, seen in depths.items() if isinstance(seen, int) and seen > depth}
    if higher:
        drives = ", ".join(f"{drive} {seen}" for drive, seen in higher.items())
        return False, f"the driver gave drives a higher queue depth than {depth}: {drives}"
    count = sum(seen == depth for seen in depths.values())
    words = f"the driver gave {count} of {len(depths)} drives a queue depth of {depth}"
    if seconds <= 0:
        return (True if count == len(depths) else None), words
    outcomes = [
        judge_queue_depth(depth, observe_in_flight(target.disks[0], min(2 * depth, depth + 32), seconds, sysfs))
        for target in targets.values()
    ]
    failed = [reason for proven, reason in outcomes if proven is False]
    if failed:
        return False, f"{words}; {failed[0]}"
    shown = sum(proven is True for proven, _ in outcomes)
    return (True if shown == len(outcomes) else None), f"{words}; on {shown} of them: {outcomes[0][1]}"


def _claimed_behind(request: ThrottleRequest, bench: OptionsBench, module: str) -> list[str]:
    """Ids of the claimed drives behind the adapters of a module that are on the bench now."""
    places = adapters_of_module(bench.machine, module)
    present = {drive.id for drive in read_drives(bench.machine) if drive.adapter in places}
    return [claim.id for claim in claims_of_adapters(request.adapters) if claim.id in present]
