# SPDX-License-Identifier: Apache-2.0
"""Evidence beside the numbers: what spoils a whole campaign, and what spoils single points."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from storqual.base.text import plural, telling_line
from storqual.judge.question import ArmLaunches, Judged, Question
from storqual.run import Event, Run, guard_ledger, recovered
from storqual.run.measurements import PointKey
from storqual.run.records import Launch
from storqual_core.host.counters import ERROR_WORDS
from storqual_core.kit.quantities import format_percent
from storqual_core.kit.results import NOT_SHOWN
from storqual_core.turns.precondition import settled_from

Counted = Mapping[tuple[str, str], Sequence[str]]
"""Sentences by bench and batch, and by drive: `("vbench", "s01-b01/0x5000...")`."""


def counted_errors(run: Run) -> Counted:
    """What the bench read from its drives' error counters before and after each batch.

    Healthy commands, retries that nobody saw included, move none of them.
    """
    sentences: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for event in run.events_of("block_finished"):
        batch = event.text("block")
        for node, disk in ((event.fields.get("end") or {}).get("disks") or {}).items():
            drive = str(disk.get("id") or disk.get("wwn") or node)
            for counter, number in (disk.get("errors") or {}).items():
                if number:
                    what = ERROR_WORDS.get(counter, counter)
                    text = f"error counters, drive {drive}: {what}: {number} ({counter}) in batch {batch}"
                    sentences[str(event.bench), f"{batch}/{drive}"].append(text)
    return sentences


def errors_of(question: Question, counted: Counted) -> list[str]:
    """The sentences about a question's drives in the batches of its launches."""
    if not counted:
        return []
    batches = {launch.block for arm in ("baseline", "candidate") for launch in question.launches.every(arm)}
    return sorted(
        sentence
        for batch in batches
        for drive in question.point.drives
        for sentence in counted.get((question.point.bench, f"{batch}/{drive}"), ())
    )


Grown = Mapping[tuple[str, str], Sequence[str]]
"""Sentences by bench and drive."""


def grown_errors(run: Run) -> Grown:
    """What grew between the looks before the campaign and those after it.

    A count that was not there before, or went back, says nothing. Which arm a drive was in when it happened is not
    known: nobody asks drives while they are measured.
    """
    # of several looks the one that says most against the drive: a later look hides nothing that an earlier one saw
    least: dict[tuple[str, str, str], float] = {}
    most: dict[tuple[str, str, str], float] = {}
    for event in run.events_of("environment"):
        for drive, counts in (event.fields.get("smart") or {}).items():
            for name, count in counts.items():
                key = (str(event.bench), drive, name)
                if event.fields["when"] == "before":
                    least[key] = min(count, least.get(key, count))
                else:
                    most[key] = max(count, most.get(key, count))
    sentences: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for key, count in most.items():
        bench, drive, name = key
        if count > least.get(key, count):
            text = f"SMART, drive {drive}: {name} grew from {least[key]} to {count} during the campaign"
            sentences[bench, drive].append(text)
    return sentences


def recorded_errors_of(question: Question, grown: Grown) -> list[str]:
    return [text for drive in question.point.drives for text in grown.get((question.point.bench, drive), ())]


def unsteady_benches(run: Run) -> dict[str, str]:
    """Benches whose drives did not settle before the campaign, and how far they were from it, as a sentence."""
    sentences: dict[str, str] = {}
    for entry in run.preconditioned:
        report = entry.report.get("steady")
        if report is None:
            continue
        sentences.pop(entry.bench, None)
        if not report.get("steady"):
            sentences[entry.bench] = _sentence(report)
    return sentences


def with_steadiness(question: Question, judged: Judged, unsteady: Mapping[str, str]) -> Judged:
    """A pass on drives that still changed decides nothing, unless the arms alternated: then the drift cancels."""
    reason = unsteady.get(question.point.bench)
    alternated = question.criterion.against in ("baseline", "peers") and not question.by_session
    if reason is None or alternated or judged.outcome not in ("PASS", "MARGINAL"):
        return judged
    return replace(judged, outcome="INCONCLUSIVE", reason=f"{reason}; {judged.reason}")


def _sentence(report: Mapping[str, object]) -> str:
    drift, snia = report.get("drift"), report.get("snia")
    text = f"the drives were not steady after {report.get('rounds')} rounds"
    if isinstance(drift, list) and len(drift) == 3:
        change, low, high = (format_percent(float(value), signed=True) for value in drift)
        text += f": drift {change} ({low} to {high}) over {report.get('window_s')} s"
    if isinstance(snia, dict):
        spread, excursion = (format_percent(float(snia[name])) for name in ("range", "excursion"))
        text += f"; SNIA: range {spread}, excursion {excursion}"
    return text


def sectors_outside(run: Run) -> int:
    """Sectors written to disks that no claim covers."""
    return int(guard_ledger(run.events, run.benches)["sectors_written_outside_claims"])


def rig_problems(run: Run) -> list[str]:
    """Sentences that make the run an ERROR whatever was measured: the rig or the guard is not valid."""
    problems = []
    outside = sectors_outside(run)
    if outside:
        problems.append(f"{outside} sectors were written to disks that no claim covers")
    problems += [text for text, why in _against_the_rig(run) if not why]
    return problems + _shared_boots(run) + _changed_inputs(run) + _not_in_effect(run) + several_builds(run)


def recovered_problems(run: Run) -> list[str]:
    """What went wrong while the campaign was under way and was put right when it was resumed: told as a warning."""
    return [f"{text}; {why}" for text, why in _against_the_rig(run) if why]


def _against_the_rig(run: Run) -> Iterator[tuple[str, str]]:
    """What each event says against the rig, and why it no longer does; empty where it still does."""
    # a hang of the candidate is a criterion of its own, which never passes; its kernel may have panicked by it
    hangs = (event for event in run.events_of("bench_hung") if event.text("arm") == "candidate")
    hung = {(event.bench, event.text("session")) for event in hangs}
    for event in run.events:
        if event.kind in ("provision_failed", "kernel_panic") and (event.bench, event.text("session")) in hung:
            continue
        sentence = _sentence_against_the_rig(event)
        if sentence:
            yield f"{event.bench}: {sentence}" if event.bench else sentence, recovered(run, event)


def _changed_inputs(run: Run) -> list[str]:
    """Suite, gate and drops were frozen by digest at plan time: what was changed since decides nothing."""
    return [problem.removeprefix(f"{run.path}/") for problem in run.verify_inputs()]


def several_builds(run: Run) -> list[str]:
    """Arms whose sessions on a bench ran several builds: files were exchanged meanwhile, and no drop has both."""
    builds: defaultdict[tuple[str, str, str], dict[str, None]] = defaultdict(dict)
    for event in run.events_of("session_started"):
        drivers = (event.fields.get("provisioned") or {}).get("drivers") or {}
        read = {name: build.get("srcversion") for name, build in drivers.items()}
        for name, build in {**read, "kernel": event.fields.get("kernel")}.items():
            if build:
                builds[str(event.bench), event.text("arm"), name][str(build)] = None
    changed = [(*key, " and ".join(ran)) for key, ran in builds.items() if len(ran) > 1]
    return [f"{bench}: sessions of the {arm} ran {name} in builds {ran}" for bench, arm, name, ran in changed]


def _not_in_effect(run: Run) -> list[str]:
    """Settings that a session was measured without: read back otherwise than declared, or shown to have no effect."""
    sentences = []
    for event in run.events_of("session_started"):
        for setting in (event.fields.get("provisioned") or {}).get("settings") or ():
            wrong = _setting_problem(setting)
            if wrong:
                where = " of ".join(str(setting[name]) for name in ("name", "drive") if setting.get(name))
                sentences.append(f"{event.bench}: session {event.text('session')}, {where}: {wrong}")
    return sentences


def settings_shown(run: Run) -> dict[str, Any]:
    """How many declared settings of all sessions were shown in effect, and of the others what is said, by name.

    `{"declared": 8, "shown": 6, "others": [{"name", "count", "said"}]}`; a setting counts once a drive and session.
    """
    declared = [setting for setting in _settings(run) if setting.get("declared") is not None]
    not_shown: Counter[tuple[str, str]] = Counter()
    for setting in declared:
        if setting.get("proven") is not True:
            remark = NOT_SHOWN if setting.get("proven") is None else "not in effect"
            not_shown[str(setting.get("name")), remark] += 1
    remarks = [{"name": name, "count": count, "said": remark} for (name, remark), count in sorted(not_shown.items())]
    return {"declared": len(declared), "shown": len(declared) - not_shown.total(), "others": remarks}


def _settings(run: Run) -> Iterator[Mapping[str, Any]]:
    for event in run.events_of("session_started"):
        yield from (event.fields.get("provisioned") or {}).get("settings") or ()


def _setting_problem(setting: Mapping[str, Any]) -> str:
    """Why this setting was not what the drop says; empty when it was, or when nothing speaks against it."""
    declared, value = setting.get("declared"), setting.get("read_back")
    if declared is not None and value != declared:
        return f"declared {declared}, read back {value}"
    if setting.get("proven") is False:
        return f"declared {declared}, but not in effect: {setting.get('proof') or 'no reason was recorded'}"
    return ""


def _sentence_against_the_rig(event: Event) -> str:
    """What an event of that kind says about the rig; empty for one that says nothing."""
    if event.kind == "kernel_panic":
        panic = telling_line(event.text("text")) or "no text was kept"
        return f"the kernel of the {event.fields.get('arm') or 'bench'} panicked: {panic}"
    if event.kind == "provision_failed":
        return f"session {event.text('session')} could not be provisioned: {_first_line(event.text('reason'))}"
    if event.kind == "unplugged":
        return f"drive {event.text('drive')} was unplugged while it was measured"
    if event.kind == "restore_failed":
        return f"the bench was not restored to its state before the run: {_first_line(event.text('reason'))}"
    if event.kind == "failed":
        return f"{_first_line(event.text('message'))} (task {event.fields.get('task') or 'unknown'})"
    return ""


def _shared_boots(run: Run) -> list[str]:
    """Sessions of a drop that costs a reboot must not share a boot: one session would be counted as two."""
    costly = {(session.bench, session.id) for session in run.sessions if session.change == "reboot"}
    boots: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for event in run.events:
        if event.kind == "session_started" and event.bench and (event.bench, event.text("session")) in costly:
            boots[(event.bench, event.text("boot_id"))].append(event.text("session"))
    return [
        f"{bench}: sessions {', '.join(sessions)} ran in one boot, so they are one session"
        for (bench, _), sessions in boots.items()
        if len(set(sessions)) > 1
    ]


def log_findings(run: Run, required: Collection[str] = ()) -> Mapping[str, list[str]]:
    """What the kernel log says, by what it speaks of: a sample's id, or a batch where no launch is named.

    A perfect number with a reset in the middle is no pass. What a rule only warns of is shown in the report, and
    counts here where its kind is `required`.
    """
    sentences: defaultdict[str, list[str]] = defaultdict(list)
    for event in run.events_of("block_finished"):
        batch = event.text("block")
        for finding in event.fields.get("findings") or ():
            if finding.get("severity") == "warning" and finding.get("kind") not in required:
                continue
            line = (finding.get("lines") or [finding.get("line") or "no line was kept"])[0]
            more = int(finding.get("count") or 1) - 1
            launch = finding.get("launch")
            where = batch if launch is None else f"{batch}/{launch}"
            sentences[where].append(
                f"kernel log, {finding.get('kind')}: {line}" + (f" (and {more} more)" if more > 0 else "")
            )
    return sentences


def unfinished_batches(run: Run) -> list[str]:
    """Blocks that did not end as planned, and why."""
    sentences = []
    for event in run.events:
        if event.kind == "block_finished" and event.text("outcome") not in ("", "done"):
            why = _first_line(event.text("message"))
            recovery = recovered(run, event)
            text = f"{event.bench}: batch {event.text('block')} ended {event.text('outcome')}: {why}"
            sentences.append(f"{text}; {recovery}" if recovery else text)
    return sentences


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "no reason was recorded"


LENGTHENED = "ramp_lengthened"
"""The event of a point whose further launches get a longer ramp."""
_FEWEST_LAUNCHES = 8
_FEWEST_FIRST = 4
_FEWEST_SECONDS = 4
_LARGEST_OFF = 0.01
_SPREADS = 3.0

Seconds = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Settling:
    """For how many seconds after their ramp launches of a point still settle: `every_s` each of them.

    `first_s` is what the first launch of a session (after a boot or a switch) needs instead, where it is another.
    """

    every_s: float = 0.0
    first_s: float = 0.0

    def __bool__(self) -> bool:
        return self.every_s > 0 or self.first_s > 0

    def of(self, *, first: bool) -> float:
        """What is added to the ramp of a launch; `first` of its session."""
        return max(self.every_s, self.first_s) if first else self.every_s

    def to_json(self) -> dict[str, float]:
        return asdict(self)


NOTHING = Settling()


def short_ramps(questions: Iterable[Question]) -> list[str]:
    """A sentence for each bench whose launches still settle when they are measured."""
    series: defaultdict[str, list[Sequence[float]]] = defaultdict(list)
    for (bench, _, _), arms in _launches(questions).items():
        series[bench] += _seconds(arms)
    sentences = []
    for bench, seconds in series.items():
        deviation = transient(seconds)
        if deviation is not None:
            cut, off = deviation
            text = (
                f"launches take {cut} s longer than their ramp to settle, and deviate by "
                f"{format_percent(off, signed=True)} until then"
            )
            sentences.append(f"{bench}: {text}; a longer ramp would remove it")
    return sentences


def lengthened_ramps(run: Run) -> list[str]:
    """A sentence for each bench on which points were given a longer ramp while the campaign went on."""
    settlings: defaultdict[str, list[Settling]] = defaultdict(list)
    for (bench, _, _), settling in lengthened(run).items():
        settlings[bench].append(settling)
    sentences = []
    for bench, of_bench in settlings.items():
        longest = max(max(settling.every_s, settling.first_s) for settling in of_bench)
        text = f"launches at {plural(len(of_bench), 'point')} settled for up to {longest:g} s after their ramp"
        sentences.append(f"{bench}: {text}; further launches there had a longer ramp")
    return sentences


def lengthened(run: Run) -> dict[PointKey, Settling]:
    """What was added to the ramps of further launches so far, by point, from the run's events."""
    return {
        (str(event.bench), event.text("adapter"), event.text("point")): Settling(
            float(event.fields.get("every_s") or 0.0), float(event.fields.get("first_s") or 0.0)
        )
        for event in run.events
        if event.kind == LENGTHENED
    }


def settling(questions: Iterable[Question]) -> dict[PointKey, Settling]:
    """What launches of each point need beyond their ramp; points that need nothing are left out.

    A point with few launches is judged by those of its workload on that adapter.
    """
    arms = _launches(questions)
    groups: defaultdict[tuple[str, str, str], list[PointKey]] = defaultdict(list)
    for key in arms:
        groups[key[0], key[1], key[2].partition("[")[0]].append(key)
    by_session = {question.point.key: question.by_session for question in questions}
    settlings: dict[PointKey, Settling] = {}
    for keys in groups.values():
        together = [seconds for key in keys for seconds in _seconds(arms[key])]
        first = _first([arms[key] for key in keys if by_session.get(key)])
        for key in keys:
            series = _seconds(arms[key])
            deviation = transient(series if len(series) >= _FEWEST_LAUNCHES else together)
            needed = Settling(0.0 if deviation is None else float(deviation[0]), first)
            if needed:
                settlings[key] = needed
    return settlings


def _launches(questions: Iterable[Question]) -> dict[PointKey, ArmLaunches]:
    return {question.point.key: question.launches for question in questions}


def _ran(arms: ArmLaunches) -> list[Launch]:
    every_launch = [launch for launches in arms.arms.values() for launch in launches]
    return [
        launch
        for launch in every_launch
        if launch.status == "ok" and sum(launch.seconds) > 0 and len(launch.seconds) >= _FEWEST_SECONDS
    ]


def _seconds(arms: ArmLaunches) -> list[Sequence[float]]:
    return [launch.seconds for launch in _ran(arms)]


def transient(series: Seconds) -> tuple[int, float] | None:
    """How many seconds of the usual launch are a transient, and how far they are off; None for none."""
    if len(series) < _FEWEST_LAUNCHES:
        return None
    length = min(map(len, series))
    means = np.array([[sum(seconds) / len(seconds)] for seconds in series])
    shares = np.array([seconds[:length] for seconds in series]) / means
    # launches that want more than half of their seconds cut have not settled at all: then half is what is known
    cut = settled_from(shares.mean(axis=0).tolist(), group=1) or length // 2
    off = shares[:, :cut].mean(axis=1) / shares[:, cut:].mean(axis=1) - 1
    return (cut, float(off.mean())) if _is_off(off.tolist()) else None


def _first(points: Sequence[ArmLaunches]) -> float:
    """The seconds of the first launch of a session where it runs otherwise than those after it; else 0."""
    ratios, length = [], 0.0
    for arms in points:
        sessions: defaultdict[str, list[Launch]] = defaultdict(list)
        for launch in sorted(_ran(arms), key=lambda launch: launch.n):
            sessions[launch.session].append(launch)
        for first, *later in sessions.values():
            if later:
                after = float(np.mean([np.mean(other.seconds) for other in later]))
                ratios.append(float(np.mean(first.seconds)) / after - 1)
                length = max(length, float(len(first.seconds)))
    return length if len(ratios) >= _FEWEST_FIRST and _is_off(ratios) else 0.0


def _is_off(off: Sequence[float]) -> bool:
    """Whether shares differ from none by more than a percent, and by more than chance."""
    error = float(np.std(off, ddof=1)) / np.sqrt(len(off))
    return bool(abs(np.mean(off)) > max(_LARGEST_OFF, _SPREADS * error))
