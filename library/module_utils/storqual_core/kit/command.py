# SPDX-License-Identifier: Apache-2.0
"""Run one tool: C locale, no terminal to ask at, a time limit, both outputs kept apart."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Callable, Iterator, Mapping, Sequence, TypeVar

from .errors import MissingToolError, ToolError
from .machine import Machine, visible

VENDOR_FOLDERS = (
    *("/opt/MegaRAID/storcli", "/opt/MegaRAID/storcli2", "/opt/MegaRAID/perccli", "/opt/MegaRAID/perccli2"),
    *("/opt/QLogic_Corporation/QConvergeConsoleCLI", "/opt/smartstorageadmin/ssacli/bin"),
    *("/usr/sbin/ocmanager", "/usr/Arcconf"),
)
"""Where vendors' packages put their tools, which is on nobody's PATH."""


_ADMINISTRATION = ("/usr/sbin", "/sbin", *VENDOR_FOLDERS)
"""Asked for a tool after the caller's PATH: a login by SSH may lack the folders of administrators."""


def child_environment(more: Mapping[str, str] | None = None, *, folders: Sequence[str] = ()) -> dict[str, str]:
    """The environment of a child: this process' own with `more`, and PATH with `folders` behind it.

    Programs and Python modules are not looked for in the current folder, which may be one that a stranger filled:
    entries of PATH and PYTHONPATH that are empty or relative are left out.
    """
    environment = {**os.environ, **(more or {}), "PYTHONSAFEPATH": "1"}
    environment["PATH"] = os.pathsep.join([*_absolute(environment.get("PATH", os.defpath)), *folders])
    environment["PYTHONPATH"] = os.pathsep.join(_absolute(environment.get("PYTHONPATH", "")))
    if not environment["PYTHONPATH"]:
        del environment["PYTHONPATH"]
    return environment


def program_path() -> str:
    """Where `run` looks for programs: the caller's PATH, then the folders of administrators and of vendors."""
    return child_environment(folders=_ADMINISTRATION)["PATH"]


def _absolute(path: str) -> Iterator[str]:
    return (entry for entry in path.split(os.pathsep) if entry.startswith("/"))


@dataclass(frozen=True)
class Completed:
    """A tool that ended: what was asked, how it ended, what it said, how long it took (seconds)."""

    argv: tuple[str, ...]
    rc: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def line(self) -> str:
        """The command as a person would type it."""
        return " ".join(shlex.quote(word) for word in self.argv)

    def expect(self, *codes: int, what: str = "") -> Completed:
        """Return itself when the exit status is one of `codes` (0 by default), else raise ToolError, or `failure`."""
        if self.rc not in (codes or (0,)):
            words = f"`{self.line}` ended with status {self.rc}: {self.last_words()}"
            raise self.failure(what) if what else ToolError(words)
        return self

    def last_words(self, *, of: str = "stderr") -> str:
        """The last line of what it said, made visible: of `stderr` or `stdout` as `of` says, else of the other."""
        text = next(filter(None, map(str.strip, (getattr(self, of), self.stdout, self.stderr))), "no message")
        return visible(text.splitlines()[-1].strip())[:200]

    def failure(self, what: str, *, of: str = "stderr") -> ToolError:
        """The error that says `what` is not so, with the tool's last words, its status and the command."""
        return ToolError(f"{what}: {self.last_words(of=of)} (status {self.rc}); command: {self.line}")


Runner = Callable[..., Completed]
"""What `run` is: parsers and modules take it as an argument, so that tests can replay recordings."""


def run(
    argv: Sequence[str], *, timeout: float = 60.0, env: Mapping[str, str] | None = None, send: bytes = b""
) -> Completed:
    """Run `argv` with LC_ALL=C, only `send` on its standard input and a limit of `timeout` seconds.

    Raises MissingToolError when the tool is not installed, ToolError when it does not end in time. A non-zero exit
    status is no error here: the caller knows which statuses mean what (`Completed.expect`).
    """
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE if send else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=child_environment({**(env or {}), "LC_ALL": "C", "LANG": "C"}, folders=_ADMINISTRATION),
            start_new_session=True,
        )
    except FileNotFoundError as problem:
        raise MissingToolError(f"`{argv[0]}` is not installed on this machine") from problem
    with process:
        try:
            stdout, stderr = process.communicate(send or None, timeout=timeout)
        except BaseException as problem:
            # with all that it started: a script of a package that hangs would go on writing later
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(problem, subprocess.TimeoutExpired):
                raise
            raise ToolError("`{}` did not end within {:g} s".format(" ".join(argv), timeout)) from problem
    return Completed(
        argv=tuple(argv),
        rc=process.returncode,
        stdout=stdout.decode("utf-8", "replace"),
        stderr=stderr.decode("utf-8", "replace"),
        seconds=time.monotonic() - began,
    )


_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", *VENDOR_FOLDERS)


def find_program(machine: Machine, name: str) -> str:
    """Where a program is installed, `` when it is not; vendors' own folders are looked into as well."""
    return next((f"{folder}/{name}" for folder in _FOLDERS if machine.exists(f"{folder}/{name}")), "")


def run_first(runner: Runner, programs: Sequence[str], words: Sequence[str], *, timeout: float = 60.0) -> Completed:
    """Run the first of `programs` that is installed: one tool under several names.

    Raises MissingToolError that names them all when none is.
    """
    for program in programs:
        with suppress(MissingToolError):
            return runner([program, *words], timeout=timeout)
    raise MissingToolError(f"none of {', '.join(programs)} is installed on this machine")


_Answer = TypeVar("_Answer")


@dataclass
class ToolAnswers:
    """Asks one tool after the other; `unread` has a sentence on each that failed, and none on one that is missing."""

    unread: list[str] = field(default_factory=list)

    def ask(self, what: str, question: Callable[[], _Answer]) -> _Answer | None:
        try:
            return question()
        except MissingToolError:
            return None
        except ToolError as problem:
            self.unread.append(f"{what}: {problem}")
            return None
