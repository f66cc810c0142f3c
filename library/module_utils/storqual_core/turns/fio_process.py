# SPDX-License-Identifier: Apache-2.0
"""One fio process, and never two: started, watched without polling, ended for certain.

The write end of a pipe is inherited by fio and by nothing else. The pipe's end is therefore the moment at which the
last of fio's processes is gone, and waiting for it costs no wake-ups. fio is told by the kernel to die when the bench
program dies, however that happens (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

from ..kit.errors import ToolError

_PR_SET_PDEATHSIG = 1
_TERM_S = 2.0
_KILL_S = 30.0
_OUTPUT_LIMIT = 64 << 20
_prctl = ctypes.CDLL(None, use_errno=True).prctl


class FioStuckError(ToolError):
    """fio does not even die of SIGKILL: an I/O that it issued never comes back."""


@dataclass(frozen=True)
class _Ended:
    """How a process ended: exit status (negative: signal), both outputs, its life in nanoseconds."""

    exit_status: int
    output: str
    errors: str
    wall_ns: int


class FioProcess:
    """A running fio. Use as a context manager: whatever happens inside, it is gone afterwards."""

    def __init__(self, argv: Sequence[str], folder: Path) -> None:
        """Start `argv` with its outputs in files of `folder` (which it also has as working directory)."""
        self._output = folder / "output"
        self._errors = folder / "errors"
        self._parent = os.getpid()
        reader, writer = os.pipe()
        self.began_ns = time.monotonic_ns()
        try:
            with self._output.open("wb") as output, self._errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    cwd=str(folder),
                    pass_fds=(writer,),
                    env={**os.environ, "LC_ALL": "C", "LANG": "C"},
                    preexec_fn=self._die_with_parent,  # noqa: PLW1509 - this program has one thread
                )
        except (OSError, subprocess.SubprocessError) as problem:
            os.close(reader)
            raise ToolError(f"`{argv[0]}` cannot be started: {problem}") from problem
        finally:
            os.close(writer)
        self._reader = reader
        self._gone_ns: int | None = None

    def __enter__(self) -> FioProcess:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.end()
        finally:
            os.close(self._reader)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait(self, seconds: float) -> bool:
        """Wait until all of fio is gone or `seconds` have passed; whether it is gone."""
        deadline = time.monotonic() + seconds
        while self._gone_ns is None:
            left = max(deadline - time.monotonic(), 0.0)
            ready, _, _ = select.select([self._reader], [], [], left)
            if ready:
                self._gone_ns = time.monotonic_ns()
            elif left <= 0.0:
                return False
        return True

    def end(self, *, gently: bool = False) -> None:
        """Make sure that fio is gone: SIGTERM first when `gently`, then SIGKILL. Raises FioStuckError."""
        if self._gone_ns is None and gently:
            self.tell(signal.SIGTERM)
            self.wait(_TERM_S)
        if self._gone_ns is None:
            self.tell(signal.SIGKILL)
            if not self.wait(_KILL_S):
                raise FioStuckError(
                    f"fio (process {self.pid}) does not end {_KILL_S:g} s after SIGKILL: one of its I/Os never "
                    "returns"
                )
        self._process.wait()

    def collect(self) -> _Ended:
        """How it ended and what it said; call when it is gone."""
        status = self._process.wait()
        gone_ns = self._gone_ns if self._gone_ns is not None else time.monotonic_ns()
        return _Ended(status, _text(self._output), _text(self._errors), gone_ns - self.began_ns)

    def threads(self) -> int:
        """How many threads it has; 0 when that cannot be told."""
        with suppress(OSError):
            return len(os.listdir(f"/proc/{self.pid}/task"))  # noqa: PTH208 - one system call, many times
        return 0

    def tell(self, number: int) -> None:
        """Send a signal to it and to all that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _die_with_parent(self) -> None:
        """In the child: a group of its own that can be interrupted; killed when the parent dies or has died."""
        os.setpgid(0, 0)
        # a shell starts what runs in the background with SIGINT ignored, and that would be handed on
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != self._parent:
            os.kill(os.getpid(), signal.SIGKILL)


def _text(path: Path) -> str:
    """What was written, cut at a size that no honest run reaches."""
    with path.open("rb") as file:
        return file.read(_OUTPUT_LIMIT).decode("utf-8", "replace")
