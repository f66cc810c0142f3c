# SPDX-License-Identifier: Apache-2.0
"""What nobody foresaw: one sentence and a report file, no traceback."""

import os
import platform
import tempfile
import traceback
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from storqual import __version__

_SAID = 300


def tell_unexpected(problem: BaseException, command: str, arguments: Sequence[str]) -> str:
    """One sentence about an error that nobody foresaw; what a maintainer needs lies in the file that it names.

    The file has the command and the traceback, not the arguments: there may be secrets in them.
    """
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
        return f"{command} stopped by an unexpected error: {what}; details for a maintainer are in {name}"
    return f"{command} stopped by an unexpected error: {what}; a report could not be written"


def refusal_of_machine(problem: BaseException) -> str:
    """The sentence for what this machine does not permit, which is no fault of the code; empty for other problems."""
    from storqual.run.layout import machine_error

    refused = machine_error(problem, str(getattr(problem, "filename", None) or "a file"))
    return "" if refused is None else str(refused)


def _folders(arguments: Sequence[str]) -> list[Path]:
    """Where the report may lie, best first: the folder of runs, as it was named or as it is by default, then /tmp."""
    named = [after for word, after in pairwise(arguments) if word == "--runs"]
    named += [word.partition("=")[2] for word in arguments if word.startswith("--runs=")]
    return [folder for folder in (*map(Path, named), Path("runs"), Path(tempfile.gettempdir())) if folder.is_dir()]
