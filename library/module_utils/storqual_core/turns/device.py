# SPDX-License-Identifier: Apache-2.0
"""The drive under test, held by the guard, opened past the page cache, and opened anew when it went and came back."""

from __future__ import annotations

import errno
import os
import threading
import time
from contextlib import suppress
from typing import Callable, ContextManager, Mapping

from ..kit.errors import StorqualError

_GONE = (errno.ENXIO, errno.ENODEV, errno.EBADF, errno.ENOENT)
_AGAIN_S = 0.3

Holder = Callable[[], ContextManager[Mapping[str, str]]]
"""Takes the guard's hold on the trial's drive; raises GuardRefusalError while the drive is not there."""


class HeldDevice:
    """One drive that several workers use. When it has gone all wait until it is held again, or until they give up.

    Nobody writes without a hold: it is taken again, with all decisions of the guard, before the drive is opened,
    because what comes back under a name may be another drive.
    """

    def __init__(self, drive: str, holder: Holder, told: Callable[[str], None] = lambda _text: None) -> None:
        self._drive, self._holder, self._told = drive, holder, told
        self._turn = threading.Condition()
        self._users = 0
        self._lost = False
        self._gave_up = threading.Event()
        self._hold: ContextManager[Mapping[str, str]] | None = None
        self._descriptor = -1
        self._number = ""
        self.node = ""
        self._open()

    def _open(self) -> None:
        """Take the hold and open the drive. Raises GuardRefusalError, OSError."""
        hold = self._holder()
        node = hold.__enter__()[self._drive]
        try:
            self._descriptor = os.open(node, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
        except OSError:
            hold.__exit__(None, None, None)
            raise
        status = os.fstat(self._descriptor)
        self._number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}" if status.st_rdev else ""
        self._hold, self.node = hold, node

    def use(self) -> int:
        """The descriptor. Waits while the drive is being opened again."""
        with self._turn:
            while self._lost and not self._gave_up.is_set():
                if self._users == 0:
                    self._reopen()
                else:
                    self._turn.wait(_AGAIN_S)
            self._users += 1
            return self._descriptor

    def done(self, problem: int) -> None:
        """Give it back; `problem` is the errno of the I/O."""
        with self._turn:
            self._users -= 1
            if problem and not self._lost and self._is_gone(problem):
                self._lost = True
                self._told("gone")
            self._turn.notify_all()

    def _is_gone(self, problem: int) -> bool:
        if problem in _GONE:
            return True
        return bool(self._number) and not os.path.exists(f"/sys/dev/block/{self._number}")  # noqa: PTH110

    def _reopen(self) -> None:
        """Let go and try to take it again; the caller holds the turn and nobody uses the drive."""
        self._let_go()
        try:
            self._open()
        except (StorqualError, OSError):
            self._turn.wait(_AGAIN_S)
            return
        self._lost = False
        self._told("opened again")

    def _let_go(self) -> None:
        if self._descriptor >= 0:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1
        if self._hold is not None:
            self._hold.__exit__(None, None, None)
            self._hold = None

    @property
    def lost(self) -> bool:
        """Whether the drive has gone and was not opened again."""
        return self._lost

    def give_up(self) -> None:
        """Wait for the drive no longer: I/Os fail from now on while it is away."""
        self._gave_up.set()

    def close(self, limit_s: float) -> bool:
        """Let go of everything; False when an I/O under way did not end within `limit_s` seconds."""
        self.give_up()
        end = time.monotonic() + limit_s
        with self._turn:
            while self._users and time.monotonic() < end:
                self._turn.wait(_AGAIN_S)
            if self._users:
                return False
            self._let_go()
            return True
