# SPDX-License-Identifier: Apache-2.0
"""A foreign program with a limit: its output as it comes, its process group killed when the limit has passed."""

from __future__ import annotations

import codecs
import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Callable, Sequence

from ..kit.errors import MissingToolError, ToolError

MOST_OUTPUT = 16 << 20
"""Bytes of output that are told of one program; more is counted and dropped, and said."""
_LOOK_S = 0.5
_TERM_S = 10.0
_KILL_S = 30.0
_REST_S = 2.0
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Ended:
    """How a program ended: exit status (negative for a signal, None where it cannot be killed), seconds.

    `hung` says that it was killed at its limit, `stuck` that the kernel could not end it even then, `cut` how many
    bytes of its output were not told.
    """

    status: int | None
    hung: bool
    stuck: bool
    seconds: float
    cut: int


def run_foreign(
    words: Sequence[str],
    *,
    limit_s: float,
    folder: str | None = None,
    tell: Callable[[str], None] = lambda _text: None,
) -> Ended:
    """Run `words` in `folder` in a session of its own; `tell` takes pieces of both outputs together.

    Whoever the program leaves behind in its process group is killed too. Raises MissingToolError when it is not
    installed, ToolError when it cannot be started.
    """
    began = time.monotonic()
    try:
        child = subprocess.Popen(
            list(words),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C", "LANG": "C"},
        )
    except FileNotFoundError as problem:
        raise MissingToolError(f"`{problem.filename or words[0]}` is not there on this machine") from problem
    except OSError as problem:
        raise ToolError(f"`{words[0]}` cannot be started: {problem.strerror}") from problem
    output = _Output(child, tell)
    while child.poll() is None and time.monotonic() - began < limit_s:
        output.take(min(_LOOK_S, max(0.0, began + limit_s - time.monotonic())))
    hung = child.poll() is None
    if hung:
        _signal(child.pid, signal.SIGTERM)
        _await_end(child, output, _TERM_S)
    # what it left behind in its group would go on writing to the drive
    _signal(child.pid, signal.SIGKILL)
    stuck = not _await_end(child, output, _KILL_S)
    output.end()
    return Ended(child.poll(), hung, stuck, time.monotonic() - began, output.cut)


def _signal(group: int, which: signal.Signals) -> bool:
    """Signal a group; False when nobody is left in it."""
    try:
        os.killpg(group, which)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _await_end(child: subprocess.Popen[bytes], output: _Output, limit_s: float) -> bool:
    """Whether program and group have ended within `limit_s` seconds."""
    end = time.monotonic() + limit_s
    while child.poll() is None or _alive(child.pid):
        if time.monotonic() > end:
            return False
        output.take(0.05)
    return True


def _alive(group: int) -> bool:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, 0)
        return True
    return False


class _Output:
    """What a program prints, told in pieces."""

    def __init__(self, child: subprocess.Popen[bytes], tell: Callable[[str], None]) -> None:
        assert child.stdout is not None  # noqa: S101 - it was started with a pipe
        self._pipe = child.stdout
        os.set_blocking(self._pipe.fileno(), False)
        self._tell = tell
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._told = self.cut = 0
        self._open = True

    def take(self, wait_s: float) -> bool:
        """Wait that long for output and tell it; False when there was none."""
        if not self._open:
            time.sleep(min(wait_s, 0.05))
            return False
        if not select.select([self._pipe], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self._pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        self._open = bool(data)
        kept = data[: max(0, MOST_OUTPUT - self._told)]
        self._told += len(kept)
        self.cut += len(data) - len(kept)
        text = self._decode(kept)
        if text:
            self._tell(text)
        return bool(data)

    def end(self) -> None:
        """Tell what is left in the pipe; who holds it open after that is not waited for."""
        end = time.monotonic() + _REST_S
        while self._open and time.monotonic() < end and self.take(0):
            pass
        rest = self._decode(b"", final=True)
        if rest:
            self._tell(rest)
        self._pipe.close()
