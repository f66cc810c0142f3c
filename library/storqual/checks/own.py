# SPDX-License-Identifier: Apache-2.0
"""A user's own checks: the files of them that a campaign is planned with.

They run from where they are written, as long as they are those of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from storqual.base.resources import suites_folder
from storqual.run import Run, append_check, sha256_of
from storqual.run.layout import CHECK_INPUT
from storqual_core.kit.errors import BadInputError

_PATTERNS = ("test_*.py", "robot/*.robot")


def find_checks(named: Sequence[Path] = (), folder: Path = Path()) -> tuple[Path, ...]:
    """`suites/test_*.py` and `suites/robot/*.robot` below `folder`, and what is `named`: files, or folders of them.

    Those that come with the project are not among them: they run anyway. Raises BadInputError with every path that is
    no check, and for two files of one name, because a check is known by its file's name.
    """
    problems: list[str] = []
    found: dict[str, Path] = {}
    theirs = {path.resolve() for pattern in _PATTERNS for path in suites_folder().glob(pattern)}
    taken = {path.name: path for path in theirs}
    candidates = [*_below(folder / "suites")]
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


def planned_checks(run: Run, suffix: str) -> list[Path]:
    """The files with that suffix (`.py`, `.robot`) that the run was planned with.

    The run's own copies are evidence and never run: whoever hands on a run directory must not hand on programs. A
    file that is gone, or that was changed since the plan, is an ERROR in checks.jsonl.
    """
    found = []
    for name, entry in (run.document.get("inputs") or {}).items():
        path = Path(str(entry["source"]))
        if not name.startswith(CHECK_INPUT) or path.suffix != suffix:
            continue
        problem = _problem(path, str(entry["sha256"]))
        if problem:
            source = "pytest" if suffix == ".py" else "robot"
            append_check(run.path, {"id": path.name, "outcome": "ERROR", "reason": problem, "source": source})
        else:
            found.append(path)
    return found


def _problem(path: Path, sha256: str) -> str:
    try:
        data = path.read_bytes()
    except OSError as problem:
        return f"{path}: this check was planned and cannot be read: {problem.strerror or problem}"
    if sha256_of(data) != sha256:
        return f"{path}: this check was changed after the plan; the run holds the planned one in inputs/"
    return ""
