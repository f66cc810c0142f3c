# SPDX-License-Identifier: Apache-2.0
"""Preconditioning in the plan: on which targets, in front of which launches, and how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from storqual.inputs.inventory import Bench
from storqual.inputs.workload import Precondition
from storqual.plan.blocks import LOCAL_FALLBACK
from storqual.plan.budget import WRITTEN_BYTES_S
from storqual_core.measure.precondition import FEWEST_SECONDS


def with_precondition(
    bench: Bench, blocks: Sequence[dict[str, Any]], ask: Precondition, consent: tuple[str, ...]
) -> list[dict[str, Any]]:
    """The blocks of a bench's first session; the first one brings every target of the session to a known state."""
    targets = {name: target for block in blocks for name, target in block["targets"].items()}
    wanted = ask.to_block(consent, LOCAL_FALLBACK if bench.kind == "local" else ())
    return [{**blocks[0], "targets": dict(sorted(targets.items())), "precondition": wanted}, *blocks[1:]]


def precondition_seconds(bench: Bench, under_test: Sequence[str], ask: Precondition | None) -> float:
    """Expected seconds, all drives at once: fill of the largest, volume of the rounds, two windows of test."""
    if ask is None:
        return 0.0
    largest = max((drive.size or 0 for alias in under_test for drive in bench.adapters[alias].claimed), default=0)
    capacities = (ask.fill or 0) + (ask.steady.volume if ask.steady else 0.0)
    return capacities * largest / WRITTEN_BYTES_S[bench.kind] + (2 * FEWEST_SECONDS if ask.steady else 0)
