# SPDX-License-Identifier: Apache-2.0
"""Many runs judged again by other rules: which drops of the past would now fail."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from storqual.judge.verdict import judge_run
from storqual_core.kit.errors import BadInputError, StorqualError


@dataclass(frozen=True)
class Rules:
    """By what to judge; None: as each run was planned."""

    suite: Path | None = None
    gate: Path | None = None
    waivers: Path | None = None
    as_of: datetime | None = None


@dataclass(frozen=True)
class Rejudged:
    """A run before and now; empty where there is no outcome. `turned` are criteria that fail now and did not before.

    `problem` says why it cannot be judged by these rules.
    """

    run: str
    candidate: str
    before: str
    now: str
    exit_code: int
    turned: tuple[str, ...] = ()
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


def is_folder_of_runs(path: Path) -> bool:
    """Whether a folder is no run directory itself and holds some."""
    return not (path / "run.json").is_file() and any(path.glob("[!.]*/run.json"))


def runs_below(paths: Iterable[Path]) -> list[Path]:
    """The run directories that are named, or that lie in the folders that are. Raises BadInputError for neither."""
    found: list[Path] = []
    problems = []
    for path in paths:
        below = sorted(file.parent for file in path.glob("[!.]*/run.json"))
        inside = [path] if (path / "run.json").is_file() else below
        found += inside
        if not inside:
            problems.append(f"{path}: found no run directory, expected one or a folder of them")
    if problems:
        raise BadInputError(problems)
    return list(dict.fromkeys(path.resolve() for path in found))


def rejudge(paths: Sequence[Path], rules: Rules) -> list[Rejudged]:
    """Judge each run; verdicts by other rules go to its `judgements/`. One that cannot be judged stops no other."""
    return [_rejudge(path, rules) for path in paths]


def _rejudge(path: Path, rules: Rules) -> Rejudged:
    before = _verdict(path)
    candidate = ""
    try:
        candidate = str(json.loads((path / "run.json").read_text(encoding="utf-8"))["arms"]["candidate"]["drop"])
        now = judge_run(path, suite=rules.suite, gate=rules.gate, waivers=rules.waivers, as_of=rules.as_of)
    except StorqualError as problem:
        return Rejudged(path.name, candidate, str(before.get("outcome", "")), "", 2, problem=str(problem))
    except (ValueError, KeyError, TypeError, OSError) as problem:
        text = f"{path / 'run.json'}: found no plan ({problem!r})"
        return Rejudged(path.name, candidate, str(before.get("outcome", "")), "", 2, problem=text)
    failed = {_name(one) for one in before.get("criteria") or () if one.get("outcome") == "FAIL"}
    turned = [
        one for one in now["criteria"] if one["outcome"] == "FAIL" and one["required"] and _name(one) not in failed
    ]
    return Rejudged(
        run=path.name,
        candidate=candidate,
        before=str(before.get("outcome", "")),
        now=str(now["outcome"]),
        exit_code=int(now["exit_code"]),
        turned=tuple(f"{_name(one)}: {one['reason']}" for one in turned),
    )


def _name(entry: Mapping[str, Any]) -> str:
    return f"{entry.get('id')} at {entry.get('bench')}/{entry.get('adapter')}/{entry.get('point')}"


def _verdict(path: Path) -> Mapping[str, Any]:
    """The verdict that a run has; empty without one."""
    try:
        verdict = json.loads((path / "verdict.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return verdict if isinstance(verdict, dict) else {}
