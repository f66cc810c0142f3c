# SPDX-License-Identifier: Apache-2.0
"""Campaigns of trials without a bench: planned from the shipped suite, with records that a test wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from storqual.base.resources import project_root
from storqual.plan import PlanRequest
from storqual.plan.make import plan_run
from tests.support.turn_records import finish_by_hand, gate_in

if TYPE_CHECKING:
    from pathlib import Path

INVENTORY = project_root() / "inventories" / "virtual"
REQUEST = PlanRequest(
    inventories=(INVENTORY,),
    candidate="stable",
    baseline="stable",
    suite="robustness",
    profile="quick",
    adapters=("fusion", "vscsi"),
    seed=5,
)


def plan_campaign(request: PlanRequest, folder: Path) -> Path:
    """The directory of a planned run in a folder."""
    path = plan_run(request, folder).path
    assert path is not None
    return path


def finished(folder: Path, request: PlanRequest = REQUEST, **failures: dict[str, Any]) -> Path:
    """A campaign in which every trial was made; `failures` change records by the id's first word and the arm."""
    return finish_by_hand(plan_campaign(replace(request, gate=gate_in(folder)), folder), **failures)
