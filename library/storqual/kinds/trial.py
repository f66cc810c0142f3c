# SPDX-License-Identifier: Apache-2.0
"""Trials: a fault under load. From what a bench told to the record, and whether the record is one.

Every line of a trial is kept before anything is made of it, those of the control node (its fault, a bench that went
down) with the others. The first says whose it is. A simulated power cut rests on the log of the drive's writes too:
of that the sectors are kept with the sequences of their writes, for the data are tags, which say nothing more.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from storqual.kinds.images import CheckedImages, Logged, check_power_cuts
from storqual.kinds.kind import Kind, PlannedTurn, Raw
from storqual.kinds.record import Observed, judge, values_of
from storqual.kinds.trial_checks import trial_checks, undecided_trials
from storqual.kinds.trial_shown import not_reached, planned_faults, show_trials, tried_faults
from storqual_core.data.faults import LOGGING_WAY, WAYS
from storqual_core.turns.integrity_load import FILL_SECTORS
from storqual_core.turns.load_sweep import most_sectors, span_of

STREAM, WRITES = "stream", "writes"
"""What the raw files of a trial are called: all that was told of it, and the log of its drive's writes."""
_CLOCK_SLACK_S = 1.0
"""How far the bench's clock may be from what the control node takes it for, by the delay of lines on their way."""
_MOST_BESIDE = 200_000
"""Lines of a stream that are no I/Os: the kernel's, those of faults, of states."""
_REQUEST_FIELDS = ("pair", "fault", "way", "seed", "at_s", "away_s", "load_s")


def head_line(turn: PlannedTurn, *, tag: str, start: str) -> dict[str, Any]:
    """The first line of a stream: whose it is. `tag` is that of the sectors, `start` an ISO time."""
    return {"kind": "trial", "run": turn.run, "trial": turn.id, "bench": turn.bench, "tag": tag, "start": start}


def derive_trial(turn: PlannedTurn, raw: Raw) -> dict[str, Any]:
    seen = Observed()
    for line in held_to_load(raw.lines(STREAM) or (), turn.request["load"]):
        seen.take(line)
    whose = {name: seen.head.get(name) for name in ("run", "trial", "bench")}
    if whose != {"run": turn.run, "trial": turn.id, "bench": turn.bench}:
        raise ValueError(f"found the stream of trial {whose['trial']} of run {whose['run']}")
    fault, way = WAYS[turn.request["way"]]
    written = raw.lines(WRITES)
    log = None if written is None else [Logged.from_json(line) for line in written]
    cuts = power_cuts(seen, int(turn.request["seed"]), log) if log is not None and way.name == LOGGING_WAY else None
    verdict = judge(seen, fault, way, turn.request["expect"], cuts)
    request_fields = {name: turn.request[name] for name in _REQUEST_FIELDS}
    head = {name: str(seen.head[name]) for name in ("start", "tag")}
    return {**request_fields, **head, **values_of(seen, verdict, way, cuts, turn.request["load"].get("sweep"))}


def power_cuts(seen: Observed, seed: int, log: Sequence[Logged]) -> CheckedImages | None:
    """What images of power cuts show that are built from a log; None where it was never inserted."""
    inserted = next((at for at, name, _ in seen.seen if name == "inserted"), None)
    if inserted is None:
        return None
    return check_power_cuts(log, seen.oracle, seed=seed, since=inserted + int(_CLOCK_SLACK_S * 1e9))


def held_to_load(lines: Iterable[Mapping[str, Any]], load: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Lines whose I/Os are no longer than those of the load or its fill; a turn reads its region back once at most.

    The oracle keeps each sector: one line of a stream that was made up could else take all memory, or years. Raises
    ValueError for any other.
    """
    sweep = load.get("sweep")
    most, left = max(*load["sizes"], FILL_SECTORS), dict[Any, int]()
    whole = load["sectors"]
    if sweep is not None:
        most = max(most, 2 * span_of(sweep["most"]))
        whole = most_sectors(sweep["most"]) + whole * (1 + len(sweep["beside"]) + len(sweep.get("layers", ())))
    beside = 0
    for line in lines:
        beside += line["kind"] != "io"
        if beside > _MOST_BESIDE:
            raise ValueError(f"more than {_MOST_BESIDE} lines that are no I/Os")
        for _, _, _, length, *_ in line["ios"] if line["kind"] == "io" else ():
            if length > most:
                raise ValueError(f"an I/O of {length} sectors, the longest of the load has {most}")
        if line["kind"] == "found":
            turn = line["turn"]
            left[turn] = left.get(turn, whole) - sum(abs(run[1]) for run in line["runs"])
            if left[turn] < 0:
                raise ValueError("more sectors were read back than the region of the load has")
        yield line


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _list_of(what: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(what, value))


def _is_entry(value: object) -> bool:
    """Seconds of the load, what, and a text."""
    return isinstance(value, list) and len(value) == 3 and _is_number(value[0]) and all(map(_is_text, value[1:]))


RECORD: Mapping[str, tuple[Callable[[object], bool], str]] = {
    **dict.fromkeys(("id", "pair", "session", "arm", "adapter", "fault", "bench"), (_is_text, "text")),
    "outcome": (lambda value: value in ("passed", "failed", "void"), "passed, failed or void"),
    "reasons": (_list_of(_is_text), "a list of texts"),
    "violations": (_list_of(lambda value: isinstance(value, dict)), "a list of violations"),
    "recovery_s": (lambda value: value is None or _is_number(value), "seconds or null"),
    "timeline": (_list_of(_is_entry), "a list of [seconds, what, text]"),
}
"""What is read of a record, by criteria, matrix and report; what else is in it is evidence for people."""


def record_problems(record: Mapping[str, Any]) -> list[str]:
    """All that is wrong with the shape of a record."""
    problems = [f"{name}: is missing" for name in RECORD if name not in record]
    problems += [
        f"{name}: found {record[name]!r}, expected {expected}"
        for name, (fits, expected) in RECORD.items()
        if name in record and not fits(record[name])
    ]
    if not problems and record["outcome"] != "passed" and not record["reasons"]:
        problems.append(f"reasons: found none, expected why it is {record['outcome']}")
    return problems


TRIAL = Kind(
    name="trial",
    derive=derive_trial,
    problems=record_problems,
    checks=trial_checks,
    show=show_trials,
    plan=planned_faults,
    summary=tried_faults,
    unreached=not_reached,
    repeats=undecided_trials,
    absent=("Faults", "no drive, cable or power was lost under I/O; a suite's trials cause faults"),
)
