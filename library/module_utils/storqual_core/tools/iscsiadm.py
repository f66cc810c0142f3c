# SPDX-License-Identifier: Apache-2.0
"""iscsiadm (open-iscsi): the counters of each session, and what its daemon does with it: the kernel shows neither.

From the program's documentation and public outputs of 2.0-870 to 2.1.9; what the kernel shows of a session itself is
in `host/fabric.py`. Names and secrets of CHAP are passed over.
"""

from __future__ import annotations

import re
from typing import Any, Mapping

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import first_line

_TIMEOUT = 60.0
_NO_SESSION = 21
_SESSION = re.compile(r"^(?:Stats for session )?\[sid: (?P<sid>\d{1,9}),")
_COUNTER = re.compile(r"^\s+(?P<name>[a-z][\w .-]*?):\s+(?P<count>\d{1,20})\s*$", re.IGNORECASE)
_NEEDED = {"digest_err", "timeout_err"}
_TARGET = re.compile(r"^\s*Target: (?P<target>\S+)")
# pages and mail change how far a line is in
_SHOWN = re.compile(r"^\s*(?P<label>SID|iSCSI Connection State|Internal iscsid Session State): (?P<value>\S.*?)\s*$")
_ATTACHED = re.compile(r"^\s*Attached scsi disk (?P<disk>\S+)\s+State: (?P<state>\S+)")
_KEYS = {"iSCSI Connection State": "connection", "Internal iscsid Session State": "daemon"}


def parse_statistics(text: str) -> dict[str, Mapping[str, int]]:
    """`iscsiadm -m session -s`: counters by the session's kernel name (`session1`).

    Raises ToolError for a text that is none, for one that comes twice, and for one without counters of errors.
    """
    sessions: dict[str, dict[str, int]] = {}
    counters: dict[str, int] | None = None
    for line in text.splitlines():
        session, counter = _SESSION.match(line), _COUNTER.match(line)
        if session:
            name = f"session{int(session.group('sid'))}"
            if name in sessions:
                raise ToolError(f"iscsiadm tells the counters of {name} twice")
            counters = sessions[name] = {}
        elif counter and counters is not None:
            counters[counter.group("name").replace(" ", "_")] = int(counter.group("count"))
    if not sessions:
        raise ToolError(f"iscsiadm printed no counters of a session: {first_line(text)}")
    cut = [name for name, counts in sessions.items() if not counts.keys() >= _NEEDED]
    if cut:
        raise ToolError(f"iscsiadm tells no counters of errors of {', '.join(cut)}")
    return {**sessions}


def parse_sessions(text: str) -> dict[str, dict[str, Any]]:
    """`iscsiadm -m session -P 3`: target, states as the daemon has them, and disks, by the session's kernel name.

    Raises ToolError for a text of no session, for one that comes twice, and for one whose states are not both told.
    """
    sessions: dict[str, dict[str, Any]] = {}
    target = ""
    session: dict[str, Any] = {}
    for line in text.splitlines():
        of, shown, disk = _TARGET.match(line), _SHOWN.match(line), _ATTACHED.match(line)
        if of:
            target, session = of.group("target"), {}
        elif shown and shown.group("label") == "SID":
            name = f"session{shown.group('value')}"
            if name in sessions or not target:
                raise ToolError(f"iscsiadm tells of {name} twice, or of no target of it")
            session = sessions[name] = {"target": target, "disks": {}}
        elif shown:
            session[_KEYS[shown.group("label")]] = shown.group("value")
        elif disk and "disks" in session:
            session["disks"][disk.group("disk")] = disk.group("state")
    cut = [name for name, states in sessions.items() if not states.keys() >= set(_KEYS.values())]
    if cut or not sessions:
        raise ToolError(f"iscsiadm tells no states of {', '.join(cut) or 'any session'}: {first_line(text)}")
    return sessions


def read_sessions(runner: Runner) -> dict[str, dict[str, Any]]:
    """What the daemon says of every session, none without a session. Raises ToolError."""
    text = _ask(runner, "-P", "3")
    return {} if text is None else parse_sessions(text)


def read_statistics(runner: Runner) -> dict[str, Mapping[str, int]]:
    """The counters of every session, none without a session. Raises ToolError."""
    text = _ask(runner, "-s")
    return {} if text is None else parse_statistics(text)


PARAMETERS = {
    "cmds_max": "node.session.cmds_max",
    "nr_sessions": "node.session.nr_sessions",
    "header_digest": "node.conn[0].iscsi.HeaderDigest",
    "data_digest": "node.conn[0].iscsi.DataDigest",
    **{name: f"node.conn[0].timeo.{name}" for name in ("noop_out_interval", "noop_out_timeout")},
}
"""What a record keeps for the next login, by the names of settings."""


def read_record(runner: Runner, target: str, portal: str) -> None:
    """Raises ToolError where open-iscsi keeps no record of this portal, and so cannot log in to it again."""
    runner(["iscsiadm", "-m", "node", "-T", target, "-p", portal], timeout=_TIMEOUT).expect()


def log_in_with(runner: Runner, target: str, portal: str, values: Mapping[str, object]) -> None:
    """Keep these parameters, end every session with the portal, and log in. Raises ToolError."""
    record = ["iscsiadm", "-m", "node", "-T", target, "-p", portal]
    updates = [["-o", "update", "-n", PARAMETERS[name], "-v", str(value)] for name, value in values.items()]
    for words in (*updates, ["--logout"], ["--login"]):
        ended = runner([*record, *words], timeout=_TIMEOUT)
        if ended.rc != 0 and (words != ["--logout"] or ended.rc != _NO_SESSION):
            raise ended.failure(f"{target} at {portal}: {' '.join(words)} failed")


def _ask(runner: Runner, *words: str) -> str | None:
    ended = runner(["iscsiadm", "-m", "session", *words], timeout=_TIMEOUT)
    ended.expect(0, _NO_SESSION, what="the iSCSI sessions cannot be read")
    return None if ended.rc == _NO_SESSION else ended.stdout
