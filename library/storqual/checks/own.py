# SPDX-License-Identifier: Apache-2.0
"""A user's own checks of a run: they run from where they are written, as long as they are those of the plan."""

from __future__ import annotations

from pathlib import Path

from storqual.run import Run, append_check, sha256_of
from storqual.run.layout import CHECK_INPUT


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
