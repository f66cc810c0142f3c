# SPDX-License-Identifier: Apache-2.0
"""What a campaign recovered from, and what counts of a run that was opened again after it was closed.

An event is somebody's word. What clears a failure is evidence: launches, trials or programs that were measured later,
and that are derived from what the bench sent. A run that was opened again and measured nothing has added nothing that
speaks for it.
"""

from collections.abc import Iterable, Iterator

from storqual.run.collect import read_batch
from storqual.run.event_kinds import OUTCOMES
from storqual.run.layout import EVENTS
from storqual.run.records import Check, Event, planned_session
from storqual.run.run import Run
from storqual_core.kit.errors import BadInputError

_MEASURED = "its launches were measured later"
_RANKS = {name: rank for rank, name in enumerate(("PASS", "MARGINAL", "SKIPPED", "INCONCLUSIVE", "ERROR", "FAIL"))}
assert set(_RANKS) == set(OUTCOMES)  # noqa: S101 - an outcome without a rank would count as none


def is_measured(run: Run, bench: str, batches: Iterable[str]) -> bool:
    """Whether each launch of these batches has a sample, each other turn a record; False for one that has no file.

    What a reset cut off is tried again in another session: it is the same by adapter, arm, point and number, or by
    its id. Raises StorqualError for a batch file that is damaged.
    """
    try:
        turns = [turn for batch in batches for turn in read_batch(run.path, batch)["turns"]]
    except BadInputError:
        return False
    launches = [turn for turn in turns if turn["kind"] == "launch"]
    measured = {
        (bench, *(str(turn[name]) for name in ("adapter", "point", "arm")), int(turn["n"])) for turn in launches
    }
    recorded = {str(turn["id"]) for turn in turns if turn["kind"] != "launch"}
    return bool(turns) and measured <= run.measured and recorded <= run.recorded


def recovered(run: Run, event: Event) -> str:
    """How the campaign recovered from a failure that `event` tells; empty when it did not, or when there is none.

    What the bench did meanwhile is not undone: a panic, a drive that vanished. A task that failed is one that was
    tried again: a resumed campaign repeats it, and what fails again is on record again. What a reset cut off is
    measured in a session of its own. Raises StorqualError for a batch file that is damaged.
    """
    if event.kind == "block_finished":
        lost = event.text("outcome") not in ("", "done")
        return _MEASURED if lost and is_measured(run, event.bench or "", [event.text("block")]) else ""
    if event.kind == "session_lost":
        planned = (event.bench, planned_session(event.text("session")))
        sessions = (session for session in run.sessions if (session.bench, session.id) == planned)
        batches = [batch for session in sessions for batch in session.batches]
        return _MEASURED if is_measured(run, event.bench or "", batches) else ""
    if event.kind == "provision_failed":
        session = event.text("session")
        started = _later(run, event, "session_started", session)
        return "the session started later" if started and _measured_after(run, started[0], session) else ""
    if event.kind == "restore_failed":
        measured = _measured_after(run, event)
        return "it was later" if measured and _later(run, measured[0], "restored") else ""
    if event.kind == "failed":
        resumed = (later for later in run.events[event.number :] if later.kind == "resumed")
        went_on = any(_measured_after(run, later, bench=event.bench) for later in resumed)
        return "the campaign was resumed" if went_on else ""
    return ""


def _later(run: Run, event: Event, kind: str, session: str | None = None) -> list[Event]:
    return [
        later
        for later in run.events[event.number :]
        if (later.kind, later.bench) == (kind, event.bench) and session in (None, later.text("session"))
    ]


def _measured_after(run: Run, event: Event, session: str | None = None, bench: str | None = None) -> list[Event]:
    """Ends of batches, trials and programs behind `event` that brought something newly measured on its bench."""
    bench = bench or event.bench
    return [
        later
        for later in run.events[event.number :]
        if later.bench == bench and later.number in run.measuring and session in (None, later.text("session"))
    ]


def measured_since(run: Run, period: int) -> frozenset[str]:
    """The benches on which something was measured in a period of the campaign."""
    events = run.periods[period].events
    return frozenset(str(event.bench) for event in events if event.number in run.measuring)


def counted_checks(run: Run) -> tuple[Check, ...]:
    """The outcome of each check that counts, of those that stand in the run.

    A check that was run again speaks last, unless the run was opened again and nothing was measured since: then it
    can only make the outcome worse. A check whose file was corrected takes the place of its ERROR, which decided
    nothing, and of no other outcome.
    """
    counted: dict[tuple[str | None, ...], Check] = {}
    begin = 0
    for number, period in enumerate(run.periods):
        end = period.count("checks")
        measured = measured_since(run, number) if number else frozenset()
        corrected = {name for event in period.events if event.kind == CORRECTED for name in event.fields["checks"]}
        for check in run.checks[begin:end]:
            key = (check.id, check.bench, check.adapter, check.point)
            again = not number or (check.bench in measured if check.bench else bool(measured))
            replaces = file_of(check) in corrected and _mends(check, counted, key)
            if again or replaces or _is_worse(check, counted.get(key)):
                # the last one stands last, as it always did
                counted.pop(key, None)
                counted[key] = check
        begin = len(run.checks) if end is None else end
    return tuple(counted.values())


CORRECTED = "checks_corrected"
"""The event of files of checks that were corrected after they ended in an ERROR."""


def file_of(check: Check) -> str:
    """The file of a hand-written check: its id begins with it, unless its author gave it another."""
    return str(check.fields.get("file") or check.id.partition("::")[0])


def _mends(check: Check, counted: dict[tuple[str | None, ...], Check], key: tuple[str | None, ...]) -> bool:
    """Whether an outcome of a corrected file counts; errors of the file, or of this check elsewhere, are dropped."""
    before = counted.get(key)
    if before is not None and before.outcome != "ERROR":
        return False
    errors = [
        name
        for name, other in counted.items()
        if other.outcome == "ERROR" and (other.id == file_of(check) or (other.id == check.id and name != key))
    ]
    for name in errors:
        del counted[name]
    return before is None or not _hides(check, before)


def corrected_checks(run: Run) -> dict[str, str]:
    """The digests of files of checks that were corrected, as they are now."""
    events = [event for event in run.events if event.kind == CORRECTED]
    return {name: str(check["sha256"]) for event in events for name, check in event.fields["checks"].items()}


def corrections(run: Run) -> list[str]:
    """A sentence for each file of checks that was corrected: it was written in the knowledge of the measurements."""
    return [
        f"check {name} was {'run again' if check['sha256'] == check['before'] else 'corrected'} at {event.time}, "
        f"after it had ended in an ERROR: the file as it was run is {check['file']}"
        for event in run.events
        if event.kind == CORRECTED
        for name, check in event.fields["checks"].items()
    ]


def _hides(check: Check, before: Check | None) -> bool:
    # what is not required hides nothing: neither an outcome that was, nor that there was none
    return check.fields.get("required") is False and (before is None or before.fields.get("required") is not False)


def _is_worse(check: Check, before: Check | None) -> bool:
    if _hides(check, before):
        return False
    return _RANKS[check.outcome] > _RANKS["SKIPPED" if before is None else before.outcome]


def reopened(run: Run) -> list[str]:
    """A sentence for each time that the run was opened again: when, by which event, and what was measured since."""
    return list(_reopened(run))


def _reopened(run: Run) -> Iterator[str]:
    for number, period in enumerate(run.periods):
        before = run.periods[number - 1].closed
        if period.opened is None or before is None:
            continue
        measured = sorted(measured_since(run, number))
        what = f"measured since on {', '.join(measured)}" if measured else "nothing was measured since"
        event = f"{period.opened.kind}, line {period.opened.number} of {EVENTS}"
        yield f"the run was closed at {before.time} and opened again at {period.opened.time} ({event}): {what}"
