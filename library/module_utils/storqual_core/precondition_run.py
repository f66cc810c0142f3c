# SPDX-License-Identifier: Apache-2.0
"""The stages of preconditioning in a block: each is in the spool when it is done, and is not done again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Callable, Mapping

from .block_file import Block
from .block_targets import Place, hold_for_format
from .command import Runner
from .counters import Meter
from .fio_job import FioAsk, FioTarget, launch_seed
from .fio_result import is_unable
from .launch_run import Launched, empty_folder, run_fio
from .precondition import fill, steady
from .purge import discard, format_drive
from .spool import Spool

__all__ = ["Preconditioner"]


class Preconditioner:
    """Brings the targets of a block to the state that it asks for.

    `tell` says what goes on, and raises StopRequestedError when it is to go on no more.
    """

    def __init__(
        self,
        block: Block,
        *,
        meter: Meter,
        tell: Callable[[str], None],
        stopping: Callable[[], bool],
        runner: Runner,
        program: str,
    ) -> None:
        self._block = block
        self._meter = meter
        self._tell = tell
        self._stopping = stopping
        self._runner = runner
        self._program = program

    def format(self, spool: Spool, ready: Callable[[], None]) -> None:
        """Format the drives where that is asked for and was not done; afterwards they are scratch again.

        `ready` is called when they are held: it may take hours. Raises GuardRefusalError, ToolError.
        """
        ask = self._block.precondition
        if ask is None or ask.purge != "format" or "purge" in spool.held.preconditioned:
            return
        with hold_for_format(self._block) as held:
            ready()
            done = {}
            for drive, node in held.items():
                done[drive] = format_drive(node, self._runner)
                held.stamp(drive)
        spool.append({"kind": "precondition", "stage": "purge", "report": done})

    def run(self, spool: Spool, targets: Mapping[str, FioTarget], places: Mapping[str, Place], folder: Path) -> None:
        """The other stages, on targets that are held. Raises ToolError, StopRequestedError."""
        ask, done = self._block.precondition, spool.held.preconditioned
        if ask is None:
            return
        if ask.purge == "discard" and "purge" not in done:
            self._tell("preconditioning: discard")
            purged = {drive: discard(target, places[drive], self._runner) for drive, target in targets.items()}
            spool.append({"kind": "precondition", "stage": "purge", "report": purged})
        if ask.fill is not None and "fill" not in done:
            self._tell(f"preconditioning: fill, {ask.fill.times} x capacity")
            filled = fill(ask.fill, targets, folder, stopping=self._stopping, program=self._program)
            spool.append({"kind": "precondition", "stage": "fill", "report": filled})
        if ask.steady is not None and "steady" not in done:
            settled = steady(
                ask.steady,
                targets,
                lambda fio: self._round(fio, list(targets.values()), folder),
                lambda number: self._tell(f"preconditioning: steady state, round {number}"),
            )
            spool.append({"kind": "precondition", "stage": "steady", "report": settled})
        empty_folder(folder)

    def _round(self, ask: FioAsk, targets: list[FioTarget], folder: Path) -> Launched:
        """One round of the load that is to be steady."""
        for variant in ask.variants:
            empty_folder(folder)
            launched = run_fio(
                ask.using(variant),
                targets,
                seed=launch_seed(self._block.run, "precondition", time.monotonic_ns()),
                folder=folder,
                meter=self._meter,
                tick=lambda _rate: None,
                stopping=self._stopping,
                program=self._program,
            )
            if not is_unable(launched.result) or any(launched.result.jobs_ios):
                break
        return launched
