# SPDX-License-Identifier: Apache-2.0
"""Restore a bench, also one that hangs meanwhile: what is left to put back is read from the bench again."""

from __future__ import annotations

from typing import Any

from storqual.turns.recovering_action import RecoveringAction


class ActionModule(RecoveringAction):
    """The action of the module of this name."""

    calls_again = True
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        return {**result, **self._execute_module(task_vars=task_vars)}
