# SPDX-License-Identifier: Apache-2.0
"""The files that a plan is made of: all of them read, all that is wrong with them told at once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from storqual.inputs import (
    GATE,
    WAIVERS,
    beside_inventory,
    find_drop,
    find_suite,
    read_drop,
    read_gate,
    read_suite,
    read_waivers,
)
from storqual.inputs.drop import Drop
from storqual.inputs.inventory import Bench, Inventory
from storqual.inputs.lab import read_lab
from storqual.inputs.policy import Waiver, role_warnings
from storqual.inputs.shape import unknown
from storqual.inputs.suite import Suite
from storqual.plan.policy_names import Names, gate_warnings, waiver_warnings
from storqual.plan.sessions import ARMS
from storqual.plan.settable import Facts, read_facts
from storqual_core.guard.rules import CONSENT_DIGITS
from storqual_core.kit.errors import BadInputError


@dataclass(frozen=True)
class PlanRequest:
    """What a user asks for: drops and suite by name or path, `budget` in seconds; None is what the suite says.

    Without a baseline (empty) the candidate is characterised: one arm, and no criterion against a baseline. With a
    budget the campaign measures until decided or until the budget ends. `history` is an extract of earlier campaigns,
    or a folder of their runs. `points` are names of points to measure alone, whatever the profile chooses. `checks`
    are files of hand-written checks beside the project's own. `facts` is what benches said (`storqual facts --deep
    --json`): settings that their drives do not let be changed are not varied. `consent` are ends of WWNs, for what a
    claim does not cover (a format). `trial` is the id of one trial to be made `repeat` times, until it fails.
    """

    inventories: Sequence[Path]
    baseline: str
    candidate: str
    suite: str
    profile: str | None = None
    gate: Path | None = None
    history: Path | None = None
    limit: str | None = None
    adapters: Sequence[str] | None = None
    points: Sequence[str] = ()
    seed: int | None = None
    budget: float | None = None
    by_sessions: bool = False
    consent: Sequence[str] = ()
    checks: Sequence[Path] = ()
    facts: Path | None = None
    trial: str | None = None
    repeat: int = 20
    run: str | None = None


@dataclass(frozen=True)
class DropFile:
    """A drop with the file it came from, for the lines of messages."""

    drop: Drop
    path: Path


@dataclass
class PlanInputs:
    """What the files hold, what is wrong with them, and what is odd.

    `inventory` has the benches that the campaign may use, `lab` all of the inventory: what a drop, a suite or an
    option names must be somewhere in the lab, not on the benches of one campaign.
    """

    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    inventory: Inventory | None = None
    lab: Inventory | None = None
    suite: Suite | None = None
    suite_path: Path | None = None
    drops: dict[str, DropFile] = field(default_factory=dict)
    gate_path: Path | None = None
    history: bytes | None = None
    facts: tuple[Facts, bytes] = ({}, b"")

    @property
    def everywhere(self) -> tuple[Bench, ...]:
        return tuple(self.lab.benches.values()) if self.lab is not None else ()

    @property
    def aliases(self) -> tuple[str, ...]:
        """The adapters of the lab, each alias once."""
        return tuple(dict.fromkeys(alias for bench in self.everywhere for alias in bench.adapters))


def read_all(request: PlanRequest) -> PlanInputs:
    """Every file, whatever is wrong with the ones before it."""
    read = PlanInputs()
    with _gathered(read.problems):
        read.lab, read.inventory, problems = read_lab(request.inventories, limit=request.limit)
        read.problems += problems
    named = zip(ARMS, (request.baseline, request.candidate), strict=True)
    for arm, name in ((arm, name) for arm, name in named if name or arm == "candidate"):
        with _gathered(read.problems):
            path = find_drop(name, request.inventories)
            drop, problems = read_drop(path)
            read.problems += problems
            if drop is not None:
                read.drops[arm] = DropFile(drop, path)
                read.warnings += _other_name(drop, path)
    with _gathered(read.problems):
        read.suite_path = find_suite(request.suite)
        read.suite, problems = read_suite(read.suite_path, profile=request.profile)
        read.problems += problems
    read.gate_path = request.gate or beside_inventory(GATE, request.inventories)
    gate = None
    if read.gate_path is not None:
        with _gathered(read.problems):
            gate, problems = read_gate(read.gate_path)
            read.problems += problems
    waivers = beside_inventory(WAIVERS, request.inventories)
    accepted: Sequence[Waiver] = ()
    if waivers is not None:
        # judging reads it: a mistake in it must not wait for the end of a campaign
        with _gathered(read.problems):
            accepted, problems = read_waivers(waivers, gate, datetime.now(UTC).date())
            read.problems += problems
    if request.history is not None:
        from storqual.history.index import history_bytes  # noqa: PLC0415 - the judge is slow to import

        with _gathered(read.problems):
            read.history = history_bytes(request.history, list(read.inventory.benches) if read.inventory else ())
    if request.facts is not None:
        with _gathered(read.problems):
            read.facts = read_facts(request.facts)
    if read.inventory is not None:
        read.problems += _consent_problems(request.consent, read.everywhere)
        read.problems += _facts_problems(request, read, read.inventory)
    policy = gate is not None or waivers is not None
    if policy and read.suite is not None and read.suite_path is not None and read.lab is not None:
        # all suites are read for it
        names = Names.of(read.suite, read.suite_path, request.checks, read.everywhere)
        if gate is not None and read.gate_path is not None:
            read.warnings += gate_warnings(gate, read.gate_path, names)
            read.warnings += role_warnings(request.inventories, gate, read.gate_path)
        if waivers is not None:
            read.warnings += waiver_warnings(accepted, waivers, names)
    read.problems += _option_problems(request, read)
    return read


def _other_name(drop: Drop, path: Path) -> Iterator[str]:
    """A drop that calls itself otherwise than its file: two names for one thing."""
    if drop.name != path.stem:
        yield (
            f"{path}: this drop is called {drop.name!r}: so runs, reports and waivers call it, and commands "
            f"{path.stem!r}; give the file and `name` one name"
        )


@contextmanager
def _gathered(problems: list[str]) -> Iterator[None]:
    """Turns a BadInputError into problems of a list, so that the next file is read as well."""
    try:
        yield
    except BadInputError as problem:
        problems += problem.problems


def _facts_problems(request: PlanRequest, read: PlanInputs, inventory: Inventory) -> Iterator[str]:
    for bench in inventory.benches if request.facts is not None and read.facts[0] else ():
        if bench not in read.facts[0]:
            yield f"{request.facts}: this file has no facts of bench {bench}; it must have those of every bench"


def _option_problems(request: PlanRequest, read: PlanInputs) -> Iterator[str]:
    """Options that contradict each other, and adapters that no bench of the lab has, or only benches left out."""
    if request.trial is not None and request.points:
        yield "--trial repeats one trial, and --point measures points alone; leave one of them out"
    if request.adapters is not None and not request.adapters:
        yield "--adapters names no adapter; leave the option out to test all of them"
    if request.adapters is None or read.inventory is None:
        return
    for alias in request.adapters:
        if alias not in read.aliases:
            yield f"--adapters: {unknown('adapter', alias, read.aliases, most=len(read.aliases))}"
    here = read.inventory.benches
    known = [alias for alias in request.adapters if alias in read.aliases]
    if known and not any(alias in bench.adapters for alias in known for bench in here.values()):
        homes = [bench.name for bench in read.everywhere if any(alias in bench.adapters for alias in known)]
        yield (
            f"--adapters: {' and '.join(known)} {'is' if len(known) == 1 else 'are'} of {' and '.join(homes)}, "
            f"which --limit {request.limit} leaves out; expected one of "
            f"{', '.join(dict.fromkeys(alias for bench in here.values() for alias in bench.adapters))}"
        )


def _consent_problems(consent: Sequence[str], benches: Sequence[Bench]) -> list[str]:
    """Words of a consent that are too short or end the name of nothing: they would be found out on the bench."""
    adapters = [adapter for bench in benches for adapter in bench.adapters.values()]
    names = [name for adapter in adapters for name in (adapter.serial, adapter.pci) if name]
    names += [name for adapter in adapters for drive in adapter.drives for name in (drive.id, drive.serial) if name]
    rule = f"give the last characters of a drive's WWN, at least {CONSENT_DIGITS}"
    return [
        f"--consent: no WWN and no serial number in the inventory ends with {word!r}; {rule}"
        for word in consent
        if not any(name.lower().endswith(word.strip().lower()) for name in names)
    ] + [f"--consent: {word!r} is too short; {rule}" for word in consent if len(word.strip()) < CONSENT_DIGITS]
