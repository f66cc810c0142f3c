# SPDX-License-Identifier: Apache-2.0
"""The launches of a block that have no sample, as a block of their own for a later session."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["rest_of"]


def rest_of(block: Mapping[str, Any], done: Collection[str], *, name: str, session: str) -> dict[str, Any] | None:
    """What is left of `block` when the samples `done` exist; None when nothing is.

    Indices count from 0 again. `n` stays: it is the same launch of the plan, tried in another session; a sample that
    was cut off is never joined to another. A switch that an earlier launch made holds no more on a bench that was
    booted, so every launch gets the switches that led to its state, unless the rest made them already.
    """
    wanted: dict[tuple[str, ...], tuple[dict[str, Any], list[str]]] = {}
    made: dict[tuple[str, ...], list[str]] = {}
    left: list[dict[str, Any]] = []
    for launch in block["launches"]:
        for step in launch.get("switch") or ():
            wanted[tuple(step["read_back"])] = (step, _drives_of(step, launch["drives"]))
        if f"{block['block']}/{launch['index']}" in done:
            continue
        steps = []
        for key, (step, drives) in wanted.items():
            if set(drives) & set(launch["drives"]) and made.get(key) != step["argv"]:
                steps.append(step)
                made[key] = step["argv"]
        left.append({**launch, "index": len(left), "switch": steps})
    if not left:
        return None
    if len(left) < len(block["launches"]):
        # drives are preconditioned before the first launch of all
        block = {name: value for name, value in block.items() if name != "precondition"}
    return {**block, "block": name, "session": session, "launches": left}


def _drives_of(step: Mapping[str, Any], drives: list[str]) -> list[str]:
    """The drives that a step is about: those it names; all of the launch when it names none."""
    words = " ".join([*step["argv"], *step["read_back"]])
    return [drive for drive in drives if f":{drive}}}" in words] or drives
