# SPDX-License-Identifier: Apache-2.0
"""What a plan leaves in the run directory: run.json as far as it is known, and copies of every input."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual import __version__
from storqual.inputs.drop import Drop
from storqual.inputs.product import product_files
from storqual.inputs.suite import Profile, Suite
from storqual.plan.bench_plan import BenchPlan
from storqual.plan.inputs import PlanInputs, PlanRequest
from storqual.plan.needs import needed_programs
from storqual.plan.points import points_of
from storqual.plan.volumes import raid_advice
from storqual.run import InputFile
from storqual.run.layout import CHECK_INPUT, TRIAL_SCHEMA

_LIMITS = ("margin", "indifference", "marginal", "alpha")
_DEFAULT_GATE = b"# no gate policy was given: the suite's own `required` decides\nname: default\n"


def input_files(request: PlanRequest, read: PlanInputs, plans: Sequence[BenchPlan]) -> dict[str, InputFile]:
    """Copies of every input as used; the inventory as an extract of what is ours, so that no secret gets in."""
    assert read.suite_path is not None  # noqa: S101 - read without problems
    inputs = {
        "suite": InputFile("suite.yml", str(read.suite_path), read.suite_path.read_bytes()),
        "gate": InputFile("gate.yml", str(read.gate_path or ""), _gate_bytes(read.gate_path)),
    }
    for name, path in product_files(read.suite_path, read.suite.products if read.suite else ()).items():
        inputs[name] = InputFile(path.name, str(path), path.read_bytes())
    for arm, file in read.drops.items():
        inputs[arm] = InputFile(f"{arm}.drop.yml", str(file.path), file.path.read_bytes())
    extract = {plan.bench.name: plan.bench.model_dump(mode="json", exclude_none=True) for plan in plans}
    text = json.dumps(extract, ensure_ascii=False, indent=1) + "\n"
    inputs["inventory"] = InputFile("inventory.json", " ".join(map(str, request.inventories)), text.encode())
    inputs |= {
        f"{CHECK_INPUT}{path.name}": InputFile(path.name, str(path.resolve()), path.read_bytes())
        for path in request.checks
    }
    if request.facts is not None:
        inputs["facts"] = InputFile("facts.json", str(request.facts), read.facts[1])
    if read.history is not None:
        inputs["history"] = InputFile("history.json", str(request.history), read.history)
    return inputs


def _gate_bytes(path: Path | None) -> bytes:
    return _DEFAULT_GATE if path is None else path.read_bytes()


def run_document(
    request: PlanRequest,
    read: PlanInputs,
    plans: Sequence[BenchPlan],
    inputs: dict[str, InputFile],
    *,
    named: tuple[str, Profile],
    seed: int,
    warnings: Sequence[str],
    not_varied: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """run.json as far as the plan knows it; `named` is the profile as it is used, with its name.

    `not_varied`: by bench, the settings that its drives do not let be changed, each with the reason.
    """
    assert read.suite is not None  # noqa: S101 - read without problems
    profile_name, profile = named
    single = plans[0].design.kind == "single"
    interleaved = all(plan.design.kind == "interleaved" for plan in plans)
    measured = [plan for plan in plans if plan.launches]
    loss = math.inf if single else max((plan.detectable for plan in measured), default=math.inf)
    has_points = any(plan.points for plan in plans)
    decided = profile.until == "decided" and bool(measured)
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
                    "by_block": plan.design.by_batch,
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
            "launches": profile.launches if has_points else 0,
            "pairs": profile.pairs,
            "looks": "every" if decided else "last",
            "expected_units": max(plan.expected_units for plan in plans),
            "effort": {plan.bench.name: plan.effort.to_json() for plan in plans},
            "runtime_s": profile.runtime if has_points else 0.0,
            "ramp_s": profile.ramp if has_points else 0.0,
            "idle_s": profile.idle,
            **({name: getattr(profile, name) for name in _LIMITS} if has_points else {}),
            "detectable": None if math.isinf(loss) else round(loss, 6),
            "launch_count": sum(plan.launches for plan in plans),
            "measuring_seconds": round(max(plan.measuring_seconds for plan in plans), 1),
            # benches work at the same time: the longest one is the campaign's
            "expected_seconds": round(max(plan.seconds for plan in plans), 1),
            "bench_time": {plan.bench.name: [line.to_json() for line in plan.time] for plan in plans},
            "warnings": list(warnings),
            **({"not_varied": dict(not_varied)} if not_varied else {}),
            "advice": [sentence for plan in plans for sentence in _advice(plan, read.suite)],
            "needs": {plan.bench.name: needed_programs(plan) for plan in plans},
            **_turns(plans, until_failure=request.trial is not None),
        },
        "provision": {plan.bench.name: dict(plan.specs) for plan in plans},
        "switches": {plan.bench.name: dict(plan.switches) for plan in plans},
        "provisioned": [],
        "versions": {"storqual": __version__},
    }


def _turns(plans: Sequence[BenchPlan], *, until_failure: bool) -> dict[str, Any]:
    """What a plan says of its trials and programs; nothing where it has none."""
    if not any(plan.turns.sessions for plan in plans):
        return {}
    return {
        "trials": [trial.to_json() for plan in plans for trial in plan.turns.trials],
        "external": [program.to_json() for plan in plans for program in plan.turns.programs],
        "left_out": [_named(plan, plans) + sentence for plan in plans for sentence in plan.turns.left_out],
        "until_failure": until_failure,
        "evidence": TRIAL_SCHEMA,
    }


def _named(plan: BenchPlan, plans: Sequence[BenchPlan]) -> str:
    return f"{plan.bench.name}: " if len(plans) > 1 else ""


def _advice(plan: BenchPlan, suite: Suite) -> Iterator[str]:
    """What arithmetic says of the volumes that the arms declare."""
    volumes = [volume for spec in plan.specs.values() for volume in spec["raid"]]
    reads = [point.pattern for point in points_of(suite) if point.pattern["rw"] in ("randread", "randrw")]
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
        **plan.bench.witnessed(),
        "state_dir": plan.bench.state_dir,
        "adapters": adapters,
        "environment": {},
        **({"reference": plan.bench.reference} if plan.bench.reference else {}),
    }
