# SPDX-License-Identifier: Apache-2.0
"""`judge_run`: a verdict from files. Measured once, judged as often as anybody likes."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from storqual.judge.point import Arms, Judged, judge_point
from storqual.judge.rig import block_evidence, rig_problems, sectors_outside
from storqual.judge.waive import apply_waivers
from storqual.metrics import METRICS
from storqual.model import load_gate, load_suite, load_waivers
from storqual.model.policy import Gate
from storqual.model.suite import EffectiveCriterion
from storqual.store import Check, PlannedPoint, Run, Sample, coverage, read_run, sha256_of, write_json

__all__ = ["EXIT_CODES", "judge_run"]

SCHEMA = "storqual.verdict/1"
EXIT_CODES: Mapping[str, int] = {"PASS": 0, "MARGINAL": 0, "FAIL": 1, "INCONCLUSIVE": 2, "ERROR": 2}
_ARMS = ("baseline", "candidate")


def judge_run(
    path: Path,
    *,
    suite: Path | None = None,
    gate: Path | None = None,
    waivers: Path | None = None,
    as_of: datetime | None = None,
) -> dict[str, Any]:
    """Judge a run and write the verdict; returns it.

    Without other inputs than the plan's it is `verdict.json`; a verdict by another suite or gate, or a second one by
    other waivers, goes to `judgements/<digest>/` and leaves the first alone. Raises BadInputError for inputs that
    cannot be used.
    """
    run = read_run(path)
    moment = (as_of or datetime.now(UTC)).replace(tzinfo=UTC)
    planned = run.document.get("inputs") or {}
    files = {
        "suite": suite or run.input_file("suite"),
        **({"gate": gate or run.input_file("gate")} if gate or "gate" in planned else {}),
        **({"waivers": waivers} if waivers else {}),
        **{arm: run.input_file(arm) for arm in _ARMS},
    }
    verdict = _verdict(run, files, moment)
    target = _target(path, verdict, replanned=suite is not None or gate is not None)
    write_json(target, verdict)
    return verdict


def _verdict(run: Run, files: Mapping[str, Path], moment: datetime) -> dict[str, Any]:
    rules, policy = load_suite(files["suite"]), load_gate(files["gate"]) if "gate" in files else Gate()
    accepted = load_waivers(files["waivers"]) if "waivers" in files else ()
    rig = rig_problems(run)
    profile = rules.profile_name(run.suite.profile if run.suite.profile in rules.profiles else None)
    points = [point for point in run.plan.points if not point.skipped]
    by_place = _by_place(run.samples)
    evidence = block_evidence(run)
    criteria = [
        _entry(run, point, _by_policy(criterion, policy), by_place, evidence, moment, policy)
        for point in points
        for criterion in rules.criteria_for(point, profile)
    ]
    criteria += [_check(check, policy) for check in _latest(run.checks)]
    drop = run.arms["candidate"].name
    warnings = apply_waivers(criteria, accepted, drop=drop, suite=run.suite.name, today=moment.date())
    covered = coverage(run)
    outcome, reason = _outcome(criteria, rig, holes=len(covered.holes), marginal_passes=policy.marginal_passes)
    if outcome in ("PASS", "MARGINAL") and any(entry["waiver"] for entry in criteria):
        warnings.append("this run passes because failures are waived")
    return {
        "schema": SCHEMA,
        "run": run.name,
        "outcome": outcome,
        "reason": reason,
        "exit_code": EXIT_CODES[outcome],
        "as_of": moment.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "inputs": {name: sha256_of(file.read_bytes()) for name, file in files.items()},
        "criteria": criteria,
        "coverage": covered.to_json(),
        "sectors_written_outside_claims": sectors_outside(run),
        "warnings": [*rig, *warnings, *_same_build(run)],
    }


Places = Mapping[tuple[str, str, str, str], Sequence[Sample]]


def _by_place(samples: Iterable[Sample]) -> Places:
    """Samples by (bench, adapter, point, arm), in the order they were measured."""
    places: defaultdict[tuple[str, str, str, str], list[Sample]] = defaultdict(list)
    for sample in sorted(samples, key=lambda sample: sample.start):
        places[(sample.bench, sample.adapter, sample.point, sample.arm)].append(sample)
    return places


def _by_policy(criterion: EffectiveCriterion, policy: Gate) -> EffectiveCriterion:
    """The gate's policy decides what is required where it says anything about a criterion."""
    if any(fnmatchcase(criterion.id, pattern) for pattern in policy.required):
        return replace(criterion, required=True)
    if any(fnmatchcase(criterion.id, pattern) for pattern in policy.informative):
        return replace(criterion, required=False)
    return criterion


def _entry(
    run: Run,
    point: PlannedPoint,
    criterion: EffectiveCriterion,
    by_place: Places,
    evidence: Mapping[str, list[str]],
    moment: datetime,
    policy: Gate,
) -> dict[str, Any]:
    """One criterion at one point as verdict.json has it."""
    found = {arm: by_place.get((point.bench, point.adapter, point.point, arm), ()) for arm in _ARMS}
    peers = {
        adapter: samples
        for (bench, adapter, name, arm), samples in by_place.items()
        if criterion.against == "peers" and (bench, name, arm) == (point.bench, point.point, "candidate")
        if adapter != point.adapter
    }
    design = (run.document["plan"].get("designs") or {}).get(point.bench) or {}
    by_session = design.get("kind", run.plan.design) == "sessions"
    judged = judge_point(criterion, Arms(found["baseline"], found["candidate"], by_session, peers))
    samples = [*found["baseline"], *found["candidate"]]
    said = sorted({line for sample in samples for line in evidence.get(sample.block, ())})
    judged = _with_evidence(judged, criterion, said, _stale(found["baseline"], moment, policy))
    metric = METRICS.get(criterion.metric)
    return {
        "id": criterion.id,
        "bench": point.bench,
        "adapter": point.adapter,
        "point": point.point,
        "metric": criterion.metric,
        "unit": metric.unit if metric else "",
        "better": metric.better if metric else "higher",
        "against": criterion.against,
        "reference": judged.reference,
        "outcome": judged.outcome,
        "reason": judged.reason,
        "candidate": judged.candidate,
        "shift_percent": _percent(judged.shift),
        "ci95_percent": [_percent(end) for end in judged.ci95] if judged.ci95 else None,
        "margin_percent": _percent(judged.margin),
        "indifference_percent": _percent(judged.indifference),
        "detectable_percent": _percent(judged.detectable),
        "samples": {arm: len(found[arm]) for arm in ("candidate", "baseline")},
        "sessions": {arm: len({sample.session for sample in found[arm]}) for arm in ("candidate", "baseline")},
        "unit_of_inference": judged.unit_of_inference,
        "source": judged.source,
        "required": criterion.required,
        "evidence": said + sorted({doubt for sample in samples for doubt in sample.suspect})[:5],
        "waiver": None,
    }


def _with_evidence(judged: Judged, criterion: EffectiveCriterion, said: Sequence[str], stale: str) -> Judged:
    """Evidence against a number that would pass: what the kernel log says, or a baseline that is too old."""
    if judged.outcome in ("PASS", "MARGINAL") and criterion.required:
        if said:
            return replace(judged, outcome="ERROR", reason=said[0])
        if stale:
            return replace(judged, outcome="ERROR", reason=stale)
    return judged


def _stale(baseline: Sequence[Sample], moment: datetime, policy: Gate) -> str:
    days = policy.baseline_max_age_days
    if days is None or not baseline:
        return ""
    oldest = datetime.fromisoformat(min(sample.start for sample in baseline))
    if moment - oldest <= timedelta(days=days):
        return ""
    return f"the baseline was measured on {oldest.date().isoformat()}, the gate takes one of at most {days} days"


def _latest(checks: Iterable[Check]) -> list[Check]:
    """One outcome per check: a suite that was run again speaks last."""
    last: dict[tuple[str | None, ...], Check] = {}
    for check in checks:
        last[(check.id, check.bench, check.adapter, check.point)] = check
    return list(last.values())


def _check(check: Check, policy: Gate) -> dict[str, Any]:
    """A hand-written test's outcome as a criterion."""
    return {
        "id": check.id,
        "bench": check.bench,
        "adapter": check.adapter,
        "point": check.point,
        "metric": None,
        "unit": "",
        "better": "higher",
        "against": "check",
        "reference": None,
        "outcome": check.outcome,
        "reason": check.reason,
        "candidate": None,
        "shift_percent": None,
        "ci95_percent": None,
        "margin_percent": None,
        "indifference_percent": None,
        "detectable_percent": None,
        "samples": {"candidate": 0, "baseline": 0},
        "sessions": {"candidate": 0, "baseline": 0},
        "unit_of_inference": "value",
        "source": check.source,
        "required": not any(fnmatchcase(check.id, pattern) for pattern in policy.informative),
        "evidence": [],
        "waiver": None,
    }


def _outcome(
    criteria: Sequence[Mapping[str, Any]], rig: Sequence[str], *, holes: int, marginal_passes: bool
) -> tuple[str, str]:
    """The run's outcome and its sentence: the first rule that applies."""
    required = [entry for entry in criteria if entry["required"]]
    counts = Counter(entry["outcome"] for entry in required if not (entry["outcome"] == "FAIL" and entry["waiver"]))
    if rig:
        return "ERROR", rig[0]
    if counts["FAIL"]:
        return "FAIL", f"{counts['FAIL']} of {len(required)} required criteria failed"
    if counts["ERROR"]:
        first = next(entry for entry in required if entry["outcome"] == "ERROR")
        return (
            "ERROR",
            f"{counts['ERROR']} of {len(required)} required criteria could not be judged: {first['reason']}",
        )
    if not any(entry["against"] != "check" for entry in required):
        return "ERROR", "no required criterion was judged at any point"
    if counts["INCONCLUSIVE"]:
        return "INCONCLUSIVE", f"{counts['INCONCLUSIVE']} of {len(required)} required criteria are undecided"
    if holes:
        return "INCONCLUSIVE", f"{holes} planned points were not measured, and nobody said why"
    if counts["MARGINAL"]:
        if not marginal_passes:
            return (
                "FAIL",
                f"{counts['MARGINAL']} required criteria pass only marginally, which the gate does not take",
            )
        return (
            "MARGINAL",
            f"all {len(required)} required criteria hold, {counts['MARGINAL']} of them near their limit",
        )
    return "PASS", f"all {len(required)} required criteria hold"


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


def _target(path: Path, verdict: Mapping[str, Any], *, replanned: bool) -> Path:
    """Where this verdict belongs: never over the verdict of a finished run that other inputs were used for."""
    first = path / "verdict.json"
    if not replanned and not first.is_file():
        return first
    if first.is_file() and not replanned:
        before = json.loads(first.read_text(encoding="utf-8"))
        if before.get("inputs") == verdict["inputs"]:
            return first
    digest = hashlib.sha256(json.dumps(verdict["inputs"], sort_keys=True).encode()).hexdigest()[:16]
    return path / "judgements" / digest / "verdict.json"


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else round(100 * fraction, 4)
