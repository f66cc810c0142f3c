# SPDX-License-Identifier: Apache-2.0
"""Start pytest in a process of its own: hand-written checks before the judge, the log after it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

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

    By default they are the project's own and those that the run was planned with.

    Outcomes go to checks.jsonl; failing tests are no error here. Raises StorqualError when pytest itself breaks.
    """
    before = sum(1 for _ in read_lines(run, CHECKS))
    if suites is None:
        suites = [*sorted(suites_folder().glob("test_*.py")), *planned_checks(read_run(run), ".py")]
    files = list(suites)
    if files:
        _pytest(run, [*map(str, files), "--storqual-run", str(run)], "hand-written checks")
    return sum(1 for _ in read_lines(run, CHECKS)) - before


def publish_log(run: Path) -> Path:
    """Write pytest.html and junit.xml of a judged run; returns the path of pytest.html.

    Raises StorqualError when pytest itself breaks; a failing verdict is none of its business.
    """
    page = run / "pytest.html"
    words = [f"--html={page}", "--self-contained-html", f"--junit-xml={run / 'junit.xml'}"]
    _pytest(run, [str(run / "verdict.json"), *words, "-o", "junit_suite_name=storqual"], "log")
    return page


def _pytest(run: Path, words: Sequence[str], what: str) -> None:
    """Run pytest with the named plugins only: what else is installed must not change a gate."""
    plugins = ("pytest_timeout", "pytest_metadata.plugin", "pytest_html.plugin", "storqual.pytest_plugin")
    argv = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", "--tb=short"]
    for plugin in plugins:
        argv += ["-p", plugin]
    # the project's own pytest settings are for its own tests
    argv += ["-c", os.devnull, f"--rootdir={run}", "--import-mode=importlib", "--timeout=600", *words]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if ended.returncode in _CRASHED or ended.returncode < 0:
        said = (ended.stdout + ended.stderr).strip().splitlines()
        append_event(run, "note", {"text": f"pytest ({what}) ended with {ended.returncode}"})
        raise StorqualError(f"pytest ({what}) ended with {ended.returncode}: {said[-1] if said else 'no message'}")
