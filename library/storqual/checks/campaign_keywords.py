# SPDX-License-Identifier: Apache-2.0
"""Keywords about a campaign: drops and settings that were in place, workloads, coverage, evidence, the verdict."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from robot.api import logger
from robot.api.deco import keyword

from storqual.base.text import telling_line
from storqual.checks.seen import (
    AboutSubject,
    NotJudgedError,
    RecordedBench,
    UndecidedError,
    fail_with,
    not_judged_with,
)
from storqual.run import guard_ledger, read_launches, recovered

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
    def every_session_should_have_been_provisioned(self) -> None:
        """No session failed to be provisioned, none was lost, and no kernel panicked.

        What a resumed campaign recovered from is no trouble: a session that started later, or was lost and all
        of it measured in another.
        """
        told = {"provision_failed": "reason", "session_lost": "reason", "kernel_panic": "text"}
        not_judged_with(
            f"{event.kind.replace('_', ' ')} ({event.text('session') or event.bench}): "
            f"{telling_line(event.text(name)) or 'no reason was recorded'}"
            for kind, name in told.items()
            for event in self._events(kind)
            if not recovered(self._recorded.run, event)
        )

    @keyword
    def each_drop_should_have_run_one_build(self) -> None:
        """All sessions of an arm ran one kernel and one build of each driver: two builds of a name are two drops."""
        problems = []
        for arm in self._recorded.run.arms:
            started = [event for event in self._events("session_started") if event.text("arm") == arm]
            kernels = sorted({event.text("kernel") for event in started})
            if len(kernels) > 1:
                problems.append(f"{arm}: its sessions ran several kernels: {', '.join(kernels)}")
            problems += _several_builds(arm, started)
        not_judged_with(problems)

    @keyword
    def every_setting_should_be_in_effect(self, arm: Literal["both", "baseline", "candidate"] = "both") -> None:
        """Every declared setting was read back as declared in every session, and no proof says otherwise."""
        problems = []
        for session, setting in self._recorded.settings("" if arm == "both" else arm):
            target = setting.get("drive") or setting.get("adapter") or "the bench"
            where = f"{session}: {setting.get('name')} of {target}"
            declared, read_back = setting.get("declared"), setting.get("read_back")
            if declared is not None and declared != read_back:
                problems.append(f"{where} is {read_back}, {declared} is declared")
            elif setting.get("proven") is False:
                problems.append(f"{where} is not in effect: {setting.get('proof')}")
        fail_with(_first(problems))

    @keyword
    def workload_should_be_no_worse_than_baseline(
        self, workload: str, metric: str = "iops", margin: Percent | None = None, adapter: str = "*"
    ) -> None:
        """At every point of the workload a loss of ``margin`` is excluded, by the judge's own interval.

        ``workload`` and ``adapter`` are names or patterns, ``margin`` is written with its sign and is the plan's
        without it. A shown loss fails; data that decides nothing is INCONCLUSIVE.

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
        from storqual.checks.comparison import Threshold, judge_points  # noqa: PLC0415 - scipy is slow to import

        recorded = self._recorded
        judged = list(
            judge_points(recorded.run, recorded.bench, workload, Threshold(metric, **limits), adapter=adapter)
        )
        for point, one in judged:
            logger.info(f"{point.adapter} {point.point}: {one.outcome}: {one.reason}")
        fail_with(_first(_told(judged, "FAIL")))
        not_judged_with(_first([*_told(judged, "ERROR"), *_told(judged, "SKIPPED")]))
        undecided = _first(_told(judged, "INCONCLUSIVE"))
        if undecided:
            raise UndecidedError("\n".join(undecided))

    @keyword
    def every_planned_point_should_be_measured(self) -> None:
        """Every arm has a finished sample at every planned point, but for points skipped with a reason."""
        run, bench = self._recorded.run, self._recorded.bench
        ran = (one for one in read_launches(run.path) if one.bench == bench and one.status == "ok")
        seen = {(one.adapter, one.point, one.arm) for one in ran}
        not_judged_with(
            _first(
                f"{point.adapter} {point.point}: no finished launch of the {arm}"
                for point in run.plan.points
                if point.bench == bench and not point.skipped
                for arm in run.arms
                if (point.adapter, point.point, arm) not in seen
            )
        )

    @keyword
    def nothing_should_be_written_outside_claims(self) -> None:
        """The guard counted no sector written to a disk that is neither claimed nor the bench's own."""
        run, bench = self._recorded.run, self._recorded.bench
        events = [event for event in run.events if event.bench in (None, bench)]
        found = guard_ledger(events, {bench: run.benches[bench]})["sectors_written_outside_claims"]
        if found:
            raise NotJudgedError(f"{found} sectors were written to disks that no claim covers")

    @keyword
    def bench_should_be_restored(self) -> None:
        """The bench was left as it was found, and that was proven."""
        last = next((event for event in reversed(self._events("restored", "restore_failed"))), None)
        if last is None:
            raise NotJudgedError(f"nothing says that {self.subject.bench} was restored")
        if last.kind == "restore_failed":
            raise NotJudgedError(f"{self.subject.bench} was not left as it was found: {last.text('reason')}")

    @keyword
    def inputs_should_be_as_planned(self) -> None:
        """Suite, gate, drops and inventory in the run directory have the digests that they were planned with."""
        not_judged_with(self._recorded.run.verify_inputs())

    @keyword
    def evidence_should_be_complete(self) -> None:
        """Every raw file that a sample of this bench names is in the run directory, with its digest."""
        run, bench = self._recorded.run, self._recorded.bench
        launches = (one for one in read_launches(run.path) if one.bench == bench)
        files = {raw.path: raw.sha256 for launch in launches for raw in launch.raw}
        problems = (_evidence(run.path / path, path, digest) for path, digest in files.items())
        not_judged_with(_first(problem for problem in problems if problem))

    @keyword
    def verdict_should_permit_signing(self) -> None:
        """The run was judged, it passed, and its coverage has no hole that nobody explains."""
        path = self._recorded.run.path / "verdict.json"
        if not path.is_file():
            raise NotJudgedError("this run was not judged yet")
        verdict = json.loads(path.read_text(encoding="utf-8"))
        problems = []
        if verdict.get("exit_code") != 0:
            problems.append(
                f"the outcome is {verdict.get('outcome')}: {verdict.get('reason') or 'no reason is given'}"
            )
        holes = [one for one in (verdict.get("coverage") or {}).get("skipped") or () if not one.get("reason")]
        problems += [f"{one.get('adapter')} {one.get('point')} was not measured, nobody says why" for one in holes]
        fail_with(_first(problems))

    def _events(self, *kinds: str) -> list[Any]:
        recorded = self._recorded
        return [
            event for event in recorded.run.events if event.kind in kinds and event.bench in (None, recorded.bench)
        ]


def _told(judged: Iterable[tuple[PlannedPoint, Judged]], outcome: str) -> list[str]:
    return [f"{point.adapter} {point.point}: {one.reason}" for point, one in judged if one.outcome == outcome]


def _first(problems: Iterable[str]) -> list[str]:
    """The first problems and how many more there are: a message stays readable, the log has all of them."""
    listed = list(problems)
    for problem in listed[_MOST:]:
        logger.info(problem)
    more = [f"and {len(listed) - _MOST} more in the log"] if len(listed) > _MOST else []
    return [*listed[:_MOST], *more]


def _several_builds(arm: str, started: Iterable[Any]) -> list[str]:
    """Drivers that were not the same build in all sessions of an arm."""
    builds: dict[str, set[str]] = {}
    for event in started:
        for name, build in ((event.fields.get("provisioned") or {}).get("drivers") or {}).items():
            builds.setdefault(name, set()).add(str(build.get("srcversion") or build.get("version") or ""))
    return [
        f"{arm}: {name} was not one build: {', '.join(sorted(found))}"
        for name, found in builds.items()
        if len(found) > 1
    ]


def _evidence(path: Path, name: str, digest: str) -> str:
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return f"{name} is missing"
    return "" if found == digest else f"{name} has digest {found}, expected {digest}"
