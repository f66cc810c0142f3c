# SPDX-License-Identifier: Apache-2.0
"""A command in a process of its own that waits at chosen file system calls while something else happens."""

import ctypes
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from storqual_core.kit.errors import StorqualError

Work = Callable[[], object]
_CALLS = frozenset(
    ("open", "os.listdir", "os.scandir", "os.rename", "os.mkdir", "os.remove", "os.truncate", "fcntl.flock")
)
"""Audit events of calls that look at files, or change them."""
_AT_CWD = -100
_EXCHANGE = 2


def exchange(one: Path, other: Path) -> None:
    """Put each of two files, or folders, in the place of the other, in one step."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_CWD, os.fsencode(one), _AT_CWD, os.fsencode(other), _EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2", str(one))


class Running:
    """A command in a child of this process. It tells when it stands before a call that it was asked to wait at."""

    def __init__(self, work: Work, stops: frozenset[int] = frozenset(), *, at_lock: bool = False) -> None:
        """`at_lock` lets it tell that it is about to take a lock, without waiting."""
        (told, tell), (go, self._go) = os.pipe(), os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _child(work, stops, tell, go, at_lock=at_lock)
        os.close(tell)
        os.close(go)
        self._told = os.fdopen(told, "r", encoding="utf-8", errors="replace")
        self.calls: list[str] = []
        self._ended = "killed"

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._told.close()
        os.close(self._go)
        os.waitpid(self._pid, 0)

    def next_stop(self) -> int | None:
        """Wait until it stands before a call, or before a lock (0); None when it has ended."""
        for line in self._told:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "call":
                self.calls.append(rest)
            elif word == "stop":
                return int(rest)
            else:
                self._ended = rest
        return None

    def go_on(self) -> None:
        os.write(self._go, b".")

    def end(self) -> str:
        """Let it go on to its end; what it returned as text, `refused: ...` for an error that a person is told."""
        while (stop := self.next_stop()) is not None:
            if stop:
                self.go_on()
        return self._ended


def _child(work: Work, stops: frozenset[int], tell: int, go: int, *, at_lock: bool) -> None:
    """Do the work; never returns. What it says goes through a pipe: writing to it is no call that is counted."""
    made = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal made
        if event not in _CALLS:
            return
        made += 1
        if event == "fcntl.flock" and at_lock:
            os.write(tell, b"stop 0\n")
        if not stops and not at_lock:
            os.write(tell, f"call {event} {arguments[0]!r}\n".encode())
        if made in stops:
            os.write(tell, b"stop %d\n" % made)
            os.read(go, 1)

    try:
        sys.addaudithook(count)
        said = str(work())
    except StorqualError as problem:
        said = f"refused: {problem}"
    except BaseException:  # noqa: BLE001 - whatever it is, the parent tells it
        said = f"broke: {traceback.format_exc()}"
    os.write(tell, f"ended {' | '.join(said.splitlines())[:3000]}\n".encode())
    os._exit(0)


def calls_of(work: Work) -> tuple[str, ...]:
    """The file system calls of a command that nobody disturbs, each with its first argument."""
    with Running(work) as running:
        said = running.end()
        assert "broke" not in said, said
        return tuple(running.calls)


def disturbed(work: Work, actions: Mapping[int, Work]) -> str:
    """Do `work`; before its n-th file system call do `actions[n]`, in this process. How it ended."""
    with Running(work, frozenset(actions)) as running:
        while (stop := running.next_stop()) is not None:
            actions[stop]()
            running.go_on()
        return running.end()


def beside(work: Work, moment: int, other: Work) -> tuple[str, str]:
    """Do `work`; before its n-th call another process begins `other`, which ends, or waits for a lock, meanwhile.

    How both ended.
    """
    with Running(work, frozenset((moment,))) as running:
        if running.next_stop() is None:
            return running.end(), ""
        with Running(other, at_lock=True) as second:
            second.next_stop()
            running.go_on()
            return running.end(), second.end()
