# SPDX-License-Identifier: Apache-2.0
"""What a provisioning step did: one record per setting, and the failure that tells how far it came."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Iterable, Mapping, Sequence

from .errors import StorqualError

__all__ = ["PartialError", "Provisioned", "TrialFailedError", "changed"]


@dataclass(frozen=True)
class Provisioned:
    """One setting of one thing: what was declared, what it was, what it is now, and whether that is shown in effect.

    `proven` is True or False when the effect was observed, None when it was not; `proof` says how, or why not.
    `declared` None: only read.
    """

    name: str
    declared: object
    before: object
    read_back: object
    drive: str = ""
    adapter: str = ""
    changed: bool = False
    proven: bool | None = None
    proof: str = ""

    @property
    def as_declared(self) -> bool:
        """The read-back is what was asked for."""
        return self.declared is None or self.declared == self.read_back

    @property
    def owner(self) -> str:
        """The drive or adapter whose setting this is; `bench` for the bench's own."""
        return self.drive or self.adapter or "bench"

    def record(self) -> dict[str, Any]:
        """The entry of run.json: without the empty one of drive and adapter."""
        entry = asdict(self)
        return {key: value for key, value in entry.items() if key not in ("drive", "adapter") or value}

    def with_proof(self, proven: bool | None, proof: str) -> Provisioned:
        """The same with what was observed."""
        return replace(self, proven=proven, proof=proof)


class PartialError(StorqualError):
    """A step failed after its first write: what was done, and the state that was read back afterwards."""

    def __init__(self, message: str, *, steps: Sequence[str], settings: Sequence[Provisioned]) -> None:
        self.steps = list(steps)
        self.settings = list(settings)
        super().__init__(message)


class TrialFailedError(StorqualError):
    """A kernel on trial did not come up: what the bench runs instead, and what is left of the trial's last words."""

    def __init__(self, message: str, *, facts: Mapping[str, Any], evidence: Sequence[Mapping[str, str]]) -> None:
        self.facts = dict(facts)
        self.evidence = [dict(entry) for entry in evidence]
        super().__init__(message)


def changed(settings: Iterable[Provisioned]) -> bool:
    """Whether anything is different from before."""
    return any(setting.changed for setting in settings)
