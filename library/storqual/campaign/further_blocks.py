# SPDX-License-Identifier: Apache-2.0
"""Blocks beyond the plan, made of the launches that the plan has: same points, same targets, further numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.store import Run, read_block

__all__ = ["Pattern", "PointKey", "Turn", "further_block", "planned_pattern"]

PointKey = tuple[str, str]
"""Adapter and point."""
Turn = tuple[PointKey, str, int]
"""A launch to be: its point, its arm, and the how manieth of that arm there."""


@dataclass(frozen=True)
class Pattern:
    """What blocks of a bench are made of.

    `targets` are what a point needs in an arm: its drives, or its volumes with the drives behind them. `sessions`
    says in which planned session an arm measures a point, `switches` what sets a drive to a configuration.
    """

    common: Mapping[str, Any]
    targets: Mapping[tuple[PointKey, str], Mapping[str, Any]]
    launches: Mapping[tuple[PointKey, str], Mapping[str, Any]]
    sessions: Mapping[tuple[PointKey, str], str]
    switches: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]


def planned_pattern(run: Run, bench: str) -> Pattern:
    """The pattern of a bench's planned blocks."""
    common: dict[str, Any] = {}
    targets: dict[tuple[PointKey, str], Mapping[str, Any]] = {}
    launches: dict[tuple[PointKey, str], Mapping[str, Any]] = {}
    sessions: dict[tuple[PointKey, str], str] = {}
    for session in run.plan.sessions:
        for name in session.blocks if session.bench == bench else ():
            block = read_block(run.path, name)
            common = {key: block[key] for key in ("schema", "run", "bench", "state_dir", "idle_s")}
            for launch in block["launches"]:
                place = ((launch["adapter"], launch["point"]), launch["arm"])
                launches[place] = launch
                targets[place] = _targets(launch, block["targets"])
                sessions[place] = session.id
    switches = (run.document.get("switches") or {}).get(bench) or {}
    return Pattern(common, targets, launches, sessions, switches)


def _targets(launch: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The targets of a launch; the drives behind a volume are claimed with it."""
    named = list(launch["drives"])
    named += [member for name in launch["drives"] for member in (known[name].get("volume") or {}).get("members", ())]
    return {name: known[name] for name in named}


def further_block(pattern: Pattern, name: str, session: str, turns: Iterable[Turn]) -> dict[str, Any]:
    """The block `name` with these launches in this order. It takes nothing for granted of the block before."""
    state: dict[str, str] = {}
    listed = []
    targets: dict[str, Any] = {}
    for index, (place, arm, number) in enumerate(turns):
        launch = pattern.launches[place, arm]
        configuration = launch["configuration"]
        own = pattern.switches.get(configuration) or {}
        steps: list[Mapping[str, Any]] = []
        for drive in pattern.targets[place, arm]:
            if state.get(drive) != configuration:
                steps += own.get(drive) or ()
                state[drive] = configuration
        targets.update(pattern.targets[place, arm])
        listed.append({**launch, "index": index, "n": number, "switch": steps})
    return {
        **pattern.common,
        "targets": dict(sorted(targets.items())),
        "block": name,
        "session": session,
        "launches": listed,
    }
