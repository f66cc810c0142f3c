# SPDX-License-Identifier: Apache-2.0
"""Many runs judged again by other rules: what newly fails or passes against the earlier verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from storqual.judge.verdict import judge_run
from storqual.run.files import DAMAGE, read_object
from storqual_core.kit.errors import StorqualError


@dataclass(frozen=True)
class Rules:
    """By what to judge; None: as each run was planned."""

    suite: Path | None = None
    gate: Path | None = None
    waivers: Path | None = None
    as_of: datetime | None = None


@dataclass(frozen=True)
class Rejudged:
    """A run before and now; empty where there is no outcome.

    `fails` are required criteria that fail now and did not before, `passes` those that failed before and do not now;
    an accepted failure is none. `problem` says why the run cannot be judged by these rules.

    `exit_code` is about the change: 1 something newly fails, 2 the run can no longer be judged, 0 neither. A run that
    had no verdict before has changed from nothing: its own exit code counts.
    """

    run: str
    candidate: str
    before: str
    now: str
    exit_code: int
    fails: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def rejudge(paths: Sequence[Path], rules: Rules) -> list[Rejudged]:
    """Judge each run; verdicts by other rules go to its `judgements/`. One that cannot be judged stops no other."""
    return [_rejudge(path, rules) for path in paths]


def _rejudge(path: Path, rules: Rules) -> Rejudged:
    before = _verdict(path)
    candidate = ""
    try:
        candidate = str(read_object(path, "run.json")["arms"]["candidate"]["drop"])
        now = judge_run(path, suite=rules.suite, gate=rules.gate, waivers=rules.waivers, as_of=rules.as_of)
    except StorqualError as problem:
        return Rejudged(path.name, candidate, str(before.get("outcome", "")), "", 2, problem=str(problem))
    except DAMAGE as problem:
        text = f"{path / 'run.json'}: found no plan ({problem!r})"
        return Rejudged(path.name, candidate, str(before.get("outcome", "")), "", 2, problem=text)
    failed_before, fail_now = _failures(before), _failures(now)
    fails = [f"{name}: {reason}" for name, reason in fail_now.items() if name not in failed_before]
    outcomes = {_name(entry): str(entry["outcome"]) for entry in now["criteria"]}
    passes = [f"{name}: {_instead(outcomes.get(name))}" for name in failed_before if name not in fail_now]
    if now["exit_code"] == 1 and before.get("exit_code") != 1 and not fails:
        # no criterion failed: the gate takes no marginal pass
        fails = [str(now["reason"])]
    return Rejudged(
        run=path.name,
        candidate=candidate,
        before=str(before.get("outcome", "")),
        now=str(now["outcome"]),
        exit_code=_changed(before.get("exit_code"), int(now["exit_code"]), fails=bool(fails)),
        fails=tuple(fails),
        passes=tuple(passes),
        problem=str(now["reason"]) if now["outcome"] == "ERROR" else "",
    )


def _failures(verdict: Mapping[str, Any]) -> dict[str, str]:
    """The required criteria that failed and that nobody accepted, with the reason of each."""
    return {
        _name(entry): str(entry.get("reason"))
        for entry in verdict.get("criteria") or ()
        if entry.get("outcome") == "FAIL" and entry.get("required") and not entry.get("waiver")
    }


def _instead(outcome: str | None) -> str:
    """What became of a criterion that failed before."""
    if outcome is None:
        return "no longer asked"
    return "accepted by a waiver, or no longer required" if outcome == "FAIL" else f"is {outcome} now"


def _changed(before: object, now: int, *, fails: bool) -> int:
    """The exit code of a change from one exit code to another."""
    if before is None:
        return now
    if fails:
        return 1
    return 2 if now == 2 and before != 2 else 0


def _name(entry: Mapping[str, Any]) -> str:
    return f"{entry.get('id')} at {entry.get('bench')}/{entry.get('adapter')}/{entry.get('point')}"


def _verdict(path: Path) -> Mapping[str, Any]:
    """The verdict that a run has; empty without one."""
    try:
        return read_object(path, "verdict.json")
    except (OSError, StorqualError):
        return {}
