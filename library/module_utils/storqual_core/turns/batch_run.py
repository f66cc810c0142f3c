# SPDX-License-Identifier: Apache-2.0
"""Run a batch on the bench: one at a time, with a first and a last line in its spool, whatever its turns are.

A batch that was interrupted goes on where it stopped. A bench that was reset in between is another session, so the
batch ends as lost instead.
"""

from __future__ import annotations

import os
import platform
from abc import ABC, abstractmethod
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Callable, Collection, Mapping, Sequence

from ..guard.writes import DisksReading, end_line, reading_of
from ..kit.errors import BadInputError, GuardRefusalError, StorqualError
from ..kit.lock import BenchLock, hold_lock
from ..kit.machine import Machine, boot_id
from .batch_file import Batch
from .requests import ProgramRequest, TrialRequest
from .session_errors import read_counted_disks
from .spool import Spool, Stream
from .subject import TurnSubject


@dataclass(frozen=True)
class BatchOutcome:
    """How a batch ended: done, refused (by the guard), stopped (and why) or lost (the bench was reset)."""

    outcome: str
    message: str

    @property
    def exit_code(self) -> int:
        return {"done": 0, "lost": 0, "refused": 4}.get(self.outcome, 2)


class StopRequestedError(Exception):
    """Somebody asked the bench program to stop; what was under way is thrown away."""


def now() -> str:
    """The time as spools have it: ISO, UTC, milliseconds."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


class BatchRunner(ABC):
    """One run of one batch; what its turns are is known by the classes that inherit from it.

    `ready` is called when the first line is in the spool, or when there is nothing to do. `ledger` counts what was
    written to every disk of the bench, before and after.
    """

    def __init__(self, batch: Batch, *, ready: Callable[[], None], ledger: Callable[..., DisksReading]) -> None:
        self._batch = batch
        self._ready = ready
        self._ledger = ledger
        self._started = now()
        self._before: DisksReading | None = None

    def run(self) -> BatchOutcome:
        """Run what is left of the batch.

        Raises LockedError when the bench is taken, BadInputError for claims that make no sense, StorqualError for a
        spool that is damaged.
        """
        batch = self._batch
        with ExitStack() as stack:
            stack.callback(self._close)
            lock = stack.enter_context(hold_lock(batch.state_dir, batch.run, "measuring", block=batch.block))
            spool = Spool(batch.spool, durable=batch.attempt is None)
            stack.callback(spool.close)
            boot = boot_id()
            start, end = spool.held.start, spool.held.end
            if end is not None and end.get("outcome") in ("done", "lost"):
                self._say_ready()
                return BatchOutcome(str(end["outcome"]), str(end.get("message") or ""))
            if start is not None and start.get("boot_id") != boot:
                # what is spooled stays, the rest belongs to another session
                message = f"the bench was reset: the batch began in boot {start.get('boot_id')}, this is boot {boot}"
                lost = self._end(spool, BatchOutcome("lost", message), boot)
                self._say_ready()
                return lost
            spool.reopen()
            try:
                end_now = self._turns(spool, boot, lock)
            except GuardRefusalError as problem:
                end_now = BatchOutcome("refused", str(problem))
            except StopRequestedError:
                end_now = BatchOutcome("stopped", "the bench program was asked to stop")
            except BadInputError:
                raise
            except (StorqualError, OSError) as problem:
                end_now = BatchOutcome("stopped", str(problem))
            return self._end(spool, end_now, boot)

    @abstractmethod
    def _turns(self, spool: Spool, boot: str, lock: BenchLock) -> BatchOutcome:
        """Run the turns with the lock held; a refusal and a failure may be raised."""

    def _close(self) -> None:  # noqa: B027 - most batches open nothing before
        """Let go of what was opened before the lock was taken."""

    def _begin(self, spool: Spool, boot: str, **fields: Any) -> None:  # noqa: ANN401 - whatever JSON holds
        """Write the spool's first line: which bench and boot, and every disk's written sectors."""
        self._before = self._first_reading(spool)
        batch = self._batch
        spool.append(
            {
                "kind": "start",
                "run": batch.run,
                "block": batch.block,
                "bench": batch.bench,
                "session": batch.session,
                "time": self._started,
                "boot_id": boot,
                "kernel": platform.release(),
                "python": platform.python_version(),
                "pid": os.getpid(),
                "disks": self._before.record(),
                **fields,
            }
        )
        self._say_ready()

    def _first_reading(self, spool: Spool) -> DisksReading:
        """Written sectors before the batch; a batch that goes on counts from its first start."""
        if spool.held.start is not None:
            with suppress(KeyError, TypeError):
                return reading_of(spool.held.start["disks"])
        return self._ledger(state_dir=self._batch.state_dir)

    def _say_ready(self) -> None:
        """Tell whoever started us that the drives are held; once."""
        ready, self._ready = self._ready, lambda: None
        ready()

    def _last_lines(self) -> Sequence[Mapping[str, Any]]:
        return ()

    def _last_fields(self) -> Mapping[str, Any]:
        return {}

    def _claimed(self) -> Collection[str]:
        return set(self._batch.targets)

    def _end(self, spool: Spool, end: BatchOutcome, boot: str) -> BatchOutcome:
        """Write the spool's last line: how the batch ended, and what was written to every disk meanwhile."""
        line = {"kind": "end", **end.__dict__, "time": now(), "boot_id": boot, **self._last_fields()}
        if self._before is not None:
            after = self._ledger(state_dir=self._batch.state_dir)
            line["disks"] = end_line(self._before, after, self._claimed())
        spool.append_all([*self._last_lines(), line])
        return end


class TurnRunner(BatchRunner):
    """One run of one turn of a streamed batch. Whatever ends it, the control node hears of it."""

    def __init__(
        self,
        batch: Batch,
        *,
        ready: Callable[[], None] = lambda: None,
        ledger: Callable[..., DisksReading] = read_counted_disks,
        machine: Machine | None = None,
    ) -> None:
        super().__init__(batch, ready=ready, ledger=ledger)
        self._machine = machine or Machine()
        self._told = 0

    def _turns(self, spool: Spool, boot: str, lock: BenchLock) -> BatchOutcome:  # noqa: ARG002 - of all runners
        self._begin(spool, boot)
        stream = Stream(spool)
        try:
            self._turn(TurnSubject(self._batch, stream, self._machine))
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

    def _turn(self, subject: TurnSubject) -> None:
        request = subject.turn.request
        if isinstance(request, TrialRequest):
            from .trial import TrialRun  # noqa: PLC0415 - what the other kind needs is not compiled

            TrialRun(subject, request).run()
        elif isinstance(request, ProgramRequest):
            from .foreign_program import ProgramRun  # noqa: PLC0415 - as above

            ProgramRun(subject, request).run()

    def _last_fields(self) -> Mapping[str, Any]:
        return {"ios": self._told}
