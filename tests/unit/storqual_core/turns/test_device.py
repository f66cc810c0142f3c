# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from storqual_core.kit.errors import GuardRefusalError
from storqual_core.turns.subject import HeldDevice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Holds:
    """Stands for the guard: counts holds, refuses as often as it is told to."""

    def __init__(self, node: Path) -> None:
        self.node, self.refusals, self.held, self.taken = node, 0, 0, 0

    @contextmanager
    def __call__(self) -> Iterator[dict[str, str]]:
        if self.refusals:
            self.refusals -= 1
            raise GuardRefusalError(["it is not there"])
        self.held += 1
        self.taken += 1
        try:
            yield {"drive": str(self.node)}
        finally:
            self.held -= 1


@pytest.fixture
def holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Holds:
    monkeypatch.setattr("storqual_core.turns.subject._AGAIN_S", 0.01)
    # a file system of memory has no direct I/O
    monkeypatch.setattr(os, "O_DIRECT", 0)
    node = tmp_path / "drive"
    node.write_bytes(bytes(4096))
    return Holds(node)


def test_a_drive_that_went_is_held_again_before_anybody_uses_it(holds: Holds) -> None:
    told: list[str] = []
    device = HeldDevice("drive", holds, told.append)
    device.use()
    device.done(errno.ENXIO)
    assert device.lost
    holds.refusals = 2
    assert os.pread(device.use(), 1, 0) == b"\0"
    device.done(0)
    assert (holds.taken, holds.held, told) == (2, 1, ["gone", "opened again"])


def test_an_error_of_a_drive_that_is_there_is_no_loss(holds: Holds) -> None:
    device = HeldDevice("drive", holds)
    device.use()
    device.done(errno.EIO)
    assert not device.lost
    assert holds.taken == 1


def test_it_is_not_let_go_while_somebody_uses_it(holds: Holds) -> None:
    device = HeldDevice("drive", holds)
    device.use()
    assert not device.close(0.05)
    assert holds.held == 1
    device.done(0)
    assert device.close(1)
    assert holds.held == 0


def test_who_waits_for_a_lost_drive_is_let_go_when_it_is_given_up(holds: Holds) -> None:
    device = HeldDevice("drive", holds)
    device.use()
    device.done(errno.ENODEV)
    holds.refusals = 10**9
    waiting = threading.Thread(target=device.use, daemon=True)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    device.give_up()
    waiting.join(10)
    assert not waiting.is_alive()


def test_a_hold_that_is_refused_at_first_opens_nothing(holds: Holds) -> None:
    holds.refusals = 1
    with pytest.raises(GuardRefusalError):
        HeldDevice("drive", holds)
    assert holds.held == 0
