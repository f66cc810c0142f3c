# SPDX-License-Identifier: Apache-2.0
"""From what a user names to a planned campaign: read everything, complain about everything, then plan."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from storqual import __version__
from storqual.model import (
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
from storqual.model.drop import Drop
from storqual.model.inventory import Bench, Inventory
from storqual.model.shape import did_you_mean, raise_all
from storqual.model.suite import Profile, Suite
from storqual.plan.bench_plan import BenchPlan, Choice, adapters_under_test, choose_cells, plan_bench
from storqual.plan.budget import NOTHING_KNOWN, sized, within
from storqual.plan.checks import (
    DropFile,
    baseline_problems,
    criterion_problems,
    drop_problems,
    level_problems,
    peer_problems,
)
from storqual.plan.firmware_checks import arm_problems
from storqual.plan.known_noise import known_noise
from storqual.plan.points import cells
from storqual.plan.raid_advice import raid_advice
from storqual.plan.reference import reference_problems
from storqual.plan.sessions import ARMS
from storqual.plan.volumes import layouts_of, vary_problems
from storqual.plan.within import plan_within
from storqual.store import InputFile, new_run_id
from storqual_core.errors import BadInputError

__all__ = ["Campaign", "PlanRequest", "make_plan"]

_DEFAULT_GATE = b"# no gate policy was given: the suite's own `required` decides\nname: default\n"
_SEEDS = 1 << 31


@dataclass(frozen=True)
class PlanRequest:
    """What a user asks for. Names or paths as design section 4; `budget` in seconds; None: as the suite says.

    Without a baseline (empty) the candidate is characterised: one arm, and no criterion against a baseline. With a
    budget the campaign measures until decided or until the budget ends. `history` is an extract of earlier campaigns,
    or a folder of their runs. `consent` are ends of WWNs, for what a claim does not cover (a format).
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
    seed: int | None = None
    budget: float | None = None
    by_sessions: bool = False
    consent: Sequence[str] = ()
    run: str | None = None


@dataclass(frozen=True)
class Campaign:
    """A planned campaign, nothing written yet: run.json without the store's own fields, inputs, blocks."""

    run: str
    document: dict[str, Any]
    inputs: dict[str, InputFile]
    blocks: tuple[dict[str, Any], ...]
    benches: tuple[BenchPlan, ...]
    warnings: tuple[str, ...]


@dataclass
class _Read:
    """What the files hold, and what is wrong with them."""

    problems: list[str] = field(default_factory=list)
    inventory: Inventory | None = None
    suite: Suite | None = None
    suite_path: Path | None = None
    drops: dict[str, DropFile] = field(default_factory=dict)
    gate_path: Path | None = None
    history: bytes | None = None


def make_plan(request: PlanRequest) -> Campaign:
    """Plan a campaign. Raises BadInputError with the problems of all files; touches no bench, writes nothing."""
    read = _read_all(request)
    raise_all(read.problems)
    assert read.inventory is not None and read.suite is not None and read.suite_path is not None  # noqa: S101, PT018
    benches = list(read.inventory.benches.values())
    profile_name = read.suite.profile_name(request.profile)
    declared = read.suite.profiles[profile_name]
    wanted = within(request.budget, declared, compared="baseline" in read.drops)
    profile = sized(wanted, [bench.kind for bench in benches])
    whole, suite = read.suite, read.suite.under(declared)
    read.suite = suite
    arms = {arm: file.drop for arm, file in read.drops.items()}
    drops = tuple(arms.values())
    chosen = [
        (bench.model_copy(update={"under_test": tuple(aliases)}), aliases)
        for bench in benches
        for aliases in [adapters_under_test(bench, profile, suite, request.adapters, drops)]
    ]
    raise_all(_cross_problems(read, chosen))
    choices = [
        choose_cells(
            bench, aliases, suite, profile, f"{suite.name}/{profile_name}", layouts_of(bench, aliases, drops)
        )
        for bench, aliases in chosen
    ]
    placed = [cell for choice in choices for cell in choice.placed]
    measured = set(cells(suite))
    left_out = [cell for cell in cells(whole) if cell not in measured]
    problems = list(criterion_problems(suite, read.suite_path, placed, left_out))
    for choice in choices:
        unseen = ", ".join(f"{name} {level}" for name, level in choice.unseen if name != "criterion")
        if unseen:
            told = f"found profile {profile_name} with {profile.cells} cells, which never show {unseen}"
            problems.append(f"{read.suite_path}: {told}, expected more cells")
    raise_all(problems)
    seed = secrets.randbelow(_SEEDS) if request.seed is None else request.seed
    run = request.run or new_run_id(str(suite.name))
    known = {} if read.history is None else known_noise(read.history)

    def planned(bench: Bench, aliases: Sequence[str], choice: Choice) -> BenchPlan:
        return plan_bench(
            run,
            bench,
            aliases,
            choice,
            drops=arms,
            suite=suite,
            profile=profile,
            seed=seed,
            by_sessions=request.by_sessions,
            prefix="s" if len(chosen) == 1 else f"{_plain(bench.name)}-s",
            known=known.get(bench.name, NOTHING_KNOWN),
            consent=tuple(request.consent),
        )

    plans = tuple(
        planned(bench, aliases, choice)
        if request.budget is None
        else plan_within(
            request.budget, choice, suite, f"{suite.name}/{profile_name}", partial(planned, bench, aliases)
        )
        for (bench, aliases), choice in zip(chosen, choices, strict=True)
    )
    warnings = _warnings(plans, profile)
    inputs = _inputs(request, read, plans)
    named = (profile_name, profile)
    return Campaign(
        run=run,
        document=_document(request, read, plans, inputs, named=named, seed=seed, warnings=warnings),
        inputs=inputs,
        blocks=tuple(block for plan in plans for block in plan.blocks),
        benches=plans,
        warnings=warnings,
    )


def _read_all(request: PlanRequest) -> _Read:
    """Every file, whatever is wrong with the ones before it."""
    read = _Read()
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
    if read.gate_path is not None:
        with _Gather(read.problems):
            read.problems += read_gate(read.gate_path)[1]
    waivers = beside_inventory(WAIVERS, request.inventories)
    if waivers is not None:
        # judging reads it: a mistake in it must not wait for the end of a campaign
        with _Gather(read.problems):
            read.problems += read_waivers(waivers)[1]
    if request.history is not None:
        from storqual.history.extract import history_bytes  # noqa: PLC0415 - the judge is slow to import

        with _Gather(read.problems):
            read.history = history_bytes(request.history, list(read.inventory.benches) if read.inventory else ())
    for aliases in [request.adapters] if request.adapters is not None and read.inventory is not None else []:
        known = (
            [alias for bench in read.inventory.benches.values() for alias in bench.adapters] if read.inventory else []
        )
        for alias in aliases:
            if alias not in known:
                hint = did_you_mean(alias, known)
                read.problems.append(
                    f"--adapters: found no adapter {alias!r}, expected one of {', '.join(known)}{hint}"
                )
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


def _cross_problems(read: _Read, chosen: Sequence[tuple[Bench, Sequence[str]]]) -> list[str]:
    """What shows only when the files are seen together."""
    assert read.suite is not None and read.suite_path is not None  # noqa: S101, PT018 - read without problems
    benches = [bench for bench, _ in chosen]
    problems = [problem for file in read.drops.values() for problem in drop_problems(file, benches)]
    problems += arm_problems([(file.drop, file.path) for file in read.drops.values()])
    if "baseline" not in read.drops:
        problems += baseline_problems(read.suite, read.suite_path)
    problems += [problem for bench in benches for problem in reference_problems(bench)]
    for bench, aliases in chosen:
        unclaimed = [alias for alias in aliases if not bench.adapters[alias].claimed]
        problems += [
            f"{bench.name}: found no claimed drive on adapter {alias}, expected `claim: true` on one at least"
            for alias in unclaimed
        ]
        if not aliases:
            problems.append(f"{bench.name}: found no adapter with a claimed drive, expected one to put under test")
    if not problems:
        drops = [file.drop for file in read.drops.values()]
        problems += level_problems(read.suite, read.suite_path, chosen, drops)
        problems += vary_problems(read.suite, read.suite_path, drops)
        problems += peer_problems(read.suite, read.suite_path, chosen)
    return problems


def _plain(bench: str) -> str:
    """A bench's name as part of an id: `.` parts a session from its next attempt."""
    return "".join(character if character.isalnum() else "_" for character in bench)


def _warnings(plans: Sequence[BenchPlan], profile: Profile) -> tuple[str, ...]:
    """What the plan cannot do, said before a bench is touched."""
    warnings = []
    for plan in plans:
        if plan.detectable > profile.margin and plan.design.kind != "single":
            size = "no loss at all" if math.isinf(plan.detectable) else f"losses from {plan.detectable:.1%}"
            warnings.append(
                f"{plan.bench.name}: at the noise expected, this plan sees {size}; the margin is {profile.margin:.1%}"
            )
        if plan.design.identical:
            warnings.append(
                f"{plan.bench.name}: both arms declare the same; this campaign compares a drop with itself"
            )
        left_out = [point for point in plan.points if point.skipped.startswith("outside the budget")]
        if left_out:
            of = sum(not point.skipped for point in plan.points) + len(left_out)
            warnings.append(f"{plan.bench.name}: {len(left_out)} of {of} points are outside the budget")
        if profile.budget is not None and plan.seconds > profile.budget:
            told = f"a plan of {plan.seconds:.0f} s, expected at most {profile.budget:.0f} s"
            warnings.append(f"{plan.bench.name}: found {told}")
    return tuple(warnings)


def _inputs(request: PlanRequest, read: _Read, plans: Sequence[BenchPlan]) -> dict[str, InputFile]:
    """Copies of every input as used; the inventory as an extract of what is ours, so that no secret gets in."""
    assert read.suite_path is not None  # noqa: S101 - read without problems
    inputs = {
        "suite": InputFile("suite.yml", str(read.suite_path), read.suite_path.read_bytes()),
        "gate": InputFile("gate.yml", str(read.gate_path or ""), _gate_bytes(read.gate_path)),
    }
    for arm, file in read.drops.items():
        inputs[arm] = InputFile(f"{arm}.drop.yml", str(file.path), file.path.read_bytes())
    extract = {plan.bench.name: plan.bench.model_dump(mode="json", exclude_none=True) for plan in plans}
    text = json.dumps(extract, ensure_ascii=False, indent=1) + "\n"
    inputs["inventory"] = InputFile("inventory.json", " ".join(map(str, request.inventories)), text.encode())
    if read.history is not None:
        inputs["history"] = InputFile("history.json", str(request.history), read.history)
    return inputs


def _gate_bytes(path: Path | None) -> bytes:
    return _DEFAULT_GATE if path is None else path.read_bytes()


def _document(
    request: PlanRequest,
    read: _Read,
    plans: Sequence[BenchPlan],
    inputs: dict[str, InputFile],
    *,
    named: tuple[str, Profile],
    seed: int,
    warnings: Sequence[str],
) -> dict[str, Any]:
    """run.json as far as the plan knows it; `named` is the profile as it is used, with its name."""
    assert read.suite is not None  # noqa: S101 - read without problems
    profile_name, profile = named
    single = plans[0].design.kind == "single"
    interleaved = all(plan.design.kind == "interleaved" for plan in plans)
    loss = math.inf if single else max(plan.detectable for plan in plans)
    return {
        "inventories": [str(source) for source in request.inventories],
        "suite": {
            "name": read.suite.name,
            "profile": profile_name,
            "file": inputs["suite"].to_json()["file"],
            "sha256": inputs["suite"].sha256,
        },
        "arms": {arm: _arm(file.drop, inputs[arm]) for arm, file in read.drops.items()},
        "configurations": {name: entry for plan in plans for name, entry in plan.configurations.items()},
        "benches": {plan.bench.name: _bench(plan) for plan in plans},
        "plan": {
            "seed": seed,
            "design": "single" if single else "interleaved" if interleaved else "sessions",
            "designs": {
                plan.bench.name: {
                    "kind": plan.design.kind,
                    "change": plan.design.change,
                    "identical": plan.design.identical,
                    "differences": [
                        {
                            "section": d.section,
                            "owner": d.owner,
                            "name": d.name,
                            "baseline": d.first,
                            "candidate": d.second,
                        }
                        for d in plan.design.differences
                    ],
                }
                for plan in plans
            },
            "points": [point.to_json() for plan in plans for point in plan.points],
            "sessions": [session.to_json() for plan in plans for session in plan.sessions],
            "launches": profile.launches,
            "pairs": profile.pairs,
            "looks": "every" if profile.until == "decided" else "last",
            "expected_units": max(plan.expected_units for plan in plans),
            "effort": {plan.bench.name: plan.effort.to_json() for plan in plans},
            "runtime_s": profile.runtime,
            "ramp_s": profile.ramp,
            "idle_s": profile.idle,
            "margin": profile.margin,
            "indifference": profile.indifference,
            "marginal": profile.marginal,
            "alpha": profile.alpha,
            "detectable": None if math.isinf(loss) else round(loss, 6),
            "launch_count": sum(plan.launches for plan in plans),
            "measuring_seconds": round(max(plan.measuring_seconds for plan in plans), 1),
            # benches work at the same time: the longest one is the campaign's
            "expected_seconds": round(max(plan.seconds for plan in plans), 1),
            "warnings": list(warnings),
            "advice": [sentence for plan in plans for sentence in _advice(plan, read.suite)],
        },
        "provision": {plan.bench.name: dict(plan.specs) for plan in plans},
        "switches": {plan.bench.name: dict(plan.switches) for plan in plans},
        "provisioned": [],
        "versions": {"storqual": __version__},
    }


def _advice(plan: BenchPlan, suite: Suite) -> Iterator[str]:
    """What arithmetic says of the volumes that the arms declare."""
    volumes = [volume for spec in plan.specs.values() for volume in spec["raid"]]
    reads = [cell.pattern for cell in cells(suite) if cell.pattern["rw"] in ("randread", "randrw")]
    yield from raid_advice(volumes, plan.bench, max((int(str(pattern["bs"])) for pattern in reads), default=0))


def _arm(drop: Drop, file: InputFile) -> dict[str, Any]:
    return {
        "drop": drop.name,
        "file": file.to_json()["file"],
        "sha256": file.sha256,
        "description": drop.description,
        "manifest": drop.to_json(),
    }


def _bench(plan: BenchPlan) -> dict[str, Any]:
    """A bench in run.json: what the inventory says of it, every drive with its id."""
    adapters = {}
    for alias, adapter in plan.bench.adapters.items():
        entry = adapter.model_dump(mode="json", exclude={"drives"}, exclude_none=True)
        drives = [
            {"id": drive.id, **drive.model_dump(mode="json", exclude_none=True, exclude={"virtual"})}
            for drive in adapter.drives
        ]
        adapters[alias] = {**entry, "under_test": alias in plan.under_test, "drives": drives}
    return {
        "kind": plan.bench.kind,
        "state_dir": plan.bench.state_dir,
        "adapters": adapters,
        "environment": {},
        **({"reference": plan.bench.reference} if plan.bench.reference else {}),
    }
