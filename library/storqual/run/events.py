# SPDX-License-Identifier: Apache-2.0
"""The event chain: an append-only record in which each line carries the digest of the line before."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.run.event_kinds import EVENT_KINDS, OUTCOMES, Stage, event_problems, line_problems
from storqual.run.files import parse_line, read_bytes, read_lines
from storqual.run.layout import BATCHES, CHECKS, EVENTS, append_lines, dump_line, locked, now, sha256_of
from storqual.run.records import Check, Event
from storqual_core.kit.errors import BadInputError, StorqualError

FIRST_DIGEST = "0" * 64
"""What the first line of a chain carries as the digest of the line before."""
_FILE_DIGEST = "file_sha256"
_KIND = re.compile(rb'\{"time":"[^"\\]*","kind":"([a-z_]+)"[,}]')
"""How a line begins that the store wrote; reading checks that every line is one of these."""


def append_event(run: Path, kind: str, fields: Mapping[str, Any]) -> Event:
    """Append one event and return it.

    Raises BadInputError for an unknown kind, for fields that are not those of its kind, and behind the end of a run
    for all but what is judged, published, noted or witnessed, and `resumed`, which opens it again.
    """
    with locked(run):
        return append_event_locked(run, kind, fields)


def append_event_locked(run: Path, kind: str, fields: Mapping[str, Any]) -> Event:
    """The same for a caller that holds the run directory already."""
    problems = event_problems(kind, fields)
    if _FILE_DIGEST in fields:
        problems.append(f"event {kind}: found {_FILE_DIGEST!r}, which the store writes itself")
    if problems:
        raise BadInputError(problems)
    previous, number, closed = FIRST_DIGEST, 0, False
    for number, text in read_lines(run, EVENTS):  # noqa: B007 - how many there are is asked behind it
        previous = sha256_of(text)
        closed = _closed_after(closed, _kind_of(text))
    problem = out_of_order(kind, number=number, closed=closed)
    if problem:
        raise BadInputError([f"{run}: event {kind}: {problem}"])
    line = {"time": now(), "kind": kind, **fields, **_batch_file(run, kind, fields), "previous": previous}
    data = dump_line(line)
    append_lines(run / EVENTS, data)
    return Event.from_json(line, number + 1, sha256_of(data[:-1]))


def out_of_order(kind: str, *, number: int, closed: bool) -> str:
    """Why an event of this kind may not follow so many others, the last of which left the run closed or open."""
    stage = EVENT_KINDS[kind].stage
    if stage is Stage.PLANNING and number:
        return "it is the first event of a run, and this run has others"
    if closed and stage in (Stage.CAMPAIGN, Stage.CLOSING):
        return "the run is closed: nothing is added to it until `storqual qualify --resume` opens it again"
    return ""


def of_campaign(event: Event) -> bool:
    """Whether an event is of a campaign under way, and not of what is judged, published, noted or witnessed."""
    return EVENT_KINDS[event.kind].stage is Stage.CAMPAIGN


def is_open(run: Path) -> bool:
    """Whether a run still takes what is measured and checked, by the kinds of its events alone."""
    closed = False
    for _, line in read_lines(run, EVENTS):
        closed = _closed_after(closed, _kind_of(line))
    return not closed


def _closed_after(closed: bool, kind: str) -> bool:
    return kind == "closed" or (closed and not opens(kind))


def opens(kind: str) -> bool:
    """Whether an event of this kind opens a run that was closed."""
    event_kind = EVENT_KINDS.get(kind)
    return event_kind is not None and event_kind.stage is Stage.OPENING


def _kind_of(line: bytes) -> str:
    match = _KIND.match(line)
    return match.group(1).decode() if match else ""


def _batch_file(run: Path, kind: str, fields: Mapping[str, Any]) -> dict[str, str]:
    name = f"{BATCHES}/{fields.get('block')}.json"
    has_file = kind == "block_started" and (run / name).is_file()
    return {_FILE_DIGEST: sha256_of(read_bytes(run, name))} if has_file else {}


def iter_events(run: Path) -> Iterator[Event]:
    """All events in order.

    Raises StorqualError where the chain is broken (a line was changed, lost or moved), and for a line that is no
    event of its kind.
    """
    path = run / EVENTS
    previous = FIRST_DIGEST
    for number, line in read_lines(run, EVENTS):
        fields = _event(f"{path}:{number}", line)
        if fields["previous"] != previous:
            claimed = fields["previous"]
            raise StorqualError(f"{path}:{number}: found digest {claimed} of the line before, expected {previous}")
        previous = sha256_of(line)
        yield Event.from_json(fields, number, previous)


def _event(where: str, line: bytes) -> dict[str, Any]:
    """A line parsed and checked. Raises StorqualError."""
    try:
        fields = parse_line(line, EVENTS)
        # a key that stands twice, or stands elsewhere, is read otherwise by another reader
        same = isinstance(fields, dict) and dump_line(fields) == line + b"\n" and _kind_of(line) == fields.get("kind")
    except (ValueError, RecursionError) as problem:
        raise StorqualError(f"{where}: found no event ({problem}); the run directory is damaged") from None
    problems = line_problems(fields)
    if not problems and not same:
        problems = ["event: found a line that is not as storqual writes it"]
    if problems:
        more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
        raise StorqualError(f"{where}: {problems[0]}{more}; the run directory is damaged")
    return dict(fields)


def new_check(check: Mapping[str, Any]) -> Check:
    """The outcome of a hand-written test, as of now. Raises BadInputError when it has no id or no known outcome."""
    problems = [f"check: found no {name!r}" for name in ("id", "outcome", "source") if not check.get(name)]
    if check.get("outcome") not in (None, "", *OUTCOMES):
        problems.append(f"check: found outcome {check['outcome']!r}, expected one of {', '.join(OUTCOMES)}")
    if problems:
        raise BadInputError(problems)
    return Check.from_json({"time": now(), **check})


def append_check(run: Path, check: Mapping[str, Any]) -> Check:
    """Append the outcome of a hand-written test, and return it.

    Raises what `new_check` raises, and BadInputError for a run that is closed: it takes no more outcomes.
    """
    made = new_check(check)
    with locked(run):
        if not is_open(run):
            raise BadInputError([f"{run}: the run is closed and takes no more outcomes of checks"])
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
            reason = f"found outcome {check.outcome!r}, expected one of {', '.join(OUTCOMES)}"
            raise StorqualError(f"{path}:{number}: {reason}")
        checks.append(check)
    return checks
