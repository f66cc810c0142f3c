# SPDX-License-Identifier: Apache-2.0
"""A user's own checks: the files of them that a campaign is planned with, and when they may be executed.

A check is a program. Which ones a run may start is never read from the run, which may be a stranger's: this user, on
this machine, named them for it, when it was planned or resumed. That is recorded outside the run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from storqual.base.resources import suites_folder
from storqual.inputs.shape import raise_all
from storqual.run import Run, append_check, sha256_of
from storqual.run.files import read_lines
from storqual.run.layout import CHECK_INPUT, EVENTS, write_json
from storqual_core.kit.errors import BadInputError

_PATTERNS = ("test_*.py", "robot/*.robot")


def find_checks(named: Sequence[Path] = (), folder: Path | None = Path()) -> tuple[Path, ...]:
    """`suites/test_*.py` and `suites/robot/*.robot` below `folder`, and what is `named`: files, or folders of them.

    Those that come with the project are not among them: they run anyway. Raises BadInputError with every path that is
    no check, and for two files of one name, because a check is known by its file's name.
    """
    problems: list[str] = []
    found: dict[str, Path] = {}
    theirs = {path.resolve() for pattern in _PATTERNS for path in suites_folder().glob(pattern)}
    taken = {path.name: path for path in theirs}
    candidates = [*_below(folder / "suites")] if folder is not None else []
    for path in named:
        inside = [path] if path.is_file() else [*_below(path), *sorted(path.glob("*.robot"))]
        if not inside:
            problems.append(f"--checks {path}: no such file, or a folder without test_*.py and *.robot")
        candidates += inside
    for path in dict.fromkeys(one.resolve() for one in candidates):
        if path in theirs:
            continue
        other = taken.setdefault(path.name, path)
        if path.suffix not in (".py", ".robot"):
            problems.append(f"--checks {path}: a check is a file test_*.py (pytest) or *.robot (Robot Framework)")
        elif other != path:
            problems.append(f"{path}: {other} has the same file name, by which a check is known; rename one of them")
        else:
            found[path.name] = path
    if problems:
        raise BadInputError(problems)
    return tuple(found.values())


def _below(folder: Path) -> Iterator[Path]:
    for pattern in _PATTERNS:
        yield from sorted(folder.glob(pattern))


def allow_checks(run: Run, files: Sequence[Path]) -> None:
    """Record that this user means these files by the checks that the run was planned with.

    Raises BadInputError for each that is not one of them, StorqualError where the record cannot be written.
    """
    planned = _planned(run)
    problems, allowed = [], _allowed(run)
    for path in files:
        data = path.read_bytes()
        if planned.get(path.name) != sha256_of(data):
            problems.append(
                f"{path}: the run {run.name} was not planned with this file; its copy is in {run.path}/inputs"
            )
        allowed[path.name] = {"path": str(path.resolve()), "sha256": sha256_of(data)}
    if problems:
        raise BadInputError(problems)
    if files:
        write_json(_record(run), allowed)


def resume_checks(run: Run, named: Sequence[Path]) -> None:
    """The checks of a campaign that goes on: those of the plan that are `named` are allowed.

    Raises BadInputError when one would not be executed at the end: now, not after hours of measurements.
    """
    allow_checks(run, find_checks(named, None))
    raise_all(
        f"{run.path}: check {name} was planned by another user or on another machine; to execute your copy of it, add"
        " --checks FILE"
        for name in sorted(set(_planned(run)) - set(_allowed(run)))
    )


def planned_checks(run: Run, suffix: str) -> dict[str, bytes]:
    """By name, the files with that suffix (`.py`, `.robot`) that the run was planned with, read once.

    The run's own copies are evidence and never run: whoever hands on a run directory must not hand on programs. A
    file that this user did not name, that is gone, or that was changed since the plan, is an ERROR in checks.jsonl.
    """
    found: dict[str, bytes] = {}
    allowed = _allowed(run)
    for name, sha256 in _planned(run).items():
        if Path(name).suffix != suffix:
            continue
        data = _read(run, name, sha256, allowed.get(name))
        if isinstance(data, bytes):
            found[name] = data
        else:
            source = "pytest" if suffix == ".py" else "robot"
            append_check(run.path, {"id": name, "outcome": "ERROR", "reason": data, "source": source})
    return found


def _read(run: Run, name: str, sha256: str, allowed: dict[str, str] | None) -> bytes | str:
    """The file of a check, or why it is not executed."""
    if allowed is None:
        return (
            f"{name}: not executed, because this user did not plan this run on this machine; to execute your own copy"
            f" of it: storqual publish {run.path} --checks FILE, before the run is closed"
        )
    path = allowed["path"]
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        return f"{path}: this check was planned and cannot be read: {problem.strerror or problem}"
    if not sha256 == allowed["sha256"] == sha256_of(data):
        return f"{path}: this check was changed after the plan; the run holds the planned one in inputs/"
    return data


def _planned(run: Run) -> dict[str, str]:
    """The digests of the checks that the run was planned with, by the names of their files."""
    return {
        name.removeprefix(CHECK_INPUT): str(entry["sha256"])
        for name, entry in (run.document.get("inputs") or {}).items()
        if name.startswith(CHECK_INPUT)
    }


def _allowed(run: Run) -> dict[str, Any]:
    try:
        return dict(json.loads(_record(run).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _record(run: Run) -> Path:
    """Where this user's record about the run is: its name is the digest of the run's first event, the plan."""
    _, planned = next(read_lines(run.path, EVENTS), (0, b""))
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    state = given if given.is_absolute() else Path("~/.local/state").expanduser()
    return state / "storqual" / "checks" / f"{sha256_of(planned)}.json"
