# SPDX-License-Identifier: Apache-2.0
"""Keywords about a campaign: drops and settings that were in place, workloads, coverage, evidence, the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from robot.api import SkipExecution, logger
from robot.api.deco import keyword

from storqual.base.text import fits_name, plural, telling_line
from storqual.checks.seen import (
    AboutSubject,
    NotJudgedError,
    RecordedBench,
    UndecidedError,
    fail_with,
    looked_at,
    message_of,
    not_judged_with,
    not_judged_without,
    some,
)
from storqual.inputs.fields import limit_value
from storqual.inputs.suite import EffectiveCriterion
from storqual.judge.answers import answer, confirm
from storqual.judge.numbers import corrected
from storqual.judge.question import Judged, looks_of, metrics_of, questions_of
from storqual.metrics import METRICS
from storqual.run import PlannedPoint, Run, guard_ledger, read_launches, recovered
from storqual.run.files import file_digest, read_object
from storqual.run.measurements import measurements_at
from storqual.run.turns import turns_of
from storqual_core.kit.results import NOT_SHOWN

if TYPE_CHECKING:
    from storqual.judge.question import Judged
    from storqual.run import PlannedPoint


_MOST = 12
"""Problems told in a message; the log has all of them."""


class Percent(float):
    """A fraction, written with its sign: ``3%``."""

    @classmethod
    def parse(cls, value: str) -> Percent:
        """Read `3%`; Robot Framework shows the ValueError of anything else."""
        from storqual_core.kit.quantities import parse_percent  # noqa: PLC0415 - a converter is called rarely

        return cls(parse_percent(value))


class CampaignKeywords(AboutSubject):
    """Each keyword reads the run directory only; none of them needs a bench.

    What is wrong with the drops fails; what is wrong with the campaign itself (a session that was not provisioned, a
    point that was not measured, evidence that is gone) is not judged.
    """

    @property
    def _recorded(self) -> RecordedBench:
        if not isinstance(self.subject, RecordedBench):
            raise NotJudgedError("this keyword speaks of a run directory; name one with run=...")
        return self.subject

    @keyword
    def no_session_should_have_failed_to_be_provisioned(self) -> None:
        """Sessions started; none failed to be provisioned, none was lost, and no kernel panicked.

        What a resumed campaign recovered from is not a problem: a session that started later, or was lost and all
        of it measured in another.
        """
        reason_fields = {"provision_failed": "reason", "session_lost": "reason", "kernel_panic": "text"}
        not_judged_with(
            f"{event.kind.replace('_', ' ')} ({event.text('session') or event.bench}): "
            f"{telling_line(event.text(name)) or 'no reason was recorded'}"
            for kind, name in reason_fields.items()
            for event in self._events(kind)
            if not recovered(self._recorded.run, event)
        )
        started = {event.text("session") for event in self._events("session_started")} - {""}
        not_judged_without(len(started), f"no session started on {self.subject.bench}")
        looked_at(f"sessions that started: {some(sorted(started))}")

    @keyword
    def each_drop_should_have_run_one_build(self) -> None:
        """All sessions of an arm ran one kernel and one build of each driver: two builds of a name are two drops.

        Every session tells a build of each driver under test. Files of a machine have no driver of their own.
        """
        run, problems, builds = self._recorded.run, [], []
        arms = {session.id: session.arms for session in run.sessions if session.bench == self.subject.bench}
        for arm in run.arms:
            started = [
                event
                for event in self._events("session_started")
                if arm in (event.text("arm"), *arms.get(event.text("session"), ()))
            ]
            kernels = sorted({event.text("kernel") or "no kernel recorded" for event in started})
            if not started or "no kernel recorded" in kernels:
                problems.append(f"{arm}: there was nothing to check: no session of it says what it ran")
            elif len(kernels) > 1:
                problems.append(f"{arm}: its sessions ran several kernels: {', '.join(kernels)}")
            drivers = sorted({adapter.driver for adapter in self.subject.expected.values() if adapter.driver})
            problems += _no_build(arm, started, drivers) or _several_builds(arm, started)
            builds.append(
                f"{arm}: kernel {some(kernels)}{builds_phrase(started, drivers)} in {plural(len(started), 'session')}"
            )
        not_judged_with(problems)
        not_judged_without(len(builds), "the run has no arms")
        looked_at("; ".join(builds))

    @keyword
    def every_setting_should_be_read_back_and_none_shown_without_effect(
        self, arm: Literal["both", "baseline", "candidate"] = "both"
    ) -> None:
        """Every declared setting was read back as declared in every session, and no proof contradicts it.

        How many were shown in effect, and which were read back only, is told. Skipped where the drops declare none.
        """
        problems = []
        settings = list(self._recorded.settings("" if arm == "both" else arm))
        declared = [setting for _, setting in settings if setting.get("declared") is not None]
        if not declared:
            started = self._events("session_started")
            if started and not _declares(self._recorded.run.document, self.subject.bench):
                raise SkipExecution("the drops of the plan declare no setting of this bench")
            raise NotJudgedError("there was nothing to check: no session tells a declared setting")
        shown = sum(setting.get("proven") is True for setting in declared)
        rest = sorted({str(setting.get("name")) for setting in declared if setting.get("proven") is not True})
        summary = f"{shown} of {len(declared)} settings shown in effect"
        looked_at(f"{summary}; {NOT_SHOWN}: {some(rest)}" if rest else summary)
        for session, setting in settings:
            target = setting.get("drive") or setting.get("adapter") or "the bench"
            where = f"{session}: {setting.get('name')} of {target}"
            value, read_back = setting.get("declared"), setting.get("read_back")
            if value is not None and value != read_back:
                problems.append(f"{where} is {read_back}, {value} is declared")
            elif setting.get("proven") is False:
                problems.append(f"{where} is not in effect: {setting.get('proof')}")
        fail_with(_first(problems))

    @keyword
    def workload_should_be_no_worse_than_baseline(
        self, workload: str, metric: str = "iops", margin: Percent | None = None, adapter: str = "*"
    ) -> None:
        """At every point of the workload a loss of ``margin`` is excluded, by the judge's own interval.

        ``workload`` and ``adapter`` are names or patterns, ``margin`` is written with its sign and is the plan's
        without it. A loss that is shown fails; data that does not decide it is INCONCLUSIVE.

        | `Workload Should Be No Worse Than Baseline` | rand_* | iops | margin=3% |
        | `Workload Should Be No Worse Than Baseline` | * | cpu_us_per_io | margin=20% | adapter=fusion |
        """
        self._judge(workload, metric, adapter, margin=margin)

    @keyword
    def workload_should_reach(self, workload: str, metric: str, least: str, adapter: str = "*") -> None:
        """The candidate reaches a limit at every point of the workload.

        | `Workload Should Reach` | seq_read | throughput_mb_s | 80 MiB/s |
        """
        self._judge(workload, metric, adapter, least=least)

    @keyword
    def workload_should_not_exceed(self, workload: str, metric: str, most: str, adapter: str = "*") -> None:
        """The candidate stays within a limit at every point of the workload.

        | `Workload Should Not Exceed` | rand_read | latency_p99_us | 20 ms |
        """
        self._judge(workload, metric, adapter, most=most)

    def _judge(self, workload: str, metric: str, adapter: str, **limits: Any) -> None:  # noqa: ANN401 - of Threshold
        from storqual.checks.campaign_keywords import Threshold, judge_points  # noqa: PLC0415 - scipy is slow to import

        recorded = self._recorded
        judged = list(
            judge_points(recorded.run, recorded.bench, workload, Threshold(metric, **limits), adapter=adapter)
        )
        for point, judgement in judged:
            logger.info(f"{point.adapter} {point.point}: {judgement.outcome}: {judgement.reason}")
        fail_with(_first(_reasons(judged, "FAIL")))
        not_judged_with(_first([*_reasons(judged, "ERROR"), *_reasons(judged, "SKIPPED")]))
        undecided = _first(_reasons(judged, "INCONCLUSIVE"))
        if undecided:
            raise UndecidedError(message_of(undecided))
        looked_at(f"{metric} at {plural(len(judged), 'point')}")

    @keyword
    def every_planned_point_should_be_measured(self) -> None:
        """Every arm has a finished sample at every planned point, but for points skipped with a reason.

        Every trial and every run of a program has its record.
        """
        run, bench = self._recorded.run, self._recorded.bench
        planned = [point for point in run.plan.points if point.bench == bench and not point.skipped]
        turns = turns_of(run)
        own_turns = [turn for turn in turns.planned if turn.bench == bench]
        if not planned and not own_turns and any(point.bench == bench for point in run.plan.points):
            raise SkipExecution("every point of this bench was planned as skipped, each with its reason")
        not_judged_without(len(planned) + len(own_turns), f"nothing is planned on {bench}")
        ran = (launch for launch in read_launches(run.path) if launch.bench == bench and launch.status == "ok")
        seen = {(launch.adapter, launch.point, launch.arm) for launch in ran}
        missing = [
            f"{point.adapter} {point.point}: no finished launch of the {arm}"
            for point in planned
            for arm in run.arms
            if (point.adapter, point.point, arm) not in seen
        ]
        missing += [f"{turn.kind} {turn.id} has no record" for turn in turns.left if turn.bench == bench]
        not_judged_with(_first(missing))
        if planned:
            looked_at(f"{plural(len(planned), 'point')}, each with finished launches of {' and '.join(run.arms)}")
        if own_turns:
            looked_at(f"{len(own_turns)} trials and runs of programs, each with its record")

    @keyword
    def nothing_should_be_written_outside_claims(self) -> None:
        """The guard counted no sector written to a disk that is neither claimed nor a system disk.

        Skipped for files as targets, because the disks of their machine are not counted.
        """
        run, bench = self._recorded.run, self._recorded.bench
        events = [event for event in run.events if event.bench in (None, bench)]
        counted = guard_ledger(events, {bench: run.benches[bench]})
        sectors, disks = counted["sectors_written_outside_claims"], counted["disks"]
        if sectors:
            raise NotJudgedError(f"{sectors} sectors were written to disks that no claim covers")
        if not counted["applies"]:
            raise SkipExecution("files were planned as targets: the disks of their machine are not counted")
        not_judged_without(len(disks), f"no batch tells of the disks of {bench}")
        uncounted = [
            event.text("block")
            for event in events
            if event.kind == "block_finished" and not (event.fields.get("end") or {}).get("disks")
            if not turns_of(run).of_batch(event.text("block")) and not recovered(run, event)
        ]
        not_judged_with([f"batches that tell of no disk: {some(uncounted)}"] if uncounted else [])
        claimed = sum(disk["claimed"] for disk in disks)
        looked_at(f"{len(disks)} disks were counted, {claimed} of them claimed")
        # a bench that a fault or a program took down tells nothing at that turn's end, and is counted with the next
        silent = [
            event.text("turn")
            for event in events
            if event.kind == "turn_finished" and not event.fields["end"]["disks"]
        ]
        if silent:
            looked_at(f"turns whose end tells of no disk: {some(silent)}")

    @keyword
    def what_was_provisioned_should_be_put_back(self) -> None:
        """Every value that was saved before the first write was restored and read back."""
        last = next((event for event in reversed(self._events("restored", "restore_failed"))), None)
        if last is None:
            raise NotJudgedError(f"no record says that {self.subject.bench} was restored")
        if last.kind == "restore_failed":
            raise NotJudgedError(
                f"{self.subject.bench} was not restored to its state before the run: {last.text('reason')}"
            )
        settings = last.fields.get("settings")
        # the restore itself fails for a value that does not read back, and knows which may be named otherwise
        values = "nothing had been changed" if not settings else f"{plural(len(settings), 'value')} read back"
        looked_at(f"the last restore succeeded ({last.time}){'' if settings is None else f': {values}'}")

    @keyword
    def inputs_should_be_as_planned(self) -> None:
        """Suite, gate, drops and inventory in the run directory have the digests that they were planned with."""
        run = self._recorded.run
        inputs = run.document.get("inputs") or {}
        not_judged_without(len(inputs), "the run names no inputs")
        not_judged_with(run.verify_inputs())
        looked_at(f"digests of {some(inputs, 9)}")

    @keyword
    def evidence_should_be_complete(self) -> None:
        """Every raw file that a sample or record of this bench names is in the run directory, with its digest."""
        run, bench = self._recorded.run, self._recorded.bench
        launches = [launch for launch in read_launches(run.path) if launch.bench == bench]
        records = [record for record in turns_of(run).records if record["bench"] == bench]
        files = {raw.path: raw.sha256 for launch in launches for raw in launch.raw}
        files |= {str(raw["path"]): str(raw["sha256"]) for record in records for raw in record["raw"]}
        not_judged_without(len(files), f"nothing that was measured on {bench} names a raw file")
        without = (launch.id for launch in launches if launch.status == "ok" and not launch.raw)
        bare = [f"launch {name} names no raw file" for name in without]
        bare += [f"{record['kind']} {record['id']} names no raw file" for record in records if not record["raw"]]
        not_judged_with(_first(bare))
        problems = (_evidence(run.path, path, digest) for path, digest in files.items())
        not_judged_with(_first(problem for problem in problems if problem))
        looked_at(f"digests of {len(files)} raw files of {len(launches) + len(records)} samples and records")

    @keyword
    def verdict_should_permit_signing(self) -> None:
        """The run was judged, it passed, and every hole in its coverage has a reason."""
        path = self._recorded.run.path
        if not (path / "verdict.json").is_file():
            raise NotJudgedError("this run was not judged yet")
        verdict = read_object(path, "verdict.json")
        problems = []
        if verdict.get("exit_code") != 0:
            problems.append(
                f"the outcome is {verdict.get('outcome')}: {verdict.get('reason') or 'no reason is given'}"
            )
        holes = [hole for hole in (verdict.get("coverage") or {}).get("skipped") or () if not hole.get("reason")]
        problems += [
            f"{hole.get('adapter')} {hole.get('point')} was not measured, and no reason was recorded"
            for hole in holes
        ]
        fail_with(_first(problems))
        looked_at(f"the verdict is {verdict.get('outcome')}")

    def _events(self, *kinds: str) -> list[Any]:
        recorded = self._recorded
        return [
            event for event in recorded.run.events if event.kind in kinds and event.bench in (None, recorded.bench)
        ]


def _declares(document: Mapping[str, Any], bench: str) -> bool:
    """Whether any configuration of the plan declares something of a bench that is read back."""
    configurations = (document.get("provision") or {}).get(bench) or {}
    return any(spec.get(section) for spec in configurations.values() for section in _DECLARING)


_DECLARING = ("driver", "firmware", "nvram", "drive", "raid", "os", "multipath")


def _reasons(judged: Iterable[tuple[PlannedPoint, Judged]], outcome: str) -> list[str]:
    return [f"{point.adapter} {point.point}: {ended.reason}" for point, ended in judged if ended.outcome == outcome]


def _first(problems: Iterable[str]) -> list[str]:
    """The first problems and how many more there are: a message stays readable, the log has all of them."""
    every = list(problems)
    for problem in every[_MOST:]:
        logger.info(problem)
    more = [f"and {len(every) - _MOST} more in the log"] if len(every) > _MOST else []
    return [*every[:_MOST], *more]


def builds_phrase(started: Iterable[Any], drivers: Iterable[str]) -> str:
    """Which drivers were compared by their builds; one without a version (it is part of the kernel) only by that."""
    builds = {
        name
        for event in started
        for name, build in ((event.fields.get("provisioned") or {}).get("drivers") or {}).items()
        if any((build or {}).values())
    }
    shown, bare = [name for name in drivers if name in builds], [name for name in drivers if name not in builds]
    sentence = f" and builds of {some(shown)}" if shown else ""
    return sentence + (f" ({some(bare)}: no version is shown, only the kernel was compared)" if bare else "")


def _no_build(arm: str, started: Iterable[Any], drivers: Iterable[str]) -> list[str]:
    """Drivers under test of which a session of an arm tells nothing."""
    silent: dict[str, list[str]] = {}
    for event in started:
        drivers_recorded = (event.fields.get("provisioned") or {}).get("drivers") or {}
        for name in drivers:
            if not drivers_recorded.get(name):
                silent.setdefault(name, []).append(event.text("session"))
    return [f"{arm}: no build of {name} is recorded in session {some(where)}" for name, where in silent.items()]


def _several_builds(arm: str, started: Iterable[Any]) -> list[str]:
    builds: dict[str, set[str]] = {}
    for event in started:
        for name, build in ((event.fields.get("provisioned") or {}).get("drivers") or {}).items():
            builds.setdefault(name, set()).add(str(build.get("srcversion") or build.get("version") or ""))
    return [
        f"{arm}: {name} was not one build: {', '.join(sorted(versions))}"
        for name, versions in builds.items()
        if len(versions) > 1
    ]


def _evidence(run: Path, name: str, digest: str) -> str:
    try:
        present = file_digest(run, name)
    except OSError:
        return f"{name} is missing"
    return "" if present == digest else f"{name} has digest {present}, expected {digest}"


@dataclass(frozen=True)
class Threshold:
    """What is asked of a metric: no loss of `margin` (a fraction) against the baseline, or limits with units."""

    metric: str
    margin: float | None = None
    least: str | None = None
    most: str | None = None

    def criterion(self, plan: Mapping[str, object]) -> EffectiveCriterion:
        """The judge's form of it. Raises ValueError for a limit in a unit that does not fit."""
        margin = self.margin if self.margin is not None else _fraction(plan, "margin", 0.03)
        return EffectiveCriterion(
            id=self.metric,
            metric=self.metric,
            against="absolute" if self.least or self.most else "baseline",
            margin=margin,
            indifference=min(_fraction(plan, "indifference", 0.01), margin / 2),
            marginal=None,
            alpha=_fraction(plan, "alpha", 0.05),
            min=None if self.least is None else limit_value(self.least, self.metric),
            max=None if self.most is None else limit_value(self.most, self.metric),
            required=True,
            source="a hand-written suite",
        )


def _fraction(plan: Mapping[str, object], name: str, otherwise: float) -> float:
    value = plan.get(name)
    return float(value) if isinstance(value, (int, float)) else otherwise


def judge_points(
    run: Run, bench: str, workload: str, threshold: Threshold, *, adapter: str = "*"
) -> Iterator[tuple[PlannedPoint, Judged]]:
    """Every planned point of `workload` (a workload or point name, `*` and `?` allowed) with its answer.

    Raises NotJudgedError for a metric that does not exist and a workload that was not planned.
    """
    if threshold.metric not in METRICS:
        raise NotJudgedError(f"there is no metric {threshold.metric!r}; known are {', '.join(sorted(METRICS))}")
    points = [
        point
        for point in run.plan.points
        if point.bench == bench
        and not point.skipped
        and fnmatchcase(point.adapter, adapter)
        and any(fits_name(name, workload) for name in (point.workload, point.point))
    ]
    if not points:
        raise NotJudgedError(f"no planned point on {bench} is {workload!r} of adapter {adapter!r}")
    criterion = threshold.criterion(run.plan.fields)
    criteria = [(point, criterion) for point in points]
    questions = questions_of(run, criteria, measurements_at(run, metrics_of(criteria)).points)
    looks = looks_of(run)
    judged = corrected(questions, confirm(questions, answer(questions, looks, {}), looks, {}))
    return zip(points, judged, strict=True)
