# SPDX-License-Identifier: Apache-2.0
"""The test plan of a campaign: what will be measured, against which limits, in which order, how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from storqual.inputs import load_suite
from storqual.inputs.effective import EffectiveCriterion
from storqual.inputs.product import criteria_at
from storqual.inputs.suite import Suite
from storqual.judge.outcome import required_roles
from storqual.judge.question import adapter_of, kind_of
from storqual.metrics import METRICS, Metric
from storqual.report.criterion import place_name
from storqual.report.documents.document import Document, Row, Section, Table, table_of
from storqual.report.figures import percent, plain, seconds
from storqual.run import Run, read_run
from storqual.run.turns import turns_of


def planned_tests(path: Path) -> Document:
    """The plan of the run directory at `path`, measured or not. Raises BadInputError when it is none."""
    run = read_run(path)
    suite = load_suite(run.input_file("suite"))
    plan = run.plan
    title = " against ".join(run.arms[arm].drop for arm in ("candidate", "baseline") if arm in run.arms)
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
        Section(f"turns-{number}", part.title, part.sentences, table_of(part))
        for number, part in enumerate(turns_of(run).plan(), start=1)
    ]
    measured = [
        Section("criteria", "What decides", (), _criteria(run, suite)),
        Section("requirements", "Requirements", tuple(_requirements(suite))),
        Section("points", "What is measured", (), _points(run)),
    ]
    return Document(
        kind="Test plan",
        title=title,
        subject=(f"Suite {run.suite.name}, profile {run.suite.profile}; run {run.name}",),
        sections=(
            Section("how", "How it is measured", (*how, *map(str, plan.fields.get("warnings") or ()))),
            *(measured if plan.points else []),
            *turns,
            Section("order", "Order of sessions", (), _sessions(run)),
        ),
        foot="Made by storqual from run.json and the copies of its inputs, before or after the bench was touched.",
    )


def _criteria(run: Run, suite: Suite) -> Table:
    """Each criterion once for each pair of limits that points have by it."""
    counted: Counter[tuple[str, ...]] = Counter()
    for point in run.plan.points:
        for one in criteria_at(suite, point, run.suite.profile, adapter_of(run, point), kind_of(run, point)):
            metric = METRICS.get(one.metric)
            shifts = one.against in ("baseline", "peers")
            counted[
                one.id,
                metric.label if metric else one.metric,
                one.against,
                str(percent(100 * one.indifference, "", signed=False)) if shifts else "",
                str(percent(100 * one.margin, "", signed=False)) if shifts else _limits(one, metric),
                "required" if one.required else "informative",
            ] += not point.skipped
    heads = ("Criterion", "Metric", "Against", "Acceptable loss", "Unacceptable loss or limit", "Decides", "Points")
    names = list(dict.fromkeys(texts[0] for texts in counted))
    told = sorted(counted.items(), key=lambda one: names.index(one[0][0]))
    rows = tuple(Row((*texts, str(number))) for texts, number in told)
    return Table("Criteria with their limits", heads, rows)


def _limits(one: EffectiveCriterion, metric: Metric | None) -> str:
    """The limits of a criterion that is compared with no other arm; why a spec sheet has none."""
    unit = f" {metric.unit}" if metric is not None and metric.unit else ""
    ends = (("at least", one.min), ("at most", one.max))
    told = " and ".join(f"{word} {plain(limit)}{unit}" for word, limit in ends if limit is not None)
    return told or one.unstated


def _requirements(suite: Suite) -> Iterator[str]:
    names = dict.fromkeys([*suite.requirements, *(name for one in suite.criteria for name in one.requirement)])
    for name in names:
        answers = [one.name for one in suite.criteria if name in one.requirement]
        declared = suite.requirements.get(name)
        answers += declared.checks if declared is not None else ()
        text = f" {declared.text}:" if declared is not None and declared.text else ""
        yield f"{name}:{text} {', '.join(dict.fromkeys(answers)) or 'not covered by this suite'}"


def _points(run: Run) -> Table:
    benches = list(run.benches)
    rows = tuple(
        Row(
            (
                place_name(benches, point.bench, point.adapter),
                point.point,
                str(len(point.drives)),
                point.skipped or "measured",
            )
        )
        for point in run.plan.points
    )
    return Table("Points in the order of the plan", ("Adapter", "Point", "Drives", "What happens"), rows)


def _sessions(run: Run) -> Table:
    rows = tuple(
        Row((session.id, session.bench, " and ".join(session.arms), session.change, str(len(session.blocks))))
        for session in run.plan.sessions
    )
    return Table("Sessions", ("Session", "Bench", "Arm", "Change before it", "Batches"), rows)
