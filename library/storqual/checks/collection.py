# SPDX-License-Identifier: Apache-2.0
"""A user's checks before anything is measured: pytest collects them, Robot Framework runs them dry, in limits."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual.checks.collected import DONE, PROBLEMS

COLLECT_S = 60.0
"""What collecting may take in all: it imports what the files import, and reads no run."""
_MOST_BYTES = 256 << 20
PLUGINS = ("pytest_timeout", "pytest_metadata.plugin", "pytest_html.plugin", "storqual.pytest_plugin")
_NO_OPTIONS = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "ROBOT_OPTIONS", "REBOT_OPTIONS")
"""Options of whoever is logged in here must not change what is found."""


def run_in_folder(
    argv: Sequence[str], files: Mapping[str, bytes], *, limit_s: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a test program on copies of `files` in a folder that holds nothing else; `{folder}` in `argv` is that.

    What lies beside a file must not be executed, what it prints must not fill the disk. Raises TimeoutExpired.
    """
    settings = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
    with child.empty_folder() as folder:
        for name, data in files.items():
            (folder / name).write_bytes(data)
        return child.run(
            [word.replace("{folder}", str(folder)) for word in argv],
            env=settings,
            without=_NO_OPTIONS,
            cwd=folder,
            timeout=limit_s,
            capture_output=True,
            text=True,
            errors="replace",
            preexec_fn=_limit_files,  # no threads here yet
        )


def _limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_BYTES, _MOST_BYTES))


def pytest_argv(plugins: Sequence[str] = PLUGINS) -> list[str]:
    """Pytest with the named plugins only: what else is installed must not change a gate.

    The project's own pytest settings are for its own tests, no conftest.py and no package is read.
    """
    argv = child.python("-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", "--tb=short")
    for plugin in plugins:
        argv += ["-p", plugin]
    return [
        *argv,
        "--noconftest",
        "-c",
        os.devnull,
        "--rootdir={folder}",
        "--import-mode=importlib",
        "--timeout=600",
        "--continue-on-collection-errors",
    ]


def robot_argv() -> list[str]:
    """Robot Framework without anything on the terminal, and with a status that is no count of failed tests."""
    return child.python("-m", "robot", "--console", "none", "--name", "storqual", "--nostatusrc", "--runemptysuite")


_DRY = ("--dryrun", "--listener", "storqual.checks.collected.DryRun", "--output", "NONE", "--log", "NONE")
_SUBJECT = ("RUN:run", "INVENTORY:lab", "BENCH:bench")
"""What suites are about is not known yet; nothing is read from it in a dry run."""


def broken_checks(files: Sequence[Path], limit_s: float = COLLECT_S) -> list[str]:
    """Every problem of these checks, each with its file and line; empty where all of them can be run.

    What a file does when it is imported happens, in a process that is ended after `limit_s` seconds.
    """
    found = []
    for suffix in (".py", ".robot"):
        named = {path.name: path for path in files if path.suffix == suffix}
        data = {name: path.read_bytes() for name, path in named.items()}
        problems = _collected(suffix, data, limit_s)
        if problems is None:
            # one of them kept the others from being read: which one is seen where each is alone
            problems = [entry for name in data for entry in _alone(suffix, name, data[name], limit_s)]
        lines = (f"{named[entry['file']]}:{entry['line']}: {entry['text']}" for entry in problems)
        found += list(dict.fromkeys(lines))
    return found


def _alone(suffix: str, name: str, data: bytes, limit_s: float) -> list[dict[str, Any]]:
    """The problems of one file; that it does not let itself be read to the end is one."""
    problems = _collected(suffix, {name: data}, limit_s)
    if problems is not None:
        return problems
    program = "pytest" if suffix == ".py" else "Robot Framework"
    why = f"{program} cannot read it to its end within {limit_s:g} s: it loops, waits, or ends the program"
    return [{"file": name, "line": 1, "text": why}]


def _collected(suffix: str, files: Mapping[str, bytes], limit_s: float) -> list[dict[str, Any]] | None:
    """The problems of some files; None where they were not all read to the end."""
    if not files:
        return []
    if suffix == ".py":
        # a setup that is only planned looks up each fixture and executes none
        argv = [*pytest_argv((*PLUGINS, "storqual.checks.collected")), "--setup-plan", *sorted(files)]
    else:
        argv = [*robot_argv(), *_DRY, "--report", "NONE"]
        for variable in _SUBJECT:
            argv += ["--variable", variable]
        argv += [f"{{folder}}/{name}" for name in sorted(files)]
    with child.empty_folder() as folder:
        listed = folder / "problems.jsonl"
        try:
            run_in_folder(argv, files, limit_s=limit_s, env={PROBLEMS: str(listed)})
        except subprocess.TimeoutExpired:
            return None
        lines = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []
    entries = [json.loads(line) for line in lines]
    if DONE not in entries:
        return None
    return [entry for entry in entries if entry.get("file") in files and "text" in entry]
