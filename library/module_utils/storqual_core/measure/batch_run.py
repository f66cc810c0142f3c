# SPDX-License-Identifier: Apache-2.0
"""Run a batch on the bench: every launch in its order, one fio at a time, each finished sample on the disk.

A batch that was interrupted goes on where it stopped: launches whose samples are in the spool are not repeated. A
bench that was reset in between is another session, so the batch ends as lost instead.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Callable

from ..guard.writes import Reading, read_disks, reading_of
from ..host.counters import Meter, Snapshot
from ..host.cycles import CycleCounter
from ..host.kernel_log import KernelLog
from ..kit import command
from ..kit.command import Runner
from ..kit.durable import replace_json
from ..kit.errors import BadInputError, GuardRefusalError, StorqualError
from ..kit.lock import BenchLock, hold_lock
from ..kit.machine import boot_id
from .batch_file import Block, Launch, SwitchStep
from .copy_program import run_program
from .file_systems import FileSystems, file_systems_of
from .fio_job import FioAsk, FioTarget, Variant, launch_seed
from .fio_process import FioStuckError
from .fio_result import is_unable
from .idle_bench import watch_idle
from .launch import (
    Launched,
    StopRequestedError,
    arrivals,
    arrivals_per_s,
    empty_folder,
    read_again,
    scratch_folder,
)
from .load import Curve, run_to_cap
from .precondition import Preconditioner
from .sample import BlockEnd, end_of, lost_sample, make_sample, now, report_log, start_of
from .spool import Spool
from .switch import Switcher
from .targets import BlockAim, HeldTargets, Place, Resolver, hold_targets, is_gone, place_of

_LAUNCH_COST_S = 0.5
_USUAL_STEPS = 10


class BlockRunner:
    """One run of one batch. `resolve` holds the targets, `ready` is called when the first line is in the spool.

    `stopping` is asked at least once a second. The rest is for tests: which fio, how a tool is run, who counts disks.
    """

    def __init__(
        self,
        block: Block,
        *,
        resolve: Resolver = hold_targets,
        ready: Callable[[], None] = lambda: None,
        stopping: Callable[[], bool] = lambda: False,
        program: str = "fio",
        runner: Runner = command.run,
        ledger: Callable[..., Reading] = read_disks,
        sysfs: str = "/sys",
    ) -> None:
        self._block = block
        self._resolve = resolve
        self._ready = ready
        self._stopping = stopping
        self._program = program
        self._runner = runner
        self._ledger = ledger
        self._sysfs = sysfs
        self._cycles = CycleCounter()
        self._meter = Meter(cycles=self._cycles)
        self._before = Preconditioner(
            block, meter=self._meter, tell=self._tell, stopping=stopping, runner=runner, program=program
        )
        self._log = KernelLog()
        self._targets = HeldTargets({})
        self._places: dict[str, Place] = {}
        self._watched = BlockAim(self._meter, block.targets, self._places)
        self._gone: dict[str, str] = {}
        self._variant: dict[tuple[Variant, ...], int] = {}
        self._idle: tuple[Snapshot, Snapshot] | None = None
        self._proofs: list[str] = []
        self._started = now()
        self._accounted_ns = time.monotonic_ns()
        self._excluded_ns = 0
        self._left_s = 0.0

    def run(self) -> BlockEnd:
        """Run what is left of the batch.

        Raises LockedError when the bench is taken, BadInputError for claims that make no sense, StorqualError for a
        spool that is damaged.
        """
        with ExitStack() as stack:
            stack.callback(self._meter.close)
            stack.callback(self._cycles.close)
            stack.callback(self._log.close)
            block = self._block
            lock = stack.enter_context(hold_lock(block.state_dir, block.run, "measuring", block=block.block))
            spool = Spool(block.spool)
            stack.callback(spool.close)
            boot = boot_id()
            start, end = spool.held.start, spool.held.end
            if end is not None and end.get("outcome") in ("done", "lost"):
                self._ready()
                return BlockEnd(str(end["outcome"]), str(end.get("message") or ""))
            if start is not None and start.get("boot_id") != boot:
                return self._close_as_lost(spool, str(start.get("boot_id")), boot)
            spool.reopen()
            return self._run_held(spool, boot, lock)

    def _close_as_lost(self, spool: Spool, before: str, boot: str) -> BlockEnd:
        """The bench was reset since the batch began: what is spooled stays, the rest belongs to another session."""
        message = f"the bench was reset: the batch began in boot {before}, this is boot {boot}"
        spool.append(
            end_of(
                "lost", message, boot=boot, log=self._log, lost_drives={}, overhead_s=0.0, disks=None, claimed=set()
            )
        )
        self._ready()
        return BlockEnd("lost", message)

    def _run_held(self, spool: Spool, boot: str, lock: BenchLock) -> BlockEnd:
        """With the lock and the spool: hold the targets, run, and write how it ended."""
        before: Reading | None = None
        try:
            self._before.format(spool, self._say_ready)
            with self._resolve(self._block) as targets:
                self._targets = targets
                self._places.update({name: place_of(target) for name, target in targets.items()})
                before = self._first_reading(spool)
                version = self._runner([self._program, "--version"], timeout=60.0).expect().stdout.strip()
                spool.append(
                    start_of(
                        self._block,
                        time=self._started,
                        boot=boot,
                        fio=version,
                        samples_before=len(spool.held.done),
                        log=self._log,
                        targets=targets,
                        places=self._places,
                        disks=before,
                        no_cycles=self._cycles.reason,
                    )
                )
                self._say_ready()
                with scratch_folder() as folder:
                    if self._block.precondition is not None:
                        self._watched.at(self._targets)
                        self._before.run(spool, self._targets, self._places, folder)
                    self._watch_idle()
                    self._switcher = Switcher(
                        self._block, self._targets, self._places, lock, self._runner, self._sysfs
                    )
                    with closing(self._file_systems(lock, folder)) as self._systems:
                        end = self._launches(spool, folder)
        except GuardRefusalError as problem:
            end = BlockEnd("refused", str(problem))
        except StopRequestedError:
            end = BlockEnd("stopped", "the bench program was asked to stop")
        except BadInputError:
            raise
        except (StorqualError, OSError) as problem:
            end = BlockEnd("stopped", str(problem))
        self._finish(spool, end, boot, before)
        return end

    def _file_systems(self, lock: BenchLock, folder: Path) -> FileSystems:
        return file_systems_of(
            self._block,
            self._targets,
            self._places,
            lock,
            folder,
            stopping=self._stopping,
            runner=self._runner,
            program=self._program,
        )

    def _finish(self, spool: Spool, end: BlockEnd, boot: str, before: Reading | None) -> None:
        """The kernel's last words and the last line."""
        after = None if before is None else self._ledger(state_dir=self._block.state_dir)
        last = end_of(
            end.outcome,
            end.message,
            boot=boot,
            log=self._log,
            lost_drives=self._gone,
            overhead_s=(time.monotonic_ns() - self._accounted_ns) / 1e9,
            disks=None if before is None or after is None else (before, after),
            claimed={*self._targets, *(self._block.precondition.beside if self._block.precondition else ())},
        )
        spool.append_all([*report_log(self._log, None, now(), self._block.kernel_rules).lines, last])

    def _first_reading(self, spool: Spool) -> Reading:
        """Written sectors before the block; a block that goes on counts from its first start."""
        if spool.held.start is not None:
            with suppress(KeyError, TypeError):
                return reading_of(spool.held.start["disks"])
        return self._ledger(state_dir=self._block.state_dir)

    def _say_ready(self) -> None:
        """Tell whoever started us that the drives are held; once."""
        ready, self._ready = self._ready, lambda: None
        ready()

    def _tell(self, what: str) -> None:
        """Say what goes on before the first launch. Raises StopRequestedError when it is to go on no more."""
        if self._stopping():
            raise StopRequestedError
        body = {"block": self._block.block, "index": 0, "of": len(self._block.launches), "point": what}
        replace_json(self._block.progress, {**body, "started": self._started}, durable=False)

    def _watch_idle(self) -> None:
        """What the bench does by itself, once per batch."""
        if self._block.idle_s > 0:
            self._watched.at(self._targets)
            self._idle = watch_idle(self._meter.snapshot, self._wait, self._block.idle_s)

    def _wait(self, seconds: float) -> None:
        """Let time pass. Raises StopRequestedError when the program is asked to stop meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(max(min(until - time.monotonic(), 0.5), 0.0))
            if self._stopping():
                raise StopRequestedError

    def _launches(self, spool: Spool, folder: Path) -> BlockEnd:
        """Every launch that has no sample yet, in order."""
        done = spool.held.done
        self._left_s = sum(_cost_s(launch) for launch in self._block.launches if launch.index not in done)
        self._log.mark(f"block {self._block.run}/{self._block.block} begins")
        spool.append_all(report_log(self._log, None, now(), self._block.kernel_rules).lines)
        pending: dict[tuple[str, str], SwitchStep] = {}
        self._accounted_ns = time.monotonic_ns()
        for position, launch in enumerate(self._block.launches):
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
                return BlockEnd("stopped", stuck)
        self._log.mark(f"block {self._block.run}/{self._block.block} ends")
        return BlockEnd("done", "; ".join(f"drive {name} {why}" for name, why in self._gone.items()))

    def _switch(self, steps: list[SwitchStep]) -> None:
        """Set what the launch needs; the time it takes is not the launch's."""
        began = time.monotonic_ns()
        self._proofs = self._switcher.apply(steps)
        self._excluded_ns += time.monotonic_ns() - began

    def _aimed(self, launch: Launch) -> tuple[list[FioTarget], list[str]]:
        """What fio is pointed at, on a file system made for it where the launch asks for one, and notes on that."""
        began = time.monotonic_ns()
        found = self._systems.aim(launch.drives, launch.file_system)
        self._excluded_ns += time.monotonic_ns() - began
        return found

    def _launch(self, spool: Spool, launch: Launch, position: int, folder: Path) -> str:
        """Run one launch and spool its sample; the reason to stop the batch, or nothing."""
        start = now()
        gone = self._gone_of(launch)
        if gone:
            spool.append({"kind": "sample", "sample": lost_sample(self._block, launch, start=start, reason=gone)})
            return ""
        name = f"{self._block.run}/{self._block.block}/{launch.index}"
        self._watched.at(launch.drives)
        seed = launch.fio.seed or launch_seed(self._block.run, launch.point, launch.n)
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
            sample = lost_sample(self._block, launch, start=start, reason=str(problem))
            said = report_log(self._log, launch, start, self._block.kernel_rules)
            spool.append_all([*said.lines, {"kind": "sample", "sample": sample}])
            return str(problem)
        self._log.mark(f"launch {name} ends")
        said = report_log(self._log, launch, start, self._block.kernel_rules)
        is_lost, reason = self._judge(launch, launched)
        kept_back = arrivals(arrivals_per_s(launch.fio, len(launch.drives)), launched.result)
        accounted_ns = time.monotonic_ns()
        fio_ns = launched.wall_ns if curve is None else sum(step.wall_ns for _, step in curve.runs)
        overhead_ns = accounted_ns - self._accounted_ns - fio_ns - self._excluded_ns
        self._accounted_ns, self._excluded_ns = accounted_ns, 0
        sample, artifacts = make_sample(
            self._block,
            launch,
            launched,
            start=start,
            seed=seed,
            gone=is_lost,
            reason=reason,
            suspect=[*said.doubts, *kept_back, *read_again(launch.fio, targets, launched.result)],
            notes=[*self._proofs, *made, *notes],
            overhead_ns=overhead_ns,
            idle=self._idle,
            curve=curve,
        )
        spool.append_all([*said.lines, {"kind": "sample", "sample": sample, "artifacts": artifacts}])
        return ""

    def _fio(
        self, launch: Launch, ask: FioAsk, targets: list[FioTarget], seed: int, folder: Path, position: int
    ) -> tuple[Launched, list[str]]:
        """Run fio; when the target cannot do what was asked, what the plan declared instead, and say so."""
        variants = ask.variants
        number = self._variant.get(variants, 0)
        began = time.monotonic()

        def tick(rate: float | None) -> None:
            self._progress(launch, position, rate, time.monotonic() - began)

        while True:
            empty_folder(folder)
            launched = run_program(
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
            result = launched.result
            unable = is_unable(result) and not any(result.jobs_ios)
            if not unable or number + 1 >= len(variants):
                break
            number += 1
            self._excluded_ns += launched.wall_ns
        if not number:
            return launched, []
        self._variant[variants] = number
        used, asked = variants[number], variants[0]
        instead = f"instead of {asked.ioengine}, direct {asked.direct}"
        return launched, [f"declared fallback: engine {used.ioengine}, direct {used.direct} {instead}"]

    def _judge(self, launch: Launch, launched: Launched) -> tuple[bool, str]:
        """Whether a drive of the launch is gone, and why it ended: that drive, else what fio's result says."""
        result = launched.result
        for name in launch.drives:
            if is_gone(self._targets[name], self._places[name]):
                self._gone[name] = f"({self._targets[name].node}) is gone from the bench since {now()}"
        gone = self._gone_of(launch)
        return bool(gone), f"{gone}; {result.reason}".rstrip("; ") if gone else result.reason

    def _gone_of(self, launch: Launch) -> str:
        """Which of the launch's drives is no longer there, as a sentence; empty when all are."""
        return "; ".join(f"drive {name} {self._gone[name]}" for name in launch.drives if name in self._gone)

    def _progress(self, launch: Launch, position: int, rate: float | None, spent_s: float) -> None:
        """Say how far it is; nobody needs this after a power cut, so it costs no wait for the disk."""
        body = {
            "block": self._block.block,
            "index": position,
            "of": len(self._block.launches),
            "point": launch.point,
            "iops_now": None if rate is None else round(rate, 1),
            "started": self._started,
            "eta_s": round(max(self._left_s - spent_s, 0.0), 1),
        }
        replace_json(self._block.progress, body, durable=False)


def _cost_s(launch: Launch) -> float:
    """Expected seconds of a launch."""
    steps = 1 if launch.load is None else _USUAL_STEPS
    return steps * (launch.fio.ramp_s + launch.fio.runtime_s + _LAUNCH_COST_S)
