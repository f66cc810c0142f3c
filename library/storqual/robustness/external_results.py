# SPDX-License-Identifier: Apache-2.0
"""Tests of foreign programs in both arms: passed in both, known, fixed, regression, flaky, hung, skipped, missing.

A difference counts at once where every repeat of an arm says the same; where repeats differ the exact comparison of
counts decides. What only one arm ran is told as missing and never passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from storqual.robustness.confidence import ALPHA, more_often
from storqual.robustness.external_runs import PlannedExternal
from storqual.run.records import TRIALS

Kind = Literal["same", "known", "fixed", "regression", "failed", "flaky", "hung", "skipped", "missing"]
KINDS: tuple[Kind, ...] = (
    "regression",
    "failed",
    "missing",
    "flaky",
    "hung",
    "fixed",
    "known",
    "skipped",
    "same",
)
"""In the order in which they matter; `failed` is of a run without a baseline."""
_PREFIX = "external."
_RUN = ("passed", "failed", "hung")
_MOST_NAME = 200


@dataclass(frozen=True)
class Compared:
    """One test on one adapter in both arms; `runs` are its outcomes in each arm, repeat by repeat."""

    program: str
    adapter: str
    name: str
    kind: Kind
    outcome: str
    reason: str
    runs: Mapping[str, tuple[str, ...]]


def compare_tests(planned: Sequence[PlannedExternal], records: Sequence[Mapping[str, Any]]) -> Iterator[Compared]:
    """Every test that any run of a program told of, in the order in which they were told."""
    for program, adapter in dict.fromkeys((one.program, one.adapter) for one in planned):
        here = [one for one in planned if (one.program, one.adapter) == (program, adapter)]
        arms = list(dict.fromkeys(one.arm for one in here))
        made = [record for record in records if (record["program"], record["adapter"]) == (program, adapter)]
        by_run = [
            (record["arm"], {name: outcome for name, outcome, _ in record["tests"]})
            for record in sorted(made, key=lambda one: int(one["number"]))
            if record["outcome"] != "void"
        ]
        for name in dict.fromkeys(name for _, tests in by_run for name in tests):
            runs = {arm: tuple(str(tests.get(name, "missing")) for of, tests in by_run if of == arm) for arm in arms}
            kind, outcome, reason = _of_one(runs["candidate"]) if len(arms) == 1 else _of_both(runs)
            yield Compared(program, adapter, name, kind, outcome, reason, runs)


def _state(runs: Sequence[str]) -> str:
    """What all repeats say: one outcome, `mixed` of those of a test that ran, or `missing` where some did not."""
    if not runs:
        return "missing"
    if len(set(runs)) == 1:
        return runs[0]
    return "mixed" if set(runs) <= set(_RUN) else "missing"


def _told(runs: Sequence[str]) -> str:
    """`passed`, or `passed 2, failed 1`; `not run` where it is not there."""
    counts = Counter(runs)
    if len(counts) <= 1 and len(runs) <= 1:
        return runs[0] if runs and runs[0] != "missing" else "not run"
    return ", ".join(f"{'not run' if name == 'missing' else name} {number}" for name, number in counts.items())


def _of_one(runs: Sequence[str]) -> tuple[Kind, str, str]:
    """Kind, outcome and reason of a test without a baseline."""
    state, told = _state(runs), _told(runs)
    if state == "passed":
        return "same", "PASS", told
    if state == "skipped":
        return "skipped", "SKIPPED", f"the program skipped it: {told}"
    if state == "missing":
        return "missing", "INCONCLUSIVE", told
    kind: Kind = "flaky" if state == "mixed" else "hung" if state == "hung" else "failed"
    return kind, "FAIL", told


def _of_both(runs: Mapping[str, Sequence[str]]) -> tuple[Kind, str, str]:
    """Kind, outcome and reason of a test of both arms."""
    base, cand = runs["baseline"], runs["candidate"]
    states = (_state(base), _state(cand))
    told = f"baseline: {_told(base)}; candidate: {_told(cand)}"
    if "missing" in states or ("skipped" in states and states != ("skipped", "skipped")):
        return "missing", "INCONCLUSIVE", f"not run in both arms alike: {told}"
    if states == ("skipped", "skipped"):
        return "skipped", "SKIPPED", f"the program skipped it: {told}"
    if states == ("passed", "passed"):
        return "same", "PASS", told
    if "mixed" in states:
        return _flaky(base, cand, told)
    if states[1] == "passed":
        return "fixed", "PASS", told
    if states[0] == "passed" or states == ("failed", "hung"):
        return "regression", "FAIL", f"regression: {told}"
    return "hung" if states == ("hung", "hung") else "known", "PASS", f"known, the baseline does so too: {told}"


def _flaky(base: Sequence[str], cand: Sequence[str], told: str) -> tuple[Kind, str, str]:
    """A test whose repeats differ: how often it did not pass, compared exactly."""
    bad, others = (sum(one != "passed" for one in runs) for runs in (cand, base))
    p = float(more_often((bad, len(cand)), (others, len(base))))
    told = f"{told}, p = {p:.3g}"
    if p <= ALPHA:
        return "regression", "FAIL", f"regression: {told}"
    if bad and not others:
        return "flaky", "INCONCLUSIVE", f"flaky, too few repeats to tell a regression: {told}"
    return "flaky", "PASS", f"flaky: {told}"


def external_checks(
    planned: Sequence[PlannedExternal], records: Sequence[Mapping[str, Any]], *, bench: str
) -> Iterator[dict[str, Any]]:
    """The checks of a run: one for each program on each adapter, one for each of its tests."""
    for program, adapter in dict.fromkeys((one.program, one.adapter) for one in planned):
        outcome, reason = _of_program(
            [one for one in planned if (one.program, one.adapter) == (program, adapter)],
            [one for one in records if (one["program"], one["adapter"]) == (program, adapter)],
        )
        yield _check(f"{_PREFIX}{program}", bench, adapter, outcome, reason)
    for test in compare_tests(planned, records):
        ident = f"{_PREFIX}{test.program}/{test.name}"[:_MOST_NAME]
        yield _check(ident, bench, test.adapter, test.outcome, test.reason)


def is_test_of_program(check: str) -> bool:
    """Whether a check's id is that of one test of a program, not of the program as a whole."""
    return check.startswith(_PREFIX) and "/" in check


def _check(ident: str, bench: str, adapter: str, outcome: str, reason: str) -> dict[str, Any]:
    where = {"bench": bench, "adapter": adapter}
    return {"id": ident, **where, "outcome": outcome, "reason": reason, "source": TRIALS}


def _of_program(planned: Sequence[PlannedExternal], records: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Whether what a program printed can be believed: it was run as planned and its counts agree with its tests."""
    void = [record for record in records if record["outcome"] == "void"]
    if void:
        return "ERROR", f"{void[0]['id']}: {void[0]['reasons'][0]}"
    wrong = [record for record in records if record["problems"]]
    if wrong:
        return "ERROR", f"{wrong[0]['id']}: what it printed contradicts itself: {wrong[0]['problems'][0]}"
    left = len({one.id for one in planned} - {record["id"] for record in records})
    if left:
        return "INCONCLUSIVE", f"{left} of {len(planned)} runs were not made"
    tests = sum(len(record["tests"]) for record in records)
    if not tests:
        unread = sum(record["unread_lines"] for record in records)
        return "ERROR", f"no result of a test was read in {len(records)} runs; {unread} lines were not understood"
    told = f"{len(records)} runs, {tests} results"
    unread = sum(record["unread_lines"] for record in records)
    hung = [record for record in records if record["outcome"] == "hung"]
    if hung:
        where = next((name for name, outcome, _ in reversed(hung[0]["tests"]) if outcome == "hung"), "")
        first = f"{hung[0]['id']} at {where}: {hung[0]['recovered']}"
        told += f"; {len(hung)} hung, {first}; what comes after it was not tried"
    return "PASS", told + (f"; {unread} lines of output were not understood and are kept" if unread else "")
