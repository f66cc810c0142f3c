# SPDX-License-Identifier: Apache-2.0
"""Documents of a release: test plan, requirements, customer summary, compatibility; one template for all."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

from storqual.base.figures import DASH, minute, percent, plain, seconds
from storqual.base.table import Table
from storqual.base.text import fits_name
from storqual.history.past_runs import PastRun, read_past
from storqual.inputs import load_suite
from storqual.inputs.product import criteria_at
from storqual.inputs.suite import EffectiveCriterion, Suite
from storqual.judge.outcome import required_roles
from storqual.judge.question import adapter_of, kind_of
from storqual.metrics import METRICS, Metric
from storqual.report.criterion import (
    OUTCOMES,
    JudgedCriterion,
    OutcomeBadge,
    adapter_name,
    once_each,
    outcome,
    read_criteria,
)
from storqual.report.material import Material, measure
from storqual.report.parts.arms import firmware_shown, identities
from storqual.report.parts.criteria import changes_of, compared_of
from storqual.report.parts.first_screen import BENCH_KINDS, limits_of, sentence_for, untested
from storqual.report.render import render_template
from storqual.report.view import PageLinks, Sites, note_table
from storqual.run import Run, read_run, write_bytes
from storqual.run.notes import Note
from storqual.run.turns import turns_of
from storqual_core.kit.errors import BadInputError


@dataclass(frozen=True)
class DocumentSection:
    """A part of a document."""

    ident: str
    title: str
    sentences: tuple[str, ...] = ()
    table: Table | None = None


@dataclass(frozen=True)
class ReleaseDocument:
    """A whole document; `outcome` stands under the title where there is one."""

    kind: str
    title: str
    subject: tuple[str, ...]
    sections: tuple[DocumentSection, ...]
    foot: str
    outcome: OutcomeBadge | None = None


def write_document(document: ReleaseDocument, target: Path) -> Path:
    write_bytes(target, render_template("document.html.j2", "report.css", page=document).encode())
    return target


def _drops(run: Run) -> str:
    """`new against old`, or the only drop of a run without a baseline."""
    return " against ".join(run.arms[arm].drop for arm in ("candidate", "baseline") if arm in run.arms)


def annex_page(run: Run, notes: Sequence[Note]) -> ReleaseDocument:
    section = DocumentSection(
        "notes",
        "Notes after signing",
        ("Each note has its own signature. The files signed before are unchanged.",),
        note_table("Notes after signing", notes, below="annex/"),
    )
    return ReleaseDocument(
        kind="Annex",
        title=_drops(run),
        subject=(f"Run {run.name}",),
        sections=(section,),
        foot="Made by storqual from the signed notes beside this page; storqual verify checks their signatures.",
    )


_ORDER = ("FAIL", "ERROR", "INCONCLUSIVE", "MARGINAL", "PASS", "SKIPPED")
_MOST_EVIDENCE = 3


def traceability(material: Material) -> ReleaseDocument:
    """The matrix of requirement, criterion, result and evidence; a requirement without a result is red.

    Raises BadInputError for a run whose suite names no requirement.
    """
    requirements = dict(_requirement_patterns(material))
    if not requirements:
        remedy = "this suite has no requirements; give a criterion a `requirement`, or the suite `requirements`"
        raise BadInputError([f"{material.run.path}: {remedy}"])
    rows = read_criteria(material.verdict)
    lines = [row for name, patterns in requirements.items() for row in _rows(material, name, patterns, rows)]
    words = [(str(row[0]), row[-1].word if isinstance(row[-1], OutcomeBadge) else "") for row in lines]
    unanswered = sorted({name for name, word in words if not word})
    bad = sorted({name for name, word in words if word in _ORDER[:3]})
    accepted = sorted({name for name, word in words if word == "WAIVED"})
    met = len(requirements) - len({*unanswered, *bad, *accepted})
    sentences = [f"{len(requirements)} requirements; {met} are met."]
    if accepted:
        sentences.append(f"Not met, accepted by a waiver: {', '.join(accepted)}.")
    if bad:
        sentences.append(f"Not met or not decided: {', '.join(bad)}.")
    if unanswered:
        sentences.append(f"Without any result in this run: {', '.join(unanswered)}.")
    heads = ("Requirement", "Text", "Criterion or check", "Points", "Evidence", "Result")
    tones = {at: "fail" for at, (_, word) in enumerate(words) if word in ("", "FAIL", "ERROR")}
    table = Table("Requirement, criterion, result and evidence", heads, tuple(lines), tones=tones)
    return ReleaseDocument(
        kind="Requirements traceability",
        title=_drops(material.run),
        subject=(
            f"Suite {material.run.suite.name}, profile {material.run.suite.profile}; run {material.run.name}",
            f"verdict.json SHA-256 {material.verdict_sha256}",
        ),
        sections=(DocumentSection("matrix", "Requirements", tuple(sentences), table),),
        foot=f"Made by storqual from the suite and the verdict of run {material.run.name}.",
    )


def _requirement_patterns(material: Material) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Requirements with the patterns of the criteria and checks that answer them, in the order of the suite."""
    suite = material.suite
    if suite is None:
        return
    named: dict[str, list[str]] = {name: list(requirement.checks) for name, requirement in suite.requirements.items()}
    for criterion in suite.criteria:
        for name in criterion.requirement:
            named.setdefault(name, []).append(criterion.name)
    yield from ((name, tuple(dict.fromkeys(patterns))) for name, patterns in named.items())


def _rows(
    material: Material, name: str, patterns: Sequence[str], rows: Sequence[JudgedCriterion]
) -> Iterator[tuple[object, ...]]:
    declared = material.suite.requirements.get(name) if material.suite is not None else None
    text = declared.text if declared is not None else ""
    for pattern in patterns or ("",):
        matching = [row for row in rows if pattern and fits_name(row.text("id"), pattern)]
        judged = [row for row in matching if row.outcome != "SKIPPED"]
        if not judged:
            yield name, text, pattern or "not covered", "", "", "no result"
            continue
        worst = min(judged, key=_severity)
        counted = Counter("WAIVED" if row.waived else row.outcome for row in judged)
        counts = ", ".join(f"{number} {word}" for word, number in counted.items())
        evidence = [
            _evidence(row, list(material.run.benches)) for row in sorted(judged, key=_severity)[:_MOST_EVIDENCE]
        ]
        more = len(judged) - len(evidence)
        shown = "; ".join(evidence) + (f"; and {more} more" if more > 0 else "")
        yield name, text, pattern, counts, shown, outcome("WAIVED" if worst.waived else worst.outcome)


def _severity(row: JudgedCriterion) -> tuple[bool, int]:
    return row.waived, _ORDER.index(row.outcome) if row.outcome in _ORDER else 0


def _evidence(row: JudgedCriterion, benches: Sequence[str]) -> str:
    adapter = adapter_name(benches, row.text("bench"), row.text("adapter"))
    subject = " ".join(filter(None, (adapter if row.text("adapter") else "", row.text("point"))))
    return f"{subject or row.text('id')} ({row.ident} in report.html)"


STALE_DAYS = 90
_MOST_NEVER = 200


@dataclass(frozen=True)
class Combination:
    """What ran together; a part that nobody recorded is a dash."""

    adapter: str
    firmware: str
    driver: str
    drive: str
    kernel: str

    @property
    def cells(self) -> tuple[str, ...]:
        return self.adapter, self.firmware, self.driver, self.drive, self.kernel


def compatibility(folders: Sequence[Path], *, as_of: datetime | None = None) -> ReleaseDocument:
    """The page of the runs in `folders`; a result is of the candidate. Raises BadInputError when there is no run."""
    today = as_of or datetime.now(UTC)
    newest: dict[Combination, tuple[PastRun, str]] = {}
    for run in read_past(folders):
        for combination, word in _results(run):
            newest[combination] = (run, word)
    oldest = today.replace(tzinfo=today.tzinfo or UTC) - timedelta(days=STALE_DAYS)
    rows = []
    for combination, (run, word) in sorted(newest.items(), key=lambda pair: pair[0].cells):
        stale = datetime.fromisoformat(run.created) < oldest if run.created else True
        measured = f"{run.created[:10]}, stale" if stale else run.created[:10]
        rows.append((*combination.cells, measured, run.name, outcome(word)))
    never = list(_never(list(newest)))
    heads = ("Adapter", "Firmware", "Driver", "Drive", "Kernel", "Measured", "Run", "Result")
    tones = {at: "fail" for at, row in enumerate(rows) if row[-1] == OUTCOMES["FAIL"]}
    ran = Table("Newest result of each combination", heads, tuple(rows), tones=tones)
    lacking = Table(
        "Combinations of what was seen that never ran",
        heads[:5],
        tuple(combination.cells for combination in never[:_MOST_NEVER]),
    )
    more = len(never) - _MOST_NEVER
    return ReleaseDocument(
        kind="Compatibility",
        title="Adapters, firmware, drivers, drives and kernels",
        subject=(f"As of {today.date().isoformat()}; a result older than {STALE_DAYS} days is stale",),
        sections=(
            DocumentSection("results", "Results", (), ran),
            DocumentSection(
                "never",
                "Never run",
                (
                    "An adapter's own firmware, drives and drivers with each driver and kernel seen on it."
                    + (f" {more} more are not listed." if more > 0 else ""),
                )
                if never
                else ("Every combination of what was seen has run.",),
                lacking,
            ),
        ),
        foot="Made by storqual from run.json and verdict.json of each run.",
    )


def _results(run: PastRun) -> Iterator[tuple[Combination, str]]:
    """What the candidate ran on, with the worst outcome of the required criteria of each adapter."""
    entries = [entry for entry in run.document.get("provisioned") or () if entry.get("arm") == "candidate"]
    criteria = read_criteria(run.verdict)
    for bench, entry in run.benches.items():
        here: Mapping[str, Any] = next((last for last in reversed(entries) if last.get("bench") == bench), {})
        for alias, adapter in (entry.get("adapters") or {}).items():
            rows = [row for row in criteria if (row.text("bench"), row.text("adapter")) == (bench, alias)]
            judged = [row for row in rows if row.required and row.outcome != "SKIPPED"]
            if not judged:
                continue
            word = min((_word(row) for row in judged), key=_rank)
            for drive in dict.fromkeys(str(disk.get("model") or DASH) for disk in adapter.get("drives") or ()):
                yield _combination(adapter, drive, here, [DASH, *firmware_shown(entry, alias)][-1]), word


def _word(row: JudgedCriterion) -> str:
    return "PASS with a waiver" if row.waived else row.outcome


def _rank(word: str) -> int:
    return _ORDER.index(word) if word in _ORDER else 3


def _combination(adapter: Mapping[str, Any], drive: str, here: Mapping[str, Any], firmware: str) -> Combination:
    driver = str(adapter.get("driver") or DASH)
    version = ((here.get("drivers") or {}).get(driver) or {}).get("version")
    return Combination(
        adapter=str(adapter.get("model") or DASH),
        firmware=firmware,
        driver=" ".join(filter(None, (driver, str(version or "")))),
        drive=drive,
        kernel=str(here.get("kernel") or DASH),
    )


def _never(seen: Sequence[Combination]) -> Iterator[Combination]:
    """Each adapter with every firmware, driver, drive and kernel that it was seen with, as far as it never ran.

    A part that nobody recorded makes no combination: it may have been any of the others.
    """
    ran = set(seen)
    for adapter in dict.fromkeys(combination.adapter for combination in seen):
        of_adapter = [combination for combination in seen if combination.adapter == adapter]
        parts = [
            [part for part in dict.fromkeys(column) if part != DASH] or [DASH]
            for column in zip(*(combination.cells[1:] for combination in of_adapter), strict=True)
        ]
        for cells in product(*parts):
            combination = Combination(adapter, *cells)
            if combination not in ran:
                yield combination


def planned_tests(path: Path) -> ReleaseDocument:
    """The plan of the run directory at `path`, measured or not. Raises BadInputError when it is none."""
    run = read_run(path)
    suite = load_suite(run.input_file("suite"))
    plan = run.plan
    title = _drops(run)
    roles = " and ".join(role.replace("-", " ") for role in required_roles(run))
    lasts, runtime, ramp = (
        seconds(value, f"run:/plan/{name}")
        for name, value in (
            ("expected_seconds", plan.expected_seconds),
            ("runtime_s", plan.runtime_s),
            ("ramp_s", plan.ramp_s),
        )
    )
    how = (
        f"{len(plan.sessions)} sessions, about {lasts} of bench time; design: {plan.design}, seed {plan.seed}.",
        *([f"Each launch runs {runtime} after a ramp of {ramp}."] if plan.points else []),
        f"A passing run is signed by: {roles}.",
    )
    turns = [
        DocumentSection(f"turns-{number}", part.title, part.sentences, part.table)
        for number, part in enumerate(turns_of(run).plan(), start=1)
    ]
    measured = [
        DocumentSection("criteria", "What decides", (), _criteria(run, suite)),
        DocumentSection("requirements", "Requirements", tuple(_requirements(suite))),
        DocumentSection("points", "What is measured", (), _points(run)),
    ]
    return ReleaseDocument(
        kind="Test plan",
        title=title,
        subject=(f"Suite {run.suite.name}, profile {run.suite.profile}; run {run.name}",),
        sections=(
            DocumentSection("how", "How it is measured", (*how, *map(str, plan.fields.get("warnings") or ()))),
            *(measured if plan.points else []),
            *turns,
            DocumentSection("order", "Order of sessions", (), _sessions(run)),
        ),
        foot="Made by storqual from run.json and the copies of its inputs, before or after the bench was touched.",
    )


def _criteria(run: Run, suite: Suite) -> Table:
    """Each criterion once for each pair of limits that points have by it."""
    counted: Counter[tuple[str, ...]] = Counter()
    for point in run.plan.points:
        for rule in criteria_at(suite, point, run.suite.profile, adapter_of(run, point), kind_of(run, point)):
            metric = METRICS.get(rule.metric)
            shifts = rule.against in ("baseline", "peers")
            counted[
                rule.id,
                metric.label if metric else rule.metric,
                rule.against,
                str(percent(100 * rule.indifference, "", signed=False)) if shifts else "",
                str(percent(100 * rule.margin, "", signed=False)) if shifts else _limits(rule, metric),
                "required" if rule.required else "informative",
            ] += not point.skipped
    heads = ("Criterion", "Metric", "Against", "Acceptable loss", "Unacceptable loss or limit", "Decides", "Points")
    names = list(dict.fromkeys(texts[0] for texts in counted))
    in_order = sorted(counted.items(), key=lambda pair: names.index(pair[0][0]))
    rows = tuple((*texts, str(number)) for texts, number in in_order)
    return Table("Criteria with their limits", heads, rows)


def _limits(rule: EffectiveCriterion, metric: Metric | None) -> str:
    """The limits of a criterion that is compared with no other arm; why a spec sheet has none."""
    unit = f" {metric.unit}" if metric is not None and metric.unit else ""
    ends = (("at least", rule.min), ("at most", rule.max))
    limits = " and ".join(f"{word} {plain(limit)}{unit}" for word, limit in ends if limit is not None)
    return limits or rule.unstated


def _requirements(suite: Suite) -> Iterator[str]:
    names = dict.fromkeys([*suite.requirements, *(name for rule in suite.criteria for name in rule.requirement)])
    for name in names:
        answers = [rule.name for rule in suite.criteria if name in rule.requirement]
        declared = suite.requirements.get(name)
        answers += declared.checks if declared is not None else ()
        text = f" {declared.text}:" if declared is not None and declared.text else ""
        yield f"{name}:{text} {', '.join(dict.fromkeys(answers)) or 'not covered by this suite'}"


def _points(run: Run) -> Table:
    benches = list(run.benches)
    rows = tuple(
        (
            adapter_name(benches, point.bench, point.adapter),
            point.point,
            str(len(point.drives)),
            point.skipped or "measured",
        )
        for point in run.plan.points
    )
    return Table("Points in the order of the plan", ("Adapter", "Point", "Drives", "What happens"), rows)


def _sessions(run: Run) -> Table:
    rows = tuple(
        (session.id, session.bench, " and ".join(session.arms), session.change, str(len(session.batches)))
        for session in run.plan.sessions
    )
    return Table("Sessions", ("Session", "Bench", "Arm", "Change before it", "Batches"), rows)


_MOST_CHANGES = 8
_NO_LINKS = PageLinks(Sites({}, {}, frozenset()), None)


def customer_summary(material: Material) -> ReleaseDocument:
    """Two pages at most on paper; numbers are those of the verdict."""
    rows = read_criteria(material.verdict)
    required = [row for row in rows if row.required]
    drops = {name: arm.drop for name, arm in material.run.arms.items()}
    measured = [_tested(material, required), _changes(rows)] if material.points else []
    turns = [
        DocumentSection(f"turns-{number}", part.title, part.sentences, part.table)
        for number, part in enumerate(turns_of(material.run).summary(), start=1)
    ]
    sections = [
        DocumentSection("result", "Result", tuple(_result(material, rows, drops))),
        DocumentSection("adapters", "Adapters", (), _adapters(material)),
        *measured,
        *turns,
        DocumentSection(
            "untested",
            "What was not tested",
            tuple(f"{part.name}: {''.join(map(str, part.values))}." for part in untested(material, required, [])),
        ),
    ]
    return ReleaseDocument(
        kind="Qualification summary",
        title=_drops(material.run),
        subject=(f"Measured {minute(material.document.get('created'))}",),
        sections=tuple(sections),
        foot=f"Made by storqual; SHA-256 of the verdict: {material.verdict_sha256}.",
        outcome=outcome(str(material.verdict.get("outcome"))),
    )


def _changes(rows: tuple[JudgedCriterion, ...]) -> DocumentSection:
    # without benches a place is its adapter alone
    changes = changes_of(rows, [], _NO_LINKS)
    none = ("No change is shown: the 95 % interval of every measurement includes zero.",)
    return DocumentSection(
        "changes",
        "What changed",
        () if changes.worse or changes.better else none,
        Table(
            "Changes that are shown, the largest first",
            ("Change", "Where", "Result"),
            tuple(
                (change.words, change.where, change.outcome)
                for change in (*changes.worse[:_MOST_CHANGES], *changes.better[:_MOST_CHANGES])
            ),
        ),
    )


def _result(material: Material, rows: tuple[JudgedCriterion, ...], drops: dict[str, str]) -> Iterator[str]:
    for kind in sorted({str(bench.get("kind") or "hardware") for bench in material.run.benches.values()}):
        name, meaning = BENCH_KINDS.get(kind, (kind, ""))
        if meaning:
            yield f"{name}: {meaning}"
    sentence = "".join(map(str, sentence_for(material.verdict, rows, drops)))
    reason = str(material.verdict.get("reason") or "").rstrip(".")
    # the judge's own reason may name a bench or a file where a run is not valid
    undecided = material.verdict.get("outcome") in ("ERROR", "INCONCLUSIVE")
    quoted = undecided and bool(reason) and reason.casefold() in sentence.casefold()
    yield "The campaign could not be judged as it was planned." if quoted else sentence
    waived = once_each([row for row in rows if row.required and row.waived])
    if waived:
        yield f"{len(waived)} failures were accepted by a named person for a limited time."


def _tested(material: Material, required: list[JudgedCriterion]) -> DocumentSection:
    workloads = Counter(key[2].partition("[")[0] for key in material.points)
    counts = ", ".join(f"{name} ({number} point{'' if number == 1 else 's'})" for name, number in workloads.items())
    limits = [
        f"{loss.metrics}: a loss up to {loss.acceptable} is acceptable, one of {loss.unacceptable} must be excluded."
        for loss in limits_of(compared_of(required))
    ]
    metrics = dict.fromkeys(measure(row.text("metric")).label for row in required if row.text("metric"))
    return DocumentSection(
        "tested", "What was tested", (f"Workloads: {counts}.", *limits, f"Required: {', '.join(metrics)}.")
    )


def _adapters(material: Material) -> Table:
    rows = {(card.alias, card.model, card.driver, card.baseline, card.candidate) for card in identities(material)}
    return Table(
        "Adapters and their drivers in both arms",
        ("Adapter", "Model", "Driver", "Baseline", "Candidate"),
        tuple(sorted(rows)),
    )
