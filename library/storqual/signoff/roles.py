# SPDX-License-Identifier: Apache-2.0
"""Which roles must sign a run: what the gate policy that is frozen in it says."""

from __future__ import annotations

from storqual.model.policy import load_gate
from storqual.store import Run

__all__ = ["DEFAULT_ROLES", "required_roles"]

DEFAULT_ROLES = ("release-manager",)
"""Who signs where the gate says nothing."""


def required_roles(run: Run) -> tuple[str, ...]:
    """The roles whose signatures this run needs, one each. Raises BadInputError for a gate that cannot be read."""
    if "gate" not in (run.document.get("inputs") or {}):
        return DEFAULT_ROLES
    return tuple(load_gate(run.input_file("gate")).signatures) or DEFAULT_ROLES
