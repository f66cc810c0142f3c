# SPDX-License-Identifier: Apache-2.0
"""iscsiadm (open-iscsi): the counters of each session, which the kernel gives to this program alone.

From the program's documentation and public outputs; what the kernel shows of a session itself is in `host/fabric.py`.
"""

from __future__ import annotations

import re
from typing import Mapping

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import first_line

_TIMEOUT = 60.0
_NO_SESSION = 21
# `[sid: 1, target: ...]`; releases before 2.0.871 wrote `[default [1] [address]:port name]`, or the number alone
_SESSION = re.compile(
    r"^(?:Stats for session )?\[(?:sid: (?P<sid>\d{1,9}),|\S+ \[(?P<old>\d{1,9})\] |(?P<bare>\d{2,9})\]$)"
)
_COUNTER = re.compile(r"^\s+(?P<name>[a-z][\w .-]*?):\s+(?P<count>\d{1,20})\s*$", re.IGNORECASE)
_NEEDED = {"digest_err", "timeout_err"}


def parse_statistics(text: str) -> dict[str, Mapping[str, int]]:
    """`iscsiadm -m session -s`: counters by the session's kernel name (`session1`).

    Raises ToolError for a text that is none, for one that comes twice, and for one without counters of errors.
    """
    found: dict[str, dict[str, int]] = {}
    counters: dict[str, int] | None = None
    for line in text.splitlines():
        session, counter = _SESSION.match(line), _COUNTER.match(line)
        if session:
            name = f"session{int(session.group('sid') or session.group('old') or session.group('bare'))}"
            if name in found:
                raise ToolError(f"iscsiadm tells the counters of {name} twice")
            counters = found[name] = {}
        elif counter and counters is not None:
            counters[counter.group("name").replace(" ", "_")] = int(counter.group("count"))
    if not found:
        raise ToolError(f"iscsiadm printed no counters of a session: {first_line(text)}")
    cut = [name for name, kept in found.items() if not kept.keys() >= _NEEDED]
    if cut:
        raise ToolError(f"iscsiadm tells no counters of errors of {', '.join(cut)}")
    return {**found}


def read_statistics(runner: Runner) -> dict[str, Mapping[str, int]]:
    """The counters of every session, none without a session. Raises ToolError."""
    ended = runner(["iscsiadm", "-m", "session", "-s"], timeout=_TIMEOUT)
    if ended.rc == _NO_SESSION:
        return {}
    if ended.rc != 0:
        raise ended.failure("the counters of the iSCSI sessions cannot be read")
    return parse_statistics(ended.stdout)
