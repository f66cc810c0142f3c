# SPDX-License-Identifier: Apache-2.0
"""A campaign of trials: planned from files, with a batch for each of its turns."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from storqual import __version__
from storqual.inputs import GATE, beside_inventory, find_drop, find_suite, read_drop, read_gate, read_inventory
from storqual.inputs.drop import Drop
from storqual.inputs.find import lab_folders
from storqual.inputs.inventory import Bench, Drive
from storqual.inputs.shape import did_you_mean, one_of, raise_all
from storqual.inputs.yaml_file import read_yaml
from storqual.plan.arms import change_cost, differences, spec_of
from storqual.plan.batches import claim
from storqual.plan.checks import DropFile, arm_problems, drop_problems, section_keys
from storqual.plan.inputs import NO_ADAPTER
from storqual.plan.resolve import resolve
from storqual.plan.volume_tools import drop_tool_problems
from storqual.robustness.external_runs import PlannedExternal, plan_external
from storqual.robustness.plan import PlannedTrial, Seat, TrialPlan, expected_seconds, plan_trials
from storqual.robustness.suite import SECTOR, RobustnessSuite, load_robustness
from storqual.run import InputFile, create_run, new_run_id
from storqual.run.layout import TRIAL_SCHEMA
from storqual_core.kit.errors import BadInputError
from storqual_core.turns.batch_file import SCHEMA

_SEEDS = 1 << 31


@dataclass(frozen=True)
class TrialRequest:
    """What a user asks for; `trial` is the id of one trial to be made `repeat` times, until it fails."""

    inventories: Sequence[str]
    candidate: str
    baseline: str
    suite: str
    profile: str | None
    gate: Path | None
    adapters: Sequence[str] | None
    seed: int | None
    limit: str | None
    trial: str | None
    repeat: int


@dataclass(frozen=True)
class Draft:
    """A campaign of trials as it would be: its run.json without what only a run directory adds, and its files."""

    document: Mapping[str, Any]
    inputs: Mapping[str, InputFile]
    batches: Sequence[Mapping[str, Any]]


def plan_campaign(request: TrialRequest, runs: Path) -> Path:
    """Write the run directory. Raises BadInputError with the problems of the files."""
    draft = draft_campaign(request)
    name = str(draft.document["suite"]["name"])
    run = new_run_id(name)
    blocks = [{**batch, "run": run} for batch in draft.batches]
    return create_run(runs, run, dict(draft.document), inputs=draft.inputs, blocks=blocks)


def draft_campaign(request: TrialRequest) -> Draft:  # noqa: PLR0915 - it reads every input once
    """Read every file and draw the trials; nothing is written. Raises BadInputError with every problem."""
    sources = [Path(source) for source in request.inventories]
    inventory, problems = read_inventory(sources, limit=request.limit)
    arms: dict[str, tuple[Drop, Path]] = {}
    for arm, name in (("baseline", request.baseline), ("candidate", request.candidate)):
        if name:
            try:
                path = find_drop(name, sources)
            except BadInputError as problem:
                problems += problem.problems
                continue
            drop, wrong = read_drop(path)
            problems += wrong
            if drop is not None:
                arms[arm] = (drop, path)
    gate = request.gate or beside_inventory(GATE, sources)
    if gate is not None:
        problems += read_gate(gate)[1]
    if request.adapters is not None and not request.adapters:
        problems.append(NO_ADAPTER)
    suite_path = find_suite(request.suite)
    try:
        suite = load_robustness(suite_path, profile=request.profile)
    except BadInputError as problem:
        raise BadInputError([*problems, *problem.problems]) from None
    raise_all(problems)
    if len(inventory.benches) != 1:
        listed = ", ".join(inventory.benches)
        raise BadInputError([f"--limit: benches {listed} match; trials are compared on one bench, so name one"])
    bench = next(iter(inventory.benches.values()))
    if bench.kind == "local":
        raise BadInputError(
            [f"{bench.name}: this bench has files for drives; trials need adapters on which faults can be injected"]
        )
    raise_all(_drop_problems(list(arms.values()), bench))
    seed = secrets.randbelow(_SEEDS) if request.seed is None else request.seed
    name, profile = suite.profile(request.profile)
    everywhere, _ = read_inventory(sources)
    anywhere = list(dict.fromkeys(alias for one in everywhere.benches.values() for alias in one.adapters))
    raise_all(_unknown(list(bench.adapters), anywhere, suite, suite_path, request.adapters or ()))
    seats = _seats(bench, request.adapters)
    raise_all(_volume_problems(list(arms.values()), bench, [seat.alias for seat in seats]))
    seats = _beside_volumes(seats, [drop for drop, _ in arms.values()], bench)
    lines = [_boot_words(drop) for drop, _ in arms.values()]
    plan = plan_trials(suite, profile, seats, arms=list(arms), kind=bench.kind, seed=seed, boot_lines=lines)
    external = plan_external(suite, profile, seats, plan.sessions)
    if request.trial is not None:
        plan, external = _repeated(plan, request.trial, request.repeat), ()
    if not plan.trials and not external:
        raise BadInputError([f"suite {suite.name}: found nothing that can be run here", *plan.left_out])
    under_test = {trial.adapter for trial in plan.trials} | {one.adapter for one in external}
    inputs = _inputs(request, suite_path, arms, bench, gate)
    batches = streamed_batches(suite, plan, external, bench)
    specs = _specs({arm: drop for arm, (drop, _) in arms.items()}, bench, under_test)
    document = {
        "inventories": list(request.inventories),
        "lab": lab_folders(request.inventories),
        "suite": {"name": suite.name, "profile": name, **_file(inputs["suite"])},
        "arms": {
            arm: {
                "drop": drop.name,
                **_file(inputs[arm]),
                "description": drop.description,
                "manifest": drop.to_json(),
            }
            for arm, (drop, _) in arms.items()
        },
        "configurations": {},
        "provision": {bench.name: specs},
        "benches": {bench.name: _bench(bench, under_test)},
        "plan": _plan(plan, external, seed, bench, batches, specs, until_failure=request.trial is not None),
        "provisioned": [],
        "versions": {"storqual": __version__},
    }
    return Draft(document, inputs, batches)


def _inputs(
    request: TrialRequest, suite: Path, arms: Mapping[str, tuple[Drop, Path]], bench: Bench, gate: Path | None
) -> dict[str, InputFile]:
    """The files that the run keeps, as they were read."""
    inputs = {
        "suite": InputFile("suite.yml", str(suite), suite.read_bytes()),
        **{arm: InputFile(f"{arm}.drop.yml", str(path), path.read_bytes()) for arm, (_, path) in arms.items()},
        "inventory": InputFile(
            "inventory.json",
            " ".join(request.inventories),
            (json.dumps({bench.name: bench.model_dump(mode="json", exclude_none=True)}, indent=1) + "\n").encode(),
        ),
    }
    if gate is not None:
        inputs["gate"] = InputFile("gate.yml", str(gate), gate.read_bytes())
    return inputs


_WHILE_MEASURED = ("iops_limit", "unplug")
"""What only a campaign that measures does to a virtual bench; trials have faults for it."""


def _drop_problems(drops: Sequence[tuple[Drop, Path]], bench: Bench) -> Iterator[str]:
    """What a drop names and the bench does not have, and words that a session of trials would leave undone."""
    for drop, path in drops:
        yield from drop_problems(DropFile(drop, path), [bench])
        document = read_yaml(path)
        for number, entry in enumerate(drop.sections["virtual"]):
            keys = section_keys(document, "virtual", number)
            for name in _WHILE_MEASURED:
                if name in entry.settings:
                    sentence = f"campaigns of trials do not apply virtual.{name}; remove it from the drop"
                    yield document.about((*keys, name), sentence)
    yield from arm_problems(drops)


def _volume_problems(drops: Sequence[tuple[Drop, Path]], bench: Bench, aliases: Sequence[str]) -> Iterator[str]:
    """Volumes that no tool can make as they are declared."""
    return drop_tool_problems([(bench, aliases)], [DropFile(drop, path) for drop, path in drops])


def _specs(drops: Mapping[str, Drop], bench: Bench, under_test: set[str]) -> dict[str, Any]:
    """What the sessions of each arm are provisioned with, and what it costs to come from the other arm."""
    aliases = [alias for alias in bench.adapters if alias in under_test]
    resolved = {arm: resolve(drop, bench, aliases) for arm, drop in drops.items()}
    found = {}
    for arm, own in resolved.items():
        (other,) = [one for name, one in resolved.items() if name != arm] or [own]
        spec = spec_of(own, other, bench, aliases, arm=arm, configuration=arm)
        found[arm] = {**spec, "change": change_cost(differences(other, own))}
    return found


def _boot_words(drop: Drop) -> list[str]:
    """What a drop adds to the kernel's command line."""
    listed = [value for section, _, name, value in drop.settings() if (section, name) == ("os", "cmdline")]
    return [str(word) for value in listed for word in value]


def _unknown(
    here: Sequence[str], anywhere: Sequence[str], suite: RobustnessSuite, file: Path, asked: Sequence[str]
) -> Iterator[str]:
    """Adapters that a user names and the bench does not have, or a suite and no bench of the inventory has."""
    named = [("--adapters", alias, here) for alias in asked]
    for number, trial in enumerate(suite.trials):
        named += [(f"{file}: trials[{number}]: adapters", alias, anywhere) for alias in trial.adapters]
    for where, alias, known in named:
        if alias not in known:
            yield f"{where}: found no adapter {alias!r}, expected {one_of(known)}{did_you_mean(alias, known)}"


def _seats(bench: Bench, wanted: Sequence[str] | None) -> list[Seat]:
    """The adapters under test that reach a claimed drive."""
    named = wanted or bench.under_test or list(bench.adapters)
    seats = []
    for alias, adapter in bench.adapters.items():
        own = tuple((drive.id, drive.size or 0) for drive in adapter.claimed if not drive.paths)
        shared = tuple(
            (drive.id, drive.size or 0)
            for owner, other in bench.adapters.items()
            for drive in other.claimed
            if drive.paths and alias in (owner, *drive.paths)
        )
        if alias in named and (own or shared) and adapter.address:
            seats.append(Seat(alias, adapter.address, adapter.driver or "", own, shared))
    return seats


def _beside_volumes(seats: Sequence[Seat], drops: Sequence[Drop], bench: Bench) -> list[Seat]:
    """The adapters with the drives that no drop makes members of a volume.

    Raises BadInputError for an adapter that has none of those.
    """
    volumes = [volume for drop in drops for volume in resolve(drop, bench, list(bench.adapters)).raid]
    members = {member for volume in volumes for member in volume["members"]}

    def free(drives: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
        return tuple(drive for drive in drives if drive[0] not in members)

    left = [replace(seat, drives=free(seat.drives), shared=free(seat.shared)) for seat in seats]
    raise_all(
        f"{bench.name}: every claimed drive of adapter {seat.alias} is a member of a volume of the drops; trials "
        "need one that is none: leave it out of the volume, or exclude the adapter (--adapters)"
        for seat in left
        if not seat.drives and not seat.shared
    )
    return left


def _repeated(plan: TrialPlan, wanted: str, times: int) -> TrialPlan:
    """One trial, `times` times, in one session. Raises BadInputError for an id that the plan does not have."""
    found = next((trial for trial in plan.trials if trial.id == wanted), None)
    if found is None:
        ids = [trial.id for trial in plan.trials]
        raise BadInputError([f"--trial: found no trial {wanted!r} in this plan, expected {one_of(ids)}"])
    trials = [
        replace(found, id=f"{found.id}.r{number}", pair=f"{found.pair}.r{number}", session="s01")
        for number in range(1, times + 1)
    ]
    return TrialPlan(tuple(trials), (("s01", found.arm),), ())


_FIRST_BYTE = 2 << 20
"""Where a load begins on its drive: behind the stamps of the guard."""


def streamed_batches(
    suite: RobustnessSuite, plan: TrialPlan, external: Sequence[PlannedExternal], bench: Bench
) -> list[dict[str, Any]]:
    """A batch for each trial and each program: what a bench is like after one decides whether the next is run on it.

    Trials of a session come before its programs. The batches lack the id of the run.
    """
    targets = {drive.id: {"claim": claim(drive)} for drive in _claimed(bench)}
    turns = [(one.session, _turn("trial", one, _trial(suite, one))) for one in plan.trials]
    turns += [(one.session, _turn("program", one, _program(suite, one))) for one in external]
    batches = []
    for session, _ in plan.sessions:
        for number, turn in enumerate((turn for of, turn in turns if of == session), start=1):
            pci = bench.adapters[turn["adapter"]].address
            batches.append(
                {
                    "schema": SCHEMA,
                    "run": "",
                    "block": f"{session}-b{number:03d}",
                    "bench": bench.name,
                    "session": session,
                    "state_dir": bench.state_dir,
                    "targets": targets,
                    "spool": "streamed",
                    "turns": [{**turn, "request": {"pci": pci, **turn["request"]}}],
                }
            )
    return batches


def _turn(kind: str, planned: PlannedTrial | PlannedExternal, request: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": kind,
        "index": 0,
        "id": planned.id,
        "adapter": planned.adapter,
        "arm": planned.arm,
        "configuration": planned.arm,
        "point": planned.fault if isinstance(planned, PlannedTrial) else planned.program,
        "n": planned.number,
        "drives": [planned.drive],
        "request": dict(request),
    }


def _trial(suite: RobustnessSuite, planned: PlannedTrial) -> dict[str, Any]:
    load = suite.loads[planned.load]
    own = ("pair", "fault", "way", "seed", "at_s", "away_s", "load_s", "number")
    return {
        **{name: value for name, value in planned.to_json().items() if name in own},
        "expect": suite.trials[planned.number].expect.model_dump(mode="json"),
        "load": {
            "first": _FIRST_BYTE // SECTOR,
            "sectors": load.region // SECTOR,
            "workers": load.workers,
            "sizes": [size // SECTOR for size in load.sizes],
            "read_share": load.reads,
            "through_share": load.write_through,
            "flush_every": load.flush_every,
            "seed": planned.seed,
        },
    }


def _program(suite: RobustnessSuite, planned: PlannedExternal) -> dict[str, Any]:
    program = suite.external[planned.program]
    return {
        "program": planned.program,
        "number": planned.number,
        "words": list(program.run),
        "reads": program.reads,
        "report": program.report,
        "package": program.package,
        "checkout": program.checkout,
        "limit_s": program.limit,
    }


def _claimed(bench: Bench) -> list[Drive]:
    return [drive for adapter in bench.adapters.values() for drive in adapter.claimed]


def _file(entry: InputFile) -> dict[str, str]:
    return {"file": entry.to_json()["file"], "sha256": entry.sha256}


def _plan(
    plan: TrialPlan,
    external: Sequence[PlannedExternal],
    seed: int,
    bench: Bench,
    batches: Sequence[Mapping[str, Any]],
    specs: Mapping[str, Mapping[str, Any]],
    *,
    until_failure: bool,
) -> dict[str, Any]:
    sessions = [
        {
            "id": session,
            "bench": bench.name,
            "arm": arm,
            "configuration": arm,
            "change": specs[arm]["change"],
            "boot": "if_needed",
            "arms": [arm],
            "blocks": [batch["block"] for batch in batches if batch["session"] == session],
        }
        for session, arm in plan.sessions
    ]
    return {
        "seed": seed,
        "design": "sessions",
        "points": [],
        "sessions": sessions,
        "launches": 0,
        "runtime_s": 0.0,
        "ramp_s": 0.0,
        "expected_seconds": round(expected_seconds(plan, bench.kind), 1),
        "trials": [trial.to_json() for trial in plan.trials],
        "external": [one.to_json() for one in external],
        "left_out": list(plan.left_out),
        "until_failure": until_failure,
        "evidence": TRIAL_SCHEMA,
    }


def _bench(bench: Bench, under_test: set[str]) -> dict[str, Any]:
    adapters = {}
    for alias, adapter in bench.adapters.items():
        entry = adapter.model_dump(mode="json", exclude={"drives"}, exclude_none=True)
        drives = [
            {"id": drive.id, **drive.model_dump(mode="json", exclude_none=True, exclude={"virtual"})}
            for drive in adapter.drives
        ]
        adapters[alias] = {**entry, "under_test": alias in under_test, "drives": drives}
    told = bench.witnessed()
    return {"kind": bench.kind, "state_dir": bench.state_dir, "adapters": adapters, "environment": {}, **told}
