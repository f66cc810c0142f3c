# SPDX-License-Identifier: Apache-2.0
"""From adapters and drives named in a drop to subjects that may be flashed: claims, the guard, the tool's own name.

An adapter takes everything behind it with it, so everything behind it must be claimed, and the consent names each
drive; a drive that only the adapter shows must be the claimed one in its words, and a volume of such drives unused.
An adapter with nothing behind it is consented to by its serial number or its PCI address.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Collection, Iterator, Mapping, Sequence

from ...guard import hold as guard
from ...guard.claims import Claim, claims_of_adapters
from ...guard.reach import matching, with_card
from ...guard.rules import CONSENT_DIGITS, missing_consent
from ...host.block_stack import target_of
from ...host.identity import same_text
from ...host.reach import Reached
from ...host.sysfs import read_adapters, read_drives
from ...kit.command import Runner
from ...kit.errors import GuardRefusalError, ToolError
from ...kit.machine import Machine, visible
from ...tools.capabilities import AdapterFacts, ToolFacts, VolumeFacts
from ..drives import claim_record
from ..raid.controller import same_drive, volume_uses
from .subject import Subject


def find_adapter(facts: ToolFacts, alias: str, declared: Mapping[str, Any]) -> AdapterFacts:
    """The adapter that agrees with the inventory's PCI address and serial number, in all that both sides say.

    Raises ToolError when it is not exactly one, or when there is nothing to know it by: a tool's own number is no
    identity, it changes with every card that is plugged in.
    """
    known = {name: str(declared.get(name) or "") for name in ("pci", "serial")}
    if not any(known.values()):
        raise ToolError(
            f"adapter {alias}: the inventory states neither its PCI address nor its serial number; add them"
        )
    matching = [adapter for adapter in facts.adapters if _agrees(adapter, known)]
    if len(matching) == 1:
        return matching[0]
    seen = "; ".join(sorted(_seen(facts.adapters))) or "no adapter"
    wanted = " and ".join(f"{name} {visible(text)}" for name, text in known.items() if text)
    raise ToolError(f"adapter {alias}: {len(matching)} adapters of the tool have {wanted}; it shows {seen}")


def _agrees(adapter: AdapterFacts, known: Mapping[str, str]) -> bool:
    """Every part that both sides state is equal, and there is at least one such part."""
    compared = [
        same_text(mine.lower(), its.lower())
        for mine, its in ((known["pci"], adapter.pci), (known["serial"], adapter.serial))
        if mine and its
    ]
    return bool(compared) and all(compared)


def _seen(adapters: Sequence[AdapterFacts]) -> Iterator[str]:
    for adapter in adapters:
        parts = [adapter.index, adapter.model, adapter.pci, f"serial {adapter.serial}" if adapter.serial else ""]
        yield " ".join(visible(part) for part in parts if part)


def find_by_serial(facts: ToolFacts, drive: str, serial: str) -> AdapterFacts:
    """The device of a tool (fwupd) with a drive's serial number. Raises ToolError when it is not exactly one."""
    matching = [device for device in facts.adapters if serial and device.serial == serial]
    if len(matching) != 1:
        raise ToolError(
            f"drive {drive}: {len(matching)} devices of the tool have serial {visible(serial) or 'nothing'}"
        )
    return matching[0]


def board_of(machine: Machine, pci: str) -> str:
    """The PCI subsystem id of the adapter at an address, `1000:3010`; empty when no adapter is there."""
    for adapter in read_adapters(machine):
        if adapter.identity.pci == pci.lower():
            return f"{adapter.identity.subsystem_vendor}:{adapter.identity.subsystem_device}"
    return ""


def board_problem(board: str, boards: Sequence[str]) -> str:
    """Why an image for `boards` is not for this one; empty when it is, or when the drop names no boards."""
    if not boards or board.lower() in (each.lower() for each in boards):
        return ""
    return f"the image is for boards {', '.join(boards)}, this one is {board or 'not on the PCI bus'}"


@dataclass(frozen=True)
class Access:
    """Where the guard works: the bench's state, run, consent; `machine` and `runner` are others in tests."""

    state_dir: str
    run: str
    consent: tuple[str, ...]
    runner: Runner
    machine: Machine

    @contextmanager
    def hold(
        self, claims: Sequence[Claim], purpose: str, beside: Sequence[Claim] = ()
    ) -> Iterator[Mapping[str, str]]:
        """The drives held, and those of `beside` that this reaches. Raises GuardRefusalError."""
        with guard.hold(
            claims,
            purpose=purpose,
            beside=beside,
            consent=self.consent,
            state_dir=Path(self.state_dir),
            run=self.run,
            machine=self.machine,
            runner=self.runner,
        ) as held:
            yield held


@dataclass(frozen=True)
class Drives:
    """Drives to be flashed, by claim; `beside` are the other claims of the bench, which a flash may reach as well."""

    access: Access
    claims: tuple[Claim, ...]
    beside: tuple[Claim, ...] = ()

    def memory(self, owner: str) -> dict[str, Any]:
        """What a restore needs to find and to be let at the drive again."""
        claim = next(claim for claim in self.claims if claim.id == owner)
        others = {other.id: claim_record(other) for other in (*self.claims, *self.beside) if other.id != owner}
        return {
            "kind": "drive",
            "claim": claim_record(claim),
            "beside": others,
            "consent": list(self.access.consent),
        }

    @contextmanager
    def hold(self, tool: ModuleType, *, write: bool) -> Iterator[None]:
        """The guard over them. Raises GuardRefusalError."""
        del tool  # the kernel shows every drive that is flashed by itself
        with self.access.hold(self.claims, "firmware" if write else "reset", self.beside):
            yield

    def subjects(self, tool: ModuleType, boards: Sequence[str]) -> list[Subject]:
        """Each drive with the name its tool has for it. Raises ToolError, GuardRefusalError."""
        del boards  # a drive has no PCI board; its model was compared by the guard
        found = []
        with self.access.hold(self.claims, "settings") as held:
            for claim in self.claims:
                target = target_of(claim.id, held[claim.id], self.access.machine.path("/sys"))
                index = target.device
                if hasattr(tool, "read_facts"):
                    index = find_by_serial(tool.read_facts(self.access.runner), claim.id, claim.serial).index
                found.append(Subject(claim.id, tool, index, self.access.runner, target))
        return found


@dataclass(frozen=True)
class Adapters:
    """Adapters to be flashed, by alias, as the inventory declares them.

    `beside` are the bench's other adapters: a flash may reach claimed drives at other functions of a card.
    """

    access: Access
    adapters: Mapping[str, Mapping[str, Any]]
    beside: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def memory(self, owner: str) -> dict[str, Any]:
        """What a restore needs to find and to be let at the adapter again."""
        declared = self.adapters[owner]
        kept = {name: declared[name] for name in ("pci", "serial", "drives") if declared.get(name)}
        others = {
            alias: {"drives": other["drives"]}
            for alias, other in {**self.adapters, **self.beside}.items()
            if alias != owner and other.get("drives")
        }
        return {"kind": "adapter", "adapter": kept, "beside": others, "consent": list(self.access.consent)}

    @contextmanager
    def hold(self, tool: ModuleType, *, write: bool) -> Iterator[None]:
        """The guard over everything behind them. Raises GuardRefusalError with every refusal."""
        drives = read_drives(self.access.machine)
        claims = claims_of_adapters(self.adapters)
        places = [str(declared.get("pci") or "").lower() for declared in self.adapters.values()]
        every, strange = with_card(self.access.machine, places, claims, claims_of_adapters(self.beside))
        shown = [claim for claim in every if matching(claim, drives)]
        hidden = [claim for claim in every if claim not in shown]
        refusals = list(self._strangers(strange, every, tool))
        refusals += [text for alias in self.adapters for text in self._unnamed(alias, write=write)]
        refusals += _hidden(hidden, claims, tool, self.access, write=write)
        if not shown:
            _refuse(refusals)
            yield
            return
        try:
            with self.access.hold(shown, "firmware" if write else "settings"):
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

    def _strangers(self, found: Sequence[Reached], claims: Sequence[Claim], tool: ModuleType) -> Iterator[str]:
        """Devices that a flash takes away and that nobody claimed, volumes in use."""
        volumes = _volumes(tool, self.access.runner, claims) if found else {}
        for stranger in found:
            drive = stranger.drive
            if drive.node in volumes:
                yield from map(str, volume_uses(self.access.machine, volumes[drive.node]))
            else:
                yield (
                    f"drive {visible(drive.id)} ({drive.name}): it is not claimed, and a flash interrupts access to "
                    f"it, because it {stranger.why}; claim it, or move it to another adapter"
                )

    def _unnamed(self, alias: str, *, write: bool) -> Iterator[str]:
        """A consent that names nothing of an adapter without drives."""
        declared = self.adapters[alias]
        pci = str(declared.get("pci") or "").lower()
        if write and not claims_of_adapters({alias: declared}) and not _consents(self.access.consent, declared, pci):
            name = str(declared.get("serial") or "")[-8:] or pci
            yield (
                f"adapter {alias}: its firmware is not covered by a claim, and there is no consent to it; "
                f"add -e consent={visible(name)} if you mean this adapter"
            )


def _volumes(tool: ModuleType, runner: Runner, claims: Sequence[Claim]) -> dict[str, VolumeFacts]:
    """The volumes of which every drive is claimed, by block device."""
    found = {}
    for adapter in tool.read_facts(runner).adapters:
        claimed = {drive.position for drive in adapter.drives if any(same_drive(claim, drive) for claim in claims)}
        for volume in adapter.volumes:
            if volume.device and volume.members and claimed >= {*volume.members, *volume.spares}:
                found[volume.device] = volume
    return found


def _hidden(
    hidden: Sequence[Claim], claims: Sequence[Claim], tool: ModuleType, access: Access, *, write: bool
) -> Iterator[str]:
    """Claimed drives that the kernel does not show: the adapter must, and the consent must name them."""
    if not hidden:
        return
    there = [drive for adapter in tool.read_facts(access.runner).adapters for drive in adapter.drives]
    for claim in hidden:
        if not any(same_drive(claim, drive) for drive in there):
            yield (
                f"drive {visible(claim.id)}: neither the kernel nor the adapter shows a drive with its WWN, serial "
                "and model; check that the claim is in the right bench's inventory and the drive is plugged in"
            )
        elif write:
            yield from map(str, missing_consent(claim, {other.id for other in claims}, access.consent))


def _consents(consent: Collection[str], declared: Mapping[str, Any], pci: str) -> bool:
    """Whether a consent names the adapter by the end of its serial number or by its PCI address."""
    serial = str(declared.get("serial") or "").lower()
    words = [word.strip().lower() for word in consent]
    return any(len(word) >= CONSENT_DIGITS and (serial.endswith(word) or word == pci) for word in words)


def _refuse(refusals: Sequence[str]) -> None:
    if refusals:
        raise GuardRefusalError(refusals)
