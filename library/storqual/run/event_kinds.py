# SPDX-License-Identifier: Apache-2.0
"""The kinds of event that a run's chain may have: the fields of each, who writes it, and when it may be written."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from storqual.run.shapes import Shape, short_value, wrong_values

OUTCOMES = ("PASS", "MARGINAL", "FAIL", "INCONCLUSIVE", "ERROR", "SKIPPED")
CHECK_SOURCES = ("pytest", "robot")
"""Who runs hand-written checks; outcomes that are counted from trials have a source of their own."""


class Stage(Enum):
    """When events of a kind are written."""

    PLANNING = "first"
    """The first event of a run, and no other."""
    CAMPAIGN = "campaign"
    """While the run is open: before it is closed, and after it was opened again."""
    OPENING = "opening"
    """At any time: the campaign, or a check of it, goes on. Behind `closed` it opens the run again."""
    CLOSING = "closing"
    """Ends what is collected."""
    ANY = "any"
    """At any time: what is judged, published, noted and witnessed. Nothing that is measured may be read from it."""


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind: its fields, when it is written, and whether `storqual record` may write it."""

    stage: Stage
    fields: Mapping[str, Shape]
    recorded: bool = False


_COUNTED: Shape = {"count": "count", "sha256": "sha256"}
_DISKS: Shape = {
    "*": {
        "id?": "text",
        "wwn?": "text",
        "serial?": "text",
        "write_sectors_before": "count",
        "write_sectors_after": "count",
        "claimed": "flag",
        "system": "text",
        "errors?": {"*": "count"},
    }
}
_ON_BENCH: Mapping[str, Shape] = {"bench": "name", "session": "name"}
_SESSION: Shape = {
    "id": "name",
    "bench": "name",
    "arm": "name",
    "configuration": "name",
    "change": "name",
    "boot": "name",
    "arms": ["name"],
    "blocks": ["name"],
    "purpose?": "text",
}
_FINISHED: Mapping[str, Shape] = {"outcome": "name", "sha256": "sha256", "boot_id?": "text", "end": {"disks": _DISKS}}
_HUNG: Mapping[str, Shape] = {**_ON_BENCH, "arm": "name", "block?": "name", "turn?": "name"}
_WITNESS: Mapping[str, Shape] = {"bench": "name", "block": "name", "place": "name", "sha256": "sha256"}


def _campaign(fields: Mapping[str, Shape], *, recorded: bool = False) -> EventKind:
    return EventKind(Stage.CAMPAIGN, fields, recorded)


EVENT_KINDS: Mapping[str, EventKind] = {
    "planned": EventKind(Stage.PLANNING, {"run": "name", "plan_sha256": "sha256", "blocks": {"*": "sha256"}}),
    "environment": _campaign(
        {
            "bench": "name",
            "when": "before|after",
            "facts": {"*": "any"},
            "disks?": {"*": "any"},
            "smart?": {"*": {"*": "number"}},
            "logs?": {"*": {"*": "any"}},
            "stamped?": "any",
        },
        recorded=True,
    ),
    "session_started": _campaign(
        {
            **_ON_BENCH,
            "boot_id": "name",
            "arm?": "name",
            "kernel?": "text",
            "provisioned?": {"drivers?": {"*": {"*": "any"}}, "settings?": [{"*": "any"}]},
        },
        recorded=True,
    ),
    "session_lost": _campaign({**_ON_BENCH, "reason": "text"}),
    "session_planned": _campaign({**_ON_BENCH, "plan": _SESSION, "reason?": "text"}),
    "block_planned": _campaign({**_ON_BENCH, "block": "name", "reason?": "text"}),
    "ramp_lengthened": _campaign(
        {"bench": "name", "adapter": "name", "point": "name", "every_s": "number", "first_s": "number"}
    ),
    "limited": _campaign({"bench": "name", "block": "name", "limits": {"*": "count"}}),
    "block_started": _campaign({**_ON_BENCH, "block": "name", "file_sha256?": "sha256"}),
    "block_finished": _campaign(
        {
            **_ON_BENCH,
            "block": "name",
            "outcome": "done|refused|stopped|lost",
            "message?": "text",
            "samples": "count",
            "sha256": "sha256",
            "boot_id?": "text",
            "start?": {"fio?": "text", "no_cycles?": "text", "...": "any"},
            "end?": {"disks?": _DISKS, "kernel_log_reason?": "text", "...": "any"},
            "findings?": [
                {
                    "kind?": "text",
                    "lines?": ["text"],
                    "line?": "text",
                    "count?": "count",
                    "launch?": "count",
                    "...": "any",
                }
            ],
            "kernel_log?": {"path": "name", "sha256": "sha256"},
            "preconditioned?": {"steady?": {"*": "any"}, "as_found?": ["text"], "...": "any"},
            "lost?": {"turn": "name", "rebooted": "flag"},
            "interrupted?": "flag",
        }
    ),
    "turn_finished": _campaign(
        {
            **_ON_BENCH,
            "block": "name",
            "turn": "name",
            "turn_kind": "trial|program",
            "ends_session": "flag",
            **_FINISHED,
        }
    ),
    "provision_failed": _campaign({**_ON_BENCH, "reason": "text", "arm?": "text", "task?": "text"}, recorded=True),
    "kernel_panic": _campaign(
        {"bench": "name", "text": "text", "session?": "text", "arm?": "text", "sources?": {"*": "flag"}},
        recorded=True,
    ),
    "recovery_step": _campaign({**_HUNG, "step": "name", "seconds": "number", "text": "text", "evidence?": "text"}),
    "bench_hung": _campaign({**_HUNG, "ended_by": "text", "seconds": "number", "text": "text"}, recorded=True),
    "console_started": _campaign({"bench": "name", "console": "text", "from": "count"}),
    "console_kept": _campaign(
        {
            "bench": "name",
            "console": "text",
            "gaps": "count",
            "recording?": {"path": "name", "sha256": "sha256"},
            "reason?": "text",
        }
    ),
    "unplugged": _campaign({"bench": "name", "drive": "name"}),
    "power_step": _campaign(
        {"bench": "name", "backend?": "name", "action": "state|off|on|cycle", "answer": "text", "evidence": "text"}
    ),
    "power_switched": _campaign(
        {
            "bench": "name",
            "action": "state|off|on|cycle",
            "reason?": "text",
            "state": "on|off|unknown",
            "proven": "flag",
            "conclusion": "text",
            "boot_id?": "name",
        }
    ),
    "powered_on": _campaign({"bench": "name"}, recorded=True),
    "failed": _campaign({"bench": "name", "message": "text", "task?": "text", "evidence?": "any"}, recorded=True),
    "restored": _campaign({"bench": "name", "settings?": [{"*": "any"}]}, recorded=True),
    "restore_failed": _campaign({"bench": "name", "reason": "text", "task?": "text"}, recorded=True),
    "run_finished": _campaign({}),
    "checks_planned": _campaign({"source": "|".join(CHECK_SOURCES), "checks": {"+": "positive"}, "file?": "name"}),
    "resumed": EventKind(Stage.OPENING, {}),
    "checks_corrected": EventKind(
        Stage.OPENING, {"checks": {"+": {"before": "sha256", "sha256": "sha256", "file": "name"}}}
    ),
    "closed": EventKind(
        Stage.CLOSING,
        {"samples": _COUNTED, "checks": _COUNTED, "raw": _COUNTED, "blocks": _COUNTED, "document": "sha256"},
    ),
    "published": EventKind(Stage.ANY, {"files": {"*": "sha256"}}),
    "judged": EventKind(
        Stage.ANY, {"outcome": "|".join(OUTCOMES), "exit_code?": "count", "path?": "name", "sha256?": "sha256"}
    ),
    "note": EventKind(Stage.ANY, {"bench?": "name", "text": "text"}, recorded=True),
    "noted": EventKind(
        Stage.ANY,
        {
            "text": "text",
            "by": "text",
            "links": ["text"],
            "files": [{"path": "name", "size": "count", "sha256": "sha256"}],
        },
    ),
    "witnessed": EventKind(Stage.ANY, {**_WITNESS, "answer?": "text"}),
    "not_witnessed": EventKind(Stage.ANY, {**_WITNESS, "reason": "text"}),
}

FINISHED: Mapping[str, str] = {"block_finished": "block", "turn_finished": "turn"}
"""Kinds that end something measured, and the field that names it."""

STORED: Mapping[str, Shape] = {"time": "time", "kind": "name", "previous": "sha256"}
"""What the store writes into every event."""


def event_problems(kind: object, fields: Mapping[str, Any]) -> list[str]:
    """What is wrong with an event of this kind, a sentence each; `fields` are those that the store does not write."""
    event_kind = EVENT_KINDS.get(kind) if isinstance(kind, str) else None
    if event_kind is None:
        return [f"event: found kind {short_value(kind)}, expected one of {', '.join(EVENT_KINDS)}"]
    return [f"event {kind}: {problem}" for problem in wrong_values(event_kind.fields, fields)]


def line_problems(line: object) -> list[str]:
    """What is wrong with a line of a chain, parsed."""
    if not isinstance(line, dict):
        return [f"event: found {short_value(line)}, expected a mapping"]
    stored = {name: line[name] for name in STORED if name in line}
    fields = {name: value for name, value in line.items() if name not in STORED}
    problems = [f"event: {problem}" for problem in wrong_values(STORED, stored)]
    return [*problems, *event_problems(line.get("kind"), fields)]
