# SPDX-License-Identifier: Apache-2.0
"""What the stream of a trial said: the oracle's list, proofs, errors, stalls, states, what was read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from storqual.kinds.oracle import Oracle
from storqual_core.data.faults import KERNEL_GRACE_S
from storqual_core.turns.integrity_load import OTHER_DATA

STALL_S = 1.0
"""An I/O that takes longer than this is a stall, and what happens until its end is part of the recovery."""


@dataclass
class Observed:
    """What the stream of a trial said, as it came. Times in ns of the bench's monotonic clock.

    `untold` is by how many I/Os the list differs from what the bench says it told.
    """

    oracle: Oracle = field(default_factory=Oracle)
    head: Mapping[str, Any] = field(default_factory=dict)
    begun: bool = False
    loading: int | None = None
    fault_begin: int | None = None
    fault_end: int | None = None
    fault_failed: str = ""
    cannot: str = ""
    seen: list[tuple[int, str, str]] = field(default_factory=list)
    kernel: list[tuple[int, str]] = field(default_factory=list)
    states: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    drive: list[tuple[int, str]] = field(default_factory=list)
    hung: str = ""
    down: str = ""
    lost: str = ""
    errors: list[tuple[int, str, int, int]] = field(default_factory=list)
    longest: tuple[int, int] = (0, 0)
    last_trouble: int | None = None
    ios: int = 0
    untold: int = 0
    found: dict[int, list[Sequence[Any]]] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)
    end: tuple[str, str] | None = None
    disks: Mapping[str, Any] = field(default_factory=dict)
    boot_id: str = ""
    _earlier: int = 0

    def take(self, line: Mapping[str, Any]) -> None:
        """One line of the stream. Raises KeyError, TypeError or ValueError for one that is none."""
        kind, at = str(line["kind"]), int(line["at"])
        if kind not in _LINES:
            raise ValueError(f"a line of kind {kind!r}")
        _LINES[kind](self, at, line)

    def take_head(self, _at: int, line: Mapping[str, Any]) -> None:
        """Whose stream it is; its first line."""
        if self.head or self.ios:
            raise ValueError("a stream that says a second time whose it is")
        self.head = line

    def take_ios(self, _at: int, line: Mapping[str, Any]) -> None:
        """I/Os that ended."""
        self.oracle.take(line["ios"])
        for io in line["ios"]:
            self._io(io)

    def take_found(self, _at: int, line: Mapping[str, Any]) -> None:
        """What was read back; the last line of a turn says that it is whole."""
        self.found.setdefault(int(line["turn"]), []).extend(line["runs"])
        if line.get("whole"):
            self.whole.add(int(line["turn"]))

    def take_fault(self, at: int, line: Mapping[str, Any]) -> None:
        """How far the fault is."""
        self._fault(line["phase"], at, line["text"])

    def take_mark(self, at: int, line: Mapping[str, Any]) -> None:
        """Lines of one fact each."""
        kind = line["kind"]
        if kind == "begin":
            self.begun, self._earlier = True, self.ios
        elif kind == "loading":
            self.loading = at
        elif kind == "hung":
            self.hung = self.hung or line["text"]
        elif kind == "down":
            self.down = self.down or line["text"]
        elif kind == "lost":
            self.lost = line["text"]
        elif kind == "cannot":
            self.cannot = line["reason"]
        elif kind == "end":
            self.end = (str(line["outcome"]), line["message"])
            self.untold += abs(int(line["ios"]) - (self.ios - self._earlier))
            self.disks, self.boot_id = line.get("disks") or {}, str(line.get("boot_id") or "")

    def take_story(self, at: int, line: Mapping[str, Any]) -> None:
        """What belongs to the trial's timeline."""
        kind = line["kind"]
        if kind == "kernel":
            self.kernel += [(at, text) for text in line["lines"]]
        elif kind == "seen":
            self.seen.append((at, line["seen"], line["text"]))
        elif kind == "state":
            self.states[line["when"]] = line["state"]
        elif kind == "drive":
            self.drive.append((at, line["text"]))

    def _fault(self, phase: str, at: int, text: str) -> None:
        if phase == "begin":
            self.fault_begin = at
        elif phase == "end":
            self.fault_end = at
        elif phase == "failed":
            self.fault_failed = text
        else:
            raise ValueError(f"a fault's phase {phase!r}")

    def _io(self, io: Sequence[Any]) -> None:
        kind, _, sector, _, begin, end, problem = io
        self.ios += 1
        # a read that gave other data did not fail: the oracle has it
        if problem and problem not in OTHER_DATA.values():
            self.errors.append((end, kind, sector, problem))
        if end - begin > self.longest[1] - self.longest[0]:
            self.longest = (begin, end)
        if self.fault_begin is None or end < self.fault_begin:
            return
        if problem or end - begin > STALL_S * 1e9:
            self.last_trouble = max(self.last_trouble or 0, end)

    def lines_of_fault(self) -> tuple[str, ...]:
        """The kernel's lines from the fault's begin to a little after its end."""
        if self.fault_begin is None:
            return ()
        last = (self.fault_end or max((at for at, _ in self.kernel), default=0)) + KERNEL_GRACE_S * 1e9
        return tuple(text for at, text in self.kernel if self.fault_begin <= at <= last)

    @property
    def recovery_s(self) -> float | None:
        """From the fault's begin to the end of the last I/O that failed or stalled; None without a recovery."""
        if self.fault_begin is None or self.lost or self.hung:
            return None
        end = max(
            self.last_trouble or self.fault_begin, *(at for at, text in self.drive if text == "opened again"), 0
        )
        return max(0.0, (end - self.fault_begin) / 1e9)


_LINES: Mapping[str, Callable[[Observed, int, Mapping[str, Any]], None]] = {
    "io": Observed.take_ios,
    "found": Observed.take_found,
    "fault": Observed.take_fault,
    "trial": Observed.take_head,
    **dict.fromkeys(("start", "begin", "loading", "hung", "down", "lost"), Observed.take_mark),
    **dict.fromkeys(("cannot", "end", "note"), Observed.take_mark),
    **dict.fromkeys(("kernel", "seen", "state", "drive"), Observed.take_story),
}
"""Who reads which line."""
