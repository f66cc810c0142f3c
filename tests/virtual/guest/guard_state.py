# SPDX-License-Identifier: Apache-2.0
"""One state of the guard's live test: what is done to drives, what is claimed, and the words of the refusal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from storqual_core.kit.command import Runner, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from guard_tools import Bench

    from storqual_core.guard.claims import Claim
    from storqual_core.kit.machine import Machine


EXT4 = ("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1")
"""Make a file system without writing all of its drive."""


@dataclass(frozen=True)
class State:
    """One target with something to lose. `arrange` returns the path that bare fio is pointed at, if not the drive.

    `claims` are what the guard is asked for; `says` must be in one of its refusals. With `machine` the guard looks at
    a machine on which something happens meanwhile; `purpose` is what the drives are asked for, with full consent, and
    `runner` runs the guard's tools.
    """

    name: str
    says: str
    arrange: Callable[[Bench], str | None]
    claims: Callable[[Bench], Sequence[Claim]] = lambda bench: [bench.claim()]
    engine: str = "psync"
    machine: Callable[[Bench], Machine] | None = None
    purpose: str = "write"
    runner: Runner = run


def BOTH(bench: Bench) -> list[Claim]:  # noqa: N802 - a word for a column of the tables
    return [bench.claim("a"), bench.claim("b")]


def NVME(bench: Bench) -> list[Claim]:  # noqa: N802 - as above
    return [bench.claim("n")]
