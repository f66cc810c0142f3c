# SPDX-License-Identifier: Apache-2.0
"""What happened in a campaign, in the order of time: events that are not routine, and what the kernel log says."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from storqual.base.text import telling_line
from storqual.report.cells import TimelineEvent
from storqual.report.material import clock
from storqual.report.words import EVENT_WORDS, SERIOUS_EVENTS, second
from storqual.run import recovered
from storqual_core.host.log_rule import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storqual import run as store
    from storqual.report.material import Material


_ROUTINE = ("planned", "environment", "session_started", "limited", "block_started", "run_finished", "judged")


@dataclass(frozen=True)
class Moment:
    """Something with a time (seconds since 1970) and a badge, as charts mark it and tables explain it."""

    at: float
    bench: str
    kind: str
    time: str
    session: str
    text: str
    serious: bool
    finding: bool = False
    mended: str = ""
    """How the campaign got over it."""
    badge: str = ""

    def event(self) -> TimelineEvent:
        """The row of the table of events."""
        gist = telling_line(self.text)
        return TimelineEvent(
            self.badge, second(self.time), self.bench, self.kind, gist, self.text, self.serious, self.mended
        )


def moments_of(material: Material) -> tuple[Moment, ...]:
    """Events that are not routine, and findings of the kernel log, in the order of time; badges E1.. and K1.. ."""
    found = [moment for event in material.events for moment in _moments(material.run, event)]
    found.sort(key=lambda one: one.at)
    numbers: Counter[str] = Counter()
    moments = []
    for moment in found:
        letter = "K" if moment.finding else "E"
        numbers[letter] += 1
        moments.append(replace(moment, badge=f"{letter}{numbers[letter]}"))
    return tuple(moments)


def _moments(run: store.Run, event: store.Event) -> Iterator[Moment]:
    at = _at(event.time)
    ended = event.kind == "block_finished"
    if ended:
        for finding in event.fields.get("findings") or ():
            yield _finding(finding, event, at)
    if event.kind in _ROUTINE or (ended and event.text("outcome") in ("", "done")):
        return
    mended = recovered(run, event)
    yield Moment(
        at,
        event.bench or "",
        EVENT_WORDS.get(event.kind, event.kind),
        event.time,
        event.text("session"),
        _text(event),
        # what was put right is told where it happened, and is no trouble of the outcome
        serious=(ended or event.kind in SERIOUS_EVENTS) and not mended,
        mended=mended,
    )


def _text(event: store.Event) -> str:
    for name in ("text", "reason", "message", "drive", "outcome"):
        if event.text(name):
            return event.text(name)
    return ""


def _at(text: str) -> float:
    try:
        return clock(text)
    except ValueError:
        return 0.0


def _finding(finding: object, event: store.Event, ended: float) -> Moment:
    """One finding; one that only knows the time since boot stands where its block ended."""
    bench, session = event.bench or "", event.text("session")
    if not isinstance(finding, dict):
        return Moment(ended, bench, "kernel log", event.time, session, str(finding), serious=True, finding=True)
    lines = finding.get("lines") or [finding.get("line") or finding.get("text") or ""]
    told = [str(line) for line in lines]
    number = finding.get("count")
    if isinstance(number, int) and number > len(told):
        told.append(f"… {number} lines in all")
    word = str(finding.get("kind") or "kernel log")
    known = KINDS.get(word)
    where = " ".join(str(finding[name]) for name in ("adapter", "point") if finding.get(name))
    return Moment(
        _finding_at(finding.get("time"), ended),
        bench,
        known or word,
        str(finding.get("time") or event.time),
        ", ".join(filter(None, [session, where])),
        "\n".join(told),
        serious=True,
        finding=True,
    )


def _finding_at(time: object, otherwise: float) -> float:
    if isinstance(time, str):
        return _at(time) or otherwise
    if isinstance(time, (int, float)) and time > 1e9:
        return float(time)
    return otherwise
