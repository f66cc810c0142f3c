# SPDX-License-Identifier: Apache-2.0
"""From adapters and drives named in a drop to subjects that may be flashed: claims, the guard, the tool's own name.

An adapter takes everything behind it with it, so everything behind it must be claimed, and the consent names each
drive. An adapter with nothing behind it is consented to by its serial number or its PCI address.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Collection, Iterator, Mapping, Sequence

from . import guard
from .command import Runner
from .drive_access import claim_record
from .drive_step import target_of
from .errors import GuardRefusalError, ToolError
from .firmware_identity import board_of, board_problem, find_adapter, find_by_serial
from .firmware_subject import Subject
from .guard_claims import Claim, claims_of_adapters
from .guard_rules import CONSENT_DIGITS
from .guard_snapshot import matching
from .machine import Machine, visible
from .sysfs import read_drives

__all__ = ["Access", "Adapters", "Drives"]


@dataclass(frozen=True)
class Access:
    """Where the guard works: the bench's state, run, consent; `machine` and `runner` are others in tests."""

    state_dir: str
    run: str
    consent: tuple[str, ...]
    runner: Runner
    machine: Machine

    @contextmanager
    def hold(self, claims: Sequence[Claim], *, write: bool) -> Iterator[Mapping[str, str]]:
        """The drives held: for settings, or with `write` for firmware. Raises GuardRefusalError."""
        with guard.hold(
            claims,
            purpose="firmware" if write else "settings",
            consent=self.consent,
            state_dir=Path(self.state_dir),
            run=self.run,
            machine=self.machine,
            runner=self.runner,
        ) as held:
            yield held


@dataclass(frozen=True)
class Drives:
    """Drives to be flashed, by claim."""

    access: Access
    claims: tuple[Claim, ...]

    def memory(self, owner: str) -> dict[str, Any]:
        """What a restore needs to find and to be let at the drive again."""
        claim = next(claim for claim in self.claims if claim.id == owner)
        return {"kind": "drive", "claim": claim_record(claim), "consent": list(self.access.consent)}

    @contextmanager
    def hold(self, *, write: bool) -> Iterator[None]:
        """The guard over them. Raises GuardRefusalError."""
        with self.access.hold(self.claims, write=write):
            yield

    def subjects(self, tool: ModuleType, boards: Sequence[str]) -> list[Subject]:
        """Each drive with the name its tool has for it. Raises ToolError, GuardRefusalError."""
        del boards  # a drive has no PCI board; its model was compared by the guard
        found = []
        with self.access.hold(self.claims, write=False) as held:
            for claim in self.claims:
                target = target_of(claim.id, held[claim.id], self.access.machine.path("/sys"))
                index = target.device
                if hasattr(tool, "read_facts"):
                    index = find_by_serial(tool.read_facts(self.access.runner), claim.id, claim.serial).index
                found.append(Subject(claim.id, tool, index, self.access.runner, target))
        return found


@dataclass(frozen=True)
class Adapters:
    """Adapters to be flashed, by alias, as the inventory declares them."""

    access: Access
    adapters: Mapping[str, Mapping[str, Any]]

    def memory(self, owner: str) -> dict[str, Any]:
        """What a restore needs to find and to be let at the adapter again."""
        declared = self.adapters[owner]
        kept = {name: declared[name] for name in ("pci", "serial", "drives") if declared.get(name)}
        return {"kind": "adapter", "adapter": kept, "consent": list(self.access.consent)}

    @contextmanager
    def hold(self, *, write: bool) -> Iterator[None]:
        """The guard over everything behind them. Raises GuardRefusalError with every refusal."""
        claims = claims_of_adapters(self.adapters)
        refusals = [text for alias in self.adapters for text in self._refusals(alias, write=write)]
        if not claims:
            _refuse(refusals)
            yield
            return
        try:
            with self.access.hold(claims, write=write):
                _refuse(refusals)
                yield
        except GuardRefusalError as problem:
            raise GuardRefusalError(
                [*refusals, *(text for text in problem.refusals if text not in refusals)]
            ) from None

    def subjects(self, tool: ModuleType, boards: Sequence[str]) -> list[Subject]:
        """Each adapter with the name its tool has for it. Raises ToolError with every problem."""
        facts = tool.read_facts(self.access.runner)
        found, problems = [], []
        for alias, declared in self.adapters.items():
            pci = str(declared.get("pci") or "").lower()
            wrong = board_problem(board_of(self.access.machine, pci), boards)
            if wrong:
                problems.append(f"adapter {alias}: {wrong}")
            try:
                index = find_adapter(facts, alias, declared).index
            except ToolError as problem:
                problems.append(str(problem))
                continue
            found.append(Subject(alias, tool, index, self.access.runner, pci=pci))
        if problems:
            raise ToolError("\n".join(problems))
        return found

    def _refusals(self, alias: str, *, write: bool) -> Iterator[str]:
        """Drives behind an adapter that nobody claimed; a consent that names nothing of it."""
        declared = self.adapters[alias]
        pci = str(declared.get("pci") or "").lower()
        claims = claims_of_adapters({alias: declared})
        behind = [drive for drive in read_drives(self.access.machine) if pci and drive.adapter == pci]
        for drive in behind:
            if not any(matching(claim, [drive]) for claim in claims):
                yield (
                    f"drive {visible(drive.id)} ({drive.name}): it is behind adapter {alias} and nobody claimed it; "
                    "a flash takes it away from whoever uses it: claim it, or plug it in elsewhere"
                )
        if write and not claims and not _consents(self.access.consent, declared, pci):
            name = str(declared.get("serial") or "")[-8:] or pci
            yield (
                f"adapter {alias}: its firmware goes beyond any claim and nobody consented to it; "
                f"add -e consent={visible(name)} if you mean this adapter"
            )


def _consents(consent: Collection[str], declared: Mapping[str, Any], pci: str) -> bool:
    """Whether a consent names the adapter by the end of its serial number or by its PCI address."""
    serial = str(declared.get("serial") or "").lower()
    words = [word.strip().lower() for word in consent]
    return any(len(word) >= CONSENT_DIGITS and (serial.endswith(word) or word == pci) for word in words)


def _refuse(refusals: Sequence[str]) -> None:
    if refusals:
        raise GuardRefusalError(refusals)
