# SPDX-License-Identifier: Apache-2.0
"""May this run be signed? The verdict is made again from the files, so that an edited one is not signed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storqual.inputs import WAIVERS, load_waivers
from storqual.judge.entry import Entry
from storqual.judge.outcome import apply_waivers
from storqual.judge.verdict import verdict_of, write_verdict
from storqual.run import Run, sha256_of
from storqual.run.files import parse_line, read_bytes, read_object
from storqual_core.kit.errors import BadInputError, StorqualError

_TOLERANCE = 1e-6
"""Relative: another build of numpy may round the last digits otherwise."""

_WORDS = ("id", "bench", "adapter", "point", "metric", "against", "required", "outcome")
_NUMBERS = ("candidate", "reference", "shift_percent", "margin_percent")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict that may be signed, and the file in the run directory that says it."""

    verdict: Mapping[str, Any]
    path: str
    sha256: str


def acceptable_judgement(run: Run, waivers: Path | None, now: datetime) -> Judgement:
    """The verdict to sign: `verdict.json` when it passes, else one that `waivers` make pass, written to judgements/.

    Raises BadInputError with every reason against signing: not judged, edited, not passing as of `now`, a failure
    that no waiver covers, a waiver that is wider than what failed.
    """
    problems = run.verify_inputs()
    if problems:
        raise BadInputError(problems)
    file = run.path / "verdict.json"
    stored = _stored(run, file)
    own = file.with_name(WAIVERS) if "waivers" in (stored.get("inputs") or {}) else None
    judged_at = datetime.fromisoformat(str(stored["as_of"]))
    again = _judged(run, own, judged_at)
    problems = [f"{file}: {difference}" for difference in _differences(stored, again)]
    if problems:
        raise BadInputError([*problems, f"{file}: judge it again: storqual publish {run.path}"])
    # midnight, so that everybody who signs on one day signs one judgement
    today = datetime.combine(now.date(), datetime.min.time(), tzinfo=UTC)
    # waivers and baselines age by the day: what was judged today need not be judged a third time
    current = again if again["exit_code"] or judged_at.date() == today.date() else _judged(run, own, today)
    if current["exit_code"] == 1 and waivers is not None:
        accepted = _judged(run, waivers, today)
        _refuse(run, accepted, waivers, today)
        return _of_file(run, write_verdict(run.path, accepted, other_rules=True, waivers=waivers))
    _refuse(run, current, own, today)
    return _of_file(run, file)


def _stored(run: Run, file: Path) -> dict[str, Any]:
    try:
        verdict = read_object(run.path, file.name)
        complete = {"outcome", "exit_code"} <= verdict.keys() and all(entry.keys() for entry in verdict["criteria"])
        datetime.fromisoformat(verdict["as_of"])
    except FileNotFoundError:
        remedy = f"judge it first: storqual publish {run.path}"
        raise BadInputError([f"{file}: this run has no verdict; {remedy}"]) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        complete = False
    if not complete:
        raise BadInputError([f"{file}: this file holds no verdict of `storqual judge`"])
    return dict(verdict)


def _judged(run: Run, waivers: Path | None, as_of: datetime) -> dict[str, Any]:
    try:
        return verdict_of(run.path, waivers=waivers, as_of=as_of)
    except BadInputError:
        raise
    except StorqualError as problem:
        raise BadInputError([f"{run.path}: cannot be judged: {line}" for line in str(problem).splitlines()]) from None


def _refuse(run: Run, verdict: Mapping[str, Any], waivers: Path | None, today: datetime) -> None:
    """Raise BadInputError when this verdict does not pass, or passes by a waiver that accepts more than failed."""
    problems = []
    if verdict["exit_code"] != 0:
        problems.append(_why_not(run, verdict, verdict["exit_code"]))
        problems += [f"{run.name}: {warning}" for warning in verdict["warnings"] if warning.startswith("waiver ")]
    if waivers is not None:
        bare = [Entry(**{**entry, "waiver": None}) for entry in verdict["criteria"]]
        doubts = apply_waivers(
            bare,
            load_waivers(waivers),
            drop=run.arms["candidate"].drop,
            suite=run.suite.name,
            today=today.date(),
        )
        problems += [f"{waivers}: {doubt.text}; narrow it to them" for doubt in doubts if doubt.kind == "wide"]
    if problems:
        raise BadInputError(problems)


def _why_not(run: Run, verdict: Mapping[str, Any], code: int) -> str:
    reason = f"{run.name}: the outcome is {verdict['outcome']} ({verdict.get('reason') or 'no reason was recorded'})"
    if code == 1:
        return f"{reason}; give waivers that cover every failure (--waivers)"
    return f"{reason}; a run that could not be judged can be neither signed nor waived; repeat or resume it"


def _of_file(run: Run, path: Path) -> Judgement:
    name = path.relative_to(run.path).as_posix()
    data = read_bytes(run.path, name)
    return Judgement(parse_line(data, name), name, sha256_of(data))


def _differences(stored: Mapping[str, Any], again: Mapping[str, Any]) -> list[str]:
    """Where the stored verdict says something else than its files; the first of many criteria."""
    found = [
        f"found {name} {stored.get(name)!r}, the files say {again[name]!r}"
        for name in ("run", "outcome", "exit_code", "inputs", "coverage", "sectors_written_outside_claims")
        if stored.get(name) != again[name]
    ]
    before, after = stored["criteria"], again["criteria"]
    if len(before) != len(after):
        return [*found, f"found {len(before)} criteria, the files give {len(after)}"]
    for one, other in zip(before, after, strict=True):
        wrong = _criterion_difference(one, other)
        if wrong:
            return [*found, wrong]
    return found


def _criterion_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    name = f"{other['id']} at {other['adapter']}/{other['point']}"
    for field in _WORDS:
        if one.get(field) != other[field]:
            return f"found {field} {one.get(field)!r} in {name}, the files say {other[field]!r}"
    for field in (*_NUMBERS, "ci95_percent"):
        if not _close(one.get(field), other[field]):
            return f"found {field} {one.get(field)!r} in {name}, the files say {other[field]!r}"
    if bool(one.get("waiver")) != bool(other["waiver"]):
        return f"found {'a' if one.get('waiver') else 'no'} waiver in {name}, the files say otherwise"
    return ""


def _close(one: object, other: object) -> bool:
    if isinstance(other, Sequence) and not isinstance(other, str):
        return (
            isinstance(one, Sequence)
            and len(one) == len(other)
            and all(_close(left, right) for left, right in zip(one, other, strict=True))
        )
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=1e-4)
    return one is None and other is None
