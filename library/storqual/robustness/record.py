# SPDX-License-Identifier: Apache-2.0
"""From the stream of a trial to its record: what was proven, what was observed, and its outcome.

`passed` needs the fault proven, everything read back and nothing against it. A trial whose fault was not proven is
`void` whatever else it shows, but for data that is not what it must be: that is a failure with any fault or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from storqual.robustness.images import Checked
from storqual.robustness.observed import Observed
from storqual.robustness.oracle import Violation
from storqual.robustness.suite import Expectation
from storqual_core.data.faults import LOGGING_WAY, WAYS, Fault, Way
from storqual_core.host.kernel_log import find_all
from storqual_core.turns.bench_faults import OTHER_VALUE
from storqual_core.turns.integrity_load import UNREADABLE

Outcome = Literal["passed", "failed", "void"]
_MOST_TOLD = 20


@dataclass(frozen=True)
class Verdict:
    """The outcome of a trial with every reason for it."""

    outcome: Outcome
    reasons: tuple[str, ...]
    violations: tuple[Violation, ...]


def judge(seen: Observed, fault: Fault, way: Way, expect: Expectation, cuts: Checked | None = None) -> Verdict:
    """What the trial shows; `cuts` is what images of simulated power cuts showed, where they are its fault."""
    first, *again = (seen.found.get(turn, []) for turn in sorted({1, *seen.found}))
    dead = _nothing_readable(seen)
    violations = tuple(seen.oracle.judge(first, fault.keeps, *again)) if 1 in seen.whole and not dead else ()
    wrong = [seen.down] if seen.down else []
    wrong += [one.sentence for one in violations]
    wrong += [
        f"{kind}: a read of {length} sectors at {sector} gave other data than what was acknowledged"
        for kind, sector, length, _ in seen.oracle.wrong_reads
    ]
    if cuts is not None:
        wrong += [one.sentence for one in cuts.missing[:_MOST_TOLD]]
        if len(cuts.missing) > _MOST_TOLD:
            wrong.append(f"and {len(cuts.missing) - _MOST_TOLD} more sectors are missing in images of power cuts")
    missing = _void(seen, way)
    if way.name == LOGGING_WAY and (cuts is None or not cuts.points):
        missing.append("no image of a power cut was built")
    if wrong:
        return Verdict("failed", (*wrong, *missing), violations)
    if missing:
        return Verdict("void", tuple(missing), ())
    wrong = [*_against(seen, fault, way, expect)]
    return Verdict("failed" if wrong else "passed", tuple(wrong), ())


def _nothing_readable(seen: Observed) -> bool:
    """Whether the drive gave out no sector at all: then it has not recovered, and of its data nothing is known."""
    codes = {code for _, _, code, _ in seen.found.get(1, [])}
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
    if lacking:
        others = [text for _, name, text in seen.seen if name == OTHER_VALUE]
        told = "; ".join([*others[-1:], *([seen.fault_failed] if seen.fault_failed else [])])
        why = f" ({told})" if told else ""
        return [f"the fault is not proven: no {', no '.join(lacking)}{why}"]
    return []


def _against(seen: Observed, fault: Fault, way: Way, expect: Expectation) -> Iterable[str]:
    """What speaks against a trial whose fault was proven."""
    yield from _not_recovered(seen, way)
    allowed = {"none": False, "any": True, None: fault.io_errors and not way.spares_load}[expect.errors]
    if seen.errors and not allowed:
        _, kind, sector, problem = seen.errors[0]
        yield f"{len(seen.errors)} I/Os failed, none may: the first, {kind} at sector {sector}, with errno {problem}"
    stall = (seen.longest[1] - seen.longest[0]) / 1e9
    if stall > expect.stall:
        yield f"slow recovery: an I/O took {stall:.1f} s, {expect.stall:g} s are allowed"
    recovery = _recovery_s(seen, way)
    if recovery is not None and recovery > expect.recovery:
        yield f"slow recovery: it took {recovery:.1f} s, {expect.recovery:g} s are allowed"
    if not way.downs_bench:
        yield from _state_changes(seen.states, settings=fault.settings_stay)
    for finding in find_all(text.partition("] ")[2] or text for _, text in seen.kernel):
        if finding.kind in ("kernel_bug", "hung_task"):
            yield finding.sentence()


def _recovery_s(seen: Observed, way: Way) -> float | None:
    """Seconds until I/Os went on; None where the bench itself went down, whose load did not."""
    return None if way.downs_bench else seen.recovery_s


def _not_recovered(seen: Observed, way: Way) -> Iterable[str]:
    """What did not come back, or was not to be read back."""
    told = {name for _, name, _ in seen.seen}
    if any(name not in told for name in way.returns):
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
    elif 1 in seen.whole and seen.oracle.missing(seen.found[1]):
        yield f"{seen.oracle.missing(seen.found[1])} written sectors were never read back"


def _state_changes(states: Mapping[str, Mapping[str, Any]], *, settings: bool) -> Iterable[str]:
    """What is not as it was before: drives, identity, sizes, settings, commands under way."""
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


def record_of(
    seen: Observed, verdict: Verdict, trial: Mapping[str, Any], *, start: str, cuts: Checked | None = None
) -> dict[str, Any]:
    """The trial's line in trials.jsonl: what was planned, what it showed, and its timeline in seconds of the load."""
    began = seen.loading or 0
    recovery = _recovery_s(seen, WAYS[str(trial["way"])][1])
    clock = [*((at, "fault", "begin") for at in [seen.fault_begin] if at is not None)]
    clock += [(at, "fault", "end") for at in [seen.fault_end] if at is not None]
    clock += [(at, "proof", f"{name}: {text}") for at, name, text in seen.seen]
    clock += [(at, "drive", text) for at, text in seen.drive]
    clock += [(at, "kernel", text) for at, text in seen.kernel[:200]]
    clock += [(at, "data", f"{kind} read at sector {sector}") for kind, sector, _, at in seen.oracle.wrong_reads[:20]]
    for label, some in (("first", seen.errors[:1]), ("last", seen.errors[-1:] if len(seen.errors) > 1 else [])):
        clock += [
            (at, "error", f"{label} of {len(seen.errors)}: {kind} at sector {sector}, errno {problem}")
            for at, kind, sector, problem in some
        ]
    return {
        **trial,
        "start": start,
        "outcome": verdict.outcome,
        "reasons": list(verdict.reasons),
        "violations": [one.__dict__ for one in verdict.violations],
        "ios": seen.ios,
        "writes": len(seen.oracle.writes),
        "flushes": len(seen.oracle.flushes),
        "errors": len(seen.errors),
        "stall_s": round((seen.longest[1] - seen.longest[0]) / 1e9, 3),
        "recovery_s": None if recovery is None else round(recovery, 3),
        "power_cuts": None
        if cuts is None
        else {"points": cuts.points, "images": cuts.images, "missing": len(cuts.missing)},
        "disks": seen.disks,
        "boot_id": seen.boot_id,
        "slab_bytes": {when: state["slab_bytes"] for when, state in seen.states.items()},
        "residual": {when: state["residual"] for when, state in seen.states.items()},
        "timeline": [[round((at - began) / 1e9, 3), what, text] for at, what, text in sorted(clock)],
    }
