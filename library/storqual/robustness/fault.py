# SPDX-License-Identifier: Apache-2.0
"""What a fault is: its ways, how each is proven, and which proofs of a way are missing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

KERNEL_GRACE_S = 5.0
Where = Literal["bench", "virtual"]
Keeps = Literal["acknowledged", "flushed"]


@dataclass(frozen=True)
class Proof:
    """What shows that a fault was there: `seen` by who brought it about, or a line of the kernel's log.

    `seen` names what must have been told (`drive_gone`, `event:DEVICE_DELETED` …); `kernel` is a pattern of a line
    that came while the fault was under way or within `KERNEL_GRACE_S` after. Every proof of a way must be there.
    """

    seen: str = ""
    kernel: str = ""

    @property
    def sentence(self) -> str:
        """For people who read why a trial is void."""
        return f"a kernel line like /{self.kernel}/" if self.kernel else self.seen


@dataclass(frozen=True)
class Way:
    """One way to bring a fault about. `scope` is how far it reaches; `drivers` is where it is known to be provable.

    Without `drivers` the way is for every adapter but those of `not_by`, whose drivers have no such thing, or answer
    without asking the drive. `downs_bench` is where the bench itself goes down, so that the load cannot go on and
    only what it left is read back. `returns` is what must be seen after the fault: a fault is proven without it, but
    a driver that does not bring its drive back has failed. `spares_load` is where the fault is met by I/Os of its
    own, beside the load's region: then no I/O of the load may fail, whatever the fault says. `named_only` is where
    the error lies above the driver, or few benches have what it needs: no plan takes it unless a suite names it.
    `packages` are those that the bench must have, `boot_word` is what a word of its kernel's command line must begin
    with.
    """

    name: str
    where: Where
    scope: str
    proofs: tuple[Proof, ...]
    drivers: tuple[str, ...] = ()
    not_by: tuple[str, ...] = ()
    downs_bench: bool = False
    returns: tuple[str, ...] = ()
    spares_load: bool = False
    named_only: bool = False
    packages: tuple[str, ...] = ()
    boot_word: str = ""


@dataclass(frozen=True)
class Fault:
    """One fault: what it acts on, whether I/Os may fail by it, what must outlast it, whether settings must.

    `keeps` is `flushed` where a volatile cache may lose what was only acknowledged.
    """

    name: str
    acts_on: str
    sentence: str
    ways: tuple[Way, ...]
    io_errors: bool = False
    keeps: Keeps = "acknowledged"
    settings_stay: bool = True


def unproven(way: Way, seen: frozenset[str], lines: tuple[str, ...]) -> list[str]:
    """The proofs of a way that are missing, as sentences; none when the fault was there.

    `seen` is what was told, `lines` the kernel's lines from the fault's begin to `KERNEL_GRACE_S` after its end.
    """
    return [
        proof.sentence
        for proof in way.proofs
        if (proof.seen and proof.seen not in seen)
        or (proof.kernel and not any(re.search(proof.kernel, line) for line in lines))
    ]
