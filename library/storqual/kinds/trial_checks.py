# SPDX-License-Identifier: Apache-2.0
"""From the records of trials to criteria: one for each fault on each adapter, with counts and an exact bound.

What no single trial shows is asked of all of them, compared between the arms: memory that grows with each fault, and
residuals. A trial's own noise may take or give some memory, so growth counts where most trials of a fault show it:
the exact lower bound of their share must be above one half. Residuals are a driver's word on how much less came than
was asked for; some drivers never tell, and that is known where the baseline does not either.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from storqual.kinds.images import DROPPED_FLUSH
from storqual.kinds.kind import PlannedTurn, RepeatedPair, check
from storqual.kinds.oracle import KINDS
from storqual.statistics.counts import least_share, more_often, most_share
from storqual_core.guard.signatures import UNKNOWN, UNSTEADY
from storqual_core.turns.integrity_load import SOURCE_CHANGED, UNCOMPARED, UNREFUSED

Records = Sequence[Mapping[str, Any]]
_OF_DATA = (*KINDS, DROPPED_FLUSH, SOURCE_CHANGED, UNREFUSED, UNCOMPARED)
"""What the first reason of a trial begins with whose data are not what they must be."""
MEMORY, RESIDUAL, STAMPS = "memory", "residual", "stamps"
"""Checks of what lasts, each of one adapter: `memory.<fault>`, `residual`, and `stamps` where they are lost."""


def trial_checks(
    planned: Sequence[PlannedTurn], records: Records, document: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """The checks of a run. What was planned and not made is undecided, unless trials ended at a failure."""
    ended = bool(document["plan"].get("until_failure")) and any(record["outcome"] == "failed" for record in records)
    for (bench, fault, adapter), arms in _by_arm(records, "bench", "fault", "adapter").items():
        judged = _memory({arm: _growths(members) for arm, members in arms.items()})
        if judged is not None:
            yield check(f"{MEMORY}.{fault}", bench, adapter, *judged)
    for (bench, adapter), arms in _by_arm(records, "bench", "adapter").items():
        judged = _residual({arm: _residuals(members) for arm, members in arms.items()})
        if judged is not None:
            yield check(RESIDUAL, bench, adapter, *judged)
    for drive in dict.fromkeys(map(_drive_of, records)):
        lost = _lost_stamps([record for record in records if _drive_of(record) == drive])
        if lost:
            yield check(STAMPS, *drive[:2], "FAIL", f"{lost} (drive {drive[2]})")
    for point in dict.fromkeys((turn.bench, turn.point, turn.adapter) for turn in planned):
        here = [turn for turn in planned if (turn.bench, turn.point, turn.adapter) == point]
        made = [record for record in records if (record["bench"], record["fault"], record["adapter"]) == point]
        left = 0 if ended else len({turn.id for turn in here} - {record["id"] for record in made})
        bench, fault, adapter = point
        yield check(f"trials.{fault}", bench, adapter, *_judged(here, made, left))


def _judged(planned: Sequence[PlannedTurn], records: Records, left: int) -> tuple[str, str]:
    valid = [record for record in records if record["outcome"] != "void"]
    void = [record for record in records if record["outcome"] == "void"]
    arms = list(dict.fromkeys(trial.arm for trial in planned))
    candidate = [record for record in valid if record["arm"] == "candidate" or len(arms) == 1]
    failed = [record for record in candidate if record["outcome"] == "failed"]
    beside = f"; {len(void)} void: {void[0]['reasons'][0]}" if void else ""
    damaged = [record for record in failed if record["reasons"][0].partition(": ")[0] in _OF_DATA]
    if damaged:
        return "FAIL", f"data: {_damage(damaged[0]['reasons'])} (trial {damaged[0]['id']}){beside}"
    if not candidate:
        return "ERROR", f"no trial proved its fault{beside}"
    if left:
        return "INCONCLUSIVE", f"{left} of {len(planned)} trials were not made{beside}"
    counts = failures_sentence(len(failed), len(candidate)) + _images(candidate) + _powerless(candidate)
    if not failed:
        return "PASS", counts + beside
    first = f"first {failed[0]['id']}: {failed[0]['reasons'][0]}"
    if len(arms) == 1 and not planned[0].request.get("baseline_later"):
        return "FAIL", f"{counts}; {first}{beside}"
    pairs = _pairs(valid)
    answer = compare(pairs)
    baseline_text = f"the baseline failed in {sum(other for _, other in pairs)} of {len(pairs)} compared"
    sentence = f"{counts}; {baseline_text}, p = {answer.p:.3g}; {first}{beside}"
    if answer.answer == "regression":
        return "FAIL", f"regression: {sentence}"
    if answer.answer == "known":
        return "PASS", f"known, the baseline fails too: {sentence}"
    return "INCONCLUSIVE", f"too few trials to tell a regression: {sentence}"


def _drive_of(record: Mapping[str, Any]) -> tuple[str, str, str]:
    return record["bench"], record["adapter"], record["drive"]


def _lost_stamps(records: Records) -> str:
    """Where the guard had found its stamps on this drive, and found other data in a trial of the candidate.

    The candidate reads wrongly where the baseline finds the stamps again; it wrote there where its own trial was the
    last one. Otherwise somebody else may have.
    """
    last: Mapping[str, Any] | None = None
    turns = sorted(records, key=lambda record: str(record.get("start", "")))
    for at, record in enumerate(turns):
        refusal = next((text for text in record["reasons"] if UNKNOWN in text or UNSTEADY in text), "")
        if record["outcome"] != "void":
            last = record
        elif refusal and last and record["arm"] == "candidate":
            again = [turn for turn in turns[at:] if turn["arm"] == "baseline" and turn["outcome"] != "void"]
            why = f"trial {again[0]['id']} of the baseline was not" if again else "its own trial was the last one"
            if again or last["arm"] == "candidate":
                return f"trial {record['id']} was refused a drive after {last['id']}, and {why}: {refusal}"
    return ""


DECIDING_PAIRS = 5
"""So many pairs show a regression that fails each time: by the exact test at the level of the last look."""


def undecided_trials(planned: Sequence[PlannedTurn], records: Records) -> Iterator[RepeatedPair]:
    """Trials at which the candidate failed and the baseline did not, as many as are missing to decide about them."""
    by_pair: defaultdict[str, dict[str, PlannedTurn]] = defaultdict(dict)
    for turn in planned:
        by_pair[str(turn.request["pair"])][turn.arm] = turn
    groups: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for name, turns in by_pair.items():
        tested = turns.get("candidate")
        if tested is not None and (len(turns) > 1 or tested.request.get("baseline_later")):
            groups[tested.bench, tested.point, tested.adapter].append(name)
    for names in groups.values():
        here = [turn for name in names for turn in by_pair[name].values()]
        made = [record for record in records if record["pair"] in names]
        failed = [record["pair"] for record in made if record["arm"] == "candidate" and record["outcome"] == "failed"]
        undecided = _judged(here, made, 0)[0] == "INCONCLUSIVE"
        if failed and undecided and len(names) < DECIDING_PAIRS:
            head = names[0].rpartition(".")[0]
            more = [f"{head}.{number}" for number in range(len(names) + 1, DECIDING_PAIRS + 1)]
            yield RepeatedPair(by_pair[failed[0]]["candidate"], more)


def later_baselines(planned: Sequence[PlannedTurn]) -> Iterator[RepeatedPair]:
    """The trials that the baseline was spared so far."""
    made = {turn.request["pair"] for turn in planned if turn.arm == "baseline" and "pair" in turn.request}
    for turn in planned:
        if turn.arm == "candidate" and turn.request.get("baseline_later") and turn.request["pair"] not in made:
            yield RepeatedPair(turn, [str(turn.request["pair"])], ("baseline",))


def _damage(reasons: Iterable[str]) -> str:
    """The first reason of each kind of damage: a write that went elsewhere also lacks where it should be."""
    first: dict[str, str] = {}
    for reason in reasons:
        kind = reason.partition(": ")[0]
        if kind in _OF_DATA:
            first.setdefault(kind, reason)
    return "; ".join(first.values())


def _images(records: Records) -> str:
    """How many images of power cuts were looked at, where they are the fault."""
    cuts = [record["power_cuts"] for record in records if record.get("power_cuts")]
    if not cuts:
        return ""
    images, points = (sum(cut[name] for cut in cuts) for name in ("images", "points"))
    return f"; {images} images of {points} power cuts"


def _powerless(records: Records) -> str:
    """In how many of the trials that removed the bench's power the drive lost its own."""
    cut = [record["drive_lost_power"] for record in records if "drive_lost_power" in record]
    return f"; the drive itself lost power in {sum(map(bool, cut))} of {len(cut)}" if cut else ""


def _pairs(valid: Records) -> list[tuple[bool, bool]]:
    """(candidate failed, baseline failed) of pairs of which both trials are valid, in the order they were made."""
    arms: defaultdict[str, dict[str, bool]] = defaultdict(dict)
    for record in valid:
        arms[record["pair"]][record["arm"]] = record["outcome"] == "failed"
    return [(both["candidate"], both["baseline"]) for both in arms.values() if len(both) == 2]


LEAK_BYTES = 256 << 10
"""A trial that leaves so much more memory in slabs than it found may show a leak."""
_LEAST_TRIALS = 5
"""Fewer trials cannot show that most of all would grow, at 95 %."""
_MOST_SHARE = 0.5


def _by_arm(
    records: Iterable[Mapping[str, Any]], *names: str
) -> Mapping[tuple[str, ...], Mapping[str, list[Mapping[str, Any]]]]:
    groups: defaultdict[tuple[str, ...], defaultdict[str, list[Mapping[str, Any]]]]
    groups = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record["outcome"] != "void":
            groups[tuple(str(record[name]) for name in names)][record["arm"]].append(record)
    return groups


def _growths(records: Iterable[Mapping[str, Any]]) -> list[int]:
    """By how many bytes each trial left slabs larger than it found them."""
    readings = [record.get("slab_bytes", {}) for record in records]
    return [slabs["after"] - slabs["before"] for slabs in readings if slabs.get("after") and slabs.get("before")]


def _memory(arms: Mapping[str, Sequence[int]]) -> tuple[str, str] | None:
    tested = arms.get("candidate", ())
    if len(tested) < _LEAST_TRIALS:
        return None
    grown = {arm: sum(growth > LEAK_BYTES for growth in growths) for arm, growths in arms.items()}
    failed = sum(growth > LEAK_BYTES for growth in tested)
    sentence = (
        f"after {failed} of {len(tested)} trials slabs had grown by more than {LEAK_BYTES >> 10} KiB, "
        f"by {statistics.median(tested) / 1024:.0f} KiB in the median"
    )
    if least_share(failed, len(tested), ALPHA) <= _MOST_SHARE:
        return "PASS", sentence
    baseline = arms.get("baseline", ())
    if baseline and least_share(grown["baseline"], len(baseline), ALPHA) > _MOST_SHARE:
        return "PASS", f"known, the baseline's memory grows too: {sentence}"
    return "FAIL", f"memory leak: {sentence}"


def _residuals(records: Iterable[Mapping[str, Any]]) -> list[tuple[int, int, int]]:
    """What was asked, given and received of each command that ended short and was answered."""
    return [
        (answer["asked"], answer["given"], answer["received"])
        for record in records
        for answer in record.get("residual", {}).values()
        if "received" in answer
    ]


def _residual(arms: Mapping[str, Sequence[tuple[int, int, int]]]) -> tuple[str, str] | None:
    wrong = {arm: [lengths for lengths in answers if lengths[2] != lengths[1]] for arm, answers in arms.items()}
    tested = arms.get("candidate", ())
    if not tested:
        return None
    if not wrong["candidate"]:
        return "PASS", f"{len(tested)} of {len(tested)} commands that ended short were told with what they read"
    requested, given, received = wrong["candidate"][0]
    sentence = (
        f"after {len(wrong['candidate'])} of {len(tested)} commands the driver told other lengths than what was "
        f"read: {requested} bytes were asked for, the drive gave {given}, the driver told {received}"
    )
    if wrong.get("baseline"):
        return "PASS", f"known, the baseline's driver does so too: {sentence}"
    return "FAIL", f"wrong residual: {sentence}"


ALPHA = 0.05


def failures_sentence(failures: int, trials: int) -> str:
    """`0 of 60 failed: less than 5 % at 95 %`; the bound is rounded up, so the sentence is never too good."""
    percent = most_share(failures, trials, ALPHA) * 100
    step = 0.1 if percent < 10 else 1.0
    shown = min(100.0, -(-percent // step) * step)
    return f"{failures} of {trials} failed: less than {shown:.{1 if step < 1 else 0}f} % at 95 %"


Answer = Literal["none", "regression", "known", "undecided"]


@dataclass(frozen=True)
class Comparison:
    """What the trials of both arms say.

    `none` failed in the candidate; `regression`; `known`: the baseline fails as well; `undecided`: the candidate
    alone failed, too seldom to tell. `p` is of the look that decided, or of the last.
    """

    answer: Answer
    p: float
    looks: int


def compare(pairs: Sequence[tuple[bool, bool]], *, looks: int = 4, alpha: float = ALPHA) -> Comparison:
    """Candidate against baseline over trials in the order they were made: `(candidate failed, baseline failed)`.

    The comparison looks at `looks` moments, evenly spaced, and each may spend `alpha / looks`: whoever stops at the
    first finding is wrong at most `alpha` of the time (Bonferroni; exact tests are conservative anyway).
    """
    if not any(candidate for candidate, _ in pairs):
        return Comparison("none", 1.0, 0)
    p = 1.0
    moments = sorted({max(1, round(len(pairs) * look / looks)) for look in range(1, looks + 1)})
    for number, moment in enumerate(moments, start=1):
        seen = pairs[:moment]
        failed, failed_before = (sum(pair[arm] for pair in seen) for arm in (0, 1))
        p = float(more_often((failed, moment), (failed_before, moment)))
        if p <= alpha / looks:
            return Comparison("regression", p, number)
    baseline_fails = any(baseline for _, baseline in pairs)
    return Comparison("known" if baseline_fails else "undecided", p, len(moments))
