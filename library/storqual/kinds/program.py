# SPDX-License-Identifier: Apache-2.0
"""Foreign programs: the record of a run, and its tests in both arms: passed, known, fixed, regression, flaky, hung.

A difference counts at once where every repeat of an arm says the same; where repeats differ the exact comparison of
counts decides. What only one arm ran is told as missing and never passes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from storqual.base.table import Table
from storqual.base.text import plural
from storqual.kinds.kind import FoldedList, Kind, Part, PlannedTurn, Raw, Section, check
from storqual.kinds.output.formats import read_output
from storqual.kinds.trial_checks import ALPHA
from storqual.statistics.counts import more_often

Difference = Literal["same", "known", "fixed", "regression", "failed", "flaky", "hung", "skipped", "missing"]
_MEANINGS: Mapping[Difference, str] = {
    "regression": "Regressions: passed in the baseline, not in the candidate",
    "failed": "Failed",
    "missing": "Not run in both arms",
    "flaky": "Flaky: repeats differ",
    "hung": "Hung in both arms",
    "fixed": "Fixed: not passed in the baseline, passed in the candidate",
    "known": "Known: not passed in both arms",
    "skipped": "Skipped by the program in both arms",
    "same": "Passed in both arms",
}
DIFFERENCES = tuple(_MEANINGS)
"""In the order in which they matter; `failed` is of a run without a baseline."""
OUTPUT = "output"
"""What the raw file of a program is called: all that was told of it."""
_PREFIX = "external."
_RUN = ("passed", "failed", "hung")
_MOST_NAME = 200
_MOST_UNREAD = 100
_MOST_NOTED = 50


@dataclass
class ProgramStream:
    """What was told of one run of a program: by the bench, and by the control node before and after."""

    head: Mapping[str, Any] = field(default_factory=dict)
    output: list[str] = field(default_factory=list)
    report: str | None = None
    ended: Mapping[str, Any] | None = None
    end: tuple[str, str] | None = None
    stuck: str = ""
    recovered: str = ""
    notes: list[str] = field(default_factory=list)
    kernel: list[str] = field(default_factory=list)
    disks: Mapping[str, Any] = field(default_factory=dict)
    boot_id: str = ""
    words: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def take(self, line: Mapping[str, Any]) -> None:
        """One line of the stream; the stream itself is kept whole. Raises KeyError, TypeError or ValueError."""
        kind = line["kind"]
        if kind == "run":
            if self.head:
                raise ValueError("a stream that says a second time whose it is")
            self.head = line
        elif kind == "output":
            self.output.append(str(line["text"]))
        elif kind == "report":
            self.report = str(line["text"])
            self.notes += [str(line["problem"])] if line["problem"] else []
        elif kind == "ended":
            self.ended = line
        elif kind == "end":
            self.end = (str(line["outcome"]), str(line["message"]))
            self.disks, self.boot_id = line.get("disks") or {}, str(line.get("boot_id") or "")
        elif kind in ("stuck", "recovered"):
            setattr(self, kind, str(line["text"]))
        elif kind == "seen":
            self.notes.append(f"{line['seen']}: {line['text']}")
        elif kind == "kernel":
            self.kernel = [str(text) for text in line["lines"]]
        elif kind == "program":
            self.words = [str(word) for word in line["words"]]
        elif kind == "spent":
            self.seconds = float(line["seconds"])


def run_line(turn: PlannedTurn, *, boot: str, start: str) -> dict[str, Any]:
    """The first line of a stream: whose it is. `boot` is the bench's boot id, `start` an ISO time."""
    return {"kind": "run", "run": turn.run, "program": turn.id, "bench": turn.bench, "boot": boot, "start": start}


def derive_program(turn: PlannedTurn, raw: Raw) -> dict[str, Any]:
    stream = ProgramStream()
    for line in raw.lines(OUTPUT) or ():
        stream.take(line)
    whose = {name: stream.head.get(name) for name in ("run", "program", "bench")}
    if whose != {"run": turn.run, "program": turn.id, "bench": turn.bench}:
        raise ValueError(f"found the stream of {whose['program']} of run {whose['run']}")
    ended = stream.ended or {}
    hung = bool(ended.get("hung")) or (stream.end is None and bool(stream.words))
    reasons = []
    if stream.end is not None and stream.end[0] != "done":
        reasons.append(f"it could not be run: {stream.end[1]}")
    elif not stream.words:
        reasons.append("it never began")
    text = "".join(stream.output) if turn.request["report"] is None else (stream.report or "")
    output = read_output(turn.request["reads"], text, status=ended.get("status"), hung=hung)
    void = bool(reasons) and not hung
    problems = [*output.problems, *([f"{ended['cut']} bytes of output were cut off"] if ended.get("cut") else [])]
    return {
        "program": turn.point,
        "start": str(stream.head["start"]),
        "seconds": stream.seconds,
        "words": stream.words,
        "status": ended.get("status"),
        "outcome": "void" if void else "hung" if hung else "ended",
        "reasons": reasons,
        "tests": [] if void else [[test.name, test.outcome, test.text] for test in output.tests],
        "problems": [] if void else problems,
        "unread": list(output.unread[:_MOST_UNREAD]),
        "unread_lines": len(output.unread),
        "recovered": stream.recovered,
        "notes": stream.notes[:_MOST_NOTED],
        "kernel": stream.kernel[-_MOST_NOTED:],
        "disks": stream.disks,
        "boot_id": stream.boot_id or str(stream.head["boot"]),
    }


@dataclass(frozen=True)
class Compared:
    """One test on one adapter in both arms; `runs` are its outcomes in each arm, repeat by repeat."""

    bench: str
    program: str
    adapter: str
    name: str
    kind: Difference
    outcome: str
    reason: str
    runs: Mapping[str, tuple[str, ...]]

    @property
    def check(self) -> str:
        return f"{_PREFIX}{self.program}/{self.name}"[:_MOST_NAME]


def compare_tests(planned: Sequence[PlannedTurn], records: Sequence[Mapping[str, Any]]) -> Iterator[Compared]:
    """Every test that any run of a program told of, in the order in which they were told."""
    for bench, program, adapter in dict.fromkeys((turn.bench, turn.point, turn.adapter) for turn in planned):
        here = [turn for turn in planned if (turn.bench, turn.point, turn.adapter) == (bench, program, adapter)]
        arms = list(dict.fromkeys(turn.arm for turn in here))
        made = [
            record
            for record in records
            if (record["bench"], record["program"], record["adapter"]) == (bench, program, adapter)
        ]
        by_run = [
            (record["arm"], {name: outcome for name, outcome, _ in record["tests"]})
            for record in sorted(made, key=lambda record: int(record["n"]))
            if record["outcome"] != "void"
        ]
        for name in dict.fromkeys(name for _, tests in by_run for name in tests):
            runs = {arm: tuple(str(tests.get(name, "missing")) for of, tests in by_run if of == arm) for arm in arms}
            kind, outcome, reason = _of_one(runs.get("candidate", ())) if len(arms) == 1 else _of_both(runs)
            yield Compared(bench, program, adapter, name, kind, outcome, reason, runs)


def _state(runs: Sequence[str]) -> str:
    """What all repeats say: one outcome, `mixed` of those of a test that ran, or `missing` where some did not."""
    if not runs:
        return "missing"
    if len(set(runs)) == 1:
        return runs[0]
    return "mixed" if set(runs) <= set(_RUN) else "missing"


def _counts_text(runs: Sequence[str]) -> str:
    """`passed`, or `passed 2, failed 1`; `not run` where it is not there."""
    counts = Counter(runs)
    if len(counts) <= 1 and len(runs) <= 1:
        return runs[0] if runs and runs[0] != "missing" else "not run"
    return ", ".join(f"{'not run' if name == 'missing' else name} {number}" for name, number in counts.items())


def _of_one(runs: Sequence[str]) -> tuple[Difference, str, str]:
    """Kind, outcome and reason of a test without a baseline."""
    state, results = _state(runs), _counts_text(runs)
    if state == "passed":
        return "same", "PASS", results
    if state == "skipped":
        return "skipped", "SKIPPED", f"the program skipped it: {results}"
    if state == "missing":
        return "missing", "INCONCLUSIVE", results
    kind: Difference = "flaky" if state == "mixed" else "hung" if state == "hung" else "failed"
    return kind, "FAIL", results


def _of_both(runs: Mapping[str, Sequence[str]]) -> tuple[Difference, str, str]:
    """Kind, outcome and reason of a test of both arms."""
    base, cand = (runs.get(arm, ()) for arm in ("baseline", "candidate"))
    states = (_state(base), _state(cand))
    results = f"baseline: {_counts_text(base)}; candidate: {_counts_text(cand)}"
    if "missing" in states or ("skipped" in states and states != ("skipped", "skipped")):
        return "missing", "INCONCLUSIVE", f"not run in both arms alike: {results}"
    if states == ("skipped", "skipped"):
        return "skipped", "SKIPPED", f"the program skipped it: {results}"
    if states == ("passed", "passed"):
        return "same", "PASS", results
    if "mixed" in states:
        return _flaky(base, cand, results)
    if states[1] == "passed":
        return "fixed", "PASS", results
    if states[0] == "passed" or states == ("failed", "hung"):
        return "regression", "FAIL", f"regression: {results}"
    return "hung" if states == ("hung", "hung") else "known", "PASS", f"known, the baseline does so too: {results}"


def _flaky(base: Sequence[str], cand: Sequence[str], results: str) -> tuple[Difference, str, str]:
    """A test whose repeats differ: how often it did not pass, compared exactly."""
    bad, bad_before = (sum(result != "passed" for result in runs) for runs in (cand, base))
    p = float(more_often((bad, len(cand)), (bad_before, len(base))))
    results = f"{results}, p = {p:.3g}"
    if p <= ALPHA:
        return "regression", "FAIL", f"regression: {results}"
    if bad and not bad_before:
        return "flaky", "INCONCLUSIVE", f"flaky, too few repeats to tell a regression: {results}"
    return "flaky", "PASS", f"flaky: {results}"


def program_checks(
    planned: Sequence[PlannedTurn], records: Sequence[Mapping[str, Any]], _document: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for key in dict.fromkeys((turn.bench, turn.point, turn.adapter) for turn in planned):
        bench, program, adapter = key
        outcome, reason = _of_program(
            [turn for turn in planned if (turn.bench, turn.point, turn.adapter) == key],
            [record for record in records if (record["bench"], record["program"], record["adapter"]) == key],
        )
        yield check(f"{_PREFIX}{program}", bench, adapter, outcome, reason)
    for test in compare_tests(planned, records):
        yield check(test.check, test.bench, test.adapter, test.outcome, test.reason)


def _of_program(planned: Sequence[PlannedTurn], records: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Whether what a program printed can be believed: it was run as planned and its counts agree with its tests."""
    void = [record for record in records if record["outcome"] == "void"]
    if void:
        return "ERROR", f"{void[0]['id']}: {void[0]['reasons'][0]}"
    wrong = [record for record in records if record["problems"]]
    if wrong:
        return "ERROR", f"{wrong[0]['id']}: what it printed contradicts itself: {wrong[0]['problems'][0]}"
    unmade = len({turn.id for turn in planned} - {record["id"] for record in records})
    if unmade:
        return "INCONCLUSIVE", f"{unmade} of {len(planned)} runs were not made"
    tests = sum(len(record["tests"]) for record in records)
    if not tests:
        unread = sum(record["unread_lines"] for record in records)
        return "ERROR", f"no result of a test was read in {len(records)} runs; {unread} lines were not understood"
    summary = f"{len(records)} runs, {tests} results"
    unread = sum(record["unread_lines"] for record in records)
    hung = [record for record in records if record["outcome"] == "hung"]
    if hung:
        where = next((name for name, outcome, _ in reversed(hung[0]["tests"]) if outcome == "hung"), "")
        first = f"{hung[0]['id']} at {where}: {hung[0]['recovered']}"
        summary += f"; {len(hung)} hung, {first}; what comes after it was not tried"
    return "PASS", summary + (f"; {unread} lines of output were not understood and are kept" if unread else "")


_OPEN: tuple[Difference, ...] = ("regression", "failed", "missing", "flaky", "hung")
_SHOWN: tuple[Difference, ...] = ("same", "known", "fixed", "regression", "flaky", "hung", "skipped", "missing")
_ALONE: tuple[Difference, ...] = ("same", "failed", "flaky", "hung", "skipped", "missing")
_ABOUT = (
    "Each test of a program is a criterion. “Known” and “hung” are the same in both arms; a regression passed in the "
    "baseline and not in the candidate."
)


def show_programs(
    planned: Sequence[PlannedTurn], records: Sequence[Mapping[str, Any]], _document: Mapping[str, Any]
) -> Section:
    arms = {turn.arm for turn in planned}
    tests = list(compare_tests(planned, records))
    keys = list(dict.fromkeys((turn.bench, turn.point, turn.adapter) for turn in planned))
    kinds = _ALONE if len(arms) == 1 else _SHOWN
    rows, parts = [], []
    for key in keys:
        _, program, adapter = key
        here = [test for test in tests if (test.bench, test.program, test.adapter) == key]
        counted = Counter(test.kind for test in here)
        rows.append((program, adapter, str(len(here)), *(str(counted[kind]) for kind in kinds)))
        made = [record for record in records if (record["bench"], record["program"], record["adapter"]) == key]
        folded = tuple(_folded(program, adapter, kind, here) for kind in DIFFERENCES if counted[kind])
        parts.append(Part(f"{program} on {adapter}", _runs(program, adapter, made), folded=folded))
    words = ["passed" if kind == "same" and len(arms) == 1 else kind for kind in kinds]
    heads = ("Program", "Adapter", "Tests", *(word.capitalize() for word in words))
    counts = Part("", Table("Tests of programs by adapter", heads, tuple(rows)))
    figures = _figures(tests, len({adapter for _, _, adapter in keys}))
    check_ids = frozenset(test.check for test in tests)
    return Section("programs", "Third-party programs", (counts, *parts), _ABOUT, figures, check_ids)


def _figures(tests: Sequence[Compared], adapters: int) -> tuple[tuple[str, str, str], ...]:
    counted = Counter(test.kind for test in tests)
    bad = counted["regression"] + counted["failed"]
    beside = ", ".join(f"{name} {counted[name]}" for name in ("known", "hung", "flaky", "missing"))
    return (("Failed tests of programs", f"{bad} of {len(tests)}", f"on {plural(adapters, 'adapter')}; {beside}"),)


def _runs(program: str, adapter: str, records: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (
            *(str(record["id"]), str(record["outcome"]), f"{record['seconds']:.0f} s"),
            plural(len(record["tests"]), "test"),
            "; ".join(
                filter(None, (*record["reasons"], *record["problems"], str(record["recovered"]), *record["notes"]))
            ),
        )
        for record in records
    )
    return Table(f"Runs of {program} on {adapter}", ("Run", "Ended", "Took", "Read", "What happened"), rows)


def _folded(program: str, adapter: str, kind: Difference, tests: Sequence[Compared]) -> FoldedList:
    rows = tuple((test.name, test.reason) for test in tests if test.kind == kind)
    table = Table(f"{program} on {adapter}: {kind}", ("Test", "Result"), rows)
    return FoldedList(f"{_MEANINGS[kind]}: {len(rows)}", table, unfolded=kind in _OPEN)


def planned_programs(planned: Sequence[PlannedTurn], _document: Mapping[str, Any]) -> tuple[Part, ...]:
    counts = Counter((turn.point, turn.adapter, " ".join(turn.request["words"]), turn.arm) for turn in planned)
    most: dict[tuple[str, str, str], int] = {}
    for (*names, _), count in counts.items():
        key = (names[0], names[1], names[2])
        most[key] = max(count, most.get(key, 0))
    rows = tuple((program, adapter, words, str(count)) for (program, adapter, words), count in most.items())
    heads = ("Program", "Adapter", "Command", "Runs of each arm")
    return (Part("Third-party programs", Table("Programs that are run", heads, rows)),)


def tested_by_programs(records: Sequence[Mapping[str, Any]]) -> Part:
    """For a customer: the programs that ran on the candidate, and how their tests ended."""
    rows = []
    for record in records:
        if record["arm"] == "candidate":
            counted = Counter(outcome for _, outcome, _ in record["tests"])
            numbers = (str(counted[name]) for name in ("passed", "failed", "hung", "skipped"))
            rows.append((str(record["program"]), str(record["adapter"]), *numbers))
    heads = ("Program", "Adapter", "Passed", "Failed", "Hung", "Skipped")
    return Part("Third-party programs", Table("Tests of programs on the candidate", heads, tuple(rows)))


_LISTS = ("reasons", "tests", "problems", "notes")
_FIELDS = ("id", "program", "adapter", "arm", "outcome", "recovered", "bench")


def record_problems(record: Mapping[str, Any]) -> list[str]:
    """All that is wrong with the shape of a record."""
    texts = (name for name in _FIELDS if not isinstance(record.get(name), str))
    problems = [f"{name}: found {record.get(name)!r}, expected text" for name in texts]
    problems += [f"{name}: found no list" for name in _LISTS if not isinstance(record.get(name), list)]
    numbers = (name for name in ("n", "seconds", "unread_lines") if type(record.get(name)) not in (int, float))
    problems += [f"{name}: found {record.get(name)!r}, expected a number" for name in numbers]
    if not problems and any(not isinstance(test, list) or len(test) != 3 for test in record["tests"]):
        problems.append("tests: found no list of [name, outcome, text]")
    if not problems and record["outcome"] == "void" and not record["reasons"]:
        problems.append("reasons: found none, expected why it is void")
    return problems


PROGRAM = Kind(
    name="program",
    derive=derive_program,
    problems=record_problems,
    checks=program_checks,
    show=show_programs,
    plan=planned_programs,
    summary=tested_by_programs,
)
