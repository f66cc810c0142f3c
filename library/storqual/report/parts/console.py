# SPDX-License-Identifier: Apache-2.0
"""What the serial console of a bench said: its panics and hangs with the driver they name, and what was not heard."""

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.base.console_log import (
    NET,
    PANIC,
    ConsoleLine,
    console_troubles,
    last_lines_before,
    lost_messages,
    read_recording,
)
from storqual.base.figures import second
from storqual.base.files import unpacked
from storqual.base.text import plural
from storqual.report.material import Material, clock
from storqual.run import Event, sha256_of
from storqual.run.files import limit_of, read_bytes
from storqual_core.host.kernel_log import KINDS
from storqual_core.kit.errors import StorqualError

_MOST_TROUBLES = 20
_BEFORE_S = 900.0
"""A trouble so long before a bench was lost tells why it was."""
_SAME_S = 60.0
"""What netconsole had within so long of the same trouble on the console is not shown a second time."""
_NO_CONSOLE = (
    "No console is declared for this bench: what its kernel said when it panicked, hung or did not boot cannot be"
    " shown, but for what pstore or kdump kept."
)


@dataclass(frozen=True)
class ConsoleExcerpt:
    """Lines of a console around a trouble, or before a bench fell silent."""

    kind: str
    time: str
    headline: str
    named: str
    text: str
    serious: bool


@dataclass(frozen=True)
class ConsoleSection:
    """One bench: how its console was recorded, which source had a trace, and the excerpts."""

    bench: str
    sentences: tuple[str, ...]
    excerpts: tuple[ConsoleExcerpt, ...]


def consoles_of(material: Material) -> tuple[ConsoleSection, ...]:
    """A section for each bench that has a console, or whose lack of one says something."""
    sections = (_section(material, name, bench) for name, bench in material.run.benches.items())
    return tuple(section for section in sections if section.sentences or section.excerpts)


def _section(material: Material, name: str, bench: dict[str, Any]) -> ConsoleSection:
    events = [event for event in material.events if event.bench == name]
    kept = [event for event in events if event.kind == "console_kept"]
    sentences, lines = [], []
    for event in kept:
        heard, text = _recorded(material, event)
        lines += heard
        sentences.append(text)
    sentences += _sent(lines)
    begun = any(event.kind == "console_started" for event in events)
    if begun and not kept:
        sentences.append("The console was recorded, and the recording was not taken into the run.")
    if not begun and bench.get("kind") == "hardware":
        sentences.append(_NO_CONSOLE)
    sentences += [text for event in events if event.kind == "kernel_panic" and (text := sources_told(event))]
    drivers = [str(adapter["driver"]) for adapter in bench.get("adapters", {}).values() if adapter.get("driver")]
    return ConsoleSection(name, tuple(dict.fromkeys(sentences)), tuple(_excerpts(lines, drivers, events)))


def _recorded(material: Material, event: Event) -> tuple[list[ConsoleLine], str]:
    raw = event.fields.get("recording")
    gaps = int(event.fields["gaps"])
    silent = f"it was not heard all the time: {plural(gaps, 'gap')}" if gaps else "without a gap"
    if raw is None:
        return [], f"The console ({event.text('console')}) said nothing."
    text = f"The console ({event.text('console')}) was recorded, {silent}; the whole recording is {raw['path']}."
    try:
        data = read_bytes(material.run.path, raw["path"])
        if sha256_of(data) != raw["sha256"]:
            return [], f"{raw['path']} is not the recording that was taken into the run."
        return [*read_recording(unpacked(data, limit_of(raw["path"]).unpacked))], text
    except (OSError, EOFError, zlib.error, StorqualError):
        return [], f"{raw['path']}, the recording of the console, cannot be read."


def _sent(lines: Sequence[ConsoleLine]) -> Iterator[str]:
    """How much came by netconsole, where anything did."""
    if count := sum(line.mark == NET for line in lines):
        lost = lost_messages(lines)
        missing = f"; {lost} of the kernel's messages are missing: they are below its log level, or were lost"
        yield f"By netconsole came {plural(count, 'line')}{missing if lost else ''}."


def sources_told(event: Event) -> str:
    """Which source had the trace of a panic and which had not; empty where nobody looked."""
    sources = event.fields.get("sources") or {}
    had = [name for name, trace in sources.items() if trace]
    lacked = [name for name, trace in sources.items() if not trace]
    if not sources:
        return ""
    return f"The panic of {second(event.time)}: its trace was in {_listed(had)}" + (
        f", and not in {_listed(lacked)}." if lacked else "."
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "no source"


def _seconds(since: str, until: str) -> float:
    """Not a number where one of them is no time: lines of a damaged recording have none."""
    try:
        return clock(until) - clock(since)
    except ValueError:
        return math.nan


def _excerpts(lines: list[ConsoleLine], drivers: Sequence[str], events: Sequence[Event]) -> Iterator[ConsoleExcerpt]:
    troubles = console_troubles(lines, drivers)
    sent = [
        trouble
        for trouble in console_troubles(lines, drivers, NET)
        if not any(
            trouble.kind == other.kind and abs(_seconds(other.at, trouble.at)) <= _SAME_S for other in troubles
        )
    ]
    troubles = sorted([*troubles, *sent], key=lambda trouble: trouble.at)
    for trouble in troubles[:_MOST_TROUBLES]:
        kind = "Kernel panic" if trouble.kind == PANIC else KINDS[trouble.kind].capitalize()
        kind += ", by netconsole" if trouble in sent else ""
        named = f"It names {_listed(trouble.drivers)}." if trouble.drivers else "It names no driver."
        why = f" It was provoked: {trouble.expected}." if trouble.expected else ""
        text = "\n".join(trouble.lines)
        yield ConsoleExcerpt(
            kind, second(trouble.at), trouble.headline, named + why, text, serious=not trouble.expected
        )
    if len(troubles) > _MOST_TROUBLES:
        more = f"{len(troubles) - _MOST_TROUBLES} more are in the recording"
        yield ConsoleExcerpt("And more", "", more, "", "", serious=False)
    for event in events:
        lost = event.kind == "session_lost" or (event.kind == "block_finished" and event.text("outcome") == "lost")
        known = any(0 <= _seconds(trouble.at, event.time) <= _BEFORE_S for trouble in troubles)
        text = "\n".join(last_lines_before(lines, event.time)) if lost and not known else ""
        if text:
            reason = event.text("reason") or event.text("message")
            yield ConsoleExcerpt(
                "Last lines before the bench was lost",
                second(event.time),
                reason,
                "The console names no trouble before it.",
                text,
                serious=True,
            )
