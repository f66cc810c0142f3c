# SPDX-License-Identifier: Apache-2.0
"""A switch between two launches: its commands with the drives' names of today, run and read back."""

from __future__ import annotations

from typing import Mapping, Sequence

from ..kit.command import Runner
from ..kit.errors import ToolError
from .batch_file import SwitchStep
from .fio_job import FioTarget
from .targets import Place


def carry_out(
    steps: Sequence[SwitchStep], targets: Mapping[str, FioTarget], places: Mapping[str, Place], runner: Runner
) -> None:
    """Set what a launch needs and read it back. Raises ToolError: nothing is measured under a wrong name."""
    for step in steps:
        runner(filled(step.argv, targets, places), timeout=step.timeout_s).expect()
        if step.read_back:
            said = runner(filled(step.read_back, targets, places), timeout=step.timeout_s).expect()
            if " ".join(step.expect.split()) not in " ".join(said.stdout.split()):
                raise ToolError(f"`{said.line}` says {said.stdout.strip()[:200]!r}, expected {step.expect!r}")


def filled(words: Sequence[str], targets: Mapping[str, FioTarget], places: Mapping[str, Place]) -> list[str]:
    """Words with each `{drive:<id>}` as the drive's node and `{name:<id>}` as its kernel name. Raises ToolError."""
    made = list(words)
    for drive, target in targets.items():
        device = places[drive].device
        for mark, value in ((f"{{drive:{drive}}}", target.node), (f"{{name:{drive}}}", device and device.name)):
            if value:
                made = [word.replace(mark, value) for word in made]
    left = [word for word in made if "{drive:" in word or "{name:" in word]
    if left:
        raise ToolError(f"a switch is about a drive that is no target of this block: {left[0]}")
    return made
