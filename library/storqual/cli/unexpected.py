# SPDX-License-Identifier: Apache-2.0
"""What nobody foresaw: one sentence and a report file, no traceback; and readers of a pipe that went away."""

from __future__ import annotations

import io
import os
import platform
import stat
import sys
import tempfile
import traceback
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TextIO

from storqual import __version__

_SAID = 300


def tell_unexpected(problem: BaseException, arguments: Sequence[str]) -> str:
    """One sentence about an error that nobody foresaw; what a maintainer needs lies in the file that it names.

    The file has the command and the traceback, not the arguments: there may be secrets in them.
    """
    command = next((word for word in arguments if not word.startswith("-")), "storqual")
    report = "\n".join(
        [
            f"storqual {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: {command}",
            "".join(traceback.format_exception(problem)),
        ]
    )
    first_line = (str(problem).strip().splitlines() or [""])[0][:_SAID]
    what = f"{type(problem).__name__}: {first_line}" if first_line else type(problem).__name__
    if isinstance(problem, OSError):
        place = f"{problem.filename}: " if problem.filename else ""
        what = f"{place}{problem.strerror or first_line}"
    for folder in _folders(arguments):
        try:
            handle, name = tempfile.mkstemp(dir=folder, prefix="storqual-error-", suffix=".txt")
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(report)
        except OSError:
            continue
        return f"nothing was judged: {what}; details for a maintainer are in {name}"
    return f"nothing was judged: {what}; a report could not be written"


def full_disk(problem: BaseException) -> str:
    """The sentence for a disk without space, which is no fault of the code; empty for any other problem."""
    from storqual.run.layout import NoSpaceError, is_full

    if not is_full(problem) or not isinstance(problem, OSError):
        return ""
    return str(NoSpaceError(str(problem.filename or "a file")))


def _folders(arguments: Sequence[str]) -> list[Path]:
    """Where the report may lie, best first: the folder of runs, as it was named or as it is by default, then /tmp."""
    named = [after for word, after in pairwise(arguments) if word == "--runs"]
    named += [word.partition("=")[2] for word in arguments if word.startswith("--runs=")]
    return [folder for folder in (*map(Path, named), Path("runs"), Path(tempfile.gettempdir())) if folder.is_dir()]


class _Outlet(io.FileIO):
    """A pipe whose reader may go away: what is written then goes nowhere, and nothing is wrong with the verdict."""

    def write(self, data: object, /) -> int:
        """As any file; all of it counts as written when nobody reads."""
        try:
            return super().write(data) or 0  # type: ignore[arg-type]
        except BrokenPipeError:
            return memoryview(data).nbytes  # type: ignore[arg-type]


def outlive_readers() -> None:
    """Go on to the end, and to the verdict's exit code, when nobody reads standard output or error any more."""
    sys.stdout = _lasting(sys.stdout, sys.__stdout__)
    sys.stderr = _lasting(sys.stderr, sys.__stderr__)


def _lasting(stream: TextIO, own: TextIO | None) -> TextIO:
    """The stream, when it is this process' own pipe or socket one that outlives its reader."""
    if own is None or stream is not own or not isinstance(stream, io.TextIOWrapper):
        return stream
    mode = os.fstat(stream.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return stream
    outlet = io.BufferedWriter(_Outlet(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(
        outlet, encoding=stream.encoding, errors=stream.errors, line_buffering=stream.line_buffering
    )
