# SPDX-License-Identifier: Apache-2.0
"""The event chain: an append-only record in which each line carries the digest of the line before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.run.files import parse_line, read_bytes, read_lines
from storqual.run.layout import (
    BLOCKS,
    CHECKS,
    EVENTS,
    append_lines,
    dump_line,
    locked,
    now,
    sha256_of,
)
from storqual.run.records import Check, Event
from storqual_core.kit.errors import BadInputError, StorqualError

FIRST_DIGEST = "0" * 64
"""What the first line of a chain carries as the digest of the line before."""

OUTCOMES = ("PASS", "MARGINAL", "FAIL", "INCONCLUSIVE", "ERROR", "SKIPPED")

EVENT_KINDS: Mapping[str, tuple[str, ...]] = {
    # kind: fields that it must have
    "planned": (),
    "environment": ("bench", "when", "facts"),
    "session_started": ("bench", "session", "boot_id"),
    "session_lost": ("bench", "session", "reason"),
    "session_planned": ("bench", "session", "plan"),
    "block_planned": ("bench", "session", "block"),
    "ramp_lengthened": ("bench", "adapter", "point", "every_s", "first_s"),
    "limited": ("bench", "block", "limits"),
    "block_started": ("bench", "session", "block"),
    "block_finished": ("bench", "session", "block", "outcome"),
    "witnessed": ("bench", "block", "place", "sha256"),
    "not_witnessed": ("bench", "block", "place", "reason"),
    "trial_started": ("bench", "session", "trial"),
    "trial_finished": ("bench", "session", "trial", "outcome", "sha256"),
    "trial_lost": ("bench", "session", "trial", "reason", "rebooted"),
    "external_started": ("bench", "session", "program"),
    "external_finished": ("bench", "session", "program", "outcome", "sha256"),
    "provision_failed": ("bench", "session", "reason"),
    "kernel_panic": ("bench", "text"),
    "unplugged": ("bench", "drive"),
    "powered_on": ("bench",),
    "failed": ("bench", "message"),
    "restored": ("bench",),
    "restore_failed": ("bench", "reason"),
    "resumed": (),
    "run_finished": (),
    "checks_planned": ("source", "checks"),
    "closed": ("samples", "checks", "raw", "blocks", "document"),
    "published": ("files",),
    "judged": ("outcome",),
    "note": ("text",),
    "noted": ("text", "by", "links", "files"),
}

_OWN = ("time", "kind", "previous", "file_sha256")


def append_event(run: Path, kind: str, fields: Mapping[str, Any]) -> Event:
    """Append one event and return it. Raises BadInputError for an unknown kind or a missing field."""
    with locked(run):
        return append_event_locked(run, kind, fields)


def append_event_locked(run: Path, kind: str, fields: Mapping[str, Any]) -> Event:
    """The same for a caller that holds the run directory already."""
    problems = _problems(kind, fields)
    if problems:
        raise BadInputError(problems)
    previous = FIRST_DIGEST
    for _, line in read_lines(run, EVENTS):
        previous = sha256_of(line)
    event = {"time": now(), "kind": kind, **fields, **_batch_file(run, kind, fields), "previous": previous}
    append_lines(run / EVENTS, dump_line(event))
    return Event.from_json(event)


def _batch_file(run: Path, kind: str, fields: Mapping[str, Any]) -> dict[str, str]:
    """The digest of the file by which a batch is started."""
    name = f"{BLOCKS}/{fields.get('block')}.json"
    known = kind == "block_started" and (run / name).is_file()
    return {"file_sha256": sha256_of(read_bytes(run, name))} if known else {}


def _problems(kind: str, fields: Mapping[str, Any]) -> list[str]:
    if kind not in EVENT_KINDS:
        return [f"event: found kind {kind!r}, expected one of {', '.join(EVENT_KINDS)}"]
    problems = [
        f"event {kind}: found no {name!r}, expected {', '.join(EVENT_KINDS[kind])}"
        for name in EVENT_KINDS[kind]
        if fields.get(name) is None
    ]
    problems += [f"event {kind}: found {name!r}, which the store writes itself" for name in _OWN if name in fields]
    return problems


def iter_events(run: Path) -> Iterator[Event]:
    """All events in order. Raises StorqualError where the chain is broken: a line was changed, lost or moved."""
    path = run / EVENTS
    previous = FIRST_DIGEST
    for number, line in read_lines(run, EVENTS):
        try:
            fields = parse_line(line, EVENTS)
            event = Event.from_json(fields)
            claimed = fields["previous"]
        except (ValueError, KeyError, TypeError) as problem:
            raise StorqualError(
                f"{path}:{number}: found no event ({problem}); the run directory is damaged"
            ) from None
        if claimed != previous:
            raise StorqualError(f"{path}:{number}: found digest {claimed} of the line before, expected {previous}")
        previous = sha256_of(line)
        yield event


def new_check(check: Mapping[str, Any]) -> Check:
    """The outcome of a hand-written test, as of now. Raises BadInputError when it has no id or no known outcome."""
    problems = [f"check: found no {name!r}" for name in ("id", "outcome", "source") if not check.get(name)]
    if check.get("outcome") not in (None, "", *OUTCOMES):
        problems.append(f"check: found outcome {check['outcome']!r}, expected one of {', '.join(OUTCOMES)}")
    if problems:
        raise BadInputError(problems)
    return Check.from_json({"time": now(), **check})


def append_check(run: Path, check: Mapping[str, Any]) -> Check:
    """Append the outcome of a hand-written test, and return it. Raises what `new_check` raises."""
    made = new_check(check)
    with locked(run):
        append_lines(run / CHECKS, dump_line(made.fields))
    return made


def iter_checks(run: Path) -> Sequence[Check]:
    """All checks in order. Raises StorqualError for a line that is none."""
    path = run / CHECKS
    checks = []
    for number, line in read_lines(run, CHECKS):
        try:
            check = Check.from_json(parse_line(line, CHECKS))
        except (ValueError, KeyError, TypeError) as problem:
            raise StorqualError(f"{path}:{number}: found no check ({problem})") from None
        if check.outcome not in OUTCOMES:
            told = f"found outcome {check.outcome!r}, expected one of {', '.join(OUTCOMES)}"
            raise StorqualError(f"{path}:{number}: {told}")
        checks.append(check)
    return checks
