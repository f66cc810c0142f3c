# SPDX-License-Identifier: Apache-2.0
"""The first screen: what was qualified, the outcome in a sentence and why, what is missing, who may sign."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from storqual.base.figures import DASH, NONE, ShownNumber, count, level_text, minute, percent, seconds
from storqual.base.text import plural
from storqual.judge.outcome import required_roles, used_waivers, waiver_list
from storqual.metrics import METRICS
from storqual.plan.points import points_of
from storqual.report.criterion import JudgedCriterion, OutcomeBadge, adapter_name, in_sentence, once_each, outcome
from storqual.report.material import Material, measure, spread_of
from storqual.report.parts.arms import TestedAdapter, environment_of, identities
from storqual.report.parts.criteria import (
    MetricChange,
    Problem,
    change_of,
    compared_of,
    odd_launches,
    problems_of,
    shown_beside,
)
from storqual.report.parts.timeline import TimelineEvent
from storqual.report.view import KeyValue, PageLinks, Phrase
from storqual.run.turns import turns_of
from storqual.statistics.estimates import odds_within


def sentence_for(verdict: Mapping[str, Any], rows: Sequence[JudgedCriterion], drops: Mapping[str, str]) -> Phrase:
    """What the outcome means here, with how many required measurements it rests on; `drops` names the arms' drops.

    Where the outcome does not follow from counting criteria (the rig, the guard, the gate's policy), the judge's own
    reason is the sentence.
    """
    required = once_each([row for row in rows if row.required])
    reason = str(verdict.get("reason") or "")
    sectors = verdict.get("sectors_written_outside_claims")
    if isinstance(sectors, int) and sectors > 0:
        shown = count(sectors, "verdict:/sectors_written_outside_claims")
        return (shown, " sectors were written to disks that no claim covers; nothing measured here may be used.")
    if reason and reason in (verdict.get("warnings") or ()):
        return (f"The run is not valid; {reason.rstrip('.')}.",)
    sentence = _counted(str(verdict.get("outcome")), required, drops) or _holes(verdict)
    if sentence:
        return sentence
    return (
        f"{reason[:1].upper()}{reason[1:].rstrip('.')}." if reason else "There was no required criterion to judge.",
    )


def _counted(word: str, required: Sequence[JudgedCriterion], drops: Mapping[str, str]) -> Phrase:
    """The sentence where the outcome follows from the criteria; empty where it does not."""
    if not required:
        return ()
    if word in ("PASS", "MARGINAL"):
        return _passed(required)
    bad = [row for row in required if row.outcome == word and not row.waived]
    if not bad:
        return ()
    shown, total = count(len(bad), f"count:criteria:{word}"), count(len(required), "count:criteria:required")
    disturbed = _disturbed(bad) if word == "INCONCLUSIVE" else ""
    if disturbed:
        return (shown, " of ", total, f" required criteria are undecided: {disturbed}.")
    if word == "FAIL" and all(row.against == "baseline" for row in bad):
        names = drops.get("candidate", "The candidate"), drops.get("baseline", "the baseline")
        return ("{} is shown to be worse than {} at ".format(*names), shown, " of ", total, " required criteria.")
    return (shown, " of ", total, _ENDINGS.get(word, " required criteria did not pass."))


_ARMS = ("candidate", "baseline")


def _disturbed(undecided: Sequence[JudgedCriterion]) -> str:
    """Why no launch of an arm counts at any of these points; empty where some do, or none was disturbed."""
    counts = [(row.fields.get("samples") or {}, row.fields.get("suspect") or {}) for row in undecided]
    empty = [arm for arm in _ARMS if all(samples.get(arm) == 0 for samples, _ in counts)]
    disturbed = [arm for arm in _ARMS if all(suspects.get(arm) for _, suspects in counts)]
    without = [arm for arm in empty if arm in disturbed]
    if not without:
        return ""
    whose = f" of the {without[0]}" if len(without) == 1 and len(empty) == 1 else ""
    return f"no launch{whose} counts as evidence, because all of them were disturbed (suspect)"


_ENDINGS = {
    "FAIL": " required criteria failed.",
    "ERROR": " required criteria could not be judged: what they need is missing or invalid.",
    "INCONCLUSIVE": " required criteria are undecided: the measurements neither prove nor rule out a loss.",
}


def _passed(required: Sequence[JudgedCriterion]) -> Phrase:
    total = count(len(required), "count:criteria:required")
    alone = len(required) == 1
    waived = sum(row.waived for row in required)
    if waived:
        passes = count(len(required) - waived, "count:criteria:held")
        accepted = count(waived, "count:criteria:WAIVED")
        used = used_waivers(row.fields for row in required)
        number = count(len(used), "count:waivers")
        noun = "waiver" if len(used) == 1 else "waivers"
        start: Phrase = ("Passes with ", number, f" {noun}: {waiver_list(used)}. ", passes, " of ", total)
        ending = f" failed and {'is' if waived == 1 else 'are'} waived."
        return (*start, " required measurements pass; ", accepted, ending)
    narrow = sum(row.outcome == "MARGINAL" for row in required)
    if narrow:
        close = count(narrow, "count:criteria:MARGINAL")
        if alone:
            return ("The ", total, " required criterion passes, near its limit.")
        return ("All ", total, " required criteria pass, ", close, " of them near their limit.")
    compared = [row for row in required if row.against == "baseline"]
    if not compared:
        return (
            ("The ", total, " required criterion passes.") if alone else ("All ", total, " required criteria pass.")
        )
    noun = "measurement" if len(compared) == 1 else "measurements"
    shown = count(len(compared), "count:criteria:compared")
    determiner = "the" if len(compared) == 1 else "all"
    margins = {row.number("margin_percent") for row in compared}
    limit: Phrase = ("the unacceptable loss",)
    if len(margins) == 1 and None not in margins:
        limit = (compared[0].percent("margin", signed=False),)
    start = ("The candidate is shown to lose less than ", *limit, f" at {determiner} ", shown, f" required {noun}")
    rest = [row for row in required if row.against != "baseline"]
    if not rest:
        return (*start, ".")
    checks = all(row.against == "check" for row in rest)
    single, several = ("check", "checks") if checks else ("other criterion", "other criteria")
    number = count(len(rest), "count:criteria:others")
    return (*start, "; ", number, f" {single} passed." if len(rest) == 1 else f" {several} passed.")


def _holes(verdict: Mapping[str, Any]) -> Phrase:
    """Planned points that were not measured and that nobody explained; empty when there are none."""
    skipped = (verdict.get("coverage") or {}).get("skipped") or ()
    holes = sum(not entry.get("reason") for entry in skipped)
    if not holes or verdict.get("exit_code") == 0:
        return ()
    noun = "point was" if holes == 1 else "points were"
    return (count(holes, "count:holes"), f" planned {noun} not measured, and no reason was recorded.")


_MOST_NAMED = 12
_TAIL = ("_p99", "_max_")


def untested(material: Material, required: Sequence[JudgedCriterion], benches: Sequence[str]) -> tuple[KeyValue, ...]:
    """Each thing that a reader might believe tested and was not; with several `benches` each adapter with its own."""
    parts = [KeyValue("Adapters", tuple(_adapters(material, benches)))]
    if material.points:
        parts = [
            KeyValue("Points of the suite", _points(material)),
            KeyValue("Levels", tuple(_levels(material))),
            *parts,
            KeyValue("Tail latency", tuple(_tail(required))),
            KeyValue("Cost per I/O", _apart(_cost(material, required, benches))),
            KeyValue("Steady state", _apart(_steady(material))),
            KeyValue("Endurance", tuple(_endurance(material))),
            KeyValue("Data", _apart(_data(material))),
        ]
    parts += [KeyValue(name, (sentence,)) for name, sentence in turns_of(material.run).absent()]
    return tuple(part for part in parts if part.values)


def suite_points(material: Material) -> int | None:
    """The points of the whole suite on all adapters under test; None where the suite cannot be read any more."""
    if material.suite is None:
        return None
    per_adapter = len(points_of(material.suite))
    return per_adapter * len({key[:2] for key in material.points})


def _points(material: Material) -> Phrase:
    whole = suite_points(material)
    measured = (material.verdict.get("coverage") or {}).get("measured")
    if whole is None or not isinstance(measured, int) or measured >= whole:
        return ()
    return (
        count(whole - measured, "count:points:left"),
        " of ",
        count(whole, "count:points:suite"),
        f" of suite {material.run.suite.name} on these adapters; profile {material.run.suite.profile} asks for ",
        count((material.verdict.get("coverage") or {}).get("planned"), "verdict:/coverage/planned"),
    )


def _levels(material: Material) -> Iterator[str]:
    """Workloads and levels of the suite at which nothing at all was measured."""
    if material.suite is None:
        return
    measured: dict[str, dict[str, set[Any]]] = {}
    for data in material.points.values():
        if any(data.good(arm) for arm in material.arms):
            factors = measured.setdefault(data.planned.workload, {})
            for name, level in data.planned.factors.items():
                factors.setdefault(name, set()).add(level)
    lacking = [name for name in material.suite.workloads if name not in measured]
    for name, workload in material.suite.workloads.items():
        levels = [
            level_text(factor, level)
            for factor, planned in workload.factors.items()
            for level in planned
            if name in measured and level not in measured[name].get(factor, ())
        ]
        lacking += [f"{name} with {' or '.join(levels)}"] if levels else []
    if lacking:
        yield _first_names(lacking)


def _adapters(material: Material, benches: Sequence[str]) -> Iterator[str]:
    tested = material.tested
    left = [
        f"{adapter_name(benches, bench, alias)} ({_described(adapter)})"
        for bench, entry in material.run.benches.items()
        for alias, adapter in (entry.get("adapters") or {}).items()
        if (bench, alias) not in tested
    ]
    if left:
        yield _first_names(left)


def _apart(sentences: Iterator[str]) -> Phrase:
    """Several statements as one phrase; a phrase prints its parts without anything between."""
    joined = "; ".join(sentences)
    return (joined,) if joined else ()


def _described(adapter: Mapping[str, Any]) -> str:
    return str(adapter.get("model") or adapter.get("driver") or "not described")


def _first_names(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (" and others" if rest > 0 else "")


def _tail(required: Sequence[JudgedCriterion]) -> Iterator[str]:
    if not any(mark in row.text("metric") for row in required for mark in _TAIL):
        yield "no required criterion is about a percentile of latency"


def _cost(material: Material, required: Sequence[JudgedCriterion], benches: Sequence[str]) -> Iterator[str]:
    costs = [name for name in METRICS if name.startswith(("cpu_", "cycles_"))]
    if not any(row.text("metric") in costs for row in required):
        yield f"{measure('cpu_us_per_io').label} does not affect the outcome"
    starts = ((event.bench, event.fields.get("start")) for event in material.events if event.kind == "block_finished")
    reasons = {bench: start.get("no_cycles") for bench, start in starts if start}
    for bench in benches:
        if reasons.get(bench):
            where = f" on {bench}" if len(benches) > 1 else ""
            yield f"{measure('cycles_per_io').label} were not counted{where}: {reasons[bench]}"


def _data(material: Material) -> Iterator[str]:
    """Launches after which nothing was read back, by the reasons; and how much was after the others."""
    looked = [look for arms in material.data.values() for look in arms.values()]
    reasons: dict[str, int] = {}
    for look in looked:
        for reason, number in look.reasons.items():
            reasons[reason] = reasons.get(reason, 0) + number
    if not reasons:
        return
    sectors, launches = sum(look.sectors for look in looked), sum(look.launches for look in looked)
    yield f"{sectors} sectors were read back after {plural(launches, 'launch')}"
    for reason, number in sorted(reasons.items(), key=lambda item: -item[1]):
        yield f"nothing after {plural(number, 'launch')}: {reason}"


def _steady(material: Material) -> Iterator[str]:
    """Benches whose drives were not brought to a steady state before the first launch, as SNIA's PTS has it."""
    if any(str(bench.get("kind")) == "local" for bench in material.run.benches.values()):
        return
    done: dict[str, Mapping[str, Any]] = {
        str(entry.get("bench")): entry.get("report") or {} for entry in material.document.get("preconditioned") or ()
    }
    if any(report.get("as_found") for report in done.values()):
        yield "disks were measured as they were found: SNIA's PTS requires a steady state for flash only"
    if not all(_settled(done.get(name) or {}) for name in material.run.benches):
        yield (
            "drives were measured as they were found: not purged, preconditioned or brought to a steady "
            "state as SNIA's"
            " PTS requires for solid-state drives"
        )


def _settled(report: Mapping[str, Any]) -> bool:
    """Whether the flash drives of a bench came to a steady state; so it is where it has only disks."""
    if report.get("as_found") and not any(report.get(stage) for stage in ("purge", "fill", "steady")):
        return True
    return bool((report.get("steady") or {}).get("steady"))


def _endurance(material: Material) -> Iterator[Any]:
    longest = max((launch.runtime_s for data in material.points.values() for launch in data.every()), default=0.0)
    if longest > 0:
        yield "no launch ran longer than "
        yield seconds(round(longest), "count:longest-launch")


@dataclass(frozen=True)
class FirstScreen:
    """The first screen; `single` where there is no baseline."""

    notices: tuple[str, ...]
    single: bool
    baseline: str
    candidate: str
    subject: tuple[str, ...]
    changes: tuple[KeyValue, ...]
    outcome: OutcomeBadge
    sentence: Phrase
    exit_code: ShownNumber
    exit_meaning: str
    adapters: tuple[TestedAdapter, ...]
    facts: tuple[KeyValue, ...]
    counts: tuple[tuple[OutcomeBadge, ShownNumber], ...]
    incidents: tuple[TimelineEvent, ...]
    problems: tuple[Problem, ...]
    more_problems: ShownNumber | None
    remarks: tuple[Phrase, ...]
    limits: tuple[LossLimits, ...]
    sure: tuple[Phrase, ...]
    untested: tuple[KeyValue, ...]
    worst: MetricChange | None
    best: MetricChange | None
    planned: ShownNumber
    measured: ShownNumber
    skipped: ShownNumber
    holes: ShownNumber
    has_holes: bool
    no_evidence: str
    sectors: ShownNumber
    sectors_note: str
    signers: tuple[str, ...]
    may_sign: bool
    roles: tuple[str, ...]
    verdict_sha256: str
    warnings: tuple[str, ...]


def subject(material: Material) -> Iterable[str]:
    """What was compared, in a line or two."""
    run = material.run
    names = list(dict.fromkeys(adapter_name(list(run.benches), *adapter) for adapter in material.tested))
    adapters = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "no adapter"
    kinds = [f"{name} ({_kind(bench).lower()})" for name, bench in run.benches.items()]
    yield f"{adapters} on {', '.join(kinds)}; suite {run.suite.name}, profile {run.suite.profile}"
    kernels: dict[str, list[str]] = {}
    for arm, entry in material.provisioned():
        if entry.get("kernel"):
            kernels.setdefault(arm, []).append(str(entry["kernel"]))
    kernel_of = {arm: " and ".join(dict.fromkeys(names)) for arm, names in kernels.items()}
    first, second = kernel_of.get("baseline"), kernel_of.get("candidate")
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
    material: Material, rows: Sequence[JudgedCriterion], links: PageLinks, incidents: Sequence[TimelineEvent]
) -> FirstScreen:
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
        remarks=(*shown_beside(rows, benches), *odd_launches(rows, benches), *_informative(rows)),
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
        no_evidence=_without_evidence(required),
        sectors=_sectors(material),
        sectors_note=_sectors_note(material),
        signers=signers,
        may_sign=may_sign,
        roles=tuple(role.replace("-", " ") for role in required_roles(material.run)),
        verdict_sha256=material.verdict_sha256,
        warnings=_warnings(verdict, incidents),
    )


def _without_evidence(required: Sequence[JudgedCriterion]) -> str:
    """At how many points an arm has no launch that counts, as words behind the number of measured points."""
    counts: dict[tuple[str, ...], bool] = {}
    for row in required:
        samples, suspect = row.fields.get("samples") or {}, row.fields.get("suspect") or {}
        lost = any(suspect.get(arm) and not samples.get(arm) for arm in _ARMS)
        key = (row.text("bench"), row.text("adapter"), row.text("point"))
        counts[key] = counts.get(key, False) or lost
    lost_at = sum(counts.values())
    return f"; at {lost_at} of them no launch counts as evidence" if lost_at else ""


_WORDS = ("PASS", "MARGINAL", "FAIL", "INCONCLUSIVE", "ERROR", "SKIPPED")


def _notices(material: Material) -> Iterable[str]:
    """What a reader must know before the outcome: what kind of bench, a bench changed on purpose, one drop twice."""
    if material.run.is_identical:
        yield (
            "Both drops declare the same: this run compares the bench with itself and says nothing about a new drop."
        )
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
        pseudo = (bench.get("adapters") or {}).get(alias, {}).get("pseudo")
        if pseudo:
            name = adapter_name(list(material.run.benches), bench_name, alias)
            what = _WITHOUT_HARDWARE.get(str(pseudo), "the kernel's scsi_debug")
            yield (
                f"Adapter {name} is {what}: no hardware was tested by it, nor the driver of any; "
                "what this run says of it, it says of the kernel."
            )
    identified = identities(material)
    same = [adapter for adapter in identified if adapter.same]
    if same and len(same) == len(identified) and not material.run.is_identical:
        yield "Both arms are the same build: every driver under test has the same srcversion in both."
    elif same and not material.run.is_identical:
        yield f"The driver of {', '.join(adapter.name for adapter in same)} is the same build in both arms."


_WITHOUT_HARDWARE = {
    "fcoe": "FC over Ethernet between the kernel's own initiator and target, with no FC hardware",
    "iscsi_tcp": "iSCSI between two ports of one kernel",
    "nvme_tcp": "NVMe over TCP between two ports of one kernel",
}
"""What a software initiator of a virtual bench is."""


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
        return ", ".join(_flat_text(item) for item in value)
    return str(value)


def _pairs(values: dict[object, object]) -> str:
    pairs = [f"{key} {value}" for key, value in values.items()]
    if len(pairs) <= _MOST_PAIRS:
        return ", ".join(pairs)
    return f"{', '.join(pairs[: _MOST_PAIRS - 1])} and so on, see Settings and environment"


def _changes(material: Material) -> tuple[KeyValue, ...]:
    differing = [row for row in environment_of(material).drops if row.differs and row.name != "name"]
    return tuple(differing[:_MOST_CHANGES])


def _facts(material: Material) -> Iterable[KeyValue]:
    run, verdict = material.run, material.verdict
    yield KeyValue("Measured", (f"{minute(run.document.get('created'))} to {minute(run.document.get('finished'))}",))
    yield KeyValue("Judged as of", (minute(verdict.get("as_of")),))
    yield KeyValue("Run", (run.name,))


def _informative(rows: Sequence[JudgedCriterion]) -> tuple[Phrase, ...]:
    """How many informative criteria did not pass; none where all did or there are none."""
    bad = [row for row in rows if not row.required and row.outcome in ("FAIL", "ERROR", "INCONCLUSIVE")]
    if not bad:
        return ()
    total = count(sum(not row.required for row in rows), "count:informative")
    metrics = dict.fromkeys(measure(row.text("metric")).label for row in bad if row.against != "check")
    named = f" ({', '.join(metrics)})" if metrics else ""
    words = Counter(row.outcome for row in bad)
    numbers: Iterable[Phrase] = (
        (", ", count(number, f"count:bad:{word}"), f" {word}") for word, number in words.items()
    )
    _, *cells = itertools.chain.from_iterable(numbers)
    return (("Of ", total, f" informative criteria, which do not affect the outcome{named}: ", *cells, "."),)


def _warnings(verdict: Mapping[str, Any], incidents: Sequence[TimelineEvent]) -> tuple[str, ...]:
    """The verdict's warnings, without those that the sentence or the incidents above them say word by word."""
    headlines = [event.headline for event in incidents if " " in event.headline]
    reason = str(verdict.get("reason") or "")
    warnings = (str(text) for text in verdict.get("warnings") or ())
    return tuple(text for text in warnings if text != reason and not any(headline in text for headline in headlines))


def _sectors(material: Material) -> ShownNumber:
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


def signers_for(material: Material, rows: Sequence[JudgedCriterion]) -> tuple[tuple[str, ...], bool]:
    """Sentences for the first screen, and whether anybody may sign at all."""
    roles = " and ".join(role.replace("-", " ") for role in required_roles(material.run))
    code = material.verdict.get("exit_code")
    if code == 0:
        waived = any(row.waived for row in rows)
        lines = [f"May be signed by: {roles}" + (", with the waivers below." if waived else ".")]
        kinds = {str(bench.get("kind")) for bench in material.run.benches.values()}
        if "hardware" not in kinds:
            lines.append("A signature on this run shows only that the method works. It does not release hardware.")
        return tuple(lines), True
    if code == 1:
        return (f"Cannot be signed until waivers cover every failure; then: {roles}.",), False
    return (f"Cannot be signed: {_why_not_judged(material)}",), False


def _why_not_judged(material: Material) -> str:
    """Why a run without a decision has none, and what can be done about it."""
    covered = material.verdict.get("coverage") or {}
    left = any(not entry.get("reason") for entry in covered.get("skipped") or ())
    if left or not material.run.periods or material.run.periods[-1].closed is None:
        return f"the run is not complete. To measure what is missing: storqual qualify --resume {material.run.name}"
    if material.verdict.get("outcome") == "INCONCLUSIVE":
        return "everything planned was measured, and it is undecided; a longer campaign or a quieter bench may help."
    return "everything planned was measured, but part of it could not be judged; the reasons are below."


EXIT_CODES: dict[int, str] = {
    0: "passed",
    1: "failed",
    2: "could not be judged",
    3: "wrong usage or bad input",
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


@dataclass(frozen=True)
class LossLimits:
    """The two limits of some metrics, and what is said of a loss between them."""

    metrics: str
    acceptable: ShownNumber
    unacceptable: ShownNumber
    between: Phrase


def limits_of(compared: Sequence[JudgedCriterion]) -> tuple[LossLimits, ...]:
    """The limits of required criteria against the baseline, one entry for metrics that share both."""
    groups: dict[tuple[float | None, float | None], list[JudgedCriterion]] = {}
    for row in compared:
        pair = (row.number("indifference_percent"), row.number("margin_percent"))
        groups.setdefault(pair, []).append(row)
    return tuple(_limits(rows) for (_, margin), rows in groups.items() if margin is not None)


def _limits(rows: Sequence[JudgedCriterion]) -> LossLimits:
    first = rows[0]
    names = list(dict.fromkeys(measure(row.text("metric")).label for row in rows))
    names = [*names[:1], *map(in_sentence, names[1:])]
    return LossLimits(
        metrics=" and ".join(filter(None, [", ".join(names[:-1]), names[-1]])),
        acceptable=first.percent("indifference", signed=False),
        unacceptable=first.percent("margin", signed=False),
        between=_between(rows),
    )


def _between(rows: Sequence[JudgedCriterion]) -> Phrase:
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
    odds = round(100 * odds_within(high - half, reach))
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


def how_sure(material: Material, compared: Sequence[JudgedCriterion]) -> Iterator[Phrase]:
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
            f"Between {'sessions' if several else 'launches'}, the {arm}'s IOPS vary by ",
            shown,
            " (standard deviation, all points together).",
        )
