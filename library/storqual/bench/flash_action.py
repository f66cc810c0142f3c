# SPDX-License-Identifier: Apache-2.0
"""The action of the modules that flash: they get the shipped rules for the kernel's log as an argument."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from storqual_core.data import read_table


class FlashAction(ActionBase):
    """Passes `log_rules`; everything else is the module's."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = {"log_rules": read_table("kernel_log")["rules"], **self._task.args}
        # by the name of the task: in a collection the module has a longer one
        result.update(self._execute_module(module_args=arguments, task_vars=task_vars))
        return result
