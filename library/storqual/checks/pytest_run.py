# SPDX-License-Identifier: Apache-2.0
"""Start pytest in a process of its own: hand-written checks before the judge, the log after it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from storqual.base import child
from storqual.base.resources import suites_folder
from storqual.checks.own import planned_checks
from storqual.run import append_event, read_run
from storqual.run.files import read_lines
from storqual.run.layout import CHECKS
from storqual_core.kit.errors import StorqualError

_LIMIT_S = 1800
_CRASHED = (3, 4)
"""pytest's own statuses for an internal error and for wrong use; failing tests (1) and no tests (5) are answers."""


def run_checks(run: Path, suites: Sequence[Path] | None = None) -> int:
    """Run the hand-written tests of `suites` over `run`; the number of checks added.

    By default they are the project's own and those that the run was planned with. A test is one file: no conftest.py,
    no package and no settings of its folder are read. Outcomes go to checks.jsonl; failing tests are no error here.
    Raises StorqualError when pytest itself breaks.
    """
    before = sum(1 for _ in read_lines(run, CHECKS))
    if suites is None:
        files = {path.name: path.read_bytes() for path in sorted(suites_folder().glob("test_*.py"))}
        files |= planned_checks(read_run(run), ".py")
    else:
        files = {path.name: path.read_bytes() for path in suites}
    if files:
        _pytest(run, files, ["--storqual-run", str(run.resolve())], "hand-written checks")
    return sum(1 for _ in read_lines(run, CHECKS)) - before


def publish_log(run: Path) -> Path:
    """Write pytest.html and junit.xml of a judged run; returns the path of pytest.html.

    Raises StorqualError when pytest itself breaks; a failing verdict is none of its business.
    """
    page, junit = (run.resolve() / name for name in ("pytest.html", "junit.xml"))
    words = [f"--html={page}", "--self-contained-html", f"--junit-xml={junit}", "-o", "junit_suite_name=storqual"]
    _pytest(run, {"verdict.json": (run / "verdict.json").read_bytes()}, words, "log")
    return run / "pytest.html"


def _pytest(run: Path, files: Mapping[str, bytes], words: Sequence[str], what: str) -> None:
    """Run pytest on copies of `files` in a folder that holds nothing else, with the named plugins only.

    What else is installed must not change a gate, and what lies beside a file must not be executed.
    """
    plugins = ("pytest_timeout", "pytest_metadata.plugin", "pytest_html.plugin", "storqual.pytest_plugin")
    argv = child.python("-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", "--tb=short")
    for plugin in plugins:
        argv += ["-p", plugin]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    with child.empty_folder() as folder:
        for name, data in files.items():
            (folder / name).write_bytes(data)
        # the project's own pytest settings are for its own tests
        argv += ["--noconftest", "-c", os.devnull, f"--rootdir={folder}", "--import-mode=importlib", "--timeout=600"]
        ended = child.run(
            [*argv, *sorted(files), *words],
            env=environment,
            without=("PYTEST_ADDOPTS", "PYTEST_PLUGINS"),
            cwd=folder,
            timeout=_LIMIT_S,
            capture_output=True,
            text=True,
        )
    if ended.returncode in _CRASHED or ended.returncode < 0:
        said = (ended.stdout + ended.stderr).strip().splitlines()
        append_event(run, "note", {"text": f"pytest ({what}) ended with {ended.returncode}"})
        raise StorqualError(f"pytest ({what}) ended with {ended.returncode}: {said[-1] if said else 'no message'}")
