# SPDX-License-Identifier: Apache-2.0
"""The preflight of a bench in one call: facts, comparison with the inventory, the guard over all claims, stamps."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence

from . import guard
from .bench_facts import environment_of, read_facts
from .bench_lock import hold_lock
from .command import Runner, run
from .errors import BadInputError
from .guard_claims import Claim, claims_of_adapters
from .guard_files import look_at_file, make_file
from .identity_check import compare
from .machine import Machine
from .own_volumes import own_volumes
from .smart_errors import read_smart_errors

__all__ = ["Request", "Result", "examine"]


@dataclass(frozen=True)
class Request:
    """What a preflight is asked: the inventory's adapters, and whether empty drives may be stamped now."""

    adapters: Mapping[str, Any]
    kind: str = "hardware"
    state_dir: str = guard.STATE_DIR
    purpose: str = "write"
    consent: Sequence[str] = ()
    stamp: bool = False
    check: bool = False
    run: str = "preflight"


@dataclass(frozen=True)
class Result:
    """Facts and fingerprint; problems of identity (exit code 3); refusals (4); what was stamped or made.

    `smart` are errors that drives of metal have on record; emulated ones keep none.
    """

    facts: Mapping[str, Any]
    environment: Mapping[str, Any]
    problems: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    stamped: list[str] = field(default_factory=list)
    smart: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """3 when the bench is not what the inventory says, 4 when the guard refuses, else 0."""
        return 3 if self.problems else 4 if self.refusals else 0


def examine(request: Request, *, machine: Machine | None = None, runner: Runner = run) -> Result:
    """Look, compare, decide; with `stamp` mark what is empty. Raises StorqualError when the bench cannot be read."""
    machine = machine or Machine()
    facts = read_facts(machine, state_dir=request.state_dir, runner=runner)
    environment = environment_of(facts, request.adapters)
    problems = compare(facts, request.adapters, kind=request.kind)
    try:
        claims = claims_of_adapters(request.adapters, kind=request.kind)
    except BadInputError as problem:
        return Result(facts, environment, [*problems, *problem.problems])
    made = [] if problems else _make_files(claims, request)
    looked_at = [claim for claim in claims if claim.id not in made or not request.check]
    # a bench may be set up to keep volumes that storqual made: they are its own, not somebody's data
    volumes = own_volumes(machine, request.state_dir, looked_at)
    members = {member for volume in volumes for member in volume.members}
    found = guard.survey(
        looked_at,
        volumes=volumes,
        purpose=request.purpose,
        consent=request.consent,
        state_dir=request.state_dir,
        machine=machine,
        runner=runner,
    )
    refusals = [str(refusal) for refusal in found.refusals]
    stamped = made
    if request.stamp and request.purpose == "write" and not problems and not refusals:
        bare = [claim for claim in claims if claim.id in found.bare and claim.id not in members]
        stamped = made + _stamp(bare, request, machine, runner)
    smart = read_smart_errors(facts, request.adapters, runner=runner) if request.kind == "hardware" else {}
    return Result(facts, environment, problems, refusals, stamped, smart)


def _make_files(claims: Sequence[Claim], request: Request) -> list[str]:
    """Make the claimed files that do not exist yet; in check mode only name them."""
    missing = [claim for claim in claims if claim.file and look_at_file(claim, request.state_dir).missing]
    if not request.stamp:
        return []
    if missing and not request.check:
        with hold_lock(Path(request.state_dir), request.run, "drive_guard"):
            for claim in missing:
                make_file(claim, request.state_dir)
    return [claim.id for claim in missing]


def _stamp(bare: Sequence[Claim], request: Request, machine: Machine, runner: Runner) -> list[str]:
    """Stamp the claimed drives that carry no stamp; in check mode only name them."""
    if not bare or request.check:
        return [claim.id for claim in bare]
    with hold_lock(Path(machine.path(request.state_dir)), request.run, "drive_guard"), guard.hold(
        bare, purpose="write", state_dir=request.state_dir, run=request.run, machine=machine, runner=runner
    ) as held:
        return list(held.stamped)
