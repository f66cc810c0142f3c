# SPDX-License-Identifier: Apache-2.0
"""Apply what is declared, and show how far volumes are while they are initialised."""

from __future__ import annotations

from typing import Any

from storqual.bench.slices import SlicedAction
from storqual.turns.recovering_action import RecoveringAction
from storqual_core.data import read_table


class ActionModule(RecoveringAction, SlicedAction):
    """The action of the module of this name; a flash gets the rules for the kernel's log, which Ansible ships not."""

    def arguments(self) -> dict[str, Any]:
        given = super().arguments()
        flashes = (given.get("declared") or {}).get("firmware")
        return {"log_rules": read_table("kernel_log")["rules"], **given} if flashes else given
