# SPDX-License-Identifier: Apache-2.0
"""A user's own checks: the files of them that a campaign is planned with, and when they may be executed.

A check is a program. Which ones a run may start is never read from the run, which may be a stranger's: this user, on
this machine, named them for it, when it was planned or resumed. That is recorded outside the run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from storqual.base.resources import suites_folder
from storqual.checks.collection import broken_checks
from storqual.inputs.shape import raise_all
from storqual.run import Run, append_check, append_event, read_run, sha256_of
from storqual.run.files import read_lines
from storqual.run.layout import CHECK_INPUT, EVENTS, INPUTS, write_bytes, write_json
from storqual.run.reopened import CORRECTED, corrected_checks, counted_checks, file_of
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
        if not (fnmatch(path.name, "test_*.py") or path.suffix == ".robot"):
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


CORRECT = "correct the file, then: storqual publish RUN --checks FILE"


def correct_checks(run: Run, files: Sequence[Path]) -> None:
    """Take these files in the place of those that the run was planned with, and allow them to be executed.

    A file that differs from the planned one is a correction: it is kept in the run beside it, and an event says so. A
    run that was closed is opened again for these files. Only a check that ended in an ERROR, or was not run yet, is
    corrected: one that has decided would be written to suit what was measured. Raises BadInputError for each file
    that cannot be taken.
    """
    present, problems = _planned(run), []
    closed, outcomes = run.periods[-1].closed is not None, counted_checks(run)
    data = {path: path.read_bytes() for path in files}
    again = {path: each for path, each in data.items() if closed or present.get(path.name) != sha256_of(each)}
    for path in files:
        of_file = [check for check in outcomes if file_of(check) == path.name]
        if path.name not in present:
            problems.append(f"{path}: the run {run.name} was not planned with a check of this name")
        elif path in again and of_file and all(check.outcome != "ERROR" for check in of_file):
            told = "a check that has decided is not exchanged after the measurement; plan a new campaign with it"
            problems.append(f"{path}: {told}")
    raise_all([*problems, *broken_checks(list(again))])
    if again:
        corrected = {}
        for path, each in again.items():
            digest = sha256_of(each)
            file = f"{INPUTS}/{digest}.{path.name}"
            write_bytes(run.path / file, each)
            corrected[path.name] = {"before": present[path.name], "sha256": digest, "file": file}
        append_event(run.path, CORRECTED, {"checks": corrected})
    allow_checks(read_run(run.path), files)


def to_run_again(run: Run) -> list[str] | None:
    """The files of checks for which a closed run was opened again; None where all checks are to be run."""
    opened = run.periods[-1].opened
    return None if opened is None or opened.kind != CORRECTED else list(opened.fields["checks"])


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


def planned_checks(run: Run, suffix: str, only: Collection[str] | None = None) -> dict[str, bytes]:
    """By name, the files with that suffix (`.py`, `.robot`) that the run was planned with, read once; `only` some.

    The run's own copies are evidence and never run: whoever hands on a run directory must not hand on programs. A
    file that this user did not name, that is gone, or that was changed since the plan, is an ERROR in checks.jsonl.
    """
    found: dict[str, bytes] = {}
    allowed = _allowed(run)
    for name, sha256 in _planned(run).items():
        if Path(name).suffix != suffix or (only is not None and name not in only):
            continue
        data = _read(run, name, sha256, allowed.get(name))
        if isinstance(data, bytes):
            found[name] = data
        else:
            source = "pytest" if suffix == ".py" else "robot"
            append_check(run.path, {"id": name, "outcome": "ERROR", "reason": data, "source": source})
    return found


def _read(run: Run, name: str, sha256: str, allowed: dict[str, str] | None) -> bytes | str:
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
        return (
            f"{path}: this check was changed after the plan; the run holds the planned one in inputs/; to run it as"
            f" it is now: storqual publish {run.path} --checks {path}"
        )
    return data


def _planned(run: Run) -> dict[str, str]:
    planned = {
        name.removeprefix(CHECK_INPUT): str(entry["sha256"])
        for name, entry in (run.document.get("inputs") or {}).items()
        if name.startswith(CHECK_INPUT)
    }
    return {**planned, **{name: digest for name, digest in corrected_checks(run).items() if name in planned}}


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
