# SPDX-License-Identifier: Apache-2.0
"""From the stream of a trial to its record: what was proven, what was observed, and its outcome.

`passed` needs the fault proven, everything read back and nothing against it. A trial whose fault was not proven is
`void` whatever else it shows, but for data that is not what it must be: that is a failure with any fault or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from storqual.kinds.images import CheckedImages
from storqual.kinds.load_coverage import coverage_of, grown_memory
from storqual.kinds.oracle import IO_NAMES, Oracle, Violation, error_sentence, read_sentence, sector_name
from storqual_core.data.faults import KERNEL_GRACE_S, LOGGING_WAY, NOTHING, POWER, WAYS, Fault, Way
from storqual_core.host.kernel_log import find_all
from storqual_core.turns.bench_faults import OTHER_VALUE
from storqual_core.turns.integrity_load import OTHER_DATA
from storqual_core.turns.sectors import UNREADABLE

Outcome = Literal["passed", "failed", "void"]
_MOST_MISSING = 20
DRIVE_LOST_POWER, DRIVE_KEPT_POWER = "drive_lost_power", "drive_kept_power"
"""What is reported of the drive itself where the power of its bench was removed."""
RETRYING_DRIVER = "nvme"
"""It sends what failed again, whatever the reason is, and may find that the fault is over."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a trial with every reason for it."""

    outcome: Outcome
    reasons: tuple[str, ...]
    violations: tuple[Violation, ...]


def judge(
    seen: Observed, fault: Fault, way: Way, expect: Mapping[str, Any], cuts: CheckedImages | None = None
) -> Verdict:
    """What the trial shows; `cuts` is what images of simulated power cuts showed, where they are its fault.

    `expect` has seconds of `recovery` and `stall`, and `errors`: none, any, or None for what the fault permits.
    """
    first, *again = (seen.readings.get(turn, []) for turn in sorted({1, *seen.readings}))
    dead = _nothing_readable(seen)
    violations = tuple(seen.oracle.judge(first, _keeps(seen, fault), *again)) if 1 in seen.whole and not dead else ()
    wrong = [seen.down] if seen.down else []
    wrong += [violation.sentence for violation in violations]
    wrong += [read_sentence(kind, sector, length) for kind, sector, length, _ in seen.oracle.wrong_reads]
    if cuts is not None:
        wrong += [loss.sentence for loss in cuts.missing[:_MOST_MISSING]]
        if len(cuts.missing) > _MOST_MISSING:
            wrong.append(f"and {len(cuts.missing) - _MOST_MISSING} more sectors are missing in images of power cuts")
    missing = _void(seen, way)
    if way.name == LOGGING_WAY and (cuts is None or not cuts.points):
        missing.append("no image of a power cut was built")
    if wrong:
        return Verdict("failed", (*wrong, *missing), violations)
    if missing:
        return Verdict("void", tuple(missing), ())
    wrong = [*_against(seen, fault, way, expect)]
    return Verdict("failed" if wrong else "passed", tuple(wrong), ())


def lost_power(seen: Observed) -> bool | None:
    """Whether the drive itself lost its power; None where no power was removed."""
    reports = {name for _, name, _ in seen.seen}
    return DRIVE_LOST_POWER in reports if reports & {DRIVE_LOST_POWER, DRIVE_KEPT_POWER} else None


def _keeps(seen: Observed, fault: Fault) -> str:
    """What must be there again: of a drive without power a volatile cache may lose what was not flushed."""
    return "flushed" if lost_power(seen) else fault.keeps


def _nothing_readable(seen: Observed) -> bool:
    """Whether the drive gave out no sector at all: then it has not recovered, and of its data nothing is known."""
    codes = {code for _, _, code, _ in seen.readings.get(1, [])}
    return codes == {UNREADABLE}


def _void(seen: Observed, way: Way) -> list[str]:
    """Why the trial proves nothing; nothing when its fault was there and the bench did what a trial needs."""
    if seen.cannot:
        return [f"it could not be tried: {seen.cannot}"]
    if seen.end is not None and seen.end[0] != "done":
        return [f"the bench's program ended {seen.end[0]}: {seen.end[1]}"]
    if seen.end is None and not (seen.hung or seen.down):
        return ["the bench never told that the trial is over"]
    if seen.untold:
        return [f"the list of I/Os is not whole: {seen.untold} of them are missing, or too many"]
    if not seen.begun or seen.loading is None:
        return ["the load never began"]
    if seen.fault_begin is None:
        return [f"the fault was never begun{': ' + seen.fault_failed if seen.fault_failed else ''}"]
    lacking = way.unproven(frozenset(name for _, name, _ in seen.seen), seen.lines_of_fault())
    if lacking and not (seen.hung and WAYS[way.name][0].acts_on == NOTHING):
        other_values = [text for _, name, text in seen.seen if name == OTHER_VALUE]
        details = "; ".join([*other_values[-1:], *([seen.fault_failed] if seen.fault_failed else [])])
        why = f" ({details})" if details else ""
        return [f"the fault is not proven: no {', no '.join(lacking)}{why}"]
    return []


def _against(seen: Observed, fault: Fault, way: Way, expect: Mapping[str, Any]) -> Iterable[str]:
    yield from _not_recovered(seen, way)
    allowed = {"none": False, "any": True, None: may_fail(fault, way)}[expect["errors"]]
    if seen.errors and not allowed:
        yield f"{len(seen.errors)} I/Os failed, none may: the first, {seen.errors[0][1]}"
    if way.fails_load and _driver(seen) != RETRYING_DRIVER:
        yield from _hidden_errors(seen, way.fails_load)
    stall = (seen.longest[1] - seen.longest[0]) / 1e9
    if stall > expect["stall"]:
        yield f"slow recovery: an I/O took {stall:.1f} s, {expect['stall']:g} s are allowed"
    recovery = _recovery_s(seen, way)
    if recovery is not None and recovery > expect["recovery"]:
        yield f"slow recovery: it took {recovery:.1f} s, {expect['recovery']:g} s are allowed"
    if not way.downs_bench:
        yield from _state_changes(seen.states, settings=fault.settings_stay)
    leak = grown_memory(seen.memory)
    if leak:
        yield f"memory leak: {leak}"
    for finding in find_all(text.partition("] ")[2] or text for _, text in seen.kernel):
        if finding.kind in ("kernel_bug", "hung_task"):
            yield finding.sentence()


def may_fail(fault: Fault, way: Way) -> bool:
    """Whether I/Os of the load may fail by it; a shelf may lose its power a moment before the bench does."""
    return (fault.io_errors or way.where == POWER) and not way.spares_load


def _hidden_errors(seen: Observed, kinds: str) -> Iterable[str]:
    """Errors that the drive answered with and no I/O told.

    When the fault began and ended is known on the control node's clock only. Between two I/Os that failed it lasted.
    """
    hit = [io for io in seen.answered if io.kind in kinds]
    failed = [io for io in hit if io.failed]
    if not seen.errors:
        yield "hidden error: the drive answered with an error, and no I/O failed"
    if not failed:
        return
    first, last = min(io.end for io in failed), max(io.begin for io in failed)
    during = [io for io in hit if io.begin > first and io.end < last]
    good = [io for io in during if not io.failed]
    if good:
        names = " and ".join(sorted({IO_NAMES[io.kind][1] for io in good}))
        yield (
            f"hidden error: while the drive failed them all, {len(good)} of {len(during)} I/Os were answered as "
            f"good: {names}, the first at {(good[0].begin - (seen.loading or 0)) / 1e9:.3f} s"
        )


def _driver(seen: Observed) -> object:
    return seen.states.get("before", {}).get("driver")


def _recovery_s(seen: Observed, way: Way) -> float | None:
    """Seconds until I/Os went on; None where the bench itself went down, whose load did not, or nothing was done."""
    return None if way.downs_bench or WAYS[way.name][0].acts_on == NOTHING else seen.recovery_s


def _not_recovered(seen: Observed, way: Way) -> Iterable[str]:
    proofs = {name for _, name, _ in seen.seen}
    if any(name not in proofs for name in way.returns):
        yield f"drive missing: {seen.fault_failed or 'it did not come back'}"
    elif seen.fault_failed:
        yield f"the fault did not end well: {seen.fault_failed}"
    if seen.hung:
        yield f"hung: {seen.hung}"
    if seen.lost:
        yield f"not recovered: {seen.lost}"
    if not seen.hung and not seen.lost and 1 not in seen.whole:
        yield "not recovered: the drive could not be read back"
    elif _nothing_readable(seen):
        yield "not recovered: no sector of the drive could be read back"
    elif 1 in seen.whole and seen.oracle.missing(seen.readings[1]):
        yield f"{seen.oracle.missing(seen.readings[1])} written sectors were never read back"


def _state_changes(states: Mapping[str, Mapping[str, Any]], *, settings: bool) -> Iterable[str]:
    before, after = states.get("before"), states.get("after")
    if before is None or after is None:
        yield "the state afterwards was never told"
        return
    for what in ("driver", "link"):
        if before[what] != after[what]:
            yield f"{what} was {before[what] or 'none'}, is {after[what] or 'none'}"
    for name in sorted(set(before["drives"]) - set(after["drives"])):
        yield f"drive missing: {name} is gone"
    for name in sorted(set(after["drives"]) - set(before["drives"])):
        yield f"drive {name} was not there before"
    for name in sorted(set(before["drives"]) & set(after["drives"])):
        old, new = before["drives"][name], after["drives"][name]
        for what in ("wwn", "serial", "size", "state"):
            if old[what] != new[what]:
                yield f"drive {name}: {what} was {old[what]}, is {new[what]}"
        for setting, value in old["settings"].items() if settings else ():
            if new["settings"].get(setting) != value:
                yield f"drive {name}: {setting} was {value}, is {new['settings'].get(setting)}"
        if new["in_flight"] > old["in_flight"]:
            yield f"drive {name}: {new['in_flight']} commands are still under way"


def values_of(
    seen: Observed, verdict: Verdict, way: Way, cuts: CheckedImages | None, sweep: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What a trial showed, with its timeline in seconds of the load; of a `sweep` also what it reached."""
    began = seen.loading or 0
    recovery = _recovery_s(seen, way)
    clock = [*((at, "fault", "begin") for at in [seen.fault_begin] if at is not None)]
    clock += [(at, "fault", "end") for at in [seen.fault_end] if at is not None]
    clock += [(at, "proof", f"{name}: {text}") for at, name, text in seen.seen]
    clock += [(at, "drive", text) for at, text in seen.drive]
    clock += [(at, "kernel", text) for at, text in seen.kernel[:200]]
    clock += [
        (at, "data", f"{kind} read at sector {sector_name(sector)}")
        for kind, sector, _, at in seen.oracle.wrong_reads[:20]
    ]
    for label, some in (("first", seen.errors[:1]), ("last", seen.errors[-1:] if len(seen.errors) > 1 else [])):
        clock += [(at, "error", f"{label} of {len(seen.errors)}: {failure}") for at, failure in some]
    return {
        "outcome": verdict.outcome,
        "reasons": list(verdict.reasons),
        "violations": [dict(violation.__dict__) for violation in verdict.violations],
        "ios": seen.ios,
        "writes": len(seen.oracle.writes),
        "flushes": len(seen.oracle.flushes),
        "errors": len(seen.errors),
        "stall_s": round((seen.longest[1] - seen.longest[0]) / 1e9, 3),
        "recovery_s": None if recovery is None else round(recovery, 3),
        "power_cuts": None
        if cuts is None
        else {"points": cuts.points, "images": cuts.images, "missing": len(cuts.missing)},
        **({"drive_lost_power": lost_power(seen)} if way.where == POWER else {}),
        "disks": seen.disks,
        "boot_id": seen.boot_id,
        "slab_bytes": {when: state["slab_bytes"] for when, state in seen.states.items()},
        "residual": {when: state["residual"] for when, state in seen.states.items()},
        **(
            {}
            if sweep is None
            else {"coverage": coverage_of(sweep, seen.rows, seen.lacks, seen.oracle), "memory": seen.memory}
        ),
        "timeline": [[round((at - began) / 1e9, 3), what, text] for at, what, text in sorted(clock)],
    }


STALL_S = 1.0
"""An I/O that takes longer than this is a stall, and what happens until its end is part of the recovery."""


class Answered(NamedTuple):
    """An I/O while the fault lasted: when it began and ended, and whether it failed."""

    kind: str
    begin: int
    end: int
    failed: bool


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
    errors: list[tuple[int, str]] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)
    longest: tuple[int, int] = (0, 0)
    last_trouble: int | None = None
    ios: int = 0
    untold: int = 0
    readings: dict[int, list[Sequence[Any]]] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)
    end: tuple[str, str] | None = None
    disks: Mapping[str, Any] = field(default_factory=dict)
    boot_id: str = ""
    rows: list[Sequence[Any]] = field(default_factory=list)
    lacks: list[Mapping[str, Any]] = field(default_factory=list)
    memory: list[Sequence[int]] = field(default_factory=list)
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
        self.oracle.take(line["ios"])
        for io in line["ios"]:
            self._io(io)

    def take_found(self, _at: int, line: Mapping[str, Any]) -> None:
        """What was read back; the last line of a turn says that it is whole."""
        self.readings.setdefault(int(line["turn"]), []).extend(line["runs"])
        if line.get("whole"):
            self.whole.add(int(line["turn"]))

    def take_coverage(self, _at: int, line: Mapping[str, Any]) -> None:
        """What a sweep reached, what it could not, and the kernel's memory meanwhile."""
        if line["kind"] == "rows":
            self.rows += line["rows"]
        elif line["kind"] == "lacks":
            self.lacks.append(line)
        else:
            self.memory = line["samples"]

    def take_fault(self, at: int, line: Mapping[str, Any]) -> None:
        self._fault(line["phase"], at, line["text"])

    def take_mark(self, at: int, line: Mapping[str, Any]) -> None:
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
        kind, _, sector, length, begin, end, problem = io
        self.ios += 1
        # a read that gave other data did not fail: the oracle has it
        if problem and problem not in OTHER_DATA.values():
            self.errors.append((end, error_sentence(kind, sector, length, problem)))
        if end - begin > self.longest[1] - self.longest[0]:
            self.longest = (begin, end)
        if self.fault_begin is None or end < self.fault_begin:
            return
        if self.fault_end is None:
            self.answered.append(Answered(kind, begin, end, bool(problem)))
        if problem or end - begin > STALL_S * 1e9:
            self.last_trouble = max(self.last_trouble or 0, end)

    def lines_of_fault(self) -> tuple[str, ...]:
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
    **dict.fromkeys(("rows", "lacks", "memory"), Observed.take_coverage),
    "trial": Observed.take_head,
    **dict.fromkeys(("start", "begin", "loading", "hung", "down", "lost"), Observed.take_mark),
    **dict.fromkeys(("cannot", "end", "note"), Observed.take_mark),
    **dict.fromkeys(("kernel", "seen", "state", "drive"), Observed.take_story),
}
"""Who reads which line."""
