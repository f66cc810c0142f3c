# SPDX-License-Identifier: Apache-2.0
"""The first screen: what was qualified, the outcome in a sentence and why, what is missing, who may sign."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median
from typing import Any

from storqual.judge.outcome import required_roles
from storqual.report.change import in_sentence, once_each
from storqual.report.criterion import Criterion, Outcome, outcome, place_name
from storqual.report.figures import DASH, NONE, Figure, count, minute, percent
from storqual.report.links import Links
from storqual.report.material import Material, measure, spread_of
from storqual.report.parts.arms import AdapterIdentity, environment_of, identities
from storqual.report.parts.changes import Change, change_of, compared_of, odd_launches, shown_beside
from storqual.report.parts.criteria import Problem, problems_of
from storqual.report.parts.sentence import sentence_for
from storqual.report.parts.timeline import TimelineEvent
from storqual.report.parts.untested import untested
from storqual.report.view import KeyValue, Phrase


@dataclass(frozen=True)
class FirstScreen:
    """The first screen; `single` where there is no baseline."""

    notices: tuple[str, ...]
    single: bool
    baseline: str
    candidate: str
    subject: tuple[str, ...]
    changes: tuple[KeyValue, ...]
    outcome: Outcome
    sentence: Phrase
    exit_code: Figure
    exit_meaning: str
    adapters: tuple[AdapterIdentity, ...]
    facts: tuple[KeyValue, ...]
    counts: tuple[tuple[Outcome, Figure], ...]
    incidents: tuple[TimelineEvent, ...]
    problems: tuple[Problem, ...]
    more_problems: Figure | None
    told: tuple[Phrase, ...]
    limits: tuple[Limits, ...]
    sure: tuple[Phrase, ...]
    untested: tuple[KeyValue, ...]
    worst: Change | None
    best: Change | None
    planned: Figure
    measured: Figure
    skipped: Figure
    holes: Figure
    has_holes: bool
    sectors: Figure
    sectors_note: str
    signers: tuple[str, ...]
    may_sign: bool
    roles: tuple[str, ...]
    verdict_sha256: str
    warnings: tuple[str, ...]


def subject(material: Material) -> Iterable[str]:
    """What was compared, in a line or two."""
    run = material.run
    names = list(dict.fromkeys(place_name(list(run.benches), *adapter) for adapter in material.tested))
    adapters = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "no adapter"
    kinds = [f"{name} ({_kind(bench).lower()})" for name, bench in run.benches.items()]
    yield f"{adapters} on {', '.join(kinds)}; suite {run.suite.name}, profile {run.suite.profile}"
    kernels: dict[str, list[str]] = {}
    for arm, entry in material.provisioned():
        if entry.get("kernel"):
            kernels.setdefault(arm, []).append(str(entry["kernel"]))
    told = {arm: " and ".join(dict.fromkeys(names)) for arm, names in kernels.items()}
    first, second = told.get("baseline"), told.get("candidate")
    if "baseline" not in material.arms and second:
        yield f"Kernel {second}"
    elif first and second:
        yield f"Kernel {first} in both arms" if first == second else f"Kernel {second} against {first}"
    elif first or second:
        yield f"Kernel {first or second}; the {'candidate' if first else 'baseline'} was not provisioned"


def _kind(bench: Mapping[str, Any]) -> str:
    kind = str(bench.get("kind") or "hardware")
    return BENCH_KINDS.get(kind, (kind, ""))[0]


_MOST_CHANGES = 5
_MOST_PAIRS = 4


def first_screen(
    material: Material, rows: Sequence[Criterion], links: Links, incidents: Sequence[TimelineEvent]
) -> FirstScreen:
    """Everything of the first screen; `links` leads from a criterion to its row."""
    verdict, run = material.verdict, material.run
    required, benches = [row for row in rows if row.required], list(run.benches)
    problems, more = problems_of(required, benches, links)
    compared = compared_of(required)
    covered = verdict.get("coverage") or {}
    holes = sum(not skipped.get("reason") for skipped in covered.get("skipped") or ())
    skipped = len(covered.get("skipped") or ()) - holes
    arms = {name: arm.drop for name, arm in run.arms.items()}
    code = verdict.get("exit_code")
    signers, may_sign = signers_for(material, rows)
    counted = Counter("WAIVED" if row.waived else row.outcome for row in once_each(required))
    return FirstScreen(
        notices=tuple(_notices(material)),
        single="baseline" not in material.arms,
        baseline=arms.get("baseline", DASH),
        candidate=arms.get("candidate", DASH),
        subject=tuple(subject(material)),
        changes=_changes(material),
        outcome=outcome(str(verdict.get("outcome"))),
        sentence=sentence_for(verdict, rows, arms),
        exit_code=count(code if isinstance(code, int) else None, "verdict:/exit_code"),
        exit_meaning=EXIT_CODES.get(code, "not known") if isinstance(code, int) else "not known",
        adapters=identities(material),
        facts=tuple(_facts(material)),
        counts=tuple(
            (outcome(word), count(counted[word], f"count:criteria:{word}"))
            for word in (*_WORDS, "WAIVED")
            if counted[word]
        ),
        incidents=tuple(incidents),
        problems=problems,
        more_problems=count(more, f"count:more:{more}") if more else None,
        told=(*shown_beside(rows, benches), *odd_launches(rows, benches), *_informative(rows)),
        limits=limits_of(compared),
        sure=tuple(how_sure(material, compared)),
        untested=untested(material, required, benches),
        worst=change_of(compared[0], benches, links) if compared else None,
        best=change_of(compared[-1], benches, links) if len(compared) > 1 else None,
        planned=count(covered.get("planned"), "verdict:/coverage/planned"),
        measured=count(covered.get("measured"), "verdict:/coverage/measured"),
        skipped=count(skipped, "count:skipped"),
        holes=count(holes, "count:holes"),
        has_holes=holes > 0,
        sectors=_sectors(material),
        sectors_note=_sectors_note(material),
        signers=signers,
        may_sign=may_sign,
        roles=tuple(role.replace("-", " ") for role in required_roles(material.run)),
        verdict_sha256=material.verdict_sha256,
        warnings=_warnings(verdict, incidents),
    )


_WORDS = ("PASS", "MARGINAL", "FAIL", "INCONCLUSIVE", "ERROR", "SKIPPED")


def _notices(material: Material) -> Iterable[str]:
    """What a reader must know before the outcome: what kind of bench, a bench changed on purpose, one build twice."""
    kinds = sorted({str(bench.get("kind") or "hardware") for bench in material.run.benches.values()})
    for kind in kinds:
        name, meaning = BENCH_KINDS.get(kind, (kind, ""))
        if meaning:
            yield f"{name}: {meaning}"
    for name, arm in material.run.arms.items():
        virtual = arm.manifest.get("virtual")
        if virtual:
            yield f"The {name} drop changes the virtual bench on purpose: {_flat_text(virtual)}."
    for bench_name, alias in sorted(material.tested):
        bench = material.run.benches.get(bench_name, {})
        if (bench.get("adapters") or {}).get(alias, {}).get("pseudo"):
            name = place_name(list(material.run.benches), bench_name, alias)
            yield (
                f"Adapter {name} is the kernel's scsi_debug: no hardware was tested by it, nor the driver of any; "
                "what this run says of it, it says of the kernel."
            )
    identified = identities(material)
    same = [one for one in identified if one.same]
    if same and len(same) == len(identified):
        yield "Both arms are the same build: every driver under test has the same srcversion in both."
    elif same:
        yield f"The driver of {', '.join(one.name for one in same)} is the same build in both arms."


def _flat_text(value: object) -> str:
    """A small mapping as words: `iops_limit: all 900, sda 950; panic_at_boot: true`; of a long one its beginning."""
    if isinstance(value, dict):
        return "; ".join(
            f"{key}: {_pairs(inner)}" if isinstance(inner, dict) else f"{key}: {_flat_text(inner)}"
            for key, inner in value.items()
        )
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ", ".join(_flat_text(one) for one in value)
    return str(value)


def _pairs(values: dict[object, object]) -> str:
    pairs = [f"{key} {value}" for key, value in values.items()]
    if len(pairs) <= _MOST_PAIRS:
        return ", ".join(pairs)
    return f"{', '.join(pairs[: _MOST_PAIRS - 1])} and so on, see Settings and environment"


def _changes(material: Material) -> tuple[KeyValue, ...]:
    """The first differences between the drops, baseline's value before candidate's."""
    differing = [row for row in environment_of(material).drops if row.differs and row.name != "name"]
    return tuple(differing[:_MOST_CHANGES])


def _facts(material: Material) -> Iterable[KeyValue]:
    run, verdict = material.run, material.verdict
    yield KeyValue("Measured", (f"{minute(run.document.get('created'))} to {minute(run.document.get('finished'))}",))
    yield KeyValue("Judged as of", (minute(verdict.get("as_of")),))
    yield KeyValue("Run", (run.name,))


def _informative(rows: Sequence[Criterion]) -> tuple[Phrase, ...]:
    """How many informative criteria did not pass; none where all did or there are none."""
    bad = [row for row in rows if not row.required and row.outcome in ("FAIL", "ERROR", "INCONCLUSIVE")]
    if not bad:
        return ()
    total = count(sum(not row.required for row in rows), "count:informative")
    metrics = dict.fromkeys(measure(row.text("metric")).label for row in bad if row.against != "check")
    named = f" ({', '.join(metrics)})" if metrics else ""
    words = Counter(row.outcome for row in bad)
    told = (part for word, number in words.items() for part in (", ", count(number, f"count:bad:{word}"), f" {word}"))
    return (("Of ", total, f" informative criteria, which do not affect the outcome{named}: ", *list(told)[1:], "."),)


def _warnings(verdict: Mapping[str, Any], incidents: Sequence[TimelineEvent]) -> tuple[str, ...]:
    """The verdict's warnings, without those that the sentence or the incidents above them say word by word."""
    told = [event.headline for event in incidents if " " in event.headline]
    reason = str(verdict.get("reason") or "")
    listed = (str(text) for text in verdict.get("warnings") or ())
    return tuple(text for text in listed if text != reason and not any(headline in text for headline in told))


def _sectors(material: Material) -> Figure:
    if not _guard_applies(material):
        return NONE
    value = material.verdict.get("sectors_written_outside_claims")
    return count(value if isinstance(value, int) else None, "verdict:/sectors_written_outside_claims")


def _guard_applies(material: Material) -> bool:
    return bool((material.document.get("guard") or {}).get("applies", True))


def _sectors_note(material: Material) -> str:
    if not _guard_applies(material):
        return "not counted: targets are files, claimed by path and inode"
    value = material.verdict.get("sectors_written_outside_claims")
    if value is None:
        return "not read: the guard has no count of these writes"
    return "on all disks that are neither claimed nor the bench's own" if value == 0 else "the run is invalid"


def signers_for(material: Material, rows: Sequence[Criterion]) -> tuple[tuple[str, ...], bool]:
    """Sentences for the first screen, and whether anybody may sign at all."""
    roles = " and ".join(role.replace("-", " ") for role in required_roles(material.run))
    code = material.verdict.get("exit_code")
    if code == 0:
        waived = any(row.waived for row in rows)
        lines = [f"May be signed by: {roles}" + (", with the waivers below." if waived else ".")]
        kinds = {str(bench.get("kind")) for bench in material.run.benches.values()}
        if "hardware" not in kinds:
            lines.append("A signature under this run confirms that the method works; it does not release hardware.")
        return tuple(lines), True
    if code == 1:
        return (f"Cannot be signed until waivers cover every failure; then: {roles}.",), False
    return ("Cannot be signed: the run could not be judged. Repeat or resume it.",), False


EXIT_CODES: dict[int, str] = {
    0: "passed",
    1: "failed",
    2: "could not be judged",
    3: "wrong use or bad input",
    4: "refused by the guard",
}

BENCH_KINDS: dict[str, tuple[str, str]] = {
    "virtual": (
        "Virtual bench",
        "the adapters and drives are emulated; the figures show the method at work and do not qualify hardware.",
    ),
    "local": ("Files on this machine", "not a qualification of hardware."),
    "hardware": ("Hardware bench", ""),
}


_ONE_SIDED = 1.645
"""Standard errors between a shift and its one-sided 95 % bound, of a normal."""


@dataclass(frozen=True)
class Limits:
    """The two limits of some metrics, and what is said of a loss between them."""

    metrics: str
    acceptable: Figure
    unacceptable: Figure
    between: Phrase


def limits_of(compared: Sequence[Criterion]) -> tuple[Limits, ...]:
    """The limits of required criteria against the baseline, one entry for metrics that share both."""
    groups: dict[tuple[float | None, float | None], list[Criterion]] = {}
    for row in compared:
        pair = (row.number("indifference_percent"), row.number("margin_percent"))
        groups.setdefault(pair, []).append(row)
    return tuple(_limits(rows) for (_, margin), rows in groups.items() if margin is not None)


def _limits(rows: Sequence[Criterion]) -> Limits:
    first = rows[0]
    names = list(dict.fromkeys(measure(row.text("metric")).label for row in rows))
    names = [*names[:1], *map(in_sentence, names[1:])]
    return Limits(
        metrics=" and ".join(filter(None, [", ".join(names[:-1]), names[-1]])),
        acceptable=first.percent("indifference", signed=False),
        unacceptable=first.percent("margin", signed=False),
        between=_between(rows),
    )


def _between(rows: Sequence[Criterion]) -> Phrase:
    """The odds of a true loss half way between the limits, at the noise of the middle one of these criteria."""
    low, high = rows[0].number("indifference_percent"), rows[0].number("margin_percent")
    reaches = [
        shift - bound
        for row in rows
        if (shift := row.number("shift_percent")) is not None and (bound := row.number("bound_percent")) is not None
    ]
    reaches = [reach for reach in reaches if reach > 0 and math.isfinite(reach)]
    if low is None or high is None or not reaches:
        return ("a loss between them may pass, fail or stay undecided",)
    half, reach = (low + high) / 2, median(reaches)
    odds = round(100 * NormalDist().cdf((high - half - reach) * _ONE_SIDED / reach))
    return (
        "a loss between them may pass or fail: at the noise seen here, a true loss of ",
        percent(half, f"count:half-way:{rows[0].index}", signed=False),
        " passes in about ",
        count(min(max(odds, 1), 99), f"count:odds:{rows[0].index}"),
        " of ",
        count(100, "count:hundred"),
        " such campaigns",
    )


_LEAST_SPREAD = 0.01


def how_sure(material: Material, compared: Sequence[Criterion]) -> Iterator[Phrase]:
    """The error rate of the gate at each point, and how well launches repeat on this bench."""
    alpha = material.run.plan.fields.get("alpha")
    if compared and isinstance(alpha, (int, float)):
        rate = percent(100 * alpha, "run:/plan/alpha", signed=False)
        yield (
            "At each point, at most ",
            rate,
            " of campaigns pass a candidate with the unacceptable loss, and at most ",
            rate,
            " fail one within the acceptable loss; a failure counts only when additional launches confirm it.",
        )
    arm = "baseline" if "baseline" in material.arms else "candidate"
    spread = spread_of(material.points.values(), arm, "iops", counted=True)
    if spread.freedom > 0:
        # a rate that fio keeps to repeats better than two decimals show
        percentage = max(100 * spread.relative, _LEAST_SPREAD)
        shown = percent(percentage, f"samples:spread:{arm}", signed=False)
        several = len({session.id for session in material.run.sessions if arm in session.arms}) > 1
        yield (
            f"IOPS of {'sessions' if several else 'launches'} of the {arm} repeat within ",
            shown,
            " (standard deviation, all points together).",
        )
