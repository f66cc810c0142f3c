# SPDX-License-Identifier: Apache-2.0
"""`judge_run`: a verdict from files, measured once and judged as often as anybody likes; and where it is written."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storqual.inputs import WAIVERS, load_gate, load_suite, load_waivers
from storqual.inputs.policy import Gate
from storqual.inputs.product import product_files
from storqual.judge.against_others import baseline_data, data_checks
from storqual.judge.answers import answer, confirm
from storqual.judge.earlier import out_of_control, read_histories
from storqual.judge.entry import check_entry, judged_entry, log_findings_about, stale_baseline, with_evidence
from storqual.judge.evidence import (
    counted_errors,
    errors_of,
    grown_errors,
    lengthened_ramps,
    log_findings,
    recorded_errors_of,
    recovered_problems,
    rig_problems,
    sectors_outside,
    settings_shown,
    short_ramps,
    unfinished_batches,
    unsteady_benches,
    with_steadiness,
)
from storqual.judge.numbers import corrected, overall_findings, with_time_needed
from storqual.judge.outcome import EXIT_CODES, apply_waivers, run_outcome, used_waivers, with_waivers
from storqual.judge.question import looks_of, metrics_of, optional_input, planned_criteria, questions_of, required_by
from storqual.run import Check, Run, is_signed, ledger, read_run, sha256_of, write_bytes
from storqual.run.events import append_event, iter_events
from storqual.run.evidence import evidence_findings, missing_checks, rules_of
from storqual.run.files import DAMAGE, file_digest, limit_of, parse_line, read_bytes, read_object, refuse_odd
from storqual.run.hangs import hang_checks
from storqual.run.layout import ANNEX, CHECKS, EVENTS, dump_line, locked
from storqual.run.measurements import Measurements, measurements
from storqual.run.reopened import corrections, counted_checks, reopened
from storqual.run.turns import turns_of
from storqual_core.kit.durable import read_regular

SCHEMA = "storqual.verdict/1"
_DATA = ("samples.jsonl", "checks.jsonl")


def judge_run(
    path: Path,
    *,
    suite: Path | None = None,
    gate: Path | None = None,
    waivers: Path | None = None,
    as_of: datetime | None = None,
    measured: Measurements | None = None,
    checks: Sequence[Check] = (),
    publish: bool = False,
) -> dict[str, Any]:
    """Judge a run and write the verdict; returns it.

    By the rules the run was planned with it is `verdict.json`, which stays as it is while the run does; one by
    another suite, gate or time, with other waivers or with further `checks` goes to `judgements/<digest>/` (of a
    signed run: in `annex/`). Waivers and further checks are kept beside their verdict, and judging again takes those
    waivers: they expire by themselves. `measured` is what was read of the samples by a caller who needs them for more
    than this. `publish` puts a verdict by other waivers into the place of `verdict.json` while nobody has signed: the
    one before goes to its judgements. Raises BadInputError for inputs that cannot be used, StorqualError for a
    damaged run directory.
    """
    other_rules = suite is not None or gate is not None or as_of is not None or bool(checks)
    # held from the first look: whoever signs, or publishes, does so before or after, and is seen
    with locked(path, signed=True) as folder:
        waivers = waivers or kept_waivers(folder)
        verdict = verdict_of(
            folder, suite=suite, gate=gate, waivers=waivers, as_of=as_of, measured=measured, checks=checks
        )
        write_verdict(folder, verdict, other_rules=other_rules, waivers=waivers, checks=checks, publish=publish)
    return verdict


def verdict_of(
    path: Path,
    *,
    suite: Path | None = None,
    gate: Path | None = None,
    waivers: Path | None = None,
    as_of: datetime | None = None,
    measured: Measurements | None = None,
    checks: Sequence[Check] = (),
) -> dict[str, Any]:
    """The verdict that `judge_run` would write. Raises what it raises."""
    refuse_odd(path)
    run = read_run(path)
    moment = as_of or datetime.now(UTC)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    files = {
        "suite": suite or run.input_file("suite"),
        "gate": gate or optional_input(run, "gate"),
        "waivers": waivers,
        "history": optional_input(run, "history"),
        **{arm: run.input_file(arm) for arm in run.arms},
    }
    named = {name: file for name, file in files.items() if file is not None}
    return _verdict(run, named, moment, measured, checks)


def _verdict(
    run: Run,
    files: Mapping[str, Path],
    moment: datetime,
    measured: Measurements | None,
    checks: Sequence[Check],
) -> dict[str, Any]:
    policy = load_gate(files["gate"]) if "gate" in files else Gate()
    accepted = load_waivers(files["waivers"], policy, moment.date()) if "waivers" in files else ()
    rules = load_suite(files["suite"])
    files = {**files, **product_files(files["suite"], rules.products)}
    asked_criteria = planned_criteria(run, rules, policy)
    if measured is None or measured.evidence is None or not measured.is_of(run):
        measured = measurements(run, metrics_of(asked_criteria), evidence=True)
    questions = questions_of(run, asked_criteria, measured.points)
    looks, histories = looks_of(run), read_histories(files.get("history"))
    judged = confirm(questions, answer(questions, looks, histories), looks, histories)
    judged = corrected(questions, judged)
    unsteady = unsteady_benches(run)
    judged = [with_steadiness(question, answer, unsteady) for question, answer in zip(questions, judged, strict=True)]
    judged = [with_time_needed(run, *both) for both in zip(questions, judged, strict=True)]
    findings, counted, grown = log_findings(run, policy.required_log_findings), counted_errors(run), grown_errors(run)
    sentences = [
        [*log_findings_about(question, findings), *errors_of(question, counted), *recorded_errors_of(question, grown)]
        for question in questions
    ]
    days = policy.baseline_max_age_days
    for index, question in enumerate(questions):
        stale = stale_baseline(question.launches.of("baseline"), moment, days) if days is not None else ""
        judged[index] = with_evidence(judged[index], sentences[index], stale)
    criteria = [judged_entry(*parts) for parts in zip(questions, judged, sentences, strict=True)]
    outcomes = [
        *data_checks(measured),
        *turns_of(run).checks(),
        *hang_checks(run),
        *_latest([*counted_checks(run), *checks]),
        *missing_checks(run),
    ]
    criteria += [check_entry(check, required=_check_required(check, policy)) for check in outcomes]
    drop = run.arms["candidate"].drop
    doubts = apply_waivers(criteria, accepted, drop=drop, suite=run.suite.name, today=moment.date())
    warnings = [doubt.text for doubt in doubts]
    covered = ledger(run.plan.points, measured.finished, run.arms)
    closed = run.periods[-1].closed if run.periods else None
    rig = [*evidence_findings(run, measured.evidence), *rig_problems(run)]
    outcome, reason = run_outcome(criteria, rig, holes=len(covered.holes), marginal_passes=policy.marginal_passes)
    if outcome in ("PASS", "MARGINAL") and any(entry.waiver for entry in criteria):
        used = used_waivers(entry.to_json() for entry in criteria)
        warnings.append(f"this run passes {with_waivers(used)}")
    return {
        "schema": SCHEMA,
        "run": run.name,
        "outcome": outcome,
        "reason": reason,
        "exit_code": EXIT_CODES[outcome],
        "as_of": moment.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "inputs": {
            **{name: sha256_of(read_regular(file, limit_of("inputs/").most)) for name, file in files.items()},
            **{name: file_digest(run.path, name) for name in _DATA if (run.path / name).is_file()},
            **({EVENTS: closed.sha256} if closed is not None else {}),
            **({"checks": sha256_of(_check_lines(checks))} if checks else {}),
        },
        "evidence": rules_of(run),
        "criteria": [entry.to_json() for entry in criteria],
        "overall": overall_findings(questions, judged),
        "coverage": covered.to_json(),
        "settings": settings_shown(run),
        "sectors_written_outside_claims": sectors_outside(run),
        "warnings": [
            *(f"{bench}: {text}" for bench, text in unsteady.items()),
            *(
                f"{bench}: {text}: the bench was out of its control limits, so this campaign is suspect"
                for bench, text in out_of_control(run, measured.reference, files.get("history")).items()
            ),
            *baseline_data(measured),
            *short_ramps(questions),
            *lengthened_ramps(run),
            *rig,
            *reopened(run),
            *corrections(run),
            *recovered_problems(run),
            *unfinished_batches(run),
            *warnings,
            *([_IDENTICAL] if run.is_identical else []),
            *_same_build(run),
        ],
    }


_IDENTICAL = "both drops declare the same: this run compares the bench with itself and says nothing about a new drop"


def _check_required(check: Check, policy: Gate) -> bool:
    """The gate's policy decides where it names a check; else the check's own word, and without one it counts."""
    required = required_by(policy, check.id)
    return check.fields.get("required") is not False if required is None else required


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
    if not builds["baseline"] or builds["baseline"] != builds["candidate"]:
        return []
    read = [json.loads(build)["drivers"] or {} for build in builds["baseline"]]
    if not all(read):
        return ["both arms ran the same kernel; no driver build was read"]
    alike = sorted({name for drivers in read for name, build in drivers.items() if not build.get("srcversion")})
    if alike:
        return [f"both arms ran the same kernel; builds of {', '.join(alike)} have no srcversion to tell them apart"]
    return ["both arms ran the same kernel with the same driver builds"]


_RULES = ("suite", "gate", "waivers", "history")


def write_verdict(
    run: Path,
    verdict: Mapping[str, Any],
    *,
    other_rules: bool,
    waivers: Path | None = None,
    checks: Sequence[Check] = (),
    publish: bool = False,
) -> Path:
    """Write `verdict` of `run`, and beside it the waivers and further checks it was judged with; return where.

    `verdict.json` is written when there is none, or again when the same rules judge a run that went on (a campaign
    that was resumed) and nobody has signed; of a run that was closed and did not, it stays, and nothing is written.
    With `publish` one by other waivers takes its place as well, and the one before is kept among the judgements.
    Everything else goes to `judgements/<digest of its inputs>/`; once somebody has signed, to the same place in
    `annex/`, where nothing is written a second time: a further signature may be about it. What is written is recorded
    as the event `judged` while nobody has signed. The caller holds `locked`.
    """
    first = run / "verdict.json"
    path = first
    if not other_rules and _is_of_the_same(first, verdict):
        _record(run, first, read_object(run, first.name))
        return first
    if other_rules or (first.is_file() and not _may_replace(run, first, verdict, publish=publish)):
        stored_path = _path_of(verdict)
        path = run / stored_path
        if is_signed(run):
            path = path if path.is_file() else run / ANNEX / stored_path
            if path.is_file():
                return path
        elif _is_known(path, verdict):
            _record(run, path, read_object(run, str(path.relative_to(run))))
            return path
    if path == first and publish:
        _keep(run, first)
    if waivers is not None:
        write_bytes(path.with_name(WAIVERS), read_regular(waivers, limit_of(WAIVERS).most))
    if checks:
        write_bytes(path.with_name(CHECKS), _check_lines(checks))
    write_bytes(path, b"".join(_lines(verdict)))
    _record(run, path, verdict)
    return path


def _path_of(verdict: Mapping[str, Any]) -> Path:
    """Where a judgement by these inputs of this day lies in a run directory."""
    named = {"inputs": verdict["inputs"], "as_of": verdict["as_of"][:10]}
    digest = hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:16]
    return Path("judgements") / digest / "verdict.json"


def _keep(run: Path, first: Path) -> None:
    """Put the verdict that was published before, with its waivers, among the judgements; nothing without one."""
    try:
        data = read_bytes(run, first.name)
        stored_path = run / _path_of(parse_line(data, first.name))
    except DAMAGE:
        return
    waivers = kept_waivers(run)
    if waivers is not None:
        write_bytes(stored_path.with_name(WAIVERS), read_bytes(run, waivers.name))
    write_bytes(stored_path, data)
    _record(run, stored_path, parse_line(data, first.name))


def _check_lines(checks: Iterable[Check]) -> bytes:
    return b"".join(dump_line(check.fields) for check in checks)


def _is_of_the_same(first: Path, verdict: Mapping[str, Any]) -> bool:
    """Whether the verdict there is by the same rules, of a run that has not gone on since it was closed."""
    try:
        before = read_object(first.parent, first.name)["inputs"]
        closed = EVENTS in before or EVENTS in verdict["inputs"]
        names = (*_RULES, EVENTS) if closed else (*_RULES, *_DATA)
        return all(before.get(name) == verdict["inputs"].get(name) for name in names)
    except DAMAGE:
        return False


def _is_known(path: Path, verdict: Mapping[str, Any]) -> bool:
    try:
        before = read_object(path.parent, path.name)
        return all(before[name] == verdict[name] for name in ("inputs", "outcome", "criteria"))
    except DAMAGE:
        return False


def _record(run: Path, path: Path, verdict: Mapping[str, Any]) -> None:
    """Say in the run's chain what was judged, once; what was signed takes no more events."""
    if is_signed(run):
        return
    where = {"path": str(path.relative_to(run)), "sha256": file_digest(path.parent, path.name)}
    if not any(e.kind == "judged" and where.items() <= e.fields.items() for e in iter_events(run)):
        fields = {"outcome": verdict["outcome"], "exit_code": verdict["exit_code"], **where}
        append_event(run, "judged", fields)


def kept_waivers(run: Path) -> Path | None:
    """The copy of the waivers that the verdict of `run` was made with; None without a verdict, or without waivers.

    The verdict must be the one that the run's events tell of: whoever puts a file of waivers there, and its digest
    into verdict.json, has accepted nothing.
    """
    copy = run / WAIVERS
    try:
        inputs = read_object(run, "verdict.json")["inputs"]
        same = inputs.get("waivers") == file_digest(run, WAIVERS)
        return copy if same and is_recorded(run) else None
    except DAMAGE:
        return None


def is_recorded(run: Path) -> bool:
    """Whether the run has a verdict, and it is the one that its events tell of last."""
    file = run / "verdict.json"
    if not file.is_file():
        return False
    judgements = [event for event in iter_events(run) if event.kind == "judged" and event.text("path") == file.name]
    return bool(judgements) and judgements[-1].text("sha256") == file_digest(run, file.name)


def _may_replace(run: Path, first: Path, verdict: Mapping[str, Any], *, publish: bool) -> bool:
    """Whether the verdict there is of the same rules (but for waivers, where it is to be published) and unsigned."""
    if is_signed(run):
        return False
    try:
        before = read_object(run, first.name)["inputs"]
        rules = (name for name in _RULES if name != "waivers" or not publish)
        return all(before.get(name) == verdict["inputs"].get(name) for name in rules)
    except (ValueError, KeyError, TypeError, AttributeError):
        # what was written there is no verdict
        return True


def _lines(verdict: Mapping[str, Any]) -> Iterator[bytes]:
    """Readable JSON, one line per criterion: a large campaign has a hundred thousand of them."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    yield b"{\n"
    for number, (name, value) in enumerate(verdict.items()):
        end = b",\n" if number < len(verdict) - 1 else b"\n"
        if isinstance(value, list) and value:
            yield f" {encode(name)}: [\n".encode()
            for index, item in enumerate(value):
                yield f"  {encode(item)}{',' if index < len(value) - 1 else ''}\n".encode()
            yield b" ]" + end
        else:
            yield f" {encode(name)}: {encode(value)}".encode() + end
    yield b"}\n"
