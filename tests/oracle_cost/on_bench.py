# SPDX-License-Identifier: Apache-2.0
"""Runs on the bench: the integrity load with its oracle, and the same I/Os without, in the order A B B A A B …

Without it nothing is tagged, told, streamed or compared: what is left is the I/O.
"""

import os
import sys
import time
from pathlib import Path

from storqual_core.kit.machine import Machine
from storqual_core.turns.batch_file import read_batch_file
from storqual_core.turns.integrity_load import READ, RWF_DSYNC, WRITE, WRITE_THROUGH, LoadWorkers, Worker
from storqual_core.turns.requests import TrialRequest
from storqual_core.turns.sectors import SECTOR
from storqual_core.turns.spool import Spool, Stream
from storqual_core.turns.subject import HeldDevice, TurnSubject
from storqual_core.turns.trial import TrialRun


class PlainWorker(Worker):
    """The same I/Os, of whatever bytes."""

    def _write(self, sector: int, length: int, *, through: bool) -> int:
        view = memoryview(self._buffer)[: length * SECTOR]
        flags = RWF_DSYNC if through else 0
        kind = WRITE_THROUGH if through else WRITE

        def write(descriptor: int) -> None:
            os.pwritev(descriptor, [view], sector * SECTOR, flags)

        return self._timed(kind, 0, sector, length, write)

    def _read(self, sector: int, length: int) -> int:
        view = memoryview(self._buffer)[: length * SECTOR]

        def read(descriptor: int) -> None:
            os.preadv(descriptor, [view], sector * SECTOR)

        return self._timed(READ, 0, sector, length, read)


def main(words: list[str]) -> None:
    """`on_bench BATCH.json STREAM PAIRS SECONDS`; one line of kind `turn` each."""
    spool = Spool(Path(words[1]), durable=False)
    pairs, seconds = int(words[2]), float(words[3])
    stream = Stream(spool)
    subject = TurnSubject(read_batch_file(Path(words[0])), stream, Machine())
    trial = subject.turn.request
    assert isinstance(trial, TrialRequest)
    run = TrialRun(subject, trial)
    device = HeldDevice(subject.id, run._holder)
    counted = [0] * trial.load.workers
    turns = [
        turn for pair in range(pairs) for turn in (("with", "without") if pair % 2 == 0 else ("without", "with"))
    ]
    for number, turn in enumerate(turns):
        tag = number.to_bytes(8, "little")
        quiet = turn == "without"
        load = LoadWorkers(trial.load, tag, device, _nothing if quiet else stream.tell)
        if quiet:
            ask = trial.load
            load._workers = [PlainWorker(ask, one, tag, device, _nothing) for one in range(ask.workers)]
        for one, worker in enumerate(load._workers):
            _count(worker, counted, one)
        before, began = sum(counted), time.monotonic()
        load.start()
        time.sleep(seconds)
        load.stop(60.0)
        lasted = time.monotonic() - began
        stream.send()
        stream.line("turn", turn=turn, pair=number // 2, ios=sum(counted) - before, seconds=lasted)
    device.close(60.0)
    stream.line("end", outcome="done", message="", ios=stream.told)
    stream.close()
    spool.close()


def _count(worker: Worker, counted: list[int], place: int) -> None:
    step = worker.step

    def one() -> None:
        step()
        counted[place] += 1

    worker.step = one  # type: ignore[method-assign]


def _nothing(*_io: object) -> None:
    """Without an oracle nobody is told."""


if __name__ == "__main__":
    main(sys.argv[1:])
