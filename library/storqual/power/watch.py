# SPDX-License-Identifier: Apache-2.0
"""What a bench shows of itself while its power is switched: its SSH server, its boot id, its console."""

import math
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from storqual.base import child
from storqual.bench.ladder import ConsoleTyping
from storqual.bench.reboot import QUESTION, Boot, parse_boot, parse_ssh_address, ssh_answers
from storqual_core.kit.errors import StorqualError

_KNOCK_S = 2.0
_LOGIN_S, _LONGEST_LOGIN_S = 20.0, 80.0
"""A busy boot takes a multiple of the usual time of a login: one that is given up too early would only begin anew."""
_UNSHARED = ("-o", "ControlMaster=no", "-o", "ControlPath=none", "-o", "BatchMode=yes")
"""A connection that outlived the boot would wait for a bench that is gone."""


class BenchWatch:
    """Evidence of a bench that is reached by SSH.

    `words` makes of arguments of ssh the whole command line, `host` is what ssh calls the bench; `console` is its
    serial console, where it is recorded.
    """

    def __init__(
        self,
        words: Callable[..., Sequence[str]],
        host: str,
        *,
        console: ConsoleTyping | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._words = words
        self._host = host
        self._console = console
        self._clock = clock
        self._sign = -math.inf
        self._mark = console.mark() if console is not None else 0
        self._login_s = _LOGIN_S

    def boot(self) -> Boot | None:
        """The boot that answers now. A server that says its name and lets nobody in is life, and no boot."""
        if self._console is not None and self._spoke(self._console):
            self._sign = self._clock()
        # the port of a virtual bench is another one after each start
        address = parse_ssh_address(self._ssh("-G", self._host, limit_s=_LOGIN_S) or "")
        if address is None:
            answer = self._ssh(self._host, QUESTION, limit_s=_LOGIN_S)
        elif not ssh_answers(address, _KNOCK_S):
            return None
        else:
            self._sign = self._clock()
            answer = self._patiently(QUESTION)
        if answer is None:
            return None
        try:
            boot = parse_boot(answer)
        except StorqualError:
            # half a line of a bench that goes down
            return None
        self._sign = self._clock()
        return boot

    def last_sign_s(self) -> float:
        return self._clock() - self._sign

    def uptime_s(self) -> float | None:
        words = (self._patiently("cat /proc/uptime") or "").split()
        try:
            return float(words[0])
        except (IndexError, ValueError):
            return None

    def _patiently(self, command: str) -> str | None:
        """What a bench answers whose server says its name; the next login may take longer where this one was late."""
        limit_s, began = self._login_s, self._clock()
        answer = self._ssh(self._host, command, limit_s=limit_s)
        late = answer is None and self._clock() - began >= limit_s
        self._login_s = min(2 * limit_s, _LONGEST_LOGIN_S) if late else limit_s
        return answer

    def _ssh(self, *given: str, limit_s: float) -> str | None:
        """What ssh prints; None where it fails or does not end in time."""
        first, *rest = self._words(*given)
        # it counts the exchange of keys as part of the connection; of two such words the first counts
        connect = ("-o", f"ConnectTimeout={math.ceil(limit_s)}")
        with suppress(OSError, subprocess.TimeoutExpired):
            ended = child.run(
                [first, *_UNSHARED, *connect, *rest],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=limit_s,
            )
            return ended.stdout if ended.returncode == 0 else None
        return None

    def _spoke(self, console: ConsoleTyping) -> bool:
        """Whether the bench said something since the last look; what its recorder notes is nothing of the bench's."""
        before, self._mark = self._mark, console.mark()
        return self._mark < before or (self._mark > before and bool(console.text_since(before).strip()))
