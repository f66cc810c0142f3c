# SPDX-License-Identifier: Apache-2.0
"""`judge_run`: a verdict from files. Measured once, judged as often as anybody likes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from storqual.inputs import load_gate, load_suite, load_waivers
from storqual.inputs.policy import Gate
from storqual.inputs.suite import EffectiveCriterion, Suite
from storqual.judge.confirmation import confirm, confirming_sessions
from storqual.judge.earlier import out_of_control, read_histories
from storqual.judge.entry import check_entry, entry, said_of, stale_baseline, with_evidence
from storqual.judge.evidence import (
    counted_errors,
    errors_of,
    grown_errors,
    recorded_errors_of,
    short_ramps,
    unsteady_benches,
    with_steadiness,
)
from storqual.judge.extract import Key, Place, extract
from storqual.judge.family import corrected, overall_findings
from storqual.judge.judgements import kept_waivers, write_verdict
from storqual.judge.numbers import with_time_needed
from storqual.judge.outcome import EXIT_CODES, apply_waivers, run_outcome
from storqual.judge.point import answer
from storqual.judge.question import Question, curves_of
from storqual.judge.rig import log_findings, overcome_problems, rig_problems, sectors_outside, unfinished_blocks
from storqual.metrics import METRICS
from storqual.run import Check, Run, Sample, ledger, read_run, sha256_of
from storqual.run.samples import stream
from storqual.statistics.analysis import Looks
from storqual_core.kit.errors import BadInputError

SCHEMA = "storqual.verdict/1"
_DATA = ("samples.jsonl", "checks.jsonl")


def judge_run(
    path: Path,
    *,
    suite: Path | None = None,
    gate: Path | None = None,
    waivers: Path | None = None,
    as_of: datetime | None = None,
) -> dict[str, Any]:
    """Judge a run and write the verdict; returns it.

    By the rules the run was planned with it is `verdict.json`; one by another suite, gate or time, or a second one by
    other waivers, goes to `judgements/<digest>/` and leaves the first alone. Waivers are kept beside their verdict,
    and judging again takes those: they expire by themselves. Raises BadInputError for inputs that cannot be used,
    StorqualError for a damaged run directory.
    """
    waivers = waivers or kept_waivers(path)
    verdict = verdict_of(path, suite=suite, gate=gate, waivers=waivers, as_of=as_of)
    other_rules = suite is not None or gate is not None or as_of is not None
    write_verdict(path, verdict, other_rules=other_rules, waivers=waivers)
    return verdict


def verdict_of(
    path: Path,
    *,
    suite: Path | None = None,
    gate: Path | None = None,
    waivers: Path | None = None,
    as_of: datetime | None = None,
) -> dict[str, Any]:
    """The verdict that `judge_run` would write. Raises what it raises."""
    run = read_run(path)
    moment = as_of or datetime.now(UTC)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    files = {
        "suite": suite or run.input_file("suite"),
        "gate": gate or _optional(run, "gate"),
        "waivers": waivers,
        "history": _optional(run, "history"),
        **{arm: run.input_file(arm) for arm in run.arms},
    }
    return _verdict(run, {name: file for name, file in files.items() if file is not None}, moment)


def _optional(run: Run, name: str) -> Path | None:
    """An input that a run may have been planned without."""
    try:
        return run.input_file(name)
    except BadInputError:
        return None


def _verdict(run: Run, files: Mapping[str, Path], moment: datetime) -> dict[str, Any]:
    rules = load_suite(files["suite"])
    policy = load_gate(files["gate"]) if "gate" in files else Gate()
    accepted = load_waivers(files["waivers"]) if "waivers" in files else ()
    seen: set[tuple[Key, str]] = set()
    asked = gather(run, rules, policy, _watched(stream(run.path), seen))
    questions = asked.questions
    looks, histories = looks_of(run), read_histories(files.get("history"))
    judged = confirm(questions, answer(questions, looks, histories), looks, histories)
    judged = corrected(questions, judged)
    unsteady = unsteady_benches(run)
    judged = [with_steadiness(question, one, unsteady) for question, one in zip(questions, judged, strict=True)]
    judged = [with_time_needed(run, *both) for both in zip(questions, judged, strict=True)]
    findings, counted, grown = log_findings(run), counted_errors(run), grown_errors(run)
    said = [
        [*said_of(question, findings), *errors_of(question, counted), *recorded_errors_of(question, grown)]
        for question in questions
    ]
    days = policy.baseline_max_age_days
    for index, question in enumerate(questions):
        stale = stale_baseline(question.place.of("baseline"), moment, days) if days is not None else ""
        judged[index] = with_evidence(judged[index], said[index], stale)
    criteria = [entry(*parts) for parts in zip(questions, judged, said, strict=True)]
    criteria += [check_entry(check, required=_check_required(check, policy)) for check in _latest(run.checks)]
    drop = run.arms["candidate"].drop
    doubts = apply_waivers(criteria, accepted, drop=drop, suite=run.suite.name, today=moment.date())
    warnings = [doubt.text for doubt in doubts]
    covered = ledger(run.plan.points, _Seen.of(seen), run.arms)
    rig = rig_problems(run)
    outcome, reason = run_outcome(criteria, rig, holes=len(covered.holes), marginal_passes=policy.marginal_passes)
    if outcome in ("PASS", "MARGINAL") and any(one["waiver"] for one in criteria):
        warnings.append("this run passes because failures are waived")
    return {
        "schema": SCHEMA,
        "run": run.name,
        "outcome": outcome,
        "reason": reason,
        "exit_code": EXIT_CODES[outcome],
        "as_of": moment.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "inputs": {
            **{name: sha256_of(file.read_bytes()) for name, file in files.items()},
            **{name: sha256_of((run.path / name).read_bytes()) for name in _DATA if (run.path / name).is_file()},
        },
        "criteria": criteria,
        "overall": overall_findings(questions, judged),
        "coverage": covered.to_json(),
        "sectors_written_outside_claims": sectors_outside(run),
        "warnings": [
            *(f"{bench}: {told}" for bench, told in unsteady.items()),
            *out_of_control(run, files.get("history")),
            *short_ramps(asked.places),
            *rig,
            *overcome_problems(run),
            *unfinished_blocks(run),
            *warnings,
            *_same_build(run),
        ],
    }


@dataclass(frozen=True)
class Asked:
    """What is asked of a run: questions, and where the launches of its points are."""

    questions: list[Question]
    places: Mapping[Key, Place]


def questions_of(run: Run, rules: Suite, policy: Gate, samples: Iterable[Sample]) -> list[Question]:
    """Every criterion at every planned point, with the launches that can answer it."""
    return gather(run, rules, policy, samples).questions


def gather(run: Run, rules: Suite, policy: Gate, samples: Iterable[Sample]) -> Asked:
    """The questions and what they are asked of."""
    profile = rules.profile_name(run.suite.profile if run.suite.profile in rules.profiles else None)
    designs = run.document["plan"].get("designs") or {}
    points = [point for point in run.plan.points if not point.skipped]
    asked = [[_by_policy(one, policy) for one in rules.criteria_for(point, profile)] for point in points]
    wanted: dict[Key, list[str]] = {
        point.key: [one.metric for one in criteria if one.metric in METRICS]
        for point, criteria in zip(points, asked, strict=True)
    }
    places = extract(samples, wanted, confirming_sessions(run))
    peers: defaultdict[tuple[str, str], list[tuple[str, Place]]] = defaultdict(list)
    if any(one.against == "peers" for criteria in asked for one in criteria):
        for (bench, adapter, name), place in places.items():
            peers[(bench, name)].append((adapter, place))
    scaled = any(one.against == "scaling" for criteria in asked for one in criteria)
    curves = curves_of(points) if scaled else []
    on_curve = {(point.key, curve.over): curve for curve in curves for point in curve.points.values()}
    found = []
    for point, criteria in zip(points, asked, strict=True):
        kind = (designs.get(point.bench) or {}).get("kind", run.plan.design)
        place = places.get(point.key) or Place()
        for one in criteria:
            others = peers[(point.bench, point.point)] if one.against == "peers" else []
            beside = tuple((adapter, other) for adapter, other in others if adapter != point.adapter)
            emulated = run.benches[point.bench].get("kind") != "hardware"
            excused = f"needs hardware: {one.hardware_only}" if one.hardware_only and emulated else ""
            question = Question(point, one, place, kind == "sessions", beside, excused)
            if one.against == "scaling":
                if point.factors.get(one.over) != one.linear_to:
                    # it is asked once for a curve: at the level that it names
                    continue
                question = replace(question, curve=on_curve.get((point.key, one.over)), places=places)
            found.append(question)
    return Asked(found, places)


def looks_of(run: Run) -> Looks:
    """Whether the campaign could end on what it saw. One whose size was planned beforehand has a single look."""
    return "every" if run.document["plan"].get("looks") == "every" else "last"


class _Seen:
    """Which arms were seen where, in the form in which the ledger takes samples."""

    def __init__(self, key: Key, arm: str) -> None:
        self.bench, self.adapter, self.point = key
        self.arm = arm
        self.status = "ok"

    @classmethod
    def of(cls, seen: Iterable[tuple[Key, str]]) -> Any:  # noqa: ANN401 - stands for samples
        """Stand-ins for all samples."""
        return (cls(key, arm) for key, arm in seen)


def _watched(samples: Iterable[Sample], seen: set[tuple[Key, str]]) -> Iterable[Sample]:
    """The samples, and a note of which arms were finished where."""
    for sample in samples:
        if sample.status != "lost":
            seen.add(((sample.bench, sample.adapter, sample.point), sample.arm))
        yield sample


def _by_policy(criterion: EffectiveCriterion, policy: Gate) -> EffectiveCriterion:
    """The gate's policy decides what is required where it says anything about a criterion."""
    if any(fnmatchcase(criterion.id, pattern) for pattern in policy.required):
        return replace(criterion, required=True)
    if any(fnmatchcase(criterion.id, pattern) for pattern in policy.informative):
        return replace(criterion, required=False)
    return criterion


def _check_required(check: Check, policy: Gate) -> bool:
    """The gate's policy decides where it names a check; else the check's own word, and without one it counts."""
    if any(fnmatchcase(check.id, pattern) for pattern in policy.required):
        return True
    if any(fnmatchcase(check.id, pattern) for pattern in policy.informative):
        return False
    return check.fields.get("required") is not False


def _latest(checks: Iterable[Check]) -> list[Check]:
    """One outcome per check: a suite that was run again speaks last."""
    last: dict[tuple[str | None, ...], Check] = {}
    for check in checks:
        last[(check.id, check.bench, check.adapter, check.point)] = check
    return list(last.values())


def _same_build(run: Run) -> list[str]:
    """Say when both arms turned out to be the same software."""
    builds: defaultdict[str, set[str]] = defaultdict(set)
    for event in run.events:
        if event.kind == "session_started":
            details = event.fields.get("provisioned") or {}
            build = {"kernel": event.fields.get("kernel"), "drivers": details.get("drivers")}
            builds[str(event.fields.get("arm"))].add(json.dumps(build, sort_keys=True))
    if builds["baseline"] and builds["baseline"] == builds["candidate"]:
        return ["both arms ran the same kernel with the same driver builds"]
    return []
