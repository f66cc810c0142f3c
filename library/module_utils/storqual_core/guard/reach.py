# SPDX-License-Identifier: Apache-2.0
"""Whom a step on claimed drives reaches beside them: what it would erase or take away must be claimed as well.

How far each purpose reaches is the device's word: a firmware image and its reset are the whole device's, a format is
that of one namespace only where the controller says so.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Sequence

from ..host.block_stack import target_of
from ..host.reach import Reached, behind, reached
from ..host.sysfs import SysfsDrive, read_drives
from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.machine import Machine, visible
from ..tools import nvme
from .claims import Claim

STEPS: Mapping[str, str] = {
    "firmware": "a firmware image or the reset that starts it",
    "format": "a format",
    "reset": "a reset",
}
"""The purposes that reach further than the drive, and what reaches it, as the beginning of a sentence."""


def matching(claim: Claim, drives: Sequence[SysfsDrive]) -> list[SysfsDrive]:
    """The drives that a claim may mean: those with its WWN, or with its serial when it states no WWN."""
    if claim.wwn:
        return [drive for drive in drives if drive.identity.wwn == claim.wwn]
    return [drive for drive in drives if claim.serial and drive.identity.serial == claim.serial]


def touched(
    machine: Machine, drives: Sequence[SysfsDrive], claims: Sequence[Claim], purpose: str, runner: Runner
) -> list[Reached]:
    """Every drive that the step reaches when it is done to the claimed drives, each path by itself."""
    neighbours: dict[str, Reached] = {}
    for claim in claims if purpose in STEPS else ():
        for drive in () if claim.file else matching(claim, drives):
            scope = "device"
            if purpose == "format" and drive.transport == "nvme" and _formats_alone(machine, drive, runner):
                scope = "drive"
            for neighbour in reached(machine, drives, drive, scope):
                neighbours.setdefault(neighbour.drive.name, neighbour)
    return list(neighbours.values())


def _formats_alone(machine: Machine, drive: SysfsDrive, runner: Runner) -> bool:
    """Whether the controller says that a format erases the named namespace only; what it does not say is no."""
    try:
        return nvme.formats_alone(runner, target_of(drive.id, drive.name, machine.path("/sys")).device)
    except ToolError:
        return False


def with_reached(
    machine: Machine,
    drives: Sequence[SysfsDrive],
    claims: Sequence[Claim],
    beside: Iterable[Claim],
    purpose: str,
    runner: Runner,
) -> tuple[Claim, ...]:
    """The claims and those of `beside` whose drives the step reaches: they are asked for and held like the others."""
    known = {claim.id for claim in claims}
    others = [claim for claim in beside if claim.id not in known and not claim.file]
    if not others:
        return tuple(claims)
    near = [each.drive for each in touched(machine, drives, claims, purpose, runner)]
    return (*claims, *(claim for claim in others if matching(claim, near)))


def strangers(neighbours: Iterable[Reached], claims: Sequence[Claim]) -> Iterator[Reached]:
    """The drives of `neighbours` that no claim means."""
    for neighbour in neighbours:
        if not any(matching(claim, [neighbour.drive]) for claim in claims):
            yield neighbour


def with_card(
    machine: Machine, functions: Iterable[str], claims: Sequence[Claim], beside: Iterable[Claim]
) -> tuple[tuple[Claim, ...], list[Reached]]:
    """The claims with those of `beside` behind the same cards, and the drives there that no claim means.

    An adapter's image and its reset are the whole card's, whichever of its functions they are sent to.
    """
    drives = read_drives(machine)
    neighbours = behind(machine, drives, [pci for pci in functions if pci], "adapter")
    near, known = [neighbour.drive for neighbour in neighbours], {claim.id for claim in claims}
    every = (*claims, *(claim for claim in beside if claim.id not in known and matching(claim, near)))
    return every, list(strangers(neighbours, every))


def objection(stranger: Reached, step: str, carries: str = "") -> tuple[str, str, str]:
    """Drive, reason and remedy of a refusal, because `step` would reach a drive that nobody claimed."""
    drive = stranger.drive
    own = f", and it {carries}" if carries else ""
    return (
        f"drive {visible(drive.id)} ({drive.name})",
        f"it is not claimed, and {step} would reach it, because it {stranger.why}{own}",
        "claim it if it may be erased, or leave the whole device alone",
    )
