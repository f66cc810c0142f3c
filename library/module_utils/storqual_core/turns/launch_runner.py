# SPDX-License-Identifier: Apache-2.0
"""Run the launches of a batch: every launch in its order, one fio at a time, each finished sample on the disk.

A batch that was interrupted goes on where it stopped: launches whose samples are in the spool are not repeated.
"""

from __future__ import annotations

import platform
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Collection, Mapping, Sequence

from ..guard.writes import DisksReading
from ..host.counters import CounterSnapshot, CycleCounter, Meter, adapter_vectors, ticks_are_measured, watch_idle
from ..host.kernel_log import KernelLog
from ..kit import command
from ..kit.command import Runner
from ..kit.durable import replace_json
from ..kit.lock import BenchLock
from ..kit.machine import Machine
from ..provision.background import AdapterWatch
from .batch_file import Batch, LaunchTurn, SwitchStep
from .batch_run import BatchOutcome, BatchRunner, StopRequestedError, now
from .file_systems import FileSystems, file_systems_of
from .fio_job import FioAsk, FioStuckError, FioTarget, Variant, launch_seed
from .fio_result import is_unable
from .launch import (
    Curve,
    Launched,
    arrivals,
    arrivals_per_s,
    empty_folder,
    read_again,
    run_fio,
    run_to_cap,
    scratch_folder,
)
from .precondition import Preconditioner
from .readback import Looked, Readback
from .sample import lost_sample, make_sample, report_log
from .session_errors import errors_together, read_counted_disks, with_errors
from .spool import Spool
from .targets import BatchAim, HeldTargets, Resolver, Switcher, TargetDevice, hold_targets, is_gone, place_of

_LAUNCH_COST_S = 0.5
_USUAL_STEPS = 10


class LaunchRunner(BatchRunner):
    """One run of a batch of launches. `resolve` holds the targets.

    `stopping` is asked at least once a second. The rest is for tests: which fio, how a tool is run, who counts disks.
    """

    def __init__(
        self,
        batch: Batch,
        *,
        resolve: Resolver = hold_targets,
        ready: Callable[[], None] = lambda: None,
        stopping: Callable[[], bool] = lambda: False,
        program: str = "fio",
        runner: Runner = command.run,
        ledger: Callable[..., DisksReading] = read_counted_disks,
        sysfs: str = "/sys",
    ) -> None:
        super().__init__(batch, ready=ready, ledger=ledger)
        self._resolve = resolve
        self._stopping = stopping
        self._program = program
        self._runner = runner
        self._sysfs = sysfs
        self._cycles = CycleCounter()
        self._meter = Meter(cycles=self._cycles)
        self._preconditioner = Preconditioner(
            batch, meter=self._meter, tell=self._tell, stopping=stopping, runner=runner, program=program
        )
        self._log = KernelLog()
        self._targets = HeldTargets({})
        self._places: dict[str, TargetDevice] = {}
        self._watched = BatchAim(self._meter, batch.targets, self._places)
        self._gone: dict[str, str] = {}
        self._variant: dict[tuple[Variant, ...], int] = {}
        self._idle: tuple[CounterSnapshot, CounterSnapshot] | None = None
        self._beside: AdapterWatch | None = None
        self._proofs: list[str] = []
        self._accounted_ns = time.monotonic_ns()
        self._excluded_ns = 0
        self._left_s = 0.0
        self._last: tuple[FioAsk, Launched] | None = None

    def _close(self) -> None:
        self._log.close()
        self._cycles.close()
        self._meter.close()

    def _turns(self, spool: Spool, boot: str, lock: BenchLock) -> BatchOutcome:
        self._preconditioner.format(spool, self._say_ready)
        with self._resolve(self._batch) as targets:
            self._targets = targets
            self._places.update({name: place_of(target) for name, target in targets.items()})
            version = self._runner([self._program, "--version"], timeout=60.0).expect().stdout.strip()
            addresses = sorted({address for place in self._places.values() for address in place.adapters})
            self._beside = AdapterWatch(Machine(self._sysfs[: -len("/sys")]), addresses, self._runner)
            self._begin(
                spool,
                boot,
                fio=version,
                samples_before=len(spool.held.done),
                kernel_log=self._log.reason or self._log.marker_reason,
                no_cycles=self._cycles.reason,
                ticks_are_measured=ticks_are_measured(platform.release()),
                targets={name: target.node for name, target in targets.items()},
                interrupts={address: list(adapter_vectors([address])) for address in addresses},
                beside={"work": self._beside.work, "unread": self._beside.unread},
            )
            with scratch_folder() as folder:
                self._readback = Readback(self._program, folder, self._stopping)
                if self._batch.precondition is not None:
                    self._watched.at(self._targets)
                    self._preconditioner.run(spool, self._targets, self._places, folder)
                self._watch_idle()
                self._switcher = Switcher(self._batch, self._targets, self._places, lock, self._runner, self._sysfs)
                with closing(self._file_systems(lock, folder)) as self._systems:
                    return self._launches(spool, folder)

    def _file_systems(self, lock: BenchLock, folder: Path) -> FileSystems:
        return file_systems_of(
            self._batch,
            self._targets,
            self._places,
            lock,
            folder,
            stopping=self._stopping,
            runner=self._runner,
            program=self._program,
        )

    def _claimed(self) -> Collection[str]:
        ask = self._batch.precondition
        return {*self._targets, *(ask.beside if ask else ())}

    def _last_fields(self) -> Mapping[str, Any]:
        return {
            "lost_drives": dict(self._gone),
            "kernel_log_overflows": self._log.overflowed,
            "kernel_log_reason": self._log.reason,
            "overhead_s": (time.monotonic_ns() - self._accounted_ns) / 1e9,
        }

    def _last_lines(self) -> Sequence[Mapping[str, Any]]:
        findings = self._beside.findings(now()) if self._beside else []
        of_adapters = [{"kind": "log", "launch": None, "kernel_log": [], "findings": findings}] if findings else []
        return [*report_log(self._log, None, now(), self._batch.kernel_rules).lines, *of_adapters]

    def _tell(self, what: str) -> None:
        """Say what goes on before the first launch. Raises StopRequestedError when it is to go on no more."""
        if self._stopping():
            raise StopRequestedError
        body = {"block": self._batch.block, "index": 0, "of": len(self._batch.launches), "point": what}
        replace_json(self._batch.progress, {**body, "started": self._started}, durable=False)

    def _watch_idle(self) -> None:
        if self._batch.idle_s > 0:
            self._watched.at(self._targets)
            self._idle = watch_idle(self._meter.snapshot, self._wait, self._batch.idle_s)

    def _wait(self, seconds: float) -> None:
        """Let time pass. Raises StopRequestedError when the program is asked to stop meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(max(min(until - time.monotonic(), 0.5), 0.0))
            if self._stopping():
                raise StopRequestedError

    def _launches(self, spool: Spool, folder: Path) -> BatchOutcome:
        done = spool.held.done
        self._left_s = sum(_cost_s(launch) for launch in self._batch.launches if launch.index not in done)
        self._log.mark(f"block {self._batch.run}/{self._batch.block} begins")
        spool.append_all(report_log(self._log, None, now(), self._batch.kernel_rules).lines)
        pending: dict[tuple[str, str], SwitchStep] = {}
        self._accounted_ns = time.monotonic_ns()
        for position, launch in enumerate(self._batch.launches):
            # a launch that was done before an interruption may have been followed by another one's switch
            pending.update({(step.drive, step.setting): step for step in launch.switch})
            if launch.index in done:
                continue
            if self._stopping():
                raise StopRequestedError
            self._switch(list(pending.values()))
            pending.clear()
            self._progress(launch, position, None, 0.0)
            stuck = self._launch(spool, launch, position, folder)
            self._left_s -= _cost_s(launch)
            if stuck:
                return BatchOutcome("stopped", stuck)
        self._log.mark(f"block {self._batch.run}/{self._batch.block} ends")
        return BatchOutcome("done", "; ".join(f"drive {name} {why}" for name, why in self._gone.items()))

    def _switch(self, steps: list[SwitchStep]) -> None:
        """Set what the launch needs; the time it takes is not the launch's."""
        began = time.monotonic_ns()
        self._proofs = self._switcher.apply(steps)
        self._excluded_ns += time.monotonic_ns() - began

    def _aimed(self, launch: LaunchTurn) -> tuple[list[FioTarget], list[str]]:
        """What fio is pointed at, on a file system made for it where the launch asks for one, and notes on that."""
        began = time.monotonic_ns()
        aim = self._systems.aim(launch.drives, launch.file_system)
        self._excluded_ns += time.monotonic_ns() - began
        return aim

    def _launch(self, spool: Spool, launch: LaunchTurn, position: int, folder: Path) -> str:
        """Run one launch and spool its sample; the reason to stop the batch, or nothing."""
        start = now()
        gone = self._gone_of(launch)
        if gone:
            spool.append({"kind": "sample", "sample": lost_sample(self._batch, launch, start=start, reason=gone)})
            return ""
        name = f"{self._batch.run}/{self._batch.block}/{launch.index}"
        self._watched.at(launch.drives)
        seed = launch.fio.seed or launch_seed(self._batch.run, launch.point, launch.n)
        self._log.mark(f"launch {name} begins")
        curve: Curve | None = None
        targets, made = self._aimed(launch)
        try:
            if launch.load is not None:
                curve = run_to_cap(
                    launch.load, launch.fio, lambda ask: self._fio(launch, ask, targets, seed, folder, position)
                )
                launched, notes = curve.chosen, curve.notes
            else:
                launched, notes = self._fio(launch, launch.fio, targets, seed, folder, position)
        except FioStuckError as problem:
            sample = lost_sample(self._batch, launch, start=start, reason=str(problem))
            report = report_log(self._log, launch, start, self._batch.kernel_rules)
            spool.append_all([*report.lines, {"kind": "sample", "sample": sample}])
            return str(problem)
        self._log.mark(f"launch {name} ends")
        report = report_log(self._log, launch, start, self._batch.kernel_rules)
        is_lost, reason = self._judge(launch, launched)
        kept_back = arrivals(arrivals_per_s(launch.fio, len(launch.drives)), launched.result)
        looked = self._look(launch, targets, seed, gone=is_lost)
        accounted_ns = time.monotonic_ns()
        fio_ns = launched.wall_ns if curve is None else sum(step.wall_ns for _, step in curve.runs)
        overhead_ns = accounted_ns - self._accounted_ns - fio_ns - self._excluded_ns
        self._accounted_ns, self._excluded_ns = accounted_ns, 0
        sample, artifacts = make_sample(
            self._batch,
            launch,
            launched,
            start=start,
            seed=seed,
            gone=is_lost,
            reason=reason,
            suspect=[*report.doubts, *self._doubts(), *kept_back, *read_again(launch.fio, targets, launched.result)],
            notes=[*self._proofs, *made, *notes],
            overhead_ns=overhead_ns,
            idle=self._idle,
            curve=curve,
            looked=looked,
        )
        spool.append_all([*report.lines, {"kind": "sample", "sample": sample, "artifacts": artifacts}])
        return ""

    def _doubts(self) -> list[str]:
        """What was under way beside the batch when it began; nobody asks again while launches run."""
        return [f"when the batch began, {work}" for work in (self._beside.work if self._beside else ())]

    def _look(self, launch: LaunchTurn, targets: list[FioTarget], seed: int, *, gone: bool) -> Looked:
        """Look at the data of the launch's last fio; the time it takes is not the launch's."""
        if gone or self._last is None:
            return Looked(reason="a drive of the launch is gone")
        began = time.monotonic_ns()
        try:
            return self._readback.look(launch, *self._last, targets, seed)
        finally:
            self._excluded_ns += time.monotonic_ns() - began

    def _fio(
        self, launch: LaunchTurn, ask: FioAsk, targets: list[FioTarget], seed: int, folder: Path, position: int
    ) -> tuple[Launched, list[str]]:
        """Run fio; when the target cannot do what was asked, what the plan declared instead, and say so."""
        variants = ask.variants
        number = self._variant.get(variants, 0)
        began = time.monotonic()

        def tick(rate: float | None) -> None:
            self._progress(launch, position, rate, time.monotonic() - began)

        while True:
            empty_folder(folder)
            counted = self._session_errors(launch)
            launched = run_fio(
                ask.using(variants[number]),
                targets,
                seed=seed,
                folder=folder,
                meter=self._meter,
                tick=tick,
                stopping=self._stopping,
                program=self._program,
            )
            if self._stopping():
                raise StopRequestedError
            if counted:
                before, after = launched.before, with_errors(launched.after, self._session_errors(launch))
                launched = replace(launched, before=with_errors(before, counted), after=after)
            result = launched.result
            unable = is_unable(result) and not any(result.jobs_ios)
            if not unable or number + 1 >= len(variants):
                break
            number += 1
            self._excluded_ns += launched.wall_ns
        self._last = (ask.using(variants[number]), launched)
        if not number:
            return launched, []
        self._variant[variants] = number
        used, primary = variants[number], variants[0]
        instead = f"instead of {primary.ioengine}, direct {primary.direct}"
        return launched, [f"declared fallback: engine {used.ioengine}, direct {used.direct} {instead}"]

    def _session_errors(self, launch: LaunchTurn) -> Mapping[str, int]:
        devices = (self._places[name].device for name in launch.drives)
        disks = [device.name for device in devices if device is not None]
        return errors_together(Machine(self._sysfs[: -len("/sys")]), self._runner, disks)

    def _judge(self, launch: LaunchTurn, launched: Launched) -> tuple[bool, str]:
        """Whether a drive of the launch is gone, and why it ended: that drive, else what fio's result says."""
        result = launched.result
        for name in launch.drives:
            if is_gone(self._targets[name], self._places[name]):
                self._gone[name] = f"({self._targets[name].node}) is gone from the bench since {now()}"
        gone = self._gone_of(launch)
        return bool(gone), f"{gone}; {result.reason}".rstrip("; ") if gone else result.reason

    def _gone_of(self, launch: LaunchTurn) -> str:
        """Which of the launch's drives is no longer there, as a sentence; empty when all are."""
        return "; ".join(f"drive {name} {self._gone[name]}" for name in launch.drives if name in self._gone)

    def _progress(self, launch: LaunchTurn, position: int, rate: float | None, spent_s: float) -> None:
        """Say how far it is; nobody needs this after a power cut, so it costs no wait for the disk."""
        body = {
            "block": self._batch.block,
            "index": position,
            "of": len(self._batch.launches),
            "point": launch.point,
            "iops_now": None if rate is None else round(rate, 1),
            "started": self._started,
            "eta_s": round(max(self._left_s - spent_s, 0.0), 1),
        }
        replace_json(self._batch.progress, body, durable=False)


def _cost_s(launch: LaunchTurn) -> float:
    """Expected seconds of a launch."""
    steps = 1 if launch.load is None else _USUAL_STEPS
    return steps * (launch.fio.ramp_s + launch.fio.runtime_s + _LAUNCH_COST_S) + launch.readback_s
