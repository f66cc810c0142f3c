# SPDX-License-Identifier: Apache-2.0
"""The one place where the control node starts other processes: none of them imports from the current folder.

Python puts the current folder in front of its own library for `-m`, for `-c`, and for an empty entry of PYTHONPATH.
A command that is started inside a run directory would so execute the run's own module `random`.
"""

import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from storqual_core.kit.command import child_environment

DEVNULL = subprocess.DEVNULL
_P = ParamSpec("_P")
_T = TypeVar("_T")
_MEANT_FOR_PYTHON = ("PYTHONSAFEPATH", "PYTHONPATH")


def python(*words: str) -> list[str]:
    """The command line of this interpreter that never imports from the current folder."""
    return [sys.executable, "-P", *words]


def storqual(*words: str) -> list[str]:
    """The command line of a storqual command; it may run in the current folder, to which its paths are relative."""
    return python("-m", "storqual", *words)


@contextmanager
def empty_folder() -> Iterator[Path]:
    """A new folder for a child that imports, reads and finds only what it is given; removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="storqual-", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


def start(argv: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401 - Popen's own
    """`subprocess.Popen` with an environment in which nothing is relative; `env` is added to it. Raises OSError."""
    return subprocess.Popen(list(argv), env=child_environment(env), **options)


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    without: Sequence[str] = (),
    input: str | bytes | None = None,  # noqa: A002 - its name in `subprocess.run`
    timeout: float | None = None,
    **options: Any,  # noqa: ANN401 - Popen's own
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` likewise: standard input is empty, the status is the caller's to judge.

    `without` are variables that it does not inherit. Raises OSError and subprocess.TimeoutExpired.
    """
    environment = {name: value for name, value in child_environment(env).items() if name not in without}
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
    return subprocess.run(list(argv), env=environment, timeout=timeout, check=False, **given, **options)


def ticks_of_start(pid: int) -> int | None:
    """When process `pid` began, in clock ticks since boot: tells it from a later process of the same number."""
    try:
        after_name = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return None
    return None if after_name[0] in {"Z", "X"} else int(after_name[19])


def is_running(pid: int, start_ticks: int) -> bool:
    return ticks_of_start(pid) == start_ticks


def await_end(pid: int, start_ticks: int, limit_s: float) -> bool:
    """Wait for a process to end, without polling; False when it has not after `limit_s`."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return not is_running(pid, start_ticks) or bool(select.select([handle], [], [], limit_s)[0])
    finally:
        os.close(handle)


class Workers(ProcessPoolExecutor):
    """A pool of processes that begin anew (nothing is forked, numpy may have threads).

    `multiprocessing` starts each of them as `python -c` with this process' environment: a tracker of its own together
    with the pool, and a worker whenever work is handed in.
    """

    def __init__(self, initializer: Callable[[], object]) -> None:
        with _safe_environment():
            super().__init__(os.cpu_count() or 1, mp_context=get_context("spawn"), initializer=initializer)

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        with _safe_environment():
            return super().submit(fn, *args, **kwargs)


@contextmanager
def _safe_environment() -> Iterator[None]:
    """What is started meanwhile finds no module in the current folder."""
    former = {name: os.environ.get(name) for name in _MEANT_FOR_PYTHON}
    safe = child_environment()
    try:
        _set({name: safe.get(name) for name in _MEANT_FOR_PYTHON})
        yield
    finally:
        _set(former)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
