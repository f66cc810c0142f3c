# SPDX-License-Identifier: Apache-2.0
"""Run one turn of a streamed batch: a trial or a program on one claimed drive, told as it happens."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ..guard.writes import Reading, read_disks
from ..kit.errors import BadInputError, StorqualError
from ..kit.lock import BenchLock
from ..kit.machine import Machine
from .batch_file import Batch
from .batch_run import BatchOutcome, BatchRunner
from .requests import ProgramRequest, TrialRequest
from .spool import Spool, Stream
from .subject import Subject


class TurnRunner(BatchRunner):
    """One run of one turn of a streamed batch. Whatever ends it, the control node hears of it."""

    def __init__(
        self,
        batch: Batch,
        *,
        ready: Callable[[], None] = lambda: None,
        ledger: Callable[..., Reading] = read_disks,
        machine: Machine | None = None,
    ) -> None:
        super().__init__(batch, ready=ready, ledger=ledger)
        self._machine = machine or Machine()
        self._told = 0

    def _turns(self, spool: Spool, boot: str, lock: BenchLock) -> BatchOutcome:  # noqa: ARG002 - of all runners
        self._begin(spool, boot)
        stream = Stream(spool)
        try:
            self._turn(Subject(self._batch, stream, self._machine))
        except BadInputError as problem:
            raise StorqualError(str(problem)) from problem
        except (StorqualError, OSError):
            raise
        except Exception as problem:
            raise StorqualError(f"{type(problem).__name__}: {problem}") from problem
        finally:
            stream.close()
            self._told = stream.told
        return BatchOutcome("done", "")

    def _turn(self, subject: Subject) -> None:
        request = subject.turn.request
        if isinstance(request, TrialRequest):
            from .trial import TrialRun  # noqa: PLC0415 - what the other kind needs is not compiled

            TrialRun(subject, request).run()
        elif isinstance(request, ProgramRequest):
            from .program import ProgramRun  # noqa: PLC0415 - as above

            ProgramRun(subject, request).run()

    def _last_fields(self) -> Mapping[str, Any]:
        return {"ios": self._told}
