# SPDX-License-Identifier: Apache-2.0
"""A user's own checks: the files of them that a campaign is planned with, and when they may be executed.

A check is a program. Which ones a run may start is never read from the run, which may be a stranger's: this user, on
this machine, named them for it, when it was planned or resumed (`plan_record`).
"""

import json
import os
import resource
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual.base.files import suites_folder
from storqual.checks.collected import DONE, PROBLEMS
from storqual.checks.plan_record import keep_record, recorded
from storqual.inputs.shape import raise_all
from storqual.run import Run, append_check, append_event, read_run, sha256_of
from storqual.run.layout import CHECK_INPUT, INPUTS, write_bytes
from storqual.run.reopened import CORRECTED, corrected_checks, counted_checks, file_of
from storqual_core.kit.errors import BadInputError, StorqualError

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
    sentences = []
    for suffix in (".py", ".robot"):
        named = {path.name: path for path in files if path.suffix == suffix}
        data = {name: path.read_bytes() for name, path in named.items()}
        problems = _collected(suffix, data, limit_s)
        if problems is None:
            # one of them kept the others from being read: which one is seen where each is alone
            problems = [entry for name in data for entry in _alone(suffix, name, data[name], limit_s)]
        lines = (f"{named[entry['file']]}:{entry['line']}: {entry['text']}" for entry in problems)
        sentences += list(dict.fromkeys(lines))
    return sentences


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
        report = folder / "problems.jsonl"
        try:
            run_in_folder(argv, files, limit_s=limit_s, env={PROBLEMS: str(report)})
        except subprocess.TimeoutExpired:
            return None
        lines = report.read_text(encoding="utf-8").splitlines() if report.is_file() else []
    entries = [json.loads(line) for line in lines]
    if DONE not in entries:
        return None
    return [entry for entry in entries if entry.get("file") in files and "text" in entry]


_PATTERNS = ("test_*.py", "robot/*.robot")


def find_checks(named: Sequence[Path] = (), folder: Path | None = Path()) -> tuple[Path, ...]:
    """`suites/test_*.py` and `suites/robot/*.robot` below `folder`, and what is `named`: files, or folders of them.

    Those that come with the project are not among them: they run anyway. Raises BadInputError with every path that is
    no check, and for two files of one name, because a check is known by its file's name.
    """
    problems: list[str] = []
    checks: dict[str, Path] = {}
    shipped = {path.resolve() for pattern in _PATTERNS for path in suites_folder().glob(pattern)}
    by_name = {path.name: path for path in shipped}
    candidates = [*_below(folder / "suites")] if folder is not None else []
    for path in named:
        inside = [path] if path.is_file() else [*_below(path), *sorted(path.glob("*.robot"))]
        if not inside:
            problems.append(f"--checks {path}: no such file, or a folder without test_*.py and *.robot")
        candidates += inside
    for path in dict.fromkeys(candidate.resolve() for candidate in candidates):
        if path in shipped:
            continue
        other = by_name.setdefault(path.name, path)
        if not (fnmatch(path.name, "test_*.py") or path.suffix == ".robot"):
            problems.append(f"--checks {path}: a check is a file test_*.py (pytest) or *.robot (Robot Framework)")
        elif other != path:
            problems.append(f"{path}: {other} has the same file name, by which a check is known; rename one of them")
        else:
            checks[path.name] = path
    if problems:
        raise BadInputError(problems)
    return tuple(checks.values())


def _below(folder: Path) -> Iterator[Path]:
    for pattern in _PATTERNS:
        yield from sorted(folder.glob(pattern))


def allow_checks(
    run: Run, files: Sequence[Path], inventories: Sequence[str] = (), witnesses: Iterable[str] = ()
) -> None:
    """Record that this user means these files by the checks that the run was planned with, from these `inventories`.

    `witnesses` are the places that this user lets be told of the run.

    Raises BadInputError for each that is not one of them, StorqualError where the record cannot be written.
    """
    planned = _planned(run)
    problems, allowed = [], recorded(run, "checks")
    for path in files:
        data = path.read_bytes()
        if planned.get(path.name) != sha256_of(data):
            problems.append(
                f"{path}: the run {run.name} was not planned with this file; its copy is in {run.path}/inputs"
            )
        allowed[path.name] = {"path": str(path.resolve()), "sha256": sha256_of(data)}
    if problems:
        raise BadInputError(problems)
    sources = {name: name if "," in name else str(Path(name).absolute()) for name in inventories}
    addresses = {address: address for address in witnesses}
    if files or sources or addresses:
        # without checks the record only spares whoever resumes or publishes the run some options
        with suppress(*([] if files else [StorqualError])):
            keep_record(run, allowed, sources, addresses)


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
    again = {path: text for path, text in data.items() if closed or present.get(path.name) != sha256_of(text)}
    for path in files:
        of_file = [check for check in outcomes if file_of(check) == path.name]
        if path.name not in present:
            problems.append(f"{path}: the run {run.name} was not planned with a check of this name")
        elif path in again and of_file and all(check.outcome != "ERROR" for check in of_file):
            reason = "a check that has decided is not exchanged after the measurement; plan a new campaign with it"
            problems.append(f"{path}: {reason}")
    raise_all([*problems, *broken_checks(list(again))])
    if again:
        corrected = {}
        for path, content in again.items():
            digest = sha256_of(content)
            file = f"{INPUTS}/{digest}.{path.name}"
            write_bytes(run.path / file, content)
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
        for name in sorted(set(_planned(run)) - set(recorded(run, "checks")))
    )


def planned_checks(run: Run, suffix: str, only: Collection[str] | None = None) -> dict[str, bytes]:
    """By name, the files with that suffix (`.py`, `.robot`) that the run was planned with, read once; `only` some.

    The run's own copies are evidence and never run: whoever hands on a run directory must not hand on programs. A
    file that this user did not name, that is gone, or that was changed since the plan, is an ERROR in checks.jsonl.
    """
    checks: dict[str, bytes] = {}
    allowed = recorded(run, "checks")
    for name, sha256 in _planned(run).items():
        if Path(name).suffix != suffix or (only is not None and name not in only):
            continue
        data = _read(run, name, sha256, allowed.get(name))
        if isinstance(data, bytes):
            checks[name] = data
        else:
            source = "pytest" if suffix == ".py" else "robot"
            append_check(run.path, {"id": name, "outcome": "ERROR", "reason": data, "source": source})
    return checks


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
