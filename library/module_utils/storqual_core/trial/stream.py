# SPDX-License-Identifier: Apache-2.0
"""The stream of a trial: lines of JSON in a file that the control node follows while they are written.

The file lies in memory (`/run`): what a bench knew when its power went is known by what had been sent off it, never
by what it finds again. I/Os are told in batches, or telling would cost more than doing them.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Protocol, TypeVar

from ..kit.errors import BadInputError, StorqualError

FOLDER = Path("/run/storqual/trials")
BATCH_S = 0.1


class AskedFile(Protocol):
    """What a file asks a bench for."""

    @property
    def stream(self) -> Path:
        """Where its lines go."""


Asked = TypeVar("Asked", bound=AskedFile)


class Stream:
    """Writes lines; each call is one whole line in the file when it returns. Safe from several threads.

    `told` counts the I/Os, so that who follows the stream knows that none is missing.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._lock = threading.Lock()
        self._ios: list[list[Any]] = []
        self.told = 0
        self._batch = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._batches, daemon=True, name="stream")
        self._thread.start()

    def line(self, kind: str, **fields: Any) -> None:  # noqa: ANN401 - whatever JSON holds
        """Tell something now; `at` is the monotonic clock in nanoseconds."""
        body = {"kind": kind, "at": time.monotonic_ns(), **fields}
        data = json.dumps(body, separators=(",", ":")).encode("ascii") + b"\n"
        with self._lock:
            os.write(self._file, data)

    def tell(self, kind: str, sequence: int, sector: int, length: int, begin: int, end: int, problem: int) -> None:
        """Tell a finished I/O with the next batch."""
        with self._batch:
            self.told += 1
            self._ios.append([kind, sequence, sector, length, begin, end, problem])

    def _batches(self) -> None:
        while not self._stop.wait(BATCH_S):
            self.send()

    def send(self) -> None:
        """Write the batch that is waiting."""
        with self._batch:
            batch, self._ios = self._ios, []
        if batch:
            self.line("io", ios=batch)

    def close(self) -> None:
        """Write what is left, end."""
        self._stop.set()
        self._thread.join()
        self.send()
        os.close(self._file)


def run_file(argv: list[str] | None, read: Callable[[Path], Asked], run: Callable[[Asked, Stream], None]) -> int:
    """Run what the file that is named on the command line asks for; the exit status.

    The last line of the stream is `end`, with the exit status, why it is not 0, and how many I/Os were told.
    """
    words = sys.argv[1:] if argv is None else argv
    if len(words) != 1:
        sys.stderr.write("usage: main FILE.json\n")
        return 3
    try:
        asked = read(Path(words[0]))
    except BadInputError as problem:
        sys.stderr.write(f"{problem}\n")
        return problem.exit_code
    stream = Stream(asked.stream)
    code, message = 0, ""
    try:
        run(asked, stream)
    except StorqualError as problem:
        code, message = problem.exit_code, str(problem)
    except Exception as problem:  # noqa: BLE001 - whatever it was, the control node must hear of it
        code, message = 2, f"{type(problem).__name__}: {problem}"
    stream.send()
    stream.line("end", code=code, message=message, ios=stream.told)
    stream.close()
    return code
