# SPDX-License-Identifier: Apache-2.0
"""The files that a plan is made of: all of them read, all that is wrong with them told at once."""

from __future__ import annotations

from collections.abc import Sequence
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
    read_inventory,
    read_suite,
    read_waivers,
)
from storqual.inputs.inventory import Bench, Inventory
from storqual.inputs.shape import unknown
from storqual.inputs.suite import Suite
from storqual.plan.around_launches import reference_problems
from storqual.plan.checks import (
    DropFile,
    arm_problems,
    baseline_problems,
    drop_problems,
    level_problems,
    peer_problems,
)
from storqual.plan.members import member_problems
from storqual.plan.sessions import ARMS
from storqual.plan.settable import Facts, read_facts, scheduler_problems
from storqual.plan.volume_tools import tool_problems
from storqual.plan.volumes import vary_problems
from storqual_core.kit.errors import BadInputError

NO_ADAPTER = "--adapters names no adapter; leave the option out to test all of them"


@dataclass(frozen=True)
class PlanRequest:
    """What a user asks for: drops and suite by name or path, `budget` in seconds; None is what the suite says.

    Without a baseline (empty) the candidate is characterised: one arm, and no criterion against a baseline. With a
    budget the campaign measures until decided or until the budget ends. `history` is an extract of earlier campaigns,
    or a folder of their runs. `points` are names of points to measure alone, whatever the profile chooses. `checks`
    are files of hand-written checks beside the project's own. `facts` is what benches said (`storqual facts --deep
    --json`): settings that their drives do not let be changed are not varied. `consent` are ends of WWNs, for what a
    claim does not cover (a format).
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
    run: str | None = None


@dataclass
class PlanInputs:
    """What the files hold, and what is wrong with them."""

    problems: list[str] = field(default_factory=list)
    inventory: Inventory | None = None
    suite: Suite | None = None
    suite_path: Path | None = None
    drops: dict[str, DropFile] = field(default_factory=dict)
    gate_path: Path | None = None
    history: bytes | None = None
    facts: tuple[Facts, bytes] = ({}, b"")


def read_all(request: PlanRequest) -> PlanInputs:
    """Every file, whatever is wrong with the ones before it."""
    read = PlanInputs()
    with _Gather(read.problems):
        read.inventory, problems = read_inventory(request.inventories, limit=request.limit)
        read.problems += problems
    named = zip(ARMS, (request.baseline, request.candidate), strict=True)
    for arm, name in ((arm, name) for arm, name in named if name or arm == "candidate"):
        with _Gather(read.problems):
            path = find_drop(name, request.inventories)
            drop, problems = read_drop(path)
            read.problems += problems
            if drop is not None:
                read.drops[arm] = DropFile(drop, path)
    with _Gather(read.problems):
        read.suite_path = find_suite(request.suite)
        read.suite, problems = read_suite(read.suite_path, profile=request.profile)
        read.problems += problems
    read.gate_path = request.gate or beside_inventory(GATE, request.inventories)
    gate = None
    if read.gate_path is not None:
        with _Gather(read.problems):
            gate, problems = read_gate(read.gate_path)
            read.problems += problems
    waivers = beside_inventory(WAIVERS, request.inventories)
    if waivers is not None:
        # judging reads it: a mistake in it must not wait for the end of a campaign
        with _Gather(read.problems):
            read.problems += read_waivers(waivers, gate, datetime.now(UTC).date())[1]
    if request.history is not None:
        from storqual.history.index import history_bytes  # noqa: PLC0415 - the judge is slow to import

        with _Gather(read.problems):
            read.history = history_bytes(request.history, list(read.inventory.benches) if read.inventory else ())
    if request.facts is not None:
        with _Gather(read.problems):
            read.facts = read_facts(request.facts)
    if read.inventory is not None:
        read.problems += _consent_problems(request.consent, list(read.inventory.benches.values()))
        asked = [bench for bench in read.inventory.benches if request.facts is not None and read.facts[0]]
        read.problems += [
            f"{request.facts}: this file has no facts of bench {bench}; it must have those of every bench"
            for bench in asked
            if bench not in read.facts[0]
        ]
    if request.adapters is not None and not request.adapters:
        read.problems.append(NO_ADAPTER)
    for aliases in [request.adapters] if request.adapters is not None and read.inventory is not None else []:
        known = (
            list(dict.fromkeys(alias for bench in read.inventory.benches.values() for alias in bench.adapters))
            if read.inventory
            else []
        )
        for alias in aliases:
            if alias not in known:
                read.problems.append(f"--adapters: {unknown('adapter', alias, known, most=len(known))}")
    return read


class _Gather:
    """Turns a BadInputError into problems of a list, so that the next file is read as well."""

    def __init__(self, problems: list[str]) -> None:
        self._problems = problems

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, _trace: object) -> bool:
        if isinstance(value, BadInputError):
            self._problems += value.problems
            return True
        return False


def _consent_problems(consent: Sequence[str], benches: Sequence[Bench]) -> list[str]:
    """Words of a consent that end the name of no drive and no adapter: they would be found out on the bench."""
    adapters = [adapter for bench in benches for adapter in bench.adapters.values()]
    names = [name for one in adapters for name in (one.serial, one.pci) if name]
    names += [name for one in adapters for drive in one.drives for name in (drive.id, drive.serial) if name]
    return [
        f"--consent: no WWN and no serial number in the inventory ends with {word!r}; "
        "give the last characters of a drive's WWN"
        for word in consent
        if not any(name.lower().endswith(word.strip().lower()) for name in names)
    ]


def cross_problems(read: PlanInputs, chosen: Sequence[tuple[Bench, Sequence[str]]], profile: str) -> list[str]:
    """What shows only when the files are seen together; `profile` is the one that the suite is used under."""
    assert read.suite is not None and read.suite_path is not None  # noqa: S101, PT018 - read without problems
    benches = [bench for bench, _ in chosen]
    problems = [problem for file in read.drops.values() for problem in drop_problems(file, benches)]
    problems += scheduler_problems(list(read.drops.values()), chosen, read.facts[0])
    problems += arm_problems([(file.drop, file.path) for file in read.drops.values()])
    if "baseline" not in read.drops:
        problems += baseline_problems(read.suite, read.suite_path)
    problems += [problem for bench in benches for problem in reference_problems(bench)]
    for bench, aliases in chosen:
        unclaimed = [alias for alias in aliases if not bench.adapters[alias].claimed]
        problems += [
            f"{bench.name}: adapter {alias} has no claimed drive; set `claim: true` on at least one in the inventory"
            for alias in unclaimed
        ]
        if not aliases:
            problems.append(
                f"{bench.name}: no drive is claimed; set `claim: true` on the drives to test in the inventory"
            )
    if not problems:
        drops = [file.drop for file in read.drops.values()]
        problems += level_problems(read.suite, read.suite_path, chosen, drops)
        own = read.suite.profiles[profile].vary is not None
        keys = ("profiles", profile, "vary") if own else ("vary",)
        problems += vary_problems(read.suite, read.suite_path, keys, drops)
        wrong = list(member_problems(read.suite, read.suite_path, keys, chosen, drops))
        files = list(read.drops.values())
        problems += wrong or tool_problems(read.suite, read.suite_path, keys, chosen, files)
        problems += peer_problems(read.suite, read.suite_path, chosen)
    return problems
