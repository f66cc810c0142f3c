# SPDX-License-Identifier: Apache-2.0
"""What speaks against a run as it lies there, whoever signs or signed it: the same for signing and for verifying."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from storqual import __version__
from storqual.base.files import OddFileError
from storqual.base.text import visible_text
from storqual.inputs import WAIVERS, load_suite, load_waivers
from storqual.inputs.policy import Gate
from storqual.judge.entry import VerdictEntry
from storqual.judge.outcome import apply_waivers
from storqual.judge.question import metrics_of, planned_criteria
from storqual.judge.verdict import verdict_of, write_verdict
from storqual.report.criterion import is_accepted, named_cases, read_criteria, worst_of
from storqual.report.export import diagnosis_of, end_of
from storqual.run import Run, read_run, sha256_of
from storqual.run.closing import is_closed
from storqual.run.evidence import evidence_findings
from storqual.run.files import (
    DAMAGE,
    damage_sentences,
    file_digest,
    limit_of,
    parse_line,
    read_bytes,
    read_object,
    read_text,
)
from storqual.run.layout import EVENTS, MANIFEST
from storqual.run.measurements import measurements
from storqual.run.notes import read_notes
from storqual.run.recompute import SampleCheck
from storqual.signoff.annex import changed_attachments
from storqual.signoff.manifest import (
    FolderListing,
    Manifest,
    Named,
    look,
    manifest_differences,
    named_signatures,
    parse_manifest,
)
from storqual.signoff.statement import kinds_of
from storqual_core.kit.errors import BadInputError, StorqualError

JUNIT = "junit.xml"
OCP = "ocp.jsonl"
_ENDS = {"FAIL": "failure", "ERROR": "error", "INCONCLUSIVE": "error", "SKIPPED": "skipped"}
"""The element of a case that ended so; a case that passed has none."""


def export_findings(run: Run) -> Iterator[str]:
    """What junit.xml and ocp.jsonl say otherwise than verdict.json, a sentence a file.

    A file that is not there says nothing. Raises nothing for what is in them, or in the verdict.
    """
    for name, compare in ((JUNIT, _junit_difference), (OCP, _ocp_difference)):
        if not (run.path / name).is_file():
            continue
        try:
            verdict = read_object(run.path, "verdict.json")
            difference = compare(run, verdict, read_text(run.path, name))
        except StorqualError as problem:
            difference = f"cannot be compared with the verdict ({problem})"
        except (*DAMAGE, SyntaxError) as problem:
            difference = f"cannot be compared with the verdict ({problem!r})"
        if difference:
            yield f"{name}: {difference}"


def _junit_difference(_run: Run, verdict: Mapping[str, Any], data: str) -> str:
    """The first case that is not as its criteria ended."""
    if "<!DOCTYPE" in data:
        # entities are text that grows when it is read; pytest writes none
        return "has a document type, which no log of a run has"
    if data.count("<") > limit_of(JUNIT).values:
        return "has more elements than any log of a run"
    expected = [(_plain(name), *_end(members)) for name, members in named_cases(verdict["criteria"])]
    document = ElementTree.fromstring(data)  # noqa: S314 - without a document type it has no entities
    cases = [_case(element) for element in document.iter("testcase")]
    if len(cases) != len(expected):
        return f"has {len(cases)} test cases, the verdict gives {len(expected)}"
    for case, expected_case in zip(cases, expected, strict=True):
        if case != expected_case:
            return f"found {_shown(case)}, the verdict says {_shown(expected_case)}"
    return _counts_difference(document, Counter(end for _, _, end in expected), len(expected))


def _plain(name: str) -> str:
    """The name of a case as pytest's log has it: what stands before `::` goes into its class."""
    address, bracket, level = name.partition("[")
    return f"{address.rpartition('::')[2]}{bracket}{level}"


def _end(members: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Outcome of a case, and the element that says how it ended."""
    outcome = str(worst_of(members)["outcome"])
    return outcome, "skipped" if is_accepted(members) else _ENDS.get(outcome, "")


def _case(element: ElementTree.Element) -> tuple[str, str, str]:
    outcomes = [item.get("value") or "" for item in element.iter("property") if item.get("name") == "outcome"]
    ends = [child.tag for child in element if child.tag in _ENDS.values()]
    return element.get("name") or "", ",".join(outcomes), ",".join(ends)


def _shown(case: tuple[str, str, str]) -> str:
    name, outcome, end = case
    return f"{name[:100]!r} with outcome {outcome[:40]!r} as {end[:40] or 'passed'}"


def _counts_difference(document: ElementTree.Element, ends: Counter[str], cases: int) -> str:
    """A dashboard reads the sums alone."""
    for suite in document.iter("testsuite"):
        sums = {"tests": cases, "errors": ends["error"], "failures": ends["failure"], "skipped": ends["skipped"]}
        for name, number in sums.items():
            if suite.get(name) != str(number):
                return f"counts {name} as {(suite.get(name) or 'nothing')[:40]}, the verdict gives {number}"
    return ""


def _ocp_difference(run: Run, verdict: Mapping[str, Any], data: str) -> str:
    """The first diagnosis, or the end, that is not the verdict's."""
    steps: dict[str, str] = {}
    diagnoses: Counter[tuple[str, str, str]] = Counter()
    ends = []
    for line in (parse_line(text, OCP) for text in data.encode().splitlines()):
        step, whole = line.get("testStepArtifact") or {}, line.get("testRunArtifact") or {}
        if "testStepStart" in step:
            steps[step["testStepId"]] = step["testStepStart"]["name"]
        if "diagnosis" in step:
            diagnosis = step["diagnosis"]
            diagnoses[steps[step["testStepId"]], diagnosis["verdict"], diagnosis["type"]] += 1
        if "testRunEnd" in whole:
            ends.append(whole["testRunEnd"])
    if ends != [end_of(verdict)]:
        return f"ends with {json.dumps(ends)[:100]}, the verdict is {verdict.get('outcome')}"
    expected = Counter(
        (visible_text("/".join(row.key)) if row.key in run.points else "checks", *diagnosis_of(row))
        for row in read_criteria(verdict)
    )
    for key in (diagnoses - expected) + (expected - diagnoses):
        return f"says {' '.join(key)[:200]!r} {diagnoses[key]} times, the verdict {expected[key]} times"
    return ""


@dataclass(frozen=True)
class Examined:
    """A run directory as it was found. `problems` name their file each; without any the run was `judged` again.

    `run` is None where it cannot be read. `digest` is that of the manifest, empty for a run that nobody signed.
    """

    folder: Path
    listing: FolderListing
    digest: str
    manifest: Manifest | None
    signatures: tuple[Named, ...]
    run: Run | None
    judged: "JudgedAgain | None"
    problems: tuple[str, ...]


def examine(folder: Path) -> Examined:
    """Look at every file, hold it to the manifest, and judge the run again as its verdict was made.

    The one is done only where the other found nothing: a file that is not the one that was signed, or no file at all,
    is not read as anything else. Raises OSError when the folder cannot be read.
    """
    listing = look(folder)
    named, strange = named_signatures(listing.signatures)
    digest, manifest, problems = _manifest(folder, listing)
    problems += strange
    run, wrong = (None, []) if listing.odd else _run(folder)
    problems += wrong
    judged = None
    if run is not None and not problems:
        try:
            judged = JudgedAgain(run)
            problems += _of_run(run, judged)
            problems += [] if problems else judged.differences("verdict.json")
        except DAMAGE as problem:
            problems += damage_sentences(folder, problem)
    sentences = tuple(_relative(folder, line) for line in dict.fromkeys(problems))
    return Examined(folder, listing, digest, manifest, tuple(named), run, judged, sentences)


def _of_run(run: Run, judged: "JudgedAgain") -> Iterator[str]:
    yield from run.verify_inputs()
    yield from run_findings(run.path, judged.measured.evidence)
    yield from export_findings(run)


def release_findings(examined: Examined, signed: Iterable[tuple[str, str, date]]) -> list[str]:
    """What speaks against the judgements that are signed: `(path, SHA-256, day)`, a day for each signature.

    Each is made again, must have passed on its day, and the report must be that of one of them.
    """
    again, signed = examined.judged, list(signed)
    if again is None or not signed:
        return []
    findings = []
    try:
        for path in dict.fromkeys(path for path, _, _ in signed if path != "verdict.json"):
            findings += again.differences(path)
        for path, _, day in dict.fromkeys(signed):
            verdict = again.of_day(path, day)
            if verdict["exit_code"] != 0:
                findings.append(f"{path}: as of {day}, when it was signed, the files give {verdict['outcome']}")
        report = again.run.path / "report.html"
        if report.is_file():
            page = read_text(again.run.path, report.name)
            if not any(digest in page for _, digest, _ in signed):
                findings.append("report.html: this report is of another verdict than the one that is signed")
    except DAMAGE as problem:
        findings += damage_sentences(again.run.path, problem)
    return [_relative(again.run.path, line) for line in dict.fromkeys(findings)]


def _manifest(folder: Path, listing: FolderListing) -> tuple[str, Manifest | None, list[str]]:
    """Digest of the manifest, what it covers, and what in the directory differs from it, or is odd."""
    odd = listing.problems
    if not listing.signatures:
        return "", None, odd
    if MANIFEST not in listing.signatures:
        return "", None, [*odd, *([] if MANIFEST in listing.odd else [f"{MANIFEST}: is missing"])]
    try:
        data = read_bytes(folder, MANIFEST)
    except DAMAGE as problem:
        return "", None, [*odd, *damage_sentences(folder, problem)]
    try:
        manifest = parse_manifest(data)
    except ValueError as problem:
        return sha256_of(data), None, [*odd, f"{MANIFEST}: was changed: {problem}"]
    return sha256_of(data), manifest, manifest_differences(listing, manifest)


def _run(folder: Path) -> tuple[Run | None, list[str]]:
    """The run; None with the reasons where it cannot be read: the manifest names the file as well."""
    try:
        run = read_run(folder)
        # what is asked of it later is there
        _ = run.arms["candidate"].drop, kinds_of(run)
    except DAMAGE as problem:
        return None, damage_sentences(folder, problem)
    return run, []


def _relative(folder: Path, line: str) -> str:
    return line.removeprefix(f"{folder}/")


def run_findings(path: Path, samples: SampleCheck | None = None) -> list[str]:
    """Everything that speaks against a run as it lies there, a sentence each; empty for one that is whole.

    `samples` is what was found when they were read; without it they are read now. What cannot be read as what it is
    speaks against it as well. Raises nothing of the run's own.
    """
    try:
        run = read_run(path)
        return [
            *evidence_findings(run, samples),
            *published_findings(run),
            *changed_attachments(path, read_notes(path)),
        ]
    except DAMAGE as problem:
        return damage_sentences(path, problem)


def published_findings(run: Run) -> Iterator[str]:
    """Published files that are not those that were published last, a sentence each."""
    published = [event for event in run.events if event.kind == "published"]
    digests: dict[str, str] = dict(published[-1].fields["files"]) if published else {}
    for name, digest in digests.items():
        if not (run.path / name).is_file():
            yield f"{name}: is missing, although {EVENTS} says that it was published"
        elif file_digest(run.path, name) != digest:
            yield f"{name}: is not what was published"


_TOLERANCE = 1e-6
"""Relative: another build of numpy may round the last digits otherwise."""

_OF_RUN = ("run", "outcome", "exit_code", "inputs", "coverage", "settings", "sectors_written_outside_claims")
_SENTENCES = ("reason", "evidence", "overall", "warnings")
_WORDS = ("id", "bench", "adapter", "point", "metric", "unit", "better", "against", "required", "outcome", "waiver")
_COUNTS = ("samples", "suspect", "sessions", "ios")
_NUMBERS = ("candidate", "reference", "shift_percent", "loss_percent", "margin_percent", "detectable_percent")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict that may be signed, and the file in the run directory that says it."""

    verdict: Mapping[str, Any]
    path: str
    sha256: str


class JudgedAgain:
    """Verdicts of a run, made from its files; its samples are read and derived again once, for all of them."""

    def __init__(self, run: Run) -> None:
        """Read the samples. Raises what `measurements` and `planned_criteria` raise."""
        self.run = run
        suite = load_suite(run.input_file("suite"))
        self.measured = measurements(run, metrics_of(planned_criteria(run, suite, Gate())), evidence=True)
        self._made: dict[tuple[Path | None, datetime], dict[str, Any]] = {}

    def verdict(self, waivers: Path | None, as_of: datetime) -> dict[str, Any]:
        """The verdict of that moment. Raises BadInputError where there can be none."""
        if (waivers, as_of) not in self._made:
            try:
                made = verdict_of(self.run.path, waivers=waivers, as_of=as_of, measured=self.measured)
            except BadInputError:
                raise
            except StorqualError as problem:
                lines = str(problem).splitlines()
                raise BadInputError([f"{self.run.path}: cannot be judged: {line}" for line in lines]) from None
            self._made[waivers, as_of] = made
        return self._made[waivers, as_of]

    def differences(self, path: str) -> list[str]:
        """Where the judgement in the file `path` of the run says something else than the files give, as of its time.

        It is made with the waivers beside it, and every digest under its `inputs` must be that of the file.
        Raises BadInputError for a file that is no judgement.
        """
        stored = read_judgement(self.run, path)
        again = self.verdict(_waivers_of(self.run, path, stored), datetime.fromisoformat(str(stored["as_of"])))
        made_by = (self.run.document.get("versions") or {}).get("storqual")
        # another version may say the same in other words
        names = (*_OF_RUN, *_SENTENCES) if made_by == __version__ else _OF_RUN
        differences = [f"{path}: {difference}" for difference in _differences(stored, again, names)]
        if differences and made_by != __version__:
            differences.append(f"{path}: the run was made by storqual {made_by}, and is judged here by {__version__}")
        return differences

    def of_day(self, path: str, day: date) -> dict[str, Any]:
        """The verdict of the judgement in `path`, as of a day: waivers and baselines age by the day.

        Raises BadInputError.
        """
        stored = read_judgement(self.run, path)
        judged_at = datetime.fromisoformat(str(stored["as_of"]))
        # midnight, so that everybody who signs on one day signs one judgement
        moment = judged_at if judged_at.astimezone(UTC).date() == day else datetime.combine(day, time.min, tzinfo=UTC)
        return self.verdict(_waivers_of(self.run, path, stored), moment)


def acceptable_judgement(again: JudgedAgain, waivers: Path | None, now: datetime) -> Judgement:
    """The verdict to sign: `verdict.json` when it passes, else one that `waivers` make pass, written to judgements/.

    The caller has held `verdict.json` to the files. Raises BadInputError with every reason against signing: not
    passing as of `now`, a failure that no waiver covers, a waiver that is wider than what failed.
    """
    run, path = again.run, "verdict.json"
    current = again.of_day(path, now.date())
    if current["exit_code"] == 1 and waivers is not None:
        today = datetime.combine(now.date(), time.min, tzinfo=UTC)
        accepted = again.verdict(waivers, today)
        _refuse(run, accepted, waivers, now)
        written = write_verdict(run.path, accepted, other_rules=True, waivers=waivers)
        path = written.relative_to(run.path).as_posix()
    else:
        _refuse(run, current, _waivers_of(run, path, read_judgement(run, path)), now)
    data = read_bytes(run.path, path)
    return Judgement(parse_line(data, path), path, sha256_of(data))


def read_judgement(run: Run, path: str) -> dict[str, Any]:
    """The judgement in a file of a run, not yet believed. Raises BadInputError for a file that holds none."""
    file = run.path / path
    try:
        verdict = parse_line(read_bytes(run.path, path), path)
        complete = {"outcome", "exit_code"} <= verdict.keys() and all(entry.keys() for entry in verdict["criteria"])
        complete = complete and isinstance(verdict["inputs"], dict)
        complete = complete and datetime.fromisoformat(verdict["as_of"]).tzinfo is not None
    except FileNotFoundError:
        remedy = f"judge it first: storqual publish {run.path}"
        raise BadInputError([f"{file}: this run has no verdict; {remedy}"]) from None
    except OddFileError as problem:
        raise BadInputError([str(problem)]) from None
    except DAMAGE:
        complete = False
    if not complete:
        raise BadInputError([f"{file}: this file holds no verdict of `storqual judge`"])
    return dict(verdict)


def _waivers_of(run: Run, path: str, stored: Mapping[str, Any]) -> Path | None:
    """The waivers beside a judgement that was made with some; it names their digest."""
    return (run.path / path).with_name(WAIVERS) if "waivers" in stored["inputs"] else None


def _refuse(run: Run, verdict: Mapping[str, Any], waivers: Path | None, now: datetime) -> None:
    """Raise BadInputError when this verdict does not pass, or passes by a waiver that accepts more than failed."""
    problems = []
    if verdict["exit_code"] != 0:
        problems.append(_why_not(run, verdict, verdict["exit_code"]))
        problems += [f"{run.name}: {warning}" for warning in verdict["warnings"] if warning.startswith("waiver ")]
    if waivers is not None:
        bare = [VerdictEntry(**{**entry, "waiver": None}) for entry in verdict["criteria"]]
        doubts = apply_waivers(
            bare,
            load_waivers(waivers),
            drop=run.arms["candidate"].drop,
            suite=run.suite.name,
            today=now.date(),
        )
        problems += [f"{waivers}: {doubt.text}; narrow it to them" for doubt in doubts if doubt.kind == "wide"]
    if problems:
        raise BadInputError(problems)


def _why_not(run: Run, verdict: Mapping[str, Any], code: int) -> str:
    reason = f"{run.name}: the outcome is {verdict['outcome']} ({verdict.get('reason') or 'no reason was recorded'})"
    if code == 1:
        return f"{reason}; give waivers that cover every failure (--waivers)"
    way = (
        "it is closed and nothing is left to measure, so repeat the campaign"
        if is_closed(run.path)
        else f"resume it (storqual qualify --resume {run.name})"
    )
    return f"{reason}; a run that could not be judged can be neither signed nor waived; {way}"


def _differences(stored: Mapping[str, Any], again: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Where the stored verdict says something else than its files; the first of many criteria."""
    differences = [
        f"found {name} {stored.get(name)!r}, the files say {again[name]!r}"
        for name in names
        if stored.get(name) != again[name]
    ]
    before, after = stored["criteria"], again["criteria"]
    if len(before) != len(after):
        return [*differences, f"found {len(before)} criteria, the files give {len(after)}"]
    for stored_entry, present_entry in zip(before, after, strict=True):
        wrong = _criterion_difference(stored_entry, present_entry)
        if wrong:
            return [*differences, wrong]
    return differences


def _criterion_difference(stored: Mapping[str, Any], again: Mapping[str, Any]) -> str:
    name = f"{again['id']} at {again['adapter']}/{again['point']}"
    for field in (*_WORDS, *_COUNTS):
        if stored.get(field) != again[field]:
            return f"found {field} {stored.get(field)!r} in {name}, the files say {again[field]!r}"
    for field in (*_NUMBERS, "ci95_percent"):
        if not _close(stored.get(field), again[field]):
            return f"found {field} {stored.get(field)!r} in {name}, the files say {again[field]!r}"
    return ""


def _close(first: object, second: object) -> bool:
    if isinstance(second, Sequence) and not isinstance(second, str):
        return (
            isinstance(first, Sequence)
            and len(first) == len(second)
            and all(_close(left, right) for left, right in zip(first, second, strict=True))
        )
    if isinstance(first, int | float) and isinstance(second, int | float):
        return math.isclose(first, second, rel_tol=_TOLERANCE, abs_tol=1e-4)
    return first is None and second is None
