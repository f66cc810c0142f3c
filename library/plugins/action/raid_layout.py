# SPDX-License-Identifier: Apache-2.0
"""Make volumes, and show how far they are while they are initialised."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from storqual.bench.slices import run_in_slices


class ActionModule(ActionBase):
    """The module `raid_layout` in slices; its arguments are the module's."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of all slices."""
        super().run(tmp, task_vars)
        return run_in_slices(self, task_vars or {}, Display().display)
