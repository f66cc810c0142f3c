# SPDX-License-Identifier: Apache-2.0
"""Whether a bench answers: what hung in which arm, against how much that arm and the other one did.

One hang fails a candidate where the baseline has done at least as much and never hung. A bench that hangs in both
arms says nothing about either.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from storqual.base.text import telling_line
from storqual.kinds.trial_checks import failures_sentence
from storqual.run.records import Check, Event, read_launches
from storqual.run.run import Run
from storqual.run.turns import COUNTED, turns_of

ANSWERS = "bench answers"
_CANDIDATE, _BASELINE = "candidate", "baseline"


def hang_checks(run: Run) -> list[Check]:
    """The criterion of each bench that hung, or had to be brought back; none for one that never did."""
    benches = dict.fromkeys(event.bench for event in run.events if event.kind == "bench_hung" and event.bench)
    return [Check.from_json(_check(run, bench)) for bench in benches]


def _check(run: Run, bench: str) -> dict[str, object]:
    hangs = [event for event in run.events if event.kind == "bench_hung" and event.bench == bench]
    outcome, reason = _judged(run, bench, hangs)
    where = {"id": ANSWERS, "bench": bench, "adapter": None}
    return {
        **where,
        "outcome": outcome,
        "reason": "; ".join((reason, *_evidence(run, bench, hangs))),
        "source": COUNTED,
    }


def _exposure(run: Run, bench: str, hangs: Sequence[Event]) -> Counter[str]:
    """How many launches, trials and programs each arm has made, those that hung included."""
    arms = {launch.id: launch.arm for launch in read_launches(run.path) if launch.bench == bench}
    arms.update({str(turn["id"]): str(turn["arm"]) for turn in turns_of(run).records if turn["bench"] == bench})
    made = Counter(arms.values())
    # what hung and was cut off by it has left neither sample nor record
    made.update(event.text("arm") for event in hangs if event.fields.get("turn") not in arms)
    return made


def _judged(run: Run, bench: str, hangs: Sequence[Event]) -> tuple[str, str]:
    hung: Counter[str] = Counter(event.text("arm") for event in hangs)
    made = _exposure(run, bench, hangs)
    if not hung[_CANDIDATE]:
        return "PASS", f"the candidate made {made[_CANDIDATE]} turns; the baseline hung in {_share(hung, made)}"
    counts = f"the bench hung under the candidate: {failures_sentence(hung[_CANDIDATE], made[_CANDIDATE])}"
    if _BASELINE not in run.arms:
        return "FAIL", counts
    if hung[_BASELINE]:
        return "ERROR", f"the bench hangs in both arms: {counts}; in the baseline {_share(hung, made)}"
    more = made[_CANDIDATE] - made[_BASELINE]
    if more > 0:
        without = f"the baseline made {made[_BASELINE]} turns and did not hang"
        return "INCONCLUSIVE", f"not decided: {counts}; {without}, {more} more of it are needed"
    return "FAIL", f"{counts}; the baseline did not hang in {made[_BASELINE]} turns"


def _share(hung: Counter[str], made: Counter[str]) -> str:
    return f"{hung[_BASELINE]} of {made[_BASELINE]} turns"


def _evidence(run: Run, bench: str, hangs: Sequence[Event]) -> Iterator[str]:
    """What ended the first hang, and the line in which the bench itself names the driver under test."""
    first = next((event for event in hangs if event.text("arm") == _CANDIDATE), hangs[0])
    where = first.text("turn") or first.text("block") or f"the preparation of session {first.text('session')}"
    ended = first.text("ended_by") or "nothing: the bench is out of service"
    yield f"first in {where}, ended after {first.fields['seconds']:.0f} s by {ended}"
    adapters = (run.benches.get(bench) or {}).get("adapters") or {}
    drivers = {str(adapter.get("driver") or "") for adapter in adapters.values()} - {""}
    for event in run.events_of("recovery_step"):
        if (event.bench, event.text("block")) != (bench, first.text("block")):
            continue
        lines = event.text("evidence").splitlines()
        named = [line for line in lines if any(driver in line for driver in drivers)]
        if named:
            yield f"the bench names a driver under test: {telling_line(named[0])}"
            return
