# SPDX-License-Identifier: Apache-2.0
"""The drive that a trial or a program is about: who may be reached from it, the guard's hold on it, its state."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Collection, Iterator

from ..guard.claims import Claim, read_claims
from ..guard.hold import Hold, hold
from ..host.sysfs import Drive, read_drives
from ..kit import command
from ..kit.machine import Machine
from .batch_file import Batch
from .reach import aimed_at, refuse_beyond
from .spool import Stream
from .state import read_state


class Subject:
    """The drive that a turn is about, behind its adapter: who may be reached, its hold, its state; and the stream."""

    def __init__(self, batch: Batch, stream: Stream, machine: Machine) -> None:
        attempt = batch.attempt
        assert attempt is not None  # noqa: S101 - the reader of a streamed batch has refused one without
        self.turn = next(turn for turn in batch.on_drives if turn.id == attempt.turn)
        self.part, self.tag = attempt.part, attempt.tag
        self.batch, self.stream, self.machine = batch, stream, machine
        self.state_dir = str(batch.state_dir)

    @property
    def id(self) -> str:
        """The drive's id."""
        return self.turn.drive

    @property
    def pci(self) -> str:
        """The PCI function that leads to it."""
        return self.turn.request.pci

    def drive(self) -> Drive | None:
        """The drive as the kernel has it now."""
        return aimed_at(read_drives(self.machine), self.id, self.pci)

    def refuse_beyond(self, scope: str) -> list[str]:
        """The drives that a fault of that scope touches. Raises GuardRefusalError with every reason against it."""
        # how far it reaches is found here, and may be behind other adapters
        claims = self._claims(self.batch.targets)
        return refuse_beyond(
            self.machine, claims, drive=self.id, adapter=self.pci, scope=scope, state_dir=self.state_dir
        )

    @contextmanager
    def hold(self) -> Iterator[Hold]:
        """The guard's hold on the drive. Raises GuardRefusalError."""
        claims = self._claims((self.id,))
        with hold(
            claims, purpose="write", state_dir=self.state_dir, run=self.batch.run, machine=self.machine
        ) as held:
            yield held

    def _claims(self, names: Collection[str]) -> tuple[Claim, ...]:
        return read_claims({name: self.batch.targets[name] for name in names})

    def tell_state(self, when: str) -> None:
        """Tell the state of the adapter's drives, `before` or `after`."""
        self.stream.line("state", when=when, state=read_state(self.machine, self.pci, command.run, self.id))

    def seen(self, what: str, text: str) -> None:
        """Tell what a fault showed."""
        self.stream.line("seen", seen=what, text=text)
